use std::net::Ipv4Addr;

use courser_base::ScopedIp;

use super::*;

const NO_DELAY: Duration = Duration::ZERO;

/// Returns limits at which so many handshakes hold too much memory.
fn half_open_limit(count: u64) -> HandshakeLimits {
    HandshakeLimits {
        max_half_open_bytes: count * HANDSHAKE_BYTES,
        ..HandshakeLimits::default()
    }
}

fn no_handshakes(limits: HandshakeLimits) -> Handshakes {
    Handshakes::new(limits, [1; 16])
}

/// Returns a client of a site of its own.
const fn claim(site: u8, is_validated: bool) -> Claimant {
    Claimant {
        address: ScopedIp::new(Ipv4Addr::new(192, site, 2, 1).to_ipv6_mapped(), 0),
        is_validated,
    }
}

const UNVALIDATED: Claimant = claim(1, false);
const VALIDATED: Claimant = claim(2, true);
const OTHER_UNVALIDATED: Claimant = claim(2, false);

/// Returns true if a new client with an empty datagram gets a Retry.
fn sends_retry(handshakes: &mut Handshakes, delay_ms: u64) -> bool {
    handshakes.admit(OTHER_UNVALIDATED, 0, Duration::from_millis(delay_ms)) == LimitVerdict::Retry
}

#[test]
fn clients_wait_below_the_limits() {
    let mut handshakes = no_handshakes(HandshakeLimits::default());
    assert_eq!(
        handshakes.admit(OTHER_UNVALIDATED, 1200, NO_DELAY),
        LimitVerdict::Wait
    );
    assert_eq!(
        handshakes.admit(VALIDATED, 1200, NO_DELAY),
        LimitVerdict::Wait
    );
    handshakes.on_waiting(UNVALIDATED, 1200);
    assert_eq!(
        (handshakes.waiting(), handshakes.waiting_bytes()),
        (1, 1200)
    );
    assert_eq!(handshakes.half_open(), 1);
}

#[test]
fn waiting_connections_have_a_maximum() {
    let mut handshakes = no_handshakes(half_open_limit(1 << 20));
    for waiting in 0..16_384 {
        let unproved = if waiting < 12_288 {
            LimitVerdict::Wait
        } else {
            LimitVerdict::Retry
        };
        assert_eq!(
            handshakes.admit(OTHER_UNVALIDATED, 1200, NO_DELAY),
            unproved,
            "{waiting}"
        );
        assert_eq!(
            handshakes.admit(VALIDATED, 1200, NO_DELAY),
            LimitVerdict::Wait,
            "{waiting}"
        );
        handshakes.on_waiting(UNVALIDATED, 1200);
    }
    assert_eq!(
        handshakes.admit(OTHER_UNVALIDATED, 1200, NO_DELAY),
        LimitVerdict::Retry
    );
    assert_eq!(
        handshakes.admit(VALIDATED, 1200, NO_DELAY),
        LimitVerdict::Ignore
    );
    handshakes.on_refused(UNVALIDATED, 1200);
    assert_eq!(
        handshakes.admit(VALIDATED, 1200, NO_DELAY),
        LimitVerdict::Wait
    );
}

#[test]
fn waiting_bytes_have_a_maximum() {
    let mut handshakes = no_handshakes(HandshakeLimits::default());
    handshakes.on_waiting(UNVALIDATED, (24 << 20) - 1);
    assert_eq!(
        handshakes.admit(OTHER_UNVALIDATED, 1200, NO_DELAY),
        LimitVerdict::Wait
    );
    assert!(
        handshakes.on_waiting_bytes(UNVALIDATED, 1),
        "three quarters"
    );
    assert!(!handshakes.on_waiting_bytes(UNVALIDATED, 1), "one too many");
    assert_eq!(
        handshakes.admit(OTHER_UNVALIDATED, 1200, NO_DELAY),
        LimitVerdict::Retry
    );
    // Eight validated clients of as many networks share the last quarter.
    for low in 10..18 {
        handshakes.on_waiting(claim(low, true), 0);
        let len = if low == 17 { (1 << 20) - 1200 } else { 1 << 20 };
        let kept = handshakes.on_waiting_bytes(claim(low, true), len);
        assert_eq!(
            kept,
            low < 17,
            "{low}: the last one has no share of so much"
        );
    }
    let last = claim(18, true);
    handshakes.on_waiting(last, (1 << 20) - 1200);
    assert_eq!(
        handshakes.admit(VALIDATED, 1200, NO_DELAY),
        LimitVerdict::Wait
    );
    assert_eq!(
        handshakes.admit(VALIDATED, 1201, NO_DELAY),
        LimitVerdict::Ignore
    );
    assert_eq!(handshakes.waiting_bytes(), (32 << 20) - 1200);
}

#[test]
fn one_source_keeps_its_share_of_waiting_bytes() {
    let mut handshakes = no_handshakes(HandshakeLimits::default());
    handshakes.on_waiting(VALIDATED, 24 << 20);
    assert!(
        !handshakes.on_waiting_bytes(VALIDATED, 1),
        "three times the amount left"
    );
    let other = claim(3, true);
    handshakes.on_waiting(other, 0);
    assert!(handshakes.on_waiting_bytes(other, 1200));
}

