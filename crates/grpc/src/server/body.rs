//! The bodies of calls at a server.

use std::error::Error as StdError;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use courser_http3_tokio as h3;
use courser_server::BodyError;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tonic::{Code, Status};

use super::limit::Limit;
use crate::status::code_of;

pin_project! {
    /// The body of a request behind [`ServerLayer`](super::ServerLayer). Its errors are statuses.
    #[derive(Debug)]
    pub struct RequestBody<B> {
        #[pin]
        inner: B,
    }
}

impl<B> RequestBody<B> {
    pub(super) fn new(inner: B) -> Self {
        Self { inner }
    }
}

impl<B> Body for RequestBody<B>
where
    B: Body,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    type Data = B::Data;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, Status>>> {
        let frame = self.project().inner.poll_frame(cx);
        frame.map_err(|error| received_status(error.into()))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Returns the status of a body that broke off. The loss of its connection cancels a call.
fn received_status(error: Box<dyn StdError + Send + Sync>) -> Status {
    let code = match error.downcast_ref() {
        // Their source is that of the error that they contain.
        Some(BodyError::Http3(error)) => code_of_h3(error),
        Some(BodyError::Tcp(error)) => code_of_tcp(error),
        _ => match error.downcast_ref() {
            Some(error) => code_of_h3(error),
            None => code_of(&*error),
        },
    };
    let mut status = Status::new(code.unwrap_or(Code::Unknown), error.to_string());
    status.set_source(error.into());
    status
}

fn code_of_h3(error: &h3::Error) -> Option<Code> {
    match error {
        h3::Error::Connection(_) => Some(Code::Cancelled),
        error => code_of(error),
    }
}

fn code_of_tcp(error: &hyper::Error) -> Option<Code> {
    let cause = error.source().and_then(|it| it.downcast_ref::<h2::Error>());
    match cause {
        Some(cause) if !cause.is_io() && !cause.is_go_away() => code_of(cause),
        // HTTP/1.1 has no other failure.
        _ => Some(Code::Cancelled),
    }
}

pin_project! {
    /// The body of a response behind [`ServerLayer`](super::ServerLayer), which ends at the deadline of its call.
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        // `None` after the deadline, when the stream of the handler is dropped.
        #[pin]
        inner: Option<B>,
        limit: Option<Limit>,
    }
}

impl<B> ResponseBody<B> {
    pub(super) fn new(inner: B, limit: Option<Limit>) -> Self {
        Self {
            inner: Some(inner),
            limit,
        }
    }
}

impl<B> Default for ResponseBody<B> {
    fn default() -> Self {
        Self {
            inner: None,
            limit: None,
        }
    }
}

impl<B: Body> Body for ResponseBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut this = self.project();
        let Some(inner) = this.inner.as_mut().as_pin_mut() else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(frame) = inner.poll_frame(cx) {
            return Poll::Ready(frame);
        }
        let Some(limit) = this.limit else {
            return Poll::Pending;
        };
        let status = ready!(limit.poll(cx));
        this.inner.set(None);
        let mut trailers = HeaderMap::with_capacity(2);
        // Fails for messages that no field can have, and this one is ours.
        let added = status.add_header(&mut trailers);
        debug_assert!(added.is_ok(), "the message of a deadline is valid");
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
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
