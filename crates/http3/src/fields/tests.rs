use courser_qpack::{DecodedLine, Origin, Text};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use proptest::prelude::*;

use super::*;

fn collect<T>(
    kind: Kind,
    lines: &[(&str, &str)],
    finish: impl FnOnce(&mut Collector<'_>) -> Result<T, FieldsError>,
) -> Result<T, FieldsError> {
    let mut cache = LineCache::default();
    let mut collector = Collector::new(kind, FieldLimits::REQUEST, &mut cache);
    for (name, value) in lines {
        collector.line(&DecodedLine {
            name: Text::Literal(name.as_bytes()),
            value: Text::Literal(value.as_bytes()),
            origin: Origin::Literal,
            is_sensitive: false,
        });
    }
    finish(&mut collector)
}

fn request(lines: &[(&str, &str)]) -> Result<(Request<()>, Option<u64>), FieldsError> {
    collect(Kind::Request, lines, |collector| {
        collector.finish_request(false)
    })
}

fn extended(lines: &[(&str, &str)]) -> Result<Request<()>, FieldsError> {
    let finish = |collector: &mut Collector<'_>| collector.finish_request(true);
    collect(Kind::Request, lines, finish).map(|(request, _)| request)
}

fn response(lines: &[(&str, &str)]) -> Result<(Response<()>, Option<u64>), FieldsError> {
    collect(Kind::Response, lines, |collector| {
        collector.finish_response()
    })
}

fn trailers(lines: &[(&str, &str)]) -> Result<HeaderMap, FieldsError> {
    collect(Kind::Trailers, lines, |collector| {
        collector.finish_trailers()
    })
}

fn is_malformed<T>(result: Result<T, FieldsError>) -> bool {
    matches!(result, Err(error @ FieldsError::Malformed(_))
        if error.to_error().code == crate::Code::MESSAGE_ERROR
            && error.to_error().scope == crate::Scope::Stream)
}

const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "example.org"),
    (":path", "/a?b"),
];

/// Returns the field lines of a GET request followed by these.
fn get(lines: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    [&GET[..], lines].concat()
}

/// Returns the field lines of a GET request in which the line of this name is replaced or removed.
fn get_with(name: &'static str, value: Option<&'static str>) -> Vec<(&'static str, &'static str)> {
    let mut lines: Vec<_> = GET.into_iter().filter(|line| line.0 != name).collect();
    lines.extend(value.map(|value| (name, value)));
    lines
}

#[test]
fn section_becomes_a_request() {
    let lines = get(&[
        ("accept", "*/*"),
        ("content-length", "5"),
        ("x", "1"),
        ("x", "2"),
    ]);
    let (request, length) = request(&lines).expect("a request");
    assert_eq!(request.method(), Method::GET);
    assert_eq!(request.uri(), "https://example.org/a?b");
    assert_eq!(request.version(), http::Version::HTTP_3);
    assert_eq!(request.headers().get_all("x").iter().count(), 2);
    assert_eq!(length, Some(5));
}

/// A field name is a token (RFC 9110 §5.6.2), and any other byte makes a message malformed (RFC 9114 §10.3).
#[test]
fn names_with_bytes_outside_of_tokens_are_malformed() {
    for name in [
        "x\"y", "\"", "x y", "x(y", "x,y", "x/y", "x@y", "x[y", "x{y", "x\u{7f}",
    ] {
        assert!(is_malformed(request(&get(&[(name, "1")]))), "{name}");
        assert!(is_malformed(response(&[(":status", "200"), (name, "1")])));
        assert!(is_malformed(trailers(&[(name, "1")])), "{name}");
    }
    assert!(request(&get(&[("x!#$%&'*+-.^_`|~0", "1")])).is_ok());
}

#[test]
fn section_becomes_a_response() {
    let (response, length) = response(&[(":status", "204"), ("server", "x")]).expect("a response");
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    assert_eq!(length, None);
}

