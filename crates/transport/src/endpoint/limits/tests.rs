use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::*;

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

fn v4(bits: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(bits))
}

fn v6(bits: u128) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from_bits(bits))
}

fn limiter(limits: ReplyLimits) -> ReplyLimiter {
    ReplyLimiter::new(limits, [1; 16])
}

/// Returns how many of many simultaneous packets to one address are allowed.
fn burst(limiter: &mut ReplyLimiter, peer: IpAddr, now: Time) -> usize {
    (0..20_000).filter(|_| limiter.allow(peer, now)).count()
}

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

/// Returns a client with an address of its own.
const fn claim(low: u8, is_validated: bool) -> Claim {
    Claim {
        address: ScopedIp::new(Ipv4Addr::new(192, 0, low, 1).to_ipv6_mapped(), 0),
        is_validated,
    }
}

const SOMEBODY: Claim = claim(1, false);
const VALIDATED: Claim = claim(2, true);
const STRANGER: Claim = claim(2, false);

/// Returns true if a new client with an empty datagram gets a Retry.
fn sends_retry(handshakes: &mut Handshakes, delay_ms: u64) -> bool {
    handshakes.admit(STRANGER, 0, Duration::from_millis(delay_ms)) == Admission::Retry
}

#[test]
fn clients_wait_while_there_is_room() {
    let mut handshakes = no_handshakes(HandshakeLimits::default());
    assert_eq!(handshakes.admit(STRANGER, 1200, NO_DELAY), Admission::Wait);
    assert_eq!(handshakes.admit(VALIDATED, 1200, NO_DELAY), Admission::Wait);
    handshakes.on_waiting(SOMEBODY, 1200);
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
            Admission::Wait
        } else {
            Admission::Retry
        };
        assert_eq!(
            handshakes.admit(STRANGER, 1200, NO_DELAY),
            unproved,
            "{waiting}"
        );
        assert_eq!(
            handshakes.admit(VALIDATED, 1200, NO_DELAY),
            Admission::Wait,
            "{waiting}"
        );
        handshakes.on_waiting(SOMEBODY, 1200);
    }
    assert_eq!(handshakes.admit(STRANGER, 1200, NO_DELAY), Admission::Retry);
    assert_eq!(
        handshakes.admit(VALIDATED, 1200, NO_DELAY),
        Admission::Ignore
    );
    handshakes.on_refused(SOMEBODY, 1200);
    assert_eq!(handshakes.admit(VALIDATED, 1200, NO_DELAY), Admission::Wait);
}

#[test]
fn waiting_bytes_have_a_maximum() {
    let mut handshakes = no_handshakes(HandshakeLimits::default());
    handshakes.on_waiting(SOMEBODY, (24 << 20) - 1);
    assert_eq!(handshakes.admit(STRANGER, 1200, NO_DELAY), Admission::Wait);
    assert!(handshakes.on_waiting_bytes(SOMEBODY, 1), "three quarters");
    assert!(!handshakes.on_waiting_bytes(SOMEBODY, 1), "one too many");
    assert_eq!(handshakes.admit(STRANGER, 1200, NO_DELAY), Admission::Retry);
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
    assert_eq!(handshakes.admit(VALIDATED, 1200, NO_DELAY), Admission::Wait);
    assert_eq!(
        handshakes.admit(VALIDATED, 1201, NO_DELAY),
        Admission::Ignore
    );
    assert_eq!(handshakes.waiting_bytes(), (32 << 20) - 1200);
}

#[test]
fn one_source_keeps_its_share_of_waiting_bytes() {
    let mut handshakes = no_handshakes(HandshakeLimits::default());
    handshakes.on_waiting(VALIDATED, 24 << 20);
    assert!(
        !handshakes.on_waiting_bytes(VALIDATED, 1),
        "three times what is left"
    );
    let other = claim(3, true);
    handshakes.on_waiting(other, 0);
    assert!(handshakes.on_waiting_bytes(other, 1200));
}

