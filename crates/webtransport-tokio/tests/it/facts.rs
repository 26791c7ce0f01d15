//! What a session and the monitor of all sessions tell, and decisions of the application.

use bytes::Bytes;
use courser_http3_tokio::Code;
use courser_webtransport_tokio::{
    ApplicationCode, Closed, Config, ConnectError, Monitor, Origins, ReadError, RefusalKind,
    SessionRequest, connect, request_session, upgrade,
};
use http::{HeaderValue, StatusCode};

use crate::{serve, serve_with, session, wish, within};

/// WT-h3-077.
#[tokio::test]
async fn keying_material_is_that_of_one_session() {
    let (pair, near, far) = session().await;
    let second = within(connect(&pair.client, wish())).await.expect("open");
    let mut keys = [[0; 32]; 4];
    let exported = [
        near.export_keying_material(&mut keys[0], b"key", b""),
        far.export_keying_material(&mut keys[1], b"key", b""),
        second.export_keying_material(&mut keys[2], b"key", b""),
        near.export_keying_material(&mut keys[3], b"key", b"other"),
    ];
    assert!(exported.iter().all(Result::is_ok), "{exported:?}");
    assert_eq!(keys[0], keys[1]);
    assert!(keys[2] != keys[0] && keys[3] != keys[0], "{keys:?}");
    let long = near.export_keying_material(&mut keys[0], &[1; 256], b"");
    let error = long.expect_err("too long").to_string();
    assert_eq!(error, "exporter label of 256 bytes, allowed are 255");
}

#[tokio::test]
async fn both_ends_count_streams_and_bytes() {
    let (_pair, near, far) = session().await;
    let (mut send, mut receive) = within(near.open_bi()).await.expect("open");
    let chunk = Bytes::from(vec![7; 100_000]);
    within(send.write_chunk(chunk)).await.expect("written");
    send.finish().expect("open");
    let (mut back, mut from) = within(far.accept_bi()).await.expect("open");
    let read = within(from.read_to_end(100_000)).await.expect("whole");
    assert_eq!(read.len(), 100_000);
    within(back.write_all(b"thanks")).await.expect("written");
    back.finish().expect("open");
    within(receive.read_to_end(10)).await.expect("whole");
    let (near, far) = (near.stats(), far.stats());
    assert_eq!((near.streams_opened, near.streams_accepted), (1, 0));
    assert_eq!((far.streams_opened, far.streams_accepted), (0, 1));
    assert_eq!((near.bytes_sent, near.bytes_received), (100_000, 6));
    assert_eq!((far.bytes_sent, far.bytes_received), (6, 100_000));
    assert!(near.rtt > std::time::Duration::ZERO, "{near:?}");
}

#[tokio::test]
async fn a_session_has_the_facts_of_its_request() {
    let origin = HeaderValue::from_static("https://localhost");
    let url = "https://localhost/chat?token=1";
    let request = SessionRequest::new(url.parse().expect("a URL")).origin(origin.clone());
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let (pair, monitor) = serve_with(Config::new(), move |mut request| {
        let sender = sender.clone();
        async move {
            let upgrade = upgrade(&mut request);
            let accepted = upgrade.accept(|session| async move { sender.send(session).is_ok() });
            accepted.await
        }
    })
    .await;
    let near = within(connect(&pair.client, request)).await.expect("open");
    let far = within(receiver.recv()).await.expect("open");
    for session in [&near, &far] {
        assert_eq!(session.uri(), url);
        assert_eq!(session.origin(), Some(&origin));
    }
    let listed = monitor.sessions(10);
    assert_eq!(listed.len(), 1);
    // Queries may have credentials.
    assert_eq!(listed[0].uri, "https://localhost/chat");
    assert_eq!(listed[0].origin.as_deref(), Some("https://localhost"));
    assert_eq!(listed[0].peer, far.remote_address());
    let stats = monitor.stats();
    assert_eq!((stats.open, stats.opened), (1, 1));
    // WT-v-018.
    assert_eq!(stats.opened_by_dialect, [(near.dialect(), 1)]);
    near.close(0, "");
    within(far.closed()).await;
    assert_eq!((monitor.stats().open, monitor.stats().opened), (0, 1));
    assert!(monitor.sessions(10).is_empty());
}

