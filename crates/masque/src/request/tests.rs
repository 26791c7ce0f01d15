use courser_http3::Protocol;
use http::{HeaderMap, Method, Version};

use super::*;

fn template() -> Template {
    Template::of_proxy("proxy.example:4433").expect("valid")
}

fn paths() -> Template {
    Template::path(Template::WELL_KNOWN).expect("valid")
}

fn request(carrier: Carrier) -> Request<()> {
    let target = "[2001:db8::1]:443".parse().expect("valid");
    connect_udp(&template(), &target, carrier).expect("a URI")
}

fn status(request: &Request<()>, protocol: Option<&str>) -> u16 {
    match check(request, protocol, &paths()) {
        Ok(_) => 200,
        Err(refusal) => refusal.status.as_u16(),
    }
}

/// MQ-udp-005, MQ-udp-012, MQ-udp-013, MQ-udp-015.
#[test]
fn requests_have_the_form_of_their_version() {
    let path = "/.well-known/masque/udp/2001%3Adb8%3A%3A1/443/";
    let over_1 = request(Carrier::Http1);
    assert_eq!(
        (over_1.method(), over_1.uri().to_string()),
        (&Method::GET, path.to_owned())
    );
    for (name, value) in [
        ("host", "proxy.example:4433"),
        ("connection", "Upgrade"),
        ("upgrade", "connect-udp"),
        ("capsule-protocol", "?1"),
    ] {
        assert_eq!(over_1.headers()[name], value);
    }
    for carrier in [Carrier::Http2, Carrier::Http3] {
        let over = request(carrier);
        assert_eq!(over.method(), Method::CONNECT);
        assert_eq!(
            over.uri().to_string(),
            format!("https://proxy.example:4433{path}")
        );
        assert_eq!(over.headers()["capsule-protocol"], "?1");
        assert!(!over.headers().contains_key("upgrade"));
    }
    let protocol = request(Carrier::Http3)
        .extensions()
        .get::<Protocol>()
        .cloned();
    assert_eq!(protocol.expect("an extension").as_str(), "connect-udp");
}

#[test]
fn a_proxy_accepts_the_requests_of_a_client() {
    for carrier in [Carrier::Http1, Carrier::Http2, Carrier::Http3] {
        let protocol = (carrier != Carrier::Http1).then_some(UPGRADE_TOKEN);
        let target = check(&request(carrier), protocol, &paths()).expect("valid");
        assert_eq!(target.to_string(), "[2001:db8::1]:443");
        let answer = accept(carrier);
        assert!(has_capsule_protocol(answer.headers()));
        assert_eq!(check_response(carrier, &answer), Ok(()));
    }
}

#[test]
fn other_requests_get_the_answer_that_explains_them() {
    let mut post = request(Carrier::Http1);
    *post.method_mut() = Method::POST;
    assert_eq!(status(&post, None), 405);
    let mut plain = request(Carrier::Http1);
    plain.headers_mut().remove("upgrade");
    assert_eq!(status(&plain, None), 426);
    let mut other = request(Carrier::Http1);
    other
        .headers_mut()
        .insert("upgrade", "websocket".parse().unwrap());
    assert_eq!(status(&other, None), 426);
    let mut get = request(Carrier::Http3);
    *get.method_mut() = Method::GET;
    assert_eq!(status(&get, None), 405);
    assert_eq!(status(&request(Carrier::Http2), Some("websocket")), 501);
    assert_eq!(status(&request(Carrier::Http2), None), 501);
    assert_eq!(status(&request(Carrier::Http3), Some("Connect-UDP")), 501);
    let mut old = request(Carrier::Http1);
    *old.version_mut() = Version::HTTP_10;
    assert_eq!(status(&old, None), 400);
    let mut elsewhere = request(Carrier::Http3);
    *elsewhere.uri_mut() = "https://proxy.example/".parse().unwrap();
    assert_eq!(status(&elsewhere, Some(UPGRADE_TOKEN)), 404);
    let mut malformed = request(Carrier::Http3);
    let uri = "https://proxy.example/.well-known/masque/udp/127.1/443/";
    *malformed.uri_mut() = uri.parse().unwrap();
    assert_eq!(status(&malformed, Some(UPGRADE_TOKEN)), 400);
}

/// Attack A360: content beside an upgrade would be read as the next request by one of two parsers.
#[test]
fn requests_with_content_are_malformed() {
    for (name, value) in [
        ("content-length", "5"),
        ("transfer-encoding", "chunked"),
        ("content-type", "a/b"),
    ] {
        for carrier in [Carrier::Http1, Carrier::Http2, Carrier::Http3] {
            let protocol = (carrier != Carrier::Http1).then_some(UPGRADE_TOKEN);
            let mut request = request(carrier);
            request.headers_mut().insert(name, value.parse().unwrap());
            assert_eq!(status(&request, protocol), 400, "{name}");
            let mut answer = accept(carrier);
            answer.headers_mut().insert(name, value.parse().unwrap());
            assert!(
                matches!(check_response(carrier, &answer), Err(Refused::Malformed(_))),
                "{name}"
            );
        }
    }
    let mut two_hosts = request(Carrier::Http1);
    two_hosts
        .headers_mut()
        .append("host", "other.example".parse().unwrap());
    assert_eq!(status(&two_hosts, None), 400);
}

#[test]
fn lists_of_tokens_are_read_in_any_case() {
    let mut listed = request(Carrier::Http1);
    let headers = listed.headers_mut();
    headers.insert("connection", "keep-alive, UPGRADE".parse().unwrap());
    headers.insert("upgrade", "foo/1,\tConnect-UDP".parse().unwrap());
    assert_eq!(status(&listed, None), 200);
}

/// MQ-udp-014.
#[test]
fn other_responses_open_no_tunnel() {
    for (carrier, code) in [
        (Carrier::Http1, 200),
        (Carrier::Http1, 426),
        (Carrier::Http2, 101),
        (Carrier::Http2, 302),
        (Carrier::Http3, 307),
        (Carrier::Http3, 403),
        (Carrier::Http3, 503),
    ] {
        let mut answer = accept(carrier);
        *answer.status_mut() = StatusCode::from_u16(code).unwrap();
        let refused = check_response(carrier, &answer);
        assert!(
            matches!(refused, Err(Refused::Status { status, .. }) if status == code),
            "{code}"
        );
    }
    let mut answer = accept(Carrier::Http1);
    answer
        .headers_mut()
        .insert("upgrade", "websocket".parse().unwrap());
    assert!(matches!(
        check_response(Carrier::Http1, &answer),
        Err(Refused::Malformed(_))
    ));
}

/// RFC 9297 §3.4.
#[test]
fn only_the_boolean_true_declares_capsules() {
    for (value, expected) in [
        ("?1", true),
        ("?1;a=b", true),
        (" ?1 ", true),
        ("?0", false),
        ("1", false),
        ("?1, ?1", false),
        ("?11", false),
        ("\"?1\"", false),
        ("", false),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(CAPSULE_PROTOCOL, value.parse().unwrap());
        assert_eq!(has_capsule_protocol(&headers), expected, "{value}");
    }
}

#[test]
fn refusals_keep_their_reason_for_logs() {
    let refusal = check(&request(Carrier::Http2), None, &paths()).unwrap_err();
    let response: Response<()> = refusal.clone().into_response();
    assert_eq!(response.status(), 501);
    assert_eq!(response.extensions().get(), Some(&refusal));
}