#[test]
fn handshakes_that_do_not_go_on_switch_retry_on() {
    let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
    let mut handshakes = no_handshakes(HandshakeLimits::default());
    for _ in 0..MAX_STALE {
        handshakes.on_waiting(SOMEBODY, 0);
        handshakes.on_accepted(at(5000), SOMEBODY, 0);
    }
    handshakes.on_time(at(5900));
    assert!(!sends_retry(&mut handshakes, 0), "they have begun lately");
    handshakes.on_time(at(6000));
    assert!(sends_retry(&mut handshakes, 0));
    for _ in 0..MAX_STALE / 2 {
        handshakes.on_handshake_ended(SOMEBODY);
    }
    handshakes.on_time(at(6000));
    assert!(sends_retry(&mut handshakes, 0), "half of them");
    handshakes.on_handshake_ended(SOMEBODY);
    handshakes.on_time(at(6000));
    assert!(!sends_retry(&mut handshakes, 0));
}

#[test]
fn one_stale_handshake_too_few_is_no_pressure() {
    let mut handshakes = no_handshakes(HandshakeLimits::default());
    for _ in 1..MAX_STALE {
        handshakes.on_waiting(SOMEBODY, 0);
        handshakes.on_accepted(Time::ZERO, SOMEBODY, 0);
    }
    handshakes.on_time(Time::from_nanos(60_000_000_000));
    assert!(!sends_retry(&mut handshakes, 0));
}

#[test]
fn nobody_waits_behind_clients_that_have_waited_for_too_long() {
    let mut handshakes = no_handshakes(HandshakeLimits::default());
    for _ in 0..MIN_STANDING {
        handshakes.on_waiting(SOMEBODY, 0);
    }
    let just_before = LONGEST_DELAY - Duration::from_nanos(1);
    assert!(!handshakes.is_too_late(just_before));
    assert!(handshakes.is_too_late(LONGEST_DELAY));
    handshakes.on_refused(SOMEBODY, 0);
    assert!(
        !handshakes.is_too_late(LONGEST_DELAY),
        "so few are kept for other reasons"
    );
}

#[test]
fn many_half_open_connections_switch_retry_on() {
    let mut handshakes = no_handshakes(half_open_limit(128));
    for _ in 0..127 {
        handshakes.on_waiting(SOMEBODY, 0);
    }
    assert!(!sends_retry(&mut handshakes, 0));
    handshakes.on_waiting(SOMEBODY, 0);
    assert!(sends_retry(&mut handshakes, 0));
    assert_eq!(
        handshakes.admit(VALIDATED, 0, NO_DELAY),
        Admission::Wait,
        "its address is proved"
    );
}

#[test]
fn retry_is_switched_off_below_half() {
    let mut handshakes = no_handshakes(half_open_limit(128));
    for _ in 0..128 {
        handshakes.on_waiting(SOMEBODY, 0);
        handshakes.on_accepted(Time::ZERO, SOMEBODY, 0);
    }
    assert!(sends_retry(&mut handshakes, 0));
    for left in (64..128).rev() {
        handshakes.on_handshake_ended(SOMEBODY);
        assert!(sends_retry(&mut handshakes, 0), "{left}");
    }
    handshakes.on_handshake_ended(SOMEBODY);
    assert!(!sends_retry(&mut handshakes, 0));
    for _ in 63..127 {
        handshakes.on_waiting(SOMEBODY, 0);
        assert!(!sends_retry(&mut handshakes, 0), "no flapping");
    }
}

#[test]
fn handshakes_that_wait_for_their_clients_are_no_pressure() {
    let mut handshakes = no_handshakes(HandshakeLimits::default());
    for _ in 0..9_000 {
        handshakes.on_waiting(SOMEBODY, 1200);
        handshakes.on_accepted(Time::ZERO, SOMEBODY, 1200);
    }
    assert!(!sends_retry(&mut handshakes, 10_000));
}

#[test]
fn standing_delay_switches_retry_on() {
    let mut handshakes = no_handshakes(HandshakeLimits::default());
    for _ in 0..31 {
        handshakes.on_waiting(SOMEBODY, 0);
    }
    assert!(!sends_retry(&mut handshakes, 5_000), "so few are no queue");
    handshakes.on_waiting(SOMEBODY, 0);
    assert!(!sends_retry(&mut handshakes, 199));
    assert!(sends_retry(&mut handshakes, 200));
    assert!(sends_retry(&mut handshakes, 100), "no flapping");
    assert!(!sends_retry(&mut handshakes, 99));
    assert!(!sends_retry(&mut handshakes, 199));
}

