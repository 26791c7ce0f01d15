//! Responses with their usual conversions.

use std::fmt;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use http::{HeaderMap, Uri, response};
use http_body::Body as _;
use http_body_util::BodyExt as _;

use super::body::Body;
use super::error::{Error, ErrorKind};
use super::history::{History, Hop};
use super::timing::Timing;

/// A response: its header section has arrived, its content arrives as it is read.
///
/// It dereferences to [`http::Response`], for `status()`, `headers()`, `version()` and `extensions()`, and converts from
/// and into it. [`bytes`](Self::bytes), [`text`](Self::text) and `json` read the whole content up to a
/// [limit](Self::limit); [`chunk`](Self::chunk) and [`bytes_stream`](Self::bytes_stream) read it in pieces.
///
/// ```no_run
/// # mod courser { pub use courser_client::{self as client, Client}; }
/// # async fn example(client: courser::Client) -> Result<(), courser::client::Error> {
/// let response = client.get("https://example.org/").await?.error_for_status()?;
/// println!("{} from {}", response.status(), response.url());
/// println!("{}", response.text().await?);
/// # Ok(()) }
/// ```
pub struct Response {
    inner: http::Response<Body>,
    limit: u64,
    /// The trailers, once [`chunk`](Self::chunk) has reached them.
    trailers: Option<HeaderMap>,
}

impl Response {
    pub(super) fn new(inner: http::Response<Body>, limit: u64) -> Self {
        Self {
            inner,
            limit,
            trailers: None,
        }
    }

    /// Returns the URL that the response is from, without credentials: that of the request, or of the last redirect that
    /// was followed. The URL is empty if the response is not from a client.
    pub fn url(&self) -> &Uri {
        static NONE: std::sync::OnceLock<Uri> = std::sync::OnceLock::new();
        let history = self.inner.extensions().get::<History>();
        history.map_or_else(|| NONE.get_or_init(Uri::default), History::url)
    }

    /// Returns the redirects that were followed, oldest first.
    pub fn history(&self) -> &[Hop] {
        let history = self.inner.extensions().get::<History>();
        history.map_or(&[], History::hops)
    }

    /// Returns the address of the server or of its proxy.
    pub fn remote_addr(&self) -> Option<SocketAddr> {
        self.inner.extensions().get::<Timing>()?.remote
    }

    /// Returns the timing up to the header section. [`Body::timing`] has that of the content too.
    pub fn timing(&self) -> Option<&Timing> {
        self.inner.extensions().get()
    }

    /// Returns the number of bytes of content that are left to read, if it is known. It is unknown for content that
    /// is decompressed.
    pub fn content_length(&self) -> Option<u64> {
        self.inner.body().size_hint().exact()
    }

