//! Tunnels, clients and targets that harm no others.

use super::*;

async fn bound() -> (UdpSocket, String) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("bound");
    let address = socket.local_addr().expect("bound").to_string();
    (socket, address)
}

/// Receives one packet, and returns its sender.
async fn sender_of(target: &UdpSocket) -> SocketAddr {
    let mut buffer = [0; 100];
    let received = within(target.recv_from(&mut buffer)).await;
    received.expect("received").1
}

async fn exchange(socket: &Socket) {
    socket.send(b"hello").expect("open");
    assert_eq!(within(socket.recv()).await.expect("open"), "hello");
}

/// Addresses to which the system does not send are no lack of room.
#[tokio::test(flavor = "multi_thread")]
async fn addresses_of_broadcasts_are_prohibited() {
    let started = start(open_proxy()).await;
    let client = started.client(Carrier::Http3).await;
    let error = within(client.open("127.255.255.255:9"))
        .await
        .expect_err("refused");
    let reported = error.reported().map(|reported| reported.error.as_str());
    assert_eq!(reported, Some("destination_ip_prohibited"));
}
