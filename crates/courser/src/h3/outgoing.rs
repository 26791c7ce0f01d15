//! Our message on a request stream.

mod body;

use std::sync::Arc;

use bytes::Bytes;
use courser_http3::{Code, FieldsToSend};

use super::error::{Error, var_int};
use super::shared::Guard;
use crate::{SendStream, Side};

/// Dropped before its end, it resets the stream.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) guard: Arc<Guard>,
    pub(super) send: SendStream,
    is_over: bool,
    /// What the stream is reset with when this is dropped.
    code: Code,
}

impl Outgoing {
    pub(super) fn new(guard: Arc<Guard>, send: SendStream) -> Self {
        let code = match guard.side() {
            Side::Server => Code::REQUEST_REJECTED,
            Side::Client => Code::REQUEST_CANCELLED,
        };
        Self {
            guard,
            send,
            is_over: false,
            code,
        }
    }

    /// The request is in the hands of somebody who may have processed some of it
    /// (RFC 9114 §4.1.1).
    pub(super) fn has_begun(&mut self) {
        self.code = Code::INTERNAL_ERROR;
    }

    /// A HEADERS frame.
    pub(super) fn encode(&self, fields: &FieldsToSend<'_>) -> Result<Vec<u8>, Error> {
        let stream = self.send.id().value();
        let mut out = Vec::with_capacity(256);
        self.guard
            .drive(|state| Ok(state.http.encode(stream, fields, &mut out)))??;
        Ok(out)
    }

    /// Writes bytes that were encoded before.
    pub(super) async fn write(&mut self, bytes: Vec<u8>) -> Result<(), Error> {
        Ok(self.send.write_chunk(Bytes::from(bytes)).await?)
    }

    /// Ends the message; what was written is still delivered.
    pub(super) fn finish(&mut self) {
        if !self.is_over {
            self.end();
            // It is over already when the peer has stopped it, and all was written.
            let _ = self.send.finish();
        }
    }

    fn end(&mut self) {
        self.is_over = true;
        let stream = self.send.id().value();
        self.guard.datagrams.on_sending_over(stream);
    }

    /// Gives the message up.
    pub(super) fn reset(&mut self, code: Code) {
        if !self.is_over {
            self.end();
            let _ = self.send.reset(var_int(code));
        }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.reset(self.code);
    }
}
