//! Heap of a server for each TCP connection, in each of its phases (attacks A240 to A243).

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use courser::server::Limits;
use courser::{Identity, serve};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::{counting, runtime};

/// Connections before the counted ones, so that shared memory is already allocated.
const FIRST: usize = 20;
const COUNTED: usize = 100;

/// Bytes of a header section that never ends.
const LONG: usize = 60_000;

/// More content than the buffers of both ends take.
const LARGE: usize = 16 << 20;

type Tls = StreamOwned<ClientConnection, TcpStream>;

/// A client that a test keeps open, in one of the phases of a connection.
trait Client: Send {}

impl Client for TcpStream {}
impl Client for Tls {}

/// The server to which clients connect.
#[derive(Clone)]
struct Target {
    address: SocketAddr,
    config: Arc<ClientConfig>,
}

impl Target {
    fn new(address: SocketAddr, identity: &Identity, protocol: &[u8]) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(identity.certificate()).expect("a certificate");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions");
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        Self {
            address,
            config: Arc::new(config),
        }
    }

    fn tcp(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("a server");
        let timeout = Some(Duration::from_secs(20));
        stream.set_read_timeout(timeout).expect("a socket");
        stream
    }

    fn tls(&self) -> Tls {
        let name = ServerName::try_from("localhost").expect("a name");
        let connection = ClientConnection::new(self.config.clone(), name).expect("a configuration");
        let mut stream = StreamOwned::new(connection, self.tcp());
        stream.flush().expect("a handshake");
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).expect("a server");
        }
        stream
    }
}

fn silent(target: &Target) -> Box<dyn Client> {
    Box::new(target.tcp())
}

fn secured(target: &Target) -> Box<dyn Client> {
    Box::new(target.tls())
}

/// Completes a request and stays connected.
fn idle(target: &Target) -> Box<dyn Client> {
    let mut stream = target.tls();
    let request = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(request).expect("open");
    let mut response = vec![0; 12];
    stream.read_exact(&mut response).expect("a response");
    assert_eq!(response, b"HTTP/1.1 200");
    Box::new(stream)
}

fn long_header_section(target: &Target) -> Box<dyn Client> {
    let mut stream = target.tls();
    let begin = b"GET / HTTP/1.1\r\nhost: localhost\r\nx: ";
    stream.write_all(begin).expect("open");
    stream.write_all(&[b'a'; LONG]).expect("open");
    Box::new(stream)
}

/// Requests more content than the socket takes, and reads nothing.
fn unread(target: &Target) -> Box<dyn Client> {
    let mut stream = target.tls();
    let request = b"GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(request).expect("open");
    Box::new(stream)
}

/// Returns an HTTP/2 frame.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).expect("short").to_be_bytes();
    let mut frame = vec![len[1], len[2], len[3], kind, flags];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// Completes the exchange of SETTINGS, and stays connected.
fn http2(target: &Target) -> Tls {
    let mut stream = target.tls();
    let mut begin = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    begin.extend(frame(4, 0, 0, &[]));
    begin.extend(frame(4, 1, 0, &[]));
    begin.extend(frame(6, 0, 0, &[7; 8]));
    stream.write_all(&begin).expect("open");
    // The acknowledgment of the PING is the last frame.
    loop {
        let mut header = [0; 9];
        stream.read_exact(&mut header).expect("a frame");
        let len = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        let mut payload = vec![0; len as usize];
        stream.read_exact(&mut payload).expect("its payload");
        if (header[3], header[4]) == (6, 1) {
            return stream;
        }
    }
}

fn idle_http2(target: &Target) -> Box<dyn Client> {
    Box::new(http2(target))
}

/// Requests the same over HTTP/2 on a hundred streams, with the largest windows.
fn unread_http2(target: &Target) -> Box<dyn Client> {
    let mut stream = http2(target);
    let largest = (u32::MAX >> 1).to_be_bytes();
    let mut bytes = frame(4, 0, 0, &[&[0, 4], &largest[..]].concat());
    bytes.extend(frame(8, 0, 0, &((u32::MAX >> 1) - 65_535).to_be_bytes()));
    for request in 0..100 {
        // GET, https, then :path and :authority as literals (RFC 7541 §6.2.2).
        let mut block = vec![0x82, 0x87, 4, 6];
        block.extend_from_slice(b"/large");
        block.extend_from_slice(b"\x01\x09localhost");
        bytes.extend(frame(1, 5, 1 + 2 * request, &block));
    }
    stream.write_all(&bytes).expect("open");
    Box::new(stream)
}

