//! Observes the datagrams of one connection, as on the network.

use courser::runtime::Ecn;
use courser_wire::ConnectionId;
use courser_wire::packet::{Packet, PacketKind, decode_greased};

/// Counters and properties of the datagrams of one connection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct WireLog {
    /// True if the server sent a Retry packet.
    pub(crate) retry: bool,
    /// Bytes sent before the server had validated the client's address.
    pub(crate) sent_early: u64,
    /// Bytes received before the server had validated the client's address.
    pub(crate) received_early: u64,
    /// True if the server exceeded three times the bytes that it had received (RFC 9000 §8.1).
    pub(crate) exceeds_three_times: bool,
    /// Datagrams received with each mark: not ECT, ECT(1), ECT(0), CE.
    pub(crate) marks: [u64; 4],
    /// Number of datagrams received on the current and earlier ports.
    pub(crate) received: u64,
    /// Number of received packets with a short header.
    pub(crate) short: u64,
    /// Number of received packets with a short header and a Fixed Bit of 0 (RFC 9287).
    pub(crate) greased: u64,
    /// Changes of the spin bit between consecutive packets with a short header, of the server and of this client.
    pub(crate) spins: [u64; 2],
    is_validated: bool,
    /// The connection ID that the server chose.
    server_id: Option<ConnectionId>,
    last_spin: [Option<bool>; 2],
}

impl WireLog {
    pub(crate) fn on_sent(&mut self, datagram: &[u8]) {
        if !self.is_validated {
            // The server validates the address by a packet that proves it, or by the token of its Retry.
            if packets(datagram).any(|packet| self.proves(&packet)) || self.retry {
                self.is_validated = true;
            } else {
                self.sent_early += datagram.len() as u64;
            }
        }
        self.record_spin(datagram, 1);
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
            if let Some(first) = packets(datagram).next() {
                self.retry |= first.kind == PacketKind::Retry;
                self.server_id = Some(first.source);
            }
        }
        if let Some(first) = short_header(datagram) {
            self.short += 1;
            self.greased += u64::from(first & FIXED_BIT == 0);
        }
        self.record_spin(datagram, 0);
    }

    /// Returns true for a packet that only a receiver of the server's packets can send: one with Handshake keys,
    /// or one to a connection ID of 64 bits or more that the server chose (RFC 9000 §8.1).
    fn proves(&self, packet: &Packet) -> bool {
        let is_chosen = self.server_id == Some(packet.destination);
        packet.kind == PacketKind::Handshake || (is_chosen && packet.destination.len() >= 8)
    }

    fn record_spin(&mut self, datagram: &[u8], end: usize) {
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

/// Returns the packets in a datagram, up to the first short header.
fn packets(datagram: &[u8]) -> impl Iterator<Item = Packet> + '_ {
    let mut start = 0;
    std::iter::from_fn(move || {
        let first = *datagram.get(start)?;
        if first & LONG_FORM == 0 {
            return None;
        }
        let packet = decode_greased(datagram, start, 0, true).ok()?;
        start = packet.end;
        Some(packet)
    })
}

const LONG_FORM: u8 = 0x80;
const FIXED_BIT: u8 = 0x40;
const SPIN_BIT: u8 = 0x20;

#[cfg(test)]
mod tests {
    use courser_wire::Writer;
    use courser_wire::packet::LongHeader;

    use super::*;

    /// Returns a datagram of `len` bytes with one packet.
    fn long(kind: PacketKind, len: usize) -> Vec<u8> {
        between(kind, len, ConnectionId::EMPTY, ConnectionId::EMPTY)
    }

    fn between(
        kind: PacketKind,
        len: usize,
        destination: ConnectionId,
        source: ConnectionId,
    ) -> Vec<u8> {
        let header = LongHeader {
            kind,
            version: 1,
            destination,
            source,
            token: &[],
        };
        let mut bytes = vec![0; len];
        let mut writer = Writer::new(&mut bytes);
        let offset = header.encode(&mut writer, 1);
        courser_wire::packet::patch_length(&mut bytes, offset, len - offset - 2);
        bytes
    }

    #[test]
    fn amplification_is_checked_until_the_address_is_validated() {
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
    fn packet_to_a_long_connection_id_of_the_server_validates_the_address() {
        let id = |len: usize| ConnectionId::new(&[7; 20][..len]).expect("short enough");
        for (len, is_proof) in [(8, true), (20, true), (7, false)] {
            let mut log = WireLog::default();
            log.on_sent(&long(PacketKind::Initial, 1200));
            let answer = between(PacketKind::Initial, 1200, ConnectionId::EMPTY, id(len));
            log.on_received(&answer, Ecn::NotEct);
            log.on_sent(&between(
                PacketKind::Initial,
                1200,
                id(len),
                ConnectionId::EMPTY,
            ));
            assert_eq!(log.sent_early, if is_proof { 1200 } else { 2400 }, "{len}");
        }
        let mut log = WireLog::default();
        let answer = between(PacketKind::Initial, 1200, ConnectionId::EMPTY, id(8));
        log.on_received(&answer, Ecn::NotEct);
        log.on_sent(&between(
            PacketKind::Initial,
            1200,
            id(9),
            ConnectionId::EMPTY,
        ));
        assert_eq!(log.sent_early, 1200, "an ID that the server did not choose");
    }

    #[test]
    fn bits_of_short_headers_are_recorded() {
        let mut log = WireLog::default();
        for first in [0x40, 0x60, 0x40, 0x00] {
            log.on_received(&[first, 1, 2], Ecn::Ect0);
        }
        assert_eq!((log.short, log.greased, log.spins), (4, 1, [2, 0]));
        assert_eq!(log.marks, [0, 0, 4, 0]);
    }

    #[test]
    fn invalid_datagrams_are_only_counted() {
        let mut log = WireLog::default();
        for bytes in [&[][..], &[0x80], &[0xc0; 40]] {
            log.on_received(bytes, Ecn::NotEct);
            log.on_sent(bytes);
        }
        assert_eq!((log.received, log.short, log.retry), (3, 0, false));
    }
}
