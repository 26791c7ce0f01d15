//! Reordering: late packets are not lost.

use std::time::Duration;

use crate::common;
use crate::common::for_each_seed;
use crate::common::lab::{MS, SECOND, assert_clean, controlled, endless, there, transfer_up};
use crate::common::{Scene, Setup};
use courser_recovery::Algorithm;

/// Returns the spurious losses per packet sent after the first second.
fn spurious_rate(scene: &mut Scene, time: Duration) -> f64 {
    scene.run_for(SECOND);
    let early = scene.stats();
    scene.run_for(time);
    let late = scene.stats();
    let sent = late.packets_sent - early.packets_sent;
    assert!(sent > 1000, "{sent}");
    assert!(there(scene).reordered > 0);
    assert_clean(scene);
    let spurious = late.packets_spuriously_lost - early.packets_spuriously_lost;
    spurious as f64 / sent as f64
}

/// `share` of the packets is late by up to `by`, at a round-trip time of 40 ms. After the first
/// second the thresholds have adapted.
fn assert_few_spurious_losses(share: &str, by: Duration) {
    for_each_seed(3, |seed| {
        let link = format!(
            "10mbit,rtt=40ms,queue=4bdp,reorder={share}:{}ms;10mbit,rtt=40ms",
            by.as_millis()
        );
        let mut scene = Scene::new(seed, controlled(&link, Algorithm::Cubic), endless());
        let rate = spurious_rate(&mut scene, SECOND * 9);
        assert!(rate < 0.001, "{rate}");
    });
}

#[test]
fn few_losses_are_spurious_if_one_percent_is_late_by_half_a_round_trip() {
    assert_few_spurious_losses("1%", MS * 20);
}

#[test]
fn few_losses_are_spurious_if_five_percent_is_late_by_half_a_round_trip() {
    assert_few_spurious_losses("5%", MS * 20);
}

#[test]
fn few_losses_are_spurious_if_ten_percent_is_late_by_a_quarter_of_a_round_trip() {
    assert_few_spurious_losses("10%", MS * 10);
}

#[test]
fn few_losses_are_spurious_if_thirty_percent_is_late_by_an_eighth_of_a_round_trip() {
    assert_few_spurious_losses("30%", MS * 5);
}

#[test]
fn few_losses_are_spurious_if_thirty_percent_is_late_by_half_a_round_trip() {
    assert_few_spurious_losses("30%", MS * 20);
}

fn time_with(link: &str, algorithm: Algorithm) -> (Scene, Duration) {
    transfer_up(2, controlled(link, algorithm), 2_000_000, SECOND * 60)
}

/// Windows that were reduced needlessly are restored: reordering costs at most half again as much
/// time.
#[test]
fn late_packets_cost_no_window() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr] {
        let (_, plain) = time_with("20mbit,rtt=40ms,queue=4bdp", algorithm);
        let link = "20mbit,rtt=40ms,queue=4bdp,reorder=2%:20ms;20mbit,rtt=40ms";
        let (scene, time) = time_with(link, algorithm);
        assert!(there(&scene).reordered > 10);
        assert!(
            time < plain.mul_f64(1.5),
            "{algorithm}: {time:?}, without {plain:?}"
        );
    }
}

/// The first spurious loss of a connection is counted and undone.
#[test]
fn spurious_loss_is_counted_and_the_window_restored() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Prague] {
        // No queue overflows, so every loss is spurious.
        let link = "50mbit,rtt=40ms,queue=100bdp,reorder=0.2%:30ms;50mbit,rtt=40ms";
        let (scene, _) = time_with(link, algorithm);
        let stats = scene.stats();
        assert_eq!(there(&scene).dropped.total(), 0);
        assert!(stats.packets_spuriously_lost > 0, "{algorithm}: {stats:?}");
        // Lost packets that were not acknowledged before their records were removed may stay lost.
        assert!(
            stats.packets_spuriously_lost * 10 >= stats.packets_lost * 9,
            "{stats:?}"
        );
        assert!(
            stats.path.congestion_window > 40_000,
            "{algorithm}: {stats:?}"
        );
    }
}

/// Every second packet is late, so neighbours change places all the time. Only packets that leave
/// at once at the start may be overtaken by three others.
#[test]
fn reordered_neighbours_are_rarely_declared_lost() {
    // No queue overflows, so every loss is spurious.
    let link = "10mbit,rtt=40ms,queue=40bdp,reorder=50%:1ms;10mbit,rtt=40ms";
    let (scene, _) = time_with(link, Algorithm::Cubic);
    // 1.2 ms each at 10 Mbit/s, up to 1 ms late: more than one packet overtakes only short ones.
    assert!(there(&scene).reordered > 500);
    assert!(scene.stats().packets_lost <= 1);
}

/// Packets that are late by more than a round trip count as lost first, which is right.
#[test]
fn packets_late_by_two_round_trips_are_sent_again_and_delivered_once() {
    for_each_seed(5, |seed| {
        let link = "20mbit,rtt=20ms,queue=4bdp,reorder=2%:60ms;20mbit,rtt=20ms";
        let (scene, time) = transfer_up(
            seed,
            controlled(link, Algorithm::Cubic),
            1_000_000,
            SECOND * 30,
        );
        assert!(there(&scene).reordered > 5);
        assert!(scene.stats().packets_spuriously_lost > 0);
        assert!(time < SECOND * 4, "{time:?}");
    });
}

/// Acknowledgements overtake each other, and nothing is lost.
#[test]
fn late_acknowledgements_alone_lose_nothing() {
    let link = "20mbit,rtt=40ms,queue=20bdp;20mbit,rtt=40ms,reorder=30%:20ms";
    let (scene, _) = time_with(link, Algorithm::NewReno);
    assert!(common::lab::back(&scene).reordered > 20);
    assert_eq!(scene.stats().packets_lost, 0);
}

/// A handshake with reordered packets.
#[test]
fn handshake_survives_reordering_of_half_its_packets() {
    for_each_seed(50, |seed| {
        let setup = Setup::on("rtt=40ms,reorder=50%:30ms").both(|it| it.mtu_max = 1472);
        let (_, time) = transfer_up(seed, setup, 10_000, SECOND * 10);
        // A round trip of handshake and half a one for the data, each late by 30 ms at most both
        // ways, and a probe timeout if the tail was late.
        assert!(time < MS * 600, "{time:?}");
    });
}
