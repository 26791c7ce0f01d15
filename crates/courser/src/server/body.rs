//! Bodies of requests.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::h3;

/// The body of a request, whatever protocol it came by: content as it comes, then trailers.
///
/// What is not read is not received, beyond the windows of the protocol. Dropped before its end,
/// it tells the client to send no more, where the protocol can say so.
///
/// # Cancel safety
/// A frame that was not handed out is handed out by the next poll.
#[derive(Debug, Default)]
pub struct Body(Inner);

#[derive(Debug, Default)]
enum Inner {
    #[default]
    Empty,
    Http3(h3::Body),
    Tcp(hyper::body::Incoming),
}

impl Body {
    /// Nothing: for requests that are made here.
    pub const fn empty() -> Self {
        Self(Inner::Empty)
    }
}

/// A body could not be received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// Over HTTP/3.
    #[error(transparent)]
    Http3(#[from] h3::Error),
    /// Over HTTP/2 or HTTP/1.1.
    #[error(transparent)]
    Tcp(#[from] hyper::Error),
}

impl From<h3::Body> for Body {
    fn from(body: h3::Body) -> Self {
        Self(Inner::Http3(body))
    }
}

impl From<hyper::body::Incoming> for Body {
    fn from(body: hyper::body::Incoming) -> Self {
        Self(Inner::Tcp(body))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.0 {
            Inner::Empty => Poll::Ready(None),
            Inner::Http3(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Inner::Tcp(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Empty => true,
            Inner::Http3(body) => body.is_end_stream(),
            Inner::Tcp(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Empty => SizeHint::with_exact(0),
            Inner::Http3(body) => body.size_hint(),
            Inner::Tcp(body) => body.size_hint(),
        }
    }
}
