//! The message received on a request stream.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use courser_base::foreign::ForeignWaker;
use courser_http3::{self as http3, Decoding, RequestStream, ResponseHead, Scope, Step};
use courser_quic::hooks::RecvStreamHooks;
use courser_quic::{ReadError, RecvStream};
use http::Method;

use super::datagrams::UNUSED_DATAGRAM;
use super::failure::{Failure, var_int};
use super::records::Records;
use super::shared::Guard;

/// Drives a [`RequestStream`] with the bytes of a QUIC stream.
///
/// Dropping it before the end of the message cancels the rest. A server has then read enough to respond, and
/// [discards](super::abandoned) further bytes for a short time. A client cancels the request.
#[derive(Debug)]
pub(super) struct Incoming {
    guard: Arc<Guard>,
    receive: RecvStream,
    /// The message, which also holds the header section until a service is called.
    pub(super) message: RequestStream,
}

impl Incoming {
    /// Creates the receiver of a request on a server.
    pub(super) fn request(guard: Arc<Guard>, receive: RecvStream) -> Self {
        let mut message = RequestStream::request(receive.id().value(), guard.limits());
        message.set_extensions(guard.extensions());
        Self::new(guard, receive, message)
    }

    /// Creates the receiver of the response to a request with `method`.
    pub(super) fn response(guard: Arc<Guard>, receive: RecvStream, method: &Method) -> Self {
        let mut message = RequestStream::response(receive.id().value(), guard.limits(), method);
        message.set_extensions(guard.extensions());
        Self::new(guard, receive, message)
    }

    const fn new(guard: Arc<Guard>, receive: RecvStream, message: RequestStream) -> Self {
        Self {
            guard,
            receive,
            message,
        }
    }

    /// Returns the stream ID.
    pub(super) fn stream(&self) -> u64 {
        self.receive.id().value()
    }

    /// Waits for the next part of the message: headers, content, trailers or the end.
    pub(super) fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Result<Step, Failure>> {
        loop {
            self.message
                .set_recording(self.guard.records.are_recorded());
            let step = self.message.poll();
            if self.message.records().has_records() {
                Records::pass(&self.guard.quic, self.message.records().take());
            }
            match step {
                Step::Read => {
                    self.hold_partial();
                    ready!(self.poll_read(cx))?;
                }
                Step::Charge => self.charge()?,
                Step::Decode => match self.decode(cx)? {
                    Decoding::Done => {}
                    Decoding::Blocked { .. } => {
                        // The missing entries may never arrive, because the peer may have reset the stream (RFC
                        // 9204 §2.2.2.2).
                        let error = ready!(self.receive.poll_reset(cx));
                        return Poll::Ready(Err(self.on_lost(error)));
                    }
                },
                Step::Frame {
                    frame_type,
                    payload,
                } => {
                    let stream = self.stream();
                    let taken = self.guard.on_request_frame(stream, frame_type, payload);
                    if let Err(error) = taken {
                        return Poll::Ready(Err(self.fail(error)));
                    }
                }
                step => {
                    if let Step::Trailers(_) | Step::End = step {
                        self.guard.datagrams.on_receiving_over(self.stream());
                    }
                    return Poll::Ready(Ok(step));
                }
            }
        }
    }

    /// Waits for the next interim or final response.
    pub(super) async fn next_response(&mut self) -> Result<ResponseHead, Failure> {
        std::future::poll_fn(|cx| self.poll_step(cx)).await?;
        self.message.take_response().ok_or_else(Failure::closed)
    }

