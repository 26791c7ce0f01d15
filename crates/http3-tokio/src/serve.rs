//! Serving a connection with a tower service.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use courser_http3::{self as http3, Code};
use courser_quic::hooks::ConnectionHooks;
use courser_quic::{Connection, Side, runtime};
use http::header::RETRY_AFTER;
use http::{HeaderValue, Request, Response, StatusCode};

use super::admission::{Admission, AdmitAll, TimeLimit};
use super::body::Body;
use super::driver::SETTINGS_TIMEOUT;
use super::error::Error;
use super::executor::{ActiveRequests, Executor, Sending};
use super::extension::Extension;
use super::failure::Origin;
use super::http_service::{BoxError, HttpService};
use super::interim::InterimGuard;
use super::respond::Respond;
use super::server::ServerConnection;
use super::unresolved::{Arrived, Unresolved, refused_status};
use super::{Empty, Protocol};

/// Responds to the requests of `connection` with `service`, concurrently, until the client closes it.
///
/// Responses that are ready at once are sent in the task that reads the connection. All others, and those of
/// services that compute for long, run in tasks of their own.
///
/// A request whose service fails is reset with `H3_INTERNAL_ERROR`. If the client cancels a request, its service
/// is dropped.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result {
/// # let (near, far) = pair().await?;
/// use axum::{Router, routing::get};
///
/// # let connection = far;
/// let app = Router::new().route("/", get(|| async { "hello" }));
/// tokio::spawn(h3::serve(connection, app).into_future());
/// # let client = h3::Client::new(near);
/// # let request = http::Request::get("https://localhost/").body(h3::Empty)?;
/// # assert_eq!(client.send(request).await?.status(), 200);
/// # Ok(()) }
/// ```
pub fn serve<S: HttpService<Body>>(connection: Connection, service: S) -> Serve<S> {
    Serve::new(connection, service)
}

/// The future of [`serve`], which must be awaited.
#[must_use = "nothing is served before this is awaited"]
pub struct Serve<S> {
    connection: Connection,
    service: S,
    config: http3::Config,
    head_timeout: Duration,
    settings_timeout: Duration,
    sends_interim: bool,
    protocols: Option<Vec<Protocol>>,
    drain: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    on_extension: Option<Box<dyn FnOnce(Extension) + Send>>,
}

impl<S> Serve<S> {
    pub(super) fn new(connection: Connection, service: S) -> Self {
        Self {
            connection,
            service,
            config: http3::Config::new(Side::Server),
            head_timeout: HEAD_TIMEOUT,
            settings_timeout: SETTINGS_TIMEOUT,
            sends_interim: false,
            protocols: None,
            drain: None,
            on_extension: None,
        }
    }

    /// Sets the limits, compression and extensions of HTTP/3.
    pub fn config(mut self, config: http3::Config) -> Self {
        self.config = config;
        self
    }

    /// Limits the time from the opening of a stream to the end of its header section. Slower requests are
    /// refused with `H3_REQUEST_REJECTED`. Default 10 seconds.
    pub fn head_timeout(mut self, limit: Duration) -> Self {
        self.head_timeout = limit;
        self
    }

    /// Limits the time for the client's SETTINGS, the first frame (RFC 9114 §6.2.1), from the end of the
    /// handshake. A connection without them is closed with `H3_MISSING_SETTINGS`. Default 30 seconds.
    pub fn settings_timeout(mut self, limit: Duration) -> Self {
        self.settings_timeout = limit;
        self
    }

    /// Enables extended CONNECT for these protocols. The response to other protocols is 501 (RFC 9220 §3),
    /// without calling the service.
    ///
    /// If only [`Config::extended_connect`](http3::Config::extended_connect) is set, the service receives
    /// requests for all protocols.
    pub fn protocols(mut self, protocols: impl IntoIterator<Item = Protocol>) -> Self {
        self.protocols = Some(protocols.into_iter().collect());
        self
    }

    /// Adds an [`Interim`](super::Interim) to the extensions of each request, through which the service can send
    /// interim responses. Off by default, because it costs each request some allocations.
    pub fn interim_responses(mut self, is_on: bool) -> Self {
        self.sends_interim = is_on;
        self
    }

