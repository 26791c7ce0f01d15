use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Extension, Request};
use axum::routing::get;
use courser::h3::{Interim, OnInterim};
use courser::server::Protocol;
use http::{Response, StatusCode};

use super::client::{Client, empty, request, text};
use super::{start, start_with, within};

/// Sends a valid and an invalid interim response, and returns the results.
async fn page(Extension(interim): Extension<Interim>) -> String {
    let mut seen = Vec::new();
    for status in [StatusCode::EARLY_HINTS, StatusCode::OK] {
        let response = Response::builder()
            .status(status)
            .header("link", "</style.css>; rel=preload");
        let sent = interim.send(response.body(()).expect("a response")).await;
        seen.push(sent.map_or_else(|error| error.to_string(), |outcome| format!("{outcome:?}")));
    }
    seen.join(", ")
}

/// Handlers need not check the protocol: the extractor always succeeds, and sending is not an error where it is
/// unsupported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_can_send_hints_over_every_protocol() {
    let app = Router::new().route("/", get(page));
    let running = start_with(app, |server| server.interim_responses(true));
    let refused = "status 200 OK is not an interim status: use 100 or 102 to 199";
    for (protocol, outcome, expected) in [
        (Protocol::Http1, "Unsupported", &[][..]),
        (Protocol::Http2, "Unsupported", &[]),
        (
            Protocol::Http3,
            "Sent",
            &[(103, "</style.css>; rel=preload")],
        ),
    ] {
        let address = running.handle.local_addr();
        let client = Client::connect(protocol, address, &running.identity).await;
        let mut client = client.expect("a server");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = seen.clone();
        let mut asked = request("GET", "/", empty());
        asked
            .extensions_mut()
            .insert(OnInterim::new(move |interim| {
                let link = interim.headers()["link"].to_str().expect("text").to_owned();
                let mut noted = noted.lock().expect("no panic");
                noted.push((interim.status().as_u16(), link));
            }));
        let response = within(client.send(asked)).await.expect("an answer");
        assert_eq!(response.status(), 200, "{protocol}");
        let answer = within(text(response)).await;
        assert_eq!(answer, format!("{outcome}, {refused}"), "{protocol}");
        let expected: Vec<_> = expected
            .iter()
            .map(|(s, link)| (*s, link.to_string()))
            .collect();
        assert_eq!(*seen.lock().expect("no panic"), expected, "{protocol}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interim_responses_are_off_by_default() {
    let has = |request: Request| async move {
        let is_there = request.extensions().get::<Interim>().is_some();
        is_there.to_string()
    };
    let running = start(Router::new().route("/", get(has)));
    for protocol in Protocol::ALL {
        let address = running.handle.local_addr();
        let client = Client::connect(protocol, address, &running.identity).await;
        let seen = within(client.expect("a server").text("/")).await;
        assert_eq!(seen, "false", "{protocol}");
    }
}
