//! Bodies of responses, whatever makes them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};

pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub(super) type Body = UnsyncBoxBody<Bytes, BoxError>;

/// Any body in a box.
pub(super) fn boxed<B>(body: B) -> Body
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}

/// These bytes.
pub(super) fn full(bytes: impl Into<Bytes>) -> Body {
    boxed(Full::new(bytes.into()))
}

/// A response of this type.
pub(super) fn typed(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> Response<Body> {
    let mut response = Response::new(full(body));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// A response that says its own status, for humans.
pub(super) fn plain(status: StatusCode) -> Response<Body> {
    typed(status, "text/plain; charset=utf-8", format!("{status}\n"))
}

/// A file, which is over when it has given as many bytes as its head promises. A reader of files
/// finds that out only by another look at the disk, and the end of the message would leave in a
/// packet of its own. What a file has grown by meanwhile stays out.
pub(super) fn of_length(response: Response<Body>) -> Response<Body> {
    let length = response.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    match length {
        Some(left) => response.map(|body| boxed(OfLength { body, left })),
        None => response,
    }
}

struct OfLength {
    body: Body,
    left: u64,
}

impl http_body::Body for OfLength {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        // Whoever compresses asks on until there is nothing.
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let mut frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(data) = frame
            .as_mut()
            .and_then(|frame| frame.as_mut().ok()?.data_mut())
        {
            data.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
            self.left -= data.len() as u64;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0 || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::StreamBody;

    use super::*;

    /// A body that does not know its length, with this one in its head.
    fn response(chunks: &[&'static str], length: &'static str) -> Response<Body> {
        let frames = chunks
            .iter()
            .map(|chunk| Ok::<_, Infallible>(Frame::data(Bytes::from_static(chunk.as_bytes()))))
            .collect::<Vec<_>>();
        let mut response =
            Response::new(boxed(StreamBody::new(futures_util::stream::iter(frames))));
        let length = HeaderValue::from_static(length);
        response
            .headers_mut()
            .insert(header::CONTENT_LENGTH, length);
        of_length(response)
    }

    #[tokio::test]
    async fn a_file_is_over_with_its_last_byte() {
        let mut body = response(&["one", "two"], "6").into_body();
        for expected in ["one", "two"] {
            assert!(!http_body::Body::is_end_stream(&body), "before {expected}");
            let frame = body.frame().await.expect("more").expect("readable");
            assert_eq!(frame.into_data().expect("data"), expected);
        }
        assert!(http_body::Body::is_end_stream(&body));
    }

    /// Files shrink and grow while they are read.
    #[tokio::test]
    async fn of_a_file_that_has_grown_the_promised_bytes_are_sent() {
        for (length, expected) in [
            ("6", "onetwo"),
            ("4", "onet"),
            ("3", "one"),
            ("9", "onetwo"),
        ] {
            let mut body = response(&["one", "two"], length).into_body();
            let mut all = Vec::new();
            while let Some(frame) = body.frame().await {
                all.extend(frame.expect("readable").into_data().expect("data"));
            }
            assert_eq!(all, expected.as_bytes(), "of {length}");
        }
    }

    #[tokio::test]
    async fn a_file_of_no_bytes_is_over_at_once() {
        let body = response(&["grown"], "0").into_body();
        assert!(http_body::Body::is_end_stream(&body));
        assert_eq!(body.collect().await.expect("readable").to_bytes(), "");
    }
}
