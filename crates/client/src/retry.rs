//! Repeated requests after errors and statuses that may pass: delays, `retry-after`, and a budget.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use courser_base::Mutex;
use http::{HeaderMap, Method, Response, StatusCode, header};

use super::body::Body;
use super::error::Error;
use super::origin::Origin;

/// The rules by which a client repeats requests after failures that may pass. Without one, it only repeats requests
/// that were certainly not processed, and at once ([`ClientBuilder::retries`](super::ClientBuilder::retries)).
///
/// A request is repeated after an error that is [retryable](Error::is_retryable), and after a response with one of
/// the [statuses](Self::statuses), if its method is idempotent (RFC 9110 §9.2.2) and its body can be sent again. A
/// body in memory (text, bytes, JSON) always can. Of a stream the client keeps what it has sent, at most 1 MiB. Otherwise
/// the error or the response is returned; the text of an error says how often the request was repeated.
///
/// ```
/// # mod courser { pub use courser_quic::*; pub use courser_client::{self as client, Client}; }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
///
/// use courser::Client;
/// use courser::client::RetryPolicy;
///
/// let policy = RetryPolicy::new()
///     .retries(4)
///     .delays(Duration::from_millis(50), Duration::from_secs(5))
///     .budget(10);
/// let client = Client::builder().retry(policy).build()?;
/// # drop(client);
/// # Ok(()) }
/// ```
///
/// A single request has another policy if its extensions contain one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RetryPolicy {
    retries: u32,
    first_delay: Duration,
    longest_delay: Duration,
    longest_retry_after: Duration,
    statuses: Arc<[StatusCode]>,
    /// Percent of a retry that each request adds, if retries are limited.
    budget: Option<u32>,
    repeats_all_methods: bool,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::new()
    }
}

impl RetryPolicy {
    /// Returns a policy with the defaults: 3 retries with delays from 100 ms to 10 s, statuses 429, 502, 503 and
    /// 504, and a budget of 20 %.
    pub fn new() -> Self {
        Self {
            retries: 3,
            first_delay: Duration::from_millis(100),
            longest_delay: Duration::from_secs(10),
            longest_retry_after: Duration::from_secs(30),
            statuses: Arc::new([
                StatusCode::TOO_MANY_REQUESTS,
                StatusCode::BAD_GATEWAY,
                StatusCode::SERVICE_UNAVAILABLE,
                StatusCode::GATEWAY_TIMEOUT,
            ]),
            budget: Some(20),
            repeats_all_methods: false,
        }
    }

    /// Sets how often one request is repeated. 0 turns the policy off. Default 3.
    #[must_use]
    pub fn retries(mut self, limit: u32) -> Self {
        self.retries = limit;
        self
    }

    /// Sets the delay before the first retry, which doubles with each further one, and the longest delay. Each is
    /// shortened by up to half at random, so that clients that failed together do not return together. Default
    /// 100 ms and 10 s.
    #[must_use]
    pub fn delays(mut self, first: Duration, longest: Duration) -> Self {
        self.first_delay = first;
        self.longest_delay = longest;
        self
    }

    /// Sets the longest time in a `retry-after` field (RFC 9110 §10.2.3) that the client waits for. It waits that
    /// long if that is more than its own delay. A response with a longer time is returned. Default 30 s.
    #[must_use]
    pub fn longest_retry_after(mut self, limit: Duration) -> Self {
        self.longest_retry_after = limit;
        self
    }

    /// Sets the statuses after which requests are repeated. Default 429, 502, 503 and 504.
    #[must_use]
    pub fn statuses(mut self, statuses: impl IntoIterator<Item = StatusCode>) -> Self {
        self.statuses = statuses.into_iter().collect();
        self
    }

    /// Sets how many retries the requests to an origin pay for, in percent of their number. 0 to 100, default 20.
    ///
    /// Each request adds this part of a retry to the budget of its origin, and each retry takes one. The budget
    /// begins with 10 and never has more. So a server that fails all requests receives at most a fifth more of them
    /// by default, however long it fails, and a single failure is repeated at once.
    #[must_use]
    pub fn budget(mut self, percent: u32) -> Self {
        self.budget = Some(percent.min(100));
        self
    }

