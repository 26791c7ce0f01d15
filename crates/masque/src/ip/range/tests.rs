use proptest::prelude::*;

use super::*;

fn range(start: &str, end: &str, protocol: u8) -> AddressRange {
    let (start, end) = (start.parse().unwrap(), end.parse().unwrap());
    AddressRange::new(start, end, Some(protocol)).unwrap()
}

/// MQ-ip-013.
#[test]
fn ranges_that_are_not_ordered_are_refused() {
    let ordered = [
        range("10.0.0.0", "10.0.0.9", 0),
        range("10.0.0.11", "10.0.0.20", 0),
        range("10.0.0.10", "10.0.0.10", 6),
        range("::1", "::1", 0),
        range("::2", "::2", 17),
    ];
    assert!(Routes::of_ordered(ordered.to_vec()).is_ok());
    for swapped in 0..4 {
        let mut ranges = ordered.to_vec();
        ranges.swap(swapped, swapped + 1);
        let error = Routes::of_ordered(ranges.clone()).expect_err("unordered");
        assert!(matches!(error, InvalidRange::Unordered(_)), "{error}");
        assert_eq!(Routes::new(ranges).expect("sorted").ranges(), ordered);
    }
    let touching = vec![
        range("10.0.0.0", "10.0.0.9", 6),
        range("10.0.0.9", "10.0.0.9", 6),
    ];
    let error = Routes::of_ordered(touching).expect_err("overlap");
    assert!(matches!(error, InvalidRange::Overlap(_)), "{error}");
    let (one, two) = ("10.0.0.2".parse().unwrap(), "10.0.0.1".parse().unwrap());
    assert_eq!(
        AddressRange::new(one, two, None),
        Err(InvalidRange::Reversed(one, two))
    );
    assert!(AddressRange::new(one, "::1".parse().unwrap(), None).is_err());
}

/// MQ-ip-014.
#[test]
fn ranges_of_all_protocols_overlap_those_of_one() {
    for (ranges, is_valid) in [
        (
            vec![
                range("10.0.0.0", "10.0.0.9", 0),
                range("10.0.0.9", "10.0.0.9", 6),
            ],
            false,
        ),
        (
            vec![
                range("10.0.0.5", "10.0.0.9", 0),
                range("10.0.0.0", "10.255.0.0", 6),
            ],
            false,
        ),
        (
            vec![
                range("10.0.0.0", "10.255.0.0", 0),
                range("10.0.0.7", "10.0.0.7", 6),
            ],
            false,
        ),
        (
            vec![
                range("10.0.0.0", "10.0.0.9", 0),
                range("10.0.0.10", "10.0.0.10", 6),
            ],
            true,
        ),
        (
            vec![
                range("10.0.0.0", "10.0.0.9", 6),
                range("10.0.0.0", "10.0.0.9", 17),
            ],
            true,
        ),
        (
            vec![range("::", "::9", 0), range("0.0.0.0", "0.0.0.9", 17)],
            true,
        ),
    ] {
        assert_eq!(Routes::new(ranges.clone()).is_ok(), is_valid, "{ranges:?}");
    }
}

#[test]
fn routes_contain_addresses_of_their_protocols() {
    let routes = Routes::new([
        range("10.0.0.0", "10.0.0.255", 0),
        range("10.0.2.0", "10.0.2.255", 6),
        range("2001:db8::", "2001:db8::ff", 17),
    ])
    .unwrap();
    for (address, protocol, expected) in [
        ("10.0.0.7", 17, true),
        ("10.0.1.7", 17, false),
        ("10.0.2.7", 17, false),
        ("10.0.2.7", 6, true),
        ("10.0.2.7", 1, true),
        ("10.0.2.7", 58, false),
        ("10.0.3.0", 1, false),
        ("2001:db8::7", 17, true),
        ("2001:db8::7", 58, true),
        ("2001:db8::7", 1, false),
        ("2001:db8::100", 17, false),
        ("::ffff:10.0.0.7", 17, false),
    ] {
        let found = routes.contains(address.parse().unwrap(), protocol);
        assert_eq!(found, expected, "{address} {protocol}");
    }
}

