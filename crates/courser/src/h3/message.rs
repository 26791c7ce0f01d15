//! The message of the peer on a request stream, as it arrives.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use courser_http3::{
    self as http3, Code, FieldsError, MessageReader, Part, RequestHead, ResponseHead, Scope,
    Section,
};
use http::{HeaderMap, Method};

use super::error::{Error, var_int};
use super::shared::Guard;
use crate::{ReadError, RecvStream, Side};

/// Dropped before its end, it stops the stream: a server has heard enough, a client cancels.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) guard: Arc<Guard>,
    receive: RecvStream,
    reader: MessageReader,
    /// A section that was read and waits for the table.
    section: Option<Bytes>,
    /// Bytes that are kept while the section waits, and that the peer gets no credit for.
    held: u64,
    /// That of a request, until somebody takes it. Here it is decoded and looked at, for it is large
    /// and each move of it would cost as much as the smaller steps of a request.
    head: Option<Decoded<RequestHead>>,
    /// Trailers, until the stream has ended behind them.
    trailers: Option<Box<HeaderMap>>,
    is_over: bool,
    /// The section was blocked once.
    has_waited: bool,
}

/// A section as a message, or why it is none.
pub(super) type Decoded<T> = Result<T, FieldsError>;

impl Incoming {
    pub(super) fn new(guard: Arc<Guard>, receive: RecvStream) -> Self {
        let side = guard.side();
        let limits = guard.limits();
        Self {
            guard,
            receive,
            reader: MessageReader::new(side, limits),
            section: None,
            held: 0,
            head: None,
            trailers: None,
            is_over: false,
            has_waited: false,
        }
    }

    pub(super) fn stream(&self) -> u64 {
        self.receive.id().value()
    }

    /// True when all of it was read.
    pub(super) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Waits for the head of a request, which is kept here.
    pub(super) fn poll_request(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let mut head = None;
        ready!(self.poll_head(cx, &mut head, |http, stream, section| {
            http.decode_request(stream, section)
        }))?;
        self.head = head;
        if let Some(Ok((request, length))) = &self.head {
            let is_extended = request.extensions().get::<http3::Protocol>().is_some();
            self.reader
                .on_request(request.method(), is_extended, *length);
            self.end_with_what_was_read();
        }
        Poll::Ready(Ok(()))
    }

    /// The head that was waited for.
    pub(super) const fn head(&mut self) -> &mut Option<Decoded<RequestHead>> {
        &mut self.head
    }

    /// A message is over with its head, or with the last of its content, if the end came along.
    fn end_with_what_was_read(&mut self) {
        self.is_over = self.receive.has_ended() && self.reader.finish().is_ok();
    }