#[test]
fn accepted_connections_are_half_open_until_their_handshake_ends() {
    let mut handshakes = no_handshakes(HandshakeLimits::default());
    handshakes.on_waiting(SOMEBODY, 1200);
    assert!(handshakes.on_waiting_bytes(SOMEBODY, 800));
    handshakes.on_accepted(Time::ZERO, SOMEBODY, 2000);
    assert_eq!((handshakes.waiting(), handshakes.waiting_bytes()), (0, 0));
    assert_eq!(handshakes.half_open(), 1);
    handshakes.on_handshake_ended(SOMEBODY);
    assert_eq!(handshakes.half_open(), 0);
}

#[test]
fn limits_of_zero_and_one_do_not_trip() {
    let mut handshakes = no_handshakes(half_open_limit(1));
    handshakes.on_waiting(SOMEBODY, 0);
    assert!(sends_retry(&mut handshakes, 0) && handshakes.is_loaded());
    handshakes.on_refused(SOMEBODY, 0);
    assert!(!sends_retry(&mut handshakes, 0));
    let limits = HandshakeLimits {
        max_waiting: 0,
        ..HandshakeLimits::default()
    };
    assert_eq!(
        no_handshakes(limits).admit(VALIDATED, 1, NO_DELAY),
        Admission::Ignore
    );
}

#[test]
fn one_address_gets_its_rate_and_not_one_more() {
    for (limits, rate) in [
        (ReplyLimits::STATELESS_RESET, 200),
        (ReplyLimits::HANDSHAKE, 10_000),
    ] {
        let mut limiter = limiter(limits);
        assert_eq!(burst(&mut limiter, v4(0x0a00_0001), at(1000)), rate);
        assert_eq!(burst(&mut limiter, v4(0x0a00_0001), at(1000)), 0);
        // A second later everything is paid.
        assert_eq!(burst(&mut limiter, v4(0x0a00_0001), at(2000)), rate);
    }
}

#[test]
fn rate_holds_over_time() {
    let mut limiter = limiter(ReplyLimits::STATELESS_RESET);
    let allowed = (0..100_000)
        .filter(|&ms| limiter.allow(v4(1), at(ms)))
        .count();
    // One second's worth at once, then 200 a second for 100 s.
    assert!((20_000..=20_200).contains(&allowed), "{allowed}");
}

#[test]
fn addresses_of_one_prefix_share() {
    let mut limiter = limiter(ReplyLimits::STATELESS_RESET);
    let allowed = (0..256u32)
        .filter(|low| limiter.allow(v4(0x0a00_0000 | low), at(0)))
        .count();
    assert_eq!(allowed, 200, "/24");
    let base = 0x2001_0db8_0000_0000_u128 << 64;
    let allowed = (0..256u128)
        .filter(|low| limiter.allow(v6(base | low << 64), at(0)))
        .count();
    assert_eq!(allowed, 200, "/56");
}

#[test]
fn other_prefixes_do_not_suffer() {
    let mut limiter = limiter(ReplyLimits::STATELESS_RESET);
    burst(&mut limiter, v4(0x0a00_0001), at(0));
    assert!(limiter.allow(v4(0x0a00_0101), at(0)));
    let base = 0x2001_0db8_0000_0000_u128 << 64;
    burst(&mut limiter, v6(base), at(0));
    assert!(limiter.allow(v6(base | 0x100 << 64), at(0)));
}

#[test]
fn mapped_addresses_are_those_they_stand_for() {
    let mut limiter = limiter(ReplyLimits::STATELESS_RESET);
    assert_eq!(burst(&mut limiter, v4(0x0a00_0001), at(0)), 200);
    let mapped = IpAddr::V6(Ipv4Addr::from_bits(0x0a00_0002).to_ipv6_mapped());
    assert!(!limiter.allow(mapped, at(0)));
    assert_ne!(Prefix::of(v4(0).into()), Prefix::of(v6(0).into()));
    assert_ne!(Prefix::of(v6(0).into()), Prefix::default());
}

