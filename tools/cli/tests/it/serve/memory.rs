//! Memory of a server whose clients do not read (A24, A88, A100), and of a server with little memory
//! (F45).

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use courser::server::Protocol;
use courser::{ClientConfig, Endpoint, TransportConfig, h3};
use http::Method;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::client::{self, Client, request};
use super::exhausted::resident;
use super::running::{admin, start};
use super::serving::Serving;
use super::within;
use crate::common::Folder;

/// Requests of a client over HTTP/2, as many as it may have at a time (limit K61).
const HTTP2_REQUESTS: u32 = 100;
/// Requests of a client over HTTP/3.
const HTTP3_REQUESTS: u32 = 250;
/// Those of them that are in progress while the client takes no response (limit K430).
const HTTP3_IN_PROGRESS: u32 = 100;
/// Enough clients to make buffers of the whole server insignificant.
const CLIENTS: u32 = 64;

/// The large file is in the page cache, because threads that wait for a disk have memory of their own.
fn folder_with_large_file() -> Folder {
    let folder = Folder::new();
    folder.file("a.txt", "12345");
    let large = folder.path().join("large");
    std::fs::write(large, vec![7; 32 << 20]).expect("a file");
    folder
}

/// Returns a frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).expect("short").to_be_bytes();
    let mut frame = vec![len[1], len[2], len[3], kind, flags];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// An HTTP/2 client that requests the same file repeatedly, grants this window for each response,
/// and does not read.
async fn unread_http2(serving: &Serving, path: &str, window: u32) -> TlsStream<TcpStream> {
    let connecting = client::tls(serving.address, serving.certificate(), b"h2");
    let mut stream = within(connecting).await.expect("a server");
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let mut setting = vec![0, 4];
    setting.extend_from_slice(&window.to_be_bytes());
    bytes.extend(frame(4, 0, 0, &setting));
    let most = (u32::MAX >> 1) - 65_535;
    bytes.extend(frame(8, 0, 0, &most.to_be_bytes()));
    // GET, https, then :path and :authority as literals (RFC 7541 §6.2.2).
    let mut head = vec![0x82, 0x87];
    for (index, value) in [(0x04, path), (0x01, "localhost")] {
        head.extend([index, u8::try_from(value.len()).expect("short")]);
        head.extend_from_slice(value.as_bytes());
    }
    for request in 0..HTTP2_REQUESTS {
        bytes.extend(frame(1, 5, 1 + 2 * request, &head));
    }
    // A server without memory may have closed the connection.
    let _ = within(stream.write_all(&bytes)).await;
    stream
}

/// An HTTP/3 client that does the same and grants this window for each stream; SETTINGS have to fit.
async fn unread_http3(
    serving: &Serving,
    path: &str,
    window: u64,
) -> (Endpoint, Vec<PendingResponse>) {
    let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).expect("a port");
    let transport = TransportConfig {
        stream_receive_window: window,
        stream_receive_window_max: window,
        ..TransportConfig::default()
    };
    let config = ClientConfig::with_roots([serving.certificate()]).expect("a certificate");
    let config = config.alpn([h3::ALPN]).transport_config(transport);
    let connecting = endpoint.connect_with(config, serving.address, "localhost");
    let connection = within(connecting.expect("a name")).await.expect("a server");
    let client = h3::Client::new(connection);
    let send = |_| {
        let (client, request) = (client.clone(), request(Method::GET, path, &[], ""));
        // The response is kept without reading its content.
        tokio::spawn(async move { client.send(request).await })
    };
    (endpoint, (0..HTTP3_REQUESTS).map(send).collect())
}

type PendingResponse = tokio::task::JoinHandle<Result<http::Response<h3::Body>, h3::Error>>;

