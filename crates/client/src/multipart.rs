//! Forms with files (multipart/form-data, RFC 7578).

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderValue;
use http::header::{self, HeaderMap};
use http_body::{Body as _, Frame, SizeHint};

use super::body::Body;
use super::error::{Error, ErrorKind};

/// A form of named parts, for [`RequestBuilder::multipart`](super::RequestBuilder::multipart).
///
/// ```
/// # mod courser { pub use courser_client::{self as client, Client}; }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use courser::client::multipart::{Form, Part};
///
/// let form = Form::new()
///     .text("title", "Minutes")
///     .part("file", Part::bytes(&b"hello"[..]).file_name("a.txt").mime("text/plain")?);
/// let request = courser::Client::new()?
///     .post("https://example.org/upload")
///     .multipart(form)
///     .build()?;
/// assert!(request.headers()["content-type"].to_str()?.starts_with("multipart/form-data; boundary="));
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "pass it to multipart"]
pub struct Form {
    boundary: String,
    parts: Vec<(Cow<'static, str>, Part)>,
}

/// A part of a [`Form`]: text, the content of a file, or any other content.
#[must_use = "add it to a form"]
pub struct Part {
    file_name: Option<Cow<'static, str>>,
    headers: HeaderMap,
    content: Body,
    /// The length of the content, if it is known.
    length: Option<u64>,
}

impl Form {
    /// Creates an empty form with a random boundary.
    pub fn new() -> Self {
        Self {
            boundary: random_boundary(),
            parts: Vec::new(),
        }
    }

    /// Adds a field with a text.
    pub fn text(
        self,
        name: impl Into<Cow<'static, str>>,
        text: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.part(name, Part::text(text))
    }

    /// Adds a part. Names may occur several times.
    pub fn part(mut self, name: impl Into<Cow<'static, str>>, part: Part) -> Self {
        self.parts.push((name.into(), part));
        self
    }

    /// Adds a file with its name. It is read while the request is sent.
    ///
    /// # Errors
    /// The error of opening the file.
    pub async fn file(
        self,
        name: impl Into<Cow<'static, str>>,
        path: impl AsRef<Path>,
    ) -> io::Result<Self> {
        Ok(self.part(name, Part::file(path).await?))
    }

    /// Returns the boundary between the parts: 32 random letters and digits after a fixed beginning.
    pub fn boundary(&self) -> &str {
        &self.boundary
    }

    /// Returns the value of the `content-type` field.
    pub fn content_type(&self) -> HeaderValue {
        let text = format!("multipart/form-data; boundary={}", self.boundary);
        HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("multipart/form-data"))
    }

    /// Returns the form as a body. Its length is known if those of all parts are.
    pub fn into_body(self) -> Body {
        let mut pieces = VecDeque::new();
        for (name, part) in self.parts {
            pieces.push_back(Piece::Text(part.head(&self.boundary, &name)));
            pieces.push_back(Piece::Content(part.content, part.length));
            pieces.push_back(Piece::Text(Bytes::from_static(b"\r\n")));
        }
        pieces.push_back(Piece::Text(format!("--{}--\r\n", self.boundary).into()));
        Body::wrap(FormBody(pieces))
    }
}

impl Default for Form {
    fn default() -> Self {
        Self::new()
    }
}

