//! Access control of the admin endpoints.

use std::fmt;
use std::net::IpAddr;

use http::header::{AUTHORIZATION, HOST, WWW_AUTHENTICATE};
use http::uri::Authority;
use http::{HeaderValue, Request, Response, StatusCode, Version};

use super::page;
use crate::body::{Body, explained};

/// Refuses requests for other hosts, and requests without the token if one is set.
///
/// The checks defend against web pages in a browser on this network. Through DNS rebinding, the name of a page
/// can resolve to an address of this machine, so that the page could read responses; its requests still carry
/// the name of the page in their Host field.
///
/// A page can also send requests whose responses it cannot read. Requests that cause work are refused if the
/// browser reports another site in Sec-Fetch-Site, which it does for addresses of its own machine but not over
/// plain HTTP to others.
#[derive(Default)]
pub struct Guard {
    names: Vec<String>,
    token: Option<Box<[u8]>>,
    advice: Advice,
}

/// Names of the settings that refusals recommend.
#[derive(Clone, Copy, Debug)]
pub struct Advice {
    /// The name of the token, such as `the token`.
    pub token: &'static str,
    /// The recommendation to set a token, such as `set a token`.
    pub set_token: &'static str,
    /// The recommendation to add a host, such as `add its name`.
    pub add_name: &'static str,
}

impl Default for Advice {
    fn default() -> Self {
        Self {
            token: "the token",
            set_token: "set a token",
            add_name: "add its name",
        }
    }
}

/// The reason why a token cannot be used.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenError {
    /// The token is so short that it can be guessed, or too long for a header field.
    #[error("the token has {0} bytes, {least} to {most} are allowed", least = MIN_TOKEN, most = MAX_TOKEN)]
    Length(usize),
    /// The token contains a byte other than visible ASCII.
    #[error("the token contains byte 0x{0:02x}, only visible ASCII is allowed")]
    Byte(u8),
}

impl Guard {
    /// Creates a guard that allows these hosts, addresses of this machine and `localhost`, and requires no
    /// token.
    pub fn new(names: &[String]) -> Self {
        Self {
            names: names.to_vec(),
            ..Self::default()
        }
    }

    /// Requires a token in requests for data. White space around it is removed.
    ///
    /// # Errors
    /// The token is too short, too long, or not visible ASCII.
    pub fn with_token(mut self, token: &[u8]) -> Result<Self, TokenError> {
        let token = token.trim_ascii();
        if !(MIN_TOKEN..=MAX_TOKEN).contains(&token.len()) {
            return Err(TokenError::Length(token.len()));
        }
        if let Some(byte) = token.iter().find(|byte| !byte.is_ascii_graphic()) {
            return Err(TokenError::Byte(*byte));
        }
        self.token = Some(token.into());
        Ok(self)
    }

    /// Sets the names of the settings that refusals recommend.
    #[must_use]
    pub fn with_advice(mut self, advice: Advice) -> Self {
        self.advice = advice;
        self
    }

    pub(super) fn advice(&self) -> &Advice {
        &self.advice
    }

    /// Returns the response that refuses a request to the address `local`, or `None` if it is allowed.
    pub(super) fn refusal<B>(&self, request: &Request<B>, local: IpAddr) -> Option<Response<Body>> {
        if let Err(reason) = self.check_host(request, local) {
            return Some(explained(StatusCode::MISDIRECTED_REQUEST, &reason));
        }
        let path = request.uri().path();
        let is_open = OPEN.contains(&path) || page::is_part(path);
        if is_open {
            return None;
        }
        if is_of_other_site(request) {
            let reason = "requests from other web sites are refused: open this address in the browser instead";
            return Some(explained(StatusCode::FORBIDDEN, reason));
        }
        if self.is_authorized(request) {
            return None;
        }
        let token = self.advice.token;
        let reason = format!("send {token} as 'Authorization: Bearer TOKEN'");
        let mut response = explained(StatusCode::UNAUTHORIZED, &reason);
        let challenge = HeaderValue::from_static("Bearer realm=\"courser\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        Some(response)
    }

    /// Returns true if a token is set.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    fn check_host<B>(&self, request: &Request<B>, local: IpAddr) -> Result<(), String> {
        let mut fields = request.headers().get_all(HOST).iter();
        let field = match (fields.next(), fields.next()) {
            (Some(field), None) => field,
            // Load balancers send HTTP/1.0 without Host; browsers always send it.
            (None, None) if request.version() < Version::HTTP_11 => return Ok(()),
            _ => return Err("one Host field is required".to_owned()),
        };
        let authority = Authority::try_from(field.as_bytes()).ok();
        let host = authority.as_ref().map_or("", Authority::host);
        let plain = host.trim_start_matches('[').trim_end_matches(']');
        let is_address = plain
            .parse::<IpAddr>()
            .is_ok_and(|ip| ip.to_canonical() == local.to_canonical() || ip.is_loopback());
        let is_name = |name: &str| name.eq_ignore_ascii_case(host);
        if is_address || is_name("localhost") || self.names.iter().any(|name| is_name(name)) {
            return Ok(());
        }
        let shown: String = host.chars().take(MAX_SHOWN).collect();
        let advice = self.advice.add_name;
        Err(format!(
            "host '{shown}' is not served here: use {local} or localhost, or {advice}"
        ))
    }

