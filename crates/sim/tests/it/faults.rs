//! Faulty networks and machines. After the fault everything arrives, or both ends report an error.

use std::time::Duration;

use crate::common::lab::{
    CONTROLLERS, MS, SECOND, assert_clean, back, controlled, endless, ethernet, finish_exchanges,
    finish_up, ideal, there, transfer_down, transfer_up, up,
};
use crate::common::slow::{Fault, SlowScene};
use crate::common::{SERVER, Scene, for_each_seed};
use courser_base::Time;
use courser_recovery::Algorithm;
use courser_sim::apps::Exchange;
use courser_transport::Event;

/// A transfer over a link that loses this share each way ends within `limit` with every seed.
fn loses(share: &str, seeds: u64, bytes: u64, limit: Duration) {
    for_each_seed(seeds, |seed| {
        let setup = ethernet(&format!("20mbit,rtt=20ms,loss={share}")).both(|it| {
            it.handshake_timeout = SECOND * 60;
            it.max_idle_timeout = Some(SECOND * 120);
        });
        let (scene, time) = transfer_up(seed, setup, bytes, limit * 2);
        assert!(there(&scene).dropped.loss > 0);
        assert!(time < limit, "{time:?}");
    });
}

/// CUBIC holds about `1.2 MSS / (RTT sqrt p)` in the region where it acts as Reno: 2.7 MB/s.
#[test]
fn transfer_survives_one_in_a_thousand_lost() {
    loses("0.1%", 5, 3_000_000, SECOND * 3);
}

#[test]
fn transfer_survives_five_percent_loss() {
    loses("5%", 10, 300_000, SECOND * 5);
}

#[test]
fn transfer_survives_twenty_percent_loss() {
    loses("20%", 10, 100_000, SECOND * 20);
}

/// Each way, so that only about one round trip in three succeeds.
#[test]
fn transfer_survives_forty_percent_loss() {
    loses("40%", 20, 20_000, SECOND * 100);
}

/// Probe timeouts that double, with two packets each: slow, but the transfer ends.
#[test]
fn transfer_survives_half_lost_in_one_direction() {
    for_each_seed(20, |seed| {
        let setup = ethernet("20mbit,rtt=20ms,loss=50%;20mbit,rtt=20ms").both(|it| {
            it.handshake_timeout = SECOND * 60;
            it.max_idle_timeout = Some(SECOND * 120);
        });
        let (scene, time) = transfer_up(seed, setup, 20_000, SECOND * 200);
        assert!(there(&scene).dropped.loss > 5);
        assert!(time < SECOND * 100, "{time:?}");
    });
}

/// A whole flight of 200 packets is lost in a transfer with hundreds in flight.
#[test]
fn transfer_survives_a_burst_of_200_lost_packets() {
    for &algorithm in CONTROLLERS {
        let link = "50mbit,rtt=100ms,drop=600-799;50mbit,rtt=100ms";
        let (scene, time) = transfer_up(1, controlled(link, algorithm), 4_000_000, SECOND * 30);
        assert_eq!(there(&scene).dropped.listed, 200);
        // As two transfers, each with its own slow start, and a timeout.
        let limit = ideal(4_000_000, 50, MS * 100) * 2 + SECOND;
        assert!(time < limit, "{algorithm}: {time:?}, at most {limit:?}");
    }
}

/// Bursts of 5 packets on average.
#[test]
fn transfer_survives_bursts_of_loss() {
    for_each_seed(10, |seed| {
        let setup = ethernet("20mbit,rtt=20ms,gilbert=1%:20%");
        let (scene, time) = transfer_up(seed, setup, 500_000, SECOND * 60);
        assert!(there(&scene).dropped.gilbert + back(&scene).dropped.gilbert > 0);
        assert!(time < SECOND * 30, "{time:?}");
    });
}

