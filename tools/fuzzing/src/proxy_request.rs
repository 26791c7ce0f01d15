//! Requests through the proxy, and the responses of its backend.

mod message;

use bytes::Bytes;
use courser_base::{Side, Time};
use courser_http3::{Config, Connection, Section};
use courser_qpack::{Encoder, EncoderLimits, FieldLine};
use courser_services::fuzzing::{
    Answered, Content, ContentEnd, Exchange, pass_bytes, pass_request,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Version};

use self::message::Message;
use crate::input::Input;

/// Passes requests of a client and responses of a backend through the proxy. The client sends
/// arbitrary bytes over HTTP/1.1, or arbitrary field lines, content and trailers over HTTP/2 or HTTP/3.
/// The backend sends arbitrary bytes.
///
/// # Panics
/// Panics if the backend receives anything but well-formed requests, each with exactly the requested host
/// and without fields of the client's connection, or other content than the client has sent, or a
/// complete request that the client has reset, or trailers that frame, route or authenticate. Also if the
/// client receives fields of the backend's connection, or content whose length differs from
/// `content-length`.
pub fn proxy_request(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let operation = input.byte();
    let response_len = usize::from(input.short()) % 4096;
    let response = input.take(response_len);
    let response = if operation & 1 == 0 || response.is_empty() {
        RESPONSE
    } else {
        response
    };
    match operation >> 1 & 3 {
        0 | 1 => {
            let rest = input.take(usize::MAX);
            let _ = check(&pass_bytes(rest, response));
        }
        version => {
            let has_content = operation & 8 != 0;
            let content = if has_content {
                content(&mut input)
            } else {
                Content::default()
            };
            let Some((mut request, length)) = request(&mut input) else {
                return;
            };
            // One that announces content and ends its stream would not reach a service.
            if !has_content && length.unwrap_or(0) > 0 {
                return;
            }
            if version == 2 {
                *request.version_mut() = Version::HTTP_2;
            }
            let exchange = pass_request(request, content.clone(), response);
            let sent = check(&exchange);
            for message in &sent {
                check_content(message, &content, length.is_some());
            }
        }
    }
}

/// The default response of the backend.
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Returns the content of a request: up to three pieces, and in half of all inputs trailers or a reset.
fn content(input: &mut Input<'_>) -> Content {
    let count = input.below(4);
    let pieces = (0..count).map(|_| Bytes::copy_from_slice(input.bytes()));
    let pieces = pieces.collect();
    let end = match input.below(4) {
        0 | 1 => ContentEnd::Complete,
        2 => ContentEnd::Trailers(trailers(input)),
        _ => ContentEnd::Reset,
    };
    Content { pieces, end }
}

/// Returns up to three trailers. Those that no client of HTTP/2 can send are left out.
fn trailers(input: &mut Input<'_>) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    for _ in 0..input.below(4) {
        let name = name(input);
        let (name, value) = (HeaderName::from_bytes(&name), input.bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
            trailers.append(name, value);
        }
    }
    trailers
}

/// Returns one of [`NAMES`] or arbitrary bytes.
fn name(input: &mut Input<'_>) -> Vec<u8> {
    let choice = usize::from(input.byte());
    match NAMES.get(choice) {
        Some(name) => name.as_bytes().to_vec(),
        None => input.bytes().to_vec(),
    }
}

/// Returns a request as the HTTP/3 decoder passes it to a service, and the length that it announces, or
/// `None` if the decoder refuses it.
fn request(input: &mut Input<'_>) -> Option<(Request<()>, Option<u64>)> {
    let mut lines: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for (name, value) in [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "a.example"),
        (":path", "/"),
    ] {
        let value = match input.byte() {
            0 => value.as_bytes(),
            1 => continue,
            _ => input.bytes(),
        };
        lines.push((name.into(), value.into()));
    }
    while !input.is_empty() {
        lines.push((name(input), input.bytes().to_vec()));
    }
    let mut encoder = Encoder::new(
        EncoderLimits {
            max_table_capacity: 0,
            max_blocked_streams: 0,
        },
        1,
    );
    let mut section = Vec::new();
    let fields = lines
        .iter()
        .map(|(name, value)| FieldLine::new(name, value));
    encoder.encode(0, || fields.clone(), &mut section);
    let now = Time::from_nanos(1);
    let mut connection = Connection::new(Side::Server, Config::new(Side::Server), 1, now);
    connection.on_request_opened(0);
    let Ok(Section::Decoded(Ok((request, length)))) = connection.decode_request(0, &section) else {
        return None;
    };
    let is_tunnel = request.method() == Method::CONNECT;
    (!is_tunnel).then_some((request, length))
}

