use courser::{ClientConfig, Endpoint, Identity, h3};
use http::Request;
use http_body_util::{BodyExt as _, Full};

use super::*;

/// A server with one client.
struct Scene {
    handle: ServerHandle,
    client: h3::Client,
    _endpoint: Endpoint,
}

impl Scene {
    async fn begin() -> Self {
        let identity = Identity::dev().expect("a certificate");
        let config = ClientConfig::with_roots([identity.certificate()]).expect("roots");
        let server = courser::serve("127.0.0.1:0", identity).without_tcp();
        let bound = server.bind().expect("a port");
        let (handle, address) = (bound.handle(), bound.local_addr());
        let service = tower::service_fn(|_: Request<courser::server::Body>| async {
            let body = Full::new(Bytes::from_static(b"hello"));
            Ok::<_, Infallible>(Response::new(body))
        });
        tokio::spawn(bound.service(service).into_future());
        let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).expect("a port");
        let connecting = endpoint.connect_with(config.alpn([h3::ALPN]), address, "localhost");
        let connection = connecting.expect("valid").await.expect("a connection");
        let scene = Self {
            handle,
            client: h3::Client::new(connection),
            _endpoint: endpoint,
        };
        // Wait until the server has registered the connection.
        scene.ask().await;
        scene
    }

    async fn ask(&self) {
        let request = Request::get("https://localhost/page")
            .header("authorization", "Bearer secret")
            .body(h3::Empty)
            .expect("a request");
        let response = self.client.send(request).await.expect("a response");
        response.into_body().collect().await.expect("all");
    }
}

/// Reads until the text contains `expected`.
async fn read_until(body: &mut Body, text: &mut String, expected: &str) {
    while !text.contains(expected) {
        let frame = body
            .frame()
            .await
            .expect("the body has not ended")
            .expect("no error");
        let data = frame.into_data().expect("data");
        text.push_str(std::str::from_utf8(&data).expect("text"));
    }
}

#[tokio::test]
async fn records_of_a_running_connection_are_streamed_until_the_reader_disconnects() {
    let scene = Scene::begin().await;
    let handle = &scene.handle;
    let readers = Arc::new(Semaphore::new(MAX_READERS));
    let follow = |query: Option<&str>| answer(handle, query, &readers);
    assert_eq!(follow(Some("x=1")).status(), StatusCode::BAD_REQUEST);
    let unknown = follow(Some("connection=999999"));
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);

    let peer = handle.connections()[0].peer.clone();
    let number = peer.connection_id();
    let id = peer.original_destination().expect("over QUIC");
    let response = follow(Some(&format!("connection={number}")));
    assert_eq!(response.status(), StatusCode::OK);
    let kind = &response.headers()[http::header::CONTENT_TYPE];
    assert_eq!(kind, "application/qlog+json-seq");
    // A connection has at most one reader at a time.
    assert_eq!(follow(None).status(), StatusCode::CONFLICT);

    let mut body = response.into_body();
    let mut text = String::new();
    scene.ask().await;
    read_until(&mut body, &mut text, "\"frame_type\":\"data\"").await;
    assert!(text.starts_with("\u{1e}{\"file_schema\""), "{text}");
    for part in [
        &format!("\"title\":\"connection {number}\""),
        // The client's trace has the same ID.
        &format!("\"group_id\":\"{id}\""),
        "\"name\":\"http3:parameters_set\"",
        "\"name\":\"http3:frame_parsed\"",
        "{\"name\":\":path\",\"value\":\"/page\"}",
        "\"name\":\"quic:packet_received\"",
        "\"name\":\"quic:recovery_metrics_updated\"",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(!text.contains("Bearer secret"), "{text}");

    // After the first reader disconnects, another one can follow.
    drop(body);
    let response = follow(None);
    assert_eq!(response.status(), StatusCode::OK);
    let mut body = response.into_body();
    let mut text = String::new();
    scene.client.close();
    read_until(&mut body, &mut text, "\"name\":\"quic:connection_closed\"").await;
    // The trace ends with the connection.
    while body.frame().await.is_some() {}
    drop(body);

    // Readers are limited.
    assert_eq!(readers.available_permits(), MAX_READERS);
    let permits = readers.acquire_many(4).await.expect("open");
    assert_eq!(readers.available_permits(), 0);
    let scene = Scene::begin().await;
    let refused = answer(&scene.handle, None, &readers);
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    drop(permits);
    let response = answer(&scene.handle, None, &readers);
    assert_eq!(response.status(), StatusCode::OK);
}

#[test]
fn queue_is_bounded_and_never_blocks() {
    let queue = Arc::new(Queue::default());
    let mut input = QueueWriter(queue.clone());
    let chunk = [b'x'; 1000];
    while input.write(&chunk).is_ok() {}
    let error = input.write(&chunk).expect_err("the buffer is full");
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    let len = queue.0.lock().bytes.len();
    assert!((MAX_BYTES - 1000..=MAX_BYTES).contains(&len), "{len}");
}

#[test]
fn dropped_records_are_counted_in_the_trace() {
    use courser::telemetry::{Record, RecordsMissed, Sink as _};

    let queue = Arc::new(Queue::default());
    let mut sink = sink(7, ConnectionId::EMPTY, QueueWriter(queue.clone()));
    let now = courser_base::Time::ZERO;
    let record = Record::RecordsMissed(RecordsMissed { count: 1 });
    while sink.outcome().dropped().records < 10 {
        sink.record(now, &record);
    }
    queue.0.lock().bytes.clear();
    sink.record(now, &record);
    let bytes: Vec<u8> = std::mem::take(&mut queue.0.lock().bytes).into();
    let text = String::from_utf8(bytes).expect("text");
    let gap = "\"name\":\"courser:records_dropped\",\"data\":{\"records\":10,";
    assert!(text.contains(gap), "{text}");
}

#[test]
fn queries_name_a_connection_or_none() {
    assert_eq!(number(None), Ok(None));
    assert_eq!(number(Some("connection=12")), Ok(Some(12)));
    assert!(number(Some("connection=x")).is_err());
}
