use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

fn list(text: &str) -> Vec<String> {
    let prefixes = AddressPrefix::parse_list(text).expect("a list");
    prefixes.iter().map(ToString::to_string).collect()
}

fn filter(block: &str, allow: &str) -> AddressFilter {
    let parse = |text: &str| AddressPrefix::parse_list(&text.replace(' ', "\n")).expect("a list");
    AddressFilter::new(&parse(block), &parse(allow))
}

fn blocked<'a>(filter: &AddressFilter, addresses: &[&'a str]) -> Vec<&'a str> {
    let is_blocked = |address: &&&str| filter.is_blocked(address.parse().expect("an address"));
    addresses.iter().filter(is_blocked).copied().collect()
}

#[test]
fn lines_are_addresses_prefixes_and_comments() {
    let text = "\
# Documentation
192.0.2.7
2001:db8::/32 # all of it

  10.0.0.0/8\t
::ffff:198.51.100.1
::ffff:198.51.100.128/121
0.0.0.1/32";
    let read = [
        "192.0.2.7/32",
        "2001:db8::/32",
        "10.0.0.0/8",
        "198.51.100.1/32",
        "198.51.100.128/25",
        "0.0.0.1/32",
    ];
    assert_eq!(list(text), read);
    assert_eq!(list(""), [""; 0]);
    assert_eq!(list("0.0.0.0/0\n::/0"), ["0.0.0.0/0", "::/0"]);
}

#[test]
fn invalid_lines_are_reported_with_the_allowed_values() {
    for (line, allowed) in [
        ("example.org", "such as 192.0.2.1"),
        ("192.0.2.256", "such as 192.0.2.1"),
        ("192.0.2.1:443", "such as 192.0.2.1"),
        ("fe80::1%eth0", "such as 192.0.2.1"),
        ("192.0.2.0/33", "0 to 32"),
        ("192.0.2.0/+8", "0 to 32"),
        ("192.0.2.0/", "0 to 32"),
        ("2001:db8::/129", "0 to 128"),
        ("::ffff:192.0.2.0/24", "96 to 128"),
        ("10.1.0.0/8", "'10.0.0.0/8'"),
        ("2001:db8::1/64", "'2001:db8::/64'"),
    ] {
        let text = format!("# first\n192.0.2.1\n{line}\n");
        let error = AddressPrefix::parse_list(&text)
            .expect_err(line)
            .to_string();
        let names_all = error.starts_with("line 3: ") && error.contains(line);
        assert!(names_all && error.contains(allowed), "{line}: {error}");
    }
}

#[test]
fn one_entry_too_many_is_refused() {
    let mut text = "192.0.2.1\n".repeat(MAX_PREFIXES);
    let all = AddressPrefix::parse_list(&text).expect("as many as allowed");
    assert_eq!(AddressFilter::new(&all, &[]).v4.0.len(), 2, "one range");
    text.push_str("192.0.2.1");
    let error = AddressPrefix::parse_list(&text)
        .expect_err("one more")
        .to_string();
    assert!(
        error.contains("1048577") && error.contains("1048576"),
        "{error}"
    );
}

#[test]
fn filter_without_lists_blocks_no_address() {
    let none = AddressFilter::default();
    assert!(none.is_empty());
    assert_eq!(
        blocked(&none, &["0.0.0.0", "255.255.255.255", "::"]),
        [""; 0]
    );
}

#[test]
fn ends_of_prefixes_are_exact() {
    let lists = filter("192.0.2.0/24 2001:db8::/32 255.255.255.255", "");
    let blocked = blocked(
        &lists,
        &[
            "192.0.1.255",
            "192.0.2.0",
            "192.0.2.255",
            "192.0.3.0",
            "::ffff:192.0.2.1",
            "2001:db7:ffff::",
            "2001:db8::",
            "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
            "2001:db9::",
            "255.255.255.254",
            "255.255.255.255",
        ],
    );
    let within = [
        "192.0.2.0",
        "192.0.2.255",
        "::ffff:192.0.2.1",
        "2001:db8::",
        "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
        "255.255.255.255",
    ];
    assert_eq!(blocked, within);
}

#[test]
fn the_longest_prefix_decides() {
    let lists = filter("10.0.0.0/8 10.1.2.0/24", "10.1.0.0/16 10.1.2.3");
    let all = [
        "10.0.0.1", "10.1.0.1", "10.1.2.1", "10.1.2.3", "10.1.2.4", "10.1.3.0", "10.2.0.0",
    ];
    let blocked = blocked(&lists, &all);
    assert_eq!(blocked, ["10.0.0.1", "10.1.2.1", "10.1.2.4", "10.2.0.0"]);
}

#[test]
fn the_same_prefix_in_both_lists_is_allowed() {
    let lists = filter("10.0.0.0/8 192.0.2.1", "10.0.0.0/8");
    assert_eq!(blocked(&lists, &["10.0.0.1", "192.0.2.1"]), ["192.0.2.1"]);
}

#[test]
fn all_but_a_few_networks_can_be_blocked() {
    let lists = filter("0.0.0.0/0 ::/0", "192.0.2.0/24");
    let all = ["192.0.1.0", "192.0.2.9", "255.255.255.255", "::1"];
    let blocked = blocked(&lists, &all);
    assert_eq!(blocked, ["192.0.1.0", "255.255.255.255", "::1"]);
}

/// Returns the verdict of the rule as specified, one prefix after the other.
fn model(address: u32, entries: &[(u32, u8, bool)]) -> bool {
    let containing = entries.iter().filter(|(first, length, _)| {
        let mask = u32::MAX.checked_shl(32 - u32::from(*length)).unwrap_or(0);
        address & mask == first & mask
    });
    let decides = containing.max_by_key(|(_, length, is_blocked)| (*length, !is_blocked));
    decides.is_some_and(|(_, _, is_blocked)| *is_blocked)
}

proptest! {
    #[test]
    fn verdicts_match_a_linear_search(
        // Few different bits, so that prefixes are nested.
        entries in prop::collection::vec((0u32..8, 26u8..=32, any::<bool>()), 0..20),
    ) {
        let entries: Vec<_> = entries.into_iter().map(|(n, length, it)| (n * 7, length, it)).collect();
        let prefixes = |is_blocked: bool| -> Vec<AddressPrefix> {
            let wanted = entries.iter().filter(|entry| entry.2 == is_blocked);
            wanted
                .map(|&(first, length, _)| AddressPrefix {
                    first: first_of(Ipv4Addr::from_bits(first).into(), length),
                    length,
                })
                .collect()
        };
        let filter = AddressFilter::new(&prefixes(true), &prefixes(false));
        for address in (0..100).chain([u32::MAX]) {
            let seen = filter.is_blocked(Ipv4Addr::from_bits(address).into());
            prop_assert_eq!(seen, model(address, &entries), "{}", address);
        }
        let v6 = Ipv6Addr::from_bits(1);
        prop_assert!(!filter.is_blocked(v6.into()));
    }
}