/// RFC 9114 §4.3: unknown ones, of another kind of message, repeated, after other fields, in trailers.
#[test]
fn refuses_pseudo_header_fields_out_of_place() {
    assert!(is_malformed(request(&get(&[(":other", "x")]))));
    assert!(is_malformed(request(&get(&[(":status", "200")]))));
    assert!(is_malformed(request(&get(&[(":path", "/")]))));
    assert!(is_malformed(request(
        &[&GET[..3], &[("a", "b")], &GET[3..]].concat()
    )));
    assert!(is_malformed(response(&[
        (":status", "200"),
        (":path", "/")
    ])));
    assert!(is_malformed(response(&[
        (":status", "200"),
        (":status", "200")
    ])));
    assert!(is_malformed(response(&[("a", "b"), (":status", "200")])));
    assert!(is_malformed(trailers(&[(":status", "200")])));
    assert!(is_malformed(trailers(&[(":path", "/")])));
    assert!(trailers(&[("grpc-status", "0")]).is_ok());
}

/// RFC 9114 §4.3.1.
#[test]
fn refuses_requests_that_lack_a_pseudo_header_field() {
    for name in [":method", ":scheme", ":path", ":authority"] {
        assert!(is_malformed(request(&get_with(name, None))), "{name}");
    }
    assert!(is_malformed(request(&get_with(":path", Some("")))));
    assert!(is_malformed(request(&get_with(":authority", Some("")))));
    // The two error vectors for QPACK that are valid sections but not messages.
    assert!(is_malformed(request(&[(":authority", "")])));
    assert!(is_malformed(request(&[(
        "x-xss-protection",
        "1; mode=block"
    )])));
}

/// RFC 9114 §4.3.1.
#[test]
fn takes_host_for_a_missing_authority() {
    let mut lines = get_with(":authority", None);
    lines.push(("host", "example.org:444"));
    let (request, _) = self::request(&lines).expect("a request");
    assert_eq!(
        request.uri().authority().map(|a| a.as_str()),
        Some("example.org:444")
    );
    let mut lines = get_with(":authority", None);
    lines.push(("host", ""));
    assert!(is_malformed(self::request(&lines)));
}

/// RFC 9114 §4.3.1.
#[test]
fn refuses_authority_and_host_that_disagree() {
    assert!(request(&get(&[("host", "example.org")])).is_ok());
    assert!(request(&get(&[("host", "EXAMPLE.org")])).is_ok());
    assert!(is_malformed(request(&get(&[("host", "example.com")]))));
    assert!(is_malformed(request(&get(&[
        ("host", "example.org"),
        ("host", "example.org")
    ]))));
}

/// RFC 9114 §4.3.1.
#[test]
fn refuses_invalid_values_of_pseudo_header_fields() {
    for (name, values) in [
        (":method", &["", "G T", "GET\r\n", "G\u{e9}T"][..]),
        (":scheme", &["", "1http", "ht tp"]),
        (
            ":authority",
            &["user@example.org", "exa mple.org", "example.org/", "a:b:c"],
        ),
        (":path", &["a", "/a b", "/\u{7f}", "/a#b", "*", "/\0"]),
    ] {
        for value in values {
            assert!(
                is_malformed(request(&get_with(name, Some(value)))),
                "{name}: {value:?}"
            );
        }
    }
}

#[test]
fn asterisk_form_of_options_is_accepted() {
    let mut lines = get_with(":path", Some("*"));
    lines.retain(|line| line.0 != ":method");
    lines.insert(0, (":method", "OPTIONS"));
    let (request, _) = self::request(&lines).expect("a request");
    assert_eq!(request.uri().path(), "*");
}

/// RFC 9114 §4.3.2.
#[test]
fn refuses_responses_without_a_valid_status() {
    for status in [
        "", "20", "2000", "abc", "099", "600", "999", "+20", " 200", "101",
    ] {
        assert!(is_malformed(response(&[(":status", status)])), "{status:?}");
    }
    assert!(is_malformed(response(&[("server", "x")])));
    for status in ["100", "103", "200", "599"] {
        assert!(response(&[(":status", status)]).is_ok(), "{status}");
    }
}

