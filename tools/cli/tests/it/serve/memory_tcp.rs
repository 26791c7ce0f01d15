//! Memory of a server with little of it, whose clients over TCP stop before or after a request (A240 to A243).

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use courser::server::Protocol;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::exhausted::resident;
use super::running::admin;
use super::serving::Serving;
use super::within;
use crate::common::Folder;

/// Clients of each attack: four times as many as the memory of the server has room for.
const CLIENTS: usize = 3000;
/// Clients that connect at a time.
const AT_ONCE: usize = 16;
/// Clients between two requests of honest ones.
const ROUND: usize = 250;

/// The address of the attackers, in another network than that of the honest clients.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 1, 0, 1);

/// The resident memory of the server with the pages of its program: it begins with 28 MiB, and its budget is 32 MiB.
const MAX_RESIDENT_KIB: u64 = 76 * 1024;

type Tls = TlsStream<TcpStream>;

/// The clients of an attack.
#[derive(Clone)]
struct Attack {
    address: SocketAddr,
    from: Ipv4Addr,
    connector: TlsConnector,
    /// What each client sends after the handshake, before it stops.
    bytes: Arc<Vec<u8>>,
    /// The bytes of the server for which it waits afterwards.
    awaited: usize,
}

impl Attack {
    fn new(serving: &Serving, protocol: &[u8], bytes: Vec<u8>) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(serving.certificate()).expect("a certificate");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions");
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        Self {
            address: serving.address,
            from: ELSEWHERE,
            connector: TlsConnector::from(Arc::new(config)),
            bytes: Arc::new(bytes),
            awaited: 0,
        }
    }

    /// Returns a client that has sent its bytes, unless the server refused or closed the connection.
    async fn client(self) -> Option<Tls> {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_reuseaddr(true).expect("a socket");
        socket
            .bind((self.from, 0).into())
            .expect("a loopback address");
        let stream = socket.connect(self.address).await.ok()?;
        let name = ServerName::try_from("localhost").expect("a name");
        let mut stream = self.connector.connect(name, stream).await.ok()?;
        stream.write_all(&self.bytes).await.ok()?;
        stream.flush().await.ok()?;
        let mut awaited = vec![0; self.awaited];
        stream.read_exact(&mut awaited).await.ok()?;
        Some(stream)
    }

    async fn round(&self) -> Vec<Tls> {
        let mut clients = Vec::new();
        while clients.len() < ROUND {
            let connecting: JoinSet<_> = (0..AT_ONCE).map(|_| self.clone().client()).collect();
            clients.extend(within(connecting.join_all()).await);
        }
        clients.into_iter().flatten().collect()
    }
}

/// Returns the sum of a metric over its labels.
fn sum(serving: &Serving, name: &str) -> f64 {
    let (_, metrics) = admin(serving, "/metrics");
    let lines = metrics.lines().filter(|line| line.starts_with(name));
    lines
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

/// Starts a server with 128 MiB.
fn small_server(arguments: &[&str]) -> Serving {
    let admin = ["--admin", "127.0.0.1:0"];
    Serving::start_with_limit("-d 131072", &[arguments, &admin].concat())
}

/// Runs an attack while honest clients send requests for `path`, some over new connections.
async fn survives(serving: &Serving, attack: &Attack, path: &str) {
    let mut honest = Vec::new();
    for protocol in Protocol::ALL {
        honest.push(serving.client(protocol).await);
    }
    let mut held = Vec::new();
    let mut most = 0;
    for round in 0..CLIENTS / ROUND {
        held.extend(attack.round().await);
        for client in &mut honest {
            assert_eq!(client.get(path, &[]).await.status, 200, "round {round}");
        }
        for protocol in Protocol::ALL {
            let mut client = serving.client(protocol).await;
            let status = client.get(path, &[]).await.status;
            assert_eq!(status, 200, "round {round}, new over {protocol}");
        }
        most = most.max(resident(serving));
    }
    println!(
        "{} of {CLIENTS} clients connected, {most} KiB at most",
        held.len()
    );
    assert!(most < MAX_RESIDENT_KIB, "{most} KiB");
    // The share of a network keeps most of them away, and the budget the others.
    let refused = sum(serving, "courser_refused_total");
    let closed = sum(serving, "courser_connections_closed_for_memory_total");
    println!("{refused} connections refused, {closed} closed");
    assert!(refused + closed > 1000.0, "{refused}, {closed}");
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.file("a.txt", "12345");
    folder
}

/// Attack A240.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_tls_connections_leave_room_for_others() {
    let folder = folder();
    let serving = small_server(&[folder.path().to_str().expect("UTF-8")]);
    survives(
        &serving,
        &Attack::new(&serving, b"h2", Vec::new()),
        "/a.txt",
    )
    .await;
}