/// K300: the limit of all connections of a server. A place is free again when its session ends.
#[tokio::test]
async fn sessions_of_all_connections_are_limited() {
    let config = Config {
        max_all_sessions: 2,
        ..Config::new()
    };
    let (pair, monitor) = serve_with(config, |mut request| async move {
        let upgrade = upgrade(&mut request);
        upgrade
            .accept(|session| async move { session.closed().await })
            .await
    })
    .await;
    let first = within(connect(&pair.client, wish())).await.expect("open");
    let _second = within(connect(&pair.client, wish())).await.expect("open");
    let error = within(connect(&pair.client, wish())).await;
    let error = error.expect_err("one too many");
    assert!(matches!(error, ConnectError::Http(_)), "{error:?}");
    let stats = monitor.stats();
    assert_eq!((stats.open, stats.limit), (2, 2));
    assert_eq!(stats.refused, [(RefusalKind::Limit, 1)]);
    first.close(0, "");
    within(until(&monitor, |open| open < 2)).await;
    within(connect(&pair.client, wish()))
        .await
        .expect("a free place");
}

async fn until(monitor: &Monitor, is_met: impl Fn(u64) -> bool) {
    while !is_met(monitor.stats().open) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_application_decides_with_a_status_fields_and_a_protocol() {
    let (pair, monitor) = serve_with(Config::new(), |mut request| async move {
        let checked = upgrade(&mut request).check().await;
        let mut incoming = match checked {
            Ok(incoming) => incoming,
            Err(response) => return response,
        };
        if incoming.uri().path() == "/no" {
            return incoming.refuse(StatusCode::IM_A_TEAPOT);
        }
        assert!(incoming.choose("unknown").is_err());
        incoming.choose("two").expect("offered");
        let value = HeaderValue::from_static("yes");
        incoming.response_headers_mut().insert("x-tea", value);
        incoming.accept(|session| async move { session.closed().await })
    })
    .await;
    let url = |path: &str| format!("https://localhost{path}").parse().expect("a URL");
    let error = within(connect(&pair.client, SessionRequest::new(url("/no")))).await;
    let Err(ConnectError::Refused(response)) = error else {
        panic!("{error:?}");
    };
    assert_eq!(response.status(), StatusCode::IM_A_TEAPOT);
    let protocols = courser_webtransport_tokio::Protocols::new(["one", "two"]).expect("valid");
    let request = SessionRequest::new(url("/yes")).protocols(protocols);
    let response = within(request_session(&pair.client, request)).await;
    let response = response.expect("open");
    assert_eq!(response.headers()["x-tea"], "yes");
    assert_eq!(response.body().protocol(), Some("two"));
    assert_eq!(monitor.stats().refused, [(RefusalKind::Application, 1)]);
}

/// A policy of one resource is narrower than that of the server.
#[tokio::test]
async fn a_resource_narrows_the_origins() {
    let config = Config {
        origins: Origins::any(),
        ..Config::new()
    };
    let pair = serve([Config::new(), config], |mut request| async move {
        let upgrade = upgrade(&mut request).origins(Origins::same_host());
        upgrade
            .accept(|session| async move { session.closed().await })
            .await
    })
    .await;
    let from = |origin| wish().origin(HeaderValue::from_static(origin));
    let other = within(connect(&pair.client, from("https://other.test"))).await;
    assert!(
        matches!(&other, Err(ConnectError::Refused(it)) if it.status() == StatusCode::FORBIDDEN),
        "{other:?}"
    );
    within(connect(&pair.client, from("https://localhost")))
        .await
        .expect("the same host");
}

#[tokio::test]
async fn a_reset_is_seen_without_reading_and_a_session_ends_without_a_reason() {
    let (_pair, near, far) = session().await;
    let mut send = within(near.open_uni()).await.expect("open");
    within(send.write_all(b"x")).await.expect("written");
    let mut receive = within(far.accept_uni()).await.expect("open");
    send.reset(9).expect("open");
    assert_eq!(within(receive.was_reset()).await, Some(ApplicationCode(9)));
    // What was read together with the header.
    let first = within(receive.read_chunk(10)).await;
    assert!(matches!(&first, Ok(Some(it)) if it == "x"), "{first:?}");
    let error = within(receive.read_chunk(10)).await.expect_err("reset");
    assert_eq!(error, ReadError::Reset(Some(ApplicationCode(9))));
    near.reset(Code::REQUEST_CANCELLED);
    assert_eq!(
        within(near.closed()).await,
        Closed::LocalReset(Code::REQUEST_CANCELLED)
    );
    assert_eq!(
        within(far.closed()).await,
        Closed::Reset(Code::REQUEST_CANCELLED)
    );
}