/// Waits until this many requests are in progress.
async fn in_progress(serving: &Serving, count: u32) {
    let name = "courser_requests_in_flight";
    let in_flight = || {
        let (_, metrics) = admin(serving, "/metrics");
        let lines = metrics.lines().filter(|line| line.starts_with(name));
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        values.sum::<f64>()
    };
    within(async {
        while in_flight() < f64::from(count) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// The largest resident memory of a client that reads nothing: 290 to 720 KiB were measured, of which some 500 KiB are
/// heap of the client, and the rest is memory that the server keeps for reuse. Before limits K61 and K430 it was 0.6 to
/// 2.2 MiB, and without K110 and K111 it is tens of megabytes.
const MAX_KIB: u64 = 1024;

/// Returns the memory that each client costs in KiB, when this many requests are in progress.
async fn cost(serving: &Serving, clients: u32, requests: u32, before: u64) -> u64 {
    in_progress(serving, clients * requests).await;
    let mut honest = Vec::new();
    for protocol in Protocol::ALL {
        honest.push(serving.client(protocol).await);
    }
    // Reading ahead continues while the requests are answered.
    for _ in 0..100 {
        for client in &mut honest {
            assert_eq!(client.get("/a.txt", &[]).await.status, 200);
        }
    }
    resident(serving).saturating_sub(before) / u64::from(clients)
}

/// Three clients: one grants HTTP/2 windows but does not read its socket, one reads the socket but
/// grants no window, and one grants one byte at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_clients_that_do_not_read_use_little_memory() {
    let folder = folder_with_large_file();
    for window in [u32::MAX >> 1, 0, 1] {
        let serving = start(&folder, &["--admin", "127.0.0.1:0"]);
        let mut first = serving.client(Protocol::Http2).await;
        assert_eq!(first.get("/a.txt", &[]).await.status, 200);
        let before = resident(&serving);
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            clients.push(unread_http2(&serving, "/large", window).await);
        }
        let each = cost(&serving, CLIENTS, HTTP2_REQUESTS, before).await;
        println!("window {window}: {each} KiB for each client");
        assert!(each <= MAX_KIB, "window {window}: {each} KiB");
    }
}

/// Windows for a header section with some content, and one that all streams together fill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http3_clients_that_do_not_read_use_little_memory() {
    let folder = folder_with_large_file();
    for window in [600, 1 << 20] {
        let serving = start(&folder, &["--admin", "127.0.0.1:0"]);
        let mut first = serving.client(Protocol::Http3).await;
        assert_eq!(first.get("/a.txt", &[]).await.status, 200);
        let before = resident(&serving);
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            clients.push(unread_http3(&serving, "/large", window).await);
        }
        let each = cost(&serving, CLIENTS, HTTP3_IN_PROGRESS, before).await;
        println!("window {window}: {each} KiB for each client");
        assert!(each <= MAX_KIB, "window {window}: {each} KiB");
    }
}

/// Returns the first flights of this many clients, recorded by a socket of the test.
async fn first_flights(serving: &Serving, clients: usize) -> Vec<Vec<u8>> {
    let sink = UdpSocket::bind(("127.0.0.1", 0)).expect("a port");
    let address = sink.local_addr().expect("bound");
    let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).expect("a port");
    let config = ClientConfig::with_roots([serving.certificate()]).expect("a certificate");
    let config = config.alpn([h3::ALPN]);
    sink.set_nonblocking(true).expect("a socket");
    let mut flights = Vec::new();
    let mut buffer = [0; 65_536];
    for _ in 0..clients {
        let connecting = endpoint.connect_with(config.clone(), address, "localhost");
        let connecting = connecting.expect("a name");
        while let Ok(len) = sink.recv(&mut buffer) {
            // The system may have merged datagrams.
            flights.extend(buffer[..len].chunks(1200).map(<[u8]>::to_vec));
        }
        drop(connecting);
    }
    flights
}

/// Returns the value of a metric.
fn metric(serving: &Serving, name: &str) -> f64 {
    let (_, metrics) = admin(serving, "/metrics");
    let mut lines = metrics.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.expect("a metric").parse().expect("a number")
}

