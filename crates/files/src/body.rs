//! Response bodies.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;

use crate::content::Reader;
use crate::multipart::Multipart;

/// The error of a body, of any type.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a response of [`Files`](crate::Files).
///
/// # Cancel safety
/// Polling can stop at any time: the next poll returns the next frame.
pub struct Body {
    content: Content,
    observer: Option<Box<dyn BodyObserver>>,
}

/// Observes the content of a body while it is sent. The observer is dropped with the body.
pub trait BodyObserver: Send {
    /// Called after each piece of content or trailers, with its number of bytes. `is_last` is true if
    /// nothing follows.
    fn on_frame(&mut self, bytes: usize, is_last: bool);

    /// Called when the body reports its end.
    fn on_end(&mut self);

    /// Called when the body fails.
    fn on_error(&mut self, _error: &BoxError) {}
}

enum Content {
    Whole(Option<Bytes>),
    File(Box<Reader>),
    Multipart(Box<Multipart>),
    Boxed(UnsyncBoxBody<Bytes, BoxError>),
}

impl Body {
    /// Returns a body without content.
    pub const fn empty() -> Self {
        Self::of(Content::Whole(None))
    }

    /// Returns a body with this content.
    pub fn full(content: impl Into<Bytes>) -> Self {
        let content = content.into();
        Self::of(Content::Whole((!content.is_empty()).then_some(content)))
    }

    /// Wraps a body of another type, for services that return both.
    pub fn boxed<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self::of(Content::Boxed(body.map_err(Into::into).boxed_unsync()))
    }

    pub(crate) fn file(mut reader: Reader) -> Self {
        match reader.take_whole() {
            Some(whole) => Self::full(whole),
            None if reader.remaining() == 0 => Self::empty(),
            None => Self::of(Content::File(Box::new(reader))),
        }
    }

    pub(crate) fn multipart(parts: Multipart) -> Self {
        Self::of(Content::Multipart(Box::new(parts)))
    }

    /// Reads the rest of the content with other threads, as if nothing of it were in memory.
    #[cfg(test)]
    pub(crate) fn read_with_threads(&mut self) {
        if let Content::File(reader) = &mut self.content {
            reader.read_with_threads();
        }
    }

    const fn of(content: Content) -> Self {
        Self {
            content,
            observer: None,
        }
    }

    pub(crate) fn observed(self, observer: Box<dyn BodyObserver>) -> Self {
        Self {
            observer: Some(observer),
            ..self
        }
    }
}

impl Content {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self {
            Self::Whole(content) => Poll::Ready(content.take().map(|it| Ok(Frame::data(it)))),
            Self::File(reader) => {
                let read = ready!(reader.poll_read(cx));
                Poll::Ready(read.map(|read| Ok(Frame::data(read?))))
            }
            Self::Multipart(parts) => {
                let read = ready!(parts.poll_read(cx));
                Poll::Ready(read.map(|read| Ok(Frame::data(read?))))
            }
            Self::Boxed(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(content) => content.is_none(),
            Self::File(reader) => reader.remaining() == 0,
            Self::Multipart(parts) => parts.remaining() == 0,
            Self::Boxed(body) => body.is_end_stream(),
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
        let polled = ready!(self.content.poll_frame(cx));
        let this = &mut *self;
        if let Some(observer) = &mut this.observer {
            match &polled {
                Some(Ok(frame)) => {
                    let bytes = frame.data_ref().map_or(0, Bytes::len);
                    observer.on_frame(bytes, this.content.is_end_stream());
                }
                Some(Err(error)) => observer.on_error(error),
                None => observer.on_end(),
            }
        }
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(content) => {
                SizeHint::with_exact(content.as_ref().map_or(0, |content| content.len() as u64))
            }
            Content::File(reader) => SizeHint::with_exact(reader.remaining()),
            Content::Multipart(parts) => SizeHint::with_exact(parts.remaining()),
            Content::Boxed(body) => body.size_hint(),
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    struct Log(Arc<Mutex<Vec<String>>>);

    impl Log {
        fn push(&self, entry: impl Into<String>) {
            self.0.lock().expect("no panic").push(entry.into());
        }
    }

    impl BodyObserver for Log {
        fn on_frame(&mut self, bytes: usize, is_last: bool) {
            self.push(format!("{bytes} bytes, last: {is_last}"));
        }

        fn on_end(&mut self) {
            self.push("end");
        }
    }

    impl Drop for Log {
        fn drop(&mut self) {
            self.push("dropped");
        }
    }

    #[tokio::test]
    async fn observer_gets_each_frame_and_is_dropped_with_the_body() {
        let entries = Arc::default();
        let log = Log(Arc::clone(&entries));
        let mut body = Body::full("hello").observed(Box::new(log));
        assert!(body.frame().await.is_some());
        assert!(body.frame().await.is_none());
        drop(body);
        let entries = entries.lock().expect("no panic");
        assert_eq!(*entries, ["5 bytes, last: true", "end", "dropped"]);
    }
}
