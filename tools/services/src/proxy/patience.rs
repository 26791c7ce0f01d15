//! Time limits for the upstream server, which do not run while it waits for the client.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use courser_base::Mutex;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::body::{Body, BoxError, boxed};

/// The end that is expected to act while a request is sent and its response is awaited.
#[derive(Debug)]
pub(super) struct Turn {
    began: Instant,
    /// The time since when the server is expected to act; `None` while the client is. Absent for a request
    /// without content, during which the server has its turn from the start.
    since: Option<Since>,
}

type Since = Arc<Mutex<Option<Instant>>>;

impl Turn {
    /// Begins with the turn of the server, since there may be no content to send.
    pub(super) fn begin() -> Self {
        Self {
            began: Instant::now(),
            since: None,
        }
    }

    /// Returns the body of the request, which records when the server takes content, and when there is
    /// none to take yet.
    pub(super) fn watch(&mut self, body: Body) -> Body {
        // Without content there is nothing to record.
        if http_body::Body::is_end_stream(&body) {
            return body;
        }
        let since = Arc::new(Mutex::new(Some(self.began)));
        self.since = Some(since.clone());
        boxed(Watched { body, since })
    }

    /// Waits for `response`; returns `None` if the server does nothing for longer than `limit`.
    pub(super) async fn within<T>(
        &self,
        limit: Duration,
        mut response: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        loop {
            // While it is the client's turn, no earlier deadline than this can come up.
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

/// The body of a request.
struct Watched {
    body: Body,
    since: Since,
}

impl http_body::Body for Watched {
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

/// The body of a response, which fails after a pause of the server that is too long. Pauses of the client
/// do not count, since the body is not polled then.
pub(super) struct Silence<B> {
    body: B,
    longest: Duration,
    ends: Option<Pin<Box<Sleep>>>,
}

impl<B> Silence<B> {
    pub(super) const fn new(body: B, longest: Duration) -> Self {
        Self {
            body,
            longest,
            ends: None,
        }
    }
}

impl<B> http_body::Body for Silence<B>
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
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let longest = this.longest;
        let ends = this.ends.get_or_insert_with(|| Box::pin(sleep(longest)));
        if ends.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        let text = format!("the upstream server sent nothing for {longest:?}");
        let error = io::Error::new(io::ErrorKind::TimedOut, text);
        Poll::Ready(Some(Err(error.into())))
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

    /// Returns content in frames with `pauses` between them.
    fn slow(
        pauses: &'static [u64],
    ) -> impl http_body::Body<Data = Bytes, Error = Infallible> + Unpin {
        let frames = futures_util::stream::iter(pauses).then(|pause| async move {
            tokio::time::sleep(Duration::from_secs(*pause)).await;
            Ok(Frame::data(Bytes::from_static(b"x")))
        });
        StreamBody::new(Box::pin(frames))
    }

    /// Takes a request's body with a pause after each frame, and answers after another.
    async fn exchange(pauses: &'static [u64], between: u64, last: u64) -> Option<()> {
        let mut turn = Turn::begin();
        let mut body = turn.watch(boxed(slow(pauses)));
        let answer = async {
            while let Some(frame) = body.frame().await {
                assert!(frame.is_ok());
                tokio::time::sleep(Duration::from_secs(between)).await;
            }
            tokio::time::sleep(Duration::from_secs(last)).await;
        };
        turn.within(LIMIT, pin!(answer)).await
    }

    #[tokio::test(start_paused = true)]
    async fn limit_begins_at_the_end_of_the_request() {
        assert_eq!(exchange(&[100, 500, 3], 0, 59).await, Some(()));
        assert_eq!(exchange(&[1, 1, 1], 50, 59).await, Some(()));
        assert_eq!(exchange(&[100, 500, 3], 0, 61).await, None);
        assert_eq!(exchange(&[100, 500, 3], 61, 0).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_of_the_server_are_noticed_when_they_end() {
        let began = Instant::now();
        assert_eq!(exchange(&[100], 0, 1000).await, None);
        assert_eq!(began.elapsed().as_secs(), 160);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_in_a_response_ends_it() {
        let body = Silence::new(slow(&[59, 59]), LIMIT);
        assert_eq!(body.collect().await.expect("in time").to_bytes(), "xx");
        let error = Silence::new(slow(&[59, 61]), LIMIT).collect().await;
        let error = error.expect_err("too late").to_string();
        assert!(error.contains("sent nothing for 60s"), "{error}");
        // The client reads no sooner.
        let mut body = Silence::new(slow(&[59, 59]), LIMIT);
        for _ in 0..2 {
            assert!(body.frame().await.is_some_and(|frame| frame.is_ok()));
            tokio::time::sleep(LIMIT * 10).await;
        }
    }
}