const NAMES: [&str; 22] = [
    "host",
    "connection",
    "keep-alive",
    "te",
    "transfer-encoding",
    "content-length",
    "upgrade",
    "proxy-connection",
    "proxy-authorization",
    "expect",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "via",
    "cookie",
    "trailer",
    "x-a",
    "x-b",
    "accept",
    "range",
];

/// Checks the requests that the backend received and the responses that the client received. Returns the
/// requests.
fn check(exchange: &Exchange) -> Vec<Message> {
    let mut sent = Vec::new();
    for bytes in &exchange.sent {
        sent.extend(message::requests(bytes));
    }
    assert!(
        sent.len() <= exchange.passed.len(),
        "{} requests became {}: {exchange:?}",
        exchange.passed.len(),
        sent.len(),
    );
    for message in &sent {
        check_request(message, exchange);
    }
    for passed in &exchange.passed {
        passed.response.as_ref().map(check_response);
    }
    sent
}

/// Checks the content of a request that the backend received. `has_length` is true if the client announced its
/// length.
fn check_content(message: &Message, sent: &Content, has_length: bool) {
    let Some(rest) = &message.rest else {
        return;
    };
    let all = sent.pieces.concat();
    if has_length {
        // The proxy forwards what has arrived, before it learns that there is more or a reset.
        assert!(all.starts_with(&rest.content), "{message:?} {sent:?}");
        return;
    }
    assert_eq!(rest.content, all, "{message:?} {sent:?}");
    let is_reset = matches!(sent.end, ContentEnd::Reset);
    assert!(!is_reset, "reset by the client: {message:?} {sent:?}");
    for (name, value) in &rest.trailers {
        let ContentEnd::Trailers(trailers) = &sent.end else {
            panic!("trailers that were not sent: {message:?} {sent:?}");
        };
        let mut values = trailers.get_all(name).iter();
        let is_same = |sent: &HeaderValue| {
            let text: String = sent
                .as_bytes()
                .iter()
                .map(|&byte| char::from(byte))
                .collect();
            text.trim() == value
        };
        assert!(values.any(is_same), "{name}: {message:?} {sent:?}");
    }
}

/// Fields that never arrive as trailers (RFC 9110 §6.5.1).
const NO_TRAILERS: [&str; 12] = [
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "proxy-authorization",
    "te",
    "transfer-encoding",
    "upgrade",
    "x-forwarded-for",
];

/// Checks a request that the backend received.
fn check_request(message: &Message, exchange: &Exchange) {
    let hosts: Vec<_> = message.all("host").collect();
    assert_eq!(hosts.len(), 1, "{message:?}");
    let host = hosts[0];
    let is_requested = exchange.passed.iter().any(|passed| {
        let target = passed.uri.authority().map(http::uri::Authority::as_str);
        let field = passed.request.get("host").map(http::HeaderValue::as_bytes);
        // A request without either, as in HTTP/1.0, gets the host of the backend.
        target
            .map(str::as_bytes)
            .or(field)
            .unwrap_or(b"backend.internal:8080")
            == host.as_bytes()
    });
    assert!(
        is_requested,
        "a host that was not requested: {message:?} {exchange:?}"
    );
    check_fields(message);
    let is_listed = |name: &str| {
        exchange
            .passed
            .iter()
            .all(|passed| lists(&passed.request, name))
    };
    for (name, _) in &message.fields {
        let is_ours = [
            "host",
            "te",
            "via",
            "connection",
            "upgrade",
            "transfer-encoding",
            "trailer",
            "max-forwards",
            "early-data",
        ]
        .contains(&name.as_str())
            || name.starts_with("x-forwarded-")
            || name == "content-length";
        assert!(
            is_ours || !is_listed(name),
            "{name} is listed in connection: {message:?}"
        );
    }
}

