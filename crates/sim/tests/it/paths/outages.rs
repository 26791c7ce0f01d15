//! Links that die and return (M-7 to M-10).

use std::time::Duration;

use courser_recovery::Algorithm;
use courser_sim::apps::{Amount, TransferDirection};
use courser_transport::Event;
use courser_wire::{PathId, TransportErrorCode};

use super::lab::{BOTH, Lab, Plan};

const LINKS: [&str; 2] = ["50mbit,rtt=20ms,queue=40ms", "30mbit,rtt=60ms,queue=40ms"];
const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

/// The longest stall: the probe timeout of the dead link, whose queue counts, and a round trip of the other one.
const STALL: Duration = Duration::from_millis(260);

fn endless(seed: u64, algorithm: Algorithm, direction: TransferDirection) -> Lab {
    let mut plan = Plan::new(algorithm, direction, 0);
    // A download needs a length.
    plan.amount = match direction {
        TransferDirection::Up => Amount::Endless,
        TransferDirection::Down => Amount::Bytes(1 << 40),
    };
    Lab::new(seed, &LINKS, &plan)
}

fn for_all(seeds: std::ops::Range<u64>, mut run: impl FnMut(&str, Lab)) {
    for seed in seeds {
        for algorithm in BOTH {
            for direction in [TransferDirection::Up, TransferDirection::Down] {
                let name = format!("seed {seed}, {algorithm:?}, {direction:?}");
                run(&name, endless(seed, algorithm, direction));
            }
        }
    }
}

#[test]
fn death_of_the_faster_link_is_a_short_stall() {
    let mut stalls = Vec::new();
    for_all(1..11, |name, mut lab| {
        lab.longest_stall(SECOND);
        lab.kill(0);
        let stall = lab.longest_stall(SECOND * 3);
        assert!(stall <= STALL, "{name}: {stall:?}");
        stalls.push(stall);
        lab.longest_stall(SECOND * 3);
        let closed = Event::PathClosed {
            path: PathId::ZERO,
            code: TransportErrorCode::PATH_UNSTABLE_OR_POOR,
        };
        assert!(lab.has(true, &closed) && lab.has(false, &closed), "{name}");
        assert!(lab.rate(SECOND) > 2_500_000.0, "{name}");
        lab.assert_clean();
    });
    stalls.sort();
    eprintln!(
        "M-7: median {:?}, largest {:?}",
        stalls[stalls.len() / 2],
        stalls.last()
    );
}

#[test]
fn link_that_returns_has_its_share_within_two_seconds() {
    for away in [3, 8, 20] {
        for_all(1..3, |name, mut lab| {
            lab.longest_stall(SECOND * 2);
            let before = lab.rate(SECOND);
            lab.kill(1);
            lab.longest_stall(SECOND * away);
            lab.revive(1);
            lab.longest_stall(SECOND * 2);
            let after = lab.rate(SECOND);
            eprintln!("M-10 {name}, {away} s: {:.2}", after / before);
            assert!(
                after > 0.8 * before,
                "{name}, {away} s: {after} of {before}"
            );
            lab.assert_clean();
        });
    }
}

/// Fault F67: one direction of a link dies.
#[test]
fn link_that_works_one_way_stalls_the_transfer_once() {
    for is_forward in [true, false] {
        for_all(1..3, |name, mut lab| {
            lab.longest_stall(SECOND);
            lab.kill_direction(0, is_forward);
            let stall = lab.longest_stall(SECOND * 8);
            assert!(stall <= STALL * 2, "{name}, {is_forward}: {stall:?}");
            assert!(lab.rate(SECOND) > 2_500_000.0, "{name}");
            lab.assert_clean();
        });
    }
}

/// Fault F68: the rate of a link drops to a tenth.
#[test]
fn link_whose_rate_drops_delays_the_others_little() {
    for_all(1..3, |name, mut lab| {
        lab.longest_stall(SECOND * 2);
        for is_forward in [true, false] {
            lab.change(0, is_forward, "5mbit");
        }
        lab.longest_stall(SECOND * 3);
        let rate = lab.rate(SECOND * 2);
        assert!(rate > 3_000_000.0, "{name}: {rate}");
        lab.assert_clean();
    });
}

/// Fault F69: both links are down in turn.
#[test]
fn links_that_flap_in_turn_carry_a_transfer() {
    for_all(1..3, |name, mut lab| {
        lab.longest_stall(SECOND);
        for turn in 0..6 {
            lab.kill(turn % 2);
            let stall = lab.longest_stall(SECOND * 2);
            lab.revive(turn % 2);
            assert!(stall <= SECOND + MS * 500, "{name}, turn {turn}: {stall:?}");
        }
        assert!(
            lab.newest() <= PathId::new(4),
            "no path is given up needlessly"
        );
        lab.assert_clean();
    });
}
