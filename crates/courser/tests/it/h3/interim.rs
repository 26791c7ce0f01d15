//! Interim responses that services send.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use courser::h3::{Interim, InterimError, InterimOutcome, OnInterim};
use courser::{Connection, Endpoint, RecvStream, TransportConfig, h3};
use http::{Request, Response, StatusCode};
use tokio::sync::{Semaphore, mpsc};

use super::{Answer, Pair, full, get, pair, serve_as, text, tower_of, within};
use crate::common::pair_with;

/// Answers on a connection with interim responses enabled.
fn answer_on<F>(
    connection: Connection,
    service: impl Fn(Request<h3::Body>) -> F + Clone + Send + 'static,
) where
    F: Future<Output = Answer> + Send + 'static,
{
    let serving = h3::serve(connection, tower_of(service)).interim_responses(true);
    crate::common::spawn(serving.into_future());
}

async fn serve<F>(
    service: impl Fn(Request<h3::Body>) -> F + Clone + Send + 'static,
) -> (Pair, h3::Client)
where
    F: Future<Output = Answer> + Send + 'static,
{
    serve_as(|server| h3::serve(server, tower_of(service)).interim_responses(true)).await
}

fn interim_of<B>(request: &Request<B>) -> Interim {
    let interim = request.extensions().get::<Interim>();
    interim.cloned().expect("it is switched on")
}

fn hints(link: &str) -> Response<()> {
    with_status(StatusCode::EARLY_HINTS, link)
}

fn with_status(status: StatusCode, link: &str) -> Response<()> {
    let response = Response::builder().status(status).header("link", link);
    response.body(()).expect("a response")
}