    /// Begins with bytes that were read before, and the end of the stream if `has_ended` is true.
    pub(super) fn begin_with(&mut self, first: Bytes, has_ended: bool) {
        self.message.push(first);
        if has_ended {
            self.message.on_fin();
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        match ready!(self.receive.poll_read_chunk_and_end(cx)) {
            Ok(Some(chunk)) => self.message.push(chunk),
            Ok(None) => {}
            Err(error) => return Poll::Ready(Err(self.on_lost(error))),
        }
        if self.receive.has_ended() {
            self.message.on_fin();
        }
        Poll::Ready(Ok(()))
    }

    /// Withholds a large part of an incomplete section from flow control until the rest has arrived, so that it
    /// counts towards the memory budget of the endpoint.
    fn hold_partial(&mut self) {
        let more = self.message.hold_partial();
        if more > 0 {
            self.receive.hold_credit(more);
        }
    }

    /// Decodes a section. If it is blocked, the task is woken when it can be decoded.
    fn decode(&mut self, cx: &Context<'_>) -> Result<Decoding, Failure> {
        let stream = self.stream();
        let mut waker = Some(ForeignWaker::of(cx));
        let decoded = self.guard.drive(|state| {
            let decoding = self.message.decode(&mut state.http);
            if decoding != Decoding::Done
                && let Some(waker) = waker.take()
            {
                state.wait_for_entries(stream, waker);
            }
            Ok(decoding)
        });
        let decoding = decoded.map_err(|error| self.on_error(error))?;
        match decoding {
            Decoding::Done => self.release(),
            Decoding::Blocked { hold: 0 } => {}
            Decoding::Blocked { hold } => self.receive.hold_credit(hold),
        }
        Ok(decoding)
    }

    fn charge(&mut self) -> Result<(), Failure> {
        let now = self.guard.now();
        let charged = self
            .guard
            .drive(|state| self.message.charge(&mut state.http, now));
        charged.map_err(|error| self.on_error(error))
    }

    /// Ends the stream or the connection because of an error in received data.
    pub(super) fn fail(&mut self, error: http3::Error) -> Failure {
        let now = self.guard.now();
        let failed = self
            .guard
            .drive(|state| Err::<(), _>(self.message.fail(&mut state.http, now, error)));
        self.on_error(failed.err().unwrap_or(error))
    }

    /// Ends the stream with the error that ended the message.
    fn on_error(&mut self, error: http3::Error) -> Failure {
        match error.scope {
            Scope::Stream => {
                let _ = self.receive.stop(var_int(error.code));
            }
            // The connection is closed, perhaps because of another request.
            Scope::Connection => self.message.on_connection_lost(),
        }
        self.guard.failure_of(error)
    }

    /// Ends the message because the peer has reset the stream or the connection is lost.
    fn on_lost(&mut self, error: ReadError) -> Failure {
        match error {
            ReadError::Reset(_) => {
                let now = self.guard.now();
                let reset = self
                    .guard
                    .drive(|state| self.message.on_reset(&mut state.http, now));
                if let Err(error) = reset {
                    return self.on_error(error);
                }
            }
            _ => self.message.on_connection_lost(),
        }
        let is_closed = error == ReadError::ClosedStream;
        match is_closed && self.guard.datagrams.was_aborted(self.stream()) {
            true => UNUSED_DATAGRAM.into(),
            false => self.guard.cause_of(error.into()),
        }
    }

    /// Grants credit for the bytes that an incomplete or blocked section has withheld, and stops waiting for its
    /// entries.
    fn release(&mut self) {
        let held = self.message.take_held();
        if held > 0 {
            self.receive.release_credit(held);
            self.guard.forget_blocked(self.stream());
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        let stream = self.stream();
        self.release();
        self.guard.datagrams.on_receiving_over(stream);
        let Some(code) = self.message.stop_code() else {
            return;
        };
        let lingers = self.message.is_answered_early();
        let abandoned = self.guard.drive(|state| {
            self.message.abandon(&mut state.http);
            Ok(())
        });
        if lingers && abandoned.is_ok() {
            return super::abandoned::read_rest(&self.guard.0, self.receive.take());
        }
        // The end may have arrived already, after a section that is still blocked.
        let _ = self.receive.stop(var_int(code));
    }
}
