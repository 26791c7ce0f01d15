//! Links that report packets that are too large, and attackers who forge such reports. RFC 9000
//! §14.2.1.

use std::time::Duration;

use crate::common;
use crate::common::lab::{
    MS, SECOND, assert_clean, back, endless, finish_down, finish_up, there, up,
};
use crate::common::{SERVER, Scene, Setup, Watched, for_each_seed};
use courser_sim::node::Node;
use courser_sim::packet::{Packet, TooBig};
use courser_transport::ConnectionStats;

/// Runs a transfer of 6 MB over a link that shrinks after a second, with and without a report.
/// Returns the duration and the client's counters.
fn shrinking(seed: u64, suffix: &str) -> (Duration, ConnectionStats) {
    let bytes = 6_000_000;
    let setup = Setup::on(&format!(
        "20mbit,20ms,queue=2s | 20ms,mtu=1500{suffix},mtu@1s=1400{suffix},mtu@2s=1280{suffix}\
         ;20mbit,40ms"
    ));
    let mut scene = Scene::new(seed, setup, up(bytes));
    scene.run_for(MS * 990);
    let before = scene.stats().path.mtu;
    assert!(before > 1400, "{before}");
    let time = finish_up(&mut scene, bytes, SECOND * 60);
    assert_eq!(there(&scene).dropped.queue_full, 0);
    let is_answered = there(&scene).answered > 0;
    assert_eq!(is_answered, !suffix.is_empty());
    (time, scene.stats())
}

#[test]
fn link_that_shrinks_with_reports_costs_no_pause() {
    for_each_seed(5, |seed| {
        let (silent, _) = shrinking(seed, "");
        let (reported, stats) = shrinking(seed, "/icmp");
        assert_eq!(stats.path.mtu, 1252, "the reported MTU");
        // 6 MB take 2.5 s at this rate, the handshake and slow start 0.4 s. Packets in the queue
        // and in flight at each step are sent twice, up to 0.28 s. The search starts when slow
        // start is over.
        assert!(reported < MS * 3_600, "{reported:?}");
        assert!(silent > reported + MS * 150, "{silent:?} {reported:?}");
        assert_eq!(stats.ptos, 0, "{stats:?}");
        assert_eq!(stats.congestion_events, 0, "{stats:?}");
    });
}

#[test]
fn search_sends_one_probe_beyond_the_limit() {
    let setup = Setup::on("50mbit,10ms,queue=200ms | 10ms,mtu=1400/icmp;50mbit,20ms");
    let mut scene = Scene::new(1, setup, endless());
    scene.run_for(SECOND * 2);
    assert_eq!(scene.stats().path.mtu, 1372);
    assert_eq!(there(&scene).dropped.mtu, 1, "the first probe alone");
    assert_eq!(there(&scene).answered, 1);
    assert_eq!(scene.stats().congestion_events, 0);
    assert_clean(&scene);
}

/// The server gets reports about its own datagrams only.
#[test]
fn each_direction_gets_its_own_reports() {
    let setup = Setup::on("20mbit,40ms;20mbit,20ms | 20ms,mtu=1500/icmp,mtu@1s=1300/icmp");
    let bytes = 4_000_000;
    let mut scene = Scene::new(1, setup, common::lab::down(bytes));
    let time = finish_down(&mut scene, bytes, SECOND * 30);
    assert!(time < MS * 2_800, "{time:?}");
    assert_eq!(scene.server_stats().path.mtu, 1272);
    assert!(back(&scene).answered > 0);
    assert_eq!(there(&scene).answered, 0);
}

/// The router saw another address and port than the client's.
#[test]
fn client_behind_a_nat_gets_the_report() {
    let setup =
        Setup::on("20mbit,20ms,rebind=500ms | 20ms,mtu=1500/icmp,mtu@1700ms=1300/icmp;20mbit,40ms");
    let mut scene = Scene::new(1, setup, endless());
    scene.run_for(SECOND * 3);
    assert!(scene.world.rebindings(scene.link) >= 5);
    assert_eq!(scene.stats().path.mtu, 1272);
    assert!(there(&scene).answered > 0);
}

/// Returns the forged report about a packet of the client.
fn forge_report(scene: &mut Scene, mtu: u32, payload: &[u8]) {
    let message = TooBig {
        packet: Packet {
            source: common::CLIENT,
            destination: SERVER,
            ecn: courser_base::Ecn::NotEct,
            payload: payload.to_vec().into(),
        },
        mtu,
    };
    let now = scene.world.now();
    let client = scene.client;
    let watched: &mut Watched = scene
        .world
        .node_mut(client)
        .expect("the node is a watched host");
    watched.packet_too_big(now, &message);
}

/// A flood of forged reports in the middle of a transfer, with every kind of quote that an attacker
/// can forge without seeing the packets, and impossible sizes.
#[test]
fn forged_reports_have_no_effect() {
    let run = |forges: bool| {
        let bytes = 3_000_000;
        let setup = Setup::on("20mbit,40ms,queue=200ms,mtu=1500;20mbit,40ms");
        let mut scene = Scene::new(1, setup, up(bytes));
        scene.run_for(MS * 500);
        for round in 0..200_u32 {
            if forges {
                for (at, mtu) in [0, 68, 576, 1227, 1228, 1300, 1499, 65_535]
                    .into_iter()
                    .enumerate()
                {
                    let mut quote = [0x40 | at as u8; 1472];
                    quote[1..5].copy_from_slice(&round.wrapping_mul(2_654_435_761).to_be_bytes());
                    forge_report(&mut scene, mtu, &quote);
                    forge_report(&mut scene, mtu, &quote[..at]);
                }
            }
            scene.run_for(MS);
        }
        let time = finish_up(&mut scene, bytes, SECOND * 20);
        let endpoint = scene.client().endpoint().stats();
        assert_eq!(endpoint.packets_too_big, 0);
        assert_eq!(
            endpoint.packets_too_big_ignored,
            if forges { 3_200 } else { 0 }
        );
        (time, scene.stats())
    };
    assert_eq!(run(true), run(false));
}

/// Correct quotes with sizes that no link for QUIC can have.
#[test]
fn report_of_68_bytes_is_ignored_and_the_black_hole_is_detected() {
    let setup = Setup::on("20mbit,20ms | 20ms,mtu=1500/icmp,mtu@1s=68/icmp;20mbit,40ms")
        .both(|it| it.max_idle_timeout = Some(SECOND * 10));
    let mut scene = Scene::new(1, setup, endless());
    scene.run_for(SECOND);
    let (steps, before) = (scene.world.steps(), scene.client().endpoint().stats());
    scene.run_for(MS * 100);
    assert!(
        scene.stats().path.mtu > 1400,
        "the claimed size is not adopted"
    );
    scene.run_for(SECOND * 30);
    let stats = scene.client().endpoint().stats();
    assert_eq!(stats.packets_too_big, before.packets_too_big);
    assert!(stats.packets_too_big_ignored > before.packets_too_big_ignored);
    assert!(
        scene.world.steps() - steps < 3_000,
        "no endpoint runs in a busy loop"
    );
}
