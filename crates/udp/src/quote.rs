//! The beginning of a datagram, as an ICMP message quotes it.

/// The beginning of the UDP payload of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Quote {
    bytes: [u8; MAX_QUOTE],
    len: u8,
}

impl Quote {
    pub(crate) fn new(quote: &[u8]) -> Self {
        let len = quote.len().min(MAX_QUOTE);
        let mut bytes = [0; MAX_QUOTE];
        bytes[..len].copy_from_slice(&quote[..len]);
        Self {
            bytes,
            len: u8::try_from(len).unwrap_or(u8::MAX),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Number of bytes of a quote that are kept. A short header with the longest connection ID and
/// packet number, and the sample behind it, take 41 (RFC 9001 §5.4.2). A long header up to the end
/// of the longest connection IDs takes 47 (RFC 9000 §17.2).
pub const MAX_QUOTE: usize = 64;
