//! A hash of all events on a machine.

use std::net::{IpAddr, SocketAddr};

use courser_base::Time;

use crate::packet::Packet;

/// A running hash (FNV-1a, 64 bits): small, fast, and stable across versions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fingerprint(u64);

/// The kinds of events.
#[derive(Clone, Copy, Debug)]
pub(super) enum EventKind {
    Poll = 1,
    Received = 2,
    Sent = 3,
}

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    pub(super) fn value(self) -> u64 {
        self.0
    }

    pub(super) fn add_poll(&mut self, now: Time, task: u64) {
        self.add_event(EventKind::Poll, now);
        self.add(&task.to_le_bytes());
    }

    pub(super) fn add_packet(&mut self, what: EventKind, now: Time, packet: &Packet) {
        self.add_event(what, now);
        self.add_socket_address(packet.source);
        self.add_socket_address(packet.destination);
        self.add(&[packet.ecn.to_bits()]);
        self.add(&(packet.payload.len() as u64).to_le_bytes());
    }

    pub(super) fn add_address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.add(&address.octets()),
            IpAddr::V6(address) => self.add(&address.octets()),
        }
    }

    fn add_event(&mut self, what: EventKind, now: Time) {
        self.add(&[what as u8]);
        self.add(&now.as_nanos().to_le_bytes());
    }

    fn add_socket_address(&mut self, address: SocketAddr) {
        self.add_address(address.ip());
        self.add(&address.port().to_le_bytes());
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
