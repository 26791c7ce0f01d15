use super::*;
use crate::testing::{request, session};

fn check(dialect: Dialect, request: &Request<()>) -> Result<Opening, Refusal> {
    Opening::check(session(0), dialect, false, request, &Origins::same_host())
}

fn opening(request: &Request<()>) -> Opening {
    check(Dialect::NEWEST, request).expect("a request that may be accepted")
}

fn with(name: &'static str, value: &'static str) -> Request<()> {
    let mut request = request(Dialect::NEWEST);
    request
        .headers_mut()
        .append(name, HeaderValue::from_static(value));
    request
}

fn response(status: u16, protocol: Option<&'static str>) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
    if let Some(protocol) = protocol {
        response
            .headers_mut()
            .insert(CHOSEN, HeaderValue::from_static(protocol));
    }
    response
}

fn wish() -> SessionRequest {
    SessionRequest::new("https://example.org/chat?x=1".parse().expect("a URI"))
}

fn offering() -> SessionRequest {
    wish().protocols(Protocols::new(["chat.2", "chat.1"]).expect("valid"))
}

/// draft-ietf-webtrans-http3-16 §3.2; WT-h3-028.
#[test]
fn request_is_an_extended_connect_without_content() {
    for dialect in Dialect::ALL {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("5"));
        headers.insert("x-test", HeaderValue::from_static("1"));
        let request = offering()
            .headers(headers)
            .to_request(dialect)
            .expect("a request");
        assert_eq!(request.method(), Method::CONNECT);
        assert_eq!(request.uri(), "https://example.org/chat?x=1");
        let protocol: &Protocol = request.extensions().get().expect("a protocol");
        let token = if dialect == Dialect::Draft16 {
            "webtransport-h3"
        } else {
            "webtransport"
        };
        assert_eq!(protocol.as_str(), token);
        let fields = request.headers();
        assert!(!fields.contains_key(CONTENT_LENGTH) && fields.contains_key("x-test"));
        assert_eq!(fields["wt-available-protocols"], "\"chat.2\", \"chat.1\"");
        let has_draft02 = fields.contains_key("sec-webtransport-http3-draft02");
        assert_eq!(has_draft02, dialect == Dialect::Draft02);
        assert!(is_session_request(&request));
    }
}

#[test]
fn requests_need_https_and_a_host() {
    for (uri, is_scheme) in [("http://example.org/", true), ("/path", false)] {
        let uri: Uri = uri.parse().expect("a URI");
        let error = SessionRequest::new(uri.clone())
            .to_request(Dialect::NEWEST)
            .expect_err("invalid");
        let expected = if is_scheme {
            InvalidRequest::Scheme(uri)
        } else {
            InvalidRequest::NoAuthority(uri)
        };
        assert_eq!(error, expected);
    }
}

#[test]
fn other_requests_are_no_session_requests() {
    let mut get = request(Dialect::NEWEST);
    *get.method_mut() = Method::GET;
    assert!(!is_session_request(&get));
    let mut websocket = request(Dialect::NEWEST);
    websocket.extensions_mut().insert(Protocol::WEBSOCKET);
    assert!(!is_session_request(&websocket));
    websocket.extensions_mut().clear();
    assert!(!is_session_request(&websocket));
}

/// draft-ietf-webtrans-http3-16 §3.2; WT-h3-029.
#[test]
fn request_with_another_scheme_or_without_authority_is_malformed() {
    for uri in ["http://example.org/", "wss://example.org/", "/chat"] {
        let mut request = request(Dialect::NEWEST);
        *request.uri_mut() = uri.parse().expect("a URI");
        let refusal = check(Dialect::NEWEST, &request).expect_err("malformed");
        assert!(
            matches!(
                refusal,
                Refusal::Reset {
                    code: Code::MESSAGE_ERROR,
                    ..
                }
            ),
            "{uri}: {refusal}"
        );
    }
}

/// draft-ietf-webtrans-http3-16 §3.2; WT-h3-004, WT-h3-031, A259.
#[test]
fn request_from_another_origin_is_forbidden() {
    for origin in ["https://evil.example", "null", "", "x"] {
        let refusal = check(Dialect::NEWEST, &with("origin", origin)).expect_err("forbidden");
        assert!(
            matches!(
                refusal,
                Refusal::Status {
                    status: StatusCode::FORBIDDEN,
                    ..
                }
            ),
            "{origin}"
        );
    }
    let opening = opening(&with("origin", "https://example.org"));
    assert_eq!(opening.origin.expect("an origin"), "https://example.org");
}

/// draft-ietf-webtrans-http3-16 §3.2; WT-h3-037.
#[test]
fn capsule_protocol_field_has_no_effect() {
    for value in ["?1", "?0", "x"] {
        assert_eq!(
            opening(&with("capsule-protocol", value)),
            opening(&request(Dialect::NEWEST))
        );
        let mut response = response(200, None);
        response
            .headers_mut()
            .insert("capsule-protocol", HeaderValue::from_static(value));
        assert_eq!(wish().answer(&response), Answer::Established(None));
    }
}