    /// Repeats each request up to the number of [retries](Self::retries), however many others fail. A server that is
    /// overloaded then receives several times as many requests.
    #[must_use]
    pub fn no_budget(mut self) -> Self {
        self.budget = None;
        self
    }

    /// Repeats requests with all methods after one of the [statuses](Self::statuses). **A POST may be processed
    /// twice**, unless the server gives these statuses only before it has changed anything. Errors follow
    /// [`Error::is_retryable`] in any case. Off by default.
    #[must_use]
    pub fn all_methods(mut self, repeats: bool) -> Self {
        self.repeats_all_methods = repeats;
        self
    }

    /// Returns how long to wait before a retry, or `None` to return the outcome.
    pub(super) fn wait_after(
        &self,
        outcome: &Result<Response<Body>, Error>,
        method: &Method,
        repeats: u32,
    ) -> Option<Duration> {
        if repeats >= self.retries {
            return None;
        }
        let own = self.delay(repeats, RandomState::new().hash_one(repeats));
        match outcome {
            Err(error) => error.is_retryable().then_some(own),
            Ok(response) => {
                let is_allowed = self.repeats_all_methods || method.is_idempotent();
                if !is_allowed || !self.statuses.contains(&response.status()) {
                    return None;
                }
                match retry_after(SystemTime::now(), response.headers()) {
                    Some(asked) if asked > self.longest_retry_after => None,
                    Some(asked) => Some(own.max(asked)),
                    None => Some(own),
                }
            }
        }
    }

    /// Returns the delay before a retry, between half and all of the doubled first delay.
    fn delay(&self, repeats: u32, random: u64) -> Duration {
        let doubled = self.first_delay.saturating_mul(1 << repeats.min(30));
        let most = doubled.min(self.longest_delay);
        // Thousandths of the upper half.
        let share = u32::try_from(random % 1001).unwrap_or(0);
        most / 2 + (most / 2) * share / 1000
    }
}

/// Returns the time that a `retry-after` field asks for, in seconds or as a date.
fn retry_after(now: SystemTime, headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if value.bytes().all(|byte| byte.is_ascii_digit()) && !value.is_empty() {
        // A number that overflows is longer than any limit.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// The retries that each origin has left.
#[derive(Debug, Default)]
pub(super) struct Budgets(Mutex<HashMap<Origin, Budget>>);

/// Thousandths of retries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Budget(u32);

impl Budgets {
    /// Adds a part of a retry for a request.
    pub(super) fn on_request(&self, origin: &Origin, policy: &RetryPolicy) {
        if let Some(percent) = policy.budget {
            self.add(origin, percent);
        }
    }

    fn add(&self, origin: &Origin, percent: u32) {
        let mut budgets = self.0.lock();
        if let Some(budget) = budgets.get_mut(origin) {
            budget.0 = (budget.0 + percent * 10).min(MOST * ONE);
            return;
        }
        if budgets.len() >= MAX_ORIGINS {
            // Those that are full begin the same way again.
            budgets.retain(|_, budget| budget.0 < MOST * ONE);
            if budgets.len() >= MAX_ORIGINS {
                budgets.clear();
            }
        }
        budgets.insert(origin.clone(), Budget(MOST * ONE));
    }

    /// Takes a retry, if the policy limits them. Returns false if none is left.
    pub(super) fn permit(&self, origin: &Origin, policy: &RetryPolicy) -> bool {
        policy.budget.is_none() || self.take(origin)
    }

    fn take(&self, origin: &Origin) -> bool {
        let mut budgets = self.0.lock();
        let Some(budget) = budgets.get_mut(origin) else {
            return false;
        };
        match budget.0.checked_sub(ONE) {
            Some(left) => {
                budget.0 = left;
                true
            }
            None => false,
        }
    }
}

const ONE: u32 = 1000;
/// Largest number of retries in store (limit K533): enough for the failures of a restart, and few beside the load of a busy client.
const MOST: u32 = 10;
/// Largest number of origins with budgets (limit K532), about 100 bytes each.
const MAX_ORIGINS: usize = 1024;

#[cfg(test)]
mod tests;
