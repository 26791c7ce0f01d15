//! Lost packets of transfers: detected and retransmitted in time. RFC 9002.

use std::time::Duration;

use crate::common::requests::Requests;
use crate::common::{SERVER, Scene, Setup, for_each_seed};
use courser_sim::apps::{Amount, Bulk, Exchange, Paced, TransferDirection};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn bulk(direction: TransferDirection, bytes: u64) -> Bulk {
    Bulk::new(SERVER, direction, Amount::Bytes(bytes))
}

/// Moves `bytes` up. Returns the duration and the scene.
fn upload(seed: u64, link: &str, bytes: u64, limit: Duration) -> (Duration, Scene) {
    let mut scene = Scene::new(seed, lossy_setup(link), bulk(TransferDirection::Up, bytes));
    let time = scene.finish(limit, 1);
    assert_eq!(scene.server_counters().received, bytes);
    scene.assert_clean();
    (time, scene)
}

fn download(seed: u64, link: &str, bytes: u64, limit: Duration) -> (Duration, Scene) {
    let mut scene = Scene::new(
        seed,
        lossy_setup(link),
        bulk(TransferDirection::Down, bytes),
    );
    let time = scene.finish(limit, 1);
    assert_eq!(scene.counters().received, bytes);
    scene.assert_clean();
    (time, scene)
}

/// The handshake may be lost here too, which has its own scenarios. All packets have 1200 bytes:
/// these links have no MTU, and larger packets would be few.
fn lossy_setup(link: &str) -> Setup {
    Setup::on(link).both(|config| {
        config.mtu_discovery = false;
        config.handshake_timeout = SECOND * 60;
        config.max_idle_timeout = Some(SECOND * 120);
    })
}

/// Returns the time of `bytes` at a tenth of the rate that Mathis et al. give for loss `p`:
/// segments of 1.2 kB, 1.22 / sqrt(p) of them per round trip. A tenth, since few losses dominate so
/// short a transfer. The handshake may take some seconds.
fn mathis_bound(bytes: u64, rtt: Duration, p: f64) -> Duration {
    let per_round_trip = 1200.0 * 1.22 / p.sqrt();
    let bytes = f64::from(u32::try_from(bytes).expect("the number fits into u32"));
    rtt.mul_f64(10.0 * bytes / per_round_trip) + SECOND * 8
}

fn survives_random_loss(percent: f64, bytes: u64, seeds: u64) {
    let rtt = MS * 30;
    let most = mathis_bound(bytes, rtt, percent / 100.0);
    let mut lost = 0;
    for_each_seed(seeds, |seed| {
        let link = format!("20mbit,rtt=30ms,loss={percent}%,queue=100p");
        let (_, scene) = upload(seed, &link, bytes, most);
        lost += scene.forward().dropped.loss;
    });
    let sent = bytes / 1200 * seeds;
    let expected =
        f64::from(u32::try_from(sent).expect("the number fits into u32")) * percent / 100.0;
    let counted = f64::from(u32::try_from(lost).expect("the number fits into u32"));
    assert!(
        counted > expected / 2.0,
        "{counted} lost, {expected} expected"
    );
}

#[test]
fn one_in_a_thousand_lost_is_survived() {
    survives_random_loss(0.1, 2_000_000, 10);
}

#[test]
fn one_percent_lost_is_survived() {
    survives_random_loss(1.0, 1_000_000, 10);
}

#[test]
fn five_percent_lost_is_survived() {
    survives_random_loss(5.0, 300_000, 20);
}

#[test]
fn twenty_percent_lost_is_survived() {
    survives_random_loss(20.0, 100_000, 30);
}

/// Beyond the model: each round of a probe and its response fails in 84 of 100 cases at 60 %, and
/// each failure doubles the wait.
#[test]
fn forty_and_sixty_percent_lost_are_survived_in_the_end() {
    for (percent, bytes) in [(40, 50_000), (60, 5_000)] {
        for_each_seed(15, |seed| {
            let link = format!("rtt=30ms,loss={percent}%");
            let setup = lossy_setup(&link).both(|config| {
                config.handshake_timeout = SECOND * 3000;
                config.max_idle_timeout = Some(SECOND * 3000);
            });
            let mut scene = Scene::new(seed, setup, bulk(TransferDirection::Up, bytes));
            let done = |scene: &Scene| scene.counters().streams == 1;
            // Whole seconds, because virtual time is long here.
            for _ in 0..2500 {
                if done(&scene) {
                    break;
                }
                scene.run_for(SECOND);
            }
            assert!(done(&scene), "seed {seed}: {:?}", scene.stats());
            assert_eq!(scene.server_counters().received, bytes);
            scene.assert_clean();
            assert!(scene.dropped(|dropped| dropped.loss) > 5);
        });
    }
}

