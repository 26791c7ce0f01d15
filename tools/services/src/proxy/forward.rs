//! The fields that a proxy forwards, and the connection-specific fields that it removes (RFC 9110 §7.6).

use std::net::IpAddr;

use courser::server::{EarlyData, Peer};
use http::header::{
    CONNECTION, CONTENT_LENGTH, FORWARDED, HOST, TE, TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version};

/// Returns true if the client requests another protocol on this connection, such as WebSocket.
pub(super) fn is_upgrade(parts: &Parts) -> bool {
    let is_listed = || {
        let lists = parts.headers.get_all(CONNECTION);
        let mut tokens = lists.iter().flat_map(tokens);
        tokens.any(|token| token.eq_ignore_ascii_case(b"upgrade"))
    };
    parts.version == Version::HTTP_11 && parts.headers.contains_key(UPGRADE) && is_listed()
}

/// Returns true if all field names are tokens (RFC 9110 §5.6.2). `HeaderName::from_lowercase` accepts quotation
/// marks, and recipients may disagree about the end of such a name.
pub(super) fn has_valid_names(headers: &HeaderMap) -> bool {
    headers.keys().all(|name| !name.as_str().contains('"'))
}

/// Removes connection-specific fields and adds those that describe the client and the requested host. Values of
/// such fields from the client are discarded.
pub(super) fn prepare_request(parts: &mut Parts, host: Option<&HeaderValue>, is_upgrade: bool) {
    let headers = &mut parts.headers;
    let upgrade = match is_upgrade {
        true => headers.get(UPGRADE).cloned(),
        false => None,
    };
    let wants_trailers = headers
        .get_all(TE)
        .iter()
        .flat_map(tokens)
        .any(|token| token.eq_ignore_ascii_case(b"trailers"));
    remove(headers, |name| {
        is_connection_specific(name) || is_set_by_proxy(name)
    });
    // Reserved at once instead of field by field.
    headers.reserve(MAX_ADDED);
    if let Some(upgrade) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, upgrade);
    }
    if wants_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    if let Some(host) = host {
        headers.insert(HOST, host.clone());
        headers.insert(X_FORWARDED_HOST, host.clone());
    }
    const HTTPS: HeaderValue = HeaderValue::from_static("https");
    headers.insert(X_FORWARDED_PROTO, HTTPS);
    if let Some(peer) = parts.extensions.get::<Peer>() {
        let ip = text_of(peer.current_address().ip());
        if let Some(value) = forwarded(&ip, host) {
            headers.insert(FORWARDED, value);
        }
        if let Ok(value) = HeaderValue::try_from(ip) {
            headers.insert(X_FORWARDED_FOR, value);
        }
    }
    if parts.extensions.get::<EarlyData>().is_some() {
        // The origin decides whether to process early data, and the client repeats refused requests (RFC 8470
        // §5.1).
        headers.insert(EARLY_DATA, HeaderValue::from_static("1"));
    }
    headers.append(VIA, via(parts.version));
}

/// Removes the fields that are specific to the connection to the upstream server.
pub(super) fn prepare_response(parts: &mut http::response::Parts, version: Version) {
    let via = via(parts.version);
    remove(&mut parts.headers, is_connection_specific);
    parts.headers.append(VIA, via);
    remove_invalid_length(parts);
    parts.version = version;
    parts.extensions = http::Extensions::new();
}

/// Removes the same fields as [`prepare_response`], except those of the upgrade.
pub(super) fn prepare_upgrade(parts: &mut http::response::Parts) {
    let upgrade = parts.headers.get(UPGRADE).cloned();
    prepare_response(parts, Version::HTTP_11);
    parts
        .headers
        .insert(CONNECTION, HeaderValue::from_static("upgrade"));
    if let Some(upgrade) = upgrade {
        parts.headers.insert(UPGRADE, upgrade);
    }
}

/// Removes a Content-Length that is not a number or that the response must not have.
///
/// Responses with status 1xx and 204 have no content and must not have the field (RFC 9110 §8.6). hyper does not
/// validate the field of responses without content, so its value can be anything.
fn remove_invalid_length(parts: &mut http::response::Parts) {
    let is_number = |value: &HeaderValue| {
        let digits = value.as_bytes();
        digits.iter().all(u8::is_ascii_digit)
            && value.to_str().is_ok_and(|text| text.parse::<u64>().is_ok())
    };
    let is_forbidden = parts.status.is_informational() || parts.status == StatusCode::NO_CONTENT;
    let lengths = parts.headers.get_all(CONTENT_LENGTH);
    if is_forbidden || lengths.iter().count() > 1 || !lengths.iter().all(is_number) {
        parts.headers.remove(CONTENT_LENGTH);
    }
}

