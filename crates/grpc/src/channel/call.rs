//! One call: its deadline, its attempts, and the check of its response.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_client::hooks::{RequestBody, Sent};
use courser_client::{Body as ClientBody, Error as ClientError};
use courser_http3_tokio as h3;
use courser_quic::runtime;
use http::{HeaderMap, Request, Response, Uri, header, request::Parts};
use tokio::sync::OwnedSemaphorePermit;
use tonic::body::Body;
use tonic::{Code, Status};

use super::addresses::random;
use super::backend::Server;
use super::body::ResponseBody;
use super::response;
use super::shared::Shared;
use super::upload::upload;
use crate::deadline::{Deadline, timeout_of};
use crate::status::status_of;

/// Makes a call up to the header section of its response.
///
/// # Cancel safety
/// Dropping the future cancels the call.
pub(super) async fn call<B>(
    shared: Arc<Shared>,
    request: Request<B>,
) -> Result<Response<Body>, Status>
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (mut parts, body) = request.into_parts();
    let (limit, reach) = shared.limit_of(&parts.headers);
    if !parts.headers.contains_key(header::USER_AGENT) {
        let name = shared.settings.user_agent.clone();
        parts.headers.insert(header::USER_AGENT, name);
    }
    let (upload, body) = upload(body);
    // Pinned here, because each await of it below would reserve its size again.
    let answer = pin!(async {
        let permit = shared.permit().await;
        let response = shared.answer(parts, RequestBody::new(body)).await?;
        Ok::<_, Status>((response, permit))
    });
    let (response, permit) = match limit {
        None => answer.await?,
        Some((deadline, timeout)) => runtime::timeout(deadline.remaining(), answer)
            .await
            .map_err(|_| reach.exceeded(timeout))??,
    };
    let limit = limit.filter(|_| reach == Reach::Call);
    Ok(response.map(|body| Body::new(ResponseBody::new(body, limit, (permit, upload)))))
}

impl Shared {
    /// Returns the deadline of a call, the timeout that led to it, and its reach.
    fn limit_of(&self, headers: &HeaderMap) -> (Option<(Deadline, Duration)>, Reach) {
        let own = timeout_of(headers);
        let reach = own.map_or(Reach::Response, |_| Reach::Call);
        let timeout = own.or(self.settings.timeout);
        let limit = timeout.and_then(|timeout| Some((Deadline::after(timeout)?, timeout)));
        (limit, reach)
    }

    /// Waits until another call may be open.
    async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        let calls = self.calls.clone()?;
        // The semaphore is never closed.
        calls.acquire_owned().await.ok()
    }

    /// Sends a call until a server processes it.
    async fn answer(
        self: &Arc<Self>,
        mut parts: Parts,
        mut body: RequestBody,
    ) -> Result<Response<ClientBody>, Status> {
        let replay = body.handle();
        let path = parts.uri.clone();
        let mut attempts = Attempts::default();
        loop {
            let server = self.ready().await?;
            parts.uri = uri_at(&server, &path)?;
            if server.heard.is_older_than(self.settings.probe_after) {
                // A server that was started again does not know the connection. The call could not be repeated if
                // that became known by sending it: the lost server may have processed it.
                server.destination.probe().await;
            }
            match server.destination.send(&parts, body).await {
                Sent::Answered(response) => {
                    server.heard.now();
                    return response::check(response);
                }
                Sent::NotConnected(unsent) => {
                    body = unsent;
                    let random = random();
                    let mut balancer = self.balancer.lock();
                    balancer.on_lost(Instant::now(), &server, random);
                }
                Sent::Failed(error) => {
                    let again = attempts.may_repeat(&error).then(|| replay.restart());
                    match again.flatten() {
                        Some(again) => body = again,
                        None => return Err(status_of(error, Code::Unavailable)),
                    }
                }
            }
        }
    }
}

/// What a timeout limits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// The call up to its last message: the call has a timeout, which the server knows.
    Call,
    /// The call up to the header section of its response, because streams may last: the channel has a timeout.
    Response,
}

impl Reach {
    fn exceeded(self, timeout: Duration) -> Status {
        match self {
            Self::Call => Deadline::exceeded(timeout),
            Self::Response => Status::deadline_exceeded(format!(
                "the response did not begin within {timeout:?}, the timeout of the channel"
            )),
        }
    }
}

/// Counts the attempts of a call that no server has processed.
#[derive(Default)]
struct Attempts {
    unseen: u32,
    refused: u32,
}

impl Attempts {
    fn may_repeat(&mut self, error: &ClientError) -> bool {
        if !error.is_unprocessed() {
            return false;
        }
        if is_refusal(error) {
            self.refused += 1;
            return self.refused <= MAX_REFUSALS;
        }
        self.unseen += 1;
        self.unseen <= MAX_UNSEEN
    }
}

/// Returns true if a server refused this call, and not the connection as a whole.
fn is_refusal(error: &ClientError) -> bool {
    let source = std::error::Error::source(error);
    let mut causes = std::iter::successors(source, |error| (*error).source());
    causes.any(|cause| match cause.downcast_ref() {
        Some(h3::Error::Http { .. }) => true,
        _ => cause.downcast_ref().is_some_and(h2::Error::is_reset),
    })
}

/// Returns the URI of a request at a server. The path is that of the method.
fn uri_at(server: &Server, path: &Uri) -> Result<Uri, Status> {
    let mut parts = server.uri.clone().into_parts();
    parts.path_and_query = path.path_and_query().cloned();
    Uri::from_parts(parts)
        .map_err(|error| Status::internal(format!("no URI for '{path}': {error}")))
}

/// Largest number of times that a call is sent again after connections that had ended or were going away (limit K543).
const MAX_UNSEEN: u32 = 3;
/// Largest number of times that a call is sent again after a server refused it (limit K543). More of them would
/// multiply the load of a server that has too much.
const MAX_REFUSALS: u32 = 1;