#[test]
fn stale_handshakes_switch_retry_on() {
    let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
    let mut handshakes = no_handshakes(HandshakeLimits::default());
    for _ in 0..MAX_STALE {
        handshakes.on_waiting(UNVALIDATED, 0);
        handshakes.on_accepted(at(5000), UNVALIDATED, 0);
    }
    handshakes.on_time(at(5900));
    assert!(
        !sends_retry(&mut handshakes, 0),
        "they began within the last second"
    );
    handshakes.on_time(at(6000));
    assert!(sends_retry(&mut handshakes, 0));
    for _ in 0..MAX_STALE / 2 {
        handshakes.on_handshake_ended(UNVALIDATED);
    }
    handshakes.on_time(at(6000));
    assert!(sends_retry(&mut handshakes, 0), "half of them");
    handshakes.on_handshake_ended(UNVALIDATED);
    handshakes.on_time(at(6000));
    assert!(!sends_retry(&mut handshakes, 0));
}

#[test]
fn one_stale_handshake_below_the_limit_is_no_pressure() {
    let mut handshakes = no_handshakes(HandshakeLimits::default());
    for _ in 1..MAX_STALE {
        handshakes.on_waiting(UNVALIDATED, 0);
        handshakes.on_accepted(Time::ZERO, UNVALIDATED, 0);
    }
    handshakes.on_time(Time::from_nanos(60_000_000_000));
    assert!(!sends_retry(&mut handshakes, 0));
}

#[test]
fn long_delay_refuses_further_clients_to_wait() {
    let mut handshakes = no_handshakes(HandshakeLimits::default());
    for _ in 0..MIN_STANDING {
        handshakes.on_waiting(UNVALIDATED, 0);
    }
    let just_before = LONGEST_DELAY - Duration::from_nanos(1);
    assert!(!handshakes.is_too_late(just_before));
    assert!(handshakes.is_too_late(LONGEST_DELAY));
    handshakes.on_refused(UNVALIDATED, 0);
    assert!(
        !handshakes.is_too_late(LONGEST_DELAY),
        "so few clients are delayed on purpose"
    );
}

#[test]
fn many_half_open_connections_switch_retry_on() {
    let mut handshakes = no_handshakes(half_open_limit(128));
    for _ in 0..127 {
        handshakes.on_waiting(UNVALIDATED, 0);
    }
    assert!(!sends_retry(&mut handshakes, 0));
    handshakes.on_waiting(UNVALIDATED, 0);
    assert!(sends_retry(&mut handshakes, 0));
    assert_eq!(
        handshakes.admit(VALIDATED, 0, NO_DELAY),
        LimitVerdict::Wait,
        "its address is proved"
    );
}

#[test]
fn retry_is_switched_off_below_half() {
    let mut handshakes = no_handshakes(half_open_limit(128));
    for _ in 0..128 {
        handshakes.on_waiting(UNVALIDATED, 0);
        handshakes.on_accepted(Time::ZERO, UNVALIDATED, 0);
    }
    assert!(sends_retry(&mut handshakes, 0));
    for left in (64..128).rev() {
        handshakes.on_handshake_ended(UNVALIDATED);
        assert!(sends_retry(&mut handshakes, 0), "{left}");
    }
    handshakes.on_handshake_ended(UNVALIDATED);
    assert!(!sends_retry(&mut handshakes, 0));
    for _ in 63..127 {
        handshakes.on_waiting(UNVALIDATED, 0);
        assert!(!sends_retry(&mut handshakes, 0), "no oscillation");
    }
}

#[test]
fn handshakes_that_wait_for_their_clients_are_no_pressure() {
    let mut handshakes = no_handshakes(HandshakeLimits::default());
    for _ in 0..9_000 {
        handshakes.on_waiting(UNVALIDATED, 1200);
        handshakes.on_accepted(Time::ZERO, UNVALIDATED, 1200);
    }
    assert!(!sends_retry(&mut handshakes, 10_000));
}

#[test]
fn standing_delay_switches_retry_on() {
    let mut handshakes = no_handshakes(HandshakeLimits::default());
    for _ in 0..31 {
        handshakes.on_waiting(UNVALIDATED, 0);
    }
    assert!(
        !sends_retry(&mut handshakes, 5_000),
        "so few clients are no pressure"
    );
    handshakes.on_waiting(UNVALIDATED, 0);
    assert!(!sends_retry(&mut handshakes, 199));
    assert!(sends_retry(&mut handshakes, 200));
    assert!(sends_retry(&mut handshakes, 100), "no oscillation");
    assert!(!sends_retry(&mut handshakes, 99));
    assert!(!sends_retry(&mut handshakes, 199));
}

#[test]
fn accepted_connections_are_half_open_until_their_handshake_ends() {
    let mut handshakes = no_handshakes(HandshakeLimits::default());
    handshakes.on_waiting(UNVALIDATED, 1200);
    assert!(handshakes.on_waiting_bytes(UNVALIDATED, 800));
    handshakes.on_accepted(Time::ZERO, UNVALIDATED, 2000);
    assert_eq!((handshakes.waiting(), handshakes.waiting_bytes()), (0, 0));
    assert_eq!(handshakes.half_open(), 1);
    handshakes.on_handshake_ended(UNVALIDATED);
    assert_eq!(handshakes.half_open(), 0);
}

#[test]
fn limits_of_zero_and_one_are_handled() {
    let mut handshakes = no_handshakes(half_open_limit(1));
    handshakes.on_waiting(UNVALIDATED, 0);
    assert!(sends_retry(&mut handshakes, 0) && handshakes.is_loaded());
    handshakes.on_refused(UNVALIDATED, 0);
    assert!(!sends_retry(&mut handshakes, 0));
    let limits = HandshakeLimits {
        max_waiting: 0,
        ..HandshakeLimits::default()
    };
    assert_eq!(
        no_handshakes(limits).admit(VALIDATED, 1, NO_DELAY),
        LimitVerdict::Ignore
    );
}
