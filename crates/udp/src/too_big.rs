//! ICMP messages about packets that did not fit.

use std::net::SocketAddr;

use crate::quote::Quote;

/// A report that a datagram of ours was too large for a link on the path.
///
/// It is the ICMP message "fragmentation needed" (RFC 792, RFC 1191 §4) or "packet too big" (RFC
/// 4443 §3.2). It is not authenticated: before acting on it, check that the quoted datagram was
/// sent (RFC 9000 §14.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketTooBig {
    /// The destination of the datagram. Never an IPv4-mapped address.
    pub destination: SocketAddr,
    /// The largest IP packet that the link supports, in bytes, headers included. 0 from routers
    /// that do not report it.
    pub mtu: u32,
    quote: Quote,
}

impl PacketTooBig {
    /// Creates a report about a datagram whose UDP payload began with `quote`. Only the first
    /// [`MAX_QUOTE`](crate::MAX_QUOTE) bytes are kept.
    pub fn new(destination: SocketAddr, mtu: u32, quote: &[u8]) -> Self {
        let quote = Quote::new(quote);
        Self {
            destination,
            mtu,
            quote,
        }
    }

    /// Returns the beginning of the datagram's UDP payload, as far as it was quoted. May be empty.
    pub fn quote(&self) -> &[u8] {
        self.quote.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_QUOTE;

    #[test]
    fn long_quotes_are_cut_and_short_ones_kept() {
        let to = SocketAddr::from(([192, 0, 2, 1], 4433));
        assert_eq!(
            PacketTooBig::new(to, 1400, &[7; 548]).quote(),
            [7; MAX_QUOTE]
        );
        assert_eq!(PacketTooBig::new(to, 1400, &[7; 3]).quote(), [7; 3]);
        assert!(PacketTooBig::new(to, 1400, &[]).quote().is_empty());
    }
}
