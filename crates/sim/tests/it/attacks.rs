//! Faulty machines and attackers on the path: the faults that a link alone cannot cause. Numbers
//! such as F10 are those of `docs/FAULTS.md`.

use std::time::Duration;

use crate::common::attacker::{ATTACKER, Attack, Early};
use crate::common::faulty_host::{AddressChanges, Clock, MachineFaults, Socket};
use crate::common::faulty_scene::{FaultyScene, OTHER};
use crate::common::lab::{MS, SECOND, ethernet, up};
use crate::common::{SERVER, Setup, for_each_seed};
use courser_base::Time;
use courser_sim::apps::Exchange;
use courser_transport::{ConnectionError, RetryPolicy};
use courser_wire::TransportErrorCode;

const LINK: &str = "20mbit,rtt=40ms,queue=2bdp";

fn client_faults(faults: MachineFaults) -> [MachineFaults; 2] {
    [faults, MachineFaults::default()]
}

fn attacked(seed: u64, bytes: u64, attack: Attack) -> FaultyScene {
    FaultyScene::new(seed, ethernet(LINK), up(bytes), Default::default(), attack)
}

/// Checks the three-times limit at the victim (RFC 9000 §8): it receives no more than three times
/// the bytes that are sent with its address.
fn assert_not_amplified(scene: &FaultyScene) -> (usize, usize) {
    let (sent, received) = scene.attacker_and_victim_bytes();
    assert!(received <= 3 * sent, "{received} bytes for {sent}");
    (sent, received)
}

/// F10. A part of a datagram is not a valid packet. Two joined datagrams are read as coalesced
/// packets, of which the first has a short header and ends with the datagram.
#[test]
fn split_or_joined_datagrams_only_delay_the_transfer() {
    for_each_seed(10, |seed| {
        for at in 0..2 {
            let mut faults = [MachineFaults::default(); 2];
            faults[at].recut = 15;
            let mut scene =
                FaultyScene::new(seed, ethernet(LINK), up(300_000), faults, Attack::default());
            let time = scene.finish_up(300_000, SECOND * 60);
            assert!(time < SECOND * 30, "end {at}: {time:?}");
            let dropped = [0, 1].map(|at| {
                let host = scene.host(at);
                host.stats(host.connections()[0])
                    .expect("the connection has counters")
                    .packets_dropped
            });
            assert!(dropped[1 - at] > 0, "{dropped:?}");
        }
    });
}

/// F22. The client pauses for longer than its NAT keeps the mapping, so each exchange starts with a
/// packet from another port.
#[test]
fn mapping_that_expires_in_a_pause_causes_only_a_path_validation() {
    let setup = ethernet("20mbit,rtt=50ms,rebind=idle:2s");
    let app = Exchange::new(SERVER, 1000, 50_000, Some(5)).every(SECOND * 5);
    let mut scene = FaultyScene::new(1, setup, app, Default::default(), Attack::default());
    scene.run_until(SECOND * 60, |scene| scene.counters(0).exchanges.len() == 5);
    scene.assert_clean();
    assert_eq!((scene.rebindings(), scene.moves()), (4, 4));
    for (at, took) in &scene.counters(0).exchanges {
        assert!(*took < MS * 350, "{at:?}: {took:?}");
    }
}

/// F22. With keep-alives the mapping never expires.
#[test]
fn keep_alive_keeps_the_mapping() {
    let setup = ethernet("20mbit,rtt=50ms,rebind=idle:2s");
    let setup = Setup {
        client: courser_transport::TransportConfig {
            keep_alive_interval: Some(MS * 1500),
            ..setup.client
        },
        ..setup
    };
    let app = Exchange::new(SERVER, 1000, 50_000, Some(5)).every(SECOND * 5);
    let mut scene = FaultyScene::new(1, setup, app, Default::default(), Attack::default());
    scene.run_until(SECOND * 60, |scene| scene.counters(0).exchanges.len() == 5);
    scene.assert_clean();
    assert_eq!((scene.rebindings(), scene.moves()), (0, 0));
}

