//! Limits on the response content that an HTTP/2 connection buffers for its client (attacks A24, A88).
//!
//! hyper takes more content than it can send: up to 400 KiB for each stream with an open window, which is 100
//! MiB for a client that opens its windows and does not read its socket.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use courser_base::Mutex;
use http_body::{Frame, SizeHint};
use pin_project_lite::pin_project;
use slab::Slab;

/// Counts the content of one connection that hyper has taken and not sent yet.
///
/// Above [`MAX_HELD`] bytes, response bodies are polled later, with one exception. While the socket accepts
/// everything, the held content can only wait for credit of its own streams, so each other stream may pass on
/// one chunk. Otherwise a few streams that a client reads later would block all others.
///
/// Clones belong to the same connection.
#[derive(Clone, Default, Debug)]
pub(crate) struct HeldContent(Arc<Mutex<HeldState>>);

#[derive(Default, Debug)]
struct HeldState {
    bytes: usize,
    /// True if the socket is full, or the client grants no credit for the connection.
    is_blocked: bool,
    responses: Slab<Response>,
    /// Responses that may not be polled yet, in the order of their requests.
    waiting: VecDeque<usize>,
}

/// A response that holds content or waits.
#[derive(Default, Debug)]
struct Response {
    bytes: usize,
    waker: Option<Waker>,
    /// True once its body is dropped. Content that it has passed on is still held.
    has_ended: bool,
}

impl HeldContent {
    /// Wraps the body of a response, so that it is polled within the limit.
    pub(crate) fn pace<B>(&self, body: B) -> Paced<B> {
        Paced {
            body,
            place: ResponseEntry {
                content: Some(self.clone()),
                key: None,
            },
        }
    }

    /// Records whether the connection has sent all it can and waits for the client.
    pub(crate) fn set_blocked(&self, is_blocked: bool) {
        let mut state = self.lock();
        state.is_blocked = is_blocked;
        if is_blocked || state.waiting.is_empty() {
            return;
        }
        let woken = state.take_all_permitted();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, HeldState> {
        self.0.lock()
    }
}

impl HeldState {
    fn may_take(&self, key: Option<usize>) -> bool {
        let own = key.map_or(0, |key| self.responses[key].bytes);
        self.bytes < MAX_HELD || (!self.is_blocked && own == 0)
    }

    /// Returns the waker of the first response that may pass on more content.
    fn next_permitted(&mut self) -> Option<Waker> {
        let permitted = |key: &usize| self.may_take(Some(*key));
        let place = self.waiting.iter().position(permitted)?;
        let key = self.waiting.remove(place)?;
        self.responses[key].waker.take()
    }

    fn take_all_permitted(&mut self) -> Vec<Waker> {
        std::iter::from_fn(|| self.next_permitted()).collect()
    }

    fn wait(&mut self, key: usize, waker: &Waker) {
        let response = &mut self.responses[key];
        match &mut response.waker {
            Some(known) => known.clone_from(waker),
            None => {
                response.waker = Some(waker.clone());
                self.waiting.push_back(key);
            }
        }
    }

    /// Releases content that was sent, or dropped with its stream.
    fn release(&mut self, key: usize, bytes: usize) {
        self.bytes -= bytes;
        let response = &mut self.responses[key];
        response.bytes -= bytes;
        if response.has_ended && response.bytes == 0 {
            self.responses.remove(key);
        }
    }

    /// Ends a response whose body was dropped.
    fn end(&mut self, key: usize) {
        let response = &mut self.responses[key];
        (response.has_ended, response.waker) = (true, None);
        if response.bytes == 0 {
            self.responses.remove(key);
        }
        self.waiting.retain(|waiting| *waiting != key);
    }
}

/// The entry of a response in the state of its connection.
#[derive(Debug)]
struct ResponseEntry {
    /// `None` over HTTP/1.1, which takes one chunk at a time.
    content: Option<HeldContent>,
    /// The key of the entry, once the response has passed on content or has waited.
    key: Option<usize>,
}

impl ResponseEntry {
    fn poll_permit(&mut self, cx: &Context<'_>) -> Poll<()> {
        let Some(content) = &self.content else {
            return Poll::Ready(());
        };
        let mut state = content.lock();
        if state.may_take(self.key) {
            return Poll::Ready(());
        }
        let key = *self
            .key
            .get_or_insert_with(|| state.responses.insert(Response::default()));
        state.wait(key, cx.waker());
        Poll::Pending
    }

    /// Counts bytes that are passed to hyper, until the returned share is dropped.
    fn hold(&mut self, bytes: usize) -> Option<Share> {
        let content = self.content.as_ref()?;
        let mut state = content.lock();
        let key = *self
            .key
            .get_or_insert_with(|| state.responses.insert(Response::default()));
        state.bytes += bytes;
        state.responses[key].bytes += bytes;
        drop(state);
        Some(Share {
            content: content.clone(),
            key,
            bytes,
        })
    }

    /// Wakes the next waiting response if the limit allows more content.
    fn wake_next(&self) {
        let Some(content) = self.content.as_ref().filter(|_| self.key.is_some()) else {
            return;
        };
        let waker = content.lock().next_permitted();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for ResponseEntry {
    fn drop(&mut self) {
        if let (Some(content), Some(key)) = (&self.content, self.key) {
            content.lock().end(key);
            self.wake_next();
        }
    }
}

/// A part of the held content, released when dropped.
#[derive(Debug)]
struct Share {
    content: HeldContent,
    key: usize,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = self.content.lock();
        state.release(self.key, self.bytes);
        let waker = state.next_permitted();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

pin_project! {
    /// The body of a response, which is polled only within the limit of held content.
    pub(crate) struct Paced<B> {
        #[pin]
        body: B,
        place: ResponseEntry,
    }
}

impl<B> Paced<B> {
    /// Wraps a body that is polled without a limit.
    pub(crate) const fn unlimited(body: B) -> Self {
        Self {
            body,
            place: ResponseEntry {
                content: None,
                key: None,
            },
        }
    }
}

impl<B: http_body::Body> http_body::Body for Paced<B> {
    type Data = Held<B::Data>;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, B::Error>>> {
        let this = self.project();
        ready!(this.place.poll_permit(cx));
        let polled = this.body.poll_frame(cx);
        let polled = polled.map_ok(|frame| {
            frame.map_data(|data| {
                let bytes = data.remaining();
                let share = (bytes > SMALL).then(|| this.place.hold(bytes));
                let share = share.flatten();
                Held { data, share }
            })
        });
        this.place.wake_next();
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Content that counts as held until it is dropped.
#[derive(Debug)]
pub(crate) struct Held<D> {
    data: D,
    #[expect(dead_code, reason = "ends with the data")]
    share: Option<Share>,
}

impl<D: Buf> Buf for Held<D> {
    fn remaining(&self) -> usize {
        self.data.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.data.chunk()
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.data.chunks_vectored(slices)
    }

    fn advance(&mut self, count: usize) {
        self.data.advance(count);
    }

    fn copy_to_bytes(&mut self, len: usize) -> Bytes {
        self.data.copy_to_bytes(len)
    }
}

/// Largest amount of held content: a chunk of a file that is being sent, and the next (limit K110).
const MAX_HELD: usize = 128 * 1024;

/// Largest size of chunks that are not counted. Counting them would take longer than sending them. Over all
/// streams of a connection they add up to at most [`MAX_HELD`].
const SMALL: usize = 512;

#[cfg(test)]
mod tests;
