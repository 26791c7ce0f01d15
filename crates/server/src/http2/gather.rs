//! Batching of the small writes of a connection.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Waker, ready};

use courser_base::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::budgets::{Budgets, Refusing};
use super::credit::{Credit, Placement};
use super::executor::Executor;
use super::held::HeldContent;
use super::inspector::{Inspector, Passed};
use super::tags::Tagger;
use crate::limits::buffers::HeaderBlock;

/// A stream that buffers written bytes until its [`Gatherer`] sends them.
///
/// hyper flushes after each DATA frame, which would cost a system call and a TLS record for each small response.
/// A flush of this stream completes once the bytes are buffered. The task that polls the connection calls
/// [`Gatherer::poll_send`] afterwards, when all available responses are written.
///
/// Buffers up to [`MAX_GATHERED`] bytes, and no memory while empty. Errors of sending are returned by later calls.
///
/// ReadMonitor stops while other tasks should run, because hyper would continue as long as requests arrive. ReadMonitor
/// is also slower from a client that cancels too many requests, and finally stops.
pub(crate) struct Gathered<S> {
    state: Arc<Mutex<GatheredState<S>>>,
    executor: Executor,
}

/// Sends the bytes that a [`Gathered`] stream has buffered.
pub(crate) struct Gatherer<S>(pub(super) Arc<Mutex<GatheredState<S>>>);

pub(super) struct GatheredState<S> {
    stream: S,
    kept: Vec<u8>,
    /// Number of bytes at the beginning of `kept` that are sent.
    sent: usize,
    failure: Option<io::Error>,
    credit: Credit,
    content: HeldContent,
    budgets: Budgets,
    /// The memory of an incomplete header block, if it is counted.
    block: Option<HeaderBlock>,
    /// The end of a pause of reading.
    pause: Option<Pin<Box<Sleep>>>,
    /// True once GOAWAY was buffered because a budget is exhausted.
    is_ended: bool,
    inspector: Inspector,
    /// Bytes that hyper has not read yet, and that differ from the received ones.
    waiting: Vec<u8>,
    /// Tags requests if services can send interim responses.
    pub(super) tagger: Option<Box<Tagger>>,
    /// The task of the connection, which sends interim responses.
    connection: Option<Waker>,
}

/// Splits a stream into one that buffers written bytes, and the part that sends them. The other arguments are those of the
/// connection.
pub(crate) fn gather<S>(
    stream: S,
    executor: Executor,
    content: HeldContent,
    refusing: Refusing,
    inspector: Inspector,
) -> (Gathered<S>, Gatherer<S>) {
    let state = Arc::new(Mutex::new(GatheredState {
        stream,
        kept: Vec::new(),
        sent: 0,
        failure: None,
        credit: Credit::new(),
        content,
        budgets: Budgets::new(refusing),
        block: None,
        pause: None,
        is_ended: false,
        inspector,
        waiting: Vec::new(),
        tagger: None,
        connection: None,
    }));
    let gatherer = Gatherer(state.clone());
    (Gathered { state, executor }, gatherer)
}

impl<S: AsyncWrite + Unpin> Gatherer<S> {
    /// Sends as many bytes as the stream accepts. The task of `cx` is woken when it accepts more or sending
    /// fails, so that the connection receives the error.
    pub(crate) fn poll_send(&self, cx: &mut Context<'_>) {
        let mut state = lock(&self.0);
        if state.tagger.is_some() {
            state.connection = Some(cx.waker().clone());
        }
        let sent = state.poll_send(cx);
        let is_blocked = sent.is_pending() || state.credit.is_connection_used_up();
        state.content.set_blocked(is_blocked);
        if let Poll::Ready(Err(error)) = sent {
            state.failure = Some(error);
            cx.waker().wake_by_ref();
        }
    }

    /// Sends the buffered bytes and closes the stream if the connection ended because a budget is exhausted.
    pub(crate) async fn close_if_exhausted(&self) {
        let close = |cx: &mut Context<'_>| {
            let mut state = lock(&self.0);
            if !state.is_ended {
                return Poll::Ready(Ok(()));
            }
            ready!(state.poll_send(cx))?;
            Pin::new(&mut state.stream).poll_shutdown(cx)
        };
        // Errors of clients need no report.
        let _ = poll_fn(close).await;
    }
}