/// Removes the fields for which `is_unwanted` is true, and those that Connection lists.
fn remove(headers: &mut HeaderMap, is_unwanted: impl Fn(&str) -> bool) {
    if headers.contains_key(TRANSFER_ENCODING) {
        // Transfer-Encoding overrides Content-Length, which must not be forwarded then (RFC 9112 §6.3).
        headers.remove(CONTENT_LENGTH);
    }
    let listed = headers.get_all(CONNECTION).iter().flat_map(tokens);
    let listed = listed.filter_map(|token| HeaderName::from_bytes(token).ok());
    // A pass over all fields costs less than a search for each name, because most names are absent.
    let unwanted = headers.keys().filter(|name| is_unwanted(name.as_str()));
    let removed: Vec<HeaderName> = listed.chain(unwanted.cloned()).collect();
    for name in removed {
        headers.remove(name);
    }
}

/// Returns true for connection-specific fields. `trailer` is not among them, because only announced trailers are
/// sent over HTTP/1.1.
fn is_connection_specific(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "keep-alive"
            | "proxy-connection"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "te"
            | "transfer-encoding"
            | "upgrade"
    )
}

/// Returns true for the fields that the proxy sets itself, and for `expect`, which it has already answered.
fn is_set_by_proxy(name: &str) -> bool {
    matches!(
        name,
        "expect"
            | "forwarded"
            | "host"
            | "x-forwarded-for"
            | "x-forwarded-proto"
            | "x-forwarded-host"
            | "x-real-ip"
    )
}

/// Returns the tokens of a list. Invalid bytes elsewhere in the list do not hide them.
fn tokens(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    let parts = value.as_bytes().split(|byte| *byte == b',');
    parts
        .map(<[u8]>::trim_ascii)
        .filter(|token| !token.is_empty())
}

/// Returns the value of a Forwarded field (RFC 7239) for a client with this address.
fn forwarded(ip: &str, host: Option<&HeaderValue>) -> Option<HeaderValue> {
    let is_v6 = ip.contains(':');
    let host = host.and_then(|host| host.to_str().ok());
    // Quoted, because the host may include a colon. A valid host contains nothing that ends the quotes.
    let host = host.filter(|host| !host.contains(['"', '\\']));
    let (open, close) = if is_v6 { ("\"[", "]\"") } else { ("", "") };
    let value = match host {
        Some(host) => ["for=", open, ip, close, ";host=\"", host, "\";proto=https"].concat(),
        None => ["for=", open, ip, close, ";proto=https"].concat(),
    };
    HeaderValue::try_from(value).ok()
}

/// Formats an address, which happens for each request. The standard formatter of IPv4 addresses takes ten times
/// as long.
fn text_of(ip: IpAddr) -> String {
    let IpAddr::V4(ip) = ip else {
        return ip.to_string();
    };
    let mut text = String::with_capacity("255.255.255.255".len());
    for octet in ip.octets() {
        if !text.is_empty() {
            text.push('.');
        }
        for (unit, is_written) in [(100, octet > 99), (10, octet > 9), (1, true)] {
            if is_written {
                text.push(char::from(b'0' + octet / unit % 10));
            }
        }
    }
    text
}

fn via(version: Version) -> HeaderValue {
    // Validated at compile time.
    const VIA_1_0: HeaderValue = HeaderValue::from_static("1.0 courser");
    const VIA_1_1: HeaderValue = HeaderValue::from_static("1.1 courser");
    const VIA_2: HeaderValue = HeaderValue::from_static("2.0 courser");
    const VIA_3: HeaderValue = HeaderValue::from_static("3.0 courser");
    match version {
        Version::HTTP_09 | Version::HTTP_10 => VIA_1_0,
        Version::HTTP_2 => VIA_2,
        Version::HTTP_3 => VIA_3,
        _ => VIA_1_1,
    }
}

/// Number of fields that a request usually gets: Host, four that describe its client, and Via.
const MAX_ADDED: usize = 6;

