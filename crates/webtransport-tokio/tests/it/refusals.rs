//! Requests without a session.

use courser_http3_tokio as h3;
use courser_webtransport_tokio::{
    Config, ConnectError, Protocols, Refused, SessionRequest, connect, upgrade,
};
use http::{HeaderValue, Request, StatusCode};

use crate::{Pair, serve, wish, within};

/// A server with the application protocols "two" and "one".
async fn server() -> Pair {
    serve([Config::new(), Config::new()], |mut request| async move {
        let upgrade = upgrade(&mut request).protocols(["two", "one"]);
        upgrade
            .accept(|session| async move { session.closed().await })
            .await
    })
    .await
}

async fn refused(pair: &Pair, request: SessionRequest) -> StatusCode {
    match within(connect(&pair.client, request)).await {
        Err(ConnectError::Refused(response)) => response.status(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_first_protocol_of_the_client_that_is_known_is_chosen() {
    let pair = server().await;
    let offer = |names: &[&str]| {
        let names = Protocols::new(names.iter().copied()).expect("valid");
        wish().protocols(names)
    };
    let session = within(connect(&pair.client, offer(&["three", "one", "two"]))).await;
    assert_eq!(session.expect("accepted").protocol(), Some("one"));
    let status = refused(&pair, offer(&["three"])).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let session = within(connect(&pair.client, wish())).await;
    assert_eq!(session.expect("accepted").protocol(), None);
    let strict = wish().require_protocol();
    let error = within(connect(&pair.client, strict))
        .await
        .expect_err("none");
    assert!(matches!(error, ConnectError::WrongProtocol), "{error:?}");
}

#[tokio::test]
async fn pages_of_other_origins_are_refused() {
    let pair = server().await;
    let from = |origin| wish().origin(HeaderValue::from_static(origin));
    let status = refused(&pair, from("https://evil.example")).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    within(connect(&pair.client, from("https://localhost")))
        .await
        .expect("accepted");
}

#[tokio::test]
async fn requests_for_something_else_get_405() {
    let pair = server().await;
    let request = Request::get("https://localhost/chat").body(h3::Empty);
    let response = within(pair.client.send(request.expect("valid"))).await;
    let response = response.expect("answered");
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(response.headers()["allow"], "CONNECT");
}

#[tokio::test]
async fn services_without_http3_answer_without_a_session() {
    let mut request = Request::post("https://localhost/").body(()).expect("valid");
    let response = upgrade(&mut request).accept(|_| async {}).await;
    let response: http::Response<()> = response;
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    let reason: &Refused = response.extensions().get().expect("a reason");
    assert!(reason.0.contains("WebTransport"));
}

#[tokio::test]
async fn too_many_requests_get_429() {
    let pair = server().await;
    let mut statuses = Vec::new();
    for _ in 0..2000 {
        match within(connect(&pair.client, wish())).await {
            Ok(session) => drop(session),
            Err(ConnectError::Refused(response)) => {
                statuses.push(response.status());
                break;
            }
            // Sessions that are not over at the other end.
            Err(ConnectError::Http(_) | ConnectError::Unavailable(_)) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_eq!(statuses, [StatusCode::TOO_MANY_REQUESTS]);
}

#[tokio::test]
async fn sessions_of_one_connection_are_limited() {
    let mut config = Config::new();
    config.max_sessions = 2;
    let pair = serve([Config::new(), config], |mut request| async move {
        let upgrade = upgrade(&mut request);
        upgrade
            .accept(|session| async move { session.closed().await })
            .await
    })
    .await;
    let mut open = Vec::new();
    for _ in 0..2 {
        open.push(
            within(connect(&pair.client, wish()))
                .await
                .expect("accepted"),
        );
    }
    let error = within(connect(&pair.client, wish()))
        .await
        .expect_err("a third");
    let is_limit = matches!(error, ConnectError::Http(_) | ConnectError::Unavailable(_));
    assert!(is_limit, "{error:?}");
}