#[test]
fn intersections_keep_the_narrower_protocol() {
    let all = Routes::all(true, true);
    let scope = [range("192.0.2.0", "192.0.2.255", 17)];
    let within = all.within(&scope).unwrap();
    assert_eq!(within.ranges(), scope);
    let tcp = Routes::new([range("192.0.2.0", "192.0.2.9", 6)]).unwrap();
    assert_eq!(tcp.within(&scope).unwrap().ranges(), []);
    let some = Routes::new([range("192.0.2.8", "192.0.3.0", 0)]).unwrap();
    assert_eq!(
        some.within(&scope).unwrap().ranges(),
        [range("192.0.2.8", "192.0.2.255", 17)]
    );
}

/// Limit K627.
#[test]
fn ranges_are_bounded() {
    let ranges = |count: u32| -> Vec<_> {
        let address = |number: u32| IpAddr::V4(number.into());
        (0..count)
            .map(|number| AddressRange::from(Prefix::single(address(2 * number))))
            .collect()
    };
    assert!(Routes::new(ranges(256)).is_ok());
    assert_eq!(Routes::new(ranges(257)), Err(InvalidRange::TooMany(257)));
}

#[test]
fn texts_show_prefixes_where_they_can() {
    for (range, text) in [
        (range("10.0.0.0", "10.255.255.255", 0), "10.0.0.0/8"),
        (
            range("10.0.0.0", "10.0.0.2", 6),
            "10.0.0.0-10.0.0.2 protocol 6",
        ),
        (AddressRange::all_ipv6(), "::/0"),
    ] {
        assert_eq!(range.to_string(), text);
    }
}

proptest! {
    #[test]
    fn prefixes_are_the_addresses_of_the_range(start: u32, len in 0_u32..100_000, is_v6: bool) {
        let end = start.saturating_add(len);
        let address = |number: u32| match is_v6 {
            true => IpAddr::V6((u128::from(number) << 90 | u128::from(number)).into()),
            false => IpAddr::V4(number.into()),
        };
        let range = AddressRange::new(address(start), address(end), None).unwrap();
        let prefixes = range.prefixes();
        let most = if is_v6 { 254 } else { 62 };
        prop_assert!(prefixes.len() <= most);
        prop_assert_eq!(prefixes.first().map(Prefix::first), Some(range.start()));
        prop_assert_eq!(prefixes.last().map(Prefix::last), Some(range.end()));
        for pair in prefixes.windows(2) {
            prop_assert_eq!(bits(pair[0].last()) + 1, bits(pair[1].first()));
        }
    }

    #[test]
    fn lookups_agree_with_a_search(
        parts in prop::collection::vec((0_u32..64, 0_u32..8, 0_u8..4, any::<bool>()), 0..12),
        at in 0_u32..80, protocol in 0_u8..4, is_v6: bool,
    ) {
        let address = |number: u32, is_v6: bool| match is_v6 {
            true => IpAddr::V6(u128::from(number).into()),
            false => IpAddr::V4(number.into()),
        };
        let ranges = parts.iter().map(|(start, len, protocol, is_v6)| {
            AddressRange::new(address(*start, *is_v6), address(start + len, *is_v6), Some(*protocol))
        });
        let ranges: Vec<_> = ranges.collect::<Result<_, _>>().unwrap();
        if let Ok(routes) = Routes::new(ranges.clone()) {
            let wanted = address(at, is_v6);
            let found = ranges.iter().any(|range| {
                let fits = range.protocol().is_none_or(|only| only == protocol) || is_icmp(wanted, protocol);
                fits && range.contains(wanted)
            });
            prop_assert_eq!(routes.contains(wanted, protocol), found);
        }
    }
}
