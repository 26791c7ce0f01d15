use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::rng::Rng;

const DAY: u64 = 24 * 60 * 60;

fn at(seconds: u64) -> SystemSeconds {
    SystemSeconds(seconds)
}

fn token(rng: &mut Rng, issued: u64) -> ValidationToken {
    ValidationToken::new(
        std::net::Ipv4Addr::LOCALHOST.into(),
        courser_wire::Version::V1,
        at(issued),
        rng,
    )
}

#[test]
fn token_is_accepted_once() {
    let mut filter = TokenFilter::new(100, at(1000));
    let token = token(&mut Rng::new([1; 32]), 1000);
    assert!(filter.use_once(&token, at(1001)));
    for _ in 0..10_000 {
        assert!(!filter.use_once(&token, at(1001)));
    }
}

#[test]
fn newest_uses_are_stored_exactly_without_a_filter() {
    let (mut filter, mut rng) = (TokenFilter::new(100, at(0)), Rng::new([1; 32]));
    let tokens: Vec<_> = (0..TokenFilter::MAX_NEWEST)
        .map(|_| token(&mut rng, 0))
        .collect();
    assert!(tokens.iter().all(|token| filter.use_once(token, at(0))));
    assert!(tokens.iter().all(|token| !filter.use_once(token, at(0))));
    assert!(filter.current.words.is_empty());
    assert!(filter.use_once(&token(&mut rng, 0), at(0)), "one more");
    assert_eq!(
        (filter.newest.len(), filter.current.len),
        (TokenFilter::MAX_NEWEST, 1)
    );
    assert!(
        !filter.use_once(&tokens[0], at(0)),
        "the oldest is in the filter"
    );
}

/// Tests the worst case, in which both filters are full.
#[test]
fn fewer_than_one_percent_of_unused_tokens_look_used() {
    let (mut filter, mut rng) = (TokenFilter::new(20_000, at(0)), Rng::new([2; 32]));
    let uses = 2 * 20_000 + TokenFilter::MAX_NEWEST;
    let mut accepted = 0;
    while accepted < uses {
        accepted += usize::from(filter.use_once(&token(&mut rng, 0), at(0)));
        filter.issued_after = None;
    }
    assert_eq!((filter.previous.len, filter.current.len), (20_000, 20_000));
    let is_known =
        |nonce: &Nonce| filter.current.contains(nonce) || filter.previous.contains(nonce);
    let wrong = (0..100_000).filter(|_| is_known(&rng.array())).count();
    assert!(wrong < 1000, "{wrong} of 100000");
    assert!(
        wrong > 300,
        "{wrong} of 100000 is better than theory allows: the test is broken"
    );
}

#[test]
fn memory_is_bounded() {
    let capacity = 1000;
    let (mut filter, mut rng) = (TokenFilter::new(capacity, at(0)), Rng::new([3; 32]));
    let mut most = 0;
    for use_ in 0..20 * capacity as u64 {
        let now = use_ * 20;
        filter.use_once(&token(&mut rng, now), at(now));
        most = most.max(filter.memory());
    }
    let filters = 2 * (capacity * BITS_PER_USE).div_ceil(64) * 8;
    assert!(
        most <= filters + 2 * TokenFilter::MAX_NEWEST * size_of::<Nonce>(),
        "{most}"
    );
}

#[test]
fn default_capacity_takes_the_documented_memory() {
    assert_eq!(
        (TokenFilter::DEFAULT_CAPACITY * BITS_PER_USE).div_ceil(64) * 8,
        96 << 10
    );
}

#[test]
fn used_token_is_refused_for_its_whole_lifetime() {
    let (mut filter, mut rng) = (TokenFilter::new(10_000, at(0)), Rng::new([4; 32]));
    let first = token(&mut rng, 10);
    assert!(filter.use_once(&first, at(10)));
    for minute in 1..=24 * 60 {
        let now = 10 + 60 * minute;
        assert!(filter.use_once(&token(&mut rng, now), at(now)));
        assert!(!filter.use_once(&first, at(now)), "after {minute} minutes");
    }
}

/// A server whose load suits its filters accepts every token for a day.
#[test]
fn filters_below_their_capacity_refuse_no_unused_token() {
    let (mut filter, mut rng) = (TokenFilter::new(10_000, at(0)), Rng::new([4; 32]));
    for minute in 24 * 60..5 * 24 * 60 {
        let now = 60 * minute;
        let age = (minute * 7919) % DAY;
        let is_accepted = filter.use_once(&token(&mut rng, now - age), at(now));
        assert!(is_accepted, "after {minute} minutes, {age} s old");
    }
    assert!(filter.previous.len > 0 && filter.issued_after.is_some());
}

