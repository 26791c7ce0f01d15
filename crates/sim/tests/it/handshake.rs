//! Handshakes over networks that lose, delay, copy and corrupt packets.

use std::net::SocketAddr;
use std::time::Duration;

use crate::common::{SERVER, Scene, Setup, for_each_seed};
use courser_base::Time;
use courser_sim::World;
use courser_sim::apps::{Amount, Bulk, Exchange, Paced, Serve, TransferDirection};
use courser_sim::host::{Host, HostSpec};
use courser_sim::link::Dropped;
use courser_sim::world::NodeId;
use courser_transport::{ConnectionError, Event, RetryPolicy};

const MS: Duration = Duration::from_millis(1);

/// The client sends 1000 bytes and closes.
fn small() -> Bulk {
    Bulk::new(SERVER, TransferDirection::Up, Amount::Bytes(1000))
}

#[test]
fn handshake_takes_one_round_trip() {
    let mut scene = Scene::new(1, Setup::on("rtt=100ms"), small());
    scene.run_for(MS * 101);
    let time = scene
        .stats()
        .handshake_time
        .expect("the handshake has ended");
    assert!(time >= MS * 100 && time < MS * 102, "{time:?}");
}

/// Every subset of the first twelve datagrams of both ends together: 4096 handshakes.
#[test]
fn handshake_survives_loss_of_every_subset_of_twelve_datagrams() {
    for_each_seed(1 << 12, |seed| {
        let mask = seed - 1;
        let mut setup = Setup::on("rtt=20ms").both(|config| {
            // Twelve losses in a row take six probe timeouts, which double.
            config.initial_rtt = MS * 100;
            config.handshake_timeout = Duration::from_secs(60);
            config.max_idle_timeout = Some(Duration::from_secs(60));
        });
        setup.lost = (1..=12)
            .filter(|number| mask >> (number - 1) & 1 == 1)
            .collect();
        let mut scene = Scene::new(seed, setup, small());
        scene.run_until(Duration::from_secs(50), "transfer", |scene| {
            scene.server_counters().received == 1000 && scene.counters().streams == 1
        });
        assert_eq!(scene.counters().failures, [""; 0], "mask {mask:012b}");
    });
}

/// The probe timeout before there is a sample: RFC 9002 §6.2.2, 333 ms and four times its half.
const FIRST_PTO: Duration = Duration::from_millis(999);

/// Sends 1000 bytes over `setup`, and checks that they arrive and the connection closes without
/// error.
fn transfer(seed: u64, setup: Setup, limit: Duration) -> Scene {
    let mut scene = Scene::new(seed, setup, small());
    scene.finish(limit, 1);
    assert_eq!(scene.server_counters().received, 1000);
    scene.assert_clean();
    scene
}

fn handshake_time(scene: &Scene) -> Duration {
    scene
        .stats()
        .handshake_time
        .expect("the handshake has ended")
}

/// One loss costs its sender at most a probe timeout, and both ends may wait for each other once:
/// two timeouts and three round trips are enough.
const AFTER_ONE_LOSS: Duration = Duration::from_millis(2 * 999 + 3 * 50);

#[test]
fn any_one_of_the_first_twelve_datagrams_to_the_server_lost_costs_a_probe_timeout() {
    let mut hits = 0;
    for lost in 1..=12 {
        let setup = Setup::on(&format!("rtt=50ms,drop={lost};rtt=50ms"));
        let scene = transfer(lost, setup, AFTER_ONE_LOSS);
        hits += scene.forward().dropped.listed;
    }
    assert!(hits >= 4, "the client sends no less: {hits}");
}

#[test]
fn any_one_of_the_first_twelve_datagrams_to_the_client_lost_costs_a_probe_timeout() {
    let mut hits = 0;
    for lost in 1..=12 {
        let setup = Setup::on(&format!("rtt=50ms;rtt=50ms,drop={lost}"));
        let scene = transfer(lost, setup, AFTER_ONE_LOSS);
        hits += scene.back().dropped.listed;
    }
    assert!(hits >= 4, "the server sends no less: {hits}");
}

/// Two losses at the same end cost at most two consecutive timeouts, the second twice as long.
const AFTER_TWO_LOSSES: Duration = Duration::from_millis((1 + 2 + 1) * 999 + 4 * 50);