/// Bursts of five packets on average, one in a hundred packets begins one.
#[test]
fn bursts_of_five_are_survived() {
    let mut dropped = 0;
    for_each_seed(20, |seed| {
        let link = "20mbit,rtt=30ms,gilbert=1%:20%:100%:0%,queue=100p";
        let (_, scene) = upload(seed, link, 500_000, mathis_bound(500_000, MS * 30, 0.05));
        dropped += scene.forward().dropped.gilbert;
    });
    assert!(dropped > 200, "{dropped}");
}

/// Forty packets in a row are lost at any place of the transfer: a large part of a window, and at
/// the end all of it, where each probe timeout takes two of them.
#[test]
fn burst_of_forty_packets_is_survived_anywhere() {
    for first in (120..500).step_by(20) {
        let last = first + 39;
        let link = format!("20mbit,rtt=30ms,drop={first}-{last},queue=100p;20mbit,rtt=30ms");
        let (time, scene) = upload(first, &link, 600_000, SECOND * 20);
        assert!(scene.forward().dropped.listed > 20, "from {first}");
        // The rest follows after one or two timeouts, with a window that has to grow again.
        assert!(time < SECOND * 5, "{time:?} from {first}");
    }
}

/// Ten responses fill a window. The last three packets are lost, and so are all packets of the
/// client. Two packets for each timeout of 145 ms, 290 ms, ... reach the last of ten at the fifth,
/// after four and a half seconds: probes repeat more than the packets that the client has.
#[test]
fn probes_retransmit_lost_data_without_any_acknowledgement() {
    let app = Requests::new(SERVER, 10, 10, 1000).beginning_at(SECOND);
    let mut scene = Scene::new(1, lossy_setup("rtt=40ms"), app);
    scene.run_for(SECOND - MS);
    let first = scene.back().packets_in + 1;
    scene.set_back(&format!("rtt=40ms,drop={}-{}", first + 6, first + 9));
    // The requests are in flight, and nothing follows them.
    scene.run_for(MS * 2);
    scene.set_forward("rtt=40ms,blackhole=0s:60s");
    scene.run_for(MS * 50);
    let there = scene.counters().streams;
    assert!(there < 8, "{there}");
    scene.finish(SECOND * 5, 10);
    assert!(scene.dropped(|dropped| dropped.blackhole) > 3);
    assert_eq!(scene.counters().received, 10_000);
}

#[test]
fn only_lost_packets_are_retransmitted() {
    let (_, scene) = upload(
        1,
        "20mbit,rtt=30ms,every=100,queue=400p;20mbit,rtt=30ms",
        2_000_000,
        SECOND * 20,
    );
    let (lost, stats) = (scene.forward().dropped.every, scene.stats());
    assert!(lost >= 16, "{lost}");
    // The last one may be an ACK of the client, and a lost probe of the MTU does not count as a
    // loss.
    assert!(
        stats.packets_lost >= lost - 3,
        "{} {lost}",
        stats.packets_lost
    );
    assert!(stats.packets_lost <= lost + scene.forward().dropped.queue_full);
    assert_eq!(stats.packets_spuriously_lost, 0);
}

#[test]
fn every_third_packet_lost_is_survived_in_both_directions() {
    let link = "20mbit,rtt=30ms,every=3,queue=100p";
    let most = mathis_bound(100_000, MS * 30, 0.33);
    upload(1, link, 100_000, most);
    let (_, scene) = download(1, link, 100_000, most);
    assert!(scene.back().dropped.every > 30);
}

