//! Transfers through sockets whose receive buffers hold one or two packets (F42).

use std::net::UdpSocket;
use std::time::Instant;

use courser::{ClientConfig, Endpoint, EndpointConfig, Identity, ServerConfig};
use socket2::SockRef;

use crate::common::{self, loopback, pattern, within};

/// Creates an endpoint with a receive buffer of this size, as far as the system allows: Linux
/// doubles it, and accepts a datagram that is larger if there is no other.
fn endpoint(server: Option<ServerConfig>, receive_buffer: Option<usize>) -> Endpoint {
    let socket = UdpSocket::bind(loopback()).expect("a port");
    let same = socket.try_clone().expect("a descriptor");
    let config = EndpointConfig::from_seed([u8::from(server.is_some()); 32]);
    let endpoint = Endpoint::new(config, server, socket).expect("a socket");
    // The endpoint asks for large buffers at its start.
    if let Some(size) = receive_buffer {
        let same = SockRef::from(&same);
        same.set_recv_buffer_size(size).expect("a size");
        let granted = same.recv_buffer_size().expect("a size");
        assert!(granted <= 2 * size.max(2048), "{granted} bytes");
    }
    endpoint
}

/// Sends `len` bytes in both directions at once, compares them, and returns the drops of server and
/// client.
async fn transfer(len: usize, at_server: Option<usize>, at_client: Option<usize>) -> [u64; 2] {
    let identity = Identity::dev().expect("random numbers");
    let config = ServerConfig::with_identity(&identity).expect("matching key");
    let server = endpoint(Some(config.alpn(["test"])), at_server);
    let client = endpoint(None, at_client);
    let config = ClientConfig::with_roots([identity.certificate()]).expect("a certificate");
    let address = server.local_addr().expect("bound");
    let connecting = client
        .connect_with(config.alpn(["test"]), address, "localhost")
        .expect("configured");
    let accepting = async { server.accept().await.expect("open").await };
    let (ours, theirs) = tokio::join!(connecting, accepting);
    let (ours, theirs) = (ours.expect("handshake"), theirs.expect("handshake"));

    let (up, down) = (pattern(3, len), pattern(5, len));
    let begin = Instant::now();
    let at_server = common::spawn({
        let down = down.clone();
        async move {
            let (mut send, mut receive) = theirs.accept_bi().await.expect("a stream");
            let write = async {
                send.write_all(&down).await.expect("open");
                send.finish().expect("open");
            };
            let (received, ()) = tokio::join!(receive.read_to_end(len), write);
            let all_sent = send.stopped().await;
            assert_eq!(all_sent.expect("open"), None);
            (received.expect("complete"), theirs)
        }
    });
    let (mut send, mut receive) = ours.open_bi().await.expect("allowed");
    let write = async {
        send.write_all(&up).await.expect("open");
        send.finish().expect("open");
    };
    let (received, ()) = tokio::join!(receive.read_to_end(len), write);
    assert!(received.expect("complete") == down, "other bytes came down");
    let (received, theirs) = at_server.await.expect("no panic");
    assert!(received == up, "other bytes came up");
    println!("{len} bytes each way took {:?}", begin.elapsed());
    drop((ours, theirs));
    [&server, &client].map(|endpoint| {
        let counted = endpoint.stats().receive_overflow;
        assert!(
            endpoint.receive_overflow() >= counted,
            "both count the same"
        );
        counted.unwrap_or_default()
    })
}

const LEN: usize = 1 << 20;

/// The kernel counts a datagram of 1200 bytes as at least 2304, so there is no room for a second
/// one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_a_buffer_of_two_kib_gets_every_byte() {
    let [server, client] = within(60, transfer(LEN, Some(2048), None)).await;
    println!("dropped: {server} by the server, {client} by the client");
    assert_drops(server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_with_a_buffer_of_four_kib_gets_every_byte() {
    let [server, client] = within(60, transfer(LEN, None, Some(4096))).await;
    println!("dropped: {server} by the server, {client} by the client");
    assert_drops(client);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_ends_with_buffers_of_two_kib_get_every_byte() {
    let [server, client] = within(60, transfer(LEN, Some(2048), Some(2048))).await;
    println!("dropped: {server} by the server, {client} by the client");
    assert_drops(server.max(client));
}

/// Checks that drops are counted, if the system reports them.
fn assert_drops(dropped: u64) {
    assert!(dropped > 0 || !cfg!(target_os = "linux"));
}

/// Drops of a socket that was replaced still count, also after it is closed.
#[cfg(target_os = "linux")]
#[test]
fn drops_of_earlier_sockets_are_counted() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let overflow = |endpoint: &Endpoint| endpoint.stats().receive_overflow.expect("Linux");
    // Outside of `block_on` nothing reads the socket.
    let endpoint = {
        let _entered = runtime.enter();
        endpoint(None, Some(2048))
    };
    let address = endpoint.local_addr().expect("bound");
    let sender = UdpSocket::bind(loopback()).expect("a port");
    for _ in 0..100 {
        sender.send_to(&[0; 1000], address).expect("sent");
    }
    let dropped = overflow(&endpoint);
    assert!(dropped > 0);
    for _ in 0..6 {
        let _entered = runtime.enter();
        endpoint.rebind_to(loopback()).expect("a port");
        assert_eq!(overflow(&endpoint), dropped);
    }
}