/// The resident memory of that server with the pages of its program: 50 to 59 MiB were measured. It
/// begins with 28 MiB, and the budget of 32 MiB is for its clients.
const MAX_RESIDENT_KIB: u64 = 76 * 1024;

/// A limit of 128 MiB on data, which the system enforces: an allocation beyond it fails and ends the
/// process. Without limit K115 that happens in the 13th round, and in the sixth round more is resident
/// than this test allows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_with_128_mib_survives_clients_that_fill_its_memory() {
    let folder = folder_with_large_file();
    let path = folder.path().to_str().expect("UTF-8");
    let arguments = [path, "--admin", "127.0.0.1:0"];
    let mut serving = Serving::start_with_limit("-d 131072", &arguments);
    let budget = metric(&serving, "courser_quic_memory_limit_bytes");
    assert_eq!(budget, f64::from(32 << 20), "a quarter of the limit");

    let mut honest = Vec::new();
    for protocol in Protocol::ALL {
        honest.push(serving.client(protocol).await);
    }
    let mut over_tcp = Vec::new();
    let mut over_quic = Vec::new();
    let mut silent = Vec::new();
    let flights = first_flights(&serving, 500).await;
    let flood = UdpSocket::bind(("127.0.0.1", 0)).expect("a port");
    let mut most = 0;
    for round in 0..25 {
        for window in [u32::MAX >> 1, 1] {
            over_tcp.push(unread_http2(&serving, "/large", window).await);
        }
        over_quic.push(unread_http3(&serving, "/large", 600).await);
        over_quic.push(unread_http3(&serving, "/large", 1 << 20).await);
        for _ in 0..10 {
            silent.push(within(TcpStream::connect(serving.address)).await);
        }
        for flight in flights.iter().skip(round * 60).take(60) {
            // A full socket loses the datagram.
            let _ = flood.send_to(flight, serving.address);
        }
        for client in &mut honest {
            let answer = client.get("/a.txt", &[]).await;
            assert_eq!((answer.status.as_u16(), &*answer.text()), (200, "12345"));
        }
        most = most.max(resident(&serving));
    }
    println!("{most} KiB at most");
    assert!(most < MAX_RESIDENT_KIB, "{most} KiB");
    let refused = metric(&serving, "courser_requests_refused_for_memory_total");
    let closed = metric(&serving, "courser_connections_closed_for_memory_total");
    println!("{refused} requests refused, {closed} connections closed");
    assert!(refused > 0.0 && closed > 0.0, "{refused}, {closed}");
    for client in &mut honest {
        assert_eq!(client.get("/a.txt", &[]).await.status, 200);
    }
    drop((over_tcp, over_quic, silent));
    for protocol in Protocol::ALL {
        let mut client = serving.client(protocol).await;
        assert_eq!(client.get("/a.txt", &[]).await.status, 200, "{protocol}");
    }
    drop(honest);
    serving.signal(rustix::process::Signal::TERM);
    while serving.next_event()["event"] != "drained" {}
    serving.ended();
}

