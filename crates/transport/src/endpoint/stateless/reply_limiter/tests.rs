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

#[test]
fn address_gets_exactly_its_rate() {
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
fn rate_applies_over_time() {
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
fn other_prefixes_are_not_affected() {
    let mut limiter = limiter(ReplyLimits::STATELESS_RESET);
    burst(&mut limiter, v4(0x0a00_0001), at(0));
    assert!(limiter.allow(v4(0x0a00_0101), at(0)));
    let base = 0x2001_0db8_0000_0000_u128 << 64;
    burst(&mut limiter, v6(base), at(0));
    assert!(limiter.allow(v6(base | 0x100 << 64), at(0)));
}

#[test]
fn mapped_addresses_equal_their_ipv4_addresses() {
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
fn refused_packets_are_not_counted() {
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
            .filter(|entry| entry.debt != Debt::default())
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
    assert_eq!(limiter.sets.capacity(), 0, "allocated at the first use");
    for net in 0..100_000u32 {
        limiter.allow(v4(net << 8), at(u64::from(net)));
    }
    assert_eq!(limiter.sets.len() * WAYS, ReplyLimiter::MAX_PREFIXES);
    assert_eq!(limiter.sets.capacity(), SETS);
    assert!(size_of_val(limiter.sets.as_slice()) <= 64 << 10);
}

/// If there are more prefixes at once than entries, a busy one keeps its debt.
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
