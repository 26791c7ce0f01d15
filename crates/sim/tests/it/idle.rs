//! The end of idle connections, and keep-alives. RFC 9000 §10.1.

use std::time::Duration;

use crate::common::{SERVER, Scene, Setup, for_each_seed};
use courser_base::Time;
use courser_sim::apps::{Amount, Bulk, Exchange, TransferDirection};
use courser_transport::ConnectionError;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// One exchange, then an hour of silence.
fn single_exchange() -> Exchange {
    Exchange::ping(SERVER, Duration::from_secs(3600), None)
}

/// Disables the search for the MTU, whose probes keep a connection alive too.
fn idle_after(link: &str, client: Option<Duration>, server: Option<Duration>) -> Setup {
    let mut setup = Setup::on(link).both(|config| config.mtu_discovery = false);
    setup.client.max_idle_timeout = client;
    setup.server.max_idle_timeout = server;
    setup
}

/// Runs until both ends have closed, and returns the times. The last packet arrives one second
/// after the start at the latest.
fn ends(scene: &mut Scene, limit: Duration) -> (Time, Time) {
    scene.run_until(limit, "end", |scene| {
        scene.end().is_some() && scene.server_end().is_some()
    });
    let (client, error) = scene.end().expect("the connection has ended");
    assert_eq!(error, ConnectionError::TimedOut);
    let (server, error) = scene.server_end().expect("the connection has ended");
    assert_eq!(error, ConnectionError::TimedOut);
    (client, server)
}

fn assert_within(at: Time, least: Duration, most: Duration) {
    let at = at - Time::ZERO;
    assert!(
        at >= least && at <= most,
        "{at:?}, not {least:?} to {most:?}"
    );
}

#[test]
fn silence_ends_both_ends_within_a_tenth_of_the_timeout() {
    for seconds in [1, 5, 30] {
        let timeout = SECOND * seconds;
        let setup = idle_after("rtt=40ms", Some(timeout), Some(timeout));
        let mut scene = Scene::new(1, setup, single_exchange());
        let (client, server) = ends(&mut scene, timeout + SECOND);
        // All packets have been sent after three round trips and the delay of an ACK.
        let most = timeout + timeout / 10 + MS * 150;
        assert_within(client, timeout, most);
        assert_within(server, timeout, most);
        assert_eq!(scene.client().endpoint().connections(), 0);
        assert_eq!(scene.server().endpoint().connections(), 0);
    }
}

#[test]
fn smaller_timeout_of_the_two_counts_at_both_ends() {
    for (client, server) in [(2, 60), (60, 2)] {
        let setup = idle_after("rtt=40ms", Some(SECOND * client), Some(SECOND * server));
        let mut scene = Scene::new(1, setup, single_exchange());
        let (client, server) = ends(&mut scene, SECOND * 4);
        assert_within(client, SECOND * 2, MS * 2200);
        assert_within(server, SECOND * 2, MS * 2200);
    }
}

#[test]
fn end_without_an_idle_timeout_uses_the_peers() {
    let setup = idle_after("rtt=40ms", None, Some(SECOND * 2));
    let mut scene = Scene::new(1, setup, single_exchange());
    let (client, _) = ends(&mut scene, SECOND * 4);
    assert_within(client, SECOND * 2, MS * 2200);
}

#[test]
fn without_any_timeout_a_day_of_silence_is_survived() {
    let day = SECOND * 24 * 3600;
    let app = Exchange::ping(SERVER, day, Some(2));
    let mut scene = Scene::new(1, idle_after("rtt=40ms", None, None), app);
    scene.run_for(day - SECOND);
    let sent = scene.forward().packets_in;
    assert!(scene.end().is_none() && scene.server_end().is_none());
    assert!(sent < 30, "nothing is sent meanwhile: {sent}");
    scene.run_for(SECOND * 2);
    assert_eq!(scene.counters().exchanges.len(), 2);
    scene.assert_clean();
}

/// Never less than three probe timeouts: a short timeout must not end a slow connection.
#[test]
fn timeout_shorter_than_three_probe_timeouts_is_extended() {
    let setup = idle_after("rtt=800ms", Some(MS * 100), Some(MS * 100));
    let app = Exchange::ping(SERVER, MS * 10, Some(10));
    let mut scene = Scene::new(1, setup, app);
    scene.finish(SECOND * 12, 10);
    scene.assert_clean();
}