/// RFC 9114 §4.4.
#[test]
fn connect_has_a_method_and_an_authority_with_a_port() {
    let connect = |lines: &[(&'static str, &'static str)]| {
        request(&[&[(":method", "CONNECT")], lines].concat())
    };
    let (request, _) = connect(&[(":authority", "example.org:443")]).expect("a CONNECT");
    assert_eq!(request.uri(), "example.org:443");
    assert!(is_malformed(connect(&[])));
    assert!(is_malformed(connect(&[(":authority", "example.org")])));
    assert!(is_malformed(connect(&[
        (":authority", "example.org:443"),
        (":scheme", "https")
    ])));
    assert!(is_malformed(connect(&[
        (":authority", "example.org:443"),
        (":path", "/")
    ])));
}

/// RFC 9220 §3.
#[test]
fn extended_connect_is_accepted_if_enabled() {
    let lines = [
        &[(":method", "CONNECT"), (":protocol", "websocket")],
        &GET[1..],
    ]
    .concat();
    let request = extended(&lines).expect("an extended CONNECT");
    assert_eq!(request.extensions().get(), Some(&Protocol::WEBSOCKET));
    assert_eq!(request.uri(), "https://example.org/a?b");
    assert!(is_malformed(self::request(&lines)), "not enabled");
    assert!(
        is_malformed(extended(&get(&[(":protocol", "websocket")]))),
        "no CONNECT"
    );
    assert!(is_malformed(extended(&lines[..4])), "no :path");
    let bad = [
        &[(":method", "CONNECT"), (":protocol", "web socket")],
        &GET[1..],
    ]
    .concat();
    assert!(is_malformed(extended(&bad)));
}

/// RFC 9114 §4.2, §10.3.
#[test]
fn refuses_invalid_names_and_values() {
    for name in [
        "Upper", "", "a b", "a:b", "a\r", "a\n", "a\0", "\u{e9}", "\u{7f}",
    ] {
        assert!(
            is_malformed(response(&[(":status", "200"), (name, "x")])),
            "{name:?}"
        );
        assert!(is_malformed(trailers(&[(name, "x")])), "{name:?}");
    }
    for value in ["a\rb", "a\nb", "a\0b", " a", "a ", "\ta", "a\t", "a\u{7f}"] {
        assert!(
            is_malformed(request(&get(&[("x", "ok"), ("y", value)]))),
            "{value:?}"
        );
    }
    assert!(request(&get(&[("x", "a\tb c\u{e9}"), ("y", "")])).is_ok());
}

/// RFC 9114 §4.2.
#[test]
fn refuses_fields_of_a_connection() {
    for name in [
        "connection",
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
        "upgrade",
    ] {
        assert!(is_malformed(request(&get_with(name, Some("x")))), "{name}");
        assert!(
            is_malformed(response(&[(":status", "200"), (name, "x")])),
            "{name}"
        );
    }
    assert!(is_malformed(request(&get(&[("te", "gzip")]))));
    assert!(is_malformed(request(&get(&[("te", "trailers, gzip")]))));
    assert!(request(&get(&[("te", "trailers")])).is_ok());
}

/// RFC 9114 §4.1.2.
#[test]
fn different_or_invalid_content_lengths_are_refused() {
    assert!(is_malformed(request(&get(&[
        ("content-length", "1"),
        ("content-length", "2")
    ]))));
    for value in ["", "-1", "+1", "1 2", "0x1", "99999999999999999999"] {
        assert!(
            is_malformed(response(&[(":status", "200"), ("content-length", value)])),
            "{value}"
        );
    }
    let lines = get(&[("content-length", "1"), ("content-length", "1")]);
    let (request, length) = self::request(&lines).expect("equal values are allowed");
    assert_eq!(length, Some(1));
    assert_eq!(
        request.headers().get_all("content-length").iter().count(),
        1
    );
}

