//! The framing of content and trailers, which each hop has for itself (RFC 9110 §6.4, §8.6).

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRAILER, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;

use super::fields::{self, tokens};
use crate::body::{Body, BoxError, boxed};

/// The framing of a request as it was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Framing {
    version: Version,
    length: Option<u64>,
}

impl Framing {
    /// Reads the framing of a request and reduces equal lengths to one field.
    ///
    /// # Errors
    /// The reason to refuse the request.
    pub(crate) fn of(headers: &mut HeaderMap, version: Version) -> Result<Self, &'static str> {
        let length = one_length(headers).map_err(|Invalid| "invalid Content-Length")?;
        Ok(Self { version, length })
    }

    /// Returns the body to forward in a message with these parts, and writes the field that frames it.
    ///
    /// Over HTTP/2 and HTTP/3 only the end of the stream shows that a request has no content. Where none is likely,
    /// the first frame is awaited, because many servers refuse content of unknown length for GET. Other methods do
    /// not wait, because clients of bidirectional streams may wait for the response first.
    pub(crate) async fn body<B>(
        self,
        parts: &mut Parts,
        mut body: B,
        keeps_underscores: bool,
    ) -> Result<Body, B::Error>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        if http_body::Body::is_end_stream(&body) {
            self.frame_empty(parts);
            return Ok(Body::empty());
        }
        let mut first = None;
        if self.length.is_none()
            && self.version >= Version::HTTP_2
            && is_likely_empty(&parts.method)
        {
            first = body.frame().await.transpose()?;
            if first.is_none() {
                return Ok(Body::empty());
            }
        }
        if self.length.is_none() && parts.version == Version::HTTP_11 {
            const CHUNKED: HeaderValue = HeaderValue::from_static("chunked");
            // Without this field, hyper sends no content of unknown length for GET and HEAD.
            parts.headers.insert(TRANSFER_ENCODING, CHUNKED);
        }
        let body = Prefetched { first, rest: body };
        Ok(boxed(FilteredTrailers::new(body, keeps_underscores)))
    }

    /// Frames a request without content. Servers may wait for the content of methods that usually have some.
    fn frame_empty(self, parts: &mut Parts) {
        if self.length.is_none() && !is_likely_empty(&parts.method) {
            parts
                .headers
                .insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
    }
}

/// Returns true for methods whose requests rarely have content.
const fn is_likely_empty(method: &Method) -> bool {
    matches!(
        *method,
        Method::GET | Method::HEAD | Method::OPTIONS | Method::DELETE
    )
}

/// Checks the transfer codings of a message. hyper decodes `chunked` and does not report others, so that their
/// content would lose its coding.
///
/// # Errors
/// The reason to refuse the message.
pub(crate) fn check_codings(headers: &HeaderMap) -> Result<(), &'static str> {
    let codings = headers.get_all(TRANSFER_ENCODING);
    let mut codings = codings.iter().flat_map(tokens);
    let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    match codings.next().is_none_or(is_chunked) && codings.next().is_none() {
        true => Ok(()),
        false => Err("the message has a transfer coding other than chunked"),
    }
}

/// Reduces equal lengths of a response to one field, and removes a Content-Length that is not a number or that the
/// response must not have.
///
/// Responses with status 1xx and 204 must not have the field (RFC 9110 §8.6), and 205 has no content (RFC 9110
/// §15.3.6). hyper does not validate the field of responses without content, so its value can be anything.
pub(crate) fn adjust_length(parts: &mut http::response::Parts) {
    let is_forbidden = parts.status.is_informational()
        || matches!(
            parts.status,
            StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT
        );
    if is_forbidden || one_length(&mut parts.headers).is_err() {
        parts.headers.remove(CONTENT_LENGTH);
    }
}