    /// Calls `begin` with the streams and frames that [`Config::extensions`](http3::Config::extensions) claims,
    /// before the first request is accepted. It normally spawns a task that accepts the streams.
    pub fn extension(mut self, begin: impl FnOnce(Extension) + Send + 'static) -> Self {
        self.on_extension = Some(Box::new(begin));
        self
    }

    /// Drains the connection when `signal` completes: announces it, accepts requests for one more round trip,
    /// refuses later ones, completes those accepted, and closes.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (near, far) = pair().await?;
    /// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    /// let app = axum::Router::new();
    /// let serve = h3::serve(far, app).drain(async { drop(stopped.await) });
    /// let serving = tokio::spawn(serve.into_future());
    /// # let client = h3::Client::new(near);
    /// stop.send(()).expect("the server waits for it");
    /// serving.await??; // the client has received GOAWAY, and its requests are answered
    /// # drop(client);
    /// # Ok(()) }
    /// ```
    pub fn drain(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        self.drain = Some(Box::pin(signal));
        self
    }
}

type Serving = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

impl<S: HttpService<Body>> IntoFuture for Serve<S> {
    type Output = Result<(), Error>;
    type IntoFuture = Serving;

    fn into_future(self) -> Self::IntoFuture {
        self.admitting(AdmitAll)
    }
}

impl<S> Serve<S> {
    /// Serves the requests that `admission` admits.
    pub(super) fn admitting<A>(self, admission: A) -> Serving
    where
        A: Admission,
        S: HttpService<A::Body>,
    {
        Box::pin(run(self, admission))
    }
}

async fn run<S, A>(serve: Serve<S>, admission: A) -> Result<(), Error>
where
    A: Admission,
    S: HttpService<A::Body>,
{
    let mut config = serve.config;
    config.extended_connect |= serve.protocols.is_some();
    let server = ServerConnection::begin(serve.connection, config, serve.settings_timeout);
    server.set_longest_first(serve.head_timeout);
    if let Some(begin) = serve.on_extension {
        begin(server.extension());
    }
    let settings = Arc::new(RequestSettings {
        protocols: serve.protocols,
        sends_interim: serve.sends_interim,
        admission,
    });
    let service = serve.service;
    let active = Arc::new(ActiveRequests::default());
    let mut executor = Executor::new(active.clone(), server.waiting_responses());
    let limit = serve.head_timeout;
    let mut begin = move |request: Unresolved| {
        let request = request.head_timeout(limit);
        answer(request, service.clone(), settings.clone())
    };
    // Completes at the signal, or never without one.
    let drain = serve
        .drain
        .unwrap_or_else(|| Box::pin(std::future::pending()));
    take_until(drain, &server, &mut executor, &mut begin).await?;
    server.announce_going_away();
    let grace = runtime::sleep(server.quic().rtt().max(SHORTEST_GRACE));
    take_until(grace, &server, &mut executor, &mut begin).await?;
    server.go_away();
    let none = async {
        // Streams that wait are accepted, or found to be none of requests, by the task that polls this too.
        std::future::poll_fn(|cx| match server.has_no_arrivals() {
            true => active.poll_none(cx),
            false => Poll::Pending,
        })
        .await;
        // Closing now would discard responses that the client has not received yet.
        while server.quic().has_undelivered() {
            let pause = (server.quic().rtt() / 4).max(SHORTEST_GRACE);
            runtime::sleep(pause).await;
        }
    };
    // Refuses requests that still arrive.
    take_until(none, &server, &mut executor, &mut begin).await?;
    server.close();
    Ok(())
}

/// Accepts requests and responds to them until `end` completes.
async fn take_until<F>(
    end: impl Future<Output = ()>,
    server: &ServerConnection,
    executor: &mut Executor<F>,
    begin: &mut impl FnMut(Unresolved) -> F,
) -> Result<(), Error>
where
    F: Future<Output = Option<Sending>> + Send + 'static,
{
    let mut end = pin!(end);
    loop {
        let mut accepted = pin!(server.accept());
        let next = std::future::poll_fn(|cx| {
            if end.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            let accepted = accepted.as_mut().poll(cx);
            if accepted.is_pending() {
                executor.pause();
            }
            accepted.map(Some)
        });
        let Some(request) = next.await.transpose()? else {
            return Ok(());
        };
        executor.begin(begin(request));
        executor.yield_if_due().await;
    }
}

