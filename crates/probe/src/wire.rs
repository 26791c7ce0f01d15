//! Datagrams of one connection as an observer of the network sees them.

use courser::runtime::Ecn;
use courser_wire::packet::{PacketKind, decode_greased};

/// Notes about the datagrams of one connection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct WireLog {
    /// True if the server has sent a Retry packet.
    pub(crate) retry: bool,
    /// Bytes sent before the server could know that the client's address is real.
    pub(crate) sent_early: u64,
    /// Bytes received before that.
    pub(crate) received_early: u64,
    /// True if the server had sent more than three times what it had received (RFC 9000 §8.1).
    pub(crate) exceeds_three_times: bool,
    /// Datagrams received with each mark: not ECT, ECT(1), ECT(0), CE.
    pub(crate) marks: [u64; 4],
    /// Datagrams received.
    pub(crate) received: u64,
    /// Packets with a short header received.
    pub(crate) short: u64,
    /// Packets with a short header and a Fixed Bit of 0 (RFC 9287).
    pub(crate) greased: u64,
    /// Changes of the spin bit from one packet with a short header to the next, of the server and of this
    /// client.
    pub(crate) spins: [u64; 2],
    is_validated: bool,
    last_spin: [Option<bool>; 2],
}

impl WireLog {
    pub(crate) fn on_sent(&mut self, datagram: &[u8]) {
        if !self.is_validated {
            // The server knows the address from a packet that only its reader could have protected, and
            // from the token of its Retry.
            if kinds(datagram).any(|kind| kind == PacketKind::Handshake) || self.retry {
                self.is_validated = true;
            } else {
                self.sent_early += datagram.len() as u64;
            }
        }
        self.note_spin(datagram, 1);
    }

    pub(crate) fn on_received(&mut self, datagram: &[u8], mark: Ecn) {
        self.received += 1;
        self.marks[match mark {
            Ecn::NotEct => 0,
            Ecn::Ect1 => 1,
            Ecn::Ect0 => 2,
            Ecn::Ce => 3,
        }] += 1;
        if !self.is_validated {
            self.received_early += datagram.len() as u64;
            self.exceeds_three_times |= self.received_early > 3 * self.sent_early;
            self.retry |= kinds(datagram).next() == Some(PacketKind::Retry);
        }
        if let Some(first) = short_header(datagram) {
            self.short += 1;
            self.greased += u64::from(first & FIXED_BIT == 0);
        }
        self.note_spin(datagram, 0);
    }

    fn note_spin(&mut self, datagram: &[u8], end: usize) {
        let Some(first) = short_header(datagram) else {
            return;
        };
        let spin = first & SPIN_BIT != 0;
        let changed = self.last_spin[end]
            .replace(spin)
            .is_some_and(|last| last != spin);
        self.spins[end] += u64::from(changed);
    }
}

/// Returns the first byte of a datagram that begins with a short header.
fn short_header(datagram: &[u8]) -> Option<u8> {
    datagram
        .first()
        .copied()
        .filter(|first| first & LONG_FORM == 0)
}

/// Returns the kinds of the packets in a datagram, up to the first short header.
fn kinds(datagram: &[u8]) -> impl Iterator<Item = PacketKind> + '_ {
    let mut start = 0;
    std::iter::from_fn(move || {
        let first = *datagram.get(start)?;
        if first & LONG_FORM == 0 {
            return None;
        }
        let packet = decode_greased(datagram, start, 0, true).ok()?;
        start = packet.end;
        Some(packet.kind)
    })
}

const LONG_FORM: u8 = 0x80;
const FIXED_BIT: u8 = 0x40;
const SPIN_BIT: u8 = 0x20;

#[cfg(test)]
mod tests {
    use courser_wire::packet::LongHeader;
    use courser_wire::{ConnectionId, Writer};

    use super::*;

    /// Returns a datagram of `len` bytes with one packet.
    fn long(kind: PacketKind, len: usize) -> Vec<u8> {
        let header = LongHeader {
            kind,
            version: 1,
            destination: ConnectionId::EMPTY,
            source: ConnectionId::EMPTY,
            token: &[],
        };
        let mut bytes = vec![0; len];
        let mut writer = Writer::new(&mut bytes);
        let offset = header.encode(&mut writer, 1);
        courser_wire::packet::patch_length(&mut bytes, offset, len - offset - 2);
        bytes
    }

    #[test]
    fn three_times_are_counted_until_the_address_is_proven() {
        let mut log = WireLog::default();
        log.on_sent(&long(PacketKind::Initial, 1200));
        for _ in 0..3 {
            log.on_received(&long(PacketKind::Handshake, 1200), Ecn::NotEct);
        }
        assert!(!log.exceeds_three_times);
        let mut generous = log.clone();
        generous.on_received(&long(PacketKind::Handshake, 100), Ecn::NotEct);
        assert!(generous.exceeds_three_times);
        log.on_sent(&long(PacketKind::Handshake, 100));
        log.on_received(&long(PacketKind::Handshake, 1200), Ecn::NotEct);
        assert!(!log.exceeds_three_times);
        assert_eq!((log.sent_early, log.received_early), (1200, 3600));
    }

    #[test]
    fn bits_of_short_headers_are_noted() {
        let mut log = WireLog::default();
        for first in [0x40, 0x60, 0x40, 0x00] {
            log.on_received(&[first, 1, 2], Ecn::Ect0);
        }
        assert_eq!((log.short, log.greased, log.spins), (4, 1, [2, 0]));
        assert_eq!(log.marks, [0, 0, 4, 0]);
    }

    #[test]
    fn bytes_that_are_no_packets_are_counted_only() {
        let mut log = WireLog::default();
        for bytes in [&[][..], &[0x80], &[0xc0; 40]] {
            log.on_received(bytes, Ecn::NotEct);
            log.on_sent(bytes);
        }
        assert_eq!((log.received, log.short, log.retry), (3, 0, false));
    }
}