/// The last packet of the data is lost, and its first retransmissions.
#[test]
fn transfer_survives_loss_of_any_packet_near_the_end() {
    for_each_seed(20, |seed| {
        let from = 5 + seed;
        let link = format!("20mbit,rtt=40ms,drop={from}-{};20mbit,rtt=40ms", from + 2);
        let (scene, time) = transfer_up(seed, ethernet(&link), 30_000, SECOND * 20);
        assert!(there(&scene).dropped.listed > 0);
        // Two doublings of a probe timeout of at most three round trips.
        assert!(time < SECOND, "{time:?}");
    });
}

/// Everything is lost in one direction for a time. The transfer continues within twice that time
/// after the start of the outage, since probe timeouts double, and a second of recovery.
fn outage(there_only: bool, millis: u64) {
    let hole = format!("20mbit,rtt=40ms,blackhole=1s:{millis}ms");
    let plain = "20mbit,rtt=40ms";
    let link = if there_only {
        format!("{hole};{plain}")
    } else {
        format!("{plain};{hole}")
    };
    let bytes = 4_000_000;
    for algorithm in [Algorithm::Cubic, Algorithm::Bbr] {
        let (scene, time) = transfer_up(1, controlled(&link, algorithm), bytes, SECOND * 100);
        let lost = there(&scene).dropped.blackhole + back(&scene).dropped.blackhole;
        assert!(lost > 0);
        let limit = ideal(bytes, 20, MS * 40).mul_f64(1.2)
            + MS * u32::try_from(millis).expect("the number fits into u32") * 2
            + SECOND;
        assert!(time < limit, "{algorithm}: {time:?}, at most {limit:?}");
    }
}

#[test]
fn transfer_survives_outage_of_100_ms_towards_the_server() {
    outage(true, 100);
}

#[test]
fn transfer_survives_outage_of_100_ms_towards_the_client() {
    outage(false, 100);
}

#[test]
fn transfer_survives_outage_of_2_seconds_towards_the_server() {
    outage(true, 2000);
}

#[test]
fn transfer_survives_outage_of_2_seconds_towards_the_client() {
    outage(false, 2000);
}

#[test]
fn transfer_survives_outage_of_10_seconds_towards_the_server() {
    outage(true, 10_000);
}

#[test]
fn transfer_survives_outage_of_10_seconds_towards_the_client() {
    outage(false, 10_000);
}

/// Below the idle timeout of 30 s, with probe timeouts that double up to the length of the outage.
#[test]
fn transfer_survives_outage_of_14_seconds() {
    let bytes = 4_000_000;
    let (scene, time) = transfer_up(
        1,
        ethernet("20mbit,rtt=40ms,blackhole=1s:14s"),
        bytes,
        SECOND * 60,
    );
    assert!(there(&scene).dropped.blackhole > 0);
    assert!(time < SECOND * 33, "{time:?}");
}

/// Returns the times at which each end reported the end of the connection.
fn ends(scene: &Scene) -> [Duration; 2] {
    let is_lost = |event: &Event| matches!(event, Event::Lost(_));
    [scene.when(is_lost), scene.when_server(is_lost)]
        .map(|at| at.expect("the connection has ended") - Time::ZERO)
}

/// Everything is lost from the second second on, with an idle timeout of five: both ends report it
/// within 1.1 times that, counted from the last packet that they received or sent first after it.
#[test]
fn outage_beyond_the_idle_timeout_is_reported_to_both_ends() {
    for_each_seed(5, |seed| {
        let setup = ethernet("20mbit,rtt=40ms,blackhole=2s:1000s")
            .both(|it| it.max_idle_timeout = Some(SECOND * 5));
        let mut scene = Scene::new(seed, setup, endless());
        scene.run_for(SECOND * 30);
        for at in ends(&scene) {
            assert!((MS * 6900..MS * 7600).contains(&at), "{at:?}");
        }
        assert!(
            scene.counters().failures.len() == 1 && scene.server_counters().failures.len() == 1
        );
        assert_eq!(scene.server_counters().mismatch, None);
    });
}