/// F22. Neither end sends any more, and both end by the idle timeout.
#[test]
fn mapping_that_stays_expired_causes_an_idle_timeout() {
    let setup = ethernet("20mbit,rtt=50ms,rebind=idle:1s")
        .both(|it| it.max_idle_timeout = Some(SECOND * 5));
    let app = Exchange::new(SERVER, 1000, 1000, None).every(SECOND * 100);
    let mut scene = FaultyScene::new(1, setup, app, Default::default(), Attack::default());
    scene.run_for(SECOND * 7);
    for at in 0..2 {
        assert_eq!(scene.end(at), Some(&ConnectionError::TimedOut), "end {at}");
    }
}

fn transfer_with_alternating_addresses(every: Duration, link: &str, limit: Duration) {
    for_each_seed(3, |seed| {
        let bytes = 3_000_000;
        let faults = MachineFaults {
            address_changes: Some(AddressChanges {
                every,
                other: OTHER,
            }),
            ..MachineFaults::default()
        };
        let faults = client_faults(faults);
        let mut scene =
            FaultyScene::new(seed, ethernet(link), up(bytes), faults, Attack::default());
        let time = scene.finish_up(bytes, limit * 2);
        assert!(scene.moves() > 1, "{} moves", scene.moves());
        assert!(time < limit, "{time:?}");
    });
}

/// F23. The client changes between two networks under load, once per round trip.
#[test]
fn client_alternates_addresses_each_round_trip() {
    transfer_with_alternating_addresses(MS * 40, LINK, SECOND * 20);
}

#[test]
fn client_alternates_addresses_each_second() {
    transfer_with_alternating_addresses(MS * 500, LINK, SECOND * 8);
}

#[test]
fn client_alternates_addresses_with_loss() {
    transfer_with_alternating_addresses(MS * 300, "20mbit,rtt=40ms,queue=2bdp,1%", SECOND * 30);
}

/// F25. Copies of every packet arrive first, from another machine's address, for a time. Then the
/// connection continues (RFC 9000 §9.3.3), and that machine received no more than three times the
/// bytes sent in its name.
#[test]
fn copies_that_race_for_three_seconds_end_no_connection() {
    for_each_seed(5, |seed| {
        let bytes = 20_000_000;
        let race = Attack {
            race: 100,
            ..Attack::default()
        };
        let mut scene = attacked(seed, bytes, race);
        scene.run_for(SECOND * 3);
        scene.client_node().calm();
        let time = scene.finish_up(bytes, SECOND * 60);
        assert!(time < SECOND * 20, "{time:?}");
        assert!(
            scene.moves() > 0,
            "the server migrated to the address of the copies"
        );
        let (sent, received) = assert_not_amplified(&scene);
        assert!(sent > 1000 && received > 0, "{received} bytes for {sent}");
    });
}

/// F25. Copies arrive first from time to time, so the path changes back and forth.
#[test]
fn copies_that_race_occasionally_only_delay_the_transfer() {
    for_each_seed(10, |seed| {
        let bytes = 2_000_000;
        let race = Attack {
            race: 2,
            ..Attack::default()
        };
        let mut scene = attacked(seed, bytes, race);
        let time = scene.finish_up(bytes, SECOND * 60);
        assert!(time < SECOND * 30, "{time:?}");
        assert_not_amplified(&scene);
    });
}

/// F26. Once the client has Handshake keys, it accepts nothing that an observer can forge.
#[test]
fn forged_packets_after_the_first_flight_are_ignored() {
    for_each_seed(20, |seed| {
        let forge = Attack {
            forge: 50,
            ..Attack::default()
        };
        let mut scene = attacked(seed, 500_000, forge);
        let time = scene.finish_up(500_000, SECOND * 20);
        assert!(time < SECOND * 3, "{time:?}");
        let host = scene.host(0);
        let stats = host
            .stats(host.connections()[0])
            .expect("the connection has counters");
        assert!(stats.packets_dropped > 20, "{stats:?}");
    });
}