#[test]
fn any_two_of_the_first_ten_datagrams_to_the_server_lost_are_survived() {
    for first in 1..=9 {
        for second in first + 1..=10 {
            let link = format!("rtt=50ms,drop={first},{second};rtt=50ms");
            transfer(first * 100 + second, Setup::on(&link), AFTER_TWO_LOSSES);
        }
    }
}

#[test]
fn any_two_of_the_first_ten_datagrams_to_the_client_lost_are_survived() {
    for first in 1..=9 {
        for second in first + 1..=10 {
            let link = format!("rtt=50ms;rtt=50ms,drop={first},{second}");
            transfer(first * 100 + second, Setup::on(&link), AFTER_TWO_LOSSES);
        }
    }
}

#[test]
fn any_datagram_lost_in_each_direction_is_survived() {
    for there in 1..=10 {
        for back in 1..=10 {
            let link = format!("rtt=50ms,drop={there};rtt=50ms,drop={back}");
            let scene = transfer(there * 100 + back, Setup::on(&link), AFTER_TWO_LOSSES);
            if there <= 3 && back <= 3 {
                assert_eq!(scene.dropped(|dropped| dropped.listed), 2);
            }
        }
    }
}

#[test]
fn round_trip_longer_than_the_first_probe_timeout_costs_nothing() {
    let scene = transfer(1, Setup::on("rtt=1500ms"), Duration::from_secs(4));
    // The packets that the probes repeat had only been delayed.
    assert!(scene.stats().ptos >= 1);
    assert!(handshake_time(&scene) < MS * 1510);
}

#[test]
fn satellite_hop_of_three_seconds_still_connects() {
    let scene = transfer(1, Setup::on("rtt=3s"), Duration::from_secs(7));
    assert!(handshake_time(&scene) < MS * 3010);
}

#[test]
fn delays_that_differ_by_direction_add_up() {
    for link in ["10ms;490ms", "490ms;10ms"] {
        let scene = transfer(1, Setup::on(link), Duration::from_secs(2));
        let time = handshake_time(&scene);
        assert!(time >= MS * 500 && time < MS * 502, "{link}: {time:?}");
        assert_eq!(scene.stats().packets_lost, 0);
    }
}

#[test]
fn path_without_delay_connects_at_once() {
    let scene = transfer(1, Setup::on("rtt=20us"), MS * 50);
    assert!(handshake_time(&scene) < MS);
    assert_eq!(scene.stats().ptos, 0);
}

#[test]
fn request_with_its_response_takes_two_round_trips() {
    let app = Exchange::new(SERVER, 100, 100, Some(1));
    let mut scene = Scene::new(1, Setup::on("rtt=100ms"), app);
    let time = scene.finish(MS * 300, 1);
    // The request leaves beside the client's Finished, and the answer is one round trip away.
    assert!(time >= MS * 200 && time <= MS * 202, "{time:?}");
    scene.assert_clean();
}

#[test]
fn server_confirms_within_one_and_a_half_round_trips_and_the_client_within_two() {
    let mut scene = Scene::new(1, Setup::on("rtt=100ms"), small());
    scene.confirm(MS * 250);
    let confirmed = |event: &Event| *event == Event::Confirmed;
    let client = scene.when(confirmed).expect("the handshake is confirmed") - Time::ZERO;
    let server = scene
        .when_server(confirmed)
        .expect("the handshake is confirmed")
        - Time::ZERO;
    assert!(server >= MS * 150 && server < MS * 152, "{server:?}");
    assert!(client >= MS * 200 && client < MS * 202, "{client:?}");
}

/// A corrupted datagram is equivalent to a lost one, for every byte: first byte, version,
/// connection IDs, token length, packet number, ciphertext, tag.
#[test]
fn one_damaged_byte_in_any_of_the_first_ten_datagrams_is_survived() {
    for number in 1..=10 {
        for byte in [0, 1, 5, 6, 14, 15, 24, 26, 30, 600, usize::MAX] {
            let mut setup = Setup::on("rtt=50ms");
            setup.damaged = vec![(number, byte)];
            let scene = Scene::new(number, setup, small());
            let scene = finished(scene, AFTER_ONE_LOSS, &format!("{number} {byte}"));
            if number <= 2 && byte == usize::MAX {
                let dropped = scene.server().endpoint().stats().datagrams_dropped;
                let damaged = dropped + scene.server_stats().packets_dropped;
                assert!(damaged > 0, "datagram {number}");
            }
        }
    }
}

fn finished(mut scene: Scene, limit: Duration, what: &str) -> Scene {
    scene.run_until(limit, what, |scene| scene.counters().streams == 1);
    assert_eq!(scene.server_counters().received, 1000);
    scene.assert_clean();
    scene
}

