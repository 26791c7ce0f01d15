//! Graceful shutdown with GOAWAY (RFC 9114 §5.2).

use courser_base::Side;
use courser_wire::{Direction, MAX_VARINT, StreamId};

use crate::error::{Code, Error};
use crate::frame;

/// The GOAWAY frames sent and received.
#[derive(Debug, Default)]
pub(super) struct GoAway {
    sent: Option<u64>,
    received: Option<u64>,
}

impl GoAway {
    /// Processes the peer's GOAWAY. On a client, returns the first stream that is not processed.
    pub(super) fn on_received(&mut self, side: Side, id: u64) -> Result<Option<u64>, Error> {
        if side.is_client() && !is_request(id) {
            return Err(Error::connection(
                Code::ID_ERROR,
                "GOAWAY with an ID that is not a request stream",
            ));
        }
        if self.received.is_some_and(|before| id > before) {
            return Err(Error::connection(
                Code::ID_ERROR,
                "GOAWAY with a larger ID than the previous one",
            ));
        }
        self.received = Some(id);
        Ok(side.is_client().then_some(id))
    }

    /// Writes a GOAWAY that does not exclude any stream, unless one was sent before.
    pub(super) fn announce(&mut self, side: Side, out: &mut Vec<u8>) {
        if self.sent.is_none() {
            // The largest stream ID of a request.
            let id = if side.is_server() {
                MAX_VARINT - 3
            } else {
                MAX_VARINT
            };
            self.send(id, out);
        }
    }

    /// Writes a GOAWAY with this ID, unless one with the same or a smaller ID was sent before.
    pub(super) fn send_smaller(&mut self, id: u64, out: &mut Vec<u8>) {
        if self.sent.is_none_or(|sent| id < sent) {
            self.send(id, out);
        }
    }

    /// Returns the ID of the last GOAWAY sent.
    pub(super) const fn sent(&self) -> Option<u64> {
        self.sent
    }

    /// Returns false if a GOAWAY of this end excludes the request on `stream`.
    pub(super) fn is_served(&self, stream: u64) -> bool {
        self.sent.is_none_or(|first_refused| stream < first_refused)
    }

    /// Returns true if the peer has sent a GOAWAY.
    pub(super) const fn is_received(&self) -> bool {
        self.received.is_some()
    }

    /// Returns true if the peer's GOAWAY excludes `stream`.
    pub(super) fn is_refused(&self, stream: u64) -> bool {
        self.received
            .is_some_and(|first_refused| stream >= first_refused)
    }

    fn send(&mut self, id: u64, out: &mut Vec<u8>) {
        self.sent = Some(id);
        frame::encode_integer(out, frame::GOAWAY, id);
    }
}

/// Returns true for client-initiated bidirectional streams.
pub(super) fn is_request(id: u64) -> bool {
    let stream = StreamId::from_value(id);
    stream.initiator() == Side::Client && stream.direction() == Direction::Bidirectional
}
