use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};

use super::*;

fn request() -> Request<RequestBody> {
    let body = RequestBody::new(Full::new(Bytes::from_static(b"content")));
    let request = Request::post("http://a.test/").header(header::EXPECT, "100-Continue");
    request.body(body).expect("a request")
}

/// Returns the content of a body, or its error.
async fn content(body: RequestBody) -> Result<Bytes, BoxError> {
    body.collect()
        .await
        .map(http_body_util::Collected::to_bytes)
}

fn interim(request: &Request<RequestBody>, status: StatusCode) {
    let on_interim = request.extensions().get::<OnInterim>().expect("a hook");
    let mut response = http::Response::new(());
    *response.status_mut() = status;
    hooks::call(on_interim, response);
}

#[tokio::test(start_paused = true)]
async fn content_is_sent_after_100_and_not_after_other_interim_responses() {
    let began = Instant::now();
    let mut request = request();
    let (seen, statuses) = std::sync::mpsc::channel();
    request
        .extensions_mut()
        .insert(OnInterim::new(move |response| {
            let _ = seen.send(response.status());
        }));
    let expectation = Expectation::of(&mut request, WAIT).expect("an expectation");
    interim(&request, StatusCode::EARLY_HINTS);
    assert_eq!(expectation.0.state.load(Ordering::Relaxed), PENDING);
    interim(&request, StatusCode::CONTINUE);
    let sent = content(std::mem::replace(request.body_mut(), RequestBody::empty())).await;
    assert_eq!(sent.expect("content"), "content");
    assert_eq!(began.elapsed(), Duration::ZERO);
    let seen: Vec<_> = statuses.try_iter().collect();
    assert_eq!(seen, [StatusCode::EARLY_HINTS, StatusCode::CONTINUE]);
    // A refusal comes too late.
    assert!(expectation.on_response(StatusCode::FORBIDDEN).is_none());
}

#[tokio::test(start_paused = true)]
async fn content_is_sent_when_the_time_has_passed() {
    let began = Instant::now();
    let mut request = request();
    let expectation = Expectation::of(&mut request, WAIT).expect("an expectation");
    let sent = content(request.into_body()).await;
    assert_eq!(sent.expect("content"), "content");
    assert_eq!(began.elapsed(), WAIT);
    assert!(expectation.on_response(StatusCode::FORBIDDEN).is_none());
}

#[tokio::test(start_paused = true)]
async fn content_is_sent_after_a_success_and_withheld_after_a_failure() {
    let mut accepted = request();
    let expectation = Expectation::of(&mut accepted, WAIT).expect("an expectation");
    assert!(expectation.on_response(StatusCode::OK).is_none());
    let sent = content(accepted.into_body()).await;
    assert_eq!(sent.expect("content"), "content");

    let mut refused = request();
    let expectation = Expectation::of(&mut refused, WAIT).expect("an expectation");
    let kept = expectation.on_response(StatusCode::UNAUTHORIZED);
    let mut sending = std::pin::pin!(content(refused.into_body()));
    let waited = tokio::time::timeout(10 * WAIT, &mut sending).await;
    assert!(waited.is_err(), "the response is still being read");
    drop(kept.expect("withheld"));
    assert!(sending.await.is_err());
}

#[tokio::test(start_paused = true)]
async fn content_of_an_abandoned_request_is_not_sent() {
    let mut request = request();
    drop(Expectation::of(&mut request, WAIT).expect("an expectation"));
    assert!(content(request.into_body()).await.is_err());
}

#[test]
fn large_content_over_http1_gets_an_expectation() {
    for (version, size, is_expected) in [
        (Version::HTTP_11, 11, true),
        (Version::HTTP_11, 10, false),
        (Version::HTTP_11, 0, false),
        (Version::HTTP_10, 11, false),
        (Version::HTTP_2, 11, false),
        (Version::HTTP_3, 11, false),
    ] {
        let body = RequestBody::new(Full::new(Bytes::from(vec![0; size])));
        let mut headers = HeaderMap::new();
        add(&mut headers, version, &body, 10);
        assert_eq!(
            expects_continue(&headers),
            is_expected,
            "{version:?} {size}"
        );
    }
    // A body without an exact size, with and without the field that names its length.
    let streamed = || {
        let frames = futures_util::stream::pending::<Result<http_body::Frame<Bytes>, BoxError>>();
        RequestBody::new(http_body_util::StreamBody::new(frames))
    };
    for (length, is_expected) in [(None, true), (Some("10"), false), (Some("11"), true)] {
        let mut headers = HeaderMap::new();
        if let Some(length) = length {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static(length));
        }
        add(&mut headers, Version::HTTP_11, &streamed(), 10);
        assert_eq!(expects_continue(&headers), is_expected, "{length:?}");
    }
}
