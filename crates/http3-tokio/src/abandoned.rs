//! Content of requests whose service no longer reads it. It is read and discarded for a short time.
//!
//! A server may respond before it has read the request, and then stop its stream (RFC 9114 §4.1). Browsers and
//! tools that are stopped while they send lose the response or never end the request: Chromium waits forever in
//! about half of such uploads. So the stream is stopped only if the rest of the request does not arrive in time.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use courser_http3::Code;
use courser_quic::hooks::{self, RecvStreamHooks as _};
use courser_quic::{RecvStream, runtime};

use super::failure::var_int;
use super::shared::SharedConnection;

/// Reads and drops the rest of a request, and stops its stream if that takes too long. Where no
/// task can be spawned, stops it at once.
pub(super) fn read_rest(shared: &Arc<SharedConnection>, receive: RecvStream) {
    let mut rest = Rest {
        receive,
        left: MAX_BYTES,
        shared: shared.clone(),
    };
    // The rest of most requests has arrived already, and consists only of the end.
    let has_ended = rest.discard_arrived(&mut Context::from_waker(Waker::noop()));
    if has_ended.is_pending() && hooks::has_runtime() {
        shared.lingering.add(rest.stream());
        runtime::spawn(rest.linger());
    }
}

/// The rest of a request. Dropping it stops the stream, unless all of it has arrived.
#[derive(Debug)]
struct Rest {
    receive: RecvStream,
    /// Number of bytes that may still arrive.
    left: u64,
    shared: Arc<SharedConnection>,
}

impl Rest {
    fn stream(&self) -> u64 {
        self.receive.id().value()
    }

    async fn linger(mut self) {
        let latest = runtime::now() + LONGEST;
        let mut late = pin!(runtime::sleep(LONGEST_PAUSE));
        let mut left = self.left;
        poll_fn(|cx| {
            let stream = self.stream();
            if self.discard_arrived(cx).is_ready() || self.shared.lingering.has_ended(cx, stream) {
                return Poll::Ready(());
            }
            while late.as_mut().poll(cx).is_ready() {
                let now = runtime::now();
                let is_silent = std::mem::replace(&mut left, self.left) == self.left;
                if is_silent || now >= latest {
                    return Poll::Ready(());
                }
                late.set(runtime::sleep(pause(now, latest)));
            }
            Poll::Pending
        })
        .await;
    }

    /// Discards the bytes that have arrived. Returns `Ready` at the end of the stream, or if the limit is
    /// exceeded.
    fn discard_arrived(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..CHUNKS_AT_ONCE {
            match self.receive.poll_read_chunk_and_end(cx) {
                Poll::Ready(Ok(Some(chunk))) => {
                    self.left = self.left.saturating_sub(chunk.len() as u64);
                    if self.left == 0 || self.receive.has_ended() {
                        return Poll::Ready(());
                    }
                }
                Poll::Ready(Ok(None) | Err(_)) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        self.shared.lingering.remove(self.stream());
        // Fails if the end has arrived.
        let _ = self.receive.stop(var_int(Code::NO_ERROR));
    }
}

/// Returns the time until progress is checked next.
fn pause(now: Instant, latest: Instant) -> Duration {
    LONGEST_PAUSE.min(latest.saturating_duration_since(now))
}

/// Largest number of bytes of a request that are discarded (limit K311). A client that sends more is stopped.
const MAX_BYTES: u64 = 32 << 20;
/// Longest time without further bytes (limit K311).
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Longest time for the whole request (limit K311).
const LONGEST: Duration = Duration::from_secs(30);
/// Number of chunks that are discarded before other tasks may run.
const CHUNKS_AT_ONCE: u32 = 64;
