//! Destinations that cannot be reached, as ICMP messages and as errors of sending.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use courser_base::Unreachable;

use crate::quote::Quote;

/// A report that a datagram of ours did not reach its destination.
///
/// It is the ICMP message "destination unreachable" (RFC 792, RFC 4443 §3.1). It is not authenticated:
/// before acting on it, check that the quoted datagram was sent, and never end an established
/// connection (RFC 8085 §5.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnreachableReport {
    /// The destination of the datagram. Never an IPv4-mapped address.
    pub destination: SocketAddr,
    /// The reason, as the ICMP message states it.
    pub cause: Unreachable,
    quote: Quote,
}

impl UnreachableReport {
    /// Creates a report about a datagram whose UDP payload began with `quote`. Only the first
    /// [`MAX_QUOTE`](crate::MAX_QUOTE) bytes are kept.
    pub fn new(destination: SocketAddr, cause: Unreachable, quote: &[u8]) -> Self {
        let quote = Quote::new(quote);
        Self {
            destination,
            cause,
            quote,
        }
    }

    /// Returns the beginning of the datagram's UDP payload, as far as it was quoted. May be empty.
    pub fn quote(&self) -> &[u8] {
        self.quote.bytes()
    }
}

/// Returns the reason why the system cannot reach a destination, if that caused this error of
/// [`UdpSocket::try_send`](crate::UdpSocket::try_send).
pub fn unreachable_cause(error: &io::Error) -> Option<Unreachable> {
    match error.kind() {
        ErrorKind::HostUnreachable => Some(Unreachable::Host),
        ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown => Some(Unreachable::Network),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_about_unreachable_destinations_have_a_cause() {
        for (kind, cause) in [
            (ErrorKind::NetworkUnreachable, Some(Unreachable::Network)),
            (ErrorKind::NetworkDown, Some(Unreachable::Network)),
            (ErrorKind::HostUnreachable, Some(Unreachable::Host)),
            // An earlier datagram was refused, perhaps by another host.
            (ErrorKind::ConnectionRefused, None),
            (ErrorKind::PermissionDenied, None),
            (ErrorKind::OutOfMemory, None),
        ] {
            assert_eq!(unreachable_cause(&kind.into()), cause, "{kind}");
        }
    }
}