/// One packet in the middle of many is lost. The packets behind it reveal the loss without a
/// timeout, within one round trip and an eighth (RFC 9002 §6.1).
#[test]
fn one_lost_packet_in_the_middle_costs_no_timeout() {
    let setup = Setup::on("10mbit,rtt=40ms,queue=200p").both(|config| config.mtu_discovery = false);
    let mut scene = Scene::new(1, setup, bulk(TransferDirection::Up, 500_000));
    scene.confirm(SECOND);
    scene.run_for(MS * 100);
    scene.lose_forward(1, "10mbit,rtt=40ms,queue=200p");
    let time = scene.finish(SECOND * 2, 1);
    scene.assert_clean();
    let stats = scene.stats();
    assert_eq!((stats.packets_lost, stats.ptos), (1, 0), "{stats:?}");
    assert!(
        stats.data_retransmitted <= 1200,
        "{}",
        stats.data_retransmitted
    );
    // Without the loss the rest takes at most 400 ms of sending and a round trip.
    assert!(time < MS * 700, "{time:?}");
}

/// The request is lost: only the probe timeout of the client helps. A second one, twice as long, is
/// not needed.
#[test]
fn lost_tail_costs_one_probe_timeout() {
    let app = Exchange::ping(SERVER, SECOND, Some(4));
    let setup = Setup::on("rtt=40ms").both(|config| config.mtu_discovery = false);
    let mut scene = Scene::new(1, setup, app);
    scene.run_for(MS * 1500);
    assert_eq!(scene.counters().exchanges.len(), 2);
    scene.lose_forward(1, "rtt=40ms");
    scene.finish(SECOND * 4, 4);
    scene.assert_clean();
    let times: Vec<Duration> = scene
        .counters()
        .exchanges
        .iter()
        .map(|(_, time)| *time)
        .collect();
    // 40 ms, four times its variation, which is below 20 ms by now, and 25 ms for ACKs.
    assert!(
        times[2] > MS * 80 && times[2] < MS * 40 + MS * 145,
        "{times:?}"
    );
    assert!(times[1] < MS * 41 && times[3] < MS * 41, "{times:?}");
    assert_eq!(scene.stats().ptos, 1);
}

#[test]
fn lost_answer_costs_one_probe_timeout() {
    let app = Exchange::ping(SERVER, SECOND, Some(4));
    let setup = Setup::on("rtt=40ms").both(|config| config.mtu_discovery = false);
    let mut scene = Scene::new(1, setup, app);
    scene.run_for(MS * 1500);
    scene.lose_back(1, "rtt=40ms");
    scene.finish(SECOND * 4, 4);
    scene.assert_clean();
    let (_, time) = scene.counters().exchanges[2];
    assert!(time > MS * 80 && time < MS * 40 + MS * 145, "{time:?}");
    assert_eq!(scene.back().dropped.listed, 1);
}

/// Each number of packets is lost at the end of a window: two, three, ... of the last.
#[test]
fn lost_ends_of_any_length_cost_at_most_two_probe_timeouts() {
    for lost in 1..=8 {
        let setup = Setup::on("rtt=40ms").both(|config| config.mtu_discovery = false);
        // Eight packets and the end of the stream.
        let app = Exchange::new(SERVER, 9_000, 1, Some(3)).every(SECOND);
        let mut scene = Scene::new(lost, setup, app);
        scene.run_for(MS * 500);
        assert_eq!(scene.counters().exchanges.len(), 1);
        let first = scene.forward().packets_in + 9 - lost;
        let last = first + lost - 1;
        scene.set_forward(&format!("rtt=40ms,drop={first}-{last}"));
        scene.finish(SECOND * 4, 3);
        scene.assert_clean();
        let (_, time) = scene.counters().exchanges[1];
        let timeout = MS * 145;
        assert!(time <= MS * 80 + timeout * 3, "{lost} lost: {time:?}");
        assert_eq!(scene.forward().dropped.listed, lost);
    }
}

/// ACKs are cumulative: half of them may be lost without a retransmission by loss detection.
#[test]
fn half_of_the_acknowledgements_lost_costs_little() {
    for_each_seed(10, |seed| {
        let link = "20mbit,rtt=30ms,queue=400p;20mbit,rtt=30ms,loss=50%";
        let (_, scene) = upload(seed, link, 1_000_000, SECOND * 12);
        assert!(scene.back().dropped.loss > 20);
        let stats = scene.stats();
        assert!(
            stats.data_retransmitted < 200_000,
            "{}",
            stats.data_retransmitted
        );
    });
}

