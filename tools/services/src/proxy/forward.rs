//! The fields of forwarded messages: applies the table of [`fields`] and adds those that describe the client and
//! the hop (RFC 9110 §7.6).

use std::net::IpAddr;

use courser::server::{Cause, EarlyData, Peer};
use http::header::{
    CONNECTION, CONTENT_LENGTH, Entry, FORWARDED, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
    VIA,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version};
use hyper::ext::ReasonPhrase;

use super::failure::Failure;
use super::fields::{self, FieldAction, tokens};
use super::{framing, hops};

/// Returns true if all field names are tokens (RFC 9110 §5.6.2). `HeaderName::from_lowercase` accepts quotation
/// marks, and recipients may disagree about the end of such a name.
pub(super) fn has_valid_names(headers: &HeaderMap) -> bool {
    headers.keys().all(|name| !name.as_str().contains('"'))
}

/// The facts about a request that its fields for the upstream server depend on.
#[derive(Debug)]
pub(super) struct Outgoing<'a> {
    /// The host as the client named it.
    pub(super) host: Option<&'a HeaderValue>,
    /// The Host field of an HTTP/1.1 request. HTTP/2 has `:authority` instead.
    pub(super) host_field: Option<HeaderValue>,
    /// The protocol that the client asks for.
    pub(super) upgrade: Option<HeaderValue>,
    pub(super) keeps_underscores: bool,
}

