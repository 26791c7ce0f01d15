use futures_util::stream;
use http::{HeaderValue, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;

use super::*;

fn response(body: impl Into<Body>) -> Response {
    http::Response::new(body.into()).into()
}

/// Returns a response whose content has these pieces, and a trailer.
fn pieces(count: usize) -> Response {
    let data = (0..count).map(|_| Frame::data(Bytes::from_static(&[7; 100])));
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", HeaderValue::from_static("1"));
    let frames = data.chain([Frame::trailers(trailers)]);
    let frames = frames.map(Ok::<_, std::convert::Infallible>);
    response(Body::wrap(StreamBody::new(stream::iter(frames))))
}

#[tokio::test]
async fn content_is_read_whole_and_in_pieces() {
    assert_eq!(response("one").bytes().await.expect("content"), "one");
    assert_eq!(response("").bytes().await.expect("content"), "");
    let (bytes, trailers) = pieces(3).bytes_and_trailers().await.expect("content");
    assert_eq!(
        (bytes.len(), trailers["x-sum"].as_bytes()),
        (300, &b"1"[..])
    );
    let mut in_pieces = pieces(2);
    assert!(in_pieces.trailers().is_none());
    for _ in 0..2 {
        assert_eq!(
            in_pieces.chunk().await.expect("content").map(|it| it.len()),
            Some(100)
        );
    }
    assert_eq!(in_pieces.chunk().await.expect("the end"), None);
    assert!(
        in_pieces
            .trailers()
            .expect("trailers")
            .contains_key("x-sum")
    );
}

#[tokio::test]
async fn content_is_limited_in_any_form() {
    for (response, is_allowed) in [
        (response("12345").limit(5), true),
        (response("12345").limit(4), false),
        (pieces(3).limit(300), true),
        (pieces(3).limit(299), false),
        (pieces(3).limit(99), false),
    ] {
        let result = response.bytes().await;
        assert_eq!(result.is_ok(), is_allowed);
        if let Err(error) = result {
            assert_eq!(error.kind(), ErrorKind::TooLarge);
            assert!(error.to_string().contains("content_limit"), "{error}");
        }
    }
}

#[test]
fn errors_have_their_status() {
    for (status, is_error) in [
        (200, false),
        (304, false),
        (399, false),
        (404, true),
        (503, true),
    ] {
        let status = StatusCode::from_u16(status).expect("a status");
        let mut response = response("");
        *response.status_mut() = status;
        assert_eq!(
            response.error_for_status_ref().is_err(),
            is_error,
            "{status}"
        );
        match response.error_for_status() {
            Ok(_) => assert!(!is_error),
            Err(error) => {
                assert_eq!(
                    (error.kind(), error.status()),
                    (ErrorKind::Status, Some(status))
                );
                assert!(error.to_string().contains(status.as_str()), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn text_has_its_charset() {
    let text = async |kind: &'static str, bytes: &'static [u8]| {
        let mut response = response(bytes);
        let kind = HeaderValue::from_static(kind);
        response
            .headers_mut()
            .insert(http::header::CONTENT_TYPE, kind);
        response.text().await.expect("text")
    };
    assert_eq!(text("text/plain", b"\xef\xbb\xbf\xc3\xbc").await, "\u{fc}");
    assert_eq!(text("text/plain", b"a\xff").await, "a\u{fffd}");
    let latin = text("text/html; Charset=\"iso-8859-1\"", b"\xfc").await;
    let expected = if cfg!(feature = "charset") {
        "\u{fc}"
    } else {
        "\u{fffd}"
    };
    assert_eq!(latin, expected);
    assert_eq!(
        text("text/plain; charset=none", b"\xc3\xbc").await,
        "\u{fc}"
    );
}

#[cfg(feature = "json")]
#[tokio::test]
async fn json_is_parsed_or_explained() {
    let numbers: Vec<u8> = response("[1, 2]").json().await.expect("JSON");
    assert_eq!(numbers, [1, 2]);
    let error = response("<html>")
        .json::<Vec<u8>>()
        .await
        .expect_err("HTML");
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert!(error.to_string().contains("line 1"), "{error}");
    assert!(std::error::Error::source(&error).is_some());
}
