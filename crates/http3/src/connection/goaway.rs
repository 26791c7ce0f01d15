//! Leaving without losing anything, RFC 9114 §5.2.

use courser_base::Side;
use courser_wire::{Direction, MAX_VARINT, StreamId};

use super::Connection;
use crate::error::{Code, Error};
use crate::frame;

#[derive(Debug, Default)]
pub(super) struct GoAway {
    sent: Option<u64>,
    received: Option<u64>,
}

impl GoAway {
    /// Takes the peer's; on a client the first stream that will not be served.
    pub(super) fn on_received(&mut self, side: Side, id: u64) -> Result<Option<u64>, Error> {
        if side.is_client() && !is_request(id) {
            return Err(Error::connection(
                Code::ID_ERROR,
                "GOAWAY for a stream that is no request",
            ));
        }
        if self.received.is_some_and(|before| id > before) {
            return Err(Error::connection(
                Code::ID_ERROR,
                "GOAWAY that takes back the one before",
            ));
        }
        self.received = Some(id);
        Ok(side.is_client().then_some(id))
    }
}

/// Opened by a client, both ways.
pub(super) fn is_request(id: u64) -> bool {
    let stream = StreamId::from_value(id);
    stream.initiator() == Side::Client && stream.direction() == Direction::Bidirectional
}

impl Connection {
    /// Announces that this server goes away and serves what is on its way: to be called first, and
    /// [`go_away`](Self::go_away) at least a round trip later.
    pub fn announce_going_away(&mut self) {
        if self.goaway.sent.is_none() {
            // The largest number of a request.
            let id = if self.side.is_server() {
                MAX_VARINT - 3
            } else {
                MAX_VARINT
            };
            self.send_goaway(id);
        }
    }

    /// Says that requests from the stream `first_refused` on will not be served; a client that
    /// goes away says zero, for it takes no pushes.
    pub fn go_away(&mut self, first_refused: u64) {
        if self.goaway.sent.is_none_or(|sent| first_refused < sent) {
            self.send_goaway(first_refused);
        }
    }

    /// Says that requests after those that were opened are not served.
    pub fn go_away_after_last(&mut self) {
        let index = self.opened_requests();
        self.go_away(StreamId::new(Side::Client, Direction::Bidirectional, index).value());
    }

    /// False when the request of `stream` is refused by a GOAWAY of ours: reset and stop it with
    /// `H3_REQUEST_REJECTED`.
    pub fn is_served(&self, stream: u64) -> bool {
        self.goaway
            .sent
            .is_none_or(|first_refused| stream < first_refused)
    }

    /// Returns true if the peer has sent a GOAWAY: no further request may be sent.
    pub fn peer_goes_away(&self) -> bool {
        self.goaway.received.is_some()
    }

    /// Returns true if a GOAWAY of the server excludes this request: it was not processed.
    pub fn is_refused(&self, stream: u64) -> bool {
        let received = self.goaway.received;
        self.side.is_client() && received.is_some_and(|first_refused| stream >= first_refused)
    }

    fn send_goaway(&mut self, id: u64) {
        self.goaway.sent = Some(id);
        frame::encode_integer(&mut self.control_out, frame::GOAWAY, id);
    }
}