    /// The next response, interim or final, to a request with `method`.
    pub(super) async fn response(&mut self, method: &Method) -> Result<ResponseHead, Error> {
        let mut head = None;
        std::future::poll_fn(|cx| {
            self.poll_head(cx, &mut head, |http, stream, section| {
                http.decode_response(stream, section)
            })
        })
        .await?;
        let (response, length) = match head.ok_or_else(Error::closed)? {
            Ok(head) => head,
            Err(error) => return Err(self.fail(error.to_error())),
        };
        match self.reader.on_response(response.status(), method, length) {
            Ok(()) => {
                self.end_with_what_was_read();
                Ok((response, length))
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Content, trailers, or the end.
    pub(super) fn poll_content(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Content>, Error>> {
        if self.is_over {
            return Poll::Ready(Ok(None));
        }
        if self.trailers.is_none() {
            if self.section.is_none() {
                match ready!(self.poll_part(cx))? {
                    Some(Part::Data(data)) => {
                        self.end_with_what_was_read();
                        return Poll::Ready(Ok(Some(Content::Data(data))));
                    }
                    Some(Part::Trailers(section)) => self.section = Some(section),
                    _ => return Poll::Ready(Ok(None)),
                }
            }
            let mut decoded = None;
            ready!(
                self.poll_section(cx, &mut decoded, |http, stream, section| {
                    http.decode_trailers(stream, section)
                })
            )?;
            match decoded.ok_or_else(Error::closed)? {
                Ok(trailers) => self.trailers = Some(Box::new(trailers)),
                Err(error) => return Poll::Ready(Err(self.fail(error.to_error()))),
            }
        }
        // Whoever has the trailers reads no further, so they wait for the end: what stands between
        // makes the message malformed (RFC 9114 §4.1).
        while ready!(self.poll_part(cx))?.is_some() {}
        let trailers = self
            .trailers
            .take()
            .map(|trailers| Content::Trailers(*trailers));
        Poll::Ready(Ok(trailers))
    }

    /// Ends the stream, for its head makes no message.
    pub(super) fn malformed(&mut self, reason: &'static str) -> Error {
        self.fail(FieldsError::Malformed(reason).to_error())
    }

    /// Ends the stream before its head is whole.
    pub(super) fn give_up(&mut self, code: Code) -> Error {
        self.fail(http3::Error {
            code,
            scope: Scope::Stream,
            reason: match code {
                Code::REQUEST_REJECTED => {
                    "the header section of the request did not arrive in time"
                }
                _ => "the client cancelled the request",
            },
        })
    }

    fn poll_head<T>(
        &mut self,
        cx: &mut Context<'_>,
        head: &mut Option<Decoded<T>>,
        decode: impl FnMut(&mut http3::Connection, u64, &[u8]) -> Result<Section<T>, http3::Error>,
    ) -> Poll<Result<(), Error>> {
        if self.section.is_none() {
            match ready!(self.poll_part(cx))? {
                Some(Part::Head(section)) => self.section = Some(section),
                // The reader gives nothing else before a head, and no end without one.
                _ => return Poll::Ready(Err(Error::closed())),
            }
        }
        self.poll_section(cx, head, decode)
    }

    fn poll_section<T>(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Option<Decoded<T>>,
        mut decode: impl FnMut(&mut http3::Connection, u64, &[u8]) -> Result<Section<T>, http3::Error>,
    ) -> Poll<Result<(), Error>> {
        let stream = self.stream();
        loop {
            let section = self.section.as_deref().unwrap_or_default();
            let is_decoded = self
                .guard
                .decode(|http| match decode(http, stream, section) {
                    Ok(Section::Decoded(decoded)) => {
                        *out = Some(decoded);
                        Ok(Ok(true))
                    }
                    Ok(Section::Blocked) => Ok(Ok(false)),
                    Err(error) if error.scope == Scope::Stream => Ok(Err(error)),
                    Err(error) => Err(error),
                });
            match is_decoded {
                Ok(Ok(true)) => {
                    self.release();
                    return Poll::Ready(Ok(()));
                }
                Ok(Ok(false)) => {
                    self.has_waited = true;
                    self.hold();
                    if self.guard.poll_unblocked(cx, stream).is_pending() {
                        // It may never come, and the peer have given up (RFC 9204 §2.2.2.2).
                        let error = ready!(self.receive.poll_reset(cx));
                        return Poll::Ready(Err(self.on_lost(error)));
                    }
                }
                Ok(Err(error)) => return Poll::Ready(Err(self.fail(error))),
                Err(error) => {
                    self.is_over = true;
                    return Poll::Ready(Err(error));
                }
            }
        }
    }

    /// What waits stays charged to flow control (RFC 9204 §2.2.1): the section, and what came with
    /// it and is behind it.
    fn hold(&mut self) {
        if self.held == 0 {
            let section = self.section.as_ref().map_or(0, Bytes::len);
            self.held = (section + self.reader.memory()) as u64;
            self.receive.hold_credit(self.held);
        }
    }

    /// The section waits no longer.
    fn release(&mut self) {
        self.section = None;
        if self.held > 0 {
            self.receive.release_credit(std::mem::take(&mut self.held));
        }
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Part>, Error>> {
        loop {
            match self.reader.poll() {
                Ok(Some(Part::Nothing)) => {
                    let now = self.guard.now();
                    self.guard.with(|state| state.http.on_empty_frame(now))?;
                    continue;
                }
                Ok(Some(part)) => return Poll::Ready(Ok(Some(part))),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Err(self.fail(error))),
            }
            match ready!(self.receive.poll_read_chunk_and_end(cx)) {
                Ok(Some(chunk)) => self.reader.push(chunk),
                Ok(None) => {
                    let finished = self.reader.finish();
                    self.is_over = finished.is_ok();
                    self.guard.datagrams.on_receiving_over(self.stream());
                    return Poll::Ready(match finished {
                        Ok(()) => Ok(None),
                        Err(error) => Err(self.fail(error)),
                    });
                }
                Err(error) => return Poll::Ready(Err(self.on_lost(error))),
            }
        }
    }

    /// The peer gave up, or the connection is over.
    fn on_lost(&mut self, error: ReadError) -> Error {
        self.is_over = true;
        if error == ReadError::ClosedStream && self.guard.datagrams.was_aborted(self.stream()) {
            return UNWANTED_DATAGRAM.into();
        }
        if let ReadError::Reset(_) = error {
            let (now, stream) = (self.guard.now(), self.stream());
            let cancelled = self
                .guard
                .with(|state| state.http.on_cancelled(now, stream));
            if let Err(error) = cancelled {
                return error;
            }
        }
        error.into()
    }

    /// Ends the stream or the connection for a mistake of the peer's.
    pub(super) fn fail(&mut self, error: http3::Error) -> Error {
        self.is_over = true;
        let (now, stream) = (self.guard.now(), self.stream());
        let result = self.guard.with(|state| match error.scope {
            Scope::Connection => Err(error),
            // Whoever makes us reset streams makes us work for nothing (A72).
            Scope::Stream => state.http.on_cancelled(now, stream),
        });
        match result {
            Ok(()) => {
                let _ = self.receive.stop(var_int(error.code));
                error.into()
            }
            Err(error) => error,
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        let stream = self.stream();
        self.release();
        if !self.is_over {
            let code = match self.guard.side() {
                Side::Server => Code::NO_ERROR,
                Side::Client => Code::REQUEST_CANCELLED,
            };
            // Its end may be here already, and a section of it still wait for the table.
            let _ = self.receive.stop(var_int(code));
            let _ = self.guard.with(|state| {
                state.http.forget(stream);
                Ok(())
            });
        }
        self.guard.datagrams.on_receiving_over(stream);
        if self.has_waited {
            // News that came before that is for nobody.
            self.guard.forget_blocked(stream);
        }
    }
}

/// RFC 9297 §2.
pub(super) const UNWANTED_DATAGRAM: http3::Error = http3::Error {
    code: Code::DATAGRAM_ERROR,
    scope: Scope::Stream,
    reason: "datagram for a request that does not use datagrams",
};

/// What may follow a head.
#[derive(Debug)]
pub(super) enum Content {
    Data(Bytes),
    Trailers(HeaderMap),
}