/// RFC 9204 §7.1.3: a literal that must not be indexed remains one, joined or not.
#[test]
fn cookies_stay_out_of_tables_when_they_are_joined() {
    for (is_first, is_second) in [(false, false), (true, false), (false, true)] {
        let mut cache = LineCache::default();
        let mut collector = Collector::new(Kind::Request, FieldLimits::REQUEST, &mut cache);
        let cookies = [("cookie", "a=1", is_first), ("cookie", "b=2", is_second)];
        let lines = GET.map(|(name, value)| (name, value, false));
        for (name, value, is_sensitive) in lines.into_iter().chain(cookies) {
            collector.line(&DecodedLine {
                name: Text::Literal(name.as_bytes()),
                value: Text::Literal(value.as_bytes()),
                origin: Origin::Literal,
                is_sensitive,
            });
        }
        let (request, _) = collector.finish_request(false).expect("a request");
        let cookie = &request.headers()["cookie"];
        assert_eq!(cookie, "a=1; b=2");
        assert_eq!(cookie.is_sensitive(), is_first || is_second);
        let (parts, ()) = request.into_parts();
        let fields = FieldsToSend::request(&parts).expect("valid fields");
        let sent = fields.lines().find(|line| line.name == b"cookie");
        assert_eq!(
            sent.map(|line| line.is_sensitive),
            Some(is_first || is_second)
        );
    }
}

/// RFC 9114 §4.2.1.
#[test]
fn joins_cookies() {
    let (request, _) =
        request(&get(&[("cookie", "a=1"), ("x", "y"), ("cookie", "b=2")])).expect("a request");
    assert_eq!(request.headers()["cookie"], "a=1; b=2");
    assert_eq!(request.headers().get_all("cookie").iter().count(), 1);
}

/// §4.2.2, §10.5.1: limits apply after decompression, in header sections and trailers alike.
#[test]
fn refuses_sections_that_are_too_large() {
    let long = "v".repeat(32_000);
    let name = "n".repeat(257);
    let value = "v".repeat(64 * 1024 + 1);
    let line = ("x", long.as_str());
    let many = vec![("x", "y"); 1025];
    for lines in [
        &[line; 3][..],
        &[(name.as_str(), "x")],
        &[("x", value.as_str())],
        &many,
    ] {
        let result = trailers(lines);
        assert!(
            matches!(result, Err(FieldsError::TooLarge(_))),
            "{result:?}"
        );
        let result = request(&[&GET[..], lines].concat());
        assert!(
            matches!(result, Err(FieldsError::TooLarge(_))),
            "{result:?}"
        );
    }
    assert!(trailers(&[line]).is_ok());
    assert!(trailers(&many[..1024]).is_ok());
    assert!(trailers(&[(&name[..256], "x")]).is_ok());
    // A name of one byte and 32 for the field line.
    let most = 64 * 1024 - 33;
    assert!(trailers(&[("x", &value[..most])]).is_ok());
    let result = trailers(&[("x", &value[..=most])]);
    assert!(
        matches!(result, Err(FieldsError::TooLarge(_))),
        "{result:?}"
    );
}

fn sent(request: Request<()>) -> Result<Vec<(String, String)>, RequestError> {
    let (parts, ()) = request.into_parts();
    let fields = FieldsToSend::request(&parts)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(fields
        .lines()
        .map(|line| (text(line.name), text(line.value)))
        .collect())
}

fn has(lines: &[(String, String)], name: &str) -> bool {
    lines.iter().any(|line| line.0 == name)
}

/// RFC 9114 §4.2, §4.3.1.
#[test]
fn requests_are_written_as_required() {
    let request = Request::builder()
        .uri("https://user:secret@example.org?x")
        .header("Host", "example.org")
        .header("Connection", "close, X-Hop")
        .header("X-Hop", "1")
        .header("Transfer-Encoding", "chunked")
        .header("Upgrade", "websocket")
        .header("TE", "gzip")
        .header("Accept", "*/*")
        .body(())
        .expect("a request");
    let lines = sent(request).expect("valid fields");
    let expected = [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "example.org"),
        (":path", "/?x"),
        ("accept", "*/*"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(lines, expected);
}

#[test]
fn writes_connect_without_scheme_and_path() {
    let connect = |uri: &str| Request::connect(uri).body(()).expect("a request");
    let lines = sent(connect("example.org:443")).expect("valid fields");
    assert!(!has(&lines, ":scheme") && !has(&lines, ":path"));
    assert_eq!(sent(connect("example.org")), Err(RequestError::NoPort));
    let mut extended = connect("https://example.org/chat");
    extended.extensions_mut().insert(Protocol::WEBSOCKET);
    let lines = sent(extended).expect("valid fields");
    for (name, value) in [
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":authority", "example.org"),
        (":path", "/chat"),
    ] {
        assert!(
            lines.contains(&(name.to_owned(), value.to_owned())),
            "{lines:?}"
        );
    }
}

