//! Checks the amplification limit in every test, from the datagrams alone. RFC 9000 §8.

use std::collections::HashMap;
use std::net::SocketAddr;

use courser_wire::packet::{self, PacketKind};

use super::link::Datagram;

/// Bytes that a server received from and sent to each address.
#[derive(Default)]
pub(crate) struct Ledger(HashMap<SocketAddr, Account>);

#[derive(Clone, Copy, Default)]
struct Account {
    received: usize,
    sent: usize,
    /// True once a datagram arrived from the address that only a receiver there could have sent: a
    /// packet with handshake keys, or a token. Tests of forged addresses check this themselves.
    is_exempt: bool,
}

impl Ledger {
    /// Counts a datagram that the server received.
    pub(crate) fn on_received(&mut self, datagram: &Datagram) {
        let account = self.0.entry(datagram.from).or_default();
        account.received += datagram.bytes.len();
        let mut rest = &datagram.bytes[..];
        while let Ok(packet) = packet::decode(rest, 0, 8) {
            account.is_exempt |= match packet.kind {
                PacketKind::Initial => !packet.token.is_empty(),
                PacketKind::Handshake | PacketKind::OneRtt => true,
                _ => false,
            };
            rest = &rest[packet.end..];
        }
    }

    /// Counts a datagram that the server sent.
    pub(crate) fn on_sent(&mut self, datagram: &Datagram) {
        let account = self.0.entry(datagram.to).or_default();
        account.sent += datagram.bytes.len();
        assert!(
            account.is_exempt || account.sent <= 3 * account.received,
            "{} bytes to {} for {}",
            account.sent,
            datagram.to,
            account.received,
        );
    }

    /// Exempts an address, because data that only a receiver there could have sent arrived from another.
    pub(crate) fn exempt(&mut self, address: SocketAddr) {
        self.0.entry(address).or_default().is_exempt = true;
    }

    /// Returns the bytes received from an address and the bytes sent to it.
    pub(crate) fn of(&self, address: SocketAddr) -> (usize, usize) {
        let account = self.0.get(&address).copied().unwrap_or_default();
        (account.received, account.sent)
    }
}
