//! Content of requests that no service reads any more. It is read and dropped for a moment.
//!
//! A server may answer before it has read the request, and then stop its stream (RFC 9114 §4.1). Browsers
//! and tools that are stopped while they send lose the response, or never end the request: Chromium
//! waits without end in about half of such uploads. So the stream is stopped only if the rest of the request
//! does not arrive in time.

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
        left: MOST_BYTES,
        shared: shared.clone(),
    };
    // The rest of most requests has arrived: it is an end without content.
    let is_over = rest.drop_arrived(&mut Context::from_waker(Waker::noop()));
    if is_over.is_pending() && hooks::has_runtime() {
        shared.lingering.add(rest.stream());
        runtime::spawn(rest.linger());
    }
}

/// The rest of a request. Dropping it stops the stream, unless all has arrived.
#[derive(Debug)]
struct Rest {
    receive: RecvStream,
    /// The bytes that may still arrive.
    left: u64,
    shared: Arc<SharedConnection>,
}

impl Rest {
    fn stream(&self) -> u64 {
        self.receive.id().value()
    }

    async fn linger(mut self) {
        let latest = runtime::now() + LONGEST;
        let mut late = pin!(runtime::sleep(PATIENCE));
        let mut left = self.left;
        poll_fn(|cx| {
            let stream = self.stream();
            if self.drop_arrived(cx).is_ready() || self.shared.lingering.is_over(cx, stream) {
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

    /// Drops the bytes that have arrived. Returns `Ready` at the end of the stream, or if more has come
    /// than is read.
    fn drop_arrived(&mut self, cx: &mut Context<'_>) -> Poll<()> {
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
        // An error if the end has arrived.
        let _ = self.receive.stop(var_int(Code::NO_ERROR));
    }
}

/// Returns the time until the next look at the progress.
fn pause(now: Instant, latest: Instant) -> Duration {
    PATIENCE.min(latest.saturating_duration_since(now))
}

/// The bytes of a request that are dropped (limit K311). A client that sends more is stopped.
const MOST_BYTES: u64 = 32 << 20;
/// The time within which more must arrive (limit K311).
const PATIENCE: Duration = Duration::from_secs(5);
/// The time within which the whole request must arrive (limit K311).
const LONGEST: Duration = Duration::from_secs(30);
/// The chunks that are dropped before other tasks may run.
const CHUNKS_AT_ONCE: u32 = 64;
