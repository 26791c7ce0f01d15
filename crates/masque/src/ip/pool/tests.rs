use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn pool(prefixes: &[&str]) -> Pool {
    Pool::new(prefixes.iter().map(|text| text.parse().unwrap()))
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

/// MQ-ip-031, limit K631, attack A363.
#[test]
fn addresses_rest_before_they_are_given_again() {
    let mut pool = pool(&["10.0.0.0/29"]);
    let all: Vec<_> = std::iter::from_fn(|| pool.allocate(true, "alice", at(0))).collect();
    let expected: Vec<Prefix> = ["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"]
        .map(|text| text.parse().unwrap())
        .to_vec();
    assert_eq!(all, expected);
    pool.release(all[3], at(10));
    pool.release(all[1], at(20));
    for (now, expected) in [
        (10, None),
        (69, None),
        (70, Some(all[3])),
        (79, None),
        (80, Some(all[1])),
        (9999, None),
    ] {
        assert_eq!(pool.allocate(true, "bob", at(now)), expected, "{now}");
    }
    assert_eq!(pool.assigned(), 5);
    // What nobody has is not given back.
    pool.release("10.0.0.1".parse().unwrap(), at(0));
    pool.release("192.0.2.1".parse().unwrap(), at(0));
    assert_eq!(pool.allocate(true, "bob", at(99_999)), None);
}

/// MQ-ip-031.
#[test]
fn clients_get_their_own_addresses_back() {
    let mut pool = pool(&["10.0.0.0/24", "2001:db8::/64"]);
    for wanted in ["10.0.0.77", "2001:db8::77"] {
        let wanted: Prefix = wanted.parse().unwrap();
        assert_eq!(pool.allocate_wanted(wanted, "alice", at(0)), Some(wanted));
        assert_eq!(
            pool.allocate_wanted(wanted, "alice", at(0)),
            None,
            "two tunnels"
        );
        pool.release(wanted, at(1));
        assert_eq!(pool.allocate_wanted(wanted, "bob", at(60)), None);
        assert_eq!(pool.allocate_wanted(wanted, "", at(60)), None);
        assert_eq!(pool.allocate_wanted(wanted, "alice", at(2)), Some(wanted));
        pool.release(wanted, at(3));
        assert_eq!(pool.allocate_wanted(wanted, "bob", at(63)), Some(wanted));
    }
    for wanted in [
        "10.0.0.0",
        "10.0.0.1",
        "10.0.0.255",
        "10.0.1.2",
        "10.0.0.0/24",
        "2001:db8::1",
        "::",
    ] {
        assert_eq!(
            pool.allocate_wanted(wanted.parse().unwrap(), "bob", at(0)),
            None,
            "{wanted}"
        );
    }
}

#[test]
fn prefixes_of_ipv6_are_assigned_whole() {
    let mut pool = Pool::with_ipv6_prefixes(
        [
            "2001:db8::/48".parse().unwrap(),
            "10.0.0.0/30".parse().unwrap(),
        ],
        64,
    );
    let given = pool.allocate(false, "alice", at(0)).unwrap();
    assert_eq!(given.to_string(), "2001:db8:0:2::/64");
    let wanted = "2001:db8:0:9::7/128".parse().unwrap();
    assert_eq!(
        pool.allocate_wanted(wanted, "bob", at(0)),
        None,
        "the address is in the middle"
    );
    let wanted = "2001:db8:0:9::/64".parse().unwrap();
    assert_eq!(pool.allocate_wanted(wanted, "bob", at(0)), Some(wanted));
    assert_eq!(pool.router(false), Some("2001:db8::1".parse().unwrap()));
    assert_eq!(
        pool.allocate(true, "alice", at(0)),
        Some("10.0.0.2".parse().unwrap())
    );
    assert_eq!(pool.allocate(true, "alice", at(0)), None);
    let mut single = Pool::new(["192.0.2.7".parse().unwrap()]);
    assert_eq!(single.router(true), None);
    assert_eq!(
        single.allocate(true, "alice", at(0)),
        Some("192.0.2.7".parse().unwrap())
    );
    assert!(single.has(true) && !single.has(false));
    let mut all = Pool::new(["::/0".parse().unwrap(), "0.0.0.0/0".parse().unwrap()]);
    assert_eq!(all.allocate(false, "", at(0)), Some("::2".parse().unwrap()));
    assert_eq!(
        all.allocate(true, "", at(0)),
        Some("0.0.0.2".parse().unwrap())
    );
}

/// Limit K631: clients without names that open and close tunnels fill no memory.
#[test]
fn resting_addresses_are_bounded() {
    let mut pool = pool(&["2001:db8::/64"]);
    let mut given = 0;
    for _ in 0..100_000 {
        if let Some(prefix) = pool.allocate(false, "", at(0)) {
            given += 1;
            pool.release(prefix, at(0));
        }
    }
    assert_eq!(given, MAX_RESTING);
    for _ in 0..100_000 {
        let prefix = pool.allocate(false, "", at(60)).expect("rested");
        pool.release(prefix, at(0));
    }
    assert_eq!(pool.resting.len(), MAX_RESTING);
    assert_eq!(pool.queues[0].len(), MAX_RESTING);
}

proptest! {
    /// MQ-ip-031: against a model.
    #[test]
    fn no_address_has_two_owners(steps in prop::collection::vec((0_u8..4, 0_u8..32, 0_u64..40), 1..200)) {
        let mut pool = pool(&["10.0.0.0/28", "2001:db8::/124"]);
        let mut held: Vec<(Prefix, &str)> = Vec::new();
        let mut given_back: Vec<(Prefix, &str, u64)> = Vec::new();
        let mut now = 0;
        for (kind, number, seconds) in steps {
            now += seconds;
            let owner = ["a", "b", ""][usize::from(number % 3)];
            let found = match kind {
                0 => pool.allocate(number % 2 == 0, owner, at(now)),
                1 => {
                    let wanted: Prefix = format!("10.0.0.{}", number % 16).parse().unwrap();
                    pool.allocate_wanted(wanted, owner, at(now))
                }
                2 if !held.is_empty() => {
                    let (prefix, owner) = held.swap_remove(usize::from(number) % held.len());
                    pool.release(prefix, at(now));
                    given_back.push((prefix, owner, now));
                    None
                }
                _ => None,
            };
            if let Some(prefix) = found {
                prop_assert!(held.iter().all(|(other, _)| *other != prefix));
                let rested = given_back.iter().rev().find(|(old, ..)| *old == prefix);
                let is_rested = rested.is_none_or(|(_, former, since)| {
                    now >= since + 60 || (*former == owner && !owner.is_empty())
                });
                prop_assert!(is_rested, "only a former owner is earlier");
                held.push((prefix, owner));
            }
            prop_assert_eq!(pool.assigned(), held.len());
            let distinct: HashSet<_> = held.iter().map(|(prefix, _)| prefix).collect();
            prop_assert_eq!(distinct.len(), held.len());
        }
    }
}

/// Attack A402.
#[test]
fn clients_that_come_and_go_leave_addresses_for_others() {
    let mut pool = pool(&["10.0.0.0/28", "2001:db8::/124"]);
    for _ in 0..1000 {
        for is_ipv4 in [true, false] {
            let found = pool.allocate(is_ipv4, "mallory", at(0)).expect("the same");
            pool.release(found, at(0));
        }
    }
    let first: Prefix = "10.0.0.2".parse().unwrap();
    let found: Vec<_> = std::iter::from_fn(|| pool.allocate(true, "alice", at(0))).collect();
    assert_eq!(found.len(), 12);
    assert!(!found.contains(&first));
    // A client without a name has nothing of its own.
    pool.release(found[0], at(0));
    assert_eq!(pool.allocate(true, "", at(0)), None);
    assert_eq!(pool.allocate(true, "bob", at(0)), None);
    assert_eq!(pool.allocate(true, "alice", at(1)), Some(found[0]));
    assert_eq!(pool.allocate(true, "mallory", at(2)), Some(first));
    assert_eq!(pool.allocate(true, "alice", at(99)), None);
}
