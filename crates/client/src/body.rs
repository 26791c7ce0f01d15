//! The body of a response over any version of HTTP.

use std::fmt;
use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use courser_http3_tokio as h3;
use courser_quic::Connection;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};
use tower_http::decompression::DecompressionBody;

use super::error::{Error, ErrorKind};
use super::expectation::Expectation;
use super::link::{Established, Link};
use super::pool::{Key, Pool};
use super::timing::Timing;

/// The body of a response: its content as it arrives, then its trailers.
///
/// An unread body applies back-pressure to the server. Dropping it before its end cancels the request, which
/// closes an HTTP/1.1 connection and leaves connections of other versions open.
///
/// # Cancel safety
/// Safe: a frame that was not returned is returned by the next poll.
pub struct Body(Kind);

enum Kind {
    Plain(Box<Plain>),
    Decoded(Pin<Box<DecompressionBody<Body>>>),
}

struct Plain {
    source: Source,
    timing: Timing,
    limits: Limits,
    has_ended: bool,
    /// The expectation of the request if the server has refused it.
    refused: Option<Expectation>,
}

enum Source {
    Empty,
    Http3(h3::Body, Connection),
    Http2(Incoming),
    Http1(Incoming, Option<Home>),
}

/// The pool to which an HTTP/1.1 connection returns after its response.
pub(super) struct Home {
    pub(super) pool: Weak<Pool>,
    pub(super) key: Key,
    pub(super) established: Established,
}

#[derive(Default)]
struct Limits {
    idle: Option<(Duration, Pin<Box<Sleep>>)>,
    total: Option<(Duration, Pin<Box<Sleep>>)>,
}

impl Body {
    fn new(source: Source, timing: Timing) -> Self {
        let mut plain = Plain {
            source,
            timing,
            limits: Limits::default(),
            has_ended: false,
            refused: None,
        };
        if plain.source.is_end_stream() {
            plain.finish();
        }
        Self(Kind::Plain(Box::new(plain)))
    }

    pub(super) fn http3(body: h3::Body, quic: Connection, timing: Timing) -> Self {
        Self::new(Source::Http3(body, quic), timing)
    }

    /// Creates the body of a response without content.
    pub(super) fn nothing(timing: Timing) -> Self {
        Self::new(Source::Empty, timing)
    }

    pub(super) fn http2(body: Incoming, timing: Timing) -> Self {
        Self::new(Source::Http2(body), timing)
    }

    pub(super) fn http1(body: Incoming, home: Home, timing: Timing) -> Self {
        Self::new(Source::Http1(body, Some(home)), timing)
    }

    /// Keeps the expectation that the response refuses, because withdrawing it may end the connection.
    pub(super) fn until_its_end(mut self, refused: Option<Expectation>) -> Self {
        if let Kind::Plain(plain) = &mut self.0 {
            plain.refused = refused.filter(|_| !plain.has_ended);
        }
        self
    }

    pub(super) fn decoded(body: DecompressionBody<Self>) -> Self {
        Self(Kind::Decoded(Box::pin(body)))
    }

    /// Limits the time between two frames, and the total time since the start of the request.
    pub(super) fn set_limits(
        &mut self,
        idle: Option<Duration>,
        total: Option<(Duration, Instant)>,
    ) {
        if let Kind::Plain(plain) = &mut self.0
            && !plain.has_ended
        {
            plain.limits.idle = idle.map(|limit| (limit, Box::pin(tokio::time::sleep(limit))));
            plain.limits.total = total
                .map(|(limit, deadline)| (limit, Box::pin(tokio::time::sleep_until(deadline))));
        }
    }

    /// Returns the timing so far. After the end of the body it includes the total time.
    pub fn timing(&self) -> Timing {
        match &self.0 {
            Kind::Plain(plain) => plain.timing(),
            Kind::Decoded(body) => body.get_ref().timing(),
        }
    }
}

