//! Numbers of sessions (draft-ietf-webtrans-http3-16 §4).

use std::fmt;

use courser_base::Side;
use courser_http3::{Code, Error, Scope};
use courser_wire::{Direction, MAX_VARINT, StreamId};

/// The number of a session: the ID of the CONNECT stream that has established it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionId(u64);

impl SessionId {
    /// Checks a number from the wire, or the ID of a request stream.
    ///
    /// # Errors
    ///
    /// Returns a connection error `H3_ID_ERROR` for a number that is not the ID of a bidirectional stream of the
    /// client.
    pub const fn new(number: u64) -> Result<Self, Error> {
        if number > MAX_VARINT || !number.is_multiple_of(4) {
            return Err(invalid(
                "session ID that is not a bidirectional stream of the client",
            ));
        }
        Ok(Self(number))
    }

    /// Returns the number on the wire.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// Returns the Quarter Stream ID in datagrams of the session (RFC 9297 §2.1), which is the index of its request
    /// among those of the client.
    pub const fn quarter(self) -> u64 {
        self.0 / 4
    }

    /// Returns the ID of the CONNECT stream.
    pub const fn stream(self) -> StreamId {
        StreamId::new(Side::Client, Direction::Bidirectional, self.quarter())
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns the connection error for a session ID that cannot exist.
const fn invalid(reason: &'static str) -> Error {
    Error {
        code: Code::ID_ERROR,
        scope: Scope::Connection,
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// draft-ietf-webtrans-http3-16 §4; WT-h3-009, A258.
    #[test]
    fn number_must_be_that_of_a_bidirectional_stream_of_the_client() {
        for number in [1, 2, 3, 5, 0x4001, MAX_VARINT, MAX_VARINT + 1, u64::MAX] {
            let error = SessionId::new(number).expect_err("no request");
            assert_eq!(
                (error.code, error.scope),
                (Code::ID_ERROR, Scope::Connection)
            );
        }
        for number in [0, 4, 400, MAX_VARINT - 3] {
            let id = SessionId::new(number).expect("a request");
            assert_eq!((id.value(), id.quarter()), (number, number / 4));
            assert_eq!(id.stream().value(), number);
        }
    }
}
