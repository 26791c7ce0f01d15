//! A service on a connection.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use courser_http3::{self as http3, Code};
use http::{Request, Response};
use tower_service::Service;

use super::body::Body;
use super::error::Error;
use super::server::{Respond, ServerConnection, Unresolved};
use crate::{Connection, Side, runtime};

/// Answers the requests of `connection` with `service`, each in a task of its own, until the
/// client closes it.
///
/// A request whose service fails is reset with `H3_INTERNAL_ERROR`; one that the client gives up
/// has its service dropped.
pub fn serve<S>(connection: Connection, service: S) -> Serve<S> {
    Serve {
        connection,
        service,
        config: http3::Config::new(Side::Server),
        drain: None,
    }
}

/// See [`serve`]. To be awaited.
#[must_use = "nothing is served before this is awaited"]
pub struct Serve<S> {
    connection: Connection,
    service: S,
    config: http3::Config,
    drain: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<S> Serve<S> {
    /// Limits, compression, extensions.
    pub fn config(mut self, config: http3::Config) -> Self {
        self.config = config;
        self
    }

    /// Leaves in an orderly way when `signal` is ready: announces it, takes what is on its way for
    /// a round trip, refuses what comes later, finishes what it has taken, and closes.
    pub fn drain(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        self.drain = Some(Box::pin(signal));
        self
    }
}

impl<S, B> IntoFuture for Serve<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Output = Result<(), Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(run(self))
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Requests that are being answered.
#[derive(Debug, Default)]
struct Active(Mutex<(usize, Option<Waker>)>);

impl Active {
    /// Ready when there is none.
    fn poll_none(&self, cx: &Context<'_>) -> Poll<()> {
        let mut active = self.lock();
        if active.0 == 0 {
            return Poll::Ready(());
        }
        active.1 = Some(cx.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, (usize, Option<Waker>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of them.
struct Counted(Arc<Active>);

impl Counted {
    fn new(active: &Arc<Active>) -> Self {
        active.lock().0 += 1;
        Self(active.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut active = self.0.lock();
        active.0 -= 1;
        let woken = if active.0 == 0 { active.1.take() } else { None };
        drop(active);
        woken.into_iter().for_each(Waker::wake);
    }
}

async fn run<S, B>(serve: Serve<S>) -> Result<(), Error>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let server = ServerConnection::new(serve.connection, serve.config);
    let service = serve.service;
    let active = Arc::new(Active::default());
    let counting = active.clone();
    let take = move |request: Unresolved| {
        let (service, counted) = (service.clone(), Counted::new(&counting));
        runtime::spawn(async move {
            answer(request, service).await;
            drop(counted);
        });
    };
    // Until the signal, for ever without one.
    let mut drain = serve
        .drain
        .unwrap_or_else(|| Box::pin(std::future::pending()));
    while let Some(request) = next(&server, drain.as_mut()).await? {
        take(request);
    }
    server.announce_going_away();
    let mut grace = pin!(runtime::sleep(server.quic().rtt().max(SHORTEST_GRACE)));
    while let Some(request) = next(&server, grace.as_mut()).await? {
        take(request);
    }
    server.go_away();
    let mut none = pin!(async {
        std::future::poll_fn(|cx| active.poll_none(cx)).await;
        // Closing would take back what the client does not have yet.
        while server.quic().has_undelivered() {
            let pause = (server.quic().rtt() / 4).max(SHORTEST_GRACE);
            runtime::sleep(pause).await;
        }
    });
    // Refuses what still comes.
    while let Some(request) = next(&server, none.as_mut()).await? {
        take(request);
    }
    server.close();
    Ok(())
}

/// The next request, or `None` when `end` is there first.
async fn next(
    server: &ServerConnection,
    mut end: Pin<&mut (impl Future<Output = ()> + ?Sized)>,
) -> Result<Option<Unresolved>, Error> {
    let mut accepted = pin!(server.accept());
    let next = std::future::poll_fn(|cx| {
        if end.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(None));
        }
        accepted.as_mut().poll(cx).map_ok(Some)
    });
    match next.await {
        Err(error) if error.is_clean_close() => Err(error),
        result => result,
    }
}

async fn answer<S, B>(request: Unresolved, mut service: S)
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: http_body::Body,
    B::Error: Into<BoxError>,
{
    let Ok((request, respond)) = request.resolve().await else {
        return;
    };
    match call(&mut service, request, &respond).await {
        // Errors of the body and of the connection have ended the stream.
        Some(Ok(response)) => drop(respond.send(response).await),
        Some(Err(_)) => respond.reset(Code::INTERNAL_ERROR),
        None => respond.reset(Code::REQUEST_CANCELLED),
    }
}

/// Runs the service; `None` if the client has given the request up meanwhile.
async fn call<S, B>(
    service: &mut S,
    request: Request<Body>,
    respond: &Respond,
) -> Option<Result<Response<B>, BoxError>>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
{
    let ready = std::future::poll_fn(|cx| service.poll_ready(cx).map_err(Into::into)).await;
    if let Err(error) = ready {
        return Some(Err(error));
    }
    let mut response = pin!(service.call(request));
    // Most services have an answer at once, and nobody has to be asked whether it is wanted.
    let mut cancelled = None;
    std::future::poll_fn(|cx| {
        if let Poll::Ready(response) = response.as_mut().poll(cx) {
            return Poll::Ready(Some(response.map_err(Into::into)));
        }
        let cancelled = cancelled.get_or_insert_with(|| Box::pin(respond.cancelled()));
        cancelled.as_mut().poll(cx).map(|()| None)
    })
    .await
}

const SHORTEST_GRACE: Duration = Duration::from_millis(1);
