//! The messages of a call, which end with it.
//!
//! hyper sends the content of a request even if the response is dropped, so that a stream of requests that has no end
//! would keep its call open. HTTP/3 would end by itself.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::sync::oneshot;

/// Lets the messages of a call be sent until it is dropped.
pub(super) type Upload = oneshot::Sender<Infallible>;

pin_project! {
    /// A body that fails when its [`Upload`] is dropped.
    pub(super) struct Uploaded<B> {
        #[pin]
        inner: B,
        ended: Option<oneshot::Receiver<Infallible>>,
    }
}

/// Returns the body of a call, and what the call keeps until its end.
pub(super) fn upload<B>(inner: B) -> (Upload, Uploaded<B>) {
    let (upload, ended) = oneshot::channel();
    let ended = Some(ended);
    (upload, Uploaded { inner, ended })
}

impl<B> Body for Uploaded<B>
where
    B: Body,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    type Data = B::Data;
    type Error = Box<dyn StdError + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, Self::Error>>> {
        let this = self.project();
        if let Poll::Ready(frame) = this.inner.poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let Some(ended) = this.ended else {
            return Poll::Pending;
        };
        if Pin::new(ended).poll(cx).is_pending() {
            return Poll::Pending;
        }
        *this.ended = None;
        // hyper resets the stream with the code of the error.
        let cancelled = h2::Error::from(h2::Reason::CANCEL);
        Poll::Ready(Some(Err(cancelled.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
