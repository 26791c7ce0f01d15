//! The body of a response at a client.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use courser_client::Body as ClientBody;
use courser_quic::runtime::{Sleep, sleep_until};
use http_body::{Body, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tonic::{Code, Status};

use super::response::clean;
use super::upload::Upload;
use crate::deadline::Deadline;
use crate::status::status_of;

/// The messages and trailers of a call, which end at its deadline. Dropping it cancels the call.
pub(super) struct ResponseBody {
    /// `None` after the deadline, or an error.
    inner: Option<ClientBody>,
    limit: Option<(Sleep, Duration)>,
    /// The call counts, and its messages are sent, until its end.
    held: Option<(Option<OwnedSemaphorePermit>, Upload)>,
}

impl ResponseBody {
    pub(super) fn new(
        inner: ClientBody,
        limit: Option<(Deadline, Duration)>,
        held: (Option<OwnedSemaphorePermit>, Upload),
    ) -> Self {
        // The response of a unary call has usually arrived, and needs no alarm.
        let limit = limit.filter(|_| !inner.is_end_stream());
        Self {
            inner: Some(inner),
            limit: limit.map(|(deadline, timeout)| (sleep_until(deadline.instant()), timeout)),
            held: Some(held),
        }
    }

    fn end(&mut self) {
        self.inner = None;
        self.limit = None;
        self.held = None;
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        let Some(inner) = &mut this.inner else {
            return Poll::Ready(None);
        };
        match Pin::new(inner).poll_frame(cx) {
            Poll::Ready(Some(Ok(mut frame))) => {
                if let Some(trailers) = frame.trailers_mut() {
                    clean(trailers);
                }
                return Poll::Ready(Some(Ok(frame)));
            }
            Poll::Ready(Some(Err(error))) => {
                this.end();
                return Poll::Ready(Some(Err(status_of(error, Code::Unavailable))));
            }
            Poll::Ready(None) => {
                this.end();
                return Poll::Ready(None);
            }
            Poll::Pending => {}
        }
        let Some((alarm, timeout)) = &mut this.limit else {
            return Poll::Pending;
        };
        let timeout = *timeout;
        if Pin::new(alarm).poll(cx).is_pending() {
            return Poll::Pending;
        }
        this.end();
        Poll::Ready(Some(Err(Deadline::exceeded(timeout))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Some(inner) => inner.size_hint(),
            None => SizeHint::with_exact(0),
        }
    }
}
