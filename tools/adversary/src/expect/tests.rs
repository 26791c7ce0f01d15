use std::collections::BTreeMap;

use crate::{Attacker, client_tls};

use super::*;

#[test]
fn missing_and_surplus_reactions_are_differences() {
    let target = "10.0.0.2:443".parse().expect("the address is valid");
    let attacker = Attacker::new(target, client_tls(b"h3"), [1; 32]);
    assert!(Expect::ANY.differences(&attacker).is_empty());
    assert!(Expect::TOLERATED.differences(&attacker).is_empty());
    let expect = Expect::ANY
        .closes(&["H3 0x107"])
        .streams(&[0x33])
        .statuses(&[403]);
    let lines = expect.differences(&attacker);
    assert_eq!(
        lines,
        [
            "no connection was closed with H3 0x107",
            "no stream ended with 0x33",
            "no response had the status 403",
        ]
    );
    let seen = BTreeMap::from([(200, 1), (403, 2)]);
    assert!(expect.differences_of(&seen).is_empty());
    let refused = expect.refused();
    assert_eq!(
        refused.differences_of(&seen),
        ["responses had the status 200"]
    );
    let nothing = Expect::ANY.refused().differences_of(&BTreeMap::new());
    assert_eq!(nothing, ["no request was answered"]);
}