/// Returns most of a header section of HTTP/1.1.
fn long_header_section() -> Vec<u8> {
    let mut bytes = b"GET /a.txt HTTP/1.1\r\nhost: localhost\r\nx: ".to_vec();
    bytes.resize(60_000, b'a');
    bytes
}

/// Attack A241.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_header_sections_over_http1_leave_room_for_others() {
    let folder = folder();
    let serving = small_server(&[folder.path().to_str().expect("UTF-8")]);
    let attack = Attack::new(&serving, b"http/1.1", long_header_section());
    survives(&serving, &attack, "/a.txt").await;
}

/// Honest clients share their address with the attackers, as behind a NAT, and begin before them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_with_progress_are_served_beside_attackers_of_the_same_address() {
    let folder = folder();
    let serving = small_server(&[folder.path().to_str().expect("UTF-8")]);
    let mut honest = Vec::new();
    for protocol in Protocol::ALL {
        honest.push(serving.client(protocol).await);
    }
    let attack = Attack {
        from: Ipv4Addr::LOCALHOST,
        ..Attack::new(&serving, b"http/1.1", long_header_section())
    };
    let mut held = Vec::new();
    for round in 0..CLIENTS / ROUND {
        held.extend(attack.round().await);
        for client in &mut honest {
            assert_eq!(client.get("/a.txt", &[]).await.status, 200, "round {round}");
        }
    }
    let most = resident(&serving);
    assert!(most < MAX_RESIDENT_KIB, "{most} KiB");
}

/// Returns a frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).expect("short").to_be_bytes();
    let mut frame = vec![len[1], len[2], len[3], kind, flags];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// Attack A242: a header block in CONTINUATION frames that never ends. Its first field enters the table, and each
/// further byte repeats it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_header_blocks_over_http2_leave_room_for_others() {
    let folder = folder();
    let serving = small_server(&[folder.path().to_str().expect("UTF-8")]);
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    // GET, https, path; then the field "x: y" with incremental indexing (RFC 7541 §6.2.1).
    let block = [0x82, 0x87, 0x84, 0x40, 1, b'x', 1, b'y'];
    bytes.extend(frame(1, 0, 1, &block));
    // Index 62 is the newest entry of the dynamic table.
    bytes.extend(frame(9, 0, 1, &[0x80 | 62; 1800]));
    let attack = Attack::new(&serving, b"h2", bytes);
    survives(&serving, &attack, "/a.txt").await;
}

/// A server that upgrades connections, keeps them silent, and responds to other requests.
async fn websocket_server() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(respond(stream));
        }
    });
    address
}

async fn respond(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    loop {
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let text = String::from_utf8_lossy(&head).to_ascii_lowercase();
        if text.contains("upgrade: websocket") {
            // The example of RFC 6455 §1.3.
            let response = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
            stream.write_all(response).await?;
            // Silent until the proxy closes the connection.
            let _ = stream.read_u8().await;
            return Ok(());
        }
        head.clear();
        let response = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
        stream.write_all(response).await?;
    }
}

/// Attack A243.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_websockets_leave_room_for_others() {
    let upstream = format!("http://{}", websocket_server().await);
    let serving = small_server(&["--proxy", &upstream]);
    let request =
        b"GET /chat HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
        sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n";
    let attack = Attack {
        awaited: b"HTTP/1.1 101".len(),
        ..Attack::new(&serving, b"http/1.1", request.to_vec())
    };
    survives(&serving, &attack, "/").await;
}
