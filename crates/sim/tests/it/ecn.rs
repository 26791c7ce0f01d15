//! ECN marks: carried, cleared, changed, or on all packets.

use crate::common;
use crate::common::lab::{
    MS, SECOND, assert_clean, back, controlled, endless, ethernet, finish_up, ideal, there,
    transfer_up, up, with_connection,
};
use crate::common::shared::SharedBottleneck;
use crate::common::{Scene, for_each_seed};
use courser_recovery::Algorithm;

/// CoDel marks instead of dropping: the window is reduced, and nothing is retransmitted.
#[test]
fn codel_marks_and_nothing_is_lost() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Prague] {
        let link = "20mbit,rtt=40ms,queue=1s,aqm=codel-ecn";
        let (scene, time) = transfer_up(1, controlled(link, algorithm), 5_000_000, SECOND * 20);
        let (link, stats) = (there(&scene), scene.stats());
        assert!(link.marked > 0, "{link:?}");
        assert_eq!(
            (link.dropped.total(), stats.packets_lost),
            (0, 0),
            "{algorithm}: {link:?}"
        );
        assert!(stats.congestion_events > 0);
        assert!(scene.server_stats().ce_received > 0);
        // At least 70 % of 20 Mbit/s.
        assert!(time < MS * 2900, "{algorithm}: {time:?}");
    }
}

/// The same queue drops packets of hosts without ECN.
#[test]
fn codel_drops_packets_without_ecn() {
    let setup = ethernet("20mbit,rtt=40ms,queue=1s,aqm=codel-ecn").both(|it| it.ecn = false);
    let (scene, _) = transfer_up(1, setup, 5_000_000, SECOND * 20);
    assert!(there(&scene).dropped.aqm > 0);
    assert_eq!(
        (there(&scene).marked, scene.server_stats().ce_received),
        (0, 0)
    );
}

/// A path clears all marks: validation fails (RFC 9000 §13.4.2.1), and after the packets in flight
/// no packet is marked any more.
#[test]
fn bleached_path_disables_ecn() {
    let link = "20mbit,rtt=40ms,ecn=bleach";
    let mut scene = Scene::new(1, ethernet(link), endless());
    scene.run_for(SECOND);
    let early = there(&scene);
    assert!(early.remarked > 0, "{early:?}");
    scene.run_for(SECOND * 2);
    let late = there(&scene);
    assert_eq!(late.remarked, early.remarked, "packets are still marked");
    assert!(late.packets_in > early.packets_in + 1000);
    assert_clean(&scene);
}

/// Marks are cleared from the second second on: later failures are detected too.
#[test]
fn path_that_starts_to_bleach_disables_ecn() {
    let mut scene = Scene::new(1, ethernet("20mbit,rtt=40ms,ecn=bleach@2s"), endless());
    scene.run_for(SECOND * 3);
    let early = there(&scene);
    assert!(early.remarked > 0, "{early:?}");
    scene.run_for(SECOND);
    assert_eq!(
        there(&scene).remarked,
        early.remarked,
        "packets are still marked"
    );
    assert_clean(&scene);
}

/// ECT(0) that arrives as ECT(1) fails validation too.
#[test]
fn remarked_path_disables_ecn() {
    let mut scene = Scene::new(1, ethernet("20mbit,rtt=40ms,ecn=ect1"), endless());
    scene.run_for(SECOND);
    let early = there(&scene);
    assert!(early.remarked > 0, "{early:?}");
    scene.run_for(SECOND);
    assert_eq!(
        there(&scene).remarked,
        early.remarked,
        "packets are still marked"
    );
    assert_clean(&scene);
}

#[test]
fn swapped_marks_disable_ecn_for_prague_too() {
    let setup = controlled("20mbit,rtt=40ms,ecn=swap", Algorithm::Prague);
    let mut scene = Scene::new(1, setup, endless());
    scene.run_for(SECOND);
    let early = there(&scene);
    assert!(early.remarked > 0, "{early:?}");
    scene.run_for(SECOND);
    assert_eq!(
        there(&scene).remarked,
        early.remarked,
        "packets are still marked"
    );
    assert_clean(&scene);
}

/// Every packet is marked CE: either the window stays small, or ECN is turned off. In any case
/// everything arrives.
#[test]
fn all_packets_marked_ce_end_in_completion() {
    for &algorithm in common::lab::CONTROLLERS {
        let setup = controlled("20mbit,rtt=40ms,ecn=ce", algorithm);
        let (scene, time) = transfer_up(1, setup, 500_000, SECOND * 60);
        assert!(there(&scene).remarked > 0);
        assert_eq!(scene.stats().packets_lost, 0);
        // Two datagrams of 1200 bytes per 40 ms are the smallest window.
        assert!(time < SECOND * 9, "{algorithm}: {time:?}");
    }
}

/// A share of the packets is marked: window-based controllers back off as for equal loss, but
/// retransmit nothing.
#[test]
fn random_marks_slow_down_and_lose_nothing() {
    for_each_seed(5, |seed| {
        let setup = controlled("100mbit,rtt=40ms,ecn=ce:2%", Algorithm::Cubic);
        let (scene, time) = transfer_up(seed, setup, 2_000_000, SECOND * 60);
        let stats = scene.stats();
        assert!(stats.congestion_events > 3, "{stats:?}");
        assert_eq!((stats.packets_lost, stats.data_retransmitted), (0, 0));
        let limit = ideal(2_000_000, 100, MS * 40).mul_f64(1.1);
        assert!(time > limit, "{time:?}, at least {limit:?}");
    });
}