/// §4.2, §4.5: a response has no connection-specific fields either.
#[test]
fn writes_responses_without_fields_of_a_connection() {
    let response = Response::builder()
        .header("Connection", "upgrade, X-Hop")
        .header("X-Hop", "1")
        .header("Keep-Alive", "5")
        .header("Transfer-Encoding", "chunked")
        .header("Upgrade", "websocket")
        .header("Server", "x")
        .body(())
        .expect("a response");
    let (parts, ()) = response.into_parts();
    let fields = FieldsToSend::response(&parts.status, &parts.headers);
    let names: Vec<_> = fields
        .lines()
        .map(|line| String::from_utf8_lossy(line.name).into_owned())
        .collect();
    assert_eq!(names, [":status", "server"]);
}

#[test]
fn error_names_the_missing_part_of_a_uri() {
    let get = |uri: &str| Request::get(uri).body(()).expect("a request");
    assert_eq!(sent(get("/path")), Err(RequestError::NoAuthority));
    let mut request = get("/path");
    request
        .headers_mut()
        .insert("host", http::HeaderValue::from_static("example.org"));
    assert_eq!(sent(request), Err(RequestError::NoScheme));
}

#[test]
fn asterisk_and_sensitive_values_are_sent() {
    let uri = http::Uri::builder()
        .scheme("https")
        .authority("example.org")
        .path_and_query("*")
        .build()
        .expect("a URI");
    let mut request = Request::options(uri).body(()).expect("a request");
    let lines = sent(request.clone()).expect("valid fields");
    assert!(
        lines.contains(&(":path".to_owned(), "*".to_owned())),
        "{lines:?}"
    );
    let mut value = http::HeaderValue::from_static("secret");
    value.set_sensitive(true);
    request.headers_mut().insert("x-key", value);
    let (parts, ()) = request.into_parts();
    let fields = FieldsToSend::request(&parts).expect("valid fields");
    assert!(
        fields
            .lines()
            .any(|line| line.name == b"x-key" && line.is_sensitive)
    );
}

proptest! {
    /// Any field lines are a message or an error, and the message can be sent again.
    #[test]
    fn survives_any_lines(lines in prop::collection::vec((".{0,12}", ".{0,12}"), 0..8), real in 0usize..5) {
        let lines: Vec<_> = GET[..real.min(4)]
            .iter()
            .copied()
            .chain(lines.iter().map(|(name, value)| (name.as_str(), value.as_str())))
            .collect();
        if let Ok((request, _)) = request(&lines) {
            let (parts, ()) = request.into_parts();
            prop_assert!(FieldsToSend::request(&parts).is_ok() || parts.uri.scheme().is_none());
        }
        let _ = response(&lines);
        let _ = trailers(&lines);
    }
}

/// RFC 9114 §4.3.1. Requests without an authority are not sent, so none has a scheme without one.
#[test]
fn schemes_without_an_authority_are_never_sent() {
    let uri = http::Uri::builder().scheme("urn").path_and_query("/name");
    assert!(uri.build().is_err(), "a scheme comes with an authority");
    for host in [None, Some("example.org")] {
        let mut request = Request::get("/name").body(()).expect("a request");
        if let Some(host) = host {
            let host = http::HeaderValue::from_static(host);
            request.headers_mut().insert("host", host);
        }
        assert!(sent(request).is_err(), "{host:?}");
    }
}