#[test]
fn each_link_is_a_network_of_replies() {
    let mut limiter = limiter(ReplyLimits::STATELESS_RESET);
    let [one, neighbour, elsewhere] = ["[fe80::1%2]:1", "[fe80::2%2]:1", "[fe80::1%3]:1"]
        .map(|address| address.parse::<SocketAddr>().expect(address));
    while limiter.allow(one, at(0)) {}
    assert!(!limiter.allow(neighbour, at(0)));
    assert!(limiter.allow(elsewhere, at(0)));
}

#[test]
fn all_addresses_together_have_a_maximum() {
    for (limits, overall) in [
        (ReplyLimits::STATELESS_RESET, 2000),
        (ReplyLimits::HANDSHAKE, 40_000),
    ] {
        let mut limiter = limiter(limits);
        let allowed = (0..100_000u32)
            .filter(|net| limiter.allow(v4(net << 8), at(0)))
            .count();
        assert_eq!(allowed, overall);
        assert!(!limiter.allow(v4(0xfe00_0000), at(0)));
        assert!(limiter.allow(v4(0xfe00_0000), at(1)));
    }
}

/// Refused packets from forged addresses do not displace the debts of others.
#[test]
fn refused_packets_leave_no_trace() {
    let mut limiter = limiter(ReplyLimits {
        per_prefix: 20,
        overall: 40,
    });
    assert_eq!(burst(&mut limiter, v4(0), at(0)), 20);
    assert_eq!(burst(&mut limiter, v4(1 << 8), at(0)), 20);
    let used = |limiter: &ReplyLimiter| {
        limiter
            .sets
            .iter()
            .flatten()
            .filter(|slot| slot.debt != Debt::default())
            .count()
    };
    for net in 2..50_000u32 {
        assert!(!limiter.allow(v4(net << 8), at(0)));
    }
    assert_eq!(used(&limiter), 2);
}

#[test]
fn table_does_not_grow() {
    let mut limiter = limiter(ReplyLimits {
        per_prefix: 20,
        overall: u32::MAX,
    });
    assert_eq!(limiter.sets.capacity(), 0, "nothing until it is needed");
    for net in 0..100_000u32 {
        limiter.allow(v4(net << 8), at(u64::from(net)));
    }
    assert_eq!(limiter.sets.len() * WAYS, ReplyLimiter::MAX_PREFIXES);
    assert_eq!(limiter.sets.capacity(), SETS);
    assert!(size_of_val(limiter.sets.as_slice()) <= 64 << 10);
}

/// If there are more prefixes at once than slots, a busy one keeps its debt.
#[test]
fn prefix_with_the_least_debt_is_forgotten_first() {
    let mut limiter = limiter(ReplyLimits {
        per_prefix: 20,
        overall: u32::MAX,
    });
    assert_eq!(burst(&mut limiter, v4(0xfe00_0000), at(0)), 20);
    for net in 0..ReplyLimiter::MAX_PREFIXES as u32 * 4 {
        limiter.allow(v4(net << 8), at(0));
    }
    assert!(!limiter.allow(v4(0xfe00_0000), at(0)));
}

#[test]
fn rate_of_zero_forbids() {
    assert!(
        !limiter(ReplyLimits {
            per_prefix: 0,
            overall: 10
        })
        .allow(v4(1), at(0))
    );
    assert!(
        !limiter(ReplyLimits {
            per_prefix: 10,
            overall: 0
        })
        .allow(v4(1), at(0))
    );
}

#[test]
fn clock_that_jumps_is_harmless() {
    let mut limiter = limiter(ReplyLimits::STATELESS_RESET);
    assert_eq!(burst(&mut limiter, v4(1), at(1_000_000)), 200);
    assert_eq!(burst(&mut limiter, v4(1), at(0)), 0, "backwards");
    limiter.allow(v4(1), Time::MAX);
}

#[test]
fn reflecting_services_are_refused() {
    let refused = [
        0, 7, 17, 19, 53, 111, 123, 137, 138, 161, 389, 500, 1900, 3702, 5353, 5355, 11211,
    ];
    for port in 0..=u16::MAX {
        assert_eq!(
            is_refused_port(port),
            refused.contains(&port),
            "port {port}"
        );
    }
    assert!(!is_refused_port(443) && !is_refused_port(4433) && !is_refused_port(50_000));
}
