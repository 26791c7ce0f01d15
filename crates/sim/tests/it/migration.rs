//! Clients whose address changes.

use crate::common::lab::{
    MS, SECOND, assert_clean, controlled, endless, ethernet, finish_exchanges, finish_up,
    transfer_down, transfer_up, up,
};
use crate::common::{CLIENT, SERVER, Scene, Setup, for_each_seed};
use courser_recovery::Algorithm;
use courser_sim::apps::Exchange;
use courser_transport::Event;

fn rebindings(scene: &Scene) -> u64 {
    scene.world.rebindings(scene.link)
}

/// Returns how often the server reported a new address of the client.
fn address_changes(scene: &Scene) -> usize {
    let log = scene.server().log().iter();
    log.filter(|(_, _, event)| matches!(event, Event::PathChanged { .. }))
        .count()
}

/// A transfer up that takes `seconds` at 10 Mbit/s. The next packet of the client reveals every
/// change of mapping, so each costs at most the acknowledgements in flight.
fn upload_with_address_changes(rebind: &str, seconds: u64) {
    let bytes = seconds * 1_250_000;
    let setup = ethernet(&format!("10mbit,rtt=40ms,rebind={rebind}"));
    let (scene, time) = transfer_up(1, setup, bytes, SECOND * 60);
    let changes = rebindings(&scene);
    assert!(
        changes > 0 && address_changes(&scene) as u64 >= changes - 1,
        "{changes}, {}",
        address_changes(&scene)
    );
    let limit = SECOND.mul_f64(seconds as f64 * 1.3) + SECOND;
    assert!(time < limit, "{time:?}, at most {limit:?}");
}

/// A response takes up to 60 ms, so that a third of them goes to an old address.
#[test]
fn upload_survives_port_changes_every_200_ms() {
    let bytes = 4_000_000;
    let setup = ethernet("10mbit,rtt=20ms,queue=40ms,rebind=200ms");
    let (scene, time) = transfer_up(1, setup, bytes, SECOND * 60);
    assert!(rebindings(&scene) > 15 && address_changes(&scene) > 10);
    assert!(time < SECOND * 30, "{time:?}");
}

#[test]
fn upload_survives_port_changes_every_second() {
    upload_with_address_changes("1s", 4);
}

#[test]
fn upload_survives_port_changes_every_5_seconds() {
    upload_with_address_changes("2s:5s", 10);
}

#[test]
fn upload_survives_address_changes_every_second() {
    upload_with_address_changes("addr:1s", 4);
}

#[test]
fn upload_survives_address_changes_every_5_seconds() {
    upload_with_address_changes("addr:2s:5s", 10);
}

/// The acknowledgements of a client that only receives reveal its address. They answer packets in
/// flight. After that only its own probe does, which must come within a few probe timeouts of the
/// server.
#[test]
fn download_survives_port_changes_every_second() {
    let bytes = 3_000_000;
    let setup = ethernet("10mbit,rtt=40ms,rebind=1s");
    let (scene, time) = transfer_down(1, setup, bytes, SECOND * 60);
    assert!(rebindings(&scene) >= 2 && address_changes(&scene) >= 2);
    assert!(time < SECOND * 5, "{time:?}");
}

#[test]
fn download_survives_address_changes_every_second() {
    let bytes = 3_000_000;
    let setup = ethernet("10mbit,rtt=40ms,rebind=addr:1s");
    let (scene, time) = transfer_down(1, setup, bytes, SECOND * 60);
    assert!(rebindings(&scene) >= 2 && address_changes(&scene) >= 2);
    assert!(time < SECOND * 6, "{time:?}");
}

/// The mapping changes at any time after the client has finished its handshake. HANDSHAKE_DONE may
/// go to the old port, and the server has no keys for the handshake any more: only a 1-RTT packet
/// of the client reveals its address (RFC 9002 §6.2.4).
#[test]
fn connection_survives_a_port_change_at_any_moment_after_the_handshake() {
    for_each_seed(40, |seed| {
        let at = 105 + seed * 5;
        let setup = ethernet(&format!("20mbit,rtt=100ms,rebind={at}ms:never"));
        let (scene, time) = transfer_up(seed, setup, 200_000, SECOND * 20);
        assert_eq!(rebindings(&scene), 1);
        assert!(time < SECOND * 3, "at {at} ms: {time:?}");
    });
}

/// The mapping changes while nothing is sent, which is the most frequent case.
#[test]
fn idle_connection_survives_a_port_change() {
    let app = Exchange::new(SERVER, 1000, 50_000, Some(4)).every(SECOND * 10);
    let mut scene = Scene::new(1, ethernet("20mbit,rtt=50ms,rebind=5s:10s"), app);
    finish_exchanges(&mut scene, 4, SECOND * 60);
    assert!(rebindings(&scene) >= 3);
    assert_eq!(address_changes(&scene), 3);
    for (at, took) in &scene.counters().exchanges {
        // Request and response, and a round trip for the validation and for the three-times limit
        // of the address.
        assert!(*took < MS * 350, "{at:?}: {took:?}");
    }
}

#[test]
fn idle_connection_survives_an_address_change() {
    let app = Exchange::new(SERVER, 1000, 50_000, Some(4)).every(SECOND * 10);
    let mut scene = Scene::new(1, ethernet("20mbit,rtt=50ms,rebind=addr:5s:10s"), app);
    finish_exchanges(&mut scene, 4, SECOND * 60);
    assert_eq!(address_changes(&scene), 3);
    for (at, took) in &scene.counters().exchanges {
        assert!(*took < MS * 500, "{at:?}: {took:?}");
    }
}

