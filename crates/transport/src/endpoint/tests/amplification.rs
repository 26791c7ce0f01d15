//! Tests that the anti-amplification limit holds and that every handshake completes.
//! RFC 9000 §8.1, attacks A03 and A04.

use super::*;
use crate::testing::identity::server_tls_with_big_chain;

/// Returns the settings of a server with a chain that does not fit into three ClientHellos.
fn big_chain() -> Setup {
    chain_of(20)
}

fn chain_of(certificates: usize) -> Setup {
    let mut setup = Setup::default();
    setup.server.tls = server_tls_with_big_chain(&[b"test"], certificates - 1);
    // Allows more attempts within the ten seconds of a handshake.
    setup.client.initial_rtt = Duration::from_millis(50);
    let mut transport = setup.client.clone();
    transport.initial_rtt = Duration::from_millis(50);
    setup.server.transport = Arc::new(transport);
    setup
}

/// Runs a pair that loses the datagrams of each direction whose bits are set.
fn masked(setup: Setup, to_server: u32, to_client: u32) -> Pair {
    let mut pair = Pair::with(setup);
    let mut counts = [0, 0];
    pair.link.filter = Some(Box::new(move |_, datagram| {
        let direction = usize::from(datagram.to.port() != 4433);
        let mask = [to_server, to_client][direction];
        counts[direction] += 1;
        counts[direction] > 32 || mask >> (counts[direction] - 1) & 1 == 0
    }));
    pair
}

fn completes(pair: &mut Pair) -> bool {
    pair.start();
    pair.run_until(Duration::from_secs(30), |pair| {
        let confirmed = |end: &End| end.has(&Event::Confirmed);
        confirmed(&pair.client) && confirmed(&pair.server)
    })
}

#[test]
fn silent_client_receives_three_times_its_bytes() {
    // The pair checks each datagram. The server has far more data to send.
    let mut pair = Pair::with(big_chain());
    let mut count = 0;
    pair.link.filter = Some(Box::new(move |_, datagram| {
        count += usize::from(datagram.to.port() == 4433);
        datagram.to.port() != 4433 || count <= 2
    }));
    pair.start();
    pair.run_for(Duration::from_secs(30));
    let (received, sent) = pair.ledger.of(pair.client.address);
    assert_eq!((received, sent), (2400, 7200));
    assert_clean(&pair.server, "server");
}

#[test]
fn limit_holds_for_every_subset_of_first_packets() {
    // The pair checks every datagram of the server.
    for mask in 0..1u32 << 8 {
        let mut pair = Pair::with(big_chain());
        let mut count = 0;
        pair.link.filter = Some(Box::new(move |_, datagram| {
            if datagram.to.port() != 4433 {
                return true;
            }
            count += 1;
            count <= 8 && mask >> (count - 1) & 1 == 1
        }));
        pair.start();
        pair.run_for(Duration::from_millis(1500));
        assert!(
            mask == 0 || pair.ledger.of(pair.client.address).1 > 0,
            "mask {mask:b}"
        );
    }
}

#[test]
fn handshake_completes_after_any_losses_among_the_first_six_datagrams_of_the_client() {
    for mask in 0..1 << 6 {
        let mut pair = masked(big_chain(), mask, 0);
        assert!(
            completes(&mut pair),
            "mask {mask:06b}: {:?}",
            pair.client.events
        );
    }
}

#[test]
fn handshake_completes_after_any_losses_among_the_first_six_datagrams_of_the_server() {
    for mask in 0..1 << 6 {
        let mut pair = masked(big_chain(), 0, mask);
        assert!(
            completes(&mut pair),
            "mask {mask:06b}: {:?}",
            pair.client.events
        );
    }
}

#[test]
fn handshake_completes_after_any_losses_among_the_first_six_datagrams_of_both_ends() {
    // A coprime step walks through a third of all 2^12 masks in no particular order.
    for step in 0..1400 {
        let mask = step * 1_237 % (1 << 12);
        let mut pair = masked(
            Setup {
                seed: 3,
                ..small_chain()
            },
            mask & 0x3f,
            mask >> 6,
        );
        assert!(
            completes(&mut pair),
            "mask {mask:012b}: {:?}",
            pair.client.events
        );
    }
}

#[test]
fn handshake_with_a_big_chain_completes_after_losses_of_both_ends() {
    for step in 0..300 {
        let mask = step * 2_741 % (1 << 12);
        let mut pair = masked(big_chain(), mask & 0x3f, mask >> 6);
        assert!(
            completes(&mut pair),
            "mask {mask:012b}: {:?}",
            pair.client.events
        );
    }
}

fn small_chain() -> Setup {
    let mut setup = big_chain();
    setup.server.tls = Setup::default().server.tls;
    setup
}

#[test]
fn handshake_completes_through_heavy_random_loss() {
    for seed in 0..60 {
        let mut pair = Pair::with(Setup {
            seed,
            ..big_chain()
        });
        pair.link.loss = 300;
        pair.link.reorder = 300;
        pair.link.duplicate = 100;
        let done = completes(&mut pair);
        let is_over = lost(&pair.client).is_some() && lost(&pair.server).is_some();
        assert!(done || is_over, "seed {seed}: {:?}", pair.client.events);
        assert!(done || seed != 0, "the first seeds complete");
    }
}

