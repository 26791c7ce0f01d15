//! The content of a request over HTTP/2, which can be sent again while it is short.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use courser::server::Cause;
use h2::{Reason, SendStream};
use http::HeaderMap;
use http_body::Body as _;

use crate::body::Body;
use crate::proxy::failure::Failure;

/// Sends the content of a request, and keeps the first bytes to send them again.
pub(super) struct Upload {
    body: Body,
    is_body_over: bool,
    trailers: Option<HeaderMap>,
    /// Content that is sent next, before the rest of the body.
    next: VecDeque<Bytes>,
    /// All content read from the body so far, or `None` if that is too much to keep.
    kept: Option<Kept>,
    stream: Option<SendStream<Bytes>>,
}

#[derive(Default)]
struct Kept {
    content: Vec<Bytes>,
    bytes: usize,
}

impl Upload {
    pub(super) fn new(body: Body) -> Self {
        Self {
            is_body_over: body.is_end_stream(),
            body,
            trailers: None,
            next: VecDeque::new(),
            kept: Some(Kept::default()),
            stream: None,
        }
    }

    /// Returns true if nothing is to be sent.
    pub(super) fn is_empty(&self) -> bool {
        self.is_body_over && self.next.is_empty() && self.trailers.is_none()
    }

    /// Returns true if the request has content or may have some.
    pub(super) fn has_content(&self) -> bool {
        let is_kept_empty = self.kept.as_ref().is_some_and(|kept| kept.bytes == 0);
        !self.is_body_over || !is_kept_empty || self.trailers.is_some()
    }

    /// Starts to send on this stream.
    pub(super) fn begin(&mut self, stream: SendStream<Bytes>) {
        self.stream = (!self.is_empty()).then_some(stream);
    }

    /// Prepares to send all content again. Returns false if that is impossible.
    pub(super) fn rewind(&mut self) -> bool {
        self.stream = None;
        let Some(kept) = &self.kept else {
            return false;
        };
        self.next = kept.content.iter().cloned().collect();
        true
    }

    /// Sends the rest in a task after the response has arrived.
    pub(super) fn finish_later(mut self) {
        self.kept = None;
        if self.stream.is_some() {
            tokio::spawn(async move {
                let _ = std::future::poll_fn(|cx| self.poll_send(cx)).await;
            });
        }
    }

    /// Sends as much content as the credit of the server permits. Ready when all content is sent, or when the server needs no
    /// more.
    ///
    /// # Errors
    /// The cause if the content cannot be received.
    pub(super) fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Cause>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Ok(()));
        };
        if stream.poll_reset(cx).is_ready() {
            self.stream = None;
            return Poll::Ready(Ok(()));
        }
        loop {
            if self.is_body_over && self.next.is_empty() {
                // Fails if the stream is closed, which the response reports.
                let _ = match &self.trailers {
                    Some(trailers) => stream.send_trailers(trailers.clone()),
                    None => stream.send_data(Bytes::new(), true),
                };
                break;
            }
            let wanted = self.next.front().map_or(1, Bytes::len);
            stream.reserve_capacity(wanted);
            while stream.capacity() == 0 {
                let capacity = ready!(stream.poll_capacity(cx));
                if !matches!(capacity, Some(Ok(_))) {
                    self.stream = None;
                    return Poll::Ready(Ok(()));
                }
            }
            if let Some(mut content) = self.next.pop_front() {
                let part = content.split_to(content.len().min(stream.capacity()));
                if !content.is_empty() {
                    self.next.push_front(content);
                }
                let is_last = self.is_body_over && self.next.is_empty() && self.trailers.is_none();
                if stream.send_data(part, is_last).is_err() || is_last {
                    break;
                }
                continue;
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                None => self.is_body_over = true,
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(content) => {
                        self.is_body_over = self.body.is_end_stream();
                        if !content.is_empty() {
                            keep(&mut self.kept, &content);
                            self.next.push_back(content);
                        }
                    }
                    Err(frame) => {
                        self.trailers = frame.into_trailers().ok();
                        self.is_body_over = true;
                    }
                },
                Some(Err(error)) => {
                    stream.send_reset(Reason::CANCEL);
                    self.stream = None;
                    let cause = Failure::of_content(&*error).unwrap_or(Cause::ContentAborted);
                    return Poll::Ready(Err(cause));
                }
            }
        }
        self.stream = None;
        Poll::Ready(Ok(()))
    }
}

/// Keeps content to send it again, or keeps nothing if it is too much.
fn keep(kept: &mut Option<Kept>, content: &Bytes) {
    if let Some(all) = kept {
        all.bytes += content.len();
        match all.bytes > MAX_KEPT || all.content.len() == MAX_PIECES {
            true => *kept = None,
            false => all.content.push(content.clone()),
        }
    }
}

/// Largest amount of content that is kept to be sent again (limit K355).
const MAX_KEPT: usize = 64 * 1024;
/// Largest number of pieces of that content (limit K355).
const MAX_PIECES: usize = 64;
