//! What a router says of a packet that did not fit: the news, and for links that play a router,
//! the message itself.

use std::net::SocketAddr;

/// A router's word that a datagram of ours was too large for the link behind it.
///
/// It is ICMP, "fragmentation needed" (RFC 792, RFC 1191 §4) or "packet too big" (RFC 4443 §3.2),
/// and nothing in it is proven: whoever acts on it checks first that the quoted datagram was sent
/// (RFC 9000 §14.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketTooBig {
    /// Where the datagram was to go. Never an IPv4-mapped address.
    pub destination: SocketAddr,
    /// The largest IP packet that the link takes, in bytes, headers included; 0 from routers
    /// that do not tell.
    pub mtu: u32,
    quote: [u8; MAX_QUOTE],
    quote_len: u8,
}

impl PacketTooBig {
    /// News of a datagram whose UDP payload began with `quote`; only the first
    /// [`MAX_QUOTE`] bytes of it are kept.
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

    /// How the datagram's UDP payload began, as far as it was quoted; possibly empty.
    pub fn quote(&self) -> &[u8] {
        &self.quote[..usize::from(self.quote_len)]
    }
}

/// Bytes of a quote that are kept: a short header with the longest connection ID and packet
/// number and the sample behind it takes 41 (RFC 9001 §5.4.2).
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