/// CE marks cause at most one reduction per round trip.
#[test]
fn marks_of_one_round_trip_reduce_the_window_once() {
    let setup = controlled("100mbit,rtt=100ms,ecn=ce:20%", Algorithm::NewReno);
    let mut scene = Scene::new(1, setup, endless());
    scene.run_for(SECOND * 5);
    let events = scene.stats().congestion_events;
    assert!((2..=50).contains(&events), "{events}");
}

/// Prague in an L4S queue: half of the packets wait less than 2 ms, and the link is used.
#[test]
fn prague_keeps_the_queue_of_l4s_below_2_ms() {
    let setup = controlled("40mbit,rtt=20ms,queue=200ms,aqm=l4s", Algorithm::Prague);
    let mut scene = Scene::new(1, setup, endless());
    scene.run_for(SECOND);
    let link = scene.link.forward;
    scene
        .world
        .change_link(link, |link| link.take_queue_delays());
    let before = scene.stats();
    scene.run_for(SECOND * 4);
    let delays = scene.world.link(link).queue_delays();
    let after = scene.stats();
    let rate = (after.data_acked - before.data_acked) as f64 / 4.0 / 5_000_000.0;
    assert!(delays.median() < MS * 2, "{:?}", delays.median());
    assert!(rate > 0.8, "{rate}");
    assert!(there(&scene).marked > 100);
    assert_eq!(after.packets_lost, before.packets_lost);
}

/// The step is for ECT(1) only: with ECT(0) the same queue stands at CoDel's target and more.
#[test]
fn classic_marks_keep_the_same_queue_longer() {
    let median = |algorithm| {
        let setup = controlled("40mbit,rtt=20ms,queue=200ms,aqm=l4s", algorithm);
        let mut scene = Scene::new(1, setup, endless());
        scene.run_for(SECOND);
        let link = scene.link.forward;
        scene
            .world
            .change_link(link, |link| link.take_queue_delays());
        scene.run_for(SECOND * 3);
        assert!(there(&scene).marked > 0);
        assert_clean(&scene);
        scene.world.link(link).queue_delays().median()
    };
    let (prague, cubic) = (median(Algorithm::Prague), median(Algorithm::Cubic));
    assert!(prague < cubic, "{prague:?} {cubic:?}");
}

/// ECT(0) becomes ECT(1) in the middle of a connection, and validation accepts it.
#[test]
fn changing_to_prague_changes_the_marks_and_keeps_ecn() {
    let bytes = 6_000_000;
    let setup = controlled("20mbit,rtt=40ms,queue=1s,aqm=l4s", Algorithm::Cubic);
    let mut scene = Scene::new(1, setup, up(bytes));
    scene.run_for(SECOND);
    with_connection(&mut scene, |now, it| {
        it.set_congestion_controller(now, Algorithm::Prague)
    });
    scene.run_for(MS * 300);
    let early = there(&scene).marked;
    finish_up(&mut scene, bytes, SECOND * 20);
    let late = there(&scene);
    // Marks of the step come many per second, those of CoDel a few.
    assert!(late.marked > early + 50, "{early}, {late:?}");
    assert_eq!(scene.stats().packets_lost, 0);
}

/// The same in the other direction.
#[test]
fn changing_from_prague_changes_the_marks_and_keeps_ecn() {
    let bytes = 6_000_000;
    let setup = controlled("20mbit,rtt=40ms,queue=1s,aqm=l4s", Algorithm::Prague);
    let mut scene = Scene::new(1, setup, up(bytes));
    scene.run_for(SECOND);
    with_connection(&mut scene, |now, it| {
        it.set_congestion_controller(now, Algorithm::Cubic)
    });
    scene.run_for(MS * 300);
    let early = there(&scene);
    finish_up(&mut scene, bytes, SECOND * 20);
    let late = there(&scene);
    assert!(late.marked > early.marked, "{early:?}, {late:?}");
    assert_eq!(late.dropped.total(), 0, "{late:?}");
}

/// Marks cleared on the way back do not affect the client's data.
#[test]
fn marks_cleared_in_one_direction_do_not_affect_the_other() {
    let link = "20mbit,rtt=40ms,queue=1s,aqm=codel-ecn;20mbit,rtt=40ms,ecn=bleach";
    let (scene, _) = transfer_up(1, ethernet(link), 4_000_000, SECOND * 20);
    assert!(there(&scene).marked > 0 && there(&scene).dropped.total() == 0);
    assert!(back(&scene).remarked > 0);
}

/// A classic ECN queue marks both flows alike, so Prague has to reduce its window as CUBIC does.
#[test]
fn prague_leaves_cubic_its_share_of_a_classic_ecn_queue() {
    let link = "20mbit,rtt=40ms,queue=1s,aqm=codel-ecn";
    let mut shared = SharedBottleneck::new(1, link, &[Algorithm::Prague, Algorithm::Cubic]);
    shared
        .world
        .run_for(SECOND * 5)
        .expect("the world does not stall");
    let before = shared.acked();
    shared
        .world
        .run_for(SECOND * 15)
        .expect("the world does not stall");
    let after = shared.acked();
    shared.assert_clean();
    let shares: Vec<u64> = after.iter().zip(&before).map(|(a, b)| a - b).collect();
    // Of 37.5 MB.
    assert!(shares.iter().all(|it| *it > 10_000_000), "{shares:?}");
}
