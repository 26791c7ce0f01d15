//! QUIC inside of a tunnel.

use courser_quic::{Connection, ServerConfig};

use super::*;

/// A server of QUIC that returns each stream.
async fn quic_echo(identity: &Identity) -> SocketAddr {
    let config = ServerConfig::with_identity(identity)
        .expect("valid")
        .alpn(["echo"]);
    let server =
        Endpoint::server(config, "127.0.0.1:0".parse().expect("valid")).expect("a free port");
    let address = server.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            tokio::spawn(async move {
                let connection = incoming.await?;
                while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                    tokio::spawn(async move {
                        let _ = tokio::io::copy(&mut receive, &mut send).await;
                        let _ = send.finish();
                    });
                }
                Ok::<_, courser_quic::ConnectionError>(())
            });
        }
    });
    address
}

async fn connect(socket: Socket, identity: &Identity) -> (Endpoint, Connection) {
    let transport = socket.into_transport();
    let peer = transport.peer_addr();
    let endpoint = Endpoint::builder().transport(transport).expect("a runtime");
    let config = ClientConfig::with_roots([identity.certificate()])
        .expect("valid")
        .alpn(["echo"]);
    let connecting = endpoint
        .connect_with(config, peer, "localhost")
        .expect("valid");
    let connection = within(connecting.into_future()).await.expect("connected");
    (endpoint, connection)
}

/// Sends a megabyte both ways, and compares it.
async fn exchange(connection: &Connection) {
    let (mut send, mut receive) = within(connection.open_bi()).await.expect("open");
    let contents: Vec<u8> = (0..1_000_000_u32).map(|at| (at / 7) as u8).collect();
    let sent = contents.clone();
    tokio::spawn(async move {
        send.write_all(&sent).await.expect("open");
        send.finish().expect("open");
    });
    let received = within(receive.read_to_end(2_000_000)).await.expect("whole");
    assert_eq!(received.len(), contents.len());
    assert!(received == contents, "other contents");
}

#[tokio::test(flavor = "multi_thread")]
async fn quic_passes_through_every_version() {
    let started = start(open_proxy()).await;
    let identity = Identity::dev().expect("an identity");
    let target = quic_echo(&identity).await;
    for carrier in ALL {
        let socket = started.open(carrier, &target.to_string()).await;
        let (_endpoint, connection) = connect(socket, &identity).await;
        exchange(&connection).await;
    }
}

/// MQ-udp-021, MQ-udp-025: probes that do not fit are lost, and the tunnel stays.
#[tokio::test(flavor = "multi_thread")]
async fn the_search_for_the_inner_mtu_ends_below_the_outer_one() {
    let started = start(open_proxy()).await;
    let identity = Identity::dev().expect("an identity");
    let target = quic_echo(&identity).await;
    let socket = started.open(Carrier::Http3, &target.to_string()).await;
    let (_endpoint, connection) = connect(socket.clone(), &identity).await;
    exchange(&connection).await;
    let inner = usize::from(connection.stats().path.mtu);
    assert!(
        (1200..=socket.max_size()).contains(&inner),
        "{inner} of {}",
        socket.max_size()
    );
}

/// A tunnel through a tunnel: the first proxy is the only way to the second one.
#[tokio::test(flavor = "multi_thread")]
async fn proxies_can_be_chained() {
    let first = start(open_proxy()).await;
    let second = start(open_proxy()).await;
    let target = echo().await;
    let socket = first
        .open(Carrier::Http3, &second.address.to_string())
        .await;
    let transport = socket.into_transport();
    let peer = transport.peer_addr();
    let endpoint = Endpoint::builder().transport(transport).expect("a runtime");
    let config = ClientConfig::with_roots([second.identity.certificate()]).expect("valid");
    let connecting = endpoint.connect_with(config.alpn([h3::ALPN]), peer, "localhost");
    let connection = within(connecting.expect("valid").into_future())
        .await
        .expect("connected");
    let mut settings = h3::Config::new(Side::Client);
    courser_masque_tokio::enable(&mut settings, Side::Client);
    let client = UdpClient::over(
        h3::Client::with_config(connection, settings),
        Template::of_proxy("localhost").expect("valid"),
    );
    let socket = within(client.open(&target.to_string()))
        .await
        .expect("accepted");
    socket.send(b"twice").expect("open");
    assert_eq!(within(socket.recv()).await.expect("open"), "twice");
}
