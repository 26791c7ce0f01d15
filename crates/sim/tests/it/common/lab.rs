//! Transfers over links, and the values that bounds are derived from.

use std::time::Duration;

use courser_base::Time;
use courser_recovery::Algorithm;
use courser_sim::apps::{Amount, AppCounters, Bulk, TransferDirection};
use courser_sim::host::{App, ETHERNET_PAYLOAD, Host};
use courser_sim::link::LinkStats;
use courser_transport::ConnectionStats;

use super::{SERVER, Scene, Setup};

pub const MS: Duration = Duration::from_millis(1);
pub const SECOND: Duration = Duration::from_secs(1);

/// All controllers of the product.
pub const CONTROLLERS: &[Algorithm] = Algorithm::ALL;

/// Creates a link between hosts that send Ethernet frames.
pub fn ethernet(link: &str) -> Setup {
    Setup::on(link).both(|config| config.mtu_max = ETHERNET_PAYLOAD)
}

/// Creates a link with this controller at both ends.
pub fn controlled(link: &str, algorithm: Algorithm) -> Setup {
    ethernet(link).both(|config| config.congestion = algorithm)
}

/// Creates a client that sends this number of bytes and closes.
pub fn up(bytes: u64) -> Bulk {
    Bulk::new(SERVER, TransferDirection::Up, Amount::Bytes(bytes))
}

/// Creates a client that receives this number of bytes and closes.
pub fn down(bytes: u64) -> Bulk {
    Bulk::new(SERVER, TransferDirection::Down, Amount::Bytes(bytes))
}

/// Creates a client that sends without end.
pub fn endless() -> Bulk {
    Bulk::new(SERVER, TransferDirection::Up, Amount::Endless)
}

/// Runs an [`up`] to its end. Returns the time at which the server received the last byte.
pub fn finish_up(scene: &mut Scene, bytes: u64, limit: Duration) -> Duration {
    scene.run_until(limit, "end of the transfer", |scene| {
        scene.server_counters().streams == 1 && scene.counters().streams == 1
    });
    assert_eq!(scene.server_counters().received, bytes);
    assert_clean(scene);
    finished(scene.server_counters())
}

/// Runs a [`down`] to its end. Returns the time at which the client received the last byte.
pub fn finish_down(scene: &mut Scene, bytes: u64, limit: Duration) -> Duration {
    scene.run_until(limit, "end of the transfer", |scene| {
        scene.counters().streams == 1
    });
    assert_eq!(scene.counters().received, bytes);
    assert_clean(scene);
    finished(scene.counters())
}

/// Runs one transfer up with a seed. Returns the scene and the duration.
pub fn transfer_up(seed: u64, setup: Setup, bytes: u64, limit: Duration) -> (Scene, Duration) {
    let mut scene = Scene::new(seed, setup, up(bytes));
    let time = finish_up(&mut scene, bytes, limit);
    (scene, time)
}

/// Runs one transfer down with a seed. Returns the scene and the duration.
pub fn transfer_down(seed: u64, setup: Setup, bytes: u64, limit: Duration) -> (Scene, Duration) {
    let mut scene = Scene::new(seed, setup, down(bytes));
    let time = finish_down(&mut scene, bytes, limit);
    (scene, time)
}

/// Runs an application of exchanges until `count` of them have ended.
pub fn finish_exchanges(scene: &mut Scene, count: usize, limit: Duration) {
    scene.run_until(limit, "last exchange", |scene| {
        scene.counters().exchanges.len() == count
    });
    assert_clean(scene);
}

fn finished(counters: &AppCounters) -> Duration {
    counters.finished_at.expect("a stream has ended") - Time::ZERO
}

/// Asserts that all received bytes are correct and no failure was reported.
pub fn assert_clean(scene: &Scene) {
    for counters in [scene.counters(), scene.server_counters()] {
        assert_eq!(counters.mismatch, None);
        assert_eq!(counters.failures, [""; 0]);
    }
}

/// Returns the counters of the link for packets of the client.
pub fn there(scene: &Scene) -> LinkStats {
    scene.world.link(scene.link.forward).stats()
}

/// Returns the counters of the link for packets of the server.
pub fn back(scene: &Scene) -> LinkStats {
    scene.world.link(scene.link.back).stats()
}

/// Runs for a time and calls `look` with the client's counters after each `step`.
pub fn watch(
    scene: &mut Scene,
    time: Duration,
    step: Duration,
    mut look: impl FnMut(Duration, ConnectionStats),
) {
    let end = scene.world.now() + time;
    while scene.world.now() < end {
        scene.run_for(step);
        look(scene.world.now() - Time::ZERO, scene.stats());
    }
}

/// Returns the duration of a transfer with slow start alone, from ten datagrams of 1200 bytes until
/// it fills the link: a round trip for the handshake, a window each round trip that doubles each
/// time, then the rest at the rate, and the delay of the last byte.
pub fn ideal(bytes: u64, megabits: u64, rtt: Duration) -> Duration {
    let rate = (megabits * 125_000) as f64 * 1372.0 / 1500.0;
    let bdp = rate * rtt.as_secs_f64();
    let (mut window, mut left, mut time) = (12_000.0, bytes as f64, rtt.as_secs_f64());
    while window < bdp && left > window {
        time += rtt.as_secs_f64();
        left -= window;
        window *= 2.0;
    }
    Duration::from_secs_f64(time + left / rate + rtt.as_secs_f64() / 2.0)
}

/// Returns the first connection of a host, for interventions.
pub fn with_connection<T>(
    scene: &mut Scene,
    act: impl FnOnce(Time, &mut courser_transport::Connection) -> T,
) -> T {
    let now = scene.world.now();
    let host: &mut Host = scene.client_mut();
    let handle = host.connections()[0];
    host.act(now, |_: &mut dyn App, context| {
        act(
            now,
            context.connection(handle).expect("the connection exists"),
        )
    })
}
