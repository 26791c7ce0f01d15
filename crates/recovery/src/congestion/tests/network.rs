//! The network between whole flows: one link for both directions.

use std::net::SocketAddr;

use courser_base::{Ecn, Time};
use courser_link::{Link, LinkSpec, Packet};

/// A link whose packets carry the number of a sent packet.
///
/// Its delay is the round-trip time, so that a packet leaves the link when its acknowledgement
/// arrives at the sender.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) link: Link,
}

/// A packet whose acknowledgement arrives at the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Time,
    pub(crate) flow: u16,
    pub(crate) number: u64,
    /// True if the queue marked the packet CE.
    pub(crate) is_marked: bool,
}

impl Network {
    pub(crate) fn new(spec: &LinkSpec, seed: u64) -> Self {
        Self {
            link: Link::new(spec, seed),
        }
    }

    /// Sends a packet of `size` bytes, IP and UDP headers included.
    pub(crate) fn send(&mut self, now: Time, flow: u16, number: u64, size: u64) {
        let mut payload = vec![0; size as usize - HEADERS];
        payload[..8].copy_from_slice(&number.to_be_bytes());
        let packet = Packet {
            source: address(flow),
            destination: address(0),
            ecn: Ecn::Ect1,
            payload: payload.into(),
        };
        debug_assert_eq!(packet.wire_size(), size);
        self.link.send(now, packet);
    }

    /// Returns the next packet that arrives by `limit`.
    pub(crate) fn receive(&mut self, limit: Time) -> Option<Arrival> {
        while let Some(event) = self.link.next_time().filter(|event| *event <= limit) {
            if let Some((at, packet)) = self.link.poll_with_time(event) {
                let number = packet.payload[..8]
                    .try_into()
                    .expect("the payload begins with eight bytes");
                return Some(Arrival {
                    at,
                    flow: packet.source.port(),
                    number: u64::from_be_bytes(number),
                    is_marked: packet.ecn == Ecn::Ce,
                });
            }
        }
        None
    }

    /// Returns true if no packet is on the link.
    pub(crate) fn is_empty(&self) -> bool {
        self.link.next_time().is_none()
    }
}

fn address(port: u16) -> SocketAddr {
    ([10, 0, 0, 1], port).into()
}

/// The bytes of IPv4 and UDP headers.
const HEADERS: usize = 28;