/// Removes fields by the table, and adds those that describe the client, the requested host and this hop. Values
/// of such fields from the client are discarded.
pub(super) fn prepare_request(parts: &mut Parts, outgoing: Outgoing<'_>) {
    let Outgoing {
        host,
        host_field,
        upgrade,
        keeps_underscores,
    } = outgoing;
    hops::count(parts);
    let headers = &mut parts.headers;
    let wants_trailers = headers
        .get_all(TE)
        .iter()
        .flat_map(tokens)
        .any(|token| token.eq_ignore_ascii_case(b"trailers"));
    // Servers expect Host before all other fields (RFC 9110 §7.2), where most clients send it already.
    let is_in_place = host_field.is_some() && headers.keys().next() == Some(&HOST);
    remove(headers, |name| match is_in_place && name == HOST {
        true => FieldAction::Adjust,
        false => fields::of_request(name, keeps_underscores),
    });
    if headers.contains_key(TRAILER) {
        framing::filter_announced(headers, keeps_underscores);
    }
    // Reserved at once instead of field by field.
    headers.reserve(MAX_ADDED);
    let is_http1 = host_field.is_some();
    // Over HTTP/1.1 both fields are specific to the connection and listed as such (RFC 9110 §7.8, §10.1.4).
    let connection = match (upgrade.is_some(), wants_trailers && is_http1) {
        (false, false) => None,
        (true, false) => Some("upgrade"),
        (false, true) => Some("te"),
        (true, true) => Some("upgrade, te"),
    };
    if let Some(options) = connection {
        headers.insert(CONNECTION, HeaderValue::from_static(options));
    }
    if let Some(upgrade) = upgrade {
        headers.insert(UPGRADE, upgrade);
    }
    if wants_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    if let Some(host) = host {
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
    let is_marked = headers.contains_key(EARLY_DATA);
    if is_marked || parts.extensions.get::<EarlyData>().is_some() {
        // The origin decides whether to process early data, and the client repeats refused requests. A field of
        // another intermediary means the same, whatever its value (RFC 8470 §5.1).
        headers.insert(EARLY_DATA, HeaderValue::from_static("1"));
    }
    headers.append(VIA, hops::via(parts.version));
    if let Some(host) = host_field {
        match is_in_place {
            true => drop(headers.insert(HOST, host)),
            false => insert_first(headers, HOST, host),
        }
    }
}

/// Inserts a field that the map lacks before all others.
///
/// A map moves its last entry to the place of one that is removed, so the first one makes room.
fn insert_first(headers: &mut HeaderMap, name: HeaderName, value: HeaderValue) {
    let first = headers.keys().next().cloned();
    headers.insert(name, value);
    let Some(first) = first else {
        return;
    };
    if headers.get_all(&first).iter().nth(1).is_none() {
        let value = headers.remove(&first);
        headers.extend(value.map(|value| (first, value)));
        return;
    }
    if let Entry::Occupied(entry) = headers.entry(first) {
        let (first, values) = entry.remove_entry_mult();
        let values: Vec<HeaderValue> = values.collect();
        for value in values {
            headers.append(&first, value);
        }
    }
}

/// Checks that a response may be forwarded.
pub(super) fn check_response(status: StatusCode, headers: &HeaderMap) -> Result<(), Failure> {
    if status.as_u16() > 599 {
        let reason = format!("the status code {} is above 599", status.as_u16());
        return Err(Failure::new(Cause::UpstreamInvalidResponse, reason));
    }
    if !has_valid_names(headers) {
        return Err(Cause::UpstreamInvalidField.into());
    }
    let checked = framing::check_codings(headers);
    checked.map_err(|reason| Failure::new(Cause::UpstreamInvalidResponse, reason))
}

/// Removes the fields that are specific to the connection to the upstream server, and appends Via.
pub(super) fn prepare_response(parts: &mut http::response::Parts, version: Version) {
    let via = hops::via(parts.version);
    remove(&mut parts.headers, fields::of_response);
    if parts.headers.contains_key(TRAILER) {
        framing::filter_announced(&mut parts.headers, true);
    }
    parts.headers.append(VIA, via);
    framing::adjust_length(parts);
    parts.version = version;
    let reason = parts.extensions.remove::<ReasonPhrase>();
    parts.extensions = http::Extensions::new();
    // Only HTTP/1.1 has reason phrases. hyper would invent one for an unknown status (RFC 9112 §4).
    if let Some(reason) = reason {
        parts.extensions.insert(reason);
    } else if parts.status.canonical_reason().is_none() {
        parts.extensions.insert(ReasonPhrase::from_static(b""));
    }
}

/// Prepares a response that names the protocol of an upgrade: 101, or 426 with a protocol that the client may
/// request (RFC 9110 §15.5.22).
pub(super) fn prepare_upgrade(
    parts: &mut http::response::Parts,
    version: Version,
    protocol: Option<HeaderValue>,
) {
    prepare_response(parts, version);
    if let Some(protocol) = protocol {
        const LISTED: HeaderValue = HeaderValue::from_static("upgrade");
        parts.headers.insert(CONNECTION, LISTED);
        parts.headers.insert(UPGRADE, protocol);
    }
}

/// Removes the fields that the table removes, and those that Connection lists.
fn remove(headers: &mut HeaderMap, action: impl Fn(&str) -> FieldAction) {
    if headers.contains_key(TRANSFER_ENCODING) {
        // Transfer-Encoding overrides Content-Length, which must not be forwarded then (RFC 9112 §6.3).
        headers.remove(CONTENT_LENGTH);
    }
    let listed = headers.get_all(CONNECTION).iter().flat_map(tokens);
    let listed = listed
        .filter_map(|token| HeaderName::from_bytes(token).ok())
        // The proxy is responsible for these fields, and messages would lose their framing without them.
        .filter(|name| action(name.as_str()) != FieldAction::Adjust);
    // A pass over all fields costs less than a search for each name, because most names are absent.
    let unwanted = headers
        .keys()
        .filter(|name| action(name.as_str()).removes());
    let removed: Vec<HeaderName> = listed.chain(unwanted.cloned()).collect();
    for name in removed {
        headers.remove(name);
    }
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

    fn prepare(parts: &mut Parts, host: Option<&str>) {
        let host = host.map(|host| HeaderValue::from_str(host).expect("a host"));
        let outgoing = Outgoing {
            host: host.as_ref(),
            host_field: host.clone(),
            upgrade: None,
            keeps_underscores: false,
        };
        prepare_request(parts, outgoing);
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
            ("http2-settings", "AAMAAABk"),
            ("proxy-authorization", "Basic x"),
            ("expect", "100-continue"),
            ("x-kept", "1"),
        ]);
        prepare(&mut parts, Some("example.org:4433"));
        let mut names: Vec<_> = parts.headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(names[0], "host");
        names.sort_unstable();
        let expected = [
            "connection",
            "host",
            "te",
            "via",
            "x-forwarded-host",
            "x-forwarded-proto",
            "x-kept",
        ];
        assert_eq!(names, expected);
        assert_eq!(parts.headers["te"], "trailers");
        assert_eq!(parts.headers["connection"], "te");
        assert_eq!(parts.headers["host"], "example.org:4433");
    }

    #[test]
    fn host_comes_before_all_other_fields() {
        for fields in [
            &[][..],
            &[("a", "1")],
            &[("a", "1"), ("b", "2")],
            &[("a", "1"), ("b", "2"), ("a", "3"), ("c", "4")],
            &[("host", "x"), ("a", "1"), ("a", "2"), ("b", "2")],
            &[("a", "1"), ("host", "x"), ("b", "2")],
        ] {
            let mut parts = parts(fields);
            prepare(&mut parts, Some("example.org"));
            let first = parts.headers.iter().next().expect("a field");
            assert_eq!(
                (first.0.as_str(), first.1.as_bytes()),
                ("host", &b"example.org"[..])
            );
            for name in ["a", "b", "c"] {
                let sent: Vec<_> = parts.headers.get_all(name).iter().collect();
                let given = fields.iter().filter(|(given, _)| *given == name);
                assert!(given.map(|(_, value)| *value).eq(sent), "{fields:?}");
            }
        }
    }

    /// RFC 9110 §7.6.1: names in Connection remove nothing that the proxy is responsible for.
    #[test]
    fn fields_of_the_proxy_survive_a_listing() {
        let listed = "host, forwarded, x-forwarded-for, x-forwarded-proto, x-forwarded-host, via, \
            content-length, early-data, close";
        let mut parts = parts(&[
            ("connection", listed),
            ("content-length", "3"),
            ("early-data", "1"),
            ("via", "1.1 other"),
        ]);
        prepare(&mut parts, Some("example.org"));
        for name in [
            "host",
            "x-forwarded-proto",
            "x-forwarded-host",
            "content-length",
            "early-data",
        ] {
            assert!(parts.headers.contains_key(name), "{name}");
        }
        assert_eq!(parts.headers.get_all(VIA).iter().count(), 2);
    }

    #[test]
    fn requests_follow_the_table() {
        for rule in &fields::FIELD_RULES {
            let name = rule.name.replace('*', "x");
            let mut request = parts(&[(&name, "7")]);
            prepare(&mut request, None);
            let response = http::Response::builder().header(&name, "7");
            let mut response = response.body(()).expect("a response").into_parts().0;
            prepare_response(&mut response, Version::HTTP_3);
            for (action, headers) in [
                (rule.request, &request.headers),
                (rule.response, &response.headers),
            ] {
                let values = headers.get_all(&name);
                let is_forwarded = values.iter().any(|value| value == "7");
                match action {
                    FieldAction::Forward => assert!(is_forwarded, "{name}"),
                    FieldAction::Remove => assert_eq!(values.iter().count(), 0, "{name}"),
                    FieldAction::Replace => assert!(!is_forwarded, "{name}"),
                    FieldAction::Adjust => {}
                }
            }
        }
    }

    /// RFC 9204 §4.5.4, §7.1.3: a field that must remain a literal is forwarded as one.
    #[test]
    fn values_that_must_stay_literals_stay_so() {
        let mut secret = HeaderValue::from_static("key");
        secret.set_sensitive(true);
        let mut request = parts(&[("x-open", "1")]);
        request.headers.insert("x-secret", secret.clone());
        prepare(&mut request, None);
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
        prepare(&mut parts, None);
        assert!(!parts.headers.contains_key("x-mine"), "{:?}", parts.headers);
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
        prepare(&mut parts, Some("example.org:4433"));
        assert!(!parts.headers.values().any(|value| value == "1.2.3.4"));
        assert_eq!(parts.headers["x-forwarded-proto"], "https");
        assert!(!parts.headers.contains_key(FORWARDED));
    }

    #[test]
    fn requests_in_early_data_are_marked_for_the_origin() {
        let mut fresh = parts(&[]);
        prepare(&mut fresh, None);
        assert!(!fresh.headers.contains_key("early-data"));
        let mut early = parts(&[]);
        early.extensions.insert(EarlyData);
        prepare(&mut early, None);
        assert_eq!(early.headers["early-data"], "1");
        let mut marked = parts(&[("early-data", "1")]);
        prepare(&mut marked, None);
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
}
