use super::*;

#[test]
fn segment_limit_matches_a_known_kernel() {
    let limit = segment_limit();
    assert!(
        [1, SMALLEST_LIMIT, LARGEST_LIMIT].contains(&limit),
        "{limit}"
    );
    assert_eq!(segment_limit(), limit);
}

#[test]
fn both_families_agree() {
    let v4 = probe(Ipv4Addr::LOCALHOST.into()).unwrap();
    let v6 = probe(Ipv6Addr::LOCALHOST.into()).unwrap();
    assert_eq!(v4, v6);
}

#[test]
fn probe_from_a_foreign_address_fails() {
    assert!(probe(Ipv4Addr::new(192, 0, 2, 1).into()).is_err());
}
