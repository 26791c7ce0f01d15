//! Request bodies.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use courser_http3_tokio as h3;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use super::unread::TcpContent;
use crate::limits::pace::{Pace, RequiredPace, TooSlow};

/// The body of a request over any version of HTTP: its content as it arrives, then its trailers.
///
/// An unread body receives at most the flow control windows of the protocol. If it is dropped before its end, the rest
/// is discarded for a short time, and then the client is asked to stop sending, or the connection is closed.
///
/// # Cancel safety
/// Safe: a frame that was not returned is returned by the next poll.
#[derive(Debug, Default)]
pub struct Body {
    inner: Inner,
    /// The pace at which it must arrive.
    pace: Option<RequiredPace>,
    /// The monitor of the pace; `None` before the first wait.
    watch: Option<Box<Watch>>,
}

#[derive(Debug)]
struct Watch {
    pace: Pace,
    alarm: Pin<Box<Sleep>>,
}

#[derive(Debug, Default)]
enum Inner {
    #[default]
    Empty,
    Http3(h3::Body),
    Tcp(TcpContent),
}

impl Body {
    /// Creates an empty body, for requests that are created locally.
    pub const fn empty() -> Self {
        Self::of(Inner::Empty)
    }

    const fn of(inner: Inner) -> Self {
        Self {
            inner,
            pace: None,
            watch: None,
        }
    }

    /// Adapts the body to the fields of its request.
    pub(crate) fn of_request(mut self, headers: &HeaderMap) -> Self {
        if let Inner::Tcp(body) = &mut self.inner {
            body.on_fields(headers);
        }
        self
    }

    /// Sets the pace at which the body must arrive.
    pub(crate) fn with_pace(self, pace: Option<RequiredPace>) -> Self {
        Self { pace, ..self }
    }

    /// Returns an error once the body has been too slow.
    fn poll_too_slow(&mut self, cx: &mut Context<'_>) -> Poll<TooSlow> {
        let Some(required) = self.pace else {
            return Poll::Pending;
        };
        let now = Instant::now();
        let watch = self.watch.get_or_insert_with(|| {
            let mut pace = Pace::new(required);
            let alarm = Box::pin(tokio::time::sleep_until(pace.on_waiting(now)));
            Box::new(Watch { pace, alarm })
        });
        let due = watch.pace.on_waiting(now);
        if watch.alarm.deadline() != due {
            watch.alarm.as_mut().reset(due);
        }
        watch.alarm.as_mut().poll(cx).map(|()| {
            let slow = watch.pace.too_slow(Instant::now());
            // Further content is not needed. Dropping the inner body tells the client to stop sending.
            if let Inner::Tcp(body) = &mut self.inner {
                body.on_too_slow();
            }
            self.inner = Inner::Empty;
            slow
        })
    }
}

/// The reason why a request body could not be received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// HTTP/3 reported an error.
    #[error(transparent)]
    Http3(#[from] h3::Error),
    /// HTTP/2 or HTTP/1.1 reported an error.
    #[error(transparent)]
    Tcp(#[from] hyper::Error),
    /// It arrived more slowly than [`Limits::body_rate`](crate::Limits::body_rate) requires.
    #[error(transparent)]
    TooSlow(#[from] TooSlow),
}

impl BodyError {
    /// Returns the reason why the QUIC connection is over, if that is the cause. `None` over TCP.
    pub fn connection_error(&self) -> Option<&courser_quic::ConnectionError> {
        match self {
            Self::Http3(error) => error.connection_error(),
            Self::Tcp(_) | Self::TooSlow(_) => None,
        }
    }

    /// Returns true if the connection was lost because of a timeout, or the body arrived too slowly.
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Http3(error) => error.is_timeout(),
            Self::Tcp(error) => error.is_timeout(),
            Self::TooSlow(_) => true,
        }
    }
}

impl From<h3::Body> for Body {
    fn from(body: h3::Body) -> Self {
        Self::of(Inner::Http3(body))
    }
}

impl From<hyper::body::Incoming> for Body {
    fn from(body: hyper::body::Incoming) -> Self {
        Self::of(Inner::Tcp(TcpContent::new(body)))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let polled: Poll<Option<Result<Frame<Bytes>, BodyError>>> = match &mut this.inner {
            Inner::Empty => Poll::Ready(None),
            Inner::Http3(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Inner::Tcp(body) => body.poll_frame(cx).map_err(Into::into),
        };
        let Poll::Ready(frame) = polled else {
            return this.poll_too_slow(cx).map(|slow| Some(Err(slow.into())));
        };
        if let (Some(watch), Some(Ok(frame))) = (&mut this.watch, &frame) {
            let content = frame.data_ref().map_or(0, Bytes::len);
            watch.pace.on_received(Instant::now(), content as u64);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Empty => true,
            Inner::Http3(body) => body.is_end_stream(),
            Inner::Tcp(body) => body.get().is_none_or(|body| body.is_end_stream()),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Empty => SizeHint::with_exact(0),
            Inner::Http3(body) => body.size_hint(),
            Inner::Tcp(body) => {
                let body = body.get();
                body.map_or(SizeHint::with_exact(0), |body| body.size_hint())
            }
        }
    }
}
