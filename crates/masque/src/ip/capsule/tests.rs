use proptest::prelude::*;

use super::*;

fn encoded(capsule: &Capsule) -> Vec<u8> {
    let mut value = Vec::new();
    capsule.encode(&mut value);
    value
}

fn prefix(text: &str) -> Prefix {
    text.parse().unwrap()
}

#[test]
fn capsules_have_the_form_of_the_text() {
    let assign = Capsule::AddressAssign(vec![
        AssignedAddress {
            request: 0,
            prefix: prefix("192.0.2.3"),
        },
        AssignedAddress {
            request: 1,
            prefix: prefix("2001:db8::/64"),
        },
    ]);
    let mut expected = vec![0, 4, 192, 0, 2, 3, 32, 1, 6, 0x20, 0x01, 0x0d, 0xb8];
    expected.extend([0; 12]);
    expected.push(64);
    assert_eq!(encoded(&assign), expected);
    assert_eq!(Capsule::decode(ADDRESS_ASSIGN, &expected), Ok(assign));

    let range = AddressRange::new(
        "198.51.100.2".parse().unwrap(),
        "198.51.100.9".parse().unwrap(),
        Some(17),
    );
    let routes = Capsule::RouteAdvertisement(Routes::new([range.unwrap()]).unwrap());
    let expected = [4, 198, 51, 100, 2, 198, 51, 100, 9, 17];
    assert_eq!(encoded(&routes), expected);
    assert_eq!(Capsule::decode(ROUTE_ADVERTISEMENT, &expected), Ok(routes));
    assert_eq!(
        Capsule::decode(ADDRESS_ASSIGN, &[]),
        Ok(Capsule::AddressAssign(vec![]))
    );
    let none = Capsule::RouteAdvertisement(Routes::default());
    assert_eq!(Capsule::decode(ROUTE_ADVERTISEMENT, &[]), Ok(none));
}

/// MQ-ip-007, MQ-ip-008, MQ-ip-009.
#[test]
fn malformed_capsules_are_refused() {
    let address = "10.0.0.1".parse().unwrap();
    for (kind, value, expected) in [
        (
            ADDRESS_ASSIGN,
            vec![0, 5, 10, 0, 0, 1, 32],
            CapsuleError::Version(5),
        ),
        (
            ADDRESS_ASSIGN,
            vec![0, 4, 10, 0, 0, 1, 33],
            CapsuleError::PrefixLength(33, address),
        ),
        (
            ADDRESS_ASSIGN,
            vec![0, 4, 10, 0, 0, 1, 31],
            CapsuleError::HostBits(31, address),
        ),
        (
            ADDRESS_ASSIGN,
            vec![0, 6, 10, 0, 0, 1, 31],
            CapsuleError::Truncated,
        ),
        (ADDRESS_REQUEST, vec![], CapsuleError::NoRequest),
        (
            ADDRESS_REQUEST,
            vec![0, 4, 0, 0, 0, 0, 32],
            CapsuleError::ZeroRequest,
        ),
        (ROUTE_ADVERTISEMENT, vec![0; 10], CapsuleError::Version(0)),
    ] {
        assert_eq!(Capsule::decode(kind, &value), Err(expected), "{value:?}");
        assert_eq!(expected.code(), Code::MESSAGE_ERROR);
    }
    let reversed = [4, 10, 0, 0, 2, 10, 0, 0, 1, 0];
    let error = Capsule::decode(ROUTE_ADVERTISEMENT, &reversed).expect_err("reversed");
    assert!(matches!(
        error,
        CapsuleError::Range(InvalidRange::Reversed(..))
    ));
}

#[test]
fn capsules_that_are_cut_are_refused() {
    let mut assign = vec![0, 4, 10, 0, 0, 1, 32, 0xc0, 0, 0, 0, 0, 0, 0, 9, 6];
    assign.extend([1; 16]);
    assign.push(128);
    let routes = [
        [4, 10, 0, 0, 1, 10, 0, 0, 1, 0],
        [4, 10, 0, 0, 2, 10, 0, 0, 2, 0],
    ]
    .concat();
    for (kind, value, whole) in [
        (ADDRESS_ASSIGN, assign, vec![0, 7]),
        (ROUTE_ADVERTISEMENT, routes, vec![0, 10]),
    ] {
        assert!(Capsule::decode(kind, &value).is_ok());
        for len in 0..value.len() {
            let found = Capsule::decode(kind, &value[..len]);
            let expected = whole.contains(&len);
            assert_eq!(found.is_ok(), expected, "{kind} {len}");
            assert!(expected || found == Err(CapsuleError::Truncated));
        }
    }
}

/// Limit K627, MQ-ip-015, attack A366.
#[test]
fn entries_are_bounded() {
    for (kind, most) in [(ADDRESS_ASSIGN, 32), (ADDRESS_REQUEST, 16)] {
        let entries = |count| [1, 4, 192, 0, 2, 3, 32].repeat(count);
        assert!(Capsule::decode(kind, &entries(most)).is_ok());
        let error = Capsule::decode(kind, &entries(most + 1)).expect_err("too many");
        let expected = (CapsuleError::TooMany(most + 1), Code::EXCESSIVE_LOAD);
        assert_eq!((error, error.code()), expected);
    }
    let ranges = |count: u32| -> Vec<u8> {
        let range = |number: u32| {
            let octets = (2 * number).to_be_bytes();
            [&[4], &octets[..], &octets, &[0]].concat()
        };
        (0..count).flat_map(range).collect()
    };
    assert!(Capsule::decode(ROUTE_ADVERTISEMENT, &ranges(256)).is_ok());
    let error = Capsule::decode(ROUTE_ADVERTISEMENT, &ranges(257)).expect_err("too many");
    assert_eq!(error.code(), Code::EXCESSIVE_LOAD);
}

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|bits| IpAddr::V4(bits.into())),
        any::<u128>().prop_map(|bits| IpAddr::V6(bits.into())),
    ]
}

fn any_prefix() -> impl Strategy<Value = Prefix> {
    (address(), 0_u8..=128).prop_map(|(address, bits)| {
        let most = crate::prefix::width(address);
        let bits = bits.min(most);
        let mask = u128::MAX.checked_shl(u32::from(most - bits)).unwrap_or(0);
        let first = crate::prefix::of_bits(crate::prefix::bits(address) & mask, address);
        Prefix::new(first, bits).unwrap()
    })
}

proptest! {
    #[test]
    fn capsules_survive_their_values(
        entries in prop::collection::vec((1..1_u64 << 62, any_prefix()), 1..16),
        kind in 1_u64..=2,
    ) {
        let entries = entries.into_iter();
        let capsule = match kind {
            1 => Capsule::AddressAssign(entries.map(|(request, prefix)| AssignedAddress { request, prefix }).collect()),
            _ => Capsule::AddressRequest(entries.map(|(request, prefix)| RequestedAddress { request, prefix }).collect()),
        };
        prop_assert_eq!(Capsule::decode(kind, &encoded(&capsule)), Ok(capsule));
    }

    #[test]
    fn any_bytes_are_refused_or_written_the_same(kind in 1_u64..=3, value: Vec<u8>) {
        if let Ok(capsule) = Capsule::decode(kind, &value) {
            prop_assert_eq!(Capsule::decode(kind, &encoded(&capsule)), Ok(capsule));
        }
    }
}
