use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};

use super::*;
use crate::doctor::checks::testing::{Tree, now};
use crate::finding::Verdict::{self, Bad, Fact, Good, Weak};

/// Returns certificates in PEM: a leaf with the given dates and names, its issuer, and the root.
fn chain(from: (i32, u8, u8), until: (i32, u8, u8), names: &[&str]) -> [String; 3] {
    let named = |name: &str, names: &[&str]| {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        params
    };
    let key = || KeyPair::generate().expect("a key");
    let (mut root, mut middle) = (named("root", &[]), named("middle", &[]));
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    middle.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let (root_key, middle_key) = (key(), key());
    let root_pem = root.self_signed(&root_key).expect("a certificate").pem();
    let root = Issuer::new(root, root_key);
    let middle_pem = middle
        .signed_by(&middle_key, &root)
        .expect("a certificate")
        .pem();
    let middle = Issuer::new(middle, middle_key);
    let mut leaf = named("leaf", names);
    leaf.not_before = date_time_ymd(from.0, from.1, from.2);
    leaf.not_after = date_time_ymd(until.0, until.1, until.2);
    let leaf_pem = leaf
        .signed_by(&key(), &middle)
        .expect("a certificate")
        .pem();
    [leaf_pem, middle_pem, root_pem]
}

fn found(pem: &str) -> Vec<Finding> {
    let tree = Tree::new();
    tree.write("/site.pem", pem);
    check(&tree.place("/site.pem"), now())
}

fn verdict(found: &[Finding], check: &str) -> Verdict {
    let finding = found
        .iter()
        .find(|it| it.name == format!("site.pem {check}"));
    finding
        .unwrap_or_else(|| panic!("{check} in {found:?}"))
        .verdict
}

#[test]
fn valid_chain_in_order_has_no_problems() {
    let [leaf, middle, _] = chain((2026, 10, 1), (2027, 1, 1), &["a.test"]);
    let found = found(&(leaf + &middle));
    assert!(found.iter().all(|it| it.verdict == Good), "{found:?}");
    assert_eq!(found[0].saw, "a.test (ECDSA key)");
    assert_eq!(found[1].saw, "valid until 2027-01-01 (36 days left)");
}

#[test]
fn dates_are_compared_with_the_lifetime_of_the_certificate() {
    for (from, until, expected) in [
        ((2026, 10, 1), (2026, 11, 25), Bad),
        ((2026, 11, 27), (2027, 11, 1), Bad),
        ((2026, 9, 1), (2026, 12, 10), Weak),
        ((2026, 1, 1), (2026, 12, 18), Good),
        // Two of six days are left.
        ((2026, 11, 22), (2026, 11, 28), Good),
        ((2026, 11, 22), (2026, 11, 27), Weak),
    ] {
        let [leaf, middle, _] = chain(from, until, &["a.test"]);
        assert_eq!(
            verdict(&found(&(leaf + &middle)), "dates"),
            expected,
            "{until:?}"
        );
    }
}

#[test]
fn order_of_the_chain_is_checked() {
    let [leaf, middle, root] = chain((2026, 10, 1), (2027, 1, 1), &["a.test"]);
    let verdict_of = |pem: String| verdict(&found(&pem), "chain");
    assert_eq!(verdict_of(leaf.clone() + &root + &middle), Bad);
    assert_eq!(verdict_of(leaf.clone()), Weak);
    assert_eq!(verdict_of(leaf + &middle + &root), Fact);
    assert_eq!(verdict_of(root), Fact);
}

#[test]
fn chain_without_names_is_an_error() {
    let [leaf, middle, _] = chain((2026, 10, 1), (2027, 1, 1), &[]);
    assert_eq!(verdict(&found(&(leaf + &middle)), "names"), Bad);
    let names = ["a.test", "b.test", "c.test", "d.test", "e.test", "f.test"];
    let [leaf, ..] = chain((2026, 10, 1), (2027, 1, 1), &names);
    assert!(
        found(&leaf)[0]
            .saw
            .starts_with("a.test, b.test, c.test, d.test and 2 more")
    );
}

#[test]
fn long_chains_exceed_the_first_flight() {
    let names: Vec<_> = (0..150)
        .map(|number| format!("host-{number}.example.test"))
        .collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let [leaf, middle, _] = chain((2026, 10, 1), (2027, 1, 1), &names);
    assert_eq!(verdict(&found(&(leaf + &middle)), "size"), Fact);
}

#[test]
fn files_without_valid_certificates_are_an_error() {
    for pem in [
        "",
        "not PEM",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let found = found(pem);
        assert_eq!((found.len(), found[0].verdict), (1, Bad), "{pem}");
    }
    let absent = check(Path::new("/absent/site.pem"), now());
    assert!(absent[0].saw.contains("/absent/site.pem"), "{absent:?}");
}
