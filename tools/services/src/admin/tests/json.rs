//! Tests of the JSON responses.

use courser::{ClientConfig, Endpoint};

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_all_protocols_are_listed_and_sorted() {
    let scene = Scene::start(Guard::new(&[])).await;
    let mut clients = Vec::new();
    for version in [
        HttpVersion::Http1,
        HttpVersion::Http2,
        HttpVersion::Http3Only,
    ] {
        let client = scene.client(version);
        hello(&scene, &client).await;
        clients.push(client);
    }
    let is_complete = |list: &Value| list["total"] == 3;
    let list = scene.until("/connections?sort=protocol", is_complete).await;
    let protocols: Vec<_> = list["connections"]
        .as_array()
        .expect("a list")
        .iter()
        .collect();
    let names: Vec<_> = protocols.iter().map(|it| it["protocol"].as_str()).collect();
    assert_eq!(names, [Some("h2"), Some("h3"), Some("http/1.1")]);
    let quic = protocols[1];
    assert_eq!(quic["name"], "localhost");
    assert_eq!(quic["requests"], 1);
    assert!(quic["quic"]["rtt_ms"].as_f64() > Some(0.0), "{quic}");
    assert!(
        quic["trace"].as_str().is_some_and(|id| id.len() >= 16),
        "{quic}"
    );
    // Its sender has nothing to send, which only the sink of this connection reports.
    assert_eq!(quic["limit"], "application", "{list}");
    assert_eq!(list["limits"]["application"], 1, "{list}");
    let page = scene
        .json("/connections?sort=protocol&order=desc&offset=1&count=1")
        .await;
    assert_eq!(page["connections"].as_array().map(Vec::len), Some(1));
    assert_eq!(page["connections"][0]["protocol"], "h3");
    assert_eq!(
        scene.json("/connections?filter=http%2F1").await["matching"],
        1
    );
    for mistake in [
        "/connections?sort=x",
        "/connections?x=1",
        "/status?connections=x",
    ] {
        assert_eq!(scene.get(mistake).await.0, 400, "{mistake}");
    }
    for nothing in [
        "/connectionsx",
        "/connections/x",
        "/connections/99999",
        "/connections/",
    ] {
        assert_eq!(scene.get(nothing).await.0, 404, "{nothing}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_grants_no_credit_shows_as_limited_by_flow_control() {
    let scene = Scene::start(Guard::new(&[])).await;
    let client = scene.client(HttpVersion::Http3Only);
    let unread = client.get(scene.url("/endless")).await.expect("an answer");
    let is_limited = |list: &Value| {
        let limit = list["connections"][0]["limit"].as_str().unwrap_or_default();
        limit.ends_with("flow_control")
    };
    let list = scene.until("/connections", is_limited).await;
    assert_eq!(list["connections"][0]["state"], "active");
    let is_whole = |list: &Value| list["connections"][0]["limit_share"].as_f64() > Some(0.9);
    scene.until("/connections", is_whole).await;
    drop(unread);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watched_connection_is_sampled_until_requests_stop() {
    let scene = Scene::start(Guard::new(&[])).await;
    let client = scene.client(HttpVersion::Http3Only);
    let mut body = client
        .get(scene.url("/endless"))
        .await
        .expect("an answer")
        .into_body();
    let reading = tokio::spawn(async move { read_slowly(&mut body).await });
    let id = scene.json("/connections").await["connections"][0]["id"].clone();
    let path = format!("/connections/{id}");
    let has_some = |watch: &Value| watch["last"].as_u64() > Some(3);
    let watch = scene.until(&path, has_some).await;
    let sample = &watch["samples"][2];
    assert!(sample["limit"].is_string(), "{sample}");
    for figure in ["window", "in_flight", "rtt_ms", "sent_rate"] {
        assert!(sample[figure].as_f64().is_some(), "{figure}: {sample}");
    }
    // The client may sleep longer than requested on a busy machine.
    let is_fast = |sample: &Value| sample["sent_rate"].as_f64() > Some(1e5);
    let has_fast = |watch: &Value| {
        watch["samples"]
            .as_array()
            .is_some_and(|all| all.iter().any(is_fast))
    };
    let watch = scene.until(&path, has_fast).await;
    let last = watch["last"].as_u64().expect("a number");
    let newer = scene.json(&format!("{path}?after={last}")).await;
    let all = scene.json(&path).await;
    let count = |watch: &Value| watch["samples"].as_array().map_or(0, Vec::len);
    assert!(
        count(&newer) < count(&all),
        "{} of {}",
        count(&newer),
        count(&all)
    );
    assert_eq!(scene.endpoints.watches.count(), 1);
    scene.endpoints.watches.expire();
    let began = Instant::now();
    while scene.endpoints.watches.count() > 0 {
        assert!(began.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Close the connection while it is watched.
    scene.json(&path).await;
    reading.abort();
    drop(client);
    scene.until(&path, |watch| watch["closed"] == true).await;
}

/// Limit K244.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watched_connections_are_limited() {
    let scene = Scene::start(Guard::new(&[])).await;
    let mut clients = Vec::new();
    for _ in 0..=MAX_WATCHED {
        let client = scene.client(HttpVersion::Http3Only);
        hello(&scene, &client).await;
        clients.push(client);
    }
    let path = "/connections?count=17&sort=id";
    let list = scene
        .until(path, |list| list["total"] == MAX_WATCHED + 1)
        .await;
    let ids = list["connections"].as_array().expect("a list").iter();
    let ids: Vec<_> = ids.map(|it| format!("/connections/{}", it["id"])).collect();
    let (last, first) = ids.split_last().expect("several connections");
    for id in first {
        assert_eq!(scene.get(id).await.0, 200, "{id}");
    }
    let (status, reason) = scene.get(last).await;
    assert_eq!(status, 503);
    assert!(reason.contains("16 connections are watched"), "{reason}");
    // Requests for watched connections still succeed.
    assert_eq!(scene.get(&first[0]).await.0, 200);
    let limits = scene.json("/status?connections=0").await["limits"].clone();
    assert_eq!(
        limits[0]["label"], "K244",
        "the fullest comes first: {limits}"
    );
    assert_eq!(
        (limits[0]["used"].as_u64(), limits[0]["most"].as_u64()),
        (Some(16), Some(16))
    );
}

/// Limit K249.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_to_the_admin_address_are_limited() {
    let scene = Scene::start(Guard::new(&[])).await;
    let mut idle = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        idle.push(TcpStream::connect(scene.admin).await.expect("listens"));
    }
    let connection_permits = &scene.endpoints.connection_permits;
    let began = Instant::now();
    while connection_permits.available_permits() > 0 {
        assert!(began.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut further = TcpStream::connect(scene.admin).await.expect("listens");
    let mut nothing = Vec::new();
    // The server closes it at once, with or without an error.
    let read = further.read_to_end(&mut nothing).await;
    assert!(read.is_err() || nothing.is_empty());
    drop(idle);
    while connection_permits.available_permits() == 0 {
        assert!(began.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(scene.get("/health").await.0, 200);
}

/// Limit K249.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_examine_connections_wait_for_a_permit() {
    let scene = Scene::start(Guard::new(&[])).await;
    let examination_permits = scene
        .endpoints
        .examination_permits
        .acquire_many(2)
        .await
        .expect("open");
    assert_eq!(scene.endpoints.examination_permits.available_permits(), 0);
    let endpoints = scene.endpoints.clone();
    let request = Request::get("/connections").header("host", "localhost");
    let request = request.body(()).expect("a request");
    let local = scene.admin.ip();
    let mut waiting = tokio::spawn(async move { endpoints.answer(&request, local).await });
    // Other requests are answered meanwhile.
    assert_eq!(scene.get("/health").await.0, 200);
    let early = tokio::time::timeout(Duration::from_millis(50), &mut waiting).await;
    assert!(early.is_err(), "it waits");
    drop(examination_permits);
    let response = waiting.await.expect("no panic");
    assert_eq!(response.status(), StatusCode::OK);
}

/// Clients that disconnect must not start more work than there are permits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_keeps_its_permit_after_its_client_disconnects() {
    let scene = Scene::start(Guard::new(&[])).await;
    let examination_permits = scene.endpoints.examination_permits.clone();
    let (begun, beginning) = tokio::sync::oneshot::channel();
    let (end, ending) = std::sync::mpsc::channel::<()>();
    let endpoints = scene.endpoints.clone();
    let waiting = tokio::spawn(async move {
        let work = move || {
            begun.send(()).expect("the test waits");
            // Blocks until the test ends it.
            let _ = ending.recv();
            plain(StatusCode::OK)
        };
        endpoints.run_limited(work).await
    });
    beginning.await.expect("it begins");
    waiting.abort();
    assert!(waiting.await.expect_err("aborted").is_cancelled());
    assert_eq!(examination_permits.available_permits(), MAX_AT_A_TIME - 1);
    drop(end);
    let all = u32::try_from(MAX_AT_A_TIME).expect("fits into u32");
    let all = tokio::time::timeout(
        Duration::from_secs(20),
        examination_permits.acquire_many(all),
    )
    .await;
    drop(all.expect("it has ended").expect("open"));
}

/// Opens a connection and closes it with this code and reason.
pub(super) async fn fail(scene: &Scene, code: u32, reason: &str) {
    let client = Endpoint::client("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let config = ClientConfig::with_roots([scene.identity.certificate()]).expect("a root");
    let config = config.alpn([courser::h3::ALPN]);
    let address = scene.server.local_addr();
    let connecting = client
        .connect_with(config, address, "localhost")
        .expect("valid");
    let connection = connecting.await.expect("a handshake");
    connection.close(code.into(), reason.as_bytes());
    client.wait_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_are_counted_by_code_and_the_latest_are_shown() {
    let scene = Scene::start(Guard::new(&[])).await;
    fail(&scene, 0x107, "enough <b>").await;
    fail(&scene, 0x100, "").await;
    let has_both = |status: &Value| status["closes"]["totals"].as_array().map(Vec::len) == Some(2);
    let status = scene.until("/status", has_both).await;
    let failures = status["closes"]["failures"].as_array().expect("a list");
    assert_eq!(failures.len(), 1, "{status}");
    assert_eq!(failures[0]["cause"], "H3_EXCESSIVE_LOAD");
    assert_eq!(failures[0]["reason"], "enough <b>");
    assert_eq!(failures[0]["by"], "peer");
    assert!(
        failures[0]["client"]
            .as_str()
            .is_some_and(|it| it.starts_with("127.0.0.1:"))
    );
    let certificates = status["certificates"].as_array().expect("a list");
    assert!(
        certificates[0]["days_left"].as_f64() > Some(0.0),
        "{status}"
    );
    assert_eq!(certificates[0]["names"][0], "localhost");
    let limits = status["limits"].as_array().expect("a list");
    for label in ["K55", "K81", "K115", "K244", "K249"] {
        assert!(
            limits.iter().any(|it| it["label"] == label),
            "{label}: {status}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drain_has_progress() {
    let scene = Scene::start(Guard::new(&[])).await;
    let client = scene.client(HttpVersion::Http3Only);
    let unread = client.get(scene.url("/endless")).await.expect("an answer");
    assert_eq!(scene.json("/status").await["drain"], Value::Null);
    scene.server.drain();
    let status = scene.until("/status", |it| it["drain"].is_object()).await;
    let drain = &status["drain"];
    assert_eq!(
        (
            drain["connections"].as_u64(),
            drain["connections_open"].as_u64()
        ),
        (Some(1), Some(1))
    );
    assert_eq!(drain["requests_in_flight"], 1);
    assert!(drain["deadline_seconds"].as_f64() > Some(0.0));
    drop((unread, client));
    scene
        .until("/status", |it| it["drain"]["connections_open"] == 0)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn status_has_as_many_connections_as_asked_for() {
    let scene = Scene::start(Guard::new(&[])).await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        let client = scene.client(HttpVersion::Http2);
        hello(&scene, &client).await;
        clients.push(client);
    }
    for (query, shown, others) in [
        ("", 3, 0),
        ("?connections=2", 2, 1),
        ("?connections=0", 0, 3),
    ] {
        let status = scene.json(&format!("/status{query}")).await;
        let connections = status["connections"].as_array().expect("a list");
        assert_eq!(connections.len(), shown, "{query}");
        assert_eq!(status["connections_not_shown"], others, "{query}");
        let ids: Vec<_> = connections.iter().map(|it| it["id"].as_u64()).collect();
        assert!(
            ids.is_sorted_by(|one, other| one > other),
            "the newest first: {ids:?}"
        );
    }
}