#[test]
fn keep_alive_of_the_client_keeps_both_ends() {
    let mut setup = idle_after("rtt=40ms", Some(SECOND * 3), Some(SECOND * 3));
    setup.client.keep_alive_interval = Some(SECOND);
    let mut scene = Scene::new(1, setup, single_exchange());
    scene.run_for(SECOND * 60);
    assert!(scene.end().is_none() && scene.server_end().is_none());
    // One packet each second, and its ACK.
    let sent = scene.forward().packets_in;
    assert!((58..=75).contains(&sent), "{sent}");
}

#[test]
fn keep_alive_of_the_server_keeps_both_ends() {
    let mut setup = idle_after("rtt=40ms", Some(SECOND * 3), Some(SECOND * 3));
    setup.server.keep_alive_interval = Some(SECOND);
    let mut scene = Scene::new(1, setup, single_exchange());
    scene.run_for(SECOND * 60);
    assert!(scene.end().is_none() && scene.server_end().is_none());
    assert!(scene.back().packets_in >= 58);
}

#[test]
fn keep_alive_survives_twenty_percent_loss() {
    for_each_seed(20, |seed| {
        let mut setup = idle_after("rtt=40ms", Some(SECOND * 5), Some(SECOND * 5));
        setup.client.keep_alive_interval = Some(MS * 1500);
        let mut scene = Scene::new(seed, setup, single_exchange());
        scene.confirm(SECOND);
        scene.set_links("rtt=40ms,loss=20%");
        // A lost keep-alive is probed for after 145 ms, 290 ms, ... with two packets each.
        scene.run_for(SECOND * 60);
        assert!(scene.end().is_none() && scene.server_end().is_none());
        assert!(scene.dropped(|dropped| dropped.loss) > 10);
    });
}

/// A mapping expires while idle: packets of the server are dropped until the client has sent again,
/// which its keep-alive does.
#[test]
fn keep_alive_reveals_a_new_mapping_to_the_server() {
    let mut setup = idle_after(
        "rtt=40ms,rebind=5s:never;rtt=40ms",
        Some(SECOND * 30),
        Some(SECOND * 30),
    );
    setup.client.keep_alive_interval = Some(SECOND * 2);
    let app = Exchange::ping(SERVER, SECOND * 20, Some(2));
    let mut scene = Scene::new(1, setup, app);
    scene.run_for(SECOND * 10);
    assert_eq!(scene.world.rebindings(scene.link), 1);
    let changed = |event: &courser_transport::Event| {
        matches!(event, courser_transport::Event::PathChanged { .. })
    };
    let at = scene
        .when_server(changed)
        .expect("the server reports the new address")
        - Time::ZERO;
    assert!(at > SECOND * 5 && at < SECOND * 8, "{at:?}");
    scene.run_for(SECOND * 12);
    assert_eq!(scene.counters().exchanges.len(), 2);
    scene.assert_clean();
}

/// F04: everything is lost for less than the idle timeout, in one direction or both, and then the
/// transfer continues. It ends within the doubling of the probe timeout: after the hole at most its
/// length, and the duration of the transfer.
fn survives_hole(hole: &str, forward: bool, back: bool) {
    let lasts: Duration = duration(hole);
    let link = |holed: bool| match holed {
        true => format!("10mbit,rtt=40ms,queue=100p,blackhole=500ms:{hole}"),
        false => "10mbit,rtt=40ms,queue=100p".to_owned(),
    };
    let setup = Setup::on(&format!("{};{}", link(forward), link(back)));
    let app = Bulk::new(SERVER, TransferDirection::Up, Amount::Bytes(1_500_000));
    let mut scene = Scene::new(1, setup, app);
    let time = scene.finish(SECOND * 60, 1);
    assert_eq!(scene.server_counters().received, 1_500_000);
    scene.assert_clean();
    assert!(scene.dropped(|dropped| dropped.blackhole) > 0);
    // 1.5 MB at 10 Mbit/s take 1.3 s; twice that leaves room for the window to grow again.
    let most = MS * 500 + lasts * 2 + MS * 2600 + SECOND;
    assert!(time <= most, "{time:?} for {lasts:?}");
}

fn duration(text: &str) -> Duration {
    match text.strip_suffix("ms") {
        Some(millis) => MS * millis.parse().expect("the duration is a number"),
        None => {
            SECOND
                * text
                    .trim_end_matches('s')
                    .parse()
                    .expect("the duration is a number")
        }
    }
}

