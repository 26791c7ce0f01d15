//! Queues: far too short, far too long, and managed.

use std::time::Duration;

use crate::common::lab::{
    CONTROLLERS, MS, SECOND, assert_clean, controlled, endless, finish_exchanges, ideal, there,
    transfer_up,
};
use crate::common::{CLIENT, SERVER, Scene, for_each_seed};
use courser_recovery::Algorithm;
use courser_sim::World;
use courser_sim::apps::{Amount, Bulk, Exchange, Serve, TransferDirection};
use courser_sim::host::{Host, HostSpec};

/// Two packets: a window of two and the one being transmitted keep the link busy for a part of the
/// round trip only. The link holds three packets besides those in flight, so a controller that
/// backs off at each loss gets a tenth of the rate.
#[test]
fn queue_of_two_packets_is_enough_to_complete() {
    for &algorithm in CONTROLLERS {
        let setup = controlled("10mbit,rtt=20ms,queue=2p", algorithm);
        let (scene, time) = transfer_up(1, setup, 1_000_000, SECOND * 60);
        assert!(there(&scene).dropped.queue_full > 0);
        assert!(there(&scene).max_queue_packets <= 2);
        assert!(time < SECOND * 8, "{algorithm}: {time:?}");
    }
}

/// A queue of one tenth of a BDP.
#[test]
fn shallow_queue_leaves_half_the_rate() {
    for &algorithm in CONTROLLERS {
        let setup = controlled("20mbit,rtt=50ms,queue=0.1bdp", algorithm);
        let (scene, time) = transfer_up(1, setup, 5_000_000, SECOND * 60);
        assert!(there(&scene).dropped.queue_full > 0);
        assert!(
            time < ideal(5_000_000, 20, MS * 50) * 2,
            "{algorithm}: {time:?}"
        );
    }
}

/// 10 000 packets, 12 s of queue at 10 Mbit/s: no connection times out at any round-trip time.
#[test]
fn queue_of_ten_thousand_packets_causes_no_timeout() {
    for &algorithm in CONTROLLERS {
        let setup = controlled("10mbit,rtt=20ms,queue=10000p", algorithm);
        let (scene, time) = transfer_up(1, setup, 6_000_000, SECOND * 60);
        let (link, stats) = (there(&scene), scene.stats());
        assert_eq!(link.dropped.total(), 0);
        assert_eq!(stats.data_retransmitted, 0, "{algorithm}: {stats:?}");
        assert!(
            time < ideal(6_000_000, 10, MS * 20).mul_f64(1.15),
            "{algorithm}: {time:?}"
        );
    }
}

/// Round trips of small requests next to a download through the same link.
fn ping_beside_download(link: &str, algorithm: Algorithm) -> (Duration, Duration) {
    let mut world = World::new(1);
    let config = courser_transport::TransportConfig {
        congestion: algorithm,
        mtu_max: 1472,
        ..Default::default()
    };
    let pinging = Exchange::ping(SERVER, MS * 100, None);
    let spec = HostSpec::client(CLIENT, world.seed_for("pinging"));
    let pinging = world.add("pinging", CLIENT.ip(), Host::new(spec, pinging));
    let bulk = Bulk::new(SERVER, TransferDirection::Down, Amount::Endless)
        .starting_at(courser_base::Time::ZERO + SECOND);
    let spec = HostSpec::client(
        "10.0.1.3:50000".parse().expect("the address is valid"),
        world.seed_for("bulk"),
    )
    .with_transport(config.clone());
    let address = spec.address.ip();
    let bulk = world.add("bulk", address, Host::new(spec, bulk));
    let spec = HostSpec::server(SERVER, world.seed_for("server")).with_transport(config);
    let server = world.add("server", SERVER.ip(), Host::new(spec, Serve::new()));
    world.bottleneck(
        &[pinging, bulk],
        &[server],
        &link.parse().expect("the link specification is valid"),
    );
    world.run_for(SECOND * 8).expect("the world does not stall");
    let host: &Host = world.node(pinging).expect("the node is a host");
    let counters = host.counters().expect("the application has counters");
    assert_eq!(counters.failures, [""; 0]);
    let from = courser_base::Time::ZERO + SECOND * 3;
    let idle = counters.exchanges[3].1;
    let mut busy: Vec<_> = counters
        .exchanges
        .iter()
        .filter(|(at, _)| *at > from)
        .map(|(_, took)| *took)
        .collect();
    busy.sort_unstable();
    assert!(busy.len() > 5, "{busy:?}");
    (idle, busy[busy.len() / 2])
}