/// A header block of literal fields that spans CONTINUATION frames and never ends.
fn long_header_block(target: &Target) -> Box<dyn Client> {
    let mut stream = http2(target);
    // GET, https and a path.
    let mut bytes = frame(1, 0, 1, &[0x82, 0x87, 0x84]);
    // Literals without indexing, each with a name of one byte (RFC 7541 §6.2.2).
    let mut field = vec![0, 1, b'x', 127, 0x81, 0x06];
    field.resize(6 + 127 + 1 + (6 << 7), b'a');
    let mut sent = 0;
    while sent < LONG {
        bytes.extend(frame(9, 0, 1, &field));
        sent += field.len();
    }
    stream.write_all(&bytes).expect("open");
    Box::new(stream)
}

/// A phase: its name, the protocol of its clients, how they get there, and the largest heap of each in bytes.
type Phase = (
    &'static str,
    &'static [u8],
    fn(&Target) -> Box<dyn Client>,
    isize,
);

/// Returns the heap of the server for each client in a phase, in bytes.
fn measure(protocol: &'static [u8], connect: fn(&Target) -> Box<dyn Client>) -> isize {
    let identity = Identity::dev().expect("random numbers");
    runtime().block_on(async {
        let server = serve("127.0.0.1:0", &identity);
        let mut limits = Limits::default();
        // Longer than the measurement.
        limits.handshake_timeout = Duration::from_secs(60);
        let bound = server.without_quic().limits(limits).bind();
        let bound = bound.expect("a port");
        let target = Target::new(bound.local_addr(), &identity, protocol);
        let large = Bytes::from_static(&[7; LARGE]);
        let app = Router::new()
            .route("/", get(|| async { "hello" }))
            .route("/large", get(|| async { large }));
        let serving = super::common::spawn(async move { bound.service(app).await });
        let mut open = Vec::new();
        let mut live = Vec::new();
        for count in [FIRST, COUNTED] {
            let target = target.clone();
            let connecting = move || (0..count).map(|_| connect(&target)).collect::<Vec<_>>();
            let clients = tokio::task::spawn_blocking(connecting).await;
            open.extend(clients.expect("all connect"));
            live.push(settled().await);
        }
        serving.abort();
        (live[1] - live[0]) / COUNTED as isize
    })
}

/// Returns the heap of this thread once all that was sent is processed.
async fn settled() -> isize {
    let mut live = counting::live();
    let mut rounds = 0;
    while rounds < 10 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        rounds = match counting::live() == live {
            true => rounds + 1,
            false => 0,
        };
        live = counting::live();
    }
    live
}

#[test]
fn heap_of_each_phase_of_a_tcp_connection_is_bounded() {
    let phases: [Phase; 8] = [
        ("silent before TLS", b"", silent, 12 * 1024),
        ("silent over HTTP/1.1", b"http/1.1", secured, 28 * 1024),
        ("idle over HTTP/1.1", b"http/1.1", idle, 29 * 1024),
        ("silent over HTTP/2", b"h2", idle_http2, 44 * 1024),
        (
            "long header section",
            b"http/1.1",
            long_header_section,
            140 * 1024,
        ),
        ("long header block", b"h2", long_header_block, 96 * 1024),
        (
            "unread response over HTTP/1.1",
            b"http/1.1",
            unread,
            128 * 1024,
        ),
        (
            "unread responses over HTTP/2",
            b"h2",
            unread_http2,
            512 * 1024,
        ),
    ];
    let mut over = Vec::new();
    for (name, protocol, connect, budget) in phases {
        let each = measure(protocol, connect);
        println!("{name}: {each} bytes");
        if each > budget {
            over.push((name, each));
        }
    }
    assert!(over.is_empty(), "{over:?}");
}
