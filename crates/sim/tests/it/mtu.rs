//! Links with other limits of datagram size than hosts expect.

use std::time::Duration;

use crate::common;
use crate::common::lab::{
    MS, SECOND, assert_clean, back, endless, finish_up, there, transfer_up, up,
};
use crate::common::{SERVER, Scene, Setup, for_each_seed};
use courser_base::Time;
use courser_sim::apps::Exchange;
use courser_transport::Event;

/// Returns the UDP payload that fits a link, without 20 bytes of IPv4 and 8 of UDP.
fn payload(mtu: u64) -> u64 {
    mtu - 28
}

/// Asserts that the search ends within 20 bytes of the limit of the link, and never above.
fn assert_search_reaches(mtu: u64) -> Scene {
    let setup = Setup::on(&format!("50mbit,rtt=20ms,queue=200ms,mtu={mtu}"));
    let mut scene = Scene::new(1, setup, endless());
    scene.run_for(SECOND * 3);
    let found = u64::from(scene.stats().path.mtu);
    assert!(
        found <= payload(mtu) && found + 20 > payload(mtu),
        "{found} of {}",
        payload(mtu)
    );
    assert!(there(&scene).dropped.mtu > 0, "no probe was too large");
    // Lost probes are not a sign of congestion (RFC 9000 §14.4).
    assert!(scene.stats().congestion_events <= there(&scene).dropped.queue_full);
    assert_clean(&scene);
    scene
}

#[test]
fn search_finds_1300() {
    assert_search_reaches(1300);
}

#[test]
fn search_finds_1400() {
    assert_search_reaches(1400);
}

#[test]
fn search_finds_1500() {
    assert_search_reaches(1500);
}

#[test]
fn search_finds_9000() {
    assert_search_reaches(9000);
}

/// Without a limit the largest datagram of UDP is used.
#[test]
fn search_reaches_the_largest_datagram() {
    let mut scene = Scene::new(1, Setup::on("1gbit,rtt=10ms,queue=100ms"), endless());
    scene.run_for(MS * 500);
    assert_eq!(scene.stats().path.mtu, 65_507);
    assert_clean(&scene);
}

/// Each direction searches for itself.
#[test]
fn directions_find_separate_sizes() {
    let setup = Setup::on("50mbit,rtt=20ms,mtu=1500;50mbit,rtt=20ms,mtu=1300");
    let app = Exchange::new(SERVER, 100_000, 100_000, Some(30)).every(MS * 100);
    let mut scene = Scene::new(1, setup, app);
    scene.run_for(SECOND * 3);
    let (up, down) = (scene.stats().path.mtu, scene.server_stats().path.mtu);
    assert!((1452..=1472).contains(&up), "{up}");
    assert!((1252..=1272).contains(&down), "{down}");
    assert!(there(&scene).dropped.mtu > 0 && back(&scene).dropped.mtu > 0);
    assert_clean(&scene);
}

/// A link exactly as small as QUIC allows: every probe is lost, and nothing else.
#[test]
fn link_of_1228_bytes_carries_a_transfer() {
    for_each_seed(5, |seed| {
        let setup = Setup::on("20mbit,rtt=40ms,mtu=1228");
        let (scene, time) = transfer_up(seed, setup, 1_000_000, SECOND * 10);
        assert_eq!(scene.stats().path.mtu, 1200);
        assert!(there(&scene).dropped.mtu > 0);
        assert!(time < SECOND * 2, "{time:?}");
    });
}

/// The link shrinks twice in the middle of a transfer: each time the black hole is detected and the
/// datagrams become smaller (RFC 8899 §4.3). Two probe timeouts and their back-off per step.
#[test]
fn link_that_shrinks_to_1280_and_to_1228_only_costs_a_pause() {
    for_each_seed(5, |seed| {
        let bytes = 6_000_000;
        let setup = Setup::on("20mbit,rtt=40ms,mtu=1500,mtu@1s=1280,mtu@2s=1228;20mbit,rtt=40ms");
        let mut scene = Scene::new(seed, setup, up(bytes));
        scene.run_for(MS * 990);
        let before = scene.stats().path.mtu;
        assert!(before > 1400, "{before}");
        let time = finish_up(&mut scene, bytes, SECOND * 60);
        let stats = scene.stats();
        assert_eq!(stats.path.mtu, 1200);
        assert!(there(&scene).dropped.mtu > 3);
        assert!(time < SECOND * 8, "{time:?}");
    });
}