/// An HTTP/3 client that begins requests without completing their header sections.
async fn incomplete_requests_http3(
    serving: &Serving,
) -> (Endpoint, Vec<(courser::SendStream, courser::RecvStream)>) {
    let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).expect("a port");
    let config = ClientConfig::with_roots([serving.certificate()]).expect("a certificate");
    let config = config.alpn([h3::ALPN]);
    let connecting = endpoint.connect_with(config, serving.address, "localhost");
    let mut streams = Vec::new();
    // A server without memory refuses or closes the connection.
    if let Ok(connection) = within(connecting.expect("a name")).await {
        while streams.len() < HTTP3_REQUESTS as usize
            && let Ok((mut send, receive)) = within(connection.open_bi()).await
            // HEADERS of 100 bytes, and two of them.
            && send.write_all(&[1, 0x40, 100, 0, 0]).await.is_ok()
        {
            streams.push((send, receive));
        }
    }
    (endpoint, streams)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn incomplete_header_sections_count_for_the_budget() {
    // More would exceed the budget.
    const FEW: u32 = 24;
    let folder = folder_with_large_file();
    let path = folder.path().to_str().expect("UTF-8");
    let serving = Serving::start_with_limit("-d 131072", &[path, "--admin", "127.0.0.1:0"]);
    let mut honest = serving.client(Protocol::Http3).await;
    assert_eq!(honest.get("/a.txt", &[]).await.status, 200);
    let counted = || metric(&serving, "courser_quic_memory_bytes");
    let before = (resident(&serving), counted());
    let mut clients = Vec::new();
    for _ in 0..FEW {
        clients.push(incomplete_requests_http3(&serving).await);
    }
    let streams = f64::from(FEW * HTTP3_REQUESTS * 2048);
    within(async {
        while counted() - before.1 < streams {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let growth = (resident(&serving) - before.0) as f64 * 1024.0;
    let part = (counted() - before.1) / growth;
    println!("{growth} bytes more, of which {part} are counted");
    // Half of the memory was counted.
    assert!(part > 0.4, "{part} of {growth} bytes are counted");
    assert_eq!(honest.get("/a.txt", &[]).await.status, 200);
}

/// An upstream server that responds to GET and does not read the content of POST.
fn upstream_that_reads_no_content() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            std::thread::spawn(move || {
                let mut lines = BufReader::new(&stream).lines();
                while let Some(Ok(first)) = lines.next() {
                    if first.starts_with("POST") {
                        // Longer than the test.
                        std::thread::sleep(Duration::from_secs(120));
                        return;
                    }
                    while lines
                        .next()
                        .is_some_and(|line| line.is_ok_and(|it| !it.is_empty()))
                    {
                    }
                    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                    if (&stream).write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    format!("http://{address}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uploads_without_a_reader_are_limited() {
    let upstream = upstream_that_reads_no_content();
    let serving = Serving::start_with_limit("-d 131072", &["--proxy", &upstream]);
    let mut honest = Vec::new();
    for protocol in Protocol::ALL {
        honest.push(serving.client(protocol).await);
    }
    for client in &mut honest {
        assert_eq!(client.get("/", &[]).await.status, 200);
    }
    let before = resident(&serving);
    let content = bytes::Bytes::from(vec![7; 4 << 20]);
    let mut uploads = tokio::task::JoinSet::new();
    let mut most = 0;
    for round in 0..40 {
        let protocol = match round % 4 {
            0 => Protocol::Http3,
            _ => Protocol::Http2,
        };
        let mut client = serving.client(protocol).await;
        let content = content.clone();
        uploads.spawn(async move {
            // Over HTTP/2 no response comes before the content is read, which never happens.
            let mut client = match client {
                Client::Http2(ref mut send) => {
                    let others = (0..4).map(|_| {
                        let mut send = send.clone();
                        let request = request(Method::POST, "/", &[], content.clone());
                        tokio::spawn(async move { send.send_request(request).await.map(drop) })
                    });
                    let others: Vec<_> = others.collect();
                    for other in others {
                        let _ = other.await;
                    }
                    return;
                }
                other => other,
            };
            let _ = client.send(request(Method::POST, "/", &[], content)).await;
        });
        for client in &mut honest {
            let answer = client.get("/", &[]).await;
            assert_eq!((answer.status.as_u16(), &*answer.text()), (200, "ok"));
        }
        most = most.max(resident(&serving));
    }
    for _ in 0..50 {
        for client in &mut honest {
            assert_eq!(client.get("/", &[]).await.status, 200);
        }
        most = most.max(resident(&serving));
    }
    let growth = most.saturating_sub(before);
    println!("{growth} KiB more than {before} KiB");
    // The budget is a quarter of the limit, which is 32 MiB, and a quarter of the budget is for
    // content over HTTP/2.
    assert!(growth < 32 * 1024, "{growth} KiB");
    uploads.abort_all();
}
