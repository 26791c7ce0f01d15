//! Decisions about redirects.

use std::fmt;
use std::sync::Arc;

use http::{StatusCode, Uri};

use super::error::{BoxError, Error, ErrorKind};
use super::history::Hop;

/// Decides which redirects a [client](super::Client) follows. By default it follows ten.
///
/// ```
/// # mod courser { pub use courser_client::{self as client, Client}; }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use courser::client::RedirectPolicy;
///
/// // Stays on one host, and returns a redirect to another one as the response.
/// let policy = RedirectPolicy::custom(|attempt| {
///     let first = attempt.previous().first().map(|hop| hop.url.host());
///     match first.is_some_and(|host| host == attempt.url().host()) {
///         true => attempt.follow(),
///         false => attempt.stop(),
///     }
/// });
/// let client = courser::Client::builder().redirect_policy(policy).build()?;
/// # drop(client);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct RedirectPolicy(Rule);

#[derive(Clone)]
enum Rule {
    Limited(usize),
    Custom(Arc<dyn Fn(RedirectAttempt<'_>) -> RedirectAction + Send + Sync>),
}

impl RedirectPolicy {
    /// Returns redirects as responses.
    pub fn none() -> Self {
        Self::limited(0)
    }

    /// Follows at most this number of redirects for a request. With 0, redirects are returned as responses; a further
    /// redirect than a larger number is an [error](ErrorKind::Redirect). The limit is at most 100.
    pub fn limited(redirects: usize) -> Self {
        Self(Rule::Limited(redirects.min(MAX_REDIRECTS)))
    }

    /// Asks a function about each redirect. Whatever it answers, a request follows at most 100 redirects.
    pub fn custom(
        decide: impl Fn(RedirectAttempt<'_>) -> RedirectAction + Send + Sync + 'static,
    ) -> Self {
        Self(Rule::Custom(Arc::new(decide)))
    }

    /// Returns true if no redirect is followed.
    pub(super) fn is_none(&self) -> bool {
        matches!(self.0, Rule::Limited(0))
    }

    /// Returns true if the redirect to `url` is followed, and false if it is the response. The last of the hops is
    /// the redirect.
    pub(super) fn follows(
        &self,
        url: &Uri,
        status: StatusCode,
        hops: &[Hop],
    ) -> Result<bool, Error> {
        let limit = match &self.0 {
            Rule::Limited(limit) => *limit,
            Rule::Custom(_) => MAX_REDIRECTS,
        };
        if hops.len() > limit {
            let text = format!("more than {limit} redirects, the last to {url}");
            return Err(Error::new(ErrorKind::Redirect, text));
        }
        let Rule::Custom(decide) = &self.0 else {
            return Ok(true);
        };
        let attempt = RedirectAttempt { url, status, hops };
        match decide(attempt).0 {
            Action::Follow => Ok(true),
            Action::Stop => Ok(false),
            Action::Error(error) => {
                let text = format!("the redirect to {url} was refused: {error}");
                Err(Error::new(ErrorKind::Redirect, text).with_source(error))
            }
        }
    }
}

impl Default for RedirectPolicy {
    fn default() -> Self {
        Self::limited(DEFAULT_REDIRECTS)
    }
}

impl fmt::Debug for RedirectPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Rule::Limited(limit) => f.debug_tuple("Limited").field(limit).finish(),
            Rule::Custom(_) => f.write_str("Custom"),
        }
    }
}

/// A redirect that a [custom policy](RedirectPolicy::custom) decides about.
#[derive(Debug)]
pub struct RedirectAttempt<'a> {
    url: &'a Uri,
    status: StatusCode,
    hops: &'a [Hop],
}

impl RedirectAttempt<'_> {
    /// Returns the target, without credentials.
    pub fn url(&self) -> &Uri {
        self.url
    }

    /// Returns the status code of the redirect.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the requests so far, oldest first. The last one is the one that was redirected.
    pub fn previous(&self) -> &[Hop] {
        self.hops
    }

    /// Follows the redirect.
    pub fn follow(self) -> RedirectAction {
        RedirectAction(Action::Follow)
    }

    /// Returns the redirect as the response.
    pub fn stop(self) -> RedirectAction {
        RedirectAction(Action::Stop)
    }

    /// Ends the request with an error of the kind [`ErrorKind::Redirect`], whose source is this one.
    pub fn error(
        self,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> RedirectAction {
        RedirectAction(Action::Error(error.into()))
    }
}

/// The answer of a [custom policy](RedirectPolicy::custom).
#[derive(Debug)]
pub struct RedirectAction(Action);

#[derive(Debug)]
enum Action {
    Follow,
    Stop,
    Error(BoxError),
}

/// The default number of redirects, as in most clients.
pub(super) const DEFAULT_REDIRECTS: usize = 10;
/// The largest number of redirects that one request follows, K520. A hop is kept with its header section, and a
/// custom policy may have no limit of its own.
const MAX_REDIRECTS: usize = 100;

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method, Version};

    use super::*;

    fn hops(count: usize) -> Vec<Hop> {
        let hop = Hop {
            url: Uri::from_static("https://a.test/"),
            method: Method::GET,
            status: StatusCode::FOUND,
            version: Version::HTTP_2,
            headers: HeaderMap::new(),
        };
        vec![hop; count]
    }

    fn follows(policy: &RedirectPolicy, count: usize) -> Result<bool, Error> {
        let url = Uri::from_static("https://b.test/");
        policy.follows(&url, StatusCode::FOUND, &hops(count))
    }

    #[test]
    fn custom_policies_cannot_follow_endlessly() {
        let all = RedirectPolicy::custom(|attempt| attempt.follow());
        for policy in [all, RedirectPolicy::limited(usize::MAX)] {
            assert!(follows(&policy, 100).expect("the hundredth"));
            let error = follows(&policy, 101).expect_err("too many");
            assert_eq!(error.kind(), ErrorKind::Redirect);
        }
    }

    #[test]
    fn policy_sees_the_redirect_and_its_answer_counts() {
        let policy = RedirectPolicy::custom(|attempt| {
            assert_eq!(attempt.url(), "https://b.test/");
            assert_eq!(attempt.status(), StatusCode::FOUND);
            match attempt.previous().len() {
                1 => attempt.follow(),
                2 => attempt.stop(),
                _ => attempt.error("enough"),
            }
        });
        assert!(follows(&policy, 1).expect("followed"));
        assert!(!follows(&policy, 2).expect("stopped"));
        let error = follows(&policy, 3).expect_err("refused");
        assert!(error.to_string().contains("enough"), "{error}");
    }
}
