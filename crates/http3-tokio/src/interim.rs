//! Interim responses of services on a server.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker, ready};

use bytes::Bytes;
use courser_base::foreign::ForeignWaker;
use courser_base::{Held, Mutex};
use courser_quic::hooks::{Ticket, Waiters};
use http::{Response, StatusCode};

use super::error::Error;
use super::respond::{Respond, is_interim};

/// Sends interim responses (1xx) to one request before its final response: 103 (Early Hints, RFC 8297) lets a
/// browser load resources while the response is being computed.
///
/// It is in the extensions of each request if [`Serve::interim_responses`](super::Serve::interim_responses) or
/// `courser::server::Server::interim_responses` is on, over every protocol, so that extractors always find it.
/// Clones send to the same request.
///
/// Nothing is sent where the connection does not support interim responses, such as to clients of HTTP/1.0, and the
/// result is [`InterimOutcome::Unsupported`]. That is not an error: clients may ignore interim responses (RFC 9110
/// §15.2), so a service need not check the protocol. Some old clients of HTTP/1.1 take an interim response for the final
/// one (RFC 8297 §3); a service whose clients include them should check the version of the request.
///
/// ```
/// # mod courser { pub use courser_quic::*; pub use courser_http3_tokio as h3; }
/// # use courser::h3;
/// use axum::Extension;
///
/// async fn page(Extension(interim): Extension<h3::Interim>) -> String {
///     let hints = http::Response::builder()
///         .status(http::StatusCode::EARLY_HINTS)
///         .header("link", "</style.css>; rel=preload; as=style")
///         .body(())
///         .expect("valid fields");
///     // The page is returned even if the hint could not be sent.
///     let _ = interim.send(hints).await;
///     render().await
/// }
/// # async fn render() -> String { String::new() }
/// # let _: axum::Router = axum::Router::new().route("/", axum::routing::get(page));
/// ```
#[derive(Clone, Debug)]
pub struct Interim(Target);

/// The place to which interim responses are sent.
#[derive(Clone, Debug)]
enum Target {
    Unsupported,
    Http3(Arc<Unanswered>),
    Other(Arc<dyn InterimSink>),
}

/// Accepts the interim responses to one request over a protocol other than HTTP/3.
pub trait InterimSink: std::fmt::Debug + Send + Sync {
    /// Sends a response whose status is that of an interim response, without waiting.
    ///
    /// # Errors
    /// Returns the reason why it was not sent.
    fn send(&self, response: Response<()>) -> Result<InterimOutcome, InterimError>;
}

/// The outcome of sending an interim response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InterimOutcome {
    /// The response was written to the stream.
    Sent,
    /// The response was not sent, because the protocol of the request does not support it here.
    Unsupported,
}

/// The reason why an interim response was not sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InterimError {
    /// The status is not that of an interim response, or is 101, which HTTP/3 does not support (RFC 9114 §4.5).
    /// Reported over every protocol.
    #[error("status {0} is not an interim status: use 100 or 102 to 199")]
    Status(StatusCode),
    /// The service has returned its response.
    #[error("the final response has already started")]
    Answered,
    /// The client has cancelled the request, the connection is closed, or the service has failed.
    #[error("the request was cancelled")]
    GivenUp,
    /// Earlier interim responses fill the queue of a connection of HTTP/1.1 or HTTP/2, because the client does not
    /// read them.
    #[error("the client has not read earlier interim responses")]
    TooManyUnread,
    /// The response could not be written: the client has just cancelled the request or does not accept a header
    /// section of this size, or the connection is closed.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl InterimError {
    /// Returns the reason why the connection is over, if that is the cause.
    pub fn connection_error(&self) -> Option<&courser_quic::ConnectionError> {
        match self {
            Self::Failed(error) => error.connection_error(),
            _ => None,
        }
    }

    /// Returns true if the connection was lost because of a timeout.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Failed(error) if error.is_timeout())
    }
}

impl Interim {
    /// Creates the handle of a request whose protocol does not support interim responses here.
    pub(crate) const fn unsupported() -> Self {
        Self(Target::Unsupported)
    }

    /// Creates the handle of a request whose interim responses `sink` accepts.
    pub(crate) fn to(sink: Arc<dyn InterimSink>) -> Self {
        Self(Target::Other(sink))
    }

    /// Sends an interim response without `content-length`, which it must not have (RFC 9110 §8.6), and without
    /// connection-specific fields of HTTP/1.1.
    ///
    /// Returns when the response is written, and sent as far as flow and congestion control allow. It waits
    /// while the client grants no credit, except for 512 bytes, or while the stream has
    /// [`TransportConfig::unsent_limit`](courser_quic::TransportConfig) bytes to send. So no more than that is
    /// stored for a client that does not read. Interim responses arrive before the final response, in the order
    /// of the calls.
    ///
    /// Clients limit the number of interim responses before the final one: those of courser to 8, including 100
    /// (Continue).
    ///
    /// # Errors
    /// Returns an [`InterimError`]. A service that uses a valid status may ignore it: if the client has
    /// cancelled, the service is dropped.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready sends nothing or, with the next write, the whole response.
    pub async fn send(&self, response: Response<()>) -> Result<InterimOutcome, InterimError> {
        let status = response.status();
        if !is_interim(status) {
            return Err(InterimError::Status(status));
        }
        let unanswered = match &self.0 {
            Target::Unsupported => return Ok(InterimOutcome::Unsupported),
            Target::Other(sink) => return sink.send(response),
            Target::Http3(unanswered) => unanswered,
        };
        let mut sending = Sending {
            unanswered,
            response: Some(response),
            ticket: None,
        };
        std::future::poll_fn(|cx| sending.poll(cx)).await?;
        Ok(InterimOutcome::Sent)
    }
}

