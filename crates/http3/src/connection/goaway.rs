//! Graceful shutdown with GOAWAY, RFC 9114 §5.2.

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
    /// Takes the peer's GOAWAY. Returns the first stream that is not served, on a client.
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

/// Returns true for bidirectional streams of a client.
pub(super) fn is_request(id: u64) -> bool {
    let stream = StreamId::from_value(id);
    stream.initiator() == Side::Client && stream.direction() == Direction::Bidirectional
}

impl Connection {
    /// Announces that this server is going away, and still serves requests in flight. Call
    /// [`go_away`](Self::go_away) at least a round trip later.
    pub fn announce_going_away(&mut self) {
        if self.goaway.sent.is_none() {
            // The largest stream number of a request.
            let id = if self.side.is_server() {
                MAX_VARINT - 3
            } else {
                MAX_VARINT
            };
            self.send_goaway(id);
        }
    }

    /// Sends a GOAWAY that excludes requests from the stream `first_refused` on. A client sends zero,
    /// for it accepts no pushes.
    pub fn go_away(&mut self, first_refused: u64) {
        if self.goaway.sent.is_none_or(|sent| first_refused < sent) {
            self.send_goaway(first_refused);
        }
    }

    /// Sends a GOAWAY that excludes all requests that were not opened yet.
    pub fn go_away_after_last(&mut self) {
        let index = self.opened_requests();
        self.go_away(StreamId::new(Side::Client, Direction::Bidirectional, index).value());
    }

    /// Returns false if a GOAWAY of ours excludes the request of `stream`. Reset and stop it with
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
