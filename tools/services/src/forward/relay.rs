//! Bytes of a CONNECT in both directions.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// The reason why a tunnel has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// Both ends have finished.
    Finished,
    /// The client has reset its stream, or its connection was lost.
    Client,
    /// The target has reset its connection.
    Target,
    /// No byte has passed for too long.
    Idle,
    /// The proxy ends.
    Cut,
}

impl End {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Client => "client",
            Self::Target => "target",
            Self::Idle => "idle",
            Self::Cut => "cut",
        }
    }
}

/// Both directions of a tunnel. An end of one is passed on, and the other goes on (half-close).
///
/// An idle tunnel has no buffers: bytes that one end does not take at once are the only ones that are kept.
pub(super) struct Relay<C, T> {
    client: C,
    target: T,
    to_target: Direction,
    to_client: Direction,
    longest_idle: Duration,
    last: Instant,
    idle: Pin<Box<Sleep>>,
}

impl<C, T> Relay<C, T>
where
    C: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    pub(super) fn new(client: C, target: T, longest_idle: Duration) -> Self {
        let last = Instant::now();
        Self {
            client,
            target,
            to_target: Direction::default(),
            to_client: Direction::default(),
            longest_idle,
            last,
            idle: Box::pin(sleep_until(last + longest_idle)),
        }
    }

    /// Runs until the end. `on_bytes` is called with the bytes to the target and to the client that have passed.
    pub(super) async fn run(&mut self, on_bytes: impl Fn(u64, u64)) -> End {
        poll_fn(|cx| self.poll(cx, &on_bytes)).await
    }

    /// Returns both sides.
    pub(super) fn into_sides(self) -> (C, T) {
        (self.client, self.target)
    }

    fn poll(&mut self, cx: &mut Context<'_>, on_bytes: &impl Fn(u64, u64)) -> Poll<End> {
        let (before, back) = (self.to_target.bytes, self.to_client.bytes);
        let (client, target) = (&mut self.client, &mut self.target);
        let forward = self.to_target.poll(cx, client, target);
        let backward = self.to_client.poll(cx, target, client);
        let passed = (self.to_target.bytes - before, self.to_client.bytes - back);
        if passed != (0, 0) {
            self.last = Instant::now();
            on_bytes(passed.0, passed.1);
        }
        match (forward, backward) {
            // A target that has reset also does not take bytes, so its side is looked at first.
            (_, Poll::Ready(Err(Failed::Source))) | (Poll::Ready(Err(Failed::Sink)), _) => {
                Poll::Ready(End::Target)
            }
            (Poll::Ready(Err(Failed::Source)), _) | (_, Poll::Ready(Err(Failed::Sink))) => {
                Poll::Ready(End::Client)
            }
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => Poll::Ready(End::Finished),
            _ => self.poll_idle(cx),
        }
    }

    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        while self.idle.as_mut().poll(cx).is_ready() {
            let due = self.last + self.longest_idle;
            if due <= Instant::now() {
                return Poll::Ready(End::Idle);
            }
            self.idle.as_mut().reset(due);
        }
        Poll::Pending
    }
}

/// The side of a direction that has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Failed {
    Source,
    Sink,
}

/// One direction.
#[derive(Debug, Default)]
struct Direction {
    state: State,
    /// Bytes that the sink has not taken yet, from `taken` on.
    kept: Vec<u8>,
    taken: usize,
    needs_flush: bool,
    bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Open,
    /// The source has ended, and the sink has to be shut down.
    Ending,
    Ended,
}

impl Direction {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut (impl AsyncRead + Unpin),
        sink: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<Result<(), Failed>> {
        for _ in 0..TURNS {
            ready!(self.poll_kept(cx, sink)).map_err(|_| Failed::Sink)?;
            match self.state {
                State::Open => {}
                State::Ending => {
                    ready!(Pin::new(&mut *sink).poll_shutdown(cx)).map_err(|_| Failed::Sink)?;
                    self.state = State::Ended;
                    return Poll::Ready(Ok(()));
                }
                State::Ended => return Poll::Ready(Ok(())),
            }
            let polled = BUFFER.with_borrow_mut(|buffer| self.poll_copy(cx, source, sink, buffer));
            match polled {
                Poll::Ready(result) => result?,
                Poll::Pending => {
                    if self.needs_flush {
                        ready!(Pin::new(&mut *sink).poll_flush(cx)).map_err(|_| Failed::Sink)?;
                        self.needs_flush = false;
                    }
                    return Poll::Pending;
                }
            }
        }
        // Other tasks have their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads once, and writes what the sink takes at once.
    fn poll_copy(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut (impl AsyncRead + Unpin),
        sink: &mut (impl AsyncWrite + Unpin),
        buffer: &mut [u8],
    ) -> Poll<Result<(), Failed>> {
        let mut read = ReadBuf::new(buffer);
        ready!(Pin::new(source).poll_read(cx, &mut read)).map_err(|_| Failed::Source)?;
        let mut filled = read.filled();
        if filled.is_empty() {
            self.state = State::Ending;
            return Poll::Ready(Ok(()));
        }
        self.bytes += filled.len() as u64;
        self.needs_flush = true;
        while !filled.is_empty() {
            match Pin::new(&mut *sink).poll_write(cx, filled) {
                Poll::Ready(Ok(0)) | Poll::Ready(Err(_)) => return Poll::Ready(Err(Failed::Sink)),
                Poll::Ready(Ok(written)) => filled = &filled[written..],
                Poll::Pending => {
                    self.kept.extend_from_slice(filled);
                    break;
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Writes the bytes that were kept.
    fn poll_kept(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<io::Result<()>> {
        while self.taken < self.kept.len() {
            let rest = &self.kept[self.taken..];
            match ready!(Pin::new(&mut *sink).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.taken += written,
            }
        }
        // The memory is free while nothing waits.
        (self.kept, self.taken) = (Vec::new(), 0);
        Poll::Ready(Ok(()))
    }
}

thread_local! {
    /// Shared by the tunnels of a thread.
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; SIZE].into_boxed_slice());
}

/// Bytes that are read at a time (limit K649), and the most that a direction keeps.
const SIZE: usize = 64 * 1024;

/// Reads of a direction before other tasks have their turn.
const TURNS: usize = 16;

#[cfg(test)]
mod tests;
