//! The body of a response over any version of HTTP.

mod own;

use std::fmt;
use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use courser_base::Mutex;
use courser_http3_tokio as h3;
use courser_quic::Connection;
use futures_core::Stream;
use http::Uri;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};
use tower_http::decompression::DecompressionBody;

use self::own::{FileBody, Streamed};
use super::error::{BoxError, Error, ErrorKind};
use super::expectation::Expectation;
use super::link::{Established, Link};
use super::pool::{Key, Pool};
use super::request_body;
use super::timing::Timing;

/// The content of a message, then its trailers.
///
/// As the body of a response it returns data as it arrives. As the body of a request it is created
/// [from text or bytes](Body::from), [from a stream](Body::from_stream) or [from another body](Body::wrap).
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
    /// Content of the program that is in memory; `None` after its end.
    Full(Option<Bytes>),
    /// Other content of the program. The lock is never waited for; it makes the body `Sync`.
    Own(Box<Mutex<UnsyncBoxBody<Bytes, BoxError>>>),
}

struct Plain {
    source: Source,
    timing: Timing,
    limits: Limits,
    has_ended: bool,
    /// The URL of the response, for errors.
    url: Uri,
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
    /// Creates a body without content.
    pub const fn empty() -> Self {
        Self(Kind::Full(None))
    }

    /// Creates a body from another one of any type.
    ///
    /// ```
    /// # mod courser { pub use courser_client::{self as client, Client}; }
    /// use courser::client::Body;
    /// use http_body_util::Full;
    ///
    /// let body = Body::wrap(Full::new(bytes::Bytes::from("content")));
    /// # drop(body);
    /// ```
    pub fn wrap<B>(body: B) -> Self
    where
        B: http_body::Body + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if body.is_end_stream() {
            return Self::empty();
        }
        Self(Kind::Own(Box::new(Mutex::new(request_body::boxed(body)))))
    }

    /// Creates a body from a stream of pieces. Its length is unknown, so it is sent in chunks over HTTP/1.1.
    ///
    /// ```
    /// # mod courser { pub use courser_client::{self as client, Client}; }
    /// use courser::client::Body;
    /// use futures_util::stream;
    ///
    /// let pieces = ["one", "two"].map(Ok::<_, std::io::Error>);
    /// let body = Body::from_stream(stream::iter(pieces));
    /// # drop(body);
    /// ```
    pub fn from_stream<S, T, E>(stream: S) -> Self
    where
        S: Stream<Item = Result<T, E>> + Send + 'static,
        T: Into<Bytes>,
        E: Into<BoxError>,
    {
        Self::wrap(Streamed(Box::pin(stream)))
    }

    /// Returns a body with the same content, or `None` if the content is not in memory.
    pub fn try_clone(&self) -> Option<Self> {
        match &self.0 {
            Kind::Full(data) => Some(Self(Kind::Full(data.clone()))),
            _ => None,
        }
    }

    /// Returns the content if it is in memory.
    pub(super) fn into_memory(self) -> Result<Option<Bytes>, Self> {
        match self.0 {
            Kind::Full(data) => Ok(data),
            kind => Err(Self(kind)),
        }
    }

    fn new(source: Source, timing: Timing) -> Self {
        let mut plain = Plain {
            source,
            timing,
            limits: Limits::default(),
            has_ended: false,
            url: Uri::default(),
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

    /// Sets the URL of the response, which errors name.
    pub(super) fn set_url(&mut self, url: &Uri) {
        if let Kind::Plain(plain) = &mut self.0
            && !plain.has_ended
        {
            plain.url = url.clone();
        }
    }

    /// Returns the URL of the response, unless the body is one of the program.
    pub(super) fn url(&self) -> Option<&Uri> {
        match &self.0 {
            Kind::Plain(plain) => Some(&plain.url),
            Kind::Decoded(body) => body.get_ref().url(),
            Kind::Full(_) | Kind::Own(_) => None,
        }
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

    /// Returns the timing so far. After the end of the body it includes the total time. The timing of a body that was
    /// not received is empty.
    pub fn timing(&self) -> Timing {
        match &self.0 {
            Kind::Plain(plain) => plain.timing(),
            Kind::Decoded(body) => body.get_ref().timing(),
            Kind::Full(_) | Kind::Own(_) => Timing::new(),
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl From<Bytes> for Body {
    fn from(data: Bytes) -> Self {
        Self(Kind::Full((!data.is_empty()).then_some(data)))
    }
}

impl From<Vec<u8>> for Body {
    fn from(data: Vec<u8>) -> Self {
        Bytes::from(data).into()
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

impl From<&'static [u8]> for Body {
    fn from(data: &'static [u8]) -> Self {
        Bytes::from_static(data).into()
    }
}

impl From<h3::Empty> for Body {
    fn from(_: h3::Empty) -> Self {
        Self::empty()
    }
}

/// The content of a file from its present position on, read as it is sent.
impl From<tokio::fs::File> for Body {
    fn from(file: tokio::fs::File) -> Self {
        Self::wrap(FileBody::new(file))
    }
}

impl Plain {
    fn timing(&self) -> Timing {
        let mut timing = self.timing.clone();
        if let Source::Http3(_, quic) = &self.source {
            timing.set_quic(quic);
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
                Poll::Ready(Some(Err(error.with_timing(timing).of_response(&self.url))))
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
                    Poll::Ready(Some(Err(error.with_timing(timing).of_response(&self.url))))
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
            self.timing.set_quic(quic);
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
            Kind::Full(data) => Poll::Ready(data.take().map(|data| Ok(Frame::data(data)))),
            Kind::Own(body) => Pin::new(&mut *body.lock())
                .poll_frame(cx)
                .map_err(of_program),
            Kind::Decoded(body) => {
                let frame = body.as_mut().poll_frame(cx);
                frame.map_err(|error| of_decoder(error, body.get_ref().url()))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Plain(plain) => plain.has_ended,
            Kind::Decoded(body) => body.is_end_stream(),
            Kind::Full(data) => data.is_none(),
            Kind::Own(body) => body.lock().is_end_stream(),
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
            Kind::Full(data) => SizeHint::with_exact(data.as_ref().map_or(0, Bytes::len) as u64),
            Kind::Own(body) => body.lock().size_hint(),
        }
    }
}

/// Returns the error of a body that is decompressed.
fn of_decoder(error: BoxError, url: Option<&Uri>) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => *error,
        Err(error) => {
            let text = format!("the response cannot be decompressed: {error}");
            let error = Error::new(ErrorKind::Decode, text);
            match url {
                Some(url) => error.of_response(url),
                None => error,
            }
        }
    }
}

/// Returns the error of a body of the program.
fn of_program(error: BoxError) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => *error,
        Err(error) => {
            Error::new(ErrorKind::RequestBody, format!("request body: {error}")).with_source(error)
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