/// A request without its final response, to which interim responses may be written.
#[derive(Debug)]
struct Unanswered {
    state: Mutex<UnansweredState>,
    /// The tasks that wait for capacity of the stream, which itself wakes only one. They have a separate lock,
    /// because a wakeup may happen during a write.
    waiting: Mutex<Waiters>,
}

#[derive(Debug)]
enum UnansweredState {
    Open(Open),
    Answered,
    GivenUp,
}

#[derive(Debug)]
struct Open {
    respond: Respond,
    /// Encoded bytes that are not written yet. The next writer must write them first, because the client's
    /// decoder counts sections, so a response cannot be withdrawn once its writing has started.
    left: Bytes,
}

impl Open {
    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.respond.poll_write(cx, &mut self.left)
    }
}

impl Unanswered {
    /// Ends the interim responses of the request, if they are possible.
    fn end(&self, end: UnansweredState) -> Option<Open> {
        let mut state = lock(&self.state);
        match std::mem::replace(&mut *state, end) {
            UnansweredState::Open(open) => {
                drop(state);
                self.wake_all();
                Some(open)
            }
            before => {
                *state = before;
                None
            }
        }
    }

    fn wake_all(&self) {
        let mut woken = Vec::new();
        lock(&self.waiting).wake_all(&mut woken);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl Wake for Unanswered {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }
}

/// A call of [`Interim::send`].
struct Sending<'a> {
    unanswered: &'a Arc<Unanswered>,
    /// The response until it is encoded.
    response: Option<Response<()>>,
    ticket: Ticket,
}

impl Sending<'_> {
    fn poll(&mut self, cx: &Context<'_>) -> Poll<Result<(), InterimError>> {
        let unanswered = self.unanswered;
        let mut waker = Some(ForeignWaker::of(cx));
        let mut state = lock(&unanswered.state);
        let open = match &mut *state {
            UnansweredState::Open(open) => open,
            UnansweredState::Answered => return Poll::Ready(Err(InterimError::Answered)),
            UnansweredState::GivenUp => return Poll::Ready(Err(InterimError::GivenUp)),
        };
        loop {
            ready!(self.poll_written(&mut waker, open))?;
            let Some(response) = self.response.take() else {
                break;
            };
            open.left = open.respond.encode_interim(response)?.into();
        }
        Poll::Ready(Ok(()))
    }

    /// Returns `Ready` when all bytes are written.
    fn poll_written(
        &mut self,
        waker_of_task: &mut Option<ForeignWaker>,
        open: &mut Open,
    ) -> Poll<Result<(), Error>> {
        if open.left.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let waker = Waker::from(self.unanswered.clone());
        let mut cx_of_all = Context::from_waker(&waker);
        if let Poll::Ready(written) = open.poll_written(&mut cx_of_all) {
            return Poll::Ready(written);
        }
        if let Some(waker) = waker_of_task.take() {
            lock(&self.unanswered.waiting).register(&mut self.ticket, waker);
        }
        // The stream may have capacity now, and the tasks woken for it did not include this one.
        open.poll_written(&mut cx_of_all)
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        lock(&self.unanswered.waiting).forget(&mut self.ticket);
    }
}

/// A response whose service may send interim responses before it. Dropping it resets the request.
#[derive(Debug)]
pub(super) struct InterimGuard(Arc<Unanswered>);

impl InterimGuard {
    pub(super) fn new(respond: Respond) -> Self {
        Self(Arc::new(Unanswered {
            state: Mutex::new(UnansweredState::Open(Open {
                respond,
                left: Bytes::new(),
            })),
            waiting: Mutex::default(),
        }))
    }

    /// Returns the handle with which the service sends interim responses.
    pub(super) fn interim(&self) -> Interim {
        Interim(Target::Http3(self.0.clone()))
    }

    /// Records that the request waits for its service, and implements [`Respond::cancelled`] while that holds the response.
    pub(super) fn wait_for_service(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let mut state = lock(&self.0.state);
        let UnansweredState::Open(open) = &mut *state else {
            unreachable!("open until this is consumed")
        };
        open.respond.wait_for_service();
        open.respond.cancelled()
    }

    /// Returns the response from a service that failed.
    pub(super) fn on_failed(self) -> Respond {
        self.end(UnansweredState::GivenUp).respond
    }

    /// Returns the response when the service has responded, after writing the remaining interim responses.
    /// Returns `None` if the client has cancelled the request.
    pub(super) async fn on_answered(self) -> Option<Respond> {
        let mut open = self.end(UnansweredState::Answered);
        match std::future::poll_fn(|cx| open.poll_written(cx)).await {
            Ok(()) => Some(open.respond),
            Err(_) => {
                open.respond.give_up();
                None
            }
        }
    }

    fn end(&self, end: UnansweredState) -> Open {
        let open = self.0.end(end);
        open.expect("open until this is consumed")
    }
}

impl Drop for InterimGuard {
    fn drop(&mut self) {
        drop(self.0.end(UnansweredState::GivenUp));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> Held<'_, T> {
    mutex.hold()
}
