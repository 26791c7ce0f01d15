use super::*;

fn of(error: Error, method: &Method) -> Error {
    let url = Uri::from_static("https://user:word@a.test:4433/x?y");
    error.of_request(method, &url)
}

#[test]
fn unprocessed_requests_are_retryable_with_every_method() {
    let refused = || Error::new(ErrorKind::Connect, "").with_source(ConnectionError::Reset);
    let going = || Error::of_h3(h3::Error::GoingAway);
    let connecting = || Error::new(ErrorKind::Timeout, "").unprocessed(true);
    for method in [Method::GET, Method::POST] {
        for error in [refused(), going(), connecting()] {
            let error = of(error, &method);
            assert!(error.is_retryable(), "{method} {error:?}");
        }
    }
    assert!(connecting().is_timeout() && connecting().is_connect());
    assert_eq!(refused().connection_error(), Some(&ConnectionError::Reset));
}

#[test]
fn lost_requests_are_retryable_with_idempotent_methods() {
    let lost = || Error::of_h3(h3::Error::Connection(ConnectionError::Reset));
    let silent = || Error::of_h3(h3::Error::Connection(ConnectionError::TimedOut));
    let late = || Error::new(ErrorKind::Timeout, "");
    for error in [lost, silent, late] {
        assert!(of(error(), &Method::PUT).is_retryable(), "{:?}", error());
        assert!(!of(error(), &Method::POST).is_retryable(), "{:?}", error());
    }
    assert_eq!(lost().connection_error(), Some(&ConnectionError::Reset));
    assert_eq!(late().connection_error(), None);
}

#[test]
fn lasting_failures_are_not_retryable() {
    for kind in [
        ErrorKind::Url,
        ErrorKind::Config,
        ErrorKind::Certificate,
        ErrorKind::Tls,
        ErrorKind::Redirect,
        ErrorKind::Protocol,
        ErrorKind::Proxy,
    ] {
        let error = of(Error::new(kind, ""), &Method::GET);
        assert!(!error.is_retryable(), "{error:?}");
    }
}

/// Alert certificate_required (116) in TLS 1.3, which arrives after the client's handshake has completed.
#[test]
fn alerts_after_the_handshake_are_errors_of_tls() {
    let close = courser_quic::PeerClose {
        code: courser_quic::TransportErrorCode::crypto(116),
        frame_type: 0,
        reason: bytes::Bytes::new(),
    };
    let lost = || h3::Error::Connection(ConnectionError::ConnectionClosed(close.clone()));
    for error in [Error::of_h3(lost()), Error::of_h3_body(lost())] {
        assert_eq!(error.kind(), ErrorKind::Tls);
        assert!(error.is_tls() && !error.is_certificate(), "{error}");
        assert!(!error.is_connect() && !error.is_retryable(), "{error}");
        assert!(
            error.to_string().contains("set a client certificate"),
            "{error}"
        );
        assert!(error.connection_error().is_some());
    }
}

#[test]
fn url_of_an_error_has_no_credentials() {
    let error = of(Error::new(ErrorKind::Connect, ""), &Method::GET);
    assert_eq!(error.url(), Some("https://a.test:4433/x?y"));
    assert!(!format!("{error:?}").contains("word"));
    let plain = Error::new(ErrorKind::Connect, "");
    let plain = plain.of_request(&Method::GET, &Uri::from_static("http://a.test/"));
    assert_eq!(plain.url(), Some("http://a.test/"));
}

#[test]
fn text_says_how_often_a_request_was_repeated() {
    let lost = || Error::new(ErrorKind::Empty, "lost");
    assert_eq!(lost().repeated(0).to_string(), "lost");
    assert_eq!(lost().repeated(1).to_string(), "lost (repeated once)");
    let spent = lost().repeated(2).without_budget().to_string();
    let expected =
        "lost (repeated 2 times) (not repeated again: the retry budget of the origin is spent";
    assert!(spent.starts_with(expected), "{spent}");
}

#[test]
fn error_of_a_status_names_its_url_until_it_is_removed() {
    let url = Uri::from_static("https://a.test/x?signature=7");
    let error = Error::new(ErrorKind::Status, "the server answered 500");
    let error = error.with_status(StatusCode::INTERNAL_SERVER_ERROR);
    let error = error.of_response(&url);
    let text = error.to_string();
    assert_eq!(
        text,
        "the server answered 500 for https://a.test/x?signature=7"
    );
    assert_eq!(format!("{error:?}").matches("signature").count(), 1);
    let error = error.without_url();
    assert_eq!(error.to_string(), "the server answered 500");
    assert!(error.url().is_none() && !format!("{error:?}").contains("signature"));
}