/// The way back shrinks while the server sends.
#[test]
fn link_that_shrinks_under_the_server_only_costs_a_pause() {
    let bytes = 4_000_000;
    let setup = Setup::on("20mbit,rtt=40ms;20mbit,rtt=40ms,mtu=1500,mtu@1s=1280");
    let (scene, time) = common::lab::transfer_down(1, setup, bytes, SECOND * 60);
    assert!(back(&scene).dropped.mtu > 3);
    assert!(time < SECOND * 6, "{time:?}");
}

/// A jumbo path that turns into an Ethernet path.
#[test]
fn jumbo_link_that_becomes_ethernet_only_costs_a_pause() {
    let bytes = 8_000_000;
    let setup = Setup::on("50mbit,rtt=20ms,queue=200ms,mtu=9000,mtu@800ms=1500;50mbit,rtt=20ms");
    let mut scene = Scene::new(1, setup, up(bytes));
    scene.run_for(MS * 790);
    assert!(scene.stats().path.mtu > 8000, "{:?}", scene.stats());
    let time = finish_up(&mut scene, bytes, SECOND * 60);
    assert!(time < SECOND * 8, "{time:?}");
    assert!(scene.stats().path.mtu <= 1472);
}

/// QUIC is impossible here: the client reports it at its handshake timeout, and sends only at its
/// probe timeouts until then.
#[test]
fn link_below_1228_bytes_ends_in_the_documented_error_without_a_busy_loop() {
    let mut scene = Scene::new(1, Setup::on("20mbit,rtt=40ms,mtu=1227"), up(1000));
    scene.run_for(SECOND * 15);
    let lost = scene.when(|event| matches!(event, Event::Lost(_)));
    let at = lost.expect("the connection has ended") - Time::ZERO;
    assert!((SECOND * 9..SECOND * 11).contains(&at), "{at:?}");
    let failures = &scene.counters().failures;
    assert!(failures.len() == 1, "{failures:?}");
    assert_eq!(there(&scene).packets_out, 0);
    assert!(there(&scene).packets_in < 50, "{:?}", there(&scene));
    assert!(scene.world.steps() < 200, "{}", scene.world.steps());
}

/// The link shrinks below the minimum of QUIC after the handshake: both ends close at the idle
/// timeout, without a busy loop until then.
#[test]
fn link_that_shrinks_below_1228_bytes_times_out_without_a_busy_loop() {
    let setup = Setup::on("20mbit,rtt=40ms,mtu=1500,mtu@1s=1000;20mbit,rtt=40ms")
        .both(|it| it.max_idle_timeout = Some(SECOND * 10));
    let mut scene = Scene::new(1, setup, endless());
    scene.run_for(SECOND);
    let (steps, sent) = (scene.world.steps(), there(&scene).packets_in);
    scene.run_for(SECOND * 60);
    let lost = scene.when(|event| matches!(event, Event::Lost(_)));
    lost.expect("the client has timed out");
    let lost = scene.when_server(|event| matches!(event, Event::Lost(_)));
    lost.expect("the server has timed out");
    assert!(there(&scene).packets_in - sent < 500, "{:?}", there(&scene));
    assert!(scene.world.steps() - steps < 3000);
}

/// The path grows after the end of the search: the new limit is found within the ten minutes of the
/// raise timer (RFC 8899 §5.1.1).
#[test]
fn raise_timer_detects_a_link_that_grows() {
    let setup = Setup::on("1mbit,rtt=40ms,mtu=1300,mtu@30s=1500;1mbit,rtt=40ms")
        .both(|it| it.mtu_max = 1472);
    let app = Exchange::new(SERVER, 20_000, 10, None).every(SECOND * 5);
    let mut scene = Scene::new(1, setup, app);
    scene.run_for(SECOND * 29);
    let before = scene.stats().path.mtu;
    assert!((1252..=1272).contains(&before), "{before}");
    scene.run_for(Duration::from_secs(660));
    let after = scene.stats().path.mtu;
    assert!(after > 1452, "{after}");
    assert_clean(&scene);
}
