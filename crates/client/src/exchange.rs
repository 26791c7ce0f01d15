//! One request with its response, and its repetitions by a [`RetryPolicy`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Response;
use http::request::Parts;
use http_body_util::BodyExt as _;

use super::body::Body;
use super::core::Core;
use super::error::Error;
use super::origin::Origin;
use super::request_body::RequestBody;
use super::retry::RetryPolicy;
use super::sending::send_once;
use super::timing::Timing;

/// Sends a request to its origin, and repeats it if it was not processed, or by the policy of the request or of the
/// client. An expectation that the server refuses is removed from it.
pub(super) async fn exchange(
    core: &Arc<Core>,
    parts: &mut Parts,
    body: RequestBody,
) -> Result<Response<Body>, Error> {
    let own = parts.extensions.get::<RetryPolicy>();
    let outcome = match own.or(core.settings.retry.as_ref()).cloned() {
        None => send_once(core, parts, body, Timing::new()).await,
        // Boxed, so that requests without a policy reserve no memory for it.
        Some(policy) => Box::pin(by_policy(core, &policy, parts, body)).await,
    };
    outcome.map_err(|error| error.of_request(&parts.method, &parts.uri))
}

/// Sends a request, and repeats it by a policy.
async fn by_policy(
    core: &Arc<Core>,
    policy: &RetryPolicy,
    parts: &mut Parts,
    mut body: RequestBody,
) -> Result<Response<Body>, Error> {
    let origin = Origin::of(&parts.uri)?;
    let began = Instant::now();
    let replay = body.handle();
    core.budgets.on_request(&origin, policy);
    for repeats in 0.. {
        let timing = Timing::repeated(began, repeats);
        let outcome = send_once(core, parts, body, timing).await;
        let outcome = outcome.map_err(|error| error.of_request(&parts.method, &parts.uri));
        let Some(wait) = policy.wait_after(&outcome, &parts.method, repeats) else {
            return outcome.map_err(|error| error.repeated(repeats));
        };
        let limit = core.settings.total_timeout;
        let is_too_late = limit.is_some_and(|limit| began.elapsed() + wait >= limit);
        if is_too_late || !replay.is_possible() {
            return outcome.map_err(|error| error.repeated(repeats));
        }
        if !core.budgets.permit(&origin, policy) {
            return outcome.map_err(|error| error.repeated(repeats).without_budget());
        }
        let Some(again) = replay.restart() else {
            return outcome.map_err(|error| error.repeated(repeats));
        };
        body = again;
        if let Ok(response) = outcome {
            finish(response).await;
        }
        tokio::time::sleep(wait).await;
    }
    unreachable!("the loop ends with the last retry")
}

/// Reads the rest of a response that is not returned, if it is short, so that its connection can be used again.
async fn finish(response: Response<Body>) {
    let body = http_body_util::Limited::new(response.into_body(), MAX_DRAINED);
    let _ = tokio::time::timeout(DRAIN_TIME, body.collect()).await;
}

/// Largest content of a response that is read to its end before a retry. Error pages are shorter.
const MAX_DRAINED: usize = 64 << 10;
const DRAIN_TIME: Duration = Duration::from_millis(100);
