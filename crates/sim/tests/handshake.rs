//! Handshakes over networks that lose, delay, copy and damage them.

mod common;

use std::time::Duration;

use common::{SERVER, Scene, Setup, for_each_seed};
use courser_sim::apps::{Amount, Bulk, Way};

const MS: Duration = Duration::from_millis(1);

/// The client sends 1000 bytes and closes.
fn small() -> Bulk {
    Bulk::new(SERVER, Way::Up, Amount::Bytes(1000))
}

#[test]
fn takes_one_round_trip() {
    let mut scene = Scene::new(1, Setup::on("rtt=100ms"), small());
    scene.run_for(MS * 101);
    let time = scene.stats().handshake_time.expect("it is over");
    assert!(time >= MS * 100 && time < MS * 102, "{time:?}");
}

/// Every subset of the first twelve datagrams of both ends together: 4096 handshakes.
#[test]
fn survives_every_subset_of_the_first_twelve_datagrams_lost() {
    for_each_seed(1 << 12, |seed| {
        let mask = seed - 1;
        let mut setup = Setup::on("rtt=20ms").both(|config| {
            // Twelve lost in a row take six probe timeouts, which double.
            config.initial_rtt = MS * 100;
            config.handshake_timeout = Duration::from_secs(60);
            config.max_idle_timeout = Some(Duration::from_secs(60));
        });
        setup.lost = (1..=12)
            .filter(|number| mask >> (number - 1) & 1 == 1)
            .collect();
        let mut scene = Scene::new(seed, setup, small());
        scene.run_until(Duration::from_secs(50), "transfer", |scene| {
            scene.server_tally().received == 1000 && scene.tally().streams == 1
        });
        assert_eq!(scene.tally().failures, [""; 0], "mask {mask:012b}");
    });
}