/// WT-v-010: Chromium and Firefox, and Chromium with its flag for draft 07.
#[test]
fn field_of_draft_02_is_confirmed_where_it_was_sent() {
    for dialect in [Dialect::Draft02, Dialect::Draft07] {
        let mut request = request(dialect);
        let plain = check(dialect, &request).expect("allowed");
        assert!(plain.response_headers(None).expect("headers").is_empty());
        request
            .headers_mut()
            .insert(DRAFT02_REQUEST, HeaderValue::from_static("1"));
        let opening = check(dialect, &request).expect("allowed");
        let headers = opening.response_headers(None).expect("headers");
        assert_eq!(headers["sec-webtransport-http3-draft"], "draft02");
    }
}

/// WT-v-011.
#[test]
fn client_does_not_look_at_the_confirmation_of_draft_02() {
    for value in [None, Some("draft02"), Some("draft99")] {
        let mut response = response(200, None);
        if let Some(value) = value {
            response
                .headers_mut()
                .insert(DRAFT02_RESPONSE, HeaderValue::from_static(value));
        }
        assert_eq!(wish().answer(&response), Answer::Established(None));
    }
}

/// draft-ietf-webtrans-http3-16 §3.3; WT-h3-042, MT-001.
#[test]
fn chosen_protocol_is_one_of_the_offered() {
    let opening = opening(&with("wt-available-protocols", "\"chat.2\", \"chat.1\""));
    let chosen = opening.protocols.select(["chat.1", "chat.2"]);
    let headers = opening.response_headers(chosen).expect("offered");
    assert_eq!(headers["wt-protocol"], "\"chat.2\"");
    let error = opening
        .response_headers(Some("chat.3"))
        .expect_err("not offered");
    assert!(error.to_string().contains("chat.3") && error.to_string().contains("chat.1"));
}

/// draft-ietf-webtrans-http3-16 §3.3; WT-h3-044; §3.2; WT-h3-030.
#[test]
fn servers_refuse_without_a_protocol_and_without_sessions() {
    let statuses = [Refusal::no_protocol(), Refusal::no_sessions_here()].map(|refusal| {
        assert!(!refusal.reason().is_empty());
        match refusal {
            Refusal::Status { status, .. } => status.as_u16(),
            Refusal::Reset { .. } => 0,
        }
    });
    assert_eq!(statuses, [400, 405]);
}

/// draft-ietf-webtrans-http3-16 §4.1; WT-h3-053.
#[test]
fn server_with_one_session_tells_its_quota() {
    for (is_alone, dialect, expected) in [
        (true, Dialect::NEWEST, true),
        (false, Dialect::NEWEST, false),
        (true, Dialect::Draft14, false),
    ] {
        let request = request(dialect);
        let origins = Origins::same_host();
        let opening =
            Opening::check(session(0), dialect, is_alone, &request, &origins).expect("allowed");
        let headers = opening.response_headers(None).expect("headers");
        assert_eq!(headers.contains_key("ratelimit-policy"), expected);
    }
}

/// draft-ietf-webtrans-http3-16 §3.2; WT-h3-005, WT-h3-038.
#[test]
fn only_a_final_2xx_response_establishes_a_session() {
    for status in [100, 103, 199] {
        assert_eq!(wish().answer(&response(status, None)), Answer::Interim);
    }
    for status in [200, 204, 299] {
        assert_eq!(
            wish().answer(&response(status, None)),
            Answer::Established(None)
        );
    }
    for status in [300, 302, 308, 403, 405, 429, 501] {
        let expected = Answer::Refused(StatusCode::from_u16(status).expect("a status"));
        assert_eq!(
            wish().answer(&response(status, Some("\"chat.1\""))),
            expected
        );
    }
}

/// draft-ietf-webtrans-http3-16 §3.3; WT-h3-008, WT-h3-043.
#[test]
fn protocol_that_was_not_offered_or_is_missing_ends_the_session() {
    let required = offering().require_protocol();
    for (chosen, optional_answer, required_answer) in [
        (Some("\"chat.1\""), Some("chat.1"), Some("chat.1")),
        (Some("\"chat.1\";x=1"), Some("chat.1"), Some("chat.1")),
        (None, Some(""), None),
        (Some("chat.1"), Some(""), None),
        (Some("\"chat.3\""), None, None),
    ] {
        let expected = |answer: Option<&str>| match answer {
            None => Answer::WrongProtocol,
            Some("") => Answer::Established(None),
            Some(chosen) => Answer::Established(Some(chosen.to_owned())),
        };
        let response = response(200, chosen);
        assert_eq!(
            offering().answer(&response),
            expected(optional_answer),
            "{chosen:?}"
        );
        assert_eq!(
            required.answer(&response),
            expected(required_answer),
            "{chosen:?}"
        );
        assert!(matches!(
            wish().answer(&response),
            Answer::Established(None)
        ));
    }
}