    fn is_authorized<B>(&self, request: &Request<B>) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let given = request.headers().get(AUTHORIZATION);
        let given = given.map_or(&b""[..], HeaderValue::as_bytes);
        let is_bearer = given
            .get(..SCHEME.len())
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME));
        is_bearer && is_same(token, &given[SCHEME.len()..])
    }
}

/// Returns true if the browser reports that a page of another site sent the request. Programs, and users who
/// type the address, report none.
fn is_of_other_site<B>(request: &Request<B>) -> bool {
    let mut sites = request.headers().get_all(SEC_FETCH_SITE).iter();
    sites.any(|site| site != "same-origin" && site != "none")
}

/// Prints whether a token is set, but not the token.
impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("names", &self.names)
            .field("has_token", &self.token.is_some())
            .finish()
    }
}

/// Compares in time that is independent of the position of the first difference.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |bits, (one, other)| {
        bits | std::hint::black_box(one ^ other)
    });
    one.len() == other.len() && differing == 0
}

/// Paths that need no token because they return no data, in addition to the files of the page.
const OPEN: [&str; 2] = ["/health", "/ready"];
/// The header field in which browsers name the relation of the requesting page to this one (Fetch Metadata).
const SEC_FETCH_SITE: &str = "sec-fetch-site";
const SCHEME: &[u8] = b"Bearer ";
/// Least length of a token in bytes; a shorter one could be guessed.
const MIN_TOKEN: usize = 16;
/// Largest length of a token in bytes, which all common clients accept in a header field.
const MAX_TOKEN: usize = 1024;
/// Number of characters of a host that a message includes.
const MAX_SHOWN: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn status(guard: &Guard, path: &str, fields: &[(&str, &str)]) -> Option<u16> {
        let mut request = Request::get(path);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(()).expect("a request");
        let refusal = guard.refusal(&request, [192, 0, 2, 1].into());
        refusal.map(|response| response.status().as_u16())
    }

    #[test]
    fn other_hosts_are_refused() {
        let guard = Guard::new(&["metrics.test".to_owned()]);
        for host in [
            "localhost",
            "LocalHost:9443",
            "127.0.0.1:9443",
            "[::1]:9443",
            "192.0.2.1",
            "[::ffff:192.0.2.1]:1",
            "Metrics.test:9443",
        ] {
            assert_eq!(status(&guard, "/status", &[("host", host)]), None, "{host}");
        }
        for host in [
            "attacker.test",
            "localhost.attacker.test",
            "192.0.2.2",
            "",
            "a b",
            "[::1",
        ] {
            for path in ["/", "/metrics", "/health"] {
                let seen = status(&guard, path, &[("host", host)]);
                assert_eq!(seen, Some(421), "{host}");
            }
        }
        assert_eq!(status(&guard, "/", &[]), Some(421));
        let twice = [("host", "localhost"), ("host", "attacker.test")];
        assert_eq!(status(&guard, "/", &twice), Some(421));
    }

    #[test]
    fn pages_of_other_sites_cause_no_work() {
        let guard = Guard::new(&[]);
        let with = |path: &str, site: &str| {
            let fields = [("host", "localhost"), ("sec-fetch-site", site)];
            status(&guard, path, &fields)
        };
        for path in ["/status", "/connections", "/metrics", "/qlog", "/busy"] {
            for site in ["cross-site", "same-site"] {
                assert_eq!(with(path, site), Some(403), "{path} {site}");
            }
            for site in ["same-origin", "none"] {
                assert_eq!(with(path, site), None, "{path} {site}");
            }
        }
        // A link to the page works.
        for path in ["/", "/main.js", "/health"] {
            assert_eq!(with(path, "cross-site"), None, "{path}");
        }
    }

    #[test]
    fn data_needs_the_token() {
        let guard = Guard::new(&[]).with_token(b"0123456789abcdef");
        let guard = guard.expect("long enough");
        let with = |path: &str, authorization: &str| {
            let fields = [("host", "localhost"), ("authorization", authorization)];
            status(&guard, path, &fields)
        };
        for path in [
            "/metrics",
            "/status",
            "/connections",
            "/connections/1",
            "/elsewhere",
        ] {
            assert_eq!(with(path, "Bearer 0123456789abcdef"), None);
            assert_eq!(with(path, "bearer 0123456789abcdef"), None);
            for wrong in [
                "",
                "Bearer ",
                "0123456789abcdef",
                "Bearer 0123456789abcde",
                "Bearer 0123456789abcdeg",
                "Bearer 0123456789abcdef0",
                "Basic 0123456789abcdef",
            ] {
                assert_eq!(with(path, wrong), Some(401), "{wrong}");
            }
        }
        for path in ["/", "/main.js", "/page.css", "/health", "/ready"] {
            assert_eq!(with(path, ""), None, "{path}");
        }
    }
}
