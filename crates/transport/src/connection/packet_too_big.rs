//! What routers say of our datagrams. RFC 9000 §14.2.1, RFC 8899 §4.6.
//!
//! Nobody proves to be a router, so what is said counts only if it quotes a packet of ours: the
//! endpoint has matched addresses and connection ID, and here the packet number under its header
//! protection has to be that of a packet whose fate is open and which was larger than what is
//! said to fit.

use courser_base::Time;
use courser_crypto::header_protection;
use courser_recovery::BASE_MTU;
use courser_wire::packet_number;

use super::Connection;
use crate::path::Refused;
use crate::space::SpaceId;

/// What a quote tells.
enum Quoted {
    /// A packet whose fate is open.
    Packet(u64),
    /// It ends before the packet number can be read.
    TooShort,
    /// Nothing that we sent and still think of.
    Nothing,
}

impl Connection {
    /// A router says that a datagram to our peer was too large for a link that takes IP packets
    /// of `mtu` bytes; `quote` is how the datagram began. True if that is believed.
    ///
    /// Costs the same whatever is said and however much is in flight.
    pub(crate) fn on_packet_too_big(&mut self, now: Time, mtu: u32, quote: &[u8]) -> bool {
        let claimed = self.payload_of(mtu);
        // Claims that no QUIC path can make are not looked at any further.
        if claimed < BASE_MTU || !self.state.is_open() {
            return false;
        }
        match self.quoted(quote) {
            Quoted::Packet(number) => self.on_packet_refused(now, number, claimed),
            Quoted::TooShort => self.on_probe_refused(now, claimed),
            Quoted::Nothing => false,
        }
    }

    fn quoted(&self, quote: &[u8]) -> Quoted {
        let Some(keys) = &self.key_phase.keys else {
            return Quoted::Nothing;
        };
        // Packets with long headers are never larger than what every path carries.
        if quote
            .first()
            .is_none_or(|first| first & FORM_AND_FIXED_BITS != FIXED_BIT)
        {
            return Quoted::Nothing;
        }
        let offset = 1 + self.cids.peer.current().len();
        let mut header = [0; MAX_HEADER];
        let len = quote.len().min(MAX_HEADER);
        header[..len].copy_from_slice(&quote[..len]);
        let key = keys.local_header();
        let header = &mut header[..len];
        let Some((len, truncated)) = header_protection::unprotect(key, header, offset) else {
            return Quoted::TooShort;
        };
        let space = &self.spaces.application;
        // What the peer would expand it by.
        let expected = space.loss.largest_acked().map_or(0, |largest| largest + 1);
        let number = packet_number::expand(truncated, len, expected);
        let is_plausible = header[0] & RESERVED_BITS == 0 && space.sent.get(number).is_some();
        if is_plausible {
            Quoted::Packet(number)
        } else {
            Quoted::Nothing
        }
    }

    /// The packet is lost, and it is known why: what it carried is sent again at once, and
    /// congestion control hears nothing of it.
    fn on_packet_refused(&mut self, now: Time, number: u64, claimed: u16) -> bool {
        let space = &mut self.spaces.application;
        let path = self.paths.active_mut();
        let fits = |size, on| size <= claimed || on != path.id;
        let Some(sent) = space.sent.get(number) else {
            return false;
        };
        if fits(sent.size, sent.path) || !sent.in_flight || !path.search.is_searching() {
            return false;
        }
        if path.search.on_packet_too_big(now, sent.size, claimed) {
            path.refused = Refused::new(space.next_packet_number, claimed);
            path.follow_search();
        }
        if let Some(mut sent) = space.sent.take(number) {
            sent.is_mtu_probe = true;
            self.on_packet_lost(now, SpaceId::Application, number, sent);
            self.forget_snapshots(SpaceId::Application);
        }
        true
    }

    /// A quote that shows no packet number is believed only as far as it can do no harm: it may
    /// name the size of the next probe.
    fn on_probe_refused(&mut self, now: Time, claimed: u16) -> bool {
        let path = self.paths.active_mut();
        match path.search.probe_in_flight() {
            Some(size) if size > claimed && claimed >= path.mtu => {
                path.search.on_packet_too_big(now, size, claimed);
                true
            }
            _ => false,
        }
    }
}

/// Header Form and Fixed Bit; a short header has the second alone (RFC 9000 §17.3.1).
const FORM_AND_FIXED_BITS: u8 = 0xc0;
const FIXED_BIT: u8 = 0x40;
/// Zero in everything that we send (RFC 9000 §17.3.1).
const RESERVED_BITS: u8 = 0x18;

/// First byte, longest connection ID, longest packet number, sample.
const MAX_HEADER: usize = 1 + 20 + 4 + 16;
