//! HTTP/3 connections that move to other addresses, and the QUIC bit of their packets.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

use axum::Router;
use axum::routing::get;
use courser::server::Server;
use courser::{ClientConfig, Connection, Endpoint, Identity, MigrateError, h3, serve};
use courser_transport::MigrateError as Refusal;
use http::Request;
use http_body_util::BodyExt as _;

use super::{Running, start_with, within};

/// A client of HTTP/3 that can send from each address of loopback.
struct Moving {
    connection: Connection,
    client: h3::Client,
}

impl Moving {
    async fn connect(address: SocketAddr, identity: &Identity) -> Self {
        let endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into()).expect("a port");
        let config = ClientConfig::with_roots([identity.certificate()]).expect("a certificate");
        let connecting = endpoint.connect_with(config.alpn([h3::ALPN]), address, "localhost");
        let connection = within(connecting.expect("configured")).await;
        let connection = connection.expect("a handshake");
        let client = h3::Client::new(connection.clone());
        Self { connection, client }
    }

    async fn ask(&self) {
        let request = Request::get("https://localhost/").body(h3::Empty);
        let response = self.client.send(request.expect("a request"));
        let response = within(response).await.expect("a response");
        let content = within(response.into_body().collect()).await;
        assert_eq!(content.expect("a body").to_bytes(), "served");
    }

    /// Moves once the handshake is confirmed.
    async fn migrate(&self, local: IpAddr) -> Result<(), MigrateError> {
        within(async {
            loop {
                self.ask().await;
                match self.connection.migrate(local).await {
                    Err(MigrateError::Refused(Refusal::NotConfirmed)) => {}
                    result => return result,
                }
            }
        })
        .await
    }
}

fn app() -> Router {
    Router::new().route("/", get(|| async { "served" }))
}

fn local(last: u8) -> IpAddr {
    IpAddr::from([127, 0, 0, last])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_http3_migrate_unless_the_server_forbids_it() {
    let forbidden = MigrateError::Refused(Refusal::Forbidden);
    for (is_allowed, result) in [(true, Ok(())), (false, Err(forbidden))] {
        let running = start_with(app(), |server| server.migration(is_allowed));
        let client = Moving::connect(running.handle.local_addr(), &running.identity).await;
        assert_eq!(client.migrate(local(2)).await, result);
        client.ask().await;
        let moved = is_allowed.then(|| local(2));
        assert_eq!(client.connection.local_ip(), moved, "{is_allowed}");
        running.drained().await;
    }
}

/// Returns the builder of a client that trusts this server and speaks HTTP/3.
#[cfg(feature = "client")]
fn builder(running: &Running) -> courser::client::ClientBuilder {
    courser::Client::builder()
        .platform_roots(false)
        .root(running.identity.certificate())
        .proxy(courser::client::Proxy::Direct)
        .resolve("localhost", 0, [local(1)])
        .version(courser::client::HttpVersion::Http3Only)
}

/// A server on all addresses of IPv4 that prefers one of them, with the port.
fn preferring(change: impl Fn(Server) -> Server) -> (Running, SocketAddr, u16) {
    for _ in 0..100 {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a port");
        let port = socket.local_addr().expect("bound").port();
        drop(socket);
        let preferred = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 5), port);
        let identity = Identity::dev().expect("random numbers");
        let server = serve((Ipv4Addr::UNSPECIFIED, port), &identity)
            .without_tcp()
            .preferred_address(preferred, None);
        let bound = match change(server).bind() {
            Err(error) if error.is_port_taken() => continue,
            bound => bound.expect("an address"),
        };
        let handle = bound.handle();
        let serving = bound.service(app()).into_future();
        let task = crate::common::spawn(async move { serving.await.expect("bound already") });
        let running = Running {
            handle,
            identity,
            task,
        };
        return (running, preferred.into(), port);
    }
    panic!("every port is taken");
}

/// RFC 9000 §9.6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_http3_move_to_the_preferred_address() {
    let (running, preferred, port) = preferring(|server| server.migration(false));
    let client = Moving::connect((local(1), port).into(), &running.identity).await;
    within(async {
        while client.connection.remote_address() != preferred {
            client.ask().await;
            tokio::task::yield_now().await;
        }
    })
    .await;
    client.ask().await;
    // Migration is forbidden for the first address only.
    assert_eq!(client.migrate(local(2)).await, Ok(()));
    client.ask().await;
    running.drained().await;
}

/// A socket of the test at the preferred address shows whether a client probes it.
#[cfg(feature = "client")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_probe_the_preferred_address_unless_they_ignore_it() {
    let probed = UdpSocket::bind("127.0.0.5:0").expect("a port");
    probed.set_nonblocking(true).expect("valid socket");
    let SocketAddr::V4(preferred) = probed.local_addr().expect("bound") else {
        panic!("bound to IPv4");
    };
    let (running, _, port) = preferring(|server| server.preferred_address(preferred, None));
    let url = format!("https://localhost:{port}/");
    let mut buffer = [0; 2048];
    for follows in [false, true] {
        let client = builder(&running)
            .follow_preferred_address(follows)
            .build()
            .expect("a client");
        let ask = async || {
            let response = within(client.get(&url)).await.expect("a response");
            let content = within(response.into_body().collect()).await;
            assert_eq!(content.expect("a body").to_bytes(), "served");
        };
        let mut is_probed = || probed.recv_from(&mut buffer).is_ok();
        match follows {
            // The handshake is confirmed with the first response, and clients probe at once.
            false => {
                for _ in 0..50 {
                    ask().await;
                }
                assert!(!is_probed());
            }
            true => {
                within(async {
                    while !is_probed() {
                        ask().await
                    }
                })
                .await
            }
        }
        // Without an answer there it stays.
        ask().await;
        client.close().await;
    }
    running.drained().await;
}

/// RFC 9287 §3: an end clears the bit if both ends accept it.
#[cfg(feature = "client")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_quic_bit_is_cleared_if_both_ends_accept_it() {
    for (server, client) in [(true, true), (true, false), (false, true), (false, false)] {
        let running = start_with(app(), |it| it.grease_quic_bit(server));
        let relay = crate::common::relay::Relay::new(running.handle.local_addr());
        let url = format!("https://localhost:{}/", relay.address.port());
        let asking = builder(&running)
            .grease_quic_bit(client)
            .build()
            .expect("a client");
        for _ in 0..10 {
            let response = within(asking.get(&url)).await.expect("a response");
            assert_eq!(response.status(), 200);
        }
        let cleared = relay.cleared().map(|datagrams| datagrams > 0);
        assert_eq!(cleared, [server && client; 2], "{server} {client}");
        asking.close().await;
        running.drained().await;
    }
}

#[tokio::test]
async fn preferred_addresses_that_no_socket_receives_are_refused() {
    let identity = Identity::dev().expect("random numbers");
    let preferred: SocketAddrV4 = "127.0.0.5:4433".parse().expect("an address");
    let server = serve("127.0.0.1:0", &identity).preferred_address(preferred, None);
    let error = server.bind().expect_err("no wildcard").to_string();
    assert!(error.contains("127.0.0.5:4433"), "{error}");
    assert!(error.contains("listen on 0.0.0.0 or [::]"), "{error}");
    let server = serve("127.0.0.1:0", &identity).preferred_address(preferred, None);
    assert!(server.without_quic().bind().is_ok(), "no client is asked");
}
