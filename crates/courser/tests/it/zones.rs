//! Link-local addresses, which need a zone (RFC 4007 §6).

use std::net::{Ipv6Addr, SocketAddr};

use courser::{ClientConfig, ConnectError, Endpoint, Identity, ServerConfig};
use tokio::runtime::Runtime;

use crate::common::within;
use crate::namespace::{ADDRESS, is_inside, zone};

fn link_local(port: u16) -> SocketAddr {
    let text = format!("[{ADDRESS}%{}]:{port}", zone());
    text.parse().expect("an address")
}

fn wildcard() -> SocketAddr {
    (Ipv6Addr::UNSPECIFIED, 0).into()
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Connects an endpoint at `local` to a server that listens on `listen`, at its link-local address.
async fn connect(listen: SocketAddr, local: SocketAddr, shards: usize) {
    let identity = Identity::dev().expect("random numbers");
    let config = ServerConfig::with_identity(&identity).expect("matching key");
    // A token proves the address with its zone.
    let config = config.alpn(["test"]).retry(courser::RetryPolicy::Always);
    let builder = Endpoint::builder().server(config).shards(shards);
    let server = builder.bind(listen).expect("an address of this machine");
    assert_eq!(server.shard_count(), shards, "{listen}");
    let address = link_local(server.local_addr().expect("bound").port());
    let client = Endpoint::client(local).expect("a port");
    let config = ClientConfig::with_roots([identity.certificate()]).expect("a certificate");
    let config = config.alpn(["test"]);
    let connecting = client.connect_with(config, address, "localhost");
    let connecting = connecting.expect("a zone");
    let accept = async { server.accept().await.expect("open").await };
    let (connected, accepted) = within(20, async { tokio::join!(connecting, accept) }).await;
    let (connected, accepted) = (connected.expect("handshake"), accepted.expect("handshake"));
    assert_eq!(connected.remote_address(), address);
    assert_eq!(accepted.remote_address().ip(), address.ip());
    let SocketAddr::V6(peer) = accepted.remote_address() else {
        panic!("it is IPv6");
    };
    assert_eq!(peer.scope_id(), zone());
    // The path continues to work after a move to another port of the same address.
    client.rebind_to(local).expect("a port");
    let mut stream = connected.open_uni().await.expect("a credit");
    stream.write_all(b"moved").await.expect("open");
    stream.finish().expect("open");
    let arrived = within(20, async {
        let mut stream = accepted.accept_uni().await.expect("a stream");
        stream.read_to_end(100).await.expect("complete")
    });
    assert_eq!(arrived.await, b"moved");
    connected.close(0u32.into(), b"");
    server.close(0u32.into(), b"");
}

#[test]
fn quic_connects_to_link_local_addresses() {
    if !is_inside() {
        return;
    }
    runtime().block_on(async {
        for shards in [1, 2] {
            for listen in [wildcard(), link_local(0)] {
                for local in [wildcard(), link_local(0)] {
                    connect(listen, local, shards).await;
                }
            }
        }
    });
}

/// A flow label, and a zone that an address does not need, do not distinguish paths.
#[tokio::test]
async fn flow_label_and_unneeded_zone_are_ignored() {
    let identity = Identity::dev().expect("random numbers");
    let config = ServerConfig::with_identity(&identity).expect("matching key");
    let local = (Ipv6Addr::LOCALHOST, 0).into();
    let Ok(server) = Endpoint::server(config.alpn(["test"]), local) else {
        crate::namespace::skipped("no IPv6");
        return;
    };
    let SocketAddr::V6(mut address) = server.local_addr().expect("bound") else {
        panic!("it is IPv6");
    };
    address.set_flowinfo(0x12345);
    address.set_scope_id(1);
    let client = Endpoint::client((Ipv6Addr::UNSPECIFIED, 0).into()).expect("a port");
    let config = ClientConfig::with_roots([identity.certificate()]).expect("a certificate");
    let connecting = client.connect_with(config.alpn(["test"]), address.into(), "localhost");
    let connecting = connecting.expect("an address");
    let accept = async { server.accept().await.expect("open").await };
    let (connected, accepted) = within(20, async { tokio::join!(connecting, accept) }).await;
    accepted.expect("handshake");
    let peer = connected.expect("handshake").remote_address();
    assert_eq!(Some(peer), server.local_addr().ok());
}

#[tokio::test]
async fn link_local_addresses_without_a_zone_are_refused() {
    let Ok(client) = Endpoint::client((Ipv6Addr::UNSPECIFIED, 0).into()) else {
        crate::namespace::skipped("no IPv6");
        return;
    };
    let identity = Identity::dev().expect("random numbers");
    let config = ClientConfig::with_roots([identity.certificate()]).expect("a certificate");
    let config = config.alpn(["test"]);
    let address = "[fe80::1]:4433".parse().expect("an address");
    let error = client
        .connect_with(config, address, "localhost")
        .expect_err("no zone");
    assert!(
        matches!(error, ConnectError::InvalidRemoteAddress(it) if it == address),
        "{error}"
    );
}

#[cfg(all(feature = "client", feature = "server"))]
#[test]
fn http_reaches_link_local_addresses_over_every_version() {
    use courser::client::{HttpVersion, Proxy};

    if !is_inside() {
        return;
    }
    let show = tower::service_fn(|request: http::Request<courser::server::Body>| async move {
        let peer: &courser::server::Peer = request.extensions().get().expect("present");
        let host = request.uri().host().map(str::to_owned);
        let host = host.or_else(|| {
            let field = request.headers().get("host")?.to_str().ok()?;
            Some(field.rsplit_once(':')?.0.to_owned())
        });
        let shown = format!(
            "{} {} {}",
            peer.address(),
            peer.local_address().map_or(0, |local| local.port()),
            host.unwrap_or_default()
        );
        Ok::<_, std::convert::Infallible>(http::Response::new(http_body_util::Full::new(
            bytes::Bytes::from(shown),
        )))
    });
    runtime().block_on(async {
        let identity = Identity::dev().expect("random numbers");
        let server = courser::serve(link_local(0), &identity).bind();
        let server = server.expect("UDP and TCP");
        let handle = server.handle();
        let address = handle.local_addr();
        assert_eq!(address, link_local(address.port()), "it shows its zone");
        let serving = server.service(show).into_future();
        crate::common::spawn(async move { serving.await.expect("bound already") });
        for version in [
            HttpVersion::Http1,
            HttpVersion::Http2,
            HttpVersion::Http3Only,
        ] {
            let client = courser::Client::builder()
                .dangerous_insecure()
                .proxy(Proxy::Direct)
                .version(version)
                .resolve(ADDRESS, 0, [address]);
            let client = client.build().expect("a client");
            let url = format!("https://[{ADDRESS}]:{}/", address.port());
            let request = http::Request::get(url).body(courser::h3::Empty);
            let response = within(20, client.send(request.expect("a URL"))).await;
            let response = response.unwrap_or_else(|error| panic!("{version:?}: {error}"));
            let body = http_body_util::BodyExt::collect(response.into_body()).await;
            let shown = String::from_utf8(body.expect("a body").to_bytes().to_vec());
            let shown = shown.expect("text");
            let zone = zone();
            assert!(
                shown.starts_with(&format!("[{ADDRESS}%{zone}]:")),
                "{version:?}: {shown}"
            );
            let end = format!(" {} [{ADDRESS}]", address.port());
            assert!(shown.ends_with(&end), "{version:?}: {shown}");
        }
    });
}