/// RFC 9000 §6.2: a list with the version that the client chose does not end the attempt.
#[test]
fn version_negotiation_that_lists_our_version_is_ignored() {
    let mut setup = Setup::on("rtt=50ms");
    // Byte 2 is a part of the version.
    setup.damaged = vec![(1, 2)];
    let scene = transfer(1, setup, AFTER_ONE_LOSS);
    let stats = scene.server().endpoint().stats();
    assert_eq!(stats.version_negotiations_sent, 1);
}

#[test]
fn every_datagram_twice_costs_no_time() {
    let scene = transfer(1, Setup::on("rtt=100ms,duplicate=100%"), MS * 250);
    assert!(handshake_time(&scene) < MS * 102);
    assert!(scene.forward().duplicated >= 3 && scene.back().duplicated >= 3);
    assert_eq!(scene.server().endpoint().stats().accepted, 1);
    assert_eq!(
        scene.counters().received + scene.server_counters().received,
        1000
    );
}

/// RFC 9001 §4.1.2: only a server that has the client's Finished acknowledges its data. It does so
/// at least every 25 ms, while HANDSHAKE_DONE would be repeated after a probe timeout of the
/// server: 50 ms, four times 25 ms and 25 ms after the 75 ms at which it was lost.
#[test]
fn acknowledged_data_confirms_the_handshake_when_handshake_done_is_lost() {
    let app = Paced::new(SERVER, 100, MS * 10);
    let link = "rtt=50ms;rtt=50ms,drop=3-4";
    let mut scene = Scene::new(1, Setup::on(link), app);
    scene.run_for(MS * 150);
    assert_eq!(scene.back().dropped.listed, 2);
    let confirmed = |event: &Event| *event == Event::Confirmed;
    let client = scene.when(confirmed).expect("the handshake is confirmed") - Time::ZERO;
    assert!(client > MS * 100 && client < MS * 140, "{client:?}");
    scene.run_for(Duration::from_secs(1));
    scene.assert_clean();
}

/// Packets of a flight may arrive in any order. Keys or bytes are at most 30 ms late, and early
/// packets are kept, so no probe is needed.
#[test]
fn reordered_flights_cost_no_more_than_the_delay_of_the_late_ones() {
    let mut reordered = 0;
    for_each_seed(100, |seed| {
        let scene = transfer(seed, Setup::on("rtt=100ms,reorder=50%:30ms"), MS * 450);
        assert!(handshake_time(&scene) <= MS * 162, "seed {seed}");
        reordered += scene.forward().reordered + scene.back().reordered;
    });
    assert!(reordered > 100, "{reordered}");
}

#[test]
fn jitter_beyond_the_round_trip_keeps_within_its_bounds() {
    for_each_seed(50, |seed| {
        let scene = transfer(seed, Setup::on("rtt=20ms,jitter=300ms"), MS * 1500);
        assert!(handshake_time(&scene) <= MS * 622, "seed {seed}");
    });
}

/// With its post-quantum share the ClientHello takes two datagrams.
#[test]
fn first_half_of_the_hello_lost_is_sent_again() {
    half_lost(1);
}

#[test]
fn second_half_of_the_hello_lost_is_sent_again() {
    half_lost(2);
}

fn half_lost(half: u64) {
    let setup = Setup::on(&format!("rtt=50ms,drop={half};rtt=50ms"));
    let scene = transfer(1, setup, AFTER_ONE_LOSS);
    assert_eq!(scene.forward().dropped.listed, 1);
    let time = handshake_time(&scene);
    assert!(time <= FIRST_PTO + MS * 2 * 50, "{time:?}");
}

#[test]
fn both_halves_of_the_hello_lost_are_sent_again() {
    let setup = Setup::on("rtt=50ms,first=2;rtt=50ms");
    let scene = transfer(1, setup, AFTER_ONE_LOSS);
    let time = handshake_time(&scene);
    assert!(time >= FIRST_PTO && time <= FIRST_PTO + MS * 52, "{time:?}");
    assert_eq!(scene.stats().ptos, 1);
}

#[test]
fn halves_of_the_hello_seconds_apart_make_one_connection() {
    // Only every other datagram passes, starting with the second half.
    let setup = Setup::on("rtt=50ms,drop=1,3,5;rtt=50ms,first=2");
    let scene = transfer(1, setup, Duration::from_secs(8));
    assert_eq!(scene.server().endpoint().stats().accepted, 1);
    assert_eq!(scene.forward().dropped.listed, 3);
    assert_eq!(scene.back().dropped.listed, 2);
}