/// Only ACKs are lost for half a second.
#[test]
fn transfer_survives_half_a_second_of_lost_acknowledgements() {
    let link = "20mbit,rtt=30ms,queue=400p;20mbit,rtt=30ms,blackhole=200ms:500ms";
    let (time, scene) = upload(1, link, 2_000_000, SECOND * 10);
    assert!(scene.back().dropped.blackhole > 2);
    // 0.8 s of sending, the hole, the doubling of the timeout behind it.
    assert!(time < MS * 800 + MS * 1000 + SECOND, "{time:?}");
}

#[test]
fn first_thirty_packets_after_the_handshake_lost_are_sent_again() {
    let mut scene = Scene::new(
        1,
        lossy_setup("20mbit,rtt=30ms,queue=100p"),
        bulk(TransferDirection::Up, 300_000),
    );
    scene.run_until(SECOND, "connection", |scene| {
        scene.stats().handshake_time.is_some()
    });
    scene.lose_forward(30, "20mbit,rtt=30ms,queue=100p");
    scene.finish(SECOND * 20, 1);
    assert_eq!(scene.server_counters().received, 300_000);
    scene.assert_clean();
    assert_eq!(scene.forward().dropped.listed, 30);
}

#[test]
fn losses_towards_the_client_do_not_slow_an_upload() {
    let (lossless, _) = upload(1, "20mbit,rtt=30ms,queue=400p", 2_000_000, SECOND * 3);
    for_each_seed(10, |seed| {
        let link = "20mbit,rtt=30ms,queue=400p;20mbit,rtt=30ms,loss=5%";
        let (time, scene) = upload(seed, link, 2_000_000, SECOND * 5);
        assert!(scene.back().dropped.loss > 3);
        // The handshake may lose a packet, which takes a second.
        assert!(time < lossless * 2 + SECOND * 2, "{time:?}, {lossless:?}");
    });
}

#[test]
fn losses_towards_the_server_do_not_disturb_a_download() {
    for_each_seed(10, |seed| {
        let link = "20mbit,rtt=30ms,loss=5%;20mbit,rtt=30ms,queue=400p";
        let (time, scene) = download(seed, link, 2_000_000, SECOND * 8);
        assert!(scene.forward().dropped.loss > 3);
        assert_eq!(scene.back().dropped.loss, 0);
        assert!(time < SECOND * 5, "{time:?}");
    });
}

/// A steady flow: lost data arrives at most a probe timeout later, because later packets have
/// arrived, and the writer never falls behind.
#[test]
fn paced_writer_keeps_up_with_ten_percent_loss() {
    for_each_seed(20, |seed| {
        let app = Paced::new(SERVER, 500, MS * 20);
        let mut scene = Scene::new(seed, lossy_setup("rtt=30ms,loss=10%"), app);
        scene.confirm(SECOND * 20);
        scene.run_for(SECOND * 10);
        let (sent, received) = (scene.counters().written, scene.server_counters().received);
        assert!(sent >= 245_000, "{sent}");
        // Data written in the last second may be in flight.
        assert!(received + 25_000 >= sent, "{received} of {sent}");
        scene.assert_clean();
        assert!(scene.forward().dropped.loss > 20);
    });
}

/// Damage, copies, loss and lateness together.
#[test]
fn all_faults_together_change_no_byte() {
    for_each_seed(30, |seed| {
        let link = "20mbit,rtt=30ms,loss=3%,corrupt=3%,duplicate=10%,reorder=10%:20ms,truncate=1%,extend=1%,queue=100p";
        let (_, scene) = upload(seed, link, 200_000, SECOND * 60);
        let stats = scene.forward();
        assert!(stats.dropped.loss + stats.corrupted + stats.duplicated + stats.reordered > 20);
    });
}

/// Two megabytes through a queue of two packets: the sender's own bursts are what is lost.
#[test]
fn queue_of_two_packets_is_survived() {
    let (time, scene) = upload(1, "10mbit,rtt=20ms,queue=2p", 2_000_000, SECOND * 30);
    assert!(scene.forward().dropped.queue_full > 3);
    // 1.6 s at the full rate.
    assert!(time < SECOND * 16, "{time:?}");
}
