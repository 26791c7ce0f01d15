//! The message sent on a request stream.

mod body;

use std::sync::Arc;

use bytes::Bytes;
use courser_http3::{Code, FieldsToSend};
use courser_quic::telemetry::{Http3Frame, Http3Record};
use courser_quic::{SendStream, Side};

use super::failure::{Failure, var_int};
use super::shared::Guard;
use super::waiting::Waiting;

/// Writes the frames of a message to a QUIC stream. Dropping it before the end resets the stream.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) guard: Arc<Guard>,
    pub(super) send: SendStream,
    /// The code for a reset of the stream; `None` once the message has ended.
    reset_code: Option<Code>,
    waiting: Waiting,
    /// Counts among the requests that run (limit K591).
    is_counted: bool,
}

impl Outgoing {
    pub(super) fn new(guard: Arc<Guard>, send: SendStream) -> Self {
        let code = match guard.side() {
            Side::Server => Code::REQUEST_REJECTED,
            Side::Client => Code::REQUEST_CANCELLED,
        };
        Self {
            // The limit is set before any request, and only on servers.
            is_counted: guard.arrivals.is_limited(),
            guard,
            send,
            reset_code: Some(code),
            waiting: Waiting::default(),
        }
    }

    /// Records that a service receives the request and may process parts of it, so that it is no longer reset as
    /// rejected (RFC 9114 §4.1.1).
    pub(super) fn on_processing(&mut self) {
        self.reset_code = self.reset_code.and(Some(Code::INTERNAL_ERROR));
    }

    /// Encodes a HEADERS frame.
    pub(super) fn encode(&self, fields: &FieldsToSend<'_>) -> Result<Vec<u8>, Failure> {
        self.encode_before(fields, 0)
    }

    /// Encodes a header section with spare capacity of `room` bytes for content.
    pub(super) fn encode_before(
        &self,
        fields: &FieldsToSend<'_>,
        room: usize,
    ) -> Result<Vec<u8>, Failure> {
        let stream = self.send.id().value();
        let mut out = Vec::with_capacity(256 + room);
        self.guard
            .drive(|state| Ok(state.encode(stream, fields, &mut out)))
            .map_err(|error| self.guard.failure_of(error))??;
        Ok(out)
    }

    /// Records a DATA frame with `len` bytes of content that is about to be written.
    pub(super) fn record_data(&self, len: usize) {
        if len == 0 {
            return;
        }
        let records = &self.guard.records;
        records.record(&self.guard.quic, || Http3Record::FrameCreated {
            stream: self.send.id().value(),
            frame: Http3Frame::Data { len: len as u64 },
        });
    }

    /// Writes all bytes of these encoded frames.
    pub(super) async fn write(&mut self, frames: Vec<u8>) -> Result<(), Failure> {
        Ok(self.send.write_chunk(Bytes::from(frames)).await?)
    }

    /// Counts the request as cancelled by the peer.
    pub(super) fn on_cancelled_by_peer(&self) -> Result<(), Failure> {
        let (now, stream) = (self.guard.now(), self.send.id().value());
        self.guard
            .drive(|state| state.http.on_given_up(now, stream))
            .map_err(|error| self.guard.failure_of(error))
    }

    /// Ends the message. All written bytes are still delivered.
    pub(super) fn finish(&mut self) {
        if self.on_end().is_some() {
            // Fails if the peer has stopped the stream and all bytes are written.
            let _ = self.send.finish();
        }
    }

    /// Aborts the message with a reset.
    pub(super) fn reset(&mut self, code: Code) {
        if self.on_end().is_some() {
            let _ = self.send.reset(var_int(code));
            self.guard.lingering.on_reset(self.send.id().value());
        }
    }

    /// Counts the request among those that wait for their client, because its header section is incomplete.
    pub(super) fn wait_for_head(&mut self) {
        self.waiting.on_waiting(&self.guard.waiting);
    }

    /// Ends what [`wait_for_head`](Self::wait_for_head) began: the request waits for its service.
    pub(super) fn wait_for_service(&mut self) {
        self.waiting.end(&self.guard.waiting);
    }

    /// Records the end of the message. Returns the code for a reset, only once.
    fn on_end(&mut self) -> Option<Code> {
        let code = self.reset_code.take()?;
        let stream = self.send.id().value();
        self.guard.datagrams.on_sending_over(stream);
        self.waiting.end(&self.guard.waiting);
        if self.is_counted {
            self.guard.arrivals.on_ended();
        }
        Some(code)
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        if let Some(code) = self.reset_code {
            self.reset(code);
        }
    }
}