/// Only one direction is lost: the other end receives probes, but its responses are lost.
#[test]
fn one_way_outage_beyond_the_idle_timeout_is_reported_to_the_sender() {
    let setup = ethernet("20mbit,rtt=40ms;20mbit,rtt=40ms,blackhole=2s:1000s")
        .both(|it| it.max_idle_timeout = Some(SECOND * 5));
    let mut scene = Scene::new(1, setup, endless());
    scene.run_for(SECOND * 60);
    let [client, server] = ends(&scene);
    assert!((MS * 6900..MS * 7600).contains(&client), "{client:?}");
    // It received packets of the client up to the last probe.
    assert!(server < client + SECOND * 6, "{server:?}");
}

/// Holes that repeat each second.
#[test]
fn transfer_survives_periodic_outages() {
    // More than slow start can put into the queue before the first outage.
    let bytes = 4_000_000;
    for &algorithm in CONTROLLERS {
        let setup = controlled("20mbit,rtt=40ms,blackhole=500ms:200ms:1s", algorithm);
        let (scene, time) = transfer_up(1, setup, bytes, SECOND * 60);
        assert!(there(&scene).dropped.blackhole > 0);
        assert!(time < SECOND * 10, "{algorithm}: {time:?}");
    }
}

/// Every packet arrives twice.
#[test]
fn everything_duplicated_is_delivered_once() {
    for_each_seed(5, |seed| {
        let setup = ethernet("20mbit,rtt=40ms,queue=2bdp,duplicate=100%");
        let (scene, time) = transfer_up(seed, setup, 1_000_000, SECOND * 10);
        let (link, server) = (there(&scene), scene.server_stats());
        assert!(
            link.duplicated > 700 && server.packets_dropped > 500,
            "{link:?} {server:?}"
        );
        assert_eq!(server.data_received, 1_000_008);
        // Copies take half of the rate.
        assert!(time < ideal(1_000_000, 10, MS * 40) + SECOND, "{time:?}");
    });
}

#[test]
fn ten_percent_duplicated_is_delivered_once() {
    for_each_seed(5, |seed| {
        let (scene, _) = transfer_down(
            seed,
            ethernet("20mbit,rtt=40ms,duplicate=10%"),
            1_000_000,
            SECOND * 10,
        );
        assert!(back(&scene).duplicated > 20 && scene.stats().packets_dropped > 20);
        assert_eq!(scene.server_stats().packets_spuriously_lost, 0);
    });
}

/// A third of all packets is corrupted: all of those are dropped, and the others arrive.
#[test]
fn transfer_survives_thirty_percent_corrupted() {
    for_each_seed(10, |seed| {
        let setup =
            ethernet("20mbit,rtt=20ms,corrupt=30%").both(|it| it.handshake_timeout = SECOND * 60);
        let (scene, time) = transfer_up(seed, setup, 50_000, SECOND * 60);
        assert!(there(&scene).corrupted > 3);
        assert!(time < SECOND * 30, "{time:?}");
    });
}

#[test]
fn transfer_survives_two_percent_corrupted() {
    for_each_seed(10, |seed| {
        let (scene, time) = transfer_up(
            seed,
            ethernet("20mbit,rtt=20ms,corrupt=2%"),
            500_000,
            SECOND * 30,
        );
        assert!(there(&scene).corrupted > 3);
        assert!(time < SECOND * 5, "{time:?}");
    });
}

#[test]
fn truncated_packets_are_dropped() {
    for_each_seed(10, |seed| {
        let setup =
            ethernet("20mbit,rtt=20ms,truncate=10%").both(|it| it.handshake_timeout = SECOND * 60);
        let (scene, time) = transfer_up(seed, setup, 200_000, SECOND * 60);
        assert!(there(&scene).truncated > 5);
        assert!(scene.server_stats().packets_lost + scene.stats().packets_lost > 0);
        assert!(time < SECOND * 20, "{time:?}");
    });
}

#[test]
fn extended_packets_are_dropped() {
    for_each_seed(10, |seed| {
        let setup =
            ethernet("20mbit,rtt=20ms,extend=10%").both(|it| it.handshake_timeout = SECOND * 60);
        let (scene, time) = transfer_up(seed, setup, 200_000, SECOND * 60);
        assert!(there(&scene).extended > 5);
        assert!(time < SECOND * 20, "{time:?}");
    });
}