/// Reads the length of the content, and reduces a list of equal lengths to one value.
fn one_length(headers: &mut HeaderMap) -> Result<Option<u64>, Invalid> {
    let mut values = headers.get_all(CONTENT_LENGTH).iter();
    let Some(first) = values.next() else {
        return Ok(None);
    };
    if values.next().is_none()
        && let Ok(length) = number(first.as_bytes())
    {
        return Ok(Some(length));
    }
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter().flat_map(|value| {
        let parts = value.as_bytes().split(|byte| *byte == b',');
        parts.map(|part| number(part.trim_ascii()))
    });
    let length = lengths.next().ok_or(Invalid)??;
    if lengths.any(|other| other != Ok(length)) {
        return Err(Invalid);
    }
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    Ok(Some(length))
}

fn number(digits: &[u8]) -> Result<u64, Invalid> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Invalid);
    }
    let text = std::str::from_utf8(digits).map_err(|_| Invalid)?;
    text.parse().map_err(|_| Invalid)
}

/// A length that is not a number of 64 bits, or several that differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Invalid;

/// Removes from Trailer the names of fields that are not forwarded as trailers.
pub(super) fn filter_announced(headers: &mut HeaderMap, keeps_underscores: bool) {
    let is_kept = |token: &[u8]| {
        let name = HeaderName::from_bytes(token);
        name.is_ok_and(|name| !fields::of_trailer(name.as_str(), keeps_underscores).removes())
    };
    let announced = headers.get_all(TRAILER).iter().flat_map(tokens);
    let (kept, removed): (Vec<&[u8]>, Vec<&[u8]>) = announced.partition(|token| is_kept(token));
    if removed.is_empty() {
        return;
    }
    match HeaderValue::from_bytes(&kept.join(&b", "[..])) {
        Ok(kept) if !kept.is_empty() => {
            headers.insert(TRAILER, kept);
        }
        _ => {
            headers.remove(TRAILER);
        }
    }
}

/// A body whose trailers are filtered by the table of fields. A trailer section from which nothing is left is not
/// sent: some QPACK decoders refuse an empty section, and the client then closes its connection.
pub(crate) struct FilteredTrailers<B> {
    body: B,
    keeps_underscores: bool,
}

impl<B> FilteredTrailers<B> {
    pub(crate) const fn new(body: B, keeps_underscores: bool) -> Self {
        Self {
            body,
            keeps_underscores,
        }
    }
}

