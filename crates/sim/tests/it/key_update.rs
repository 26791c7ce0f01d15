//! Updates of 1-RTT keys by either end, with faults at the same time. RFC 9001 §6.

use std::time::Duration;

use crate::common::{SERVER, Scene, Setup, for_each_seed};
use courser_sim::apps::{Amount, Bulk, Exchange, TransferDirection};
use courser_transport::KeyUpdateBlocked;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

const BYTES: u64 = 1_000_000;

fn up() -> Bulk {
    Bulk::new(SERVER, TransferDirection::Up, Amount::Bytes(BYTES))
}

/// Keeps packets at 1200 bytes. These links have no MTU, so the search for it would leave only a
/// few large packets.
fn setup(link: &str) -> Setup {
    Setup::on(link).both(|config| config.mtu_discovery = false)
}

/// Starts a transfer of one megabyte of the client: 0.8 s at 10 Mbit/s.
fn transferring(seed: u64, link: &str) -> Scene {
    let mut scene = Scene::new(seed, setup(link), up());
    scene.confirm(SECOND * 2);
    scene.run_for(MS * 100);
    scene
}

fn finish(scene: &mut Scene, limit: Duration) -> Duration {
    let time = scene.finish(limit, 1);
    assert_eq!(scene.server_counters().received, BYTES);
    scene.assert_clean();
    time
}

fn updates(scene: &Scene) -> (u64, u64) {
    (scene.stats().key_updates, scene.server_stats().key_updates)
}

const LINK: &str = "10mbit,rtt=40ms,queue=2000p";

#[test]
fn client_updates_during_a_transfer() {
    let mut scene = transferring(1, LINK);
    scene
        .update_client_keys()
        .expect("the key update is allowed");
    finish(&mut scene, SECOND * 2);
    assert_eq!(updates(&scene), (1, 1));
    assert_eq!(scene.stats().packets_lost, 0);
}

#[test]
fn server_updates_during_a_transfer() {
    let mut scene = transferring(1, LINK);
    scene
        .update_server_keys()
        .expect("the key update is allowed");
    finish(&mut scene, SECOND * 2);
    assert_eq!(updates(&scene), (1, 1));
    assert_eq!(scene.stats().packets_lost, 0);
}

#[test]
fn both_ends_update_at_once_and_agree_on_one_update() {
    let mut scene = transferring(1, LINK);
    scene
        .update_client_keys()
        .expect("the key update is allowed");
    scene
        .update_server_keys()
        .expect("the key update is allowed");
    finish(&mut scene, SECOND * 2);
    // Each receives the other's packets in the phase that it has entered itself.
    assert_eq!(updates(&scene), (1, 1));
    assert_eq!(scene.stats().packets_lost, 0);
}

#[test]
fn idle_ends_update_too() {
    let app = Exchange::ping(SERVER, SECOND, Some(5));
    let mut scene = Scene::new(1, setup("rtt=40ms"), app);
    scene.run_for(MS * 500);
    // An exchange between two updates: an end that only sent acknowledgements in the new phase does
    // not know whether its own packets arrived.
    for _ in 0..2 {
        scene
            .update_client_keys()
            .expect("the key update is allowed");
        scene.run_for(SECOND);
        scene
            .update_server_keys()
            .expect("the key update is allowed");
        scene.run_for(SECOND);
    }
    scene.finish(SECOND * 5, 5);
    scene.assert_clean();
    assert_eq!(updates(&scene), (4, 4));
}

/// RFC 9001 §6.1: not before the handshake is confirmed, and not before the peer has
/// acknowledged the current phase.
#[test]
fn update_too_early_is_refused_and_harmless() {
    let mut scene = Scene::new(1, setup("10mbit,rtt=100ms,queue=100p"), up());
    scene.run_for(MS * 120);
    assert_eq!(
        scene.update_client_keys(),
        Err(KeyUpdateBlocked::NotConfirmed)
    );
    scene.confirm(SECOND);
    scene.run_for(MS * 100);
    assert_eq!(scene.update_client_keys(), Ok(()));
    for _ in 0..5 {
        let again = scene.update_client_keys();
        assert_eq!(again, Err(KeyUpdateBlocked::PreviousUnacknowledged));
        scene.run_for(MS * 10);
    }
    finish(&mut scene, SECOND * 3);
    assert_eq!(updates(&scene), (1, 1));
}

/// The application requests updates as often as it can. The rules allow about one per round trip.
#[test]
fn endless_updates_do_not_disturb_a_transfer() {
    let mut scene = transferring(1, LINK);
    let mut allowed = 0;
    while scene.counters().streams == 0 {
        allowed += u64::from(scene.update_client_keys().is_ok());
        allowed += u64::from(scene.update_server_keys().is_ok());
        scene.run_for(MS * 5);
        assert!(scene.world.now().as_nanos() < 4_000_000_000, "too slow");
    }
    assert_eq!(scene.server_counters().received, BYTES);
    scene.assert_clean();
    assert!(allowed >= 4, "{allowed}");
}