#[test]
fn blackholes_shorter_than_the_timeout_are_survived() {
    for hole in ["100ms", "300ms", "1s", "3s", "10s", "20s"] {
        survives_hole(hole, true, true);
    }
}

#[test]
fn blackholes_towards_the_server_are_survived() {
    for hole in ["100ms", "1s", "5s", "20s"] {
        survives_hole(hole, true, false);
    }
}

#[test]
fn blackholes_towards_the_client_are_survived() {
    for hole in ["100ms", "1s", "5s", "20s"] {
        survives_hole(hole, false, true);
    }
}

#[test]
fn one_second_of_every_three_without_a_network_is_survived() {
    let link = "10mbit,rtt=40ms,queue=100p,blackhole=500ms:1s:3s";
    let app = Bulk::new(SERVER, TransferDirection::Down, Amount::Bytes(3_000_000));
    let mut scene = Scene::new(1, Setup::on(link), app);
    let time = scene.finish(SECOND * 60, 1);
    assert_eq!(scene.counters().received, 3_000_000);
    scene.assert_clean();
    // 2.6 s of sending, in two seconds of three at best; each hole may double.
    assert!(time < SECOND * 20, "{time:?}");
    assert!(scene.dropped(|dropped| dropped.blackhole) > 10);
}

/// F05: both ends detect it on their own, each within a tenth of the timeout after its last packet.
#[test]
fn blackhole_longer_than_the_timeout_ends_both_ends() {
    let link = "10mbit,rtt=40ms,queue=100p,blackhole=2s:600s";
    for direction in [TransferDirection::Up, TransferDirection::Down] {
        let setup = Setup::on(link).both(|config| {
            config.max_idle_timeout = Some(SECOND * 10);
        });
        let mut scene = Scene::new(1, setup, Bulk::new(SERVER, direction, Amount::Endless));
        let (client, server) = ends(&mut scene, SECOND * 20);
        // The last packets arrive later than two seconds, by up to a queue of 100 packets. The last
        // acknowledgement may have arrived up to a quarter of a round trip earlier.
        assert_within(client, SECOND * 12 - MS * 40, SECOND * 13);
        assert_within(server, SECOND * 12 - MS * 40, SECOND * 13);
        let probes = scene.stats().ptos + scene.server_stats().ptos;
        assert!((3..=14).contains(&probes), "{probes}");
    }
}

/// The sending end has its probes, and the other one does not notice: sending without responses
/// does not keep a connection alive (RFC 9000 §10.1).
#[test]
fn one_way_blackhole_longer_than_the_timeout_ends_both_ends() {
    let link = "10mbit,rtt=40ms,queue=100p";
    let hole = "10mbit,rtt=40ms,queue=100p,blackhole=2s:600s";
    for (forward, back) in [(link, hole), (hole, link)] {
        let setup = Setup::on(&format!("{forward};{back}")).both(|config| {
            config.max_idle_timeout = Some(SECOND * 5);
        });
        let app = Bulk::new(SERVER, TransferDirection::Up, Amount::Endless);
        let mut scene = Scene::new(1, setup, app);
        scene.run_until(SECOND * 30, "end", |scene| {
            scene.end().is_some() && scene.server_end().is_some()
        });
        let (client, error) = scene.end().expect("the connection has ended");
        assert_eq!(error, ConnectionError::TimedOut);
        let (server, error) = scene.server_end().expect("the connection has ended");
        assert_eq!(error, ConnectionError::TimedOut);
        // One end receives the other's last probes, for at most another timeout. Its own first
        // probe after that restarts the timeout (RFC 9000 §10.1).
        assert_within(client.min(server), SECOND * 7 - MS * 40, MS * 7600);
        assert_within(client.max(server), SECOND * 7, MS * 17_600);
    }
}

/// A peer that disappears while nothing is in flight costs no packet.
#[test]
fn vanished_idle_peer_is_detected_without_a_packet() {
    let setup = idle_after("rtt=40ms", Some(SECOND * 10), Some(SECOND * 10));
    let mut scene = Scene::new(1, setup, single_exchange());
    scene.run_for(SECOND * 2);
    scene.set_links("rtt=40ms,blackhole=0s:600s");
    let before = scene.forward().packets_in + scene.back().packets_in;
    let (client, server) = ends(&mut scene, SECOND * 12);
    assert_within(client, SECOND * 10, SECOND * 11);
    assert_within(server, SECOND * 10, SECOND * 11);
    assert_eq!(scene.forward().packets_in + scene.back().packets_in, before);
}
