//! Time limits for the upstream server, which do not run while it waits for the client.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use courser::server::Cause;
use courser_base::Mutex;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::failure::find;
use super::report::Reporter;
use crate::body::{Body, BoxError, boxed};

/// Measures the time for which the upstream server was expected to act, from the request to its response.
#[derive(Debug)]
pub(super) struct ServerTimer {
    began: Instant,
    /// The time since which the server is expected to act, or `None` while the server waits for the client.
    /// Absent for a request without content, for which the server is expected to act from the start.
    since: Option<Since>,
}

type Since = Arc<Mutex<Option<Instant>>>;

impl ServerTimer {
    /// Starts the timer of the server, because the request may have no content.
    pub(super) fn start() -> Self {
        Self {
            began: Instant::now(),
            since: None,
        }
    }

    /// Returns the time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Wraps the body of the request, so that the timer runs after content was sent and stops while no content
    /// is available.
    pub(super) fn watch(&mut self, body: Body) -> Body {
        // Without content the timer always runs.
        if http_body::Body::is_end_stream(&body) {
            return body;
        }
        let since = Arc::new(Mutex::new(Some(self.began)));
        self.since = Some(since.clone());
        boxed(TimedBody { body, since })
    }

    /// Waits for `response`. Returns `None` if the server is expected to act for longer than `limit`.
    pub(super) async fn within<T>(
        &self,
        limit: Duration,
        mut response: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        loop {
            // While the timer is stopped, the deadline cannot be earlier than this.
            let began = self.since().unwrap_or_else(Instant::now);
            tokio::select! {
                biased;
                response = &mut response => return Some(response),
                () = sleep_until(began + limit) => {}
            }
            if self.since().is_some_and(|since| since.elapsed() >= limit) {
                return None;
            }
        }
    }

    fn since(&self) -> Option<Instant> {
        match &self.since {
            Some(since) => *since.lock(),
            None => Some(self.began),
        }
    }
}

/// The body of a request, which starts and stops the timer.
struct TimedBody {
    body: Body,
    since: Since,
}

impl http_body::Body for TimedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        let is_server = polled.is_ready();
        *self.since.lock() = is_server.then(Instant::now);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a response, which fails after a pause of the server longer than `longest`. Pauses of the client
/// do not count, because the body is not polled during them.
pub(super) struct IdleTimeout<B> {
    body: B,
    longest: Duration,
    ends: Option<Pin<Box<Sleep>>>,
    reporter: Option<Arc<Reporter>>,
}

/// The reason why the content of a response ends early.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub(crate) struct ContentFailure {
    cause: Cause,
    #[source]
    error: BoxError,
}

impl ContentFailure {
    /// Returns the cause in a chain of errors.
    pub(crate) fn cause_of(error: &(dyn std::error::Error + 'static)) -> Option<Cause> {
        find::<Self>(error).map(|failure| failure.cause)
    }
}

impl<B> IdleTimeout<B> {
    pub(super) const fn new(body: B, longest: Duration, reporter: Option<Arc<Reporter>>) -> Self {
        Self {
            body,
            longest,
            ends: None,
            reporter,
        }
    }

    fn failure(&self, cause: Cause, error: BoxError) -> BoxError {
        if let Some(reporter) = &self.reporter {
            reporter.on_failure(cause, Some(&*error), None);
        }
        ContentFailure { cause, error }.into()
    }
}

impl<B> http_body::Body for IdleTimeout<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            this.ends = None;
            return Poll::Ready(frame.map(|frame| {
                frame.map_err(|error| this.failure(Cause::UpstreamContentCut, error.into()))
            }));
        }
        let longest = this.longest;
        let ends = this.ends.get_or_insert_with(|| Box::pin(sleep(longest)));
        if ends.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        let text = format!("the upstream server sent nothing for {longest:?}");
        let error = io::Error::new(io::ErrorKind::TimedOut, text);
        let error = this.failure(Cause::UpstreamContentTimeout, error.into());
        Poll::Ready(Some(Err(error)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::pin;

    use futures_util::StreamExt as _;
    use http_body_util::{BodyExt as _, StreamBody};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    /// Returns content in frames with these pauses in seconds before them.
    fn slow(
        pauses: &'static [u64],
    ) -> impl http_body::Body<Data = Bytes, Error = Infallible> + Unpin {
        let frames = futures_util::stream::iter(pauses).then(|pause| async move {
            tokio::time::sleep(Duration::from_secs(*pause)).await;
            Ok(Frame::data(Bytes::from_static(b"x")))
        });
        StreamBody::new(Box::pin(frames))
    }

    /// Reads a request body with a pause after each frame, and responds after another pause.
    async fn exchange(pauses: &'static [u64], between: u64, last: u64) -> Option<()> {
        let mut timer = ServerTimer::start();
        let mut body = timer.watch(boxed(slow(pauses)));
        let answer = async {
            while let Some(frame) = body.frame().await {
                assert!(frame.is_ok());
                tokio::time::sleep(Duration::from_secs(between)).await;
            }
            tokio::time::sleep(Duration::from_secs(last)).await;
        };
        timer.within(LIMIT, pin!(answer)).await
    }

    #[tokio::test(start_paused = true)]
    async fn limit_begins_at_the_end_of_the_request() {
        assert_eq!(exchange(&[100, 500, 3], 0, 59).await, Some(()));
        assert_eq!(exchange(&[1, 1, 1], 50, 59).await, Some(()));
        assert_eq!(exchange(&[100, 500, 3], 0, 61).await, None);
        assert_eq!(exchange(&[100, 500, 3], 61, 0).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn limit_applies_to_pauses_of_the_server() {
        let began = Instant::now();
        assert_eq!(exchange(&[100], 0, 1000).await, None);
        assert_eq!(began.elapsed().as_secs(), 160);
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_in_a_response_are_limited() {
        let body = IdleTimeout::new(slow(&[59, 59]), LIMIT, None);
        assert_eq!(body.collect().await.expect("in time").to_bytes(), "xx");
        let error = IdleTimeout::new(slow(&[59, 61]), LIMIT, None)
            .collect()
            .await;
        let error = error.expect_err("too late");
        let cause = ContentFailure::cause_of(&*error);
        assert_eq!(cause, Some(Cause::UpstreamContentTimeout));
        let error = error.to_string();
        assert!(error.contains("sent nothing for 60s"), "{error}");
        // The client pauses between the frames.
        let mut body = IdleTimeout::new(slow(&[59, 59]), LIMIT, None);
        for _ in 0..2 {
            assert!(body.frame().await.is_some_and(|frame| frame.is_ok()));
            tokio::time::sleep(LIMIT * 10).await;
        }
    }
}
