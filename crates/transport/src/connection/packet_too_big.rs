//! ICMP Packet Too Big messages about our datagrams. RFC 9000 §14.2.1, RFC 8899 §4.6.
//!
//! Routers are not authenticated, so a message counts only if it quotes a packet of ours: the
//! endpoint has matched addresses and connection ID, and here the header protection is removed from the
//! packet number, by which loss recovery finds the packet.

use super::packets::Packets;
use crate::protection::QuoteFailure;
use crate::recovery::Quoted;

impl Packets {
    /// Looks up the packet whose beginning is quoted. `id_len` is the length of the peer's connection ID, and
    /// `is_greased` is true if the Fixed Bit of our packets may be 0.
    pub(super) fn quoted(&self, quote: &[u8], id_len: usize, is_greased: bool) -> Quoted {
        // Packets with long headers are no larger than the smallest MTU of a QUIC path.
        if quote
            .first()
            .is_none_or(|first| first & LONG_FORM != 0 || !is_greased && first & FIXED_BIT == 0)
        {
            return Quoted::Unknown;
        }
        let mut header = [0; MAX_HEADER];
        let len = quote.len().min(MAX_HEADER);
        header[..len].copy_from_slice(&quote[..len]);
        let header = &mut header[..len];
        let number = match self.protection.unprotect_quote(header, 1 + id_len) {
            Ok(number) => number,
            Err(QuoteFailure::TooShort) => return Quoted::TooShort,
            Err(QuoteFailure::NoKeys) => return Quoted::Unknown,
        };
        if header[0] & RESERVED_BITS != 0 {
            return Quoted::Unknown;
        }
        self.recovery.quoted(number.value, number.len)
    }
}

/// Header Form and Fixed Bit; a short header has the second alone, or none if it is greased
/// (RFC 9000 §17.3.1, RFC 9287 §3.1).
const LONG_FORM: u8 = 0x80;
const FIXED_BIT: u8 = 0x40;
/// Zero in everything that we send (RFC 9000 §17.3.1).
const RESERVED_BITS: u8 = 0x18;

/// First byte, longest connection ID, longest packet number, sample.
const MAX_HEADER: usize = 1 + 20 + 4 + 16;
