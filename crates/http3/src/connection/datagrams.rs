//! HTTP Datagrams in DATAGRAM frames (RFC 9297 §2.1).

use bytes::{Buf as _, Bytes};
use courser_wire::{Reader, varint_len};

use super::Connection;
use crate::error::{Code, Error};
use crate::frame::put_varint;

impl Connection {
    /// Returns true if both ends have enabled HTTP Datagrams (§2.1.1).
    pub fn has_datagrams(&self) -> bool {
        let peer = self.peer.in_force();
        self.config.datagrams && peer.is_some_and(|settings| settings.h3_datagram)
    }

    /// Parses the payload of a DATAGRAM frame. Returns its request stream and the HTTP Datagram.
    ///
    /// The caller must check that the stream is open and that its method uses datagrams.
    ///
    /// # Errors
    ///
    /// Returns a connection error if no such stream can exist.
    pub fn handle_datagram(&self, mut payload: Bytes) -> Result<(u64, Bytes), Error> {
        let mut reader = Reader::new(&payload);
        let quarter = reader.varint().map_err(|_| {
            Error::connection(Code::DATAGRAM_ERROR, "datagram without a Quarter Stream ID")
        })?;
        if quarter > MAX_QUARTER {
            return Err(Error::connection(
                Code::DATAGRAM_ERROR,
                "datagram with a Quarter Stream ID above 2^60 - 1",
            ));
        }
        let header = reader.offset();
        if self.side.is_server() && !self.priorities.may_exist(quarter) {
            return Err(Error::connection(
                Code::ID_ERROR,
                "datagram for a stream beyond the stream limit",
            ));
        }
        payload.advance(header);
        Ok((quarter * 4, payload))
    }

    /// Returns true if a client may still open this request: it has not arrived, but may be in flight.
    pub fn is_future_request(&self, stream: u64) -> bool {
        self.side.is_server() && stream / 4 >= self.priorities.opened()
    }

    /// Encodes the bytes before the payload of an HTTP Datagram of this request.
    pub fn datagram_header(stream: u64) -> Vec<u8> {
        let quarter = stream / 4;
        let mut header = Vec::with_capacity(varint_len(quarter));
        put_varint(&mut header, quarter);
        header
    }
}

/// Largest Quarter Stream ID, because stream IDs have 62 bits.
const MAX_QUARTER: u64 = (1 << 60) - 1;
