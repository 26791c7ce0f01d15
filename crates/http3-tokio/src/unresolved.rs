//! A request whose header section has not arrived yet.

use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use courser_http3::{self as http3, Code, FieldsError, RequestHead, Scope, Step};
use courser_quic::hooks::SendStreamHooks as _;
use courser_quic::telemetry::Http3Record;
use courser_quic::{StoppedError, VarInt, runtime};
use http::header::EXPECT;
use http::{Method, Request, Response, StatusCode};

use super::body::{Body, Empty};
use super::datagrams::Datagrams;
use super::early_data::EarlyData;
use super::error::Error;
use super::extension::Extension;
use super::failure::{Failure, Origin};
use super::handover::Handover;
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::respond::Respond;
use super::upgrade::Offer;
use super::{Protocol, priority};

/// A request whose stream is open and whose header section has not been read.
///
/// Dropping it resets the request as not processed, so that the client may repeat it.
#[derive(Debug)]
pub struct Unresolved {
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Box<Incoming>,
    pub(super) has_priority: bool,
    pub(super) head_timeout: Option<Duration>,
    pub(super) datagrams: Option<Datagrams>,
}

impl Unresolved {
    /// Limits the time that [`resolve`](Self::resolve) may take. No limit by default.
    pub fn head_timeout(mut self, limit: Duration) -> Self {
        self.head_timeout = Some(limit);
        self
    }

    /// Reads the header section of the request. If it is too large or malformed, responds with 431 or 400 and returns an
    /// error.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (near, far) = pair().await?;
    /// # let server = h3::ServerConnection::new(far, h3::Config::new(courser::Side::Server));
    /// # let sending = tokio::spawn(async move {
    /// #     let client = h3::Client::new(near);
    /// #     let request = http::Request::get("https://localhost/page").body(h3::Empty)?;
    /// #     Result::Ok(client.send(request).await?.status())
    /// # });
    /// # let unresolved = server.accept().await?;
    ///
    /// let (request, respond) = unresolved.resolve().await?;
    /// assert_eq!(request.uri().path(), "/page");
    /// # respond.send(http::Response::new(h3::Empty)).await?;
    /// # assert_eq!(sending.await??, 200);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the request is malformed, was cancelled by the client or does not arrive in time, or
    /// if the connection is closed.
    ///
    /// # Cancel safety
    /// Not safe: dropping the future resets the request.
    pub async fn resolve(self) -> Result<(Request<Body>, Respond), Error> {
        let (head, mut respond) = self.arrive().await?;
        respond.wait_for_service();
        Ok((head.into_request(), respond))
    }

    /// Reads the header section like [`resolve`](Self::resolve), but leaves it in its decoder.
    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn has room for `self` twice"
    )]
    pub(super) fn arrive(
        mut self,
    ) -> impl Future<Output = Result<(Arrived, Respond), Error>> + Send {
        async move {
            // Most header sections have already arrived, and need neither a timer nor memory for a wait.
            let poll = |cx: &mut Context<'_>| Poll::Ready(self.incoming.poll_step(cx));
            let step = match std::future::poll_fn(poll).await {
                Poll::Ready(Ok(step)) => step,
                Poll::Ready(Err(failure)) => return Err(Box::pin(self.fail(failure)).await),
                Poll::Pending => match Box::pin(self.wait_for_headers()).await {
                    Ok(step) => step,
                    Err(failure) => return Err(Box::pin(self.fail(failure)).await),
                },
            };
            match step {
                Step::Headers => Ok(self.begin()),
                Step::TooLarge(reason) => Err(Box::pin(self.refuse(reason)).await),
                _ => Err(Error::closed()),
            }
        }
    }

    /// Waits for the rest of the header section.
    ///
    /// The request counts towards limit K430 meanwhile, and until its service has been called and has to wait. Otherwise a
    /// client could open as many as it has streams, and complete all of them at once.
    async fn wait_for_headers(&mut self) -> Result<Step, Failure> {
        let stopped = self.outgoing.send.stopped();
        self.outgoing.wait_for_head();
        let step = std::future::poll_fn(|cx| self.incoming.poll_step(cx));
        match unless_cancelled(step, stopped, self.head_timeout).await {
            Ok(step) => step,
            Err(code) => {
                self.outgoing.reset(code);
                Err(self.incoming.fail(cancelled_error(code)))
            }
        }
    }

    /// Ends a request whose header section cannot be read. Responds to a malformed one (RFC 9114 §4.1.2), whose content
    /// the client has been asked not to send, and resets the others.
    async fn fail(mut self, failure: Failure) -> Error {
        if !is_malformed(&failure) {
            self.outgoing.reset(code_of(&failure));
            return failure.into();
        }
        match self.respond(StatusCode::BAD_REQUEST).await {
            Ok(()) => failure.into(),
            Err(error) => error,
        }
    }

    /// Sends a response without content.
    async fn respond(self, status: StatusCode) -> Result<(), Error> {
        let mut response = Response::new(Empty);
        *response.status_mut() = status;
        // Further bytes of the request are discarded.
        drop(self.incoming);
        let respond = Respond::new(self.outgoing, Method::GET, None);
        respond.send(response).await
    }

    /// Responds to a request whose header section is too large.
    async fn refuse(self, reason: &'static str) -> Error {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        match self.respond(status).await {
            Ok(()) => Error::Fields(FieldsError::TooLarge(reason)),
            Err(error) => error,
        }
    }

    /// Returns the request, whose header section has arrived.
    fn begin(self) -> (Arrived, Respond) {
        let Self {
            mut outgoing,
            mut incoming,
            has_priority,
            datagrams,
            head_timeout: _,
        } = self;
        let mut method = Method::GET;
        if let Some((request, _)) = incoming.message.request_mut() {
            if !has_priority && let Some(priority) = priority::of_request(request.headers()) {
                let level = priority::level(priority, outgoing.send.id().index());
                outgoing.send.set_level(level);
                let guard = &outgoing.guard;
                guard
                    .records
                    .record(&guard.quic, || Http3Record::PriorityUpdated {
                        stream: outgoing.send.id().value(),
                        new: priority.to_string(),
                        by_peer: true,
                    });
            }
            // The lock of the endpoint is taken only for few streams.
            if outgoing.send.is_early() && !outgoing.guard.quic.is_authenticated() {
                request.extensions_mut().insert(EarlyData);
            }
            if let Some(datagrams) = datagrams {
                request.extensions_mut().insert(datagrams);
            }
            if !outgoing.guard.extensions().is_none() {
                let extension = Extension::new(outgoing.guard.0.clone());
                request.extensions_mut().insert(extension);
            }
            method = request.method().clone();
        }
        outgoing.on_processing();
        if method != Method::CONNECT {
            let respond = Respond::new(outgoing, method, None);
            return (Arrived::Message(incoming), respond);
        }
        let (mut request, _) = take_head(&mut incoming);
        let handover = Handover::new(incoming);
        request.extensions_mut().insert(Offer(handover.clone()));
        let respond = Respond::new(outgoing, method, Some(handover.clone()));
        let request = request.map(|()| Body::offered(handover));
        (Arrived::Connect(Box::new(request)), respond)
    }
}

