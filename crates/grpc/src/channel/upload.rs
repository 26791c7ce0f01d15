//! The messages of a call, which end with it.
//!
//! hyper sends the content of a request even if the response is dropped, so that a stream of requests that has no end
//! would keep its call open. HTTP/3 would end by itself.
//!
//! tonic's body knows its end only when it is asked for the next message. Here it is asked once, behind the first
//! data, so that the only message of a call carries the end of its stream. Else an empty DATA frame would follow.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
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
        next: Next,
        ended: Option<oneshot::Receiver<Infallible>>,
    }
}

type BoxError = Box<dyn StdError + Send + Sync>;
type Step = Result<Frame<Bytes>, BoxError>;

/// What is known of the frame that follows.
enum Next {
    /// Nothing, and no data was sent so far.
    Begun,
    /// This is it.
    Known(Step),
    /// Nothing; messages are not read in advance any more.
    Unknown,
    /// There is none.
    End,
}

/// Returns the body of a call, and what the call keeps until its end.
pub(super) fn upload<B>(inner: B) -> (Upload, Uploaded<B>) {
    let (upload, ended) = oneshot::channel();
    let body = Uploaded {
        inner,
        next: Next::Begun,
        ended: Some(ended),
    };
    (upload, body)
}

impl<B> Body for Uploaded<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Step>> {
        let mut this = self.project();
        match std::mem::replace(this.next, Next::Unknown) {
            Next::Known(frame) => return Poll::Ready(Some(frame)),
            Next::End => {
                *this.next = Next::End;
                return Poll::Ready(None);
            }
            before => *this.next = before,
        }
        if let Poll::Ready(frame) = poll(this.inner.as_mut(), cx) {
            let is_data = matches!(&frame, Some(Ok(frame)) if frame.is_data());
            if is_data && matches!(this.next, Next::Begun) {
                *this.next = match poll(this.inner, cx) {
                    Poll::Ready(None) => Next::End,
                    Poll::Ready(Some(frame)) => Next::Known(frame),
                    Poll::Pending => Next::Unknown,
                };
            }
            return Poll::Ready(frame);
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
        match self.next {
            Next::Begun | Next::Unknown => self.inner.is_end_stream(),
            Next::Known(_) => false,
            Next::End => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        let known = match &self.next {
            Next::End => return SizeHint::with_exact(0),
            Next::Known(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len) as u64,
            _ => 0,
        };
        let rest = self.inner.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + known);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + known);
        }
        hint
    }
}

/// Polls a body, and returns its frame as that of all bodies.
fn poll<B>(inner: Pin<&mut B>, cx: &mut Context<'_>) -> Poll<Option<Step>>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    let convert = |mut data: B::Data| data.copy_to_bytes(data.remaining());
    let frame = ready!(inner.poll_frame(cx));
    Poll::Ready(frame.map(|frame| match frame {
        Ok(frame) => Ok(frame.map_data(convert)),
        Err(error) => Err(error.into()),
    }))
}

#[cfg(test)]
mod tests;