/// F26. Before the first response an observer can end the attempt, since nothing is secret yet (RFC
/// 9000 §21.2). It then ends at once, with the reason, and leaves no state.
#[test]
fn forged_first_responses_end_the_handshake_at_once() {
    let is_expected = |early, error: &ConnectionError| match error {
        ConnectionError::ConnectionClosed(close) => {
            early == Early::Close && close.code == TransportErrorCode::INTERNAL_ERROR
        }
        ConnectionError::VersionMismatch { offered, .. } => {
            early == Early::Versions && offered.len() == 1
        }
        _ => false,
    };
    for early in [Early::Close, Early::Versions] {
        let mut scene = attacked(1, 1000, Attack::default());
        scene.client_node().attack_early(early);
        scene.run_for(MS * 41);
        let error = scene
            .end(0)
            .unwrap_or_else(|| panic!("{early:?}: the attempt continues"));
        assert!(is_expected(early, error), "{early:?}: {error}");
        assert_eq!(scene.counters(0).failures.len(), 1, "{early:?}");
        scene.run_for(SECOND * 12);
        for at in 0..2 {
            let left = scene.host(at).endpoint().connections();
            assert_eq!(left, 0, "{early:?}: end {at}");
        }
    }
}

/// F26. A forged Retry: its connection ID is not in the server's parameters (RFC 9000 §7.3), or the
/// server does not accept the token and sends a Retry, which a client follows only once. Either way
/// the attempt ends.
#[test]
fn forged_retry_is_detected() {
    for retry in [RetryPolicy::Never, RetryPolicy::Always] {
        let setup = Setup {
            retry,
            ..ethernet(LINK)
        };
        let mut scene = FaultyScene::new(1, setup, up(1000), Default::default(), Attack::default());
        scene.client_node().attack_early(Early::Retry);
        scene.run_for(SECOND * 25);
        let error = scene.end(0).expect("the connection has ended");
        let is_detected = matches!(error, ConnectionError::TransportError(error)
            if error.code == TransportErrorCode::TRANSPORT_PARAMETER_ERROR)
            || *error == ConnectionError::HandshakeTimedOut;
        assert!(is_detected, "{retry:?}: {error}");
        assert_eq!(scene.counters(1).received, 0);
        for at in 0..2 {
            assert_eq!(scene.host(at).endpoint().connections(), 0, "end {at}");
        }
    }
}

/// F27. All datagrams of the client are replayed while the connection is open, and after it has
/// ended.
#[test]
fn replayed_session_is_delivered_once() {
    for_each_seed(5, |seed| {
        for from in [None, Some(ATTACKER)] {
            let replay = Attack {
                replay: 30,
                ..Attack::default()
            };
            let mut scene = attacked(seed, 200_000, replay);
            scene.finish_up(200_000, SECOND * 20);
            scene.run_for(SECOND * 5);
            let gone =
                |scene: &FaultyScene| (0..2).all(|at| scene.host(at).endpoint().connections() == 0);
            assert!(gone(&scene));
            let data = scene.counters(1).received;
            scene.client_node().replay_all(from);
            scene.run_for(MS * 100);
            assert_not_amplified(&scene);
            scene.run_until(SECOND * 15, gone);
            assert_eq!(scene.counters(1).received, data, "from {from:?}");
            assert_not_amplified(&scene);
        }
    });
}

fn with_clock(seed: u64, at: usize, clock: Clock) -> FaultyScene {
    let mut faults = [MachineFaults::default(); 2];
    faults[at].clock = clock;
    FaultyScene::new(
        seed,
        ethernet(LINK),
        up(3_000_000),
        faults,
        Attack::default(),
    )
}

fn back(seed: u64, by: Duration) -> Clock {
    let at = Time::ZERO + MS * (100 + 130 * u32::try_from(seed).expect("the number fits into u32"));
    Clock::Back { at, by }
}