impl<S> Gatherer<S> {
    /// Counts the memory of header blocks that span several frames.
    pub(crate) fn count_header_blocks(&self, block: HeaderBlock) {
        lock(&self.0).block = Some(block);
    }

    /// Returns true if a response waits for credit of the client, and the number of bytes written in DATA
    /// frames.
    pub(crate) fn credit(&self) -> (bool, u64) {
        let state = lock(&self.0);
        (state.credit.is_used_up(), state.credit.data_sent())
    }
}

impl<S: AsyncWrite + Unpin> GatheredState<S> {
    /// Returns `Ready` when the buffer is empty and the stream is flushed.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.kept.is_empty() {
            return Poll::Ready(Ok(()));
        }
        while self.sent < self.kept.len() {
            let left = &self.kept[self.sent..];
            match ready!(Pin::new(&mut self.stream).poll_write(cx, left))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.sent += written,
            }
        }
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        (self.kept, self.sent) = (Vec::new(), 0);
        Poll::Ready(Ok(()))
    }

    /// Returns `Ready` when the buffer can take more bytes.
    fn poll_capacity(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(error) = self.failure.take() {
            return Poll::Ready(Err(error));
        }
        if self.kept.len() >= MAX_GATHERED {
            ready!(self.poll_send(cx))?;
        }
        Poll::Ready(Ok(()))
    }

    fn keep(&mut self, bytes: &[u8]) -> usize {
        let room = MAX_GATHERED.saturating_sub(self.kept.len());
        let kept = &bytes[..bytes.len().min(room)];
        if self.kept.is_empty() && !kept.is_empty() {
            self.kept.reserve(INITIAL.max(kept.len()));
        }
        self.kept.extend_from_slice(kept);
        self.credit.on_sent(kept, &mut self.budgets);
        let len = kept.len();
        for stream in self.credit.take_answered_malformed() {
            self.kept.extend_from_slice(&RST_STREAM_HEADER);
            self.kept.extend_from_slice(&stream.to_be_bytes());
            self.kept.extend_from_slice(&PROTOCOL_ERROR);
        }
        len
    }
}

impl<S> GatheredState<S> {
    /// Returns where an interim response on this stream may be sent.
    pub(super) fn interim_placement(&self, stream: u32) -> Placement {
        match self.credit.may_precede_response(stream) {
            Placement::Now if self.kept.len() >= MAX_GATHERED => Placement::Blocked,
            placement => placement,
        }
    }

    /// Buffers the frame of an interim response, and returns the task that sends it.
    pub(super) fn keep_interim(&mut self, frame: &[u8]) -> Option<Waker> {
        self.kept.extend_from_slice(frame);
        self.connection.take()
    }

    /// Returns an error if a budget is exhausted, after buffering a GOAWAY with the reason.
    fn check_budgets(&mut self) -> io::Result<()> {
        if !self.budgets.is_exhausted() {
            return Ok(());
        }
        if !std::mem::replace(&mut self.is_ended, true)
            && let Some(newest) = self.credit.newest_between_frames()
        {
            self.kept.extend_from_slice(&GOAWAY_HEADER);
            self.kept.extend_from_slice(&newest.to_be_bytes());
            self.kept.extend_from_slice(&ENHANCE_YOUR_CALM);
        }
        Err(io::Error::other(
            "the client sent too many useless frames or cancelled requests",
        ))
    }
}

impl<S> GatheredState<S> {
    /// Moves waiting bytes to `buffer`. Returns false if there are none.
    fn pass_waiting(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        let len = self.waiting.len().min(buffer.remaining());
        buffer.put_slice(&self.waiting[..len]);
        self.waiting.drain(..len);
        if self.waiting.is_empty() {
            // Connections are idle most of the time, so the memory is released.
            self.waiting = Vec::new();
        }
        true
    }

