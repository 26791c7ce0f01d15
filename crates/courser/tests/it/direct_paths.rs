//! Direct paths beside the one of the handshake, between real sockets. The server listens at all addresses of loopback:
//! 127.0.0.1 stands for a relay, 127.0.0.2 is direct. draft-seemann-quic-nat-traversal-02.

use std::net::{Ipv4Addr, SocketAddr};

use courser::{CandidateError, Connection, Endpoint, OfferCandidateError, TransportConfig};

use crate::common::{Pair, pair_with, pattern, spawn, until, within};

/// A pair whose server listens at all addresses.
fn pair(max_candidates: u8) -> Pair {
    let transport = TransportConfig {
        max_paths: 4,
        max_candidates,
        ..TransportConfig::default()
    };
    let mut of_server = None;
    let mut pair = pair_with(transport, |config| {
        of_server = Some(config.clone());
        config
    });
    let anywhere = (Ipv4Addr::UNSPECIFIED, 0).into();
    let config = of_server.expect("changed");
    pair.server = Endpoint::server(config, anywhere).expect("a port");
    let port = pair.server.local_addr().expect("bound").port();
    pair.address = SocketAddr::from(([127, 0, 0, 1], port));
    pair
}

fn direct(pair: &Pair) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 2], pair.address.port()))
}

async fn upload(client: &Connection, server: &Connection, len: usize) {
    let (mut stream, content) = (client.open_uni().await.expect("open"), pattern(3, len));
    let expected = content.clone();
    let writer = spawn(async move {
        stream.write_all(&content).await.expect("open");
        stream.finish().expect("not finished");
    });
    let mut stream = within(30, server.accept_uni()).await.expect("open");
    let received = within(30, stream.read_to_end(len)).await.expect("complete");
    assert!(received == expected, "the content differs");
    writer.await.expect("no panic");
}

#[tokio::test]
async fn connection_moves_to_the_direct_path() {
    let pair = pair(8);
    let (client, server) = pair.connect().await;
    let own = pair.client.local_addr().expect("bound");
    assert_eq!(client.offer_candidate(own), Ok(true));
    assert_eq!(client.offer_candidate(own), Ok(false), "known");
    assert_eq!(server.offer_candidate(direct(&pair)), Ok(true));
    let path = within(10, client.direct_path()).await.expect("open");
    assert_eq!(client.announced_candidates(), [direct(&pair)]);
    let is_preferred = || client.direct_addresses().iter().any(|it| it.is_preferred);
    until(is_preferred).await;
    upload(&client, &server, 5_000_000).await;
    let paths = client.paths();
    let found = paths.iter().find(|it| it.id == path).expect("open");
    assert_eq!(found.addresses.peer, direct(&pair));
    assert!(client.candidate_stats().probes_sent <= 9);
    // The relay is gone.
    assert_eq!(client.close_path(courser::PathId::ZERO), Ok(true));
    upload(&client, &server, 1_000_000).await;
    pair.finish().await;
}

#[tokio::test]
async fn ends_that_have_not_agreed_offer_nothing() {
    let pair = pair(0);
    let (client, server) = pair.connect().await;
    let refused = Err(OfferCandidateError::Refused(CandidateError::NotNegotiated));
    for end in [&client, &server] {
        assert_eq!(end.offer_candidate(direct(&pair)), refused);
    }
    pair.finish().await;
}

#[tokio::test]
async fn only_clients_start_rounds() {
    let pair = pair(8);
    let (client, server) = pair.connect().await;
    let refused = |error| Err(OfferCandidateError::Refused(error));
    let of_server = server.start_candidate_round();
    assert_eq!(of_server, refused(CandidateError::NotClient));
    let of_client = client.start_candidate_round();
    assert_eq!(of_client, refused(CandidateError::NoCandidates));
    pair.finish().await;
}
