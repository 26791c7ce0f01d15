//! The program of `examples/sim_reconnect.rs`: a client that connects again after an outage.

#[path = "../../../../examples/sim_reconnect.rs"]
#[allow(dead_code, reason = "main has no role here")]
mod program;

use std::time::Duration;

#[test]
fn connection_survives_a_short_outage() {
    for seed in 0..5 {
        let (connections, time) = program::run(seed, "20ms,1%,blackhole=1s:2s").expect("all lines");
        assert_eq!(connections, 1, "seed {seed}");
        assert!(time < Duration::from_secs(25), "seed {seed}: {time:?}");
    }
}

/// The connection ends by its idle timeout, and so do some attempts of the client. The log has each line once.
#[test]
fn client_continues_after_a_long_outage() {
    for seed in 0..5 {
        let (connections, time) =
            program::run(seed, "20ms,1%,blackhole=1s:60s").expect("all lines");
        assert!(connections >= 2, "seed {seed}");
        // The outage, the longest delay, and what was left to do.
        let longest = Duration::from_secs(61 + 10 + 25);
        assert!(
            time > Duration::from_secs(61) && time < longest,
            "seed {seed}: {time:?}"
        );
    }
}

#[test]
fn run_with_a_seed_can_be_repeated() {
    let run = || program::run(3, "20ms,1%,blackhole=1s:60s").expect("all lines");
    assert_eq!(run(), run());
}
