//! Reports of the network and the system that a server cannot be reached, and their assignment to
//! connections.

use std::net::SocketAddr;

use courser_base::{FourTuple, Unreachable};

use super::{ConnectionHandle, Endpoint};

/// An ICMP message that one of our datagrams did not reach its destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnreachableReport<'a> {
    /// The destination of the datagram.
    pub peer: SocketAddr,
    /// The reason in the message: its type and code.
    pub cause: Unreachable,
    /// The beginning of the datagram's UDP payload. 47 bytes suffice for all checks.
    pub quote: &'a [u8],
}

impl Endpoint {
    /// Processes an ICMP message that a datagram did not reach its destination. Returns true if it is
    /// credible, and then [`Event::Unreachable`](crate::Event::Unreachable) occurs on the connection.
    ///
    /// It must quote the connection IDs of the first packet of a client to this address, which only attackers
    /// on the path can observe, and the server must not have answered. All other messages are ignored, so
    /// that unauthenticated messages cannot end an established connection (RFC 8085 §5.2).
    pub fn on_unreachable(&mut self, report: &UnreachableReport<'_>) -> bool {
        let Some((destination, source)) = ids_of(report.quote) else {
            return false;
        };
        let path = FourTuple::to(report.peer);
        let Some(handle) = self.router.find_connection(source, &path) else {
            return false;
        };
        let is_accepted = self.guard(|endpoint| {
            let connection = endpoint.connection_mut(handle);
            connection.is_some_and(|connection| {
                connection.path().peer == report.peer
                    && connection.on_unreachable(report.cause, Some(destination))
            })
        });
        let is_accepted = is_accepted.unwrap_or(false);
        if is_accepted {
            self.mark_ready(handle);
        }
        is_accepted
    }

    /// Records that the system has no route to the peer of a connection and has sent nothing.
    /// [`Event::Unreachable`](crate::Event::Unreachable) follows on a client that no server has answered.
    /// Other connections treat it as a loss.
    pub fn on_send_refused(&mut self, handle: ConnectionHandle, cause: Unreachable) {
        self.guard(|endpoint| {
            if let Some(connection) = endpoint.connection_mut(handle) {
                connection.on_unreachable(cause, None);
            }
        });
    }
}

/// Returns the destination and source IDs in a long header (RFC 8999 §5.1).
fn ids_of(quote: &[u8]) -> Option<(&[u8], &[u8])> {
    let (first, rest) = quote.split_first()?;
    let after_version = rest.get(4..).filter(|_| first & LONG_FORM != 0)?;
    let (destination, rest) = split_id(after_version)?;
    let (source, _) = split_id(rest)?;
    Some((destination, source))
}

fn split_id(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*len))
}

/// The bit that long headers have (RFC 8999 §5.1).
const LONG_FORM: u8 = 0x80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_from_whole_long_headers_only() {
        let header = [0xc0, 0, 0, 0, 1, 3, 1, 2, 3, 2, 8, 9, 0, 5];
        let ids = Some((&header[6..9], &header[10..12]));
        assert_eq!(ids_of(&header), ids);
        for len in 0..header.len() {
            let expected = ids.filter(|_| len >= 12);
            assert_eq!(ids_of(&header[..len]), expected, "{len}");
        }
        let mut short = header;
        short[0] = 0x40;
        assert_eq!(ids_of(&short), None);
        let mut too_long = header;
        too_long[5] = 255;
        assert_eq!(ids_of(&too_long), None);
    }
}
