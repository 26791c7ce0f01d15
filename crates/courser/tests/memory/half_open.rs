//! Heap of a server for each handshake that a client begins and abandons (attack A05).

use std::collections::HashSet;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use courser::{ClientConfig, Connecting, Endpoint, Identity, ServerConfig, TransportConfig};

use super::common::{loopback, within};
use super::{counting, runtime};

/// Handshakes before the counted ones, so that shared memory is already allocated.
const FIRST: usize = 20;
/// Fewer handshakes than the number from which on clients have to validate their address.
const COUNTED: usize = 80;

/// Heap of one handshake (O2), without AWS-LC's allocations for ciphers, which no Rust allocator
/// sees. 19 748 bytes were measured; docs/PERFORMANCE.md explains them.
const BUDGET: isize = 20 * 1024;

/// The datagrams of a client's first flight.
type Flight = Vec<Vec<u8>>;

/// Returns first flights of as many clients, received by a socket that answers nothing.
async fn catch_flights(config: ClientConfig) -> Vec<Flight> {
    let silent = tokio::net::UdpSocket::bind(loopback())
        .await
        .expect("a port");
    let address = silent.local_addr().expect("bound");
    let mut endpoint = Endpoint::client(loopback()).expect("a port");
    endpoint.set_default_client_config(config);
    let mut seen = HashSet::new();
    let mut flights = Vec::new();
    while flights.len() < FIRST + COUNTED {
        let _connecting = endpoint.connect(address, "localhost").expect("configured");
        let mut flight = Flight::new();
        // A ClientHello with a post-quantum key share takes two.
        while flight.len() < 2 {
            let mut datagram = vec![0; 2000];
            let len = silent.recv(&mut datagram).await.expect("sent");
            datagram.truncate(len);
            // Version, length of the Destination Connection ID, the ID itself.
            let id = datagram[6..6 + usize::from(datagram[5])].to_vec();
            if !seen.contains(&id) {
                flight.push(datagram);
            }
        }
        let first = &flight[0];
        seen.insert(first[6..6 + usize::from(first[5])].to_vec());
        flights.push(flight);
    }
    flights
}

/// Starts as many handshakes as there are flights. The caller must keep the result for them to
/// continue.
async fn accept(endpoint: &Endpoint, count: usize) -> Vec<Connecting> {
    let mut connecting = Vec::new();
    while connecting.len() < count {
        let incoming = endpoint.accept().await.expect("open");
        connecting.push(incoming.accept().expect("a ClientHello"));
    }
    connecting
}

fn send(flights: &[Flight], to: SocketAddr) -> Vec<UdpSocket> {
    let sockets = flights.iter().map(|flight| {
        let socket = UdpSocket::bind(loopback()).expect("a port");
        for datagram in flight {
            socket.send_to(datagram, to).expect("loopback");
        }
        socket
    });
    sockets.collect()
}

#[test]
fn half_open_handshake_costs_at_most_20_kib() {
    let identity = Identity::dev().expect("random numbers");
    let config = ClientConfig::with_roots([identity.certificate()]).expect("valid roots");
    let config = config.alpn(["test"]);
    let flights = runtime().block_on(async { within(60, catch_flights(config)).await });
    let growth = runtime().block_on(async {
        // Long enough for slow machines: no handshake times out during the measurement.
        let transport = TransportConfig {
            handshake_timeout: Duration::from_secs(300),
            ..TransportConfig::default()
        };
        let config = ServerConfig::with_identity(&identity)
            .expect("matching key")
            .alpn(["test"])
            .transport_config(std::sync::Arc::new(transport));
        let endpoint = Endpoint::server(config, loopback()).expect("a port");
        let address = endpoint.local_addr().expect("bound");
        let mut sockets = send(&flights[..FIRST], address);
        let mut kept = within(60, accept(&endpoint, FIRST)).await;
        let before = counting::live();
        sockets.extend(send(&flights[FIRST..], address));
        kept.extend(within(60, accept(&endpoint, COUNTED)).await);
        let growth = counting::live() - before;
        drop((kept, sockets));
        growth
    });
    let each = growth / COUNTED as isize;
    println!("{each} bytes for each half-open handshake");
    assert!(each <= BUDGET, "{each} bytes");
}