/// Drop-tail with 500 ms: the queue stands, and pings wait in it, but never longer than its limit.
#[test]
fn bufferbloat_delays_pings_by_the_queue_at_most() {
    let (idle, busy) = ping_beside_download("10mbit,rtt=40ms,queue=500ms", Algorithm::Cubic);
    assert!((MS * 40..MS * 50).contains(&idle), "{idle:?}");
    assert!((MS * 80..MS * 560).contains(&busy), "{busy:?}");
}

/// CoDel keeps the same link near its target of 5 ms.
#[test]
fn codel_keeps_pings_fast() {
    let (idle, busy) =
        ping_beside_download("10mbit,rtt=40ms,queue=500ms,aqm=codel", Algorithm::Cubic);
    assert!((MS * 40..MS * 50).contains(&idle), "{idle:?}");
    assert!(busy < MS * 65, "{busy:?}");
}

/// BBR leaves room in a queue without management.
#[test]
fn bbr_keeps_pings_fast_without_a_managed_queue() {
    let (_, busy) = ping_beside_download("10mbit,rtt=40ms,queue=500ms", Algorithm::Bbr);
    assert!(busy < MS * 100, "{busy:?}");
}

/// The median stays within three times the target, with the link in use.
#[test]
fn codel_holds_its_target_and_the_rate() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr] {
        let setup = controlled("20mbit,rtt=40ms,queue=1s,aqm=codel", algorithm);
        let mut scene = Scene::new(1, setup, endless());
        scene.run_for(SECOND * 2);
        let link = scene.link.forward;
        scene
            .world
            .change_link(link, |link| link.take_queue_delays());
        let before = scene.stats().data_acked;
        scene.run_for(SECOND * 5);
        let rate = (scene.stats().data_acked - before) as f64 / 5.0 / 2_500_000.0;
        let delays = scene.world.link(link).queue_delays();
        assert!(
            delays.median() < MS * 15,
            "{algorithm}: {:?}",
            delays.median()
        );
        assert!(rate > 0.7, "{algorithm}: {rate}");
        assert!(there(&scene).dropped.aqm > 0);
        assert_clean(&scene);
    }
}

/// A queue of 32 packets and fast exchanges: a response of 100 kB does not fit, so each one overflows
/// the queue or is paced. None hangs.
#[test]
fn exchanges_through_a_short_queue_do_not_hang() {
    for_each_seed(5, |seed| {
        let link = "10mbit,rtt=20ms,queue=8p";
        let app = Exchange::new(SERVER, 1000, 100_000, Some(10));
        let mut scene = Scene::new(seed, controlled(link, Algorithm::Cubic), app);
        finish_exchanges(&mut scene, 10, SECOND * 30);
        let slowest = scene
            .counters()
            .exchanges
            .iter()
            .map(|(_, took)| *took)
            .max();
        // 80 ms at the rate; the rest is recovery.
        assert!(
            slowest.expect("there are ten exchanges") < MS * 900,
            "{slowest:?}"
        );
    });
}

/// A queue for acknowledgements that is always full: 1 Mbit/s back for 50 in the other direction.
#[test]
fn slow_return_link_does_not_limit_the_sender() {
    let setup = controlled(
        "50mbit,rtt=40ms,queue=1bdp;500kbit,20ms,queue=20p",
        Algorithm::Cubic,
    );
    let (_, time) = transfer_up(1, setup, 10_000_000, SECOND * 30);
    assert!(
        time < ideal(10_000_000, 50, MS * 40).mul_f64(1.6),
        "{time:?}"
    );
}
