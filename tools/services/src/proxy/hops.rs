//! The hops of a message: Via, Max-Forwards, and requests that end at the proxy (RFC 9110 §7.6).

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::LazyLock;

use courser::server::Cause;
use http::header::{ALLOW, MAX_FORWARDS, VIA};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Version};

use super::failure::Failure;
use crate::body::{Body, explained};

/// Returns the value that this process appends to Via for a message that it received in this version.
pub(crate) fn via(version: Version) -> HeaderValue {
    let values = &PSEUDONYM.values;
    let [http10, http11, http2, http3] = values;
    match version {
        Version::HTTP_09 | Version::HTTP_10 => http10.clone(),
        Version::HTTP_2 => http2.clone(),
        Version::HTTP_3 => http3.clone(),
        _ => http11.clone(),
    }
}

/// Refuses a request that has passed this process before.
pub(super) fn check(parts: &Parts) -> Result<(), Failure> {
    if !has_passed(&parts.headers) {
        return Ok(());
    }
    let reason = "the request has passed this proxy before: its upstream server leads back to it";
    Err(Failure::new(Cause::Loop, reason))
}

/// Returns the response to a request that ends at the proxy: TRACE, and OPTIONS without a hop left.
pub(crate) fn answer(parts: &Parts) -> Option<Response<Body>> {
    if parts.method == Method::TRACE {
        // The response would reveal credentials and the fields that the proxy adds.
        let refusal = explained(StatusCode::METHOD_NOT_ALLOWED, "TRACE is not forwarded");
        let mut response = with_methods(refusal);
        response.extensions_mut().insert(Cause::UnsupportedMethod);
        return Some(response);
    }
    if parts.method == Method::OPTIONS && max_forwards(&parts.headers) == Some(0) {
        return Some(with_methods(Response::new(Body::empty())));
    }
    None
}

/// Counts this hop in the Max-Forwards field of OPTIONS. Other methods may ignore the field.
pub(crate) fn count(parts: &mut Parts) {
    if parts.method == Method::OPTIONS
        && let Some(hops) = max_forwards(&parts.headers)
    {
        let left = HeaderValue::from(hops.saturating_sub(1));
        parts.headers.insert(MAX_FORWARDS, left);
    }
}

/// Returns the number of remaining hops. Values beyond the integer type count as its maximum, and an invalid field
/// as none.
fn max_forwards(headers: &HeaderMap) -> Option<u64> {
    let mut values = headers.get_all(MAX_FORWARDS).iter();
    let value = values.next()?.as_bytes();
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    if values.next().is_some() || !is_number {
        return None;
    }
    let digits = std::str::from_utf8(value).ok()?;
    Some(digits.parse().unwrap_or(u64::MAX))
}

fn with_methods(mut response: Response<Body>) -> Response<Body> {
    const METHODS: HeaderValue =
        HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    response.headers_mut().insert(ALLOW, METHODS);
    response
}

/// Returns true if Via contains the pseudonym of this process.
pub(crate) fn has_passed(headers: &HeaderMap) -> bool {
    let own = PSEUDONYM.name.as_bytes();
    let mut values = headers.get_all(VIA).iter();
    values.any(|value| value.as_bytes().windows(own.len()).any(|part| part == own))
}

/// The name of this process in Via (RFC 9110 §7.6.3).
struct Pseudonym {
    name: String,
    /// The values for HTTP/1.0, 1.1, 2 and 3.
    values: [HeaderValue; 4],
}

/// Random, so that several instances in a row do not take each other for a loop.
static PSEUDONYM: LazyLock<Pseudonym> = LazyLock::new(|| {
    // The keys of the hasher are random.
    let random = RandomState::new().hash_one(());
    let name = format!("courser-{random:016x}");
    let values = ["1.0", "1.1", "2.0", "3.0"].map(|version| {
        HeaderValue::try_from(format!("{version} {name}")).expect("visible characters")
    });
    Pseudonym { name, values }
});

#[cfg(test)]
mod tests {
    use super::*;

    fn options(hops: &[&str]) -> Parts {
        let mut request = http::Request::options("https://a.test/");
        for value in hops {
            request = request.header(MAX_FORWARDS, *value);
        }
        request.body(()).expect("a request").into_parts().0
    }

    #[test]
    fn hops_are_counted_down() {
        for (before, after) in [
            (&["7"][..], "6"),
            (&["1"], "0"),
            (&["99999999999999999999999"], "18446744073709551614"),
            // Invalid fields are forwarded unchanged.
            (&["-1"], "-1"),
            (&["x"], "x"),
            (&["3", "4"], "3"),
        ] {
            let mut parts = options(before);
            assert!(answer(&parts).is_none(), "{before:?}");
            count(&mut parts);
            assert_eq!(parts.headers[MAX_FORWARDS], after, "{before:?}");
        }
        let last = answer(&options(&["0"])).expect("a response");
        assert_eq!(
            (last.status(), last.headers().contains_key(ALLOW)),
            (StatusCode::OK, true)
        );
    }

    #[test]
    fn own_pseudonym_in_via_is_a_loop() {
        let mut parts = options(&[]);
        parts
            .headers
            .append(VIA, HeaderValue::from_static("1.1 courser-0, 1.1 courser"));
        assert!(check(&parts).is_ok());
        let own = format!(
            "1.1 other, {}, 2.0 third",
            via(Version::HTTP_2).to_str().expect("text")
        );
        parts
            .headers
            .append(VIA, HeaderValue::try_from(own).expect("a value"));
        let failure = check(&parts).expect_err("a loop");
        assert_eq!(failure.cause, Cause::Loop);
    }
}