impl Part {
    /// Creates a part with a text.
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        match text.into() {
            Cow::Borrowed(text) => Self::bytes(Bytes::from_static(text.as_bytes())),
            Cow::Owned(text) => Self::bytes(text),
        }
    }

    /// Creates a part with content in memory.
    pub fn bytes(data: impl Into<Bytes>) -> Self {
        let data: Bytes = data.into();
        let length = data.len() as u64;
        Self::new(data.into(), Some(length))
    }

    /// Creates a part from a body, such as one [from a stream](Body::from_stream).
    pub fn stream(content: impl Into<Body>) -> Self {
        let content = content.into();
        let length = content.size_hint().exact();
        Self::new(content, length)
    }

    /// Creates a part from a body of a given length, so that the length of the form is known. The request fails if
    /// the content has another length.
    pub fn stream_with_length(content: impl Into<Body>, length: u64) -> Self {
        Self::new(content.into(), Some(length))
    }

    /// Creates a part from a file, with the last segment of the path as its name, and the media type that belongs to
    /// the extension of the name. It is `application/octet-stream` for unknown ones; [`mime`](Self::mime) replaces it.
    ///
    /// # Errors
    /// The error of opening the file.
    pub async fn file(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let file = tokio::fs::File::open(path).await?;
        let facts = file.metadata().await?;
        // Pipes and devices report no length.
        let length = facts.is_file().then_some(facts.len());
        let mut part = Self::new(file.into(), length);
        if let Some(kind) = mime_guess::from_path(path).first_raw() {
            let kind = HeaderValue::from_static(kind);
            part.headers.insert(header::CONTENT_TYPE, kind);
        }
        Ok(match path.file_name() {
            Some(name) => part.file_name(name.to_string_lossy().into_owned()),
            None => part,
        })
    }

    fn new(content: Body, length: Option<u64>) -> Self {
        Self {
            file_name: None,
            headers: HeaderMap::new(),
            content,
            length,
        }
    }

    /// Sets the name of the file. The part then has the type `application/octet-stream`, unless [`mime`](Self::mime)
    /// sets another one.
    pub fn file_name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.file_name = Some(name.into());
        self
    }

    /// Sets the media type of the content, such as `image/png`.
    ///
    /// # Errors
    /// [`ErrorKind::RequestBody`] if it is no media type.
    pub fn mime(mut self, media_type: &str) -> Result<Self, Error> {
        let is_token = |text: &str| {
            let is_allowed =
                |byte: u8| byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&byte);
            !text.is_empty() && text.bytes().all(is_allowed)
        };
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        let types = essence.split_once('/');
        let is_valid = types.is_some_and(|(name, sub)| is_token(name) && is_token(sub));
        let value = HeaderValue::from_str(media_type).ok().filter(|_| is_valid);
        let Some(value) = value else {
            let text = format!("'{media_type}' is no media type: use one such as image/png");
            return Err(Error::new(ErrorKind::RequestBody, text));
        };
        self.headers.insert(header::CONTENT_TYPE, value);
        Ok(self)
    }

    /// Adds header fields to the part. `content-disposition` is replaced by that of the form.
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        self.headers.extend(headers);
        self
    }

    /// Returns the boundary and the header section of the part.
    fn head(&self, boundary: &str, name: &str) -> Bytes {
        let mut head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"",
            escaped(&with_crlf(name))
        )
        .into_bytes();
        if let Some(name) = &self.file_name {
            head.extend(format!("; filename=\"{}\"", escaped(name)).into_bytes());
        }
        head.extend(b"\r\n");
        if self.file_name.is_some() && !self.headers.contains_key(header::CONTENT_TYPE) {
            head.extend(b"Content-Type: application/octet-stream\r\n");
        }
        for (name, value) in &self.headers {
            if name != header::CONTENT_DISPOSITION {
                // Values of fields have no line breaks.
                head.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
            }
        }
        head.extend(b"\r\n");
        head.into()
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part")
            .field("file_name", &self.file_name)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

/// Escapes a name, so that it cannot end the quoted string or the line. Browsers do the same (HTML §4.10.21.8).
fn escaped(name: &str) -> Cow<'_, str> {
    if !name.contains(['"', '\r', '\n']) {
        return Cow::Borrowed(name);
    }
    let name = name.replace('"', "%22").replace('\r', "%0D");
    Cow::Owned(name.replace('\n', "%0A"))
}

/// Replaces each line break in the name of a field by CR LF, as browsers do (HTML §4.10.21.8).
fn with_crlf(name: &str) -> Cow<'_, str> {
    if !name.contains(['\r', '\n']) {
        return Cow::Borrowed(name);
    }
    let name = name.replace("\r\n", "\n").replace('\r', "\n");
    Cow::Owned(name.replace('\n', "\r\n"))
}

/// Returns a boundary that content does not contain: nobody can guess 160 bits.
fn random_boundary() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut random = [0; 32];
    // A provider without random numbers cannot do TLS either, so nothing would be sent.
    let _ = courser_tls::provider(&[]).secure_random.fill(&mut random);
    let letter = |byte: u8| char::from(LETTERS[usize::from(byte % 32)]);
    let letters: String = random.into_iter().map(letter).collect();
    format!("courser-boundary-{letters}")
}

/// The pieces of a form that are left to send.
struct FormBody(VecDeque<Piece>);

enum Piece {
    Text(Bytes),
    /// The content of a part, with its remaining length if that is known.
    Content(Body, Option<u64>),
}

impl http_body::Body for FormBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        loop {
            let (body, left) = match self.0.front_mut() {
                None => return Poll::Ready(None),
                Some(Piece::Text(text)) => {
                    let text = std::mem::take(text);
                    self.0.pop_front();
                    return Poll::Ready(Some(Ok(Frame::data(text))));
                }
                Some(Piece::Content(body, left)) => (body, left),
            };
            let Some(frame) = ready!(Pin::new(body).poll_frame(cx)) else {
                if let Some(left) = left.filter(|left| *left > 0) {
                    let text = format!("a part of the form ended {left} bytes before its length");
                    return Poll::Ready(Some(Err(Error::new(ErrorKind::RequestBody, text))));
                }
                self.0.pop_front();
                continue;
            };
            // A part has no trailers.
            let Ok(data) = frame?.into_data() else {
                continue;
            };
            if let Some(left) = left {
                let Some(rest) = left.checked_sub(data.len() as u64) else {
                    let text = "a part of the form is longer than its length";
                    return Poll::Ready(Some(Err(Error::new(ErrorKind::RequestBody, text))));
                };
                *left = rest;
            }
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let mut sum: u64 = 0;
        for piece in &self.0 {
            let len = match piece {
                Piece::Text(text) => text.len() as u64,
                Piece::Content(_, Some(length)) => *length,
                Piece::Content(_, None) => return SizeHint::default(),
            };
            sum = sum.saturating_add(len);
        }
        SizeHint::with_exact(sum)
    }
}

#[cfg(test)]
mod tests;
