//! Content of requests over TCP whose service no longer reads it. It is read and discarded for a short time, as over
//! HTTP/3.
//!
//! A server may respond before it has read the request, and then reset the stream or close the connection (RFC 9113
//! §8.1, RFC 9112 §9.6). Many clients lose the response if that happens while they send. So the rest is refused only
//! if it does not arrive in time.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use http::HeaderMap;
use http::header::EXPECT;
use http_body::Body as _;
use hyper::body::{Frame, Incoming};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};

/// The content of a request over HTTP/2 or HTTP/1.1. Dropping it before its end discards the rest for a short time.
#[derive(Debug)]
pub(super) struct TcpContent {
    /// `None` only while it is dropped.
    incoming: Option<Incoming>,
    /// True if the rest is discarded.
    lingers: bool,
}

impl TcpContent {
    pub(super) const fn new(incoming: Incoming) -> Self {
        Self {
            incoming: Some(incoming),
            lingers: true,
        }
    }

    pub(super) const fn get(&self) -> Option<&Incoming> {
        self.incoming.as_ref()
    }

    /// Does not read the rest of a request whose client waits for 100 (Continue), because that would ask for it.
    pub(super) fn on_fields(&mut self, headers: &HeaderMap) {
        self.lingers &= !headers.contains_key(EXPECT);
    }

    /// Does not read the rest of a request that arrives too slowly.
    pub(super) const fn on_too_slow(&mut self) {
        self.lingers = false;
    }

    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<bytes::Bytes>>>> {
        let Some(incoming) = &mut self.incoming else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(incoming).poll_frame(cx);
        if let Poll::Ready(None | Some(Err(_))) = polled {
            self.lingers = false;
        }
        polled
    }
}

impl Drop for TcpContent {
    fn drop(&mut self) {
        let Some(incoming) = self.incoming.take().filter(|_| self.lingers) else {
            return;
        };
        // The length is compared first, because HTTP/2 takes a lock to find out whether the stream has ended.
        if incoming.size_hint().exact() == Some(0) || incoming.is_end_stream() {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(discard(incoming));
        }
    }
}

/// Reads and drops content until its end, an error or a limit.
async fn discard(mut incoming: Incoming) {
    let began = Instant::now();
    let (mut left, mut last) = (MAX_BYTES, began);
    let mut late = pin!(sleep_until(began + LONGEST_PAUSE));
    poll_fn(|cx| {
        loop {
            match Pin::new(&mut incoming).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    let bytes = frame.data_ref().map_or(0, bytes::Bytes::len);
                    left = left.saturating_sub(bytes as u64);
                    last = Instant::now();
                    if left == 0 {
                        return Poll::Ready(());
                    }
                }
                Poll::Ready(None | Some(Err(_))) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        let due = (last + LONGEST_PAUSE).min(began + LONGEST);
        if late.deadline() != due {
            late.as_mut().reset(due);
        }
        late.as_mut().poll(cx)
    })
    .await;
}

/// Largest number of bytes of a request that are discarded, as over HTTP/3 (limit K311).
const MAX_BYTES: u64 = 32 << 20;
/// Longest time without further bytes (limit K311).
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Longest time for the whole request (limit K311).
const LONGEST: Duration = Duration::from_secs(30);