    /// Returns how many of the received bytes hyper can read in place. If it must read others, returns `None` and adds them
    /// to the waiting ones.
    fn inspect(&mut self, received: &[u8]) -> Option<usize> {
        let mut changed = Vec::new();
        let passed = self.inspector.read(received, &mut changed);
        for stream in self.inspector.take_malformed() {
            self.credit.on_malformed(stream);
        }
        match (&mut self.tagger, passed) {
            (None, Passed::Received(len)) => return Some(len),
            (None, Passed::Output) => self.waiting = changed,
            (Some(tagger), Passed::Received(len)) => {
                tagger.push(&received[..len], &mut self.waiting);
            }
            (Some(tagger), Passed::Output) => tagger.push(&changed, &mut self.waiting),
        }
        None
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gathered<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = lock(&self.state);
        if let Some(error) = state.failure.take() {
            return Poll::Ready(Err(error));
        }
        if self.executor.needs_pause() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let state = &mut *state;
        state.check_budgets()?;
        if let Some(pause) = &mut state.pause {
            ready!(pause.as_mut().poll(cx));
            state.pause = None;
        }
        state.budgets.on_time();
        let before = buffer.filled().len();
        if state.pass_waiting(buffer) {
            return Poll::Ready(Ok(()));
        }
        if state.inspector.is_over() {
            let reason = "the client violated the rules of HTTP/2";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, reason)));
        }
        let result = Pin::new(&mut state.stream).poll_read(cx, buffer);
        let read = &buffer.filled()[before..];
        state.credit.on_received(read, &mut state.budgets);
        let counted = match &mut state.block {
            Some(block) => block.set_len(state.credit.incomplete_block()),
            None => Ok(()),
        };
        if let Err(error) = counted.and_then(|()| state.check_budgets()) {
            buffer.set_filled(before);
            return Poll::Ready(Err(error));
        }
        if let Some(pause) = state.budgets.take_pause() {
            state.pause = Some(Box::pin(tokio::time::sleep(pause)));
        }
        let received = &buffer.filled()[before..];
        if received.is_empty() {
            return result;
        }
        match state.inspect(received) {
            Some(len) => buffer.set_filled(before + len),
            None => {
                buffer.set_filled(before);
                state.pass_waiting(buffer);
            }
        }
        if buffer.filled().len() == before {
            // Only a part of a field block has arrived. An empty read would be the end.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gathered<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut state = lock(&self.state);
        ready!(state.poll_capacity(cx))?;
        Poll::Ready(Ok(state.keep(bytes)))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut state = lock(&self.state);
        ready!(state.poll_capacity(cx))?;
        let mut written = 0;
        for slice in slices {
            let kept = state.keep(slice);
            written += kept;
            if kept < slice.len() {
                break;
            }
        }
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Returns at once, because the [`Gatherer`] sends the buffered bytes.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match lock(&self.state).failure.take() {
            Some(error) => Poll::Ready(Err(error)),
            None => Poll::Ready(Ok(())),
        }
    }

    /// Sends the buffered bytes first.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = lock(&self.state);
        ready!(state.poll_send(cx))?;
        Pin::new(&mut state.stream).poll_shutdown(cx)
    }
}

fn lock<S>(state: &Mutex<GatheredState<S>>) -> MutexGuard<'_, GatheredState<S>> {
    // After a panic of the stream its state does not matter, because the connection ends.
    state.lock()
}

/// The header and last stream ID of a GOAWAY frame without debug data (RFC 9113 §6.8).
const GOAWAY_HEADER: [u8; 9] = [0, 0, 8, 7, 0, 0, 0, 0, 0];
const ENHANCE_YOUR_CALM: [u8; 4] = 11_u32.to_be_bytes();

/// The header of a RST_STREAM frame without its stream ID (RFC 9113 §6.4).
const RST_STREAM_HEADER: [u8; 5] = [0, 0, 4, 3, 0];
const PROTOCOL_ERROR: [u8; 4] = 1_u32.to_be_bytes();

/// Size of the buffer: four TLS records.
const MAX_GATHERED: usize = 64 * 1024;
/// Initial size of the buffer, for a few small responses.
const INITIAL: usize = 4 * 1024;

#[cfg(test)]
mod tests;
