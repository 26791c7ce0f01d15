//! The trace of a world, one line for each event, and its digest.
//!
//! A line contains nothing that differs between machines or between runs of the same seed: no key,
//! no ciphertext, no real time. It contains sizes, addresses, marks and connection IDs, which
//! follow from the seed alone.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use courser_base::Time;

use crate::packet::Packet;
use crate::seed::mix;

/// An event of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketEvent {
    /// A host sent the packet.
    Sent,
    /// A host received the packet.
    Delivered,
    /// No machine has the destination of the packet, or the sender has no route to it.
    Unroutable,
    /// A NAT has no mapping for the packet, or no longer has one.
    Unmapped,
    /// The packet was too large for a link, and its sender got a report.
    Refused,
}

/// One event of a world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceEvent {
    /// The virtual time since the start of the world.
    pub at: Time,
    /// The kind of event.
    pub happening: PacketEvent,
    /// The source address, as seen at the machine or NAT of the event.
    pub source: SocketAddr,
    /// The destination address, as seen at the machine or NAT of the event.
    pub destination: SocketAddr,
    /// The ECN field of the IP header at this point of the path.
    pub ecn: courser_base::Ecn,
    /// The length of the UDP payload.
    pub len: usize,
    /// The header fields of a QUIC packet that are readable without keys, see [`visible`].
    pub id: u64,
}

impl TraceEvent {
    pub(crate) fn new(at: Time, happening: PacketEvent, packet: &Packet) -> Self {
        Self {
            at,
            happening,
            source: packet.source,
            destination: packet.destination,
            ecn: packet.ecn,
            len: packet.payload.len(),
            id: visible(&packet.payload),
        }
    }
}

impl fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let happening = match self.happening {
            PacketEvent::Sent => "sent",
            PacketEvent::Delivered => "delivered",
            PacketEvent::Unroutable => "unroutable",
            PacketEvent::Unmapped => "unmapped",
            PacketEvent::Refused => "refused",
        };
        write!(
            f,
            "{:>14} {happening:<10} {} > {} {} bytes ecn {} id {:016x}",
            self.at.as_nanos(),
            self.source,
            self.destination,
            self.len,
            self.ecn.to_bits(),
            self.id
        )
    }
}

/// Returns the part of a QUIC packet's header that is neither protected nor different between
/// machines: form and type, and up to seven bytes of the Destination Connection ID (RFC 8999 §5).
/// Missing bytes are zero.
pub fn visible(payload: &[u8]) -> u64 {
    let (Some(first), is_long) = (
        payload.first(),
        payload.first().is_some_and(|b| b & 0x80 != 0),
    ) else {
        return 0;
    };
    // The low four bits of a long header and the low six of a short one are protected. The spin bit
    // is excluded too.
    let (kind, offset) = if is_long {
        (first & 0xf0, LONG_ID)
    } else {
        (first & 0x80, SHORT_ID)
    };
    let mut id = [0; 8];
    id[0] = kind;
    for (to, from) in id[1..].iter_mut().zip(payload.iter().skip(offset)) {
        *to = *from;
    }
    u64::from_be_bytes(id)
}

/// The offset of the Destination Connection ID in a long header, behind flags, version and length.
const LONG_ID: usize = 6;
/// The offset of the Destination Connection ID in a short header, behind the flags.
const SHORT_ID: usize = 1;

/// The digest of the events of a world, and the listener that receives each event.
#[derive(Default)]
pub(crate) struct Trace {
    digest: u64,
    events: u64,
    listener: Option<Listener>,
}

/// A function that receives each event of the trace.
pub type Listener = Box<dyn FnMut(&TraceEvent)>;

impl Trace {
    pub(crate) fn record(&mut self, at: Time, happening: PacketEvent, packet: &Packet) {
        let event = TraceEvent::new(at, happening, packet);
        self.events += 1;
        self.absorb(at.as_nanos());
        let small = (event.len as u64) << 8
            | u64::from(event.ecn.to_bits()) << 4
            | match happening {
                PacketEvent::Sent => 1,
                PacketEvent::Delivered => 2,
                PacketEvent::Unroutable => 3,
                PacketEvent::Unmapped => 4,
                PacketEvent::Refused => 5,
            };
        self.absorb(small);
        self.absorb(address_word(event.source));
        self.absorb(address_word(event.destination));
        self.absorb(event.id);
        if let Some(listener) = &mut self.listener {
            listener(&event);
        }
    }

    fn absorb(&mut self, word: u64) {
        self.digest = mix(self.digest ^ word);
    }

    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    pub(crate) fn listen(&mut self, listener: Listener) {
        self.listener = Some(listener);
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace")
            .field("digest", &self.digest)
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

fn address_word(address: SocketAddr) -> u64 {
    let ip = match address.ip() {
        IpAddr::V4(ip) => u64::from(ip.to_bits()),
        IpAddr::V6(ip) => {
            let bits = ip.to_bits();
            #[expect(
                clippy::cast_possible_truncation,
                reason = "both halves are used, one after the other"
            )]
            let folded = mix((bits >> 64) as u64) ^ bits as u64;
            folded
        }
    };
    ip << 16 ^ u64::from(address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_bits_are_not_visible() {
        assert_eq!(
            visible(&[0xc3, 0, 0, 0, 1, 8, 1, 2]),
            visible(&[0xcf, 0, 0, 0, 1, 8, 1, 2])
        );
        assert_eq!(visible(&[0x40, 9, 8, 7]), visible(&[0x7f, 9, 8, 7]));
        assert_ne!(visible(&[0x40, 9, 8, 7]), visible(&[0x40, 9, 8, 6]));
        assert_eq!(visible(&[]), 0);
    }
}