/// The settings for all requests of a connection.
#[derive(Debug)]
struct RequestSettings<A> {
    /// The accepted protocols of extended CONNECT, or `None` for all.
    protocols: Option<Vec<Protocol>>,
    sends_interim: bool,
    admission: A,
}

#[expect(
    clippy::manual_async_fn,
    reason = "an async fn has room for each mutable argument twice, and this future is moved for each request"
)]
fn answer<S, A>(
    request: Unresolved,
    mut service: S,
    settings: Arc<RequestSettings<A>>,
) -> impl Future<Output = Option<Sending>> + Send
where
    A: Admission,
    S: HttpService<A::Body>,
{
    async move {
        let (mut request, mut respond) = match request.arrive().await {
            Ok(arrived) => arrived,
            Err(error) => {
                if let Some(status) = refused_status(&error) {
                    settings.admission.on_refused(status, None);
                }
                return None;
            }
        };
        // Boxed, because few requests need it, and the future of each would reserve memory for it.
        if request.expects_continue()
            && Box::pin(respond.interim(continue_response()))
                .await
                .is_err()
        {
            return None;
        }
        if let (Some(protocol), Some(accepted)) = (request.protocol(), &settings.protocols)
            && !accepted.contains(protocol)
        {
            let status = StatusCode::NOT_IMPLEMENTED;
            let (head, _) = request.into_request().into_parts();
            settings.admission.on_refused(status, Some(&head));
            Box::pin(refuse(respond, status)).await;
            return None;
        }
        if settings.sends_interim {
            // Boxed, so that requests without it reserve no memory for it.
            return Box::pin(answer_after_interim(request, service, respond, settings)).await;
        }
        let request = || request.into_request();
        let call = call(&mut service, &settings.admission, request, || {
            respond.wait_for_service();
            respond.cancelled()
        });
        let (outcome, in_flight) = call.await;
        match outcome {
            Outcome::Response(response) if respond.is_upgrade(&response) => {
                drop(in_flight);
                // The future of the request is freed while the stream is used, perhaps for hours.
                return Some(Box::pin(respond.hand_over(response.map(drop))));
            }
            Outcome::Response(response) if is_large(&response) => {
                return Some(Box::pin(respond.send_with(response, in_flight)));
            }
            // Errors of the body and of the connection have ended the stream.
            Outcome::Response(response) => drop(respond.send(response).await),
            Outcome::Refused(status) => Box::pin(refuse(respond, status)).await,
            Outcome::Failed(error) => respond.reset(code_of(&*error)),
            Outcome::Cancelled => respond.give_up(),
        }
        None
    }
}

/// Returns true if a response is so long that it probably has to wait for the client.
fn is_large<B: http_body::Body>(response: &Response<B>) -> bool {
    response.body().size_hint().lower() >= LARGE
}

/// Like the end of [`answer`], but the service may send interim responses before the final one.
async fn answer_after_interim<S, A>(
    request: Arrived,
    mut service: S,
    respond: Respond,
    settings: Arc<RequestSettings<A>>,
) -> Option<Sending>
where
    A: Admission,
    S: HttpService<A::Body>,
{
    let guard = InterimGuard::new(respond);
    let request = || {
        let mut request = request.into_request();
        request.extensions_mut().insert(guard.interim());
        request
    };
    let call = call(&mut service, &settings.admission, request, || {
        guard.wait_for_service()
    });
    let (outcome, in_flight) = call.await;
    let response = match outcome {
        Outcome::Response(response) => response,
        Outcome::Refused(status) => {
            refuse(guard.on_failed(), status).await;
            return None;
        }
        Outcome::Failed(error) => {
            guard.on_failed().reset(code_of(&*error));
            return None;
        }
        Outcome::Cancelled => {
            guard.on_failed().give_up();
            return None;
        }
    };
    let respond = guard.on_answered().await?;
    if respond.is_upgrade(&response) {
        drop(in_flight);
        return Some(Box::pin(respond.hand_over(response.map(drop))));
    }
    Some(Box::pin(respond.send_with(response, in_flight)))
}