/// Checks that the transfer is complete, or that each end ended by an idle timeout, or by a
/// stateless reset from a peer that timed out first.
fn assert_silent_at_worst(scene: &FaultyScene, is_done: bool) {
    for at in 0..2 {
        let ended = scene.end(at);
        let is_silence =
            ended.is_some_and(|error| error.is_timeout() || *error == ConnectionError::Reset);
        assert!(is_done || is_silence, "end {at}: {ended:?}");
        assert_eq!(scene.counters(at).mismatch, None);
    }
}

/// F28. Timers fire a second late, and nothing else is wrong.
#[test]
fn clock_that_goes_back_a_second_ends_no_connection() {
    for_each_seed(5, |seed| {
        for at in 0..2 {
            let mut scene = with_clock(seed, at, back(seed, SECOND));
            let time = scene.finish_up(3_000_000, SECOND * 60);
            assert!(time < SECOND * 5, "end {at}: {time:?}");
        }
    });
}

/// F28. The pacer blocks for an hour, and timers fire an hour late. The other end has timed out long
/// before.
#[test]
fn clock_that_goes_back_an_hour_causes_an_idle_timeout_at_worst() {
    for_each_seed(5, |seed| {
        for at in 0..2 {
            let mut scene = with_clock(seed, at, back(seed, SECOND * 3600));
            scene.run_for(SECOND * 4000);
            let is_done = scene.counters(1).received == 3_000_000;
            assert_silent_at_worst(&scene, is_done);
        }
    });
}

/// F28. A second forward, or a stop of ten seconds: no timeout of thirty is reached.
#[test]
fn clock_that_jumps_a_second_or_stops_for_ten_ends_no_connection() {
    let from = Time::ZERO + MS * 500;
    let leap = Clock::Jump {
        at: from,
        by: SECOND,
    };
    let freeze = Clock::Freeze {
        at: from,
        lasts: SECOND * 10,
    };
    for clock in [leap, freeze] {
        for at in 0..2 {
            let mut scene = with_clock(1, at, clock);
            let time = scene.finish_up(3_000_000, SECOND * 60);
            assert!(time < SECOND * 15, "{clock:?}, end {at}: {time:?}");
        }
    }
}

/// F28. A day forward is a day of silence. The connection continues if the peer's next packet
/// arrives first, and otherwise ends by the idle timeout. The peer gets no wrong reason.
#[test]
fn clock_that_jumps_a_day_causes_an_idle_timeout_at_worst() {
    for_each_seed(10, |seed| {
        for at in 0..2 {
            let clock = Clock::Jump {
                at: Time::ZERO
                    + MS * (20 + 90 * u32::try_from(seed).expect("the number fits into u32")),
                by: SECOND * 86_400,
            };
            let mut scene = with_clock(seed, at, clock);
            scene.run_for(SECOND * 120);
            let is_done = scene.counters(1).received == 3_000_000;
            assert_silent_at_worst(&scene, is_done);
        }
    });
}

/// F33 to F38, as a driver reports them: refused datagrams are lost, and datagrams that find the
/// buffer full wait.
#[test]
fn sockets_that_refuse_or_stall_only_delay_the_transfer() {
    let refuses = Socket {
        refuses: 10,
        ..Socket::default()
    };
    let stalls = Socket {
        stalls: Some((5, MS * 300)),
        ..Socket::default()
    };
    let small = Socket {
        largest: Some(1252),
        ..Socket::default()
    };
    for (socket, limit) in [(refuses, 20), (stalls, 30), (small, 3)] {
        for at in 0..2 {
            let mut faults = [MachineFaults::default(); 2];
            faults[at].socket = socket;
            let mut scene =
                FaultyScene::new(1, ethernet(LINK), up(1_000_000), faults, Attack::default());
            let time = scene.finish_up(1_000_000, SECOND * 90);
            assert!(time < SECOND * limit, "{socket:?}, end {at}: {time:?}");
        }
    }
}