/// Only the client's ACK shows the server that its first datagram arrived. If that ACK is lost, the
/// client's next probe repeats it.
#[test]
fn probe_repeats_an_acknowledgement_that_was_lost() {
    let setup = Setup::on("rtt=50ms,drop=3;rtt=50ms,drop=2");
    let mut scene = Scene::new(1, setup, small());
    scene.run_until(Duration::from_secs(1), "probe", |scene| {
        scene.forward().packets_in == 4
    });
    assert_eq!(scene.server_stats().acks_received, 0);
    assert_eq!(scene.stats().ptos, 1);
    scene.run_for(MS * 26);
    assert_eq!(scene.server_stats().acks_received, 1);
    finished(scene, AFTER_TWO_LOSSES, "transfer");
}

/// Silence ends the attempt at the handshake timeout. The client probes with two datagrams each
/// time, at intervals that double: at 1, 3 and 7 seconds of the ten.
#[test]
fn silent_server_ends_the_attempt_at_the_handshake_timeout() {
    let mut scene = Scene::new(1, Setup::on("rtt=50ms;rtt=50ms,blackhole=0s:60s"), small());
    scene.run_for(Duration::from_secs(11));
    let (at, error) = scene.end().expect("the connection has ended");
    assert_eq!(error, ConnectionError::HandshakeTimedOut);
    assert_eq!(at - Time::ZERO, Duration::from_secs(10));
    assert_eq!(scene.stats().ptos, 3);
    assert!(
        scene.forward().packets_in <= 2 + 3 * 2,
        "{:?}",
        scene.forward()
    );
}

#[test]
fn address_without_a_machine_ends_the_attempt_in_time() {
    let link = "rtt=50ms,blackhole=0s:60s;rtt=50ms";
    let mut scene = Scene::new(1, Setup::on(link), small());
    scene.run_for(Duration::from_secs(11));
    let (_, error) = scene.end().expect("the connection has ended");
    assert_eq!(error, ConnectionError::HandshakeTimedOut);
    assert_eq!(scene.server().endpoint().connections(), 0);
    assert_eq!(scene.server().endpoint().stats().accepted, 0);
}

/// A server keeps the state of a client that is gone for half of the handshake timeout.
#[test]
fn connection_of_a_client_that_vanishes_is_removed() {
    let link = "rtt=50ms,drop=3-1000;rtt=50ms";
    let mut scene = Scene::new(1, Setup::on(link), small());
    scene.run_for(Duration::from_secs(4));
    assert_eq!(scene.server().endpoint().connections(), 1);
    scene.run_for(Duration::from_secs(2));
    let (_, error) = scene.server_end().expect("the connection has ended");
    assert_eq!(error, ConnectionError::HandshakeTimedOut);
    assert_eq!(scene.server().endpoint().connections(), 0);
    assert_eq!(scene.server().endpoint().stats().half_open, 0);
}

/// The rule of the interop runner's `handshakeloss`: 30 %, at most three in a row, 50 times. Half
/// of the attempts wait for at most two timeouts, and all end within thirty seconds: after some
/// losses in a row probes are six seconds apart.
#[test]
fn thirty_percent_loss_fails_no_handshake_of_a_hundred() {
    let mut times = Vec::new();
    let mut lost = 0;
    for_each_seed(100, |seed| {
        let setup = Setup::on("rtt=30ms,loss=30%:3").both(|config| {
            config.handshake_timeout = Duration::from_secs(30);
        });
        let scene = transfer(seed, setup, Duration::from_secs(20));
        times.push(handshake_time(&scene));
        lost += scene.dropped(|dropped| dropped.loss);
    });
    assert!(lost > 300, "{lost}");
    times.sort_unstable();
    let half = times[times.len() / 2];
    assert!(half <= 2 * FIRST_PTO + MS * 60, "{half:?}");
}

#[test]
fn thirty_percent_damaged_fails_no_handshake_of_fifty() {
    let mut damaged = 0;
    for_each_seed(50, |seed| {
        let setup = Setup::on("rtt=30ms,corrupt=30%:3");
        let mut scene = Scene::new(seed, setup, small());
        scene.finish(Duration::from_secs(20), 1);
        // The server may have dropped an attempt without packets for five seconds, and the client
        // started again.
        assert_eq!(scene.server_counters().received, 1000);
        assert_eq!(scene.counters().failures, [""; 0]);
        assert_eq!(scene.counters().mismatch, None);
        damaged += scene.forward().corrupted + scene.back().corrupted;
    });
    assert!(damaged > 150, "{damaged}");
}

