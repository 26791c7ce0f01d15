//! ICMP Packet Too Big messages about our datagrams. RFC 9000 §14.2.1, RFC 8899 §4.6.
//!
//! Routers are not authenticated, so a message counts only if it quotes a packet of ours: the
//! endpoint has matched addresses and connection ID, and here the header protection comes off the
//! packet number, by which loss recovery finds the packet.

use courser_base::Time;
use courser_recovery::BASE_MTU;

use super::Connection;
use crate::recovery::Quoted;

impl Connection {
    /// Takes the message of a router that a datagram to the peer was too large for a link which
    /// carries IP packets of `mtu` bytes. `quote` is the beginning of the datagram. True if the
    /// message is believed.
    ///
    /// Costs the same for every message, and however much is in flight.
    pub(crate) fn on_packet_too_big(&mut self, now: Time, mtu: u32, quote: &[u8]) -> bool {
        let claimed = self.payload_of(mtu);
        // Claims that no QUIC path can make are not examined any further.
        if claimed < BASE_MTU || !self.state.is_open() {
            return false;
        }
        let quoted = self.quoted(quote);
        let (recovery, mut owners) = self.recovery_and_owners();
        recovery.on_router_report(now, quoted, claimed, &mut owners)
    }

    fn quoted(&self, quote: &[u8]) -> Quoted {
        // Every path carries packets as large as those with long headers.
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
        let header = &mut header[..len];
        let (len, truncated) = match self.protection.unprotect_quote(header, offset) {
            Some(Some(number)) => number,
            Some(None) => return Quoted::TooShort,
            None => return Quoted::Nothing,
        };
        if header[0] & RESERVED_BITS != 0 {
            return Quoted::Nothing;
        }
        self.recovery.quoted(truncated, len)
    }
}

/// Header Form and Fixed Bit; a short header has the second alone (RFC 9000 §17.3.1).
const FORM_AND_FIXED_BITS: u8 = 0xc0;
const FIXED_BIT: u8 = 0x40;
/// Zero in everything that we send (RFC 9000 §17.3.1).
const RESERVED_BITS: u8 = 0x18;

/// First byte, longest connection ID, longest packet number, sample.
const MAX_HEADER: usize = 1 + 20 + 4 + 16;
