//! Connections move to other addresses.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use courser::{ClientConfig, Connection, Endpoint, h3};
use http::Method;
use tokio::task::JoinHandle;

use super::client::{Client, request};
use super::serving::Serving;
use super::within;
use crate::common::{Folder, refusal};

/// An HTTP/3 client that can send from each loopback address.
struct MovingClient {
    client: Client,
    connection: Connection,
}

impl MovingClient {
    async fn connect(serving: &Serving, address: SocketAddr) -> Self {
        let endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into()).expect("a port");
        Self::connect_from(&endpoint, serving, address).await
    }

    async fn connect_from(endpoint: &Endpoint, serving: &Serving, address: SocketAddr) -> Self {
        let config = ClientConfig::with_roots([serving.certificate()]).expect("a certificate");
        let connecting = endpoint.connect_with(config.alpn([h3::ALPN]), address, "localhost");
        let connection = within(connecting.expect("configured")).await;
        let connection = connection.expect("a server");
        let client = Client::Http3(h3::Client::new(connection.clone()));
        Self { client, connection }
    }

    async fn request_page(&mut self) {
        let response = self.client.send(request(Method::GET, "/page", &[], ""));
        assert_eq!(within(response).await.expect("an answer").text(), "served");
    }
}

/// Forwards datagrams between one client and a server, and counts the QUIC bits of the server's datagrams.
struct QuicBitRelay {
    address: SocketAddr,
    /// Datagrams whose first packet has the QUIC bit, and those without it.
    bits: Arc<[AtomicU64; 2]>,
    task: JoinHandle<()>,
}

impl QuicBitRelay {
    /// The second bit of the first byte (RFC 9000 §17.2, §17.3).
    const QUIC_BIT: u8 = 0x40;

    async fn to(server: SocketAddr) -> Self {
        let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await;
        let socket = socket.expect("a port");
        let address = socket.local_addr().expect("bound");
        let bits = Arc::<[AtomicU64; 2]>::default();
        let counts = bits.clone();
        let task = tokio::spawn(async move {
            let mut buffer = [0; 65_536];
            let mut client = None;
            loop {
                // An error reports an earlier datagram to a closed port.
                let Ok((len, from)) = socket.recv_from(&mut buffer).await else {
                    continue;
                };
                let datagram = &buffer[..len];
                let receiver = if from == server {
                    let is_clear = datagram[0] & Self::QUIC_BIT == 0;
                    counts[usize::from(is_clear)].fetch_add(1, Ordering::Relaxed);
                    client
                } else {
                    client = Some(from);
                    Some(server)
                };
                if let Some(receiver) = receiver {
                    let _ = socket.send_to(datagram, receiver).await;
                }
            }
        });
        Self {
            address,
            bits,
            task,
        }
    }

    /// Returns the number of datagrams with the QUIC bit, and of those without it.
    fn bits(&self) -> (u64, u64) {
        let count = |index: usize| self.bits[index].load(Ordering::Relaxed);
        (count(0), count(1))
    }
}

impl Drop for QuicBitRelay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.file("page", "served");
    folder
}

/// Starts a server on all addresses of IPv4 that prefers one of them, which is returned.
fn preferring(folder: &Folder) -> (Serving, SocketAddr) {
    let path = folder.path().to_str().expect("UTF-8");
    for _ in 0..100 {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a port");
        let port = socket.local_addr().expect("bound").port();
        drop(socket);
        let preferred: SocketAddr = ([127, 0, 0, 5], port).into();
        let arguments = [
            path,
            "--no-tcp",
            "--listen",
            &format!("0.0.0.0:{port}"),
            "--preferred-address",
            &preferred.to_string(),
            "--no-migration",
        ];
        if let Some(serving) = Serving::start_if_free(&arguments) {
            return (serving, preferred);
        }
    }
    panic!("no free port");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_move_to_the_preferred_address_and_not_elsewhere() {
    let folder = folder();
    let (serving, preferred) = preferring(&folder);
    let first = ([127, 0, 0, 1], preferred.port()).into();
    let mut client = MovingClient::connect(&serving, first).await;
    within(async {
        while client.connection.remote_address() != preferred {
            client.request_page().await;
            tokio::task::yield_now().await;
        }
    })
    .await;
    client.request_page().await;
    // A listener on a specific address does not receive at the preferred one, and does not offer it.
    let mut client = MovingClient::connect(&serving, serving.address).await;
    let refused = within(async {
        loop {
            client.request_page().await;
            let moved = client.connection.migrate([127, 0, 0, 2].into()).await;
            let text = moved.map_or_else(|error| error.to_string(), |()| "moved".to_owned());
            if text != "the handshake is not confirmed" {
                return text;
            }
        }
    })
    .await;
    assert_eq!(refused, "the server has disabled active migration");
    assert_eq!(client.connection.remote_address(), serving.address);
    client.request_page().await;
}

#[test]
fn unusable_preferred_addresses_are_rejected() {
    let serve = |listen: &str, addresses: &[&str]| {
        let mut arguments = vec!["serve", "--listen", listen];
        for address in addresses {
            arguments.extend(["--preferred-address", address]);
        }
        refusal(&arguments)
    };
    for (listen, addresses, reason) in [
        (
            "127.0.0.1:0",
            &["127.0.0.5:4433"][..],
            "listen on 0.0.0.0 or [::]",
        ),
        ("0.0.0.0:0", &["[2001:db8::7]:443"], "listen on [::]"),
        ("0.0.0.0:0", &["0.0.0.0:443"], "it is a wildcard"),
        ("0.0.0.0:0", &["127.0.0.5:0"], "port 0"),
        ("0.0.0.0:0", &["127.0.0.5"], "not an address with a port"),
        (
            "0.0.0.0:0",
            &["127.0.0.5:1", "127.0.0.6:1"],
            "at most one of IPv4",
        ),
    ] {
        let line = serve(listen, addresses);
        assert!(line.contains(reason), "{line}");
        assert!(line.contains(addresses[0]), "{line}");
    }
}

/// RFC 9287 §3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quic_bit_is_cleared_for_clients_that_accept_it() {
    let folder = folder();
    let path = folder.path().to_str().expect("UTF-8");
    for (flag, accepts) in [
        (Some("--grease-quic-bit"), true),
        (Some("--grease-quic-bit"), false),
        (None, true),
    ] {
        let arguments: Vec<&str> = [path, "--no-tcp"].into_iter().chain(flag).collect();
        let serving = Serving::start(&arguments);
        let relay = QuicBitRelay::to(serving.address).await;
        let endpoint = Endpoint::builder()
            .grease_quic_bit(accepts)
            .bind((Ipv4Addr::LOCALHOST, 0).into())
            .expect("a port");
        let mut client = MovingClient::connect_from(&endpoint, &serving, relay.address).await;
        // Each response takes at least one datagram, and each bit is random.
        for _ in 0..40 {
            client.request_page().await;
        }
        let (with, without) = relay.bits();
        let is_greased = flag.is_some() && accepts;
        assert!(with > 0, "{flag:?}, {accepts}: the QUIC bit is never set");
        assert_eq!(
            without > 0,
            is_greased,
            "{flag:?}, {accepts}: {without} without it"
        );
    }
}