#[test]
fn handshake_with_a_retry_completes_after_losses() {
    for mask in 0..1 << 6 {
        for both in [(mask, 0), (0, mask), (mask, mask)] {
            let mut setup = small_chain();
            setup.server.retry = crate::RetryPolicy::Always;
            let mut pair = masked(setup, both.0, both.1);
            assert!(
                completes(&mut pair),
                "mask {both:?}: {:?}",
                pair.client.events
            );
        }
    }
}

#[test]
fn client_hello_of_two_packets_arrives_in_any_order() {
    for order in [[0, 1], [1, 0]] {
        let mut pair = Pair::new();
        let flight = catch_first_flight(&mut pair);
        assert_eq!(flight.len(), 2, "a ClientHello with X25519MLKEM768");
        for index in order {
            pair.deliver(flight[index].clone());
            pair.run_for(Duration::from_millis(1));
        }
        assert!(
            pair.run_until(RTT * 3, |pair| pair.client.has(&Event::Confirmed)),
            "{order:?}"
        );
        assert_eq!(pair.server.endpoint.stats().accepted, 1);
    }
}

#[test]
fn client_hello_whose_second_packet_arrives_first_can_wait_to_be_accepted() {
    let mut pair = waiting_pair(|_| {});
    let flight = catch_first_flight(&mut pair);
    pair.deliver(flight[1].clone());
    pair.deliver(flight[0].clone());
    pair.accepts = true;
    assert!(pair.run_until(RTT * 3, |pair| pair.client.has(&Event::Confirmed)));
}

#[test]
fn every_datagram_with_an_initial_is_large_enough() {
    // The server's datagrams too, if they are ack-eliciting; RFC 9000 §14.1.
    for seed in 0..20 {
        let (setup, eye) = Setup {
            seed,
            ..big_chain()
        }
        .with_eye();
        let mut pair = Pair::with(setup);
        pair.link.loss = 200;
        completes(&mut pair);
        for seen in eye
            .client_sent(&pair)
            .iter()
            .filter(|seen| seen.kind == PacketKind::Initial)
        {
            assert!(
                seen.datagram_len >= 1200,
                "client, seed {seed}: {}",
                seen.datagram_len
            );
        }
        for seen in eye
            .server_sent(&pair)
            .iter()
            .filter(|seen| seen.kind == PacketKind::Initial)
        {
            let fine = seen.datagram_len >= 1200 || !seen.is_ack_eliciting();
            assert!(fine, "server, seed {seed}: {}", seen.datagram_len);
        }
    }
}

#[test]
fn bytes_that_do_not_open_count_towards_the_limit() {
    let mut pair = Pair::with(chain_of(50));
    let flight = catch_first_flight(&mut pair);
    pair.link.filter = Some(Box::new(|_, _| false));
    flight
        .iter()
        .for_each(|datagram| pair.deliver(datagram.clone()));
    pair.drive();
    let (received, sent) = pair.ledger.of(pair.client.address);
    assert!(received == 2400 && sent > 7100, "{sent} bytes");
    let mut garbage = flight[0].clone();
    garbage.bytes[700..].fill(0xff);
    pair.deliver(garbage);
    pair.drive();
    let (received, sent) = pair.ledger.of(pair.client.address);
    assert!(received == 3600 && sent > 10_600, "{sent} bytes");
}

#[test]
fn client_probes_with_a_padded_initial_and_then_with_a_handshake_packet() {
    // RFC 9002 §6.2.2.1: first all datagrams of the server are lost, then all but its ServerHello.
    let (setup, eye) = big_chain().with_eye();
    let mut pair = Pair::with(setup);
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to.port() == 4433));
    pair.start();
    pair.run_for(Duration::from_secs(2));
    let probes = eye.client_sent(&pair);
    assert!(probes.len() > 4 && probes.iter().all(|seen| seen.kind == PacketKind::Initial));
    assert!(
        probes
            .iter()
            .all(|seen| seen.datagram_len >= 1200 && seen.is_ack_eliciting())
    );
    let (setup, eye) = big_chain().with_eye();
    let mut pair = Pair::with(setup);
    let mut count = 0;
    pair.link.filter = Some(Box::new(move |_, datagram| {
        count += usize::from(datagram.to.port() != 4433);
        datagram.to.port() == 4433 || count <= 2
    }));
    pair.start();
    pair.run_for(Duration::from_secs(4));
    let last = eye.client_sent(&pair).pop().expect("probes");
    assert_eq!(last.kind, PacketKind::Handshake);
    assert!(last.is_ack_eliciting());
}

#[test]
fn server_at_its_limit_has_no_probe_timer() {
    let mut pair = Pair::with(big_chain());
    let mut count = 0;
    pair.link.filter = Some(Box::new(move |_, datagram| {
        count += usize::from(datagram.to.port() == 4433);
        datagram.to.port() == 4433 && count <= 2
    }));
    pair.start();
    pair.run_for(Duration::from_secs(5));
    let connection = pair.server.connection();
    assert_eq!(connection.stats().ptos, 0, "RFC 9002 §6.2.2.1");
    let timer = connection.next_timeout().map(|(_, timer)| timer);
    assert_eq!(timer, Some(crate::Timer::Handshake));
}