/// Some 800 packets of the client, and an update after each 50. The end that sends no data follows.
#[test]
fn keys_are_updated_automatically_every_fifty_packets() {
    let mut setup = setup(LINK);
    setup.client.key_update_after = 50;
    let mut scene = Scene::new(1, setup, up());
    finish(&mut scene, SECOND * 3);
    let (client, server) = updates(&scene);
    // Not more often than the old keys are kept: three probe timeouts.
    assert!(client >= 2, "{client}");
    assert!(client.abs_diff(server) <= 1, "{client} {server}");
}

#[test]
fn both_ends_update_keys_automatically() {
    let setup = setup(LINK).both(|config| config.key_update_after = 20);
    let mut scene = Scene::new(1, setup, up());
    finish(&mut scene, SECOND * 3);
    let (client, server) = updates(&scene);
    assert!(
        client >= 2 && client.abs_diff(server) <= 1,
        "{client} {server}"
    );
}

/// The result does not depend on the packets that are lost around the update.
#[test]
fn updates_are_survived_with_ten_percent_loss() {
    let mut done = 0;
    for_each_seed(30, |seed| {
        let link = "10mbit,rtt=40ms,loss=10%,queue=100p";
        let setup = setup(link).both(|config| config.key_update_after = 30);
        let mut scene = Scene::new(seed, setup, up());
        // A tenth lost with CUBIC: a window of few packets, and timeouts now and then.
        finish(&mut scene, SECOND * 60);
        done += scene.stats().key_updates;
        assert!(scene.stats().packets_lost > 10);
    });
    assert!(done > 30, "{done}");
}

/// Packets of the old phase arrive after those of the new one, for which old keys are kept.
#[test]
fn packets_of_the_old_phase_that_are_late_are_read() {
    let mut late = 0;
    for_each_seed(20, |seed| {
        let link = "10mbit,rtt=40ms,reorder=30%:30ms,queue=100p";
        let setup = setup(link).both(|config| config.key_update_after = 40);
        let mut scene = Scene::new(seed, setup, up());
        scene.confirm(SECOND * 2);
        // Late packets of the handshake have no keys any more.
        scene.run_for(MS * 100);
        let dropped = scene.server_stats().packets_dropped;
        finish(&mut scene, SECOND * 30);
        late += scene.forward().reordered;
        assert!(scene.stats().key_updates >= 1);
        // Data wrongly declared lost was retransmitted, but in packets with other numbers.
        assert_eq!(scene.server_stats().packets_dropped, dropped, "seed {seed}");
    });
    assert!(late > 1000, "{late}");
}

#[test]
fn damaged_packets_during_updates_do_not_close() {
    for_each_seed(20, |seed| {
        let link = "10mbit,rtt=40ms,corrupt=5%,queue=100p";
        let setup = setup(link).both(|config| config.key_update_after = 30);
        let mut scene = Scene::new(seed, setup, up());
        finish(&mut scene, SECOND * 60);
        assert!(scene.forward().corrupted > 10);
        assert!(scene.stats().key_updates >= 1);
    });
}

/// The update itself is lost, and so are all probes for two seconds. Afterwards the ends agree.
#[test]
fn ends_agree_after_an_update_into_a_blackhole() {
    for both in [false, true] {
        let mut scene = transferring(1, LINK);
        scene.set_links("10mbit,rtt=40ms,queue=100p,blackhole=0s:2500ms");
        scene
            .update_client_keys()
            .expect("the key update is allowed");
        if both {
            scene
                .update_server_keys()
                .expect("the key update is allowed");
        }
        let time = finish(&mut scene, SECOND * 10);
        assert!(time >= SECOND * 2, "{time:?}");
        assert_eq!(updates(&scene), (1, 1));
        assert!(scene.dropped(|dropped| dropped.blackhole) >= 4);
    }
}

/// The first packets of the new phase are lost one way, its acknowledgements the other way.
#[test]
fn lost_first_packets_of_a_phase_are_survived_in_both_directions() {
    for lost in [1, 2, 5, 20] {
        let mut scene = transferring(lost, LINK);
        scene.lose_forward(lost, LINK);
        scene
            .update_client_keys()
            .expect("the key update is allowed");
        finish(&mut scene, SECOND * 5);
        assert_eq!(scene.forward().dropped.listed, lost);
        assert_eq!(updates(&scene), (1, 1));

        let mut scene = transferring(lost, LINK);
        scene.lose_back(lost, LINK);
        scene
            .update_client_keys()
            .expect("the key update is allowed");
        finish(&mut scene, SECOND * 5);
        assert_eq!(scene.back().dropped.listed, lost);
        assert_eq!(updates(&scene), (1, 1));
    }
}

#[test]
fn every_packet_twice_during_updates_is_read_once() {
    let setup = setup("10mbit,rtt=40ms,duplicate=100%,queue=400p")
        .both(|config| config.key_update_after = 50);
    let mut scene = Scene::new(1, setup, up());
    finish(&mut scene, SECOND * 6);
    assert!(scene.stats().key_updates >= 2);
    assert!(scene.forward().duplicated > 500);
    assert!(scene.server_stats().packets_dropped > 300);
}
