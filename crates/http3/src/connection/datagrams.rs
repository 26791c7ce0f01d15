//! HTTP Datagrams in DATAGRAM frames, RFC 9297 §2.1.

use bytes::{Buf as _, Bytes};
use courser_wire::{Reader, varint_len};

use super::Connection;
use crate::error::{Code, Error};
use crate::frame::put_varint;

impl Connection {
    /// Returns true if both ends have enabled datagrams (§2.1.1).
    pub fn has_datagrams(&self) -> bool {
        let peer = self.peer.in_force();
        self.config.datagrams && peer.is_some_and(|settings| settings.h3_datagram)
    }

    /// Takes the payload of a DATAGRAM frame. Returns its request stream and the HTTP Datagram.
    ///
    /// The caller has to check that the stream is open and that its method uses datagrams.
    ///
    /// # Errors
    ///
    /// Returns an error of the connection if no such stream can exist.
    pub fn handle_datagram(&self, mut payload: Bytes) -> Result<(u64, Bytes), Error> {
        let mut reader = Reader::new(&payload);
        let quarter = reader
            .varint()
            .map_err(|_| Error::connection(Code::DATAGRAM_ERROR, "datagram without a stream"))?;
        if quarter > MOST_QUARTER {
            return Err(Error::connection(
                Code::DATAGRAM_ERROR,
                "datagram for a stream above all numbers",
            ));
        }
        let header = reader.offset();
        if self.side.is_server() && !self.priorities.may_exist(quarter) {
            return Err(Error::connection(
                Code::ID_ERROR,
                "datagram for a stream that may not be opened",
            ));
        }
        payload.advance(header);
        Ok((quarter * 4, payload))
    }

    /// Returns true if a client may still open this request: it has not arrived, but may be in flight.
    pub fn is_future_request(&self, stream: u64) -> bool {
        self.side.is_server() && stream / 4 >= self.priorities.opened()
    }

    /// Returns the bytes in front of a datagram of this request.
    pub fn datagram_header(stream: u64) -> Vec<u8> {
        let quarter = stream / 4;
        let mut header = Vec::with_capacity(varint_len(quarter));
        put_varint(&mut header, quarter);
        header
    }
}

/// The first number above all streams, which have 62 bits.
const MOST_QUARTER: u64 = (1 << 60) - 1;