/// Keep-alives reveal the new address to the server before there is data.
#[test]
fn keep_alive_reveals_the_new_port_before_data() {
    let setup = ethernet("20mbit,rtt=50ms,rebind=3s:never");
    let mut setup = setup;
    setup.client.keep_alive_interval = Some(SECOND);
    let app = Exchange::ping(SERVER, SECOND * 20, Some(2));
    let mut scene = Scene::new(1, setup, app);
    scene.run_for(SECOND * 5);
    assert_eq!((rebindings(&scene), address_changes(&scene)), (1, 1));
    finish_exchanges(&mut scene, 2, SECOND * 30);
    let (_, took) = scene.counters().exchanges[1];
    assert!(took < MS * 80, "{took:?}");
}

/// Changes every second on a link that loses and reorders.
#[test]
fn connection_survives_port_changes_with_loss_and_reordering() {
    for_each_seed(10, |seed| {
        let setup = ethernet("20mbit,rtt=40ms,loss=3%,reorder=5%:10ms,rebind=300ms:1s");
        let (scene, time) = transfer_up(seed, setup, 500_000, SECOND * 60);
        assert!(rebindings(&scene) >= 1);
        assert!(time < SECOND * 20, "{time:?}");
    });
}

#[test]
fn connection_survives_address_changes_with_loss_and_reordering() {
    for_each_seed(10, |seed| {
        let setup = ethernet("20mbit,rtt=40ms,loss=3%,reorder=5%:10ms,rebind=addr:300ms:1s");
        let (scene, time) = transfer_up(seed, setup, 500_000, SECOND * 60);
        assert!(rebindings(&scene) >= 1);
        assert!(time < SECOND * 20, "{time:?}");
    });
}

/// Runs a download up to the change at 2 s. Returns the server's window shortly before, and the
/// smallest within a second after it.
fn windows(rebind: &str) -> (u64, u64) {
    let mut scene = Scene::new(
        1,
        controlled(
            &format!("20mbit,rtt=40ms,queue=2bdp,rebind={rebind}"),
            Algorithm::Cubic,
        ),
        Exchange::new(SERVER, 1000, 100_000_000, Some(1)),
    );
    scene.run_for(MS * 1999);
    let before = scene.server_stats().path;
    let mut smallest = u64::MAX;
    for _ in 0..200 {
        scene.run_for(MS);
        if address_changes(&scene) > 0 {
            smallest = smallest.min(scene.server_stats().path.congestion_window);
        }
    }
    assert_eq!((rebindings(&scene), address_changes(&scene)), (1, 1));
    assert_clean(&scene);
    (before.congestion_window, smallest)
}

/// The route is probably the same (RFC 9000 §9.4).
#[test]
fn new_port_keeps_the_window() {
    let (before, smallest) = windows("2s:never");
    assert!(before > 60_000, "{before}");
    assert!(smallest >= before / 2, "{before}, {smallest}");
}

/// The new path is unknown (RFC 9000 §9.4): ten datagrams at most.
#[test]
fn new_address_starts_with_a_new_window() {
    let (before, smallest) = windows("addr:2s:never");
    assert!(before > 60_000, "{before}");
    assert!(smallest <= 14_720, "{before}, {smallest}");
}

/// A mapping lives for at most four round trips: every fourth response goes to an old address, and
/// still the connection continues.
#[test]
fn mapping_that_changes_ten_times_a_second_ends_no_connection() {
    let setup =
        Setup::on("20mbit,rtt=20ms,queue=10ms,rebind=500ms:100ms").both(|it| it.mtu_max = 1472);
    let bytes = 4_000_000;
    let mut scene = Scene::new(1, setup, up(bytes));
    let time = finish_up(&mut scene, bytes, SECOND * 100);
    assert!(rebindings(&scene) > 9, "{}", rebindings(&scene));
    assert!(time > SECOND, "{time:?}");
}

/// The connection is idle beyond the mapping's life without keep-alive: the next request moves the
/// path. Without one both ends close at the idle timeout.
#[test]
fn idle_client_behind_a_changed_mapping_times_out_cleanly() {
    let app = Exchange::ping(SERVER, SECOND * 100, Some(2));
    let setup = ethernet("20mbit,rtt=50ms,rebind=3s:never");
    let mut scene = Scene::new(1, setup, app);
    scene.run_for(SECOND * 34);
    for log in [scene.client().log(), scene.server().log()] {
        let lost = log
            .iter()
            .find(|(_, _, event)| matches!(event, Event::Lost(_)));
        let (at, _, event) = lost.expect("the connection timed out");
        assert!(format!("{event:?}").contains("TimedOut"), "{event:?}");
        let at = *at - courser_base::Time::ZERO;
        // From the last packet of the exchange on, within 1.1 of the time (F05).
        assert!((SECOND * 30..SECOND * 33).contains(&at), "{at:?}");
    }
}

/// Each path is validated before more than three times its received bytes are sent there. The
/// watcher in every scene checks that. This test checks that the challenge is answered: after the
/// move data flows at full rate.
#[test]
fn new_address_is_validated_and_then_used_in_full() {
    let setup = controlled("20mbit,rtt=40ms,rebind=addr:2s:never", Algorithm::Bbr);
    let mut scene = Scene::new(1, setup, endless());
    scene.run_for(SECOND * 4);
    let before = scene.server_stats().data_received;
    scene.run_for(SECOND * 2);
    let rate = (scene.server_stats().data_received - before) as f64 / 2.0;
    assert!(rate > 0.85 * 2_500_000.0, "{rate}");
    let peer = scene
        .server()
        .log()
        .iter()
        .find_map(|(_, _, event)| match event {
            Event::PathChanged { peer } => Some(*peer),
            _ => None,
        });
    assert_ne!(peer.expect("the world does not stall").ip(), CLIENT.ip());
}
