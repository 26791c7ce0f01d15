//! Bodies of responses.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;

use crate::content::Reader;

/// The error of a body, of any type.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a response of [`Files`](crate::Files).
///
/// # Cancel safety
/// Polling can stop at any time: the next poll returns the next frame.
pub struct Body(Inner);

enum Inner {
    Whole(Option<Bytes>),
    File(Box<Reader>),
    Boxed(UnsyncBoxBody<Bytes, BoxError>),
}

impl Body {
    /// Returns a body without content.
    pub const fn empty() -> Self {
        Self(Inner::Whole(None))
    }

    /// Returns a body with this content.
    pub fn full(content: impl Into<Bytes>) -> Self {
        let content = content.into();
        Self(Inner::Whole((!content.is_empty()).then_some(content)))
    }

    /// Wraps a body of another type, for services that return both.
    pub fn boxed<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(Inner::Boxed(body.map_err(Into::into).boxed_unsync()))
    }

    pub(crate) fn file(mut reader: Reader) -> Self {
        match reader.take_whole() {
            Some(whole) => Self::full(whole),
            None if reader.left() == 0 => Self::empty(),
            None => Self(Inner::File(Box::new(reader))),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Inner::Whole(content) => Poll::Ready(content.take().map(|it| Ok(Frame::data(it)))),
            Inner::File(reader) => {
                let read = ready!(reader.poll_read(cx));
                Poll::Ready(read.map(|read| Ok(Frame::data(read?))))
            }
            Inner::Boxed(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Whole(content) => content.is_none(),
            Inner::File(reader) => reader.left() == 0,
            Inner::Boxed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(content) => {
                SizeHint::with_exact(content.as_ref().map_or(0, |content| content.len() as u64))
            }
            Inner::File(reader) => SizeHint::with_exact(reader.left()),
            Inner::Boxed(body) => body.size_hint(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = http_body::Body::size_hint(self);
        f.debug_struct("Body")
            .field("length", &size.exact())
            .finish_non_exhaustive()
    }
}
