//! HTTP Datagrams in DATAGRAM frames, RFC 9297 §2.1.

use bytes::{Buf as _, Bytes};
use courser_wire::{Reader, varint_len};

use super::Connection;
use crate::error::{Code, Error};
use crate::frame::put_varint;

impl Connection {
    /// True when datagrams may be sent: both ends have said so (§2.1.1).
    pub fn has_datagrams(&self) -> bool {
        let peer = self.peer_settings.as_ref().or(self.remembered.as_ref());
        self.config.datagrams && peer.is_some_and(|settings| settings.h3_datagram)
    }

    /// Takes the payload of a DATAGRAM frame: the request stream it belongs to and the rest.
    ///
    /// Whether the stream is open, and its method knows datagrams, the caller has to see.
    ///
    /// # Errors
    ///
    /// Of the connection, if there is no such stream and cannot be.
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
        if self.side.is_server() && !self.may_exist(quarter) {
            return Err(Error::connection(
                Code::ID_ERROR,
                "datagram for a stream that may not be opened",
            ));
        }
        payload.advance(header);
        Ok((quarter * 4, payload))
    }

    /// True when a client may open this request yet: it is not here, but may be on its way.
    pub fn is_future_request(&self, stream: u64) -> bool {
        self.side.is_server() && stream / 4 >= self.opened_requests()
    }

    /// The bytes before the payload of a datagram of this request.
    pub fn datagram_header(stream: u64) -> Vec<u8> {
        let quarter = stream / 4;
        let mut header = Vec::with_capacity(varint_len(quarter));
        put_varint(&mut header, quarter);
        header
    }
}

/// Stream numbers have 62 bits.
const MOST_QUARTER: u64 = (1 << 60) - 1;