#[test]
fn truncated_datagrams_are_equivalent_to_lost_ones() {
    let mut cut = 0;
    for_each_seed(50, |seed| {
        let setup = Setup::on("rtt=30ms,truncate=20%");
        let scene = transfer(seed, setup, Duration::from_secs(20));
        cut += scene.forward().truncated + scene.back().truncated;
    });
    assert!(cut > 50, "{cut}");
}

/// RFC 9000 §12.2: bytes behind the last packet of a datagram are no reason to drop that packet. A
/// datagram with a short header has no such end and is lost.
#[test]
fn trailing_bytes_after_the_hello_are_ignored() {
    let link = "rtt=50ms,extend=100%;rtt=50ms";
    let mut scene = Scene::new(1, Setup::on(link), small());
    scene.run_for(MS * 49);
    scene.set_forward("rtt=50ms");
    let scene = finished(scene, MS * 200, "transfer");
    assert!(scene.forward().extended >= 2);
    assert!(handshake_time(&scene) < MS * 52);
}

#[test]
fn three_seconds_without_a_network_at_first_are_survived() {
    // Probes at 1, 3 and 7 seconds: the third gets through.
    let scene = transfer(1, Setup::on("rtt=50ms,blackhole=0s:3500ms"), MS * 7200);
    let time = handshake_time(&scene);
    assert!(
        time >= 7 * FIRST_PTO && time < 7 * FIRST_PTO + MS * 52,
        "{time:?}"
    );
    assert!(scene.dropped(|dropped| dropped.blackhole) >= 6);
}

/// All bytes pass at 64 kbit/s, and nothing is sent twice except for the probes before there is a
/// sample.
#[test]
fn slow_link_takes_the_time_of_the_bytes() {
    let scene = transfer(
        1,
        Setup::on("64kbit,rtt=100ms,queue=100p"),
        Duration::from_secs(10),
    );
    let bytes = scene.forward().wire_bytes_out + scene.back().wire_bytes_out;
    let serial = Duration::from_micros(bytes * 8 * 1_000_000 / 64_000);
    let time = handshake_time(&scene);
    assert!(
        time >= MS * 100 && time <= MS * 100 + serial,
        "{time:?} for {serial:?}"
    );
    assert_eq!(scene.dropped(Dropped::total), 0);
}

/// Twenty clients connect at the same time through one link that loses a tenth.
#[test]
fn clients_do_not_disturb_each_other() {
    for_each_seed(10, |seed| {
        let (world, clients, server) = run_clients(seed, 20, "100mbit,rtt=40ms,10%,queue=1000p");
        for client in clients {
            let host: &Host = world.node(client).expect("the node is a host");
            let counters = host.counters().expect("the application has counters");
            assert_eq!(
                (counters.streams, counters.failures.len()),
                (1, 0),
                "{counters:?}"
            );
        }
        let host: &Host = world.node(server).expect("the server succeeds");
        let counters = host.counters().expect("the application has counters");
        assert_eq!((counters.received, counters.mismatch), (20_000, None));
        assert_eq!(host.endpoint().stats().accepted, 20);
        assert_eq!(host.connections().len(), 20);
    });
}

/// Runs `count` clients of one server on one link, each with a transfer, for thirty seconds.
fn run_clients(seed: u64, count: u8, link: &str) -> (World, Vec<NodeId>, NodeId) {
    let mut world = World::new(seed);
    let clients: Vec<NodeId> = (0..count)
        .map(|number| {
            let name = format!("client {number}");
            let address = SocketAddr::from(([10, 0, 1, number], 50_000));
            let host = Host::new(HostSpec::client(address, world.seed_for(&name)), small());
            world.add(&name, address.ip(), host)
        })
        .collect();
    let mut spec = HostSpec::server(SERVER, world.seed_for("server"));
    spec.retry = RetryPolicy::Never;
    let server = world.add("server", SERVER.ip(), Host::new(spec, Serve::new()));
    let link = link.parse().expect("the link specification is valid");
    world.bottleneck(&clients, &[server], &link);
    world
        .run_for(Duration::from_secs(30))
        .expect("the world does not stall");
    (world, clients, server)
}