impl Plain {
    fn timing(&self) -> Timing {
        let mut timing = self.timing.clone();
        if let Source::Http3(_, quic) = &self.source {
            timing.quic = Some(quic.stats());
        }
        timing
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let frame = match &mut self.source {
            Source::Empty => Poll::Ready(None),
            Source::Http3(body, _) => Pin::new(body).poll_frame(cx).map_err(Error::of_h3_body),
            Source::Http2(body) => Pin::new(body)
                .poll_frame(cx)
                .map_err(|error| Error::of_hyper_body(error, true)),
            Source::Http1(body, _) => Pin::new(body)
                .poll_frame(cx)
                .map_err(|error| Error::of_hyper_body(error, false)),
        };
        match frame {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some((limit, sleep)) = &mut self.limits.idle {
                    sleep.as_mut().reset(Instant::now() + *limit);
                }
                if self.source.is_end_stream() {
                    self.finish();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                self.source = Source::Empty;
                self.has_ended = true;
                let timing = self.timing();
                Poll::Ready(Some(Err(error.with_timing(timing))))
            }
            Poll::Ready(None) => {
                self.finish();
                Poll::Ready(None)
            }
            Poll::Pending => match self.limits.poll(cx) {
                Poll::Ready(error) => {
                    let timing = self.timing();
                    self.source = Source::Empty;
                    self.has_ended = true;
                    Poll::Ready(Some(Err(error.with_timing(timing))))
                }
                Poll::Pending => Poll::Pending,
            },
        }
    }

    /// Ends the body, so that its connection can carry other requests.
    fn finish(&mut self) {
        self.has_ended = true;
        self.refused = None;
        self.limits = Limits::default();
        self.timing.total = Some(self.timing.elapsed());
        if let Source::Http3(_, quic) = &self.source {
            self.timing.quic = Some(quic.stats());
        }
        if let Source::Http1(_, Some(home)) = std::mem::replace(&mut self.source, Source::Empty) {
            home.return_to_pool();
        }
    }
}

impl Source {
    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Http3(body, _) => body.is_end_stream(),
            Self::Http2(body) | Self::Http1(body, _) => body.is_end_stream(),
        }
    }
}

impl Home {
    /// Returns the connection to the pool once it has read the end of the response.
    fn return_to_pool(mut self) {
        let Some(pool) = self.pool.upgrade() else {
            return;
        };
        if self.established.link.is_usable() {
            pool.put_back(&self.key, self.established);
            return;
        }
        tokio::spawn(async move {
            if let Link::Http1(send) = &mut self.established.link
                && send.ready().await.is_ok()
            {
                pool.put_back(&self.key, self.established);
            }
        });
    }
}

impl Limits {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        if let Some((limit, sleep)) = &mut self.total
            && sleep.as_mut().poll(cx).is_ready()
        {
            let text = format!("the response was not complete within {limit:?}");
            return Poll::Ready(Error::new(ErrorKind::Timeout, text));
        }
        if let Some((limit, sleep)) = &mut self.idle
            && sleep.as_mut().poll(cx).is_ready()
        {
            let text = format!("received no data of the response for {limit:?}");
            return Poll::Ready(Error::new(ErrorKind::Timeout, text));
        }
        Poll::Pending
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match &mut self.0 {
            Kind::Plain(plain) => plain.poll(cx),
            Kind::Decoded(body) => {
                body.as_mut()
                    .poll_frame(cx)
                    .map_err(|error| match error.downcast::<Error>() {
                        Ok(error) => *error,
                        Err(error) => {
                            let text = format!("the response cannot be decompressed: {error}");
                            Error::new(ErrorKind::Decode, text)
                        }
                    })
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Plain(plain) => plain.has_ended,
            Kind::Decoded(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Plain(plain) => match &plain.source {
                Source::Empty => SizeHint::with_exact(0),
                Source::Http3(body, _) => body.size_hint(),
                Source::Http2(body) | Source::Http1(body, _) => body.size_hint(),
            },
            Kind::Decoded(body) => body.size_hint(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("is_end_stream", &self.is_end_stream())
            .finish_non_exhaustive()
    }
}