/// Responds to a request without calling its service. A client may repeat a request that the server had no memory or no
/// time for.
async fn refuse(respond: Respond, status: StatusCode) {
    let mut response = Response::new(Empty);
    *response.status_mut() = status;
    if status == StatusCode::SERVICE_UNAVAILABLE {
        let soon = HeaderValue::from_static("1");
        response.headers_mut().insert(RETRY_AFTER, soon);
    }
    drop(respond.send(response).await);
}

fn continue_response() -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = http::StatusCode::CONTINUE;
    response
}

/// Returns the code with which a request is reset when its service failed. If the client's request caused the
/// failure, its code is kept.
fn code_of(error: &(dyn std::error::Error + 'static)) -> Code {
    let chain = std::iter::successors(Some(error), |error| error.source());
    let of_client = chain.filter_map(|error| match error.downcast_ref() {
        Some(Error::Http {
            origin: Origin::Local,
            code,
            ..
        }) => Some(*code),
        _ => None,
    });
    of_client.last().unwrap_or(Code::INTERNAL_ERROR)
}

/// Completes when the client has cancelled the request.
type Cancelled = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The outcome of calling a service.
enum Outcome<B> {
    Response(Response<B>),
    /// The response has this status, and the service was not called.
    Refused(StatusCode),
    Failed(BoxError),
    /// The client has cancelled the request.
    Cancelled,
}

/// Calls the service with a request as soon as it is ready, if the request is admitted. `on_wait` is called if its
/// response is not ready at once.
async fn call<S, A>(
    service: &mut S,
    admission: &A,
    request: impl FnOnce() -> Request<Body>,
    on_wait: impl FnMut() -> Cancelled,
) -> (Outcome<S::ResponseBody>, Option<A::InFlight>)
where
    A: Admission,
    S: HttpService<A::Body>,
{
    let mut limit = TimeLimit::new(admission.time_limit());
    let is_ready = match ready(service, &mut limit).await {
        Ok(is_ready) => is_ready,
        Err(error) => return (Outcome::Failed(error), None),
    };
    let (in_flight, refusal);
    // Pinned where it is created, because the future would otherwise reserve memory for it twice.
    let mut response = pin!({
        let (guard, admitted) = admission.admit(request());
        in_flight = guard;
        refusal = admitted.as_ref().err().copied();
        let admitted = admitted.ok().filter(|_| is_ready);
        admitted.map(|request| service.call(request))
    });
    let outcome = match response.as_mut().as_pin_mut() {
        Some(response) => respond_in_time(response, &mut limit, on_wait).await,
        None => Outcome::Refused(refusal.unwrap_or(StatusCode::SERVICE_UNAVAILABLE)),
    };
    (outcome, Some(in_flight))
}

/// Waits until the service is ready for a request. Returns false if that takes too long.
async fn ready<S: HttpService<B>, B>(
    service: &mut S,
    limit: &mut TimeLimit,
) -> Result<bool, BoxError> {
    std::future::poll_fn(|cx| match service.poll_ready(cx) {
        Poll::Ready(ready) => Poll::Ready(ready.map(|()| true).map_err(Into::into)),
        Poll::Pending => limit.poll(cx).map(|()| Ok(false)),
    })
    .await
}

/// Waits for the response of the service.
async fn respond_in_time<B, E: Into<BoxError>>(
    mut response: Pin<&mut impl Future<Output = Result<Response<B>, E>>>,
    limit: &mut TimeLimit,
    mut on_wait: impl FnMut() -> Cancelled,
) -> Outcome<B> {
    // Most services respond at once, so that the check for a cancelled request can be skipped.
    let mut waiting = None;
    std::future::poll_fn(|cx| {
        if let Poll::Ready(response) = response.as_mut().poll(cx) {
            return Poll::Ready(match response {
                Ok(response) => Outcome::Response(response),
                Err(error) => Outcome::Failed(error.into()),
            });
        }
        let cancelled = waiting.get_or_insert_with(&mut on_wait);
        if cancelled.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Outcome::Cancelled);
        }
        let late = Outcome::Refused(StatusCode::SERVICE_UNAVAILABLE);
        limit.poll(cx).map(|()| late)
    })
    .await
}

/// Length of a response from which on it is sent by a future of its own: the allocation costs little beside it.
const LARGE: u64 = 16 * 1024;

const SHORTEST_GRACE: Duration = Duration::from_millis(1);
/// Default limit for header sections, against clients that open requests and send little (A88).
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
