//! ICMP messages about packets that did not fit.

use std::net::SocketAddr;

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
    quote: [u8; MAX_QUOTE],
    quote_len: u8,
}

impl PacketTooBig {
    /// Creates a report about a datagram whose UDP payload began with `quote`. Only the first
    /// [`MAX_QUOTE`] bytes are kept.
    pub fn new(destination: SocketAddr, mtu: u32, quote: &[u8]) -> Self {
        let len = quote.len().min(MAX_QUOTE);
        let mut kept = [0; MAX_QUOTE];
        kept[..len].copy_from_slice(&quote[..len]);
        Self {
            destination,
            mtu,
            quote: kept,
            quote_len: u8::try_from(len).unwrap_or(u8::MAX),
        }
    }

    /// Returns the beginning of the datagram's UDP payload, as far as it was quoted. May be empty.
    pub fn quote(&self) -> &[u8] {
        &self.quote[..usize::from(self.quote_len)]
    }
}

/// Number of bytes of a quote that are kept. A short header with the longest connection ID and
/// packet number, and the sample behind it, take 41 (RFC 9001 §5.4.2).
pub const MAX_QUOTE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

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
