use super::*;
use crate::Probability;

fn share(percent: u32) -> Probability {
    Probability::from_percent(percent)
}

/// Returns the number of lost packets, the number of bursts and the length of the longest burst.
fn run(rule: Gilbert, packets: u64) -> (u64, u64, u64) {
    let mut channel = Channel::new(rule, 9, 0);
    let (mut lost, mut bursts, mut row, mut longest) = (0, 0, 0, 0);
    for index in 1..=packets {
        if channel.drops(index) {
            lost += 1;
            bursts += u64::from(row == 0);
            row += 1;
            longest = longest.max(row);
        } else {
            row = 0;
        }
    }
    (lost, bursts, longest)
}

#[test]
fn burst_length_follows_the_probability_of_recovery() {
    let rule = Gilbert {
        to_bad: share(1),
        to_good: share(20),
        loss_in_bad: Probability::ALWAYS,
        loss_in_good: Probability::NEVER,
    };
    let (lost, bursts, longest) = run(rule, 500_000);
    // Bad for 1 / (1 + 20) of the time, five packets at a time.
    let rate = lost as f64 / 500_000.0;
    assert!((0.045..0.050).contains(&rate), "{rate}");
    let mean = lost as f64 / bursts as f64;
    assert!((4.75..5.25).contains(&mean), "{mean}");
    assert!(longest > 20, "{longest}");
}

#[test]
fn both_states_can_lose_packets() {
    let rule = Gilbert {
        to_bad: share(10),
        to_good: share(10),
        loss_in_bad: share(50),
        loss_in_good: share(2),
    };
    let (lost, ..) = run(rule, 200_000);
    let rate = lost as f64 / 200_000.0;
    assert!((0.252..0.268).contains(&rate), "{rate}");
}

#[test]
fn channel_that_stays_good_loses_nothing() {
    let rule = Gilbert {
        to_bad: Probability::NEVER,
        to_good: share(10),
        loss_in_bad: Probability::ALWAYS,
        loss_in_good: Probability::NEVER,
    };
    assert_eq!(run(rule, 10_000).0, 0);
}