/// All kinds of damage at once.
#[test]
fn transfer_survives_five_faults_at_once() {
    for_each_seed(20, |seed| {
        let link = "20mbit,rtt=30ms,loss=2%,duplicate=3%,corrupt=1%,reorder=3%:10ms,jitter=10ms";
        let (scene, time) = transfer_up(seed, ethernet(link), 300_000, SECOND * 60);
        let link = there(&scene);
        assert!(
            link.dropped.loss > 0 && link.duplicated > 0 && link.reordered > 0,
            "{link:?}"
        );
        assert!(time < SECOND * 20, "{time:?}");
    });
}

/// The delay changes from 10 ms to 2 s and back: the connection stays open, and afterwards the rate
/// recovers.
#[test]
fn connection_survives_delay_jumps_from_10_ms_to_2_seconds() {
    for &algorithm in CONTROLLERS {
        let link = "20mbit,delay=5ms,queue=1s,delay@1s=1s,delay@8s=5ms";
        let mut scene = Scene::new(1, controlled(link, algorithm), endless());
        scene.run_for(SECOND * 10);
        let before = scene.server_stats().data_received;
        scene.run_for(SECOND * 3);
        let rate = (scene.server_stats().data_received - before) as f64 / 3.0;
        let stats = scene.stats();
        assert!(rate > 0.5 * 2_500_000.0, "{algorithm}: {rate}");
        assert!(stats.ptos > 0);
        assert_clean(&scene);
    }
}

/// Each packet is up to 200 ms late, in order.
#[test]
fn transfer_survives_jitter_of_200_ms() {
    for_each_seed(5, |seed| {
        let (scene, time) = transfer_up(
            seed,
            ethernet("20mbit,rtt=20ms,queue=1s,jitter=200ms"),
            1_000_000,
            SECOND * 60,
        );
        assert_eq!(scene.stats().data_retransmitted, 0, "{:?}", scene.stats());
        // As a link of 420 ms at worst. It depends on the seed how soon slow start mistakes jitter
        // for a queue, and one run in ten needs half as long again.
        assert!(
            time < ideal(1_000_000, 20, MS * 420).mul_f64(2.25),
            "{time:?}"
        );
    });
}

/// A hundredth of the rate for five seconds: at most three seconds of stall afterwards.
#[test]
fn transfer_recovers_from_a_hundredth_of_the_rate() {
    for &algorithm in CONTROLLERS {
        let link = "20mbit,rtt=40ms,queue=50ms,rate@2s=200kbit,rate@7s=20mbit";
        let mut scene = Scene::new(1, controlled(link, algorithm), endless());
        scene.run_for(SECOND * 10);
        let before = scene.server_stats().data_received;
        scene.run_for(SECOND * 2);
        let rate = (scene.server_stats().data_received - before) as f64 / 2.0;
        assert!(rate > 0.5 * 2_500_000.0, "{algorithm}: {rate}");
        let is_full = there(&scene).dropped.queue_full > 0;
        assert!(is_full || algorithm == Algorithm::Bbr);
        assert_clean(&scene);
    }
}

/// Exchanges during an outage: the one in progress takes as long as the outage and a probe timeout that
/// has doubled up to its length, and the others take their usual time.
#[test]
fn exchange_continues_after_an_outage() {
    for_each_seed(10, |seed| {
        let at = 1000 + seed * 13;
        let setup = ethernet(&format!("20mbit,rtt=40ms,blackhole={at}ms:1s"));
        let app = Exchange::new(SERVER, 100, 10_000, Some(40)).every(MS * 100);
        let mut scene = Scene::new(seed, setup, app);
        finish_exchanges(&mut scene, 40, SECOND * 20);
        let slow = scene
            .counters()
            .exchanges
            .iter()
            .filter(|(_, took)| *took > MS * 100);
        let slow: Vec<_> = slow.map(|(_, took)| *took).collect();
        assert!(
            (1..=2).contains(&slow.len()) && slow[0] < MS * 2300,
            "{slow:?}"
        );
    });
}

