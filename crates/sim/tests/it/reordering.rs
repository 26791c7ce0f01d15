//! Packets that pass each other: what is late is not lost.

use std::time::Duration;

use crate::common;
use crate::common::for_each_seed;
use crate::common::lab::{MS, SECOND, assert_clean, controlled, endless, there, transfer_up};
use crate::common::{Scene, Setup};
use courser_recovery::Algorithm;

/// Packets that counted as lost and were not, per packet sent after the first second.
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

/// `share` of the packets is late by up to `by`, at a round-trip time of 40 ms; after the first
/// second the thresholds know it.
fn hardly_ever_mistaken(share: &str, by: Duration) {
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
fn one_percent_late_by_up_to_half_a_round_trip() {
    hardly_ever_mistaken("1%", MS * 20);
}

#[test]
fn five_percent_late_by_up_to_half_a_round_trip() {
    hardly_ever_mistaken("5%", MS * 20);
}

#[test]
fn ten_percent_late_by_up_to_a_quarter_of_a_round_trip() {
    hardly_ever_mistaken("10%", MS * 10);
}

#[test]
fn thirty_percent_late_by_up_to_an_eighth_of_a_round_trip() {
    hardly_ever_mistaken("30%", MS * 5);
}

#[test]
fn thirty_percent_late_by_up_to_half_a_round_trip() {
    hardly_ever_mistaken("30%", MS * 20);
}

fn time_with(link: &str, algorithm: Algorithm) -> (Scene, Duration) {
    transfer_up(2, controlled(link, algorithm), 2_000_000, SECOND * 60)
}

/// Windows that were cut for nothing are restored: reordering costs at most half again as much
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

/// The first mistake of a connection: counted, undone.
#[test]
fn spurious_loss_is_counted_and_the_window_comes_back() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Prague] {
        // No queue to overflow, so that every loss is a mistake.
        let link = "50mbit,rtt=40ms,queue=100bdp,reorder=0.2%:30ms;50mbit,rtt=40ms";
        let (scene, _) = time_with(link, algorithm);
        let stats = scene.stats();
        assert_eq!(there(&scene).dropped.total(), 0);
        assert!(stats.packets_spuriously_lost > 0, "{algorithm}: {stats:?}");
        // What was lost and not acknowledged before its memory faded may stay lost.
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

/// Every second packet is late: neighbours change places all the time. Only those that leave at once
/// in the beginning may be passed by three others.
#[test]
fn neighbours_that_change_places_are_hardly_ever_lost() {
    // No queue to overflow, so that every loss is a mistake.
    let link = "10mbit,rtt=40ms,queue=40bdp,reorder=50%:1ms;10mbit,rtt=40ms";
    let (scene, _) = time_with(link, Algorithm::Cubic);
    // 1.2 ms each at 10 Mbit/s, up to 1 ms late: only short ones are passed by more than one.
    assert!(there(&scene).reordered > 500);
    assert!(scene.stats().packets_lost <= 1);
}

/// Late by more than a round trip: every such packet counts as lost first, and that is right.
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

/// Acknowledgements that pass each other: nothing is lost at all.
#[test]
fn late_acknowledgements_alone_lose_nothing() {
    let link = "20mbit,rtt=40ms,queue=20bdp;20mbit,rtt=40ms,reorder=30%:20ms";
    let (scene, _) = time_with(link, Algorithm::NewReno);
    assert!(common::lab::back(&scene).reordered > 20);
    assert_eq!(scene.stats().packets_lost, 0);
}

/// A handshake of packets that pass each other.
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