#[test]
fn full_filter_forgets_old_uses_and_refuses_old_tokens() {
    let (mut filter, mut rng) = (TokenFilter::new(100, at(0)), Rng::new([5; 32]));
    let old: Vec<_> = (0..1000).map(|_| token(&mut rng, 0)).collect();
    let unused = token(&mut rng, 0);
    // More uses than both filters and the exact memory hold, half a second apart.
    let (mut accepted, mut now) = (Vec::new(), 0);
    for (index, old) in old.iter().enumerate() {
        now = index as u64 / 2;
        if filter.use_once(old, at(now)) {
            accepted.push(*old);
        }
    }
    // Tokens that the flood may have used and that were dropped are not accepted again.
    assert!(accepted.len() < 600, "{}", accepted.len());
    assert!(
        accepted
            .iter()
            .all(|token| !filter.use_once(token, at(now)))
    );
    assert!(
        !filter.use_once(&unused, at(now)),
        "it may be one of the dropped ones"
    );
    assert!(
        filter.use_once(&token(&mut rng, now), at(now)),
        "new ones are accepted"
    );
}

/// Another server's clock may be ahead, so a token may have been used longer ago than it appears to
/// be issued.
#[test]
fn token_from_the_future_is_not_forgotten_early() {
    let (mut filter, mut rng) = (TokenFilter::new(10, at(1000)), Rng::new([5; 32]));
    let ahead = token(&mut rng, 1010);
    assert!(filter.use_once(&ahead, at(1000)));
    for _ in 0..2 * TokenFilter::MAX_NEWEST {
        filter.use_once(&token(&mut rng, 1011), at(1000));
    }
    assert!(!filter.current.contains(&ahead.nonce) && !filter.previous.contains(&ahead.nonce));
    assert!(!filter.use_once(&ahead, at(1000)));
}

/// Nothing is dropped when the first filter is full, so nothing is refused.
#[test]
fn first_full_filter_refuses_no_old_tokens() {
    let (mut filter, mut rng) = (TokenFilter::new(100, at(5000)), Rng::new([5; 32]));
    for _ in 0..TokenFilter::MAX_NEWEST + 101 {
        filter.use_once(&token(&mut rng, 4000), at(5000));
    }
    assert_eq!((filter.previous.len, filter.current.len), (100, 1));
    assert!(
        filter.use_once(&token(&mut rng, 1), at(5000)),
        "from before a restart"
    );
}

#[test]
fn idle_days_refuse_no_unused_token() {
    let (mut filter, mut rng) = (TokenFilter::new(100, at(0)), Rng::new([6; 32]));
    for day in 1..100 {
        let now = day * 10 * DAY;
        assert!(
            filter.use_once(&token(&mut rng, now - DAY), at(now)),
            "day {day}0"
        );
    }
}

#[test]
fn capacity_of_zero_is_one() {
    let (mut filter, mut rng) = (TokenFilter::new(0, at(0)), Rng::new([7; 32]));
    for now in 0..1000 {
        let token = token(&mut rng, now + 5);
        filter.use_once(&token, at(now));
        assert!(!filter.use_once(&token, at(now)));
    }
}

#[test]
fn nonces_stay_out_of_logs() {
    let mut filter = TokenFilter::new(10, at(0));
    let token = token(&mut Rng::new([8; 32]), 0);
    filter.use_once(&token, at(0));
    assert_eq!(format!("{filter:?}"), "TokenFilter(1 + 0 + 0 uses)");
}

proptest! {
    /// The caller checks expiry. Among tokens that are not expired none is accepted twice, with any
    /// pattern of use and any capacity.
    #[test]
    fn each_token_is_accepted_at_most_once(
        capacity in 1..40usize,
        steps in prop::collection::vec((0..200u64, 0..DAY, 0..400usize), 0..900),
    ) {
        let (mut filter, mut rng) = (TokenFilter::new(capacity, at(DAY)), Rng::new([9; 32]));
        let (mut now, mut known) = (DAY, Vec::new());
        let mut used = HashSet::new();
        for (pause, age, old) in steps {
            now += pause;
            // Up to ten seconds of skew, and up to the maximum age of a token.
            known.push(token(&mut rng, now + 10 - age.min(now)));
            let newest = known[known.len() - 1];
            for token in [newest, known[known.len() - 1 - old.min(known.len() - 1)]] {
                let is_expired = now.saturating_sub(token.issued.0) > DAY;
                if !is_expired && filter.use_once(&token, at(now)) {
                    prop_assert!(used.insert(token.nonce), "accepted twice");
                }
            }
        }
    }
}