impl<B: http_body::Body<Data = Bytes> + Unpin> http_body::Body for FilteredTrailers<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let keeps_underscores = self.keeps_underscores;
        let polled = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(match polled.map(|frame| frame.map(Frame::into_trailers)) {
            Some(Ok(Ok(mut trailers))) => {
                filter(&mut trailers, keeps_underscores);
                let is_empty = trailers.is_empty();
                (!is_empty).then(|| Ok(Frame::trailers(trailers)))
            }
            Some(Ok(Err(frame))) => Some(Ok(frame)),
            Some(Err(error)) => Some(Err(error)),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn filter(trailers: &mut HeaderMap, keeps_underscores: bool) {
    let is_unwanted = |name: &&HeaderName| {
        let name = name.as_str();
        fields::of_trailer(name, keeps_underscores).removes() || name.contains('"')
    };
    let removed: Vec<HeaderName> = trailers.keys().filter(is_unwanted).cloned().collect();
    for name in removed {
        trailers.remove(name);
    }
}

/// A body whose first frame may be received already.
struct Prefetched<B> {
    first: Option<Frame<Bytes>>,
    rest: B,
}

impl<B: http_body::Body<Data = Bytes> + Unpin> http_body::Body for Prefetched<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(first))),
            None => Pin::new(&mut self.rest).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.first {
            None => self.rest.size_hint(),
            Some(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            let value = HeaderValue::from_str(value).expect("a value");
            headers.append(CONTENT_LENGTH, value);
        }
        headers
    }

    /// RFC 9110 §8.6.
    #[test]
    fn equal_lengths_become_one() {
        for (values, expected) in [
            (&[][..], Ok(None)),
            (&["5"], Ok(Some(5))),
            (&["0"], Ok(Some(0))),
            (&["5", "5"], Ok(Some(5))),
            (&["5, 5"], Ok(Some(5))),
            (&["18446744073709551615"], Ok(Some(u64::MAX))),
            (&["5", "6"], Err(Invalid)),
            (&["5,"], Err(Invalid)),
            (&[""], Err(Invalid)),
            (&["+5"], Err(Invalid)),
            (&["18446744073709551616"], Err(Invalid)),
        ] {
            let mut headers = lengths(values);
            assert_eq!(one_length(&mut headers), expected, "{values:?}");
            if expected.is_ok() {
                let count = headers.get_all(CONTENT_LENGTH).iter().count();
                assert_eq!(count, values.len().min(1), "{values:?}");
            }
        }
    }

    #[test]
    fn length_of_a_response_without_content_is_checked() {
        for (status, length, is_kept) in [
            (204, ")2", false),
            (204, "2", false),
            (205, "2", false),
            (304, ")2", false),
            (304, "+2", false),
            (304, "99999999999999999999", false),
            (304, "2", true),
            (200, "2", true),
        ] {
            let response = http::Response::builder()
                .status(status)
                .header(CONTENT_LENGTH, length);
            let mut parts = response.body(()).expect("a response").into_parts().0;
            adjust_length(&mut parts);
            let kept = parts.headers.contains_key(CONTENT_LENGTH);
            assert_eq!(kept, is_kept, "{status} {length}");
        }
    }

    /// RFC 9112 §6.1.
    #[test]
    fn transfer_codings_other_than_chunked_are_refused() {
        for (values, is_valid) in [
            (&[][..], true),
            (&["chunked"], true),
            (&["Chunked"], true),
            (&["gzip, chunked"], false),
            (&["gzip", "chunked"], false),
            (&["chunked", "chunked"], false),
            (&["gzip"], false),
            (&["identity"], false),
        ] {
            let mut response = http::Response::builder();
            for value in values {
                response = response.header(TRANSFER_ENCODING, *value);
            }
            let response = response.body(()).expect("a response");
            let checked = check_codings(response.headers());
            assert_eq!(checked.is_ok(), is_valid, "{values:?}");
        }
    }

    /// Some QPACK decoders refuse a section without fields.
    #[tokio::test]
    async fn trailer_section_without_fields_is_not_forwarded() {
        for (names, expected) in [
            (&["x-sum"][..], Some(1)),
            (&["x-sum", "content-length"], Some(1)),
            (&["content-length"], None),
            (&[], None),
        ] {
            let mut trailers = HeaderMap::new();
            for name in names {
                trailers.insert(*name, HeaderValue::from_static("1"));
            }
            let frames = [
                Frame::data(Bytes::from_static(b"a")),
                Frame::trailers(trailers),
            ];
            let frames = frames.map(Ok::<_, std::convert::Infallible>);
            let body = http_body_util::StreamBody::new(futures_util::stream::iter(frames));
            let mut body = FilteredTrailers::new(body, true);
            let frame = body.frame().await.expect("content").expect("content");
            assert_eq!(frame.into_data().expect("content"), "a");
            let last = body.frame().await.map(|frame| frame.expect("infallible"));
            let forwarded = last.map(|frame| frame.into_trailers().expect("trailers").len());
            assert_eq!(forwarded, expected, "{names:?}");
        }
    }

    /// RFC 9110 §6.5.1.
    #[test]
    fn trailers_are_filtered_with_their_announcement() {
        let mut headers = HeaderMap::new();
        let announced = HeaderValue::from_static("X-Sum, X-Forwarded-For, content-length");
        headers.append(TRAILER, announced);
        headers.append(TRAILER, HeaderValue::from_static("x_y, grpc-status"));
        filter_announced(&mut headers, false);
        assert_eq!(headers[TRAILER], "X-Sum, grpc-status");
        headers.insert(TRAILER, HeaderValue::from_static("host"));
        filter_announced(&mut headers, false);
        assert!(!headers.contains_key(TRAILER));
        for rule in &fields::FIELD_RULES {
            let name = HeaderName::from_bytes(rule.name.replace('*', "x").as_bytes());
            let mut trailers = HeaderMap::new();
            trailers.insert(name.expect("a name"), HeaderValue::from_static("1"));
            trailers.insert("x-sum", HeaderValue::from_static("2"));
            filter(&mut trailers, true);
            assert_eq!(trailers.len(), 1, "{}", rule.name);
        }
    }
}