/// Returns a request that reports interim responses: their status and link.
fn with_interim_reports(path: &str) -> (Request<h3::Empty>, mpsc::UnboundedReceiver<Response<()>>) {
    let (reports, seen) = mpsc::unbounded_channel();
    let mut request = get(path);
    request
        .extensions_mut()
        .insert(OnInterim::new(move |interim| {
            let _ = reports.send(interim);
        }));
    (request, seen)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hints_arrive_in_order_before_the_response() {
    let go = Arc::new(tokio::sync::Notify::new());
    let gone = go.clone();
    let (_pair, client) = serve(move |request| {
        let gone = gone.clone();
        async move {
            let interim = interim_of(&request);
            let mut first = hints("</style.css>; rel=preload");
            // RFC 9110 §8.6, RFC 9114 §4.2: both are forbidden.
            let fields = first.headers_mut();
            fields.insert("content-length", 5.into());
            fields.insert("connection", "close".parse().expect("a value"));
            let second = hints("</script.js>; rel=preload");
            for response in [first, second] {
                let outcome = interim.send(response).await.expect("the client is there");
                assert_eq!(outcome, InterimOutcome::Sent);
            }
            // The client has received them now; otherwise there will be no response.
            gone.notified().await;
            Response::new(full("content"))
        }
    })
    .await;
    let (request, mut seen) = with_interim_reports("/");
    let reading = async {
        for link in ["</style.css>; rel=preload", "</script.js>; rel=preload"] {
            let interim = seen.recv().await.expect("an interim response");
            assert_eq!(interim.status(), StatusCode::EARLY_HINTS);
            let fields = interim.headers();
            assert_eq!(
                (fields["link"].as_bytes(), fields.len()),
                (link.as_bytes(), 1)
            );
        }
        go.notify_one();
    };
    let (response, ()) = within(async { tokio::join!(client.send(request), reading) }).await;
    let response = response.expect("answered");
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-length"], "7");
    assert_eq!(within(text(response)).await, "content");
    assert!(seen.recv().await.is_none(), "two were sent");
}

/// A service that computes for long occupies its thread, which may be the one of all tasks of a
/// connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hints_leave_before_a_service_that_blocks() {
    let identity = courser::Identity::dev().expect("random numbers");
    let certificate = identity.certificate();
    let (send_address, address) = std::sync::mpsc::channel();
    let (open, resumed) = std::sync::mpsc::channel::<()>();
    let resumed = Arc::new(Mutex::new(resumed));
    let server = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let config = courser::ServerConfig::with_identity(&identity).expect("matching key");
            let address = "127.0.0.1:0".parse().expect("an address");
            let endpoint = Endpoint::server(config.alpn([h3::ALPN]), address).expect("a port");
            send_address
                .send(endpoint.local_addr().expect("bound"))
                .expect("asked");
            let connection = endpoint.accept().await.expect("open").await;
            answer_on(connection.expect("a handshake"), move |request| {
                let resumed = resumed.clone();
                async move {
                    let sent = interim_of(&request).send(hints("</style.css>")).await;
                    sent.expect("the client is there");
                    // Nothing else runs in this runtime meanwhile.
                    let patience = Duration::from_secs(20);
                    let resumed = resumed.lock().expect("no panic").recv_timeout(patience);
                    Response::new(full(if resumed.is_ok() { "in time" } else { "late" }))
                }
            });
            endpoint.wait_idle().await;
        });
    });
    let address = address.recv().expect("bound");
    let client = Endpoint::client("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let config = courser::ClientConfig::with_roots([certificate]).expect("a certificate");
    let connecting = client.connect_with(config.alpn([h3::ALPN]), address, "localhost");
    let connection = within(connecting.expect("configured")).await;
    let client = h3::Client::new(connection.expect("a handshake"));
    let (request, mut seen) = with_interim_reports("/");
    let reading = async {
        seen.recv().await.expect("an interim response");
        open.send(()).expect("the service waits");
    };
    let (response, ()) = tokio::join!(client.send(request), reading);
    assert_eq!(text(response.expect("answered")).await, "in time");
    client.close();
    server.join().expect("no panic");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_statuses_than_interim_ones_are_refused() {
    let (_pair, client) = serve(|request| async move {
        let interim = interim_of(&request);
        let mut refused = String::new();
        for status in [101, 200, 404] {
            let status = StatusCode::from_u16(status).expect("a status");
            match interim.send(with_status(status, "</>")).await {
                Err(error @ InterimError::Status(_)) => refused += &format!("{error}\n"),
                result => panic!("{status}: {result:?}"),
            }
        }
        for status in [100, 102, 199] {
            let status = StatusCode::from_u16(status).expect("a status");
            let sent = interim.send(with_status(status, "</>")).await;
            assert!(matches!(sent, Ok(InterimOutcome::Sent)), "{sent:?}");
        }
        Response::new(full(refused))
    })
    .await;
    let (request, mut seen) = with_interim_reports("/");
    let response = within(client.send(request)).await.expect("answered");
    let refused = within(text(response)).await;
    assert_eq!(
        refused.lines().collect::<Vec<_>>(),
        [
            "status 101 Switching Protocols is not an interim status: use 100 or 102 to 199",
            "status 200 OK is not an interim status: use 100 or 102 to 199",
            "status 404 Not Found is not an interim status: use 100 or 102 to 199",
        ]
    );
    for status in [100, 102, 199] {
        let interim = seen.recv().await.expect("an interim response");
        assert_eq!(interim.status().as_u16(), status);
    }
    assert!(seen.recv().await.is_none(), "what was refused was not sent");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interim_responses_are_disabled_by_default() {
    let (_pair, client) = super::serve(|request| async move {
        let is_there = request.extensions().get::<Interim>().is_some();
        Response::new(full(is_there.to_string()))
    })
    .await;
    let response = within(client.send(get("/"))).await.expect("answered");
    assert_eq!(within(text(response)).await, "false");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_interim_response_follows_the_final_one() {
    let (kept, mut keeps) = mpsc::unbounded_channel();
    let (_pair, client) = serve(move |request| {
        kept.send(interim_of(&request)).expect("the test runs");
        async { Response::new(full("content")) }
    })
    .await;
    let (request, mut seen) = with_interim_reports("/");
    let response = within(client.send(request)).await.expect("answered");
    let interim = keeps.recv().await.expect("asked");
    let late = within(interim.send(hints("</>"))).await;
    assert!(matches!(late, Err(InterimError::Answered)), "{late:?}");
    assert_eq!(within(text(response)).await, "content");
    assert!(seen.recv().await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn service_is_dropped_when_the_client_is_gone() {
    /// Reports when the service was dropped.
    struct ReportsDrop(mpsc::UnboundedSender<Interim>, Interim);
    impl Drop for ReportsDrop {
        fn drop(&mut self) {
            let _ = self.0.send(self.1.clone());
        }
    }
    let (kept, mut keeps) = mpsc::unbounded_channel();
    let (_pair, client) = serve(move |request| {
        let report = ReportsDrop(kept.clone(), interim_of(&request));
        async move {
            let sent = report.1.send(hints("</>")).await;
            sent.expect("the client is there");
            std::future::pending().await
        }
    })
    .await;
    let (request, mut seen) = with_interim_reports("/");
    let giving_up = async {
        tokio::select! {
            response = client.send(request) => panic!("{response:?}"),
            _ = seen.recv() => {}
        }
    };
    within(giving_up).await;
    let interim = within(keeps.recv()).await.expect("the service was dropped");
    // Its response is dropped immediately after it.
    let refused = async {
        loop {
            match interim.send(hints("</>")).await {
                Err(InterimError::GivenUp) => return,
                Err(InterimError::Failed(_)) => tokio::task::yield_now().await,
                result => panic!("{result:?}"),
            }
        }
    };
    within(refused).await;
    assert!(
        client.quic().close_reason().is_none(),
        "the connection goes on"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_fails_after_hints_resets_the_stream() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let service = tower::service_fn(|request: Request<h3::Body>| async move {
        let sent = interim_of(&request).send(hints("</>")).await;
        sent.expect("the client is there");
        if request.uri().path() == "/panic" {
            panic!("on purpose");
        }
        Err::<Response<h3::Empty>, _>(std::io::Error::other("on purpose"))
    });
    let serving = h3::serve(server, service).interim_responses(true);
    crate::common::spawn(serving.into_future());
    let client = h3::Client::new(client);
    for path in ["/error", "/panic"] {
        let error = within(client.send(get(path))).await.expect_err("no answer");
        assert_eq!(error.code(), Some(h3::Code::INTERNAL_ERROR), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connect_can_have_interim_responses_and_be_accepted() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let service = tower::service_fn(|mut request: Request<h3::Body>| async move {
        let interim = interim_of(&request);
        let upgrade = h3::upgrade(&mut request).expect("a CONNECT");
        crate::common::spawn(async move {
            let mut stream = upgrade.await.expect("accepted");
            let chunk = stream.read_chunk().await.expect("open").expect("a chunk");
            stream.write_chunk(chunk).await.expect("open");
        });
        interim
            .send(hints("</>"))
            .await
            .expect("the client is there");
        Ok::<_, Infallible>(Response::new(h3::Empty))
    });
    let serving = h3::serve(server, service)
        .protocols([h3::Protocol::WEBSOCKET])
        .interim_responses(true);
    crate::common::spawn(serving.into_future());
    let client = h3::Client::new(client);
    let request = Request::connect("https://localhost/chat")
        .extension(h3::Protocol::WEBSOCKET)
        .body(())
        .expect("a request");
    let response = within(client.connect(request)).await.expect("accepted");
    let mut stream = response.into_body();
    within(stream.write_chunk("there and back".into()))
        .await
        .expect("open");
    let back = within(stream.read_chunk()).await.expect("open");
    assert_eq!(back.as_deref(), Some(&b"there and back"[..]));
}

/// `GET https://localhost/`, as a frame without the dynamic table.
const REQUEST: &[u8] = b"\x01\x10\x00\x00\xd1\xd7\xc1\x50\x09localhost";

/// Bytes that the client grants, and bytes that may wait to be sent: three of the interim responses
/// below and a part of a fourth.
const WINDOW: u64 = 5_000;
const UNSENT: u64 = 4096;

/// Starts a server that answers with `service`, and returns the marks of the header sections that a
/// client receives that reads nothing before the service adds a permit to the semaphore.
async fn late_answer<F>(
    service: impl Fn(Request<h3::Body>, Arc<Semaphore>) -> F + Clone + Send + 'static,
) -> String
where
    F: Future<Output = Answer> + Send + 'static,
{
    let transport = TransportConfig {
        stream_receive_window: WINDOW,
        stream_receive_window_max: WINDOW,
        unsent_limit: UNSENT,
        ..TransportConfig::default()
    };
    let pair = pair_with(transport, |config| config);
    let (client, server) = pair.connect().await;
    let is_full = Arc::new(Semaphore::new(0));
    let says = is_full.clone();
    answer_on(server, move |request| service(request, says.clone()));
    let (mut send, mut receive) = client.open_bi().await.expect("allowed");
    send.write_all(REQUEST).await.expect("open");
    send.finish().expect("open");
    let _permit = within(is_full.acquire()).await.expect("not closed");
    within(marks(&mut receive)).await
}

/// Sends interim responses until the send buffer is full. The call that finds no room is dropped.
async fn send_what_fits(
    interim: &Interim,
    marks: &mut impl Iterator<Item = char>,
    is_full: &Semaphore,
) {
    for mark in marks {
        let sending = send_marked(interim.clone(), mark);
        if tokio::time::timeout(PATIENCE, sending).await.is_err() {
            is_full.add_permits(1);
            return assert_eq!(mark, '3', "the client reads nothing");
        }
    }
    panic!("all of them found room");
}

const PATIENCE: Duration = Duration::from_millis(100);

/// Interim responses do not accumulate: the service waits for the client, and every waiting call is
/// woken. A call that stops waiting leaves no partial frame to the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn senders_wait_for_a_client_that_does_not_read() {
    let marks = late_answer(|request, is_full| async move {
        let interim = interim_of(&request);
        let mut marks = "012345678".chars();
        send_what_fits(&interim, &mut marks, &is_full).await;
        let others =
            ['x', 'y'].map(|mark| crate::common::spawn(send_marked(interim.clone(), mark)));
        for mark in marks {
            send_marked(interim.clone(), mark).await;
        }
        for other in others {
            other.await.expect("no panic");
        }
        Response::new(full("content"))
    })
    .await;
    let of = |wanted: &str| -> String { marks.matches(|mark| wanted.contains(mark)).collect() };
    assert_eq!(of("012345678"), "012345678", "{marks}");
    assert!(of("xy").len() == 2 && marks.ends_with('$'), "{marks}");
}

/// A partial frame does not precede the final response either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn response_follows_a_partly_written_interim_response() {
    let marks = late_answer(|request, is_full| async move {
        let mut marks = "012345678".chars();
        send_what_fits(&interim_of(&request), &mut marks, &is_full).await;
        Response::new(full("content"))
    })
    .await;
    assert_eq!(marks, "0123$");
}

async fn send_marked(interim: Interim, mark: char) {
    // Shorter as plain text than in the Huffman code, so that it is visible in the bytes.
    let value = format!("{}{mark}", "\\".repeat(1500));
    let sent = interim.send(hints(&value)).await;
    sent.expect("the client is there");
}

/// Returns the last byte of each interim response, and `$` for the final one with all that follows.
async fn marks(receive: &mut RecvStream) -> String {
    let bytes = receive.read_to_end(100_000).await.expect("an answer");
    let (mut bytes, mut marks) = (&bytes[..], String::new());
    loop {
        assert_eq!(bytes[0], 1, "HEADERS, after {marks}");
        let len = match bytes[1] {
            len @ 0..64 => (usize::from(len), 2),
            len => (usize::from(len & 63) << 8 | usize::from(bytes[2]), 3),
        };
        let (frame, rest) = bytes[len.1..].split_at(len.0);
        // An index of the static table, RFC 9204 appendix A.
        match frame[2] {
            0xd8 => marks.push(char::from(*frame.last().expect("a field"))),
            0xd9 => return marks + "$",
            other => panic!("{other:x} after {marks}"),
        }
        bytes = rest;
    }
}
