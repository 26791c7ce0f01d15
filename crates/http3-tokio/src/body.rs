//! Bodies of messages.

mod frames;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::failure::Failure;
use super::handover::Handover;
use super::incoming::Incoming;

/// The body of a received message: its content as it arrives, then its trailers.
///
/// An unread body receives at most the flow control window of its stream. If the body of a request is dropped
/// before its end, the rest is discarded for a short time, and then the client is asked to stop sending.
/// Dropping the body of a response cancels the request.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result {
/// # let (near, far) = pair().await?;
/// # let app = axum::Router::new().fallback(|| async { "hello" });
/// # tokio::spawn(h3::serve(far, app).into_future());
/// # let client = h3::Client::new(near);
/// # let request = http::Request::get("https://localhost/").body(h3::Empty)?;
/// # let response = client.send(request).await?;
/// use http_body_util::BodyExt;
///
/// let mut body = response.into_body();
/// while let Some(frame) = body.frame().await {
///     if let Ok(data) = frame?.into_data() {
///         println!("{} bytes", data.len()); // the next ones may still be on the way
///     }
/// }
/// # Ok(()) }
/// ```
///
/// # Cancel safety
/// Safe: a frame that was not returned is returned by the next poll.
#[derive(Debug)]
pub struct Body {
    /// The rest of the message, or `None` if it is complete.
    incoming: Option<Box<Incoming>>,
    /// The stream of a CONNECT until the body is read; an upgrade may take it before.
    offer: Option<Arc<Handover>>,
    /// Number of content bytes according to `content-length` that have not arrived.
    left: Option<u64>,
}

impl Body {
    pub(super) fn new(incoming: Box<Incoming>, length: Option<u64>) -> Self {
        Self {
            incoming: Some(incoming).filter(|incoming| !incoming.message.is_over()),
            offer: None,
            left: length,
        }
    }

    /// Creates the body of a CONNECT, whose stream may be taken by an upgrade.
    pub(super) fn offered(offer: Arc<Handover>) -> Self {
        Self {
            incoming: None,
            offer: Some(offer),
            left: None,
        }
    }

    /// Creates the body for the rest of a message.
    pub(super) fn of(incoming: Option<Box<Incoming>>) -> Self {
        Self {
            incoming,
            offer: None,
            left: None,
        }
    }

    /// Ends the stream because of an error in the bytes that were read.
    pub(super) fn abort(&mut self, error: courser_http3::Error) -> Failure {
        match &mut self.incoming {
            Some(incoming) => incoming.fail(error),
            None => error.into(),
        }
    }

    /// Creates an empty body, for requests that are created locally.
    pub const fn empty() -> Self {
        Self {
            incoming: None,
            offer: None,
            left: Some(0),
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

/// An empty body, for requests and responses without content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Empty;

impl Empty {
    /// Creates an empty body.
    pub const fn new() -> Self {
        Self
    }
}

impl http_body::Body for Empty {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(0)
    }
}