    /// Returns the cookies that this response sets, without those that a browser would refuse. Those of redirects
    /// are in the header sections of the [history](Self::history).
    #[cfg(feature = "cookies")]
    pub fn cookies(&self) -> impl Iterator<Item = super::Cookie> + '_ {
        let values = self.inner.headers().get_all(http::header::SET_COOKIE);
        super::cookies::of_response(self.url(), values.iter())
    }

    /// Returns the response, or an error of the kind [`ErrorKind::Status`] if its status is 400 to 599.
    ///
    /// # Errors
    /// The error names the status and the URL, and has the [timing](Error::timing) of the request.
    pub fn error_for_status(self) -> Result<Self, Error> {
        self.check_status().map(|()| self)
    }

    /// Returns the response, or an error like [`error_for_status`](Self::error_for_status).
    ///
    /// # Errors
    /// Those of [`error_for_status`](Self::error_for_status).
    pub fn error_for_status_ref(&self) -> Result<&Self, Error> {
        self.check_status().map(|()| self)
    }

    fn check_status(&self) -> Result<(), Error> {
        let status = self.inner.status();
        if !status.is_client_error() && !status.is_server_error() {
            return Ok(());
        }
        let text = format!("the server answered {status}");
        let error = Error::new(ErrorKind::Status, text).with_status(status);
        let error = error.of_response(self.url());
        Err(match self.timing() {
            Some(timing) => error.with_timing(timing.clone()),
            None => error,
        })
    }

    /// Sets the largest number of bytes that [`bytes`](Self::bytes), [`text`](Self::text) and `json`
    /// read, after decompression. Default 64 MiB, or that of the
    /// [client](super::ClientBuilder::content_limit).
    #[must_use]
    pub fn limit(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }

    /// Reads the content.
    ///
    /// # Errors
    /// The errors of receiving, and [`ErrorKind::TooLarge`] beyond the [limit](Self::limit).
    ///
    /// # Cancel safety
    /// Dropping the future discards the response and cancels the request.
    pub async fn bytes(self) -> Result<Bytes, Error> {
        self.bytes_and_trailers().await.map(|(bytes, _)| bytes)
    }

    /// Reads the content and the trailers, which are empty if there are none.
    ///
    /// # Errors
    /// Those of [`bytes`](Self::bytes).
    pub async fn bytes_and_trailers(self) -> Result<(Bytes, HeaderMap), Error> {
        let (limit, mut trailers) = (self.limit, self.trailers);
        let mut body = self.inner.into_body();
        let expected = body.size_hint().lower();
        if expected > limit {
            return Err(too_large(limit, &body));
        }
        let mut first = Bytes::new();
        let mut all = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let data = match frame?.into_data() {
                Ok(data) => data,
                Err(frame) => {
                    trailers = frame.into_trailers().ok().or(trailers);
                    continue;
                }
            };
            if (first.len() + all.len() + data.len()) as u64 > limit {
                return Err(too_large(limit, &body));
            }
            // Content in one piece is not copied.
            if first.is_empty() && all.is_empty() {
                first = data;
                continue;
            }
            if all.is_empty() {
                // What the server announces may not arrive.
                let announced = usize::try_from(expected).unwrap_or(usize::MAX);
                all.reserve(announced.clamp(first.len() + data.len(), MAX_RESERVED));
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&data);
        }
        let bytes = match all.is_empty() {
            true => first,
            false => all.freeze(),
        };
        Ok((bytes, trailers.unwrap_or_default()))
    }

    /// Reads the content as text. With the feature `charset`, the charset is that of the `content-type` field, or that
    /// of a byte order mark; otherwise, and by default, it is UTF-8. Malformed sequences become U+FFFD.
    ///
    /// # Errors
    /// Those of [`bytes`](Self::bytes).
    pub async fn text(self) -> Result<String, Error> {
        #[cfg(feature = "charset")]
        let encoding = charset_of(self.inner.headers());
        let bytes = self.bytes().await?;
        #[cfg(feature = "charset")]
        {
            Ok(encoding.decode(&bytes).0.into_owned())
        }
        #[cfg(not(feature = "charset"))]
        {
            let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
    }

    /// Reads the content as JSON (RFC 8259), whatever its `content-type` is.
    ///
    /// # Errors
    /// Those of [`bytes`](Self::bytes), and [`ErrorKind::Decode`] if the content is no JSON or does not fit `T`. Its
    /// source is serde_json's error.
    #[cfg(feature = "json")]
    pub async fn json<T: serde::de::DeserializeOwned>(self) -> Result<T, Error> {
        let url = self.url().clone();
        let bytes = self.bytes().await?;
        serde_json::from_slice(&bytes).map_err(|error| {
            let text = format!("the content of {url} is not the expected JSON: {error}");
            let error = Error::new(ErrorKind::Decode, text).with_source(error);
            error.of_response(&url)
        })
    }

    /// Returns the next piece of the content, and `None` at its end. [`trailers`](Self::trailers) are available then.
    ///
    /// # Errors
    /// The errors of receiving.
    ///
    /// # Cancel safety
    /// Safe: a piece that was not returned is returned by the next call.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        while let Some(frame) = self.inner.body_mut().frame().await {
            match frame?.into_data() {
                Ok(data) => return Ok(Some(data)),
                Err(frame) => self.trailers = frame.into_trailers().ok(),
            }
        }
        Ok(None)
    }

    /// Returns the trailers, if there are any and [`chunk`](Self::chunk) has returned the end of the content.
    pub fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_ref()
    }

    /// Returns the content as a stream of pieces. Trailers are dropped.
    ///
    /// ```no_run
    /// # mod courser { pub use courser_client::{self as client, Client}; }
    /// # async fn example(client: courser::Client) -> Result<(), courser::client::Error> {
    /// use futures_util::TryStreamExt;
    ///
    /// let mut pieces = client.get("https://example.org/large").await?.bytes_stream();
    /// while let Some(piece) = pieces.try_next().await? {
    ///     println!("{} bytes", piece.len());
    /// }
    /// # Ok(()) }
    /// ```
    pub fn bytes_stream(self) -> BytesStream {
        BytesStream(self.inner.into_body())
    }

    /// Returns the body.
    pub fn into_body(self) -> Body {
        self.inner.into_body()
    }

    /// Returns the header section and the body.
    pub fn into_parts(self) -> (response::Parts, Body) {
        self.inner.into_parts()
    }

    /// Replaces the body by that which `change` returns.
    pub fn map<T>(self, change: impl FnOnce(Body) -> T) -> http::Response<T> {
        self.inner.map(change)
    }
}