/// Checks the fields that do not depend on the request of the client.
fn check_fields(message: &Message) {
    let is_upgrade = message
        .all("connection")
        .any(|value| value.starts_with("upgrade"));
    for name in [
        "keep-alive",
        "proxy-connection",
        "proxy-authorization",
        "proxy-authenticate",
    ] {
        assert_eq!(message.all(name).count(), 0, "{name}: {message:?}");
    }
    let options = ["upgrade", "te", "upgrade, te"];
    assert!(
        message
            .all("connection")
            .all(|value| options.contains(&value)),
        "{message:?}"
    );
    assert!(
        message.all("upgrade").all(|value| value == "websocket"),
        "{message:?}"
    );
    assert!(
        message.fields.iter().all(|(name, _)| !name.contains('_')),
        "{message:?}"
    );
    assert_eq!(message.fields[0].0, "host", "{message:?}");
    let trailers = message.rest.iter().flat_map(|rest| &rest.trailers);
    for (name, _) in trailers {
        assert!(!NO_TRAILERS.contains(&name.as_str()), "{message:?}");
    }
    assert!(
        is_upgrade || message.all("upgrade").next().is_none(),
        "{message:?}"
    );
    assert!(
        message.all("te").all(|value| value == "trailers"),
        "{message:?}"
    );
    assert_eq!(message.all("x-real-ip").count(), 0, "{message:?}");
    assert_eq!(message.all("x-forwarded-for").count(), 0, "{message:?}");
    assert_eq!(message.all("forwarded").count(), 0, "{message:?}");
    assert!(
        message.all("x-forwarded-proto").eq(["https"]),
        "{message:?}"
    );
}

/// Returns true if the Connection field lists `name` (RFC 9110 §7.6.1).
fn lists(headers: &HeaderMap, name: &str) -> bool {
    let values = headers.get_all("connection").iter();
    let text = values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let tokens: Vec<String> = text
        .flat_map(|text| {
            text.split(',')
                .map(|it| it.trim().to_owned())
                .collect::<Vec<_>>()
        })
        .collect();
    tokens.iter().any(|token| token.eq_ignore_ascii_case(name))
}

/// Checks the response that the client receives.
fn check_response(answered: &Answered) {
    let headers = &answered.headers;
    let is_upgraded = matches!(answered.status, 101 | 426);
    assert!(answered.status < 600, "{answered:?}");
    for name in [
        "keep-alive",
        "proxy-connection",
        "te",
        "transfer-encoding",
        "alt-svc",
    ] {
        assert!(!headers.contains_key(name), "{name}: {answered:?}");
    }
    assert!(
        is_upgraded || !headers.contains_key("connection"),
        "{answered:?}"
    );
    assert!(
        is_upgraded || !headers.contains_key("upgrade"),
        "{answered:?}"
    );
    let lengths: Vec<_> = headers.get_all("content-length").iter().collect();
    assert!(lengths.len() <= 1, "{answered:?}");
    let announced: Option<u64> = lengths
        .first()
        .map(|value| value.to_str().ok().and_then(|text| text.parse().ok()))
        .map(|length| length.unwrap_or_else(|| panic!("no number: {answered:?}")));
    let has_content = !matches!(answered.status, 100..=199 | 204 | 304);
    if let (Some(announced), Some(content)) = (announced, answered.content)
        && has_content
        // A response to HEAD has no content.
        && content > 0
    {
        assert_eq!(announced, content, "{answered:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forwards a request with content. Returns the content at the backend, or `None` if it is incomplete.
    fn forwarded(request: http::request::Builder, end: ContentEnd) -> Option<message::Rest> {
        let request = request.method("POST").uri("https://a.example/");
        let request = request.version(Version::HTTP_2).body(());
        let pieces = vec![Bytes::from("abc"), Bytes::from("de")];
        let content = Content { pieces, end };
        let exchange = pass_request(request.expect("a request"), content, RESPONSE);
        let mut sent = check(&exchange);
        assert!(sent.len() <= 1, "{exchange:?}");
        sent.pop()?.rest
    }

    #[test]
    fn content_arrives_with_its_trailers_and_resets_leave_it_incomplete() {
        let unknown = forwarded(Request::builder(), ContentEnd::Complete);
        assert_eq!(unknown.expect("complete").content, b"abcde");
        let known = Request::builder().header("content-length", "5");
        let known = forwarded(known, ContentEnd::Complete);
        assert_eq!(known.expect("complete").content, b"abcde");
        let mut trailers = HeaderMap::new();
        trailers.insert("x-a", HeaderValue::from_static("1"));
        trailers.insert("content-length", HeaderValue::from_static("9"));
        let request = Request::builder().header("te", "trailers");
        let rest = forwarded(
            request.header("trailer", "x-a"),
            ContentEnd::Trailers(trailers),
        );
        let rest = rest.expect("complete");
        assert_eq!(rest.trailers, [("x-a".to_owned(), "1".to_owned())]);
        assert!(forwarded(Request::builder(), ContentEnd::Reset).is_none());
        let longer = Request::builder().header("content-length", "6");
        assert!(forwarded(longer, ContentEnd::Complete).is_none());
    }
}