/// A request whose header section has arrived.
#[derive(Debug)]
pub(super) enum Arrived {
    /// A request whose header section is still in its stream.
    Message(Box<Incoming>),
    /// A CONNECT, whose stream may be upgraded.
    Connect(Box<Request<Body>>),
}

impl Arrived {
    pub(super) fn into_request(self) -> Request<Body> {
        match self {
            Self::Message(mut incoming) => {
                let (request, length) = take_head(&mut incoming);
                request.map(|()| Body::new(incoming, length))
            }
            Self::Connect(request) => *request,
        }
    }

    /// Returns true if the client waits for 100 (Continue) before it sends content (RFC 9110 §10.1.1).
    pub(super) fn expects_continue(&mut self) -> bool {
        let headers = match self {
            Self::Message(incoming) => {
                let head = incoming.message.request_mut();
                head.map(|(request, _)| request.headers())
            }
            Self::Connect(request) => Some(request.headers()),
        };
        let expect = headers.and_then(|headers| headers.get(EXPECT));
        expect.is_some_and(|expect| expect.as_bytes().eq_ignore_ascii_case(b"100-continue"))
    }

    /// Returns the protocol of an extended CONNECT (RFC 9220).
    pub(super) fn protocol(&self) -> Option<&Protocol> {
        match self {
            Self::Message(_) => None,
            Self::Connect(request) => request.extensions().get(),
        }
    }
}

/// Takes the header section, which has arrived, from a request.
fn take_head(incoming: &mut Incoming) -> RequestHead {
    let head = incoming.message.take_request();
    head.unwrap_or_else(|| (Request::new(()), None))
}

/// Waits for `future`. Returns the code for a reset if the client cancels the request, or if it takes longer
/// than `limit`.
async fn unless_cancelled<F: Future>(
    future: F,
    stopped: impl Future<Output = Result<Option<VarInt>, StoppedError>> + Send,
    limit: Option<Duration>,
) -> Result<F::Output, Code> {
    let (mut future, mut stopped) = (pin!(future), pin!(stopped));
    // Most header sections have already arrived and need no timer.
    let mut late = None;
    std::future::poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Ok(output));
        }
        if let Poll::Ready(Ok(Some(_))) = stopped.as_mut().poll(cx) {
            return Poll::Ready(Err(Code::REQUEST_CANCELLED));
        }
        let Some(limit) = limit else {
            return Poll::Pending;
        };
        let late = late.get_or_insert_with(|| Box::pin(runtime::sleep(limit)));
        late.as_mut().poll(cx).map(|()| Err(Code::REQUEST_REJECTED))
    })
    .await
}

/// Returns the error of a request that ends before its header section has arrived.
const fn cancelled_error(code: Code) -> http3::Error {
    http3::Error {
        code,
        scope: Scope::Stream,
        reason: match code {
            Code::REQUEST_REJECTED => "the header section of the request did not arrive in time",
            _ => "the client cancelled the request",
        },
    }
}

/// Returns true if a request violates the rules for messages (RFC 9114 §4.1.2).
const fn is_malformed(failure: &Failure) -> bool {
    matches!(
        failure,
        Failure::Http {
            origin: Origin::Local,
            code: Code::MESSAGE_ERROR,
            ..
        }
    )
}

/// Returns the status of the response to a request whose header section caused this error, if there was one.
pub(super) const fn refused_status(error: &Error) -> Option<StatusCode> {
    match error {
        Error::Http {
            origin: Origin::Local,
            code: Code::MESSAGE_ERROR,
            ..
        } => Some(StatusCode::BAD_REQUEST),
        Error::Fields(FieldsError::TooLarge(_)) => {
            Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
        }
        _ => None,
    }
}

/// Returns the code with which one direction of a stream is reset after the other has failed.
fn code_of(failure: &Failure) -> Code {
    match failure {
        Failure::Http { code, .. } => *code,
        _ => Code::REQUEST_CANCELLED,
    }
}