fn machine(fault: Fault, bytes: u64, limit: Duration) {
    for faults in [[fault, Fault::None], [Fault::None, fault]] {
        let setup = controlled("20mbit,rtt=40ms,queue=2bdp", Algorithm::Cubic);
        let mut scene = SlowScene::new(1, setup, up(bytes), faults);
        let time = scene.finish_up(bytes, limit * 2);
        assert!(time < limit, "{faults:?}: {time:?}");
    }
}

/// A process that is stopped for two seconds continues afterwards.
#[test]
fn connection_survives_a_machine_stopped_for_2_seconds() {
    let from = Time::ZERO + MS * 700;
    machine(
        Fault::Stopped {
            from,
            lasts: SECOND * 2,
        },
        3_000_000,
        SECOND * 7,
    );
}

#[test]
fn connection_survives_a_machine_stopped_for_20_seconds() {
    let from = Time::ZERO + MS * 700;
    machine(
        Fault::Stopped {
            from,
            lasts: SECOND * 20,
        },
        3_000_000,
        SECOND * 44,
    );
}

#[test]
fn transfer_completes_on_a_machine_that_runs_one_percent_of_the_time() {
    let fault = Fault::Starved {
        runs: MS,
        period: MS * 100,
    };
    machine(fault, 1_000_000, SECOND * 10);
}

#[test]
fn transfer_completes_with_timers_late_by_100_ms() {
    machine(Fault::LateTimers(MS * 100), 1_000_000, SECOND * 10);
}

#[test]
fn transfer_completes_with_timers_late_by_5_seconds() {
    machine(Fault::LateTimers(SECOND * 5), 100_000, SECOND * 60);
}

#[test]
fn transfer_completes_with_a_clock_in_steps_of_16_ms() {
    machine(Fault::CoarseClock(MS * 16), 2_000_000, SECOND * 4);
}

/// A peer that is stopped beyond the idle timeout: the other end reports the timeout. The stopped
/// one does so after it wakes: its round-trip samples are then as long as the stop, one for each
/// frame of credit in flight, so that it waits for three probe timeouts of up to a minute each (RFC
/// 9000 §10.1).
#[test]
fn machine_stopped_beyond_the_idle_timeout_is_reported_to_both() {
    let setup = ethernet("20mbit,rtt=40ms").both(|it| it.max_idle_timeout = Some(SECOND * 5));
    let fault = Fault::Stopped {
        from: Time::ZERO + SECOND,
        lasts: SECOND * 20,
    };
    let mut scene = SlowScene::new(1, setup, endless(), [Fault::None, fault]);
    scene
        .world
        .run_for(SECOND * 240)
        .expect("the world does not stall");
    let is_lost = |event: &Event| matches!(event, Event::Lost(_));
    let mut log = scene.client().log().iter();
    let client = log
        .find(|(_, _, event)| is_lost(event))
        .expect("the connection has ended")
        .0;
    assert!(client < Time::ZERO + SECOND * 8, "{client:?}");
    for host in [scene.client(), scene.server()] {
        let over = host
            .log()
            .iter()
            .find(|(_, _, event)| matches!(event, Event::Lost(_)));
        let at = over.expect("the connection has ended").0 - Time::ZERO;
        assert!(at < SECOND * 200, "{at:?}");
    }
}

/// The server starts late: an outage from the first packet on.
#[test]
fn handshake_survives_an_outage() {
    for_each_seed(20, |seed| {
        let setup = ethernet(&format!("20mbit,rtt=40ms,blackhole={}ms:2s", seed * 4));
        let mut scene = Scene::new(seed, setup, up(10_000));
        let time = finish_up(&mut scene, 10_000, SECOND * 20);
        assert!(there(&scene).dropped.blackhole + back(&scene).dropped.blackhole > 0);
        // The first probe timeout is a second, and doubles: 1, 3, 7 s.
        assert!(time < SECOND * 8, "{time:?}");
    });
}