const EARLY_DATA: HeaderName = HeaderName::from_static("early-data");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_quotation_marks_are_not_valid() {
        let mut headers = HeaderMap::new();
        headers.insert("x!#$%&'*+-.^_`|~0", HeaderValue::from_static("1"));
        assert!(has_valid_names(&headers));
        let name = HeaderName::from_lowercase(b"x\"y").expect("accepted by the http crate");
        headers.insert(name, HeaderValue::from_static("1"));
        assert!(!has_valid_names(&headers));
    }

    fn parts(fields: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::get("https://example.org:4433/path");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request").into_parts().0
    }

    #[test]
    fn fields_of_one_connection_are_not_passed_on() {
        let mut parts = parts(&[
            ("connection", "close, X-Mine"),
            ("x-mine", "1"),
            ("keep-alive", "5"),
            ("te", "gzip, trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("proxy-authorization", "Basic x"),
            ("expect", "100-continue"),
            ("x-kept", "1"),
        ]);
        let host = HeaderValue::from_static("example.org:4433");
        prepare_request(&mut parts, Some(&host), false);
        let mut names: Vec<_> = parts.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        let expected = [
            "host",
            "te",
            "via",
            "x-forwarded-host",
            "x-forwarded-proto",
            "x-kept",
        ];
        assert_eq!(names, expected);
        assert_eq!(parts.headers["te"], "trailers");
        assert_eq!(parts.headers["host"], "example.org:4433");
    }

    /// RFC 9204 §4.5.4, §7.1.3: a field that must remain a literal is forwarded as one.
    #[test]
    fn values_that_must_stay_literals_stay_so() {
        let mut secret = HeaderValue::from_static("key");
        secret.set_sensitive(true);
        let mut request = parts(&[("x-open", "1")]);
        request.headers.insert("x-secret", secret.clone());
        prepare_request(&mut request, None, false);
        let response = http::Response::builder().header("x-open", "1");
        let mut response = response.body(()).expect("a response").into_parts().0;
        response.headers.insert("x-secret", secret);
        prepare_response(&mut response, Version::HTTP_3);
        for headers in [&request.headers, &response.headers] {
            assert!(headers["x-secret"].is_sensitive());
            assert!(!headers["x-open"].is_sensitive());
        }
    }

    #[test]
    fn bytes_beside_a_token_do_not_hide_it() {
        let mut parts = parts(&[("x-mine", "1")]);
        let listed = HeaderValue::from_bytes(b"\xff, x-mine").expect("a value");
        parts.headers.insert(CONNECTION, listed);
        prepare_request(&mut parts, None, false);
        assert!(!parts.headers.contains_key("x-mine"), "{:?}", parts.headers);
    }

    #[test]
    fn length_of_a_response_without_content_is_checked() {
        for (status, length, is_kept) in [
            (204, ")2", false),
            (204, "2", false),
            (304, ")2", false),
            (304, "+2", false),
            (304, "99999999999999999999", false),
            (304, "2", true),
            (200, "2", true),
        ] {
            let response = http::Response::builder()
                .status(status)
                .header(CONTENT_LENGTH, length);
            let mut parts = response.body(()).expect("a response").into_parts().0;
            prepare_response(&mut parts, Version::HTTP_3);
            let kept = parts.headers.contains_key(CONTENT_LENGTH);
            assert_eq!(kept, is_kept, "{status} {length}");
        }
    }

    #[test]
    fn length_that_a_transfer_coding_overrides_is_not_passed_on() {
        let response = http::Response::builder()
            .header(TRANSFER_ENCODING, "chunked")
            .header(CONTENT_LENGTH, "1");
        let mut parts = response.body(()).expect("a response").into_parts().0;
        prepare_response(&mut parts, Version::HTTP_3);
        let names: Vec<_> = parts.headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["via"]);
    }

    #[test]
    fn forwarding_fields_of_clients_are_not_passed_on() {
        let mut parts = parts(&[
            ("forwarded", "for=1.2.3.4"),
            ("x-forwarded-for", "1.2.3.4"),
            ("x-forwarded-proto", "http"),
            ("x-real-ip", "1.2.3.4"),
        ]);
        let host = HeaderValue::from_static("example.org:4433");
        prepare_request(&mut parts, Some(&host), false);
        assert!(!parts.headers.values().any(|value| value == "1.2.3.4"));
        assert_eq!(parts.headers["x-forwarded-proto"], "https");
        assert!(!parts.headers.contains_key(FORWARDED));
    }

    #[test]
    fn requests_in_early_data_are_marked_for_the_origin() {
        let mut fresh = parts(&[]);
        prepare_request(&mut fresh, None, false);
        assert!(!fresh.headers.contains_key("early-data"));
        let mut early = parts(&[]);
        early.extensions.insert(EarlyData);
        prepare_request(&mut early, None, false);
        assert_eq!(early.headers["early-data"], "1");
        let mut marked = parts(&[("early-data", "1")]);
        prepare_request(&mut marked, None, false);
        assert_eq!(marked.headers["early-data"], "1", "by another intermediary");
    }

    #[test]
    fn forwarded_follows_its_grammar() {
        let host = HeaderValue::from_static("example.org:4433");
        let value = forwarded("127.0.0.1", Some(&host)).expect("a value");
        assert_eq!(value, "for=127.0.0.1;host=\"example.org:4433\";proto=https");
        let odd = HeaderValue::from_static("a\";for=x");
        let value = forwarded("::1", Some(&odd));
        assert_eq!(value.expect("a value"), "for=\"[::1]\";proto=https");
    }

    #[test]
    fn addresses_are_written_as_the_formatter_writes_them() {
        for ip in [
            "0.0.0.0",
            "127.0.0.1",
            "9.10.99.100",
            "255.255.255.255",
            "::1",
            "2001:db8::10",
            "::ffff:192.0.2.7",
        ] {
            assert_eq!(text_of(ip.parse().expect("an address")), ip);
        }
    }

    #[test]
    fn upgrades_require_both_fields_over_http1() {
        let with = |fields: &[(&str, &str)], version| {
            let mut parts = parts(fields);
            parts.version = version;
            is_upgrade(&parts)
        };
        let both = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "websocket"),
        ];
        assert!(with(&both, Version::HTTP_11));
        assert!(!with(&both, Version::HTTP_2));
        assert!(!with(&both[..1], Version::HTTP_11));
        assert!(!with(&both[1..], Version::HTTP_11));
    }
}