/// Returns the charset of a response. The encoding itself looks for a byte order mark.
#[cfg(feature = "charset")]
fn charset_of(headers: &HeaderMap) -> &'static encoding_rs::Encoding {
    let value = headers.get(http::header::CONTENT_TYPE);
    let value = value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let parameters = value.split(';').skip(1);
    let mut pairs = parameters.filter_map(|parameter| parameter.split_once('='));
    let charset = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    charset
        .and_then(|(_, label)| {
            let label = label.trim().trim_matches('"');
            encoding_rs::Encoding::for_label(label.as_bytes())
        })
        .unwrap_or(encoding_rs::UTF_8)
}

fn too_large(limit: u64, body: &Body) -> Error {
    let text = format!(
        "the content has more than {limit} bytes: raise the limit with Response::limit or \
         ClientBuilder::content_limit, or read it in pieces with chunk or bytes_stream"
    );
    let error = Error::new(ErrorKind::TooLarge, text);
    match body.url() {
        Some(url) => error.of_response(url),
        None => error,
    }
}

impl Deref for Response {
    type Target = http::Response<Body>;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

impl DerefMut for Response {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.inner
    }
}

impl From<http::Response<Body>> for Response {
    fn from(inner: http::Response<Body>) -> Self {
        Self::new(inner, DEFAULT_LIMIT)
    }
}

impl From<Response> for http::Response<Body> {
    fn from(response: Response) -> Self {
        response.inner
    }
}

impl From<Response> for Body {
    fn from(response: Response) -> Self {
        response.inner.into_body()
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.inner.status())
            .field("version", &self.inner.version())
            .field("url", self.url())
            .field("headers", self.inner.headers())
            .finish_non_exhaustive()
    }
}

/// The content of a response as a [`Stream`], from [`Response::bytes_stream`].
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct BytesStream(Body);

impl Stream for BytesStream {
    type Item = Result<Bytes, Error>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Error>>> {
        loop {
            match ready!(Pin::new(&mut self.0).poll_frame(cx)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
            }
        }
    }
}

/// The largest content that is read at once by default, K522. Content from the network must not fill the memory, and
/// a megabyte of compressed content may be a gigabyte. Most responses that programs read at once are far smaller.
pub(super) const DEFAULT_LIMIT: u64 = 64 << 20;
/// The largest buffer that is reserved for content before it arrives, K522.
const MAX_RESERVED: usize = 4 << 20;

#[cfg(test)]
mod tests;
