//! The service of the user for the requests of one connection: panics are caught, and requests are counted.
//!
//! All versions of HTTP call the service through this, so that a panic has the same effect over each of them.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Buf as _;
use courser_http3_tokio::HttpService;
use http::{Request, Response, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::body::Body;
use super::ticket::Ticket;
use crate::cause::Cause;
use crate::events::panic_message;
use crate::tally::Record;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A service of the user on one connection.
#[derive(Clone, Debug)]
pub(crate) struct Handler<S> {
    service: S,
    record: Arc<Record>,
    /// The message of a panic in `poll_ready`, which the next request reports.
    panicked: Option<String>,
}

impl<S> Handler<S> {
    pub(crate) const fn new(service: S, record: Arc<Record>) -> Self {
        Self {
            service,
            record,
            panicked: None,
        }
    }
}

impl<S: HttpService<Body>> Service<Request<Body>> for Handler<S> {
    type Response = Response<HandlerBody<S::ResponseBody>>;
    type Error = BoxError;
    type Future = Handling<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match caught(|| self.service.poll_ready(cx)) {
            Ok(ready) => ready.map_err(Into::into),
            Err(panic) => {
                self.panicked = Some(panic);
                Poll::Ready(Ok(()))
            }
        }
    }

    fn call(&mut self, mut request: Request<Body>) -> Handling<S::Future> {
        let ticket = Ticket::new(&self.record, &request);
        let called = match self.panicked.take() {
            None => caught(|| {
                let record = &self.record;
                let extensions = &record.handlers().extensions;
                extensions.insert(&record.peer, request.extensions_mut());
                self.service.call(request)
            }),
            Some(panic) => Err(panic),
        };
        let (future, panicked) = match called {
            Ok(future) => (Some(future), None),
            Err(panic) => (None, Some(panic)),
        };
        Handling {
            future,
            panicked,
            ticket: Some(ticket),
        }
    }
}

pin_project! {
    /// The future of a response.
    pub(crate) struct Handling<F> {
        // `None` after a panic.
        #[pin]
        future: Option<F>,
        panicked: Option<String>,
        // `None` once there is a response.
        ticket: Option<Ticket>,
    }
}

impl<F, B, E> Future for Handling<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: HttpBody,
    E: Into<BoxError>,
{
    type Output = Result<Response<HandlerBody<B>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let polled = match this.future.as_mut().as_pin_mut() {
            Some(future) => caught(|| future.poll(cx)),
            None => Err(this.panicked.take().unwrap_or_default()),
        };
        let answered = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(answered)) => answered,
            Err(panic) => {
                // What the future holds may panic again when it is dropped.
                let _ = caught(|| this.future.set(None));
                return Poll::Ready(Ok(after_panic(this.ticket.take(), &panic)));
            }
        };
        let mut ticket = this.ticket.take();
        Poll::Ready(match answered {
            Ok(response) => {
                if let Some(ticket) = &mut ticket {
                    ticket.on_response(&response);
                }
                Ok(response.map(|body| HandlerBody {
                    body: Some(body),
                    ticket,
                }))
            }
            Err(error) => {
                if let Some(ticket) = &mut ticket {
                    ticket.on_failed();
                }
                Err(error.into())
            }
        })
    }
}

/// Reports a panic before there was a response, and returns the response.
#[cold]
fn after_panic<B>(ticket: Option<Ticket>, panic: &str) -> Response<HandlerBody<B>> {
    let mut response = Response::new(HandlerBody { body: None, ticket });
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response.extensions_mut().insert(Cause::HandlerPanicked);
    if let Some(ticket) = &mut response.body_mut().ticket {
        ticket.on_panic(panic, true);
    }
    response
}

pin_project! {
    /// The content of a response.
    pub(crate) struct HandlerBody<B> {
        // `None` after a panic.
        #[pin]
        body: Option<B>,
        ticket: Option<Ticket>,
    }
}

impl<B: HttpBody<Error: Into<BoxError>>> HttpBody for HandlerBody<B> {
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let mut this = self.project();
        let Some(mut body) = this.body.as_mut().as_pin_mut() else {
            return Poll::Ready(None);
        };
        let polled = match caught(|| body.as_mut().poll_frame(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(polled)) => polled,
            Err(panic) => {
                let _ = caught(|| this.body.set(None));
                if let Some(ticket) = this.ticket {
                    ticket.on_panic(&panic, false);
                }
                return Poll::Ready(Some(Err(Box::new(Cause::HandlerPanicked))));
            }
        };
        if let Some(ticket) = this.ticket {
            match &polled {
                Some(Ok(frame)) => {
                    let bytes = frame.data_ref().map_or(0, |data| data.remaining());
                    ticket.on_frame(bytes, body.is_end_stream());
                }
                Some(Err(_)) => {}
                None => ticket.on_end(),
            }
        }
        Poll::Ready(polled.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(B::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.body.as_ref();
        body.map_or(SizeHint::with_exact(0), B::size_hint)
    }
}

impl<B> fmt::Debug for HandlerBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HandlerBody")
    }
}

/// Calls code of the user. Returns the message if it panics.
fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| panic_message(&*panic))
}
