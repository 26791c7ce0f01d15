use std::net::{Ipv4Addr, UdpSocket};

use super::*;
use crate::finding::Verdict::{self, Bad, Fact, Good, Weak};

fn trial() -> Trial {
    Trial {
        segments: 64,
        sent: (100, 20),
        lost: 0,
        batches: Feature::Used,
        marks: Feature::Used,
        validation: Some(EcnState::Capable),
        datagram: 1452,
    }
}

fn verdicts(trial: Trial) -> [Verdict; 3] {
    let found = check(Path::Host, &Ok(trial));
    let all: Vec<_> = found.iter().map(|it| it.verdict).collect();
    all.try_into().expect("three findings")
}

#[test]
fn states_have_their_findings() {
    assert_eq!(verdicts(trial()), [Good, Good, Good]);
    for (batches, expected) in [
        (Feature::Refused, Fact),
        (Feature::GivenUp, Weak),
        (Feature::Restored, Fact),
    ] {
        let changed = Trial { batches, ..trial() };
        assert_eq!(verdicts(changed), [expected, Good, Good], "{batches:?}");
    }
    let untried = Trial {
        sent: (20, 20),
        ..trial()
    };
    assert_eq!(verdicts(untried), [Fact, Good, Good]);
    for (marks, expected) in [
        (Feature::Refused, Fact),
        (Feature::GivenUp, Weak),
        (Feature::Restored, Fact),
    ] {
        let changed = Trial { marks, ..trial() };
        assert_eq!(verdicts(changed), [Good, expected, Good], "{marks:?}");
    }
    for validation in [None, Some(EcnState::Testing), Some(EcnState::Failed)] {
        let changed = Trial {
            validation,
            ..trial()
        };
        assert_eq!(verdicts(changed), [Good, Fact, Good], "{validation:?}");
    }
    let small = Trial {
        datagram: 1200,
        ..trial()
    };
    assert_eq!(verdicts(small), [Good, Good, Fact]);
}

#[test]
fn state_of_a_feature_follows_the_counters() {
    for (is_refused, is_withheld, given_up, expected) in [
        (false, false, 0, Feature::Used),
        (false, false, 1, Feature::Restored),
        (false, true, 1, Feature::GivenUp),
        // An earlier connection of the endpoint turned the feature off.
        (false, true, 0, Feature::GivenUp),
        (true, false, 0, Feature::Refused),
    ] {
        assert_eq!(Feature::new(is_refused, is_withheld, given_up), expected);
    }
}

#[test]
fn every_finding_of_a_lost_feature_states_the_consequence() {
    let lossy = Trial {
        batches: Feature::GivenUp,
        marks: Feature::GivenUp,
        datagram: 1200,
        lost: 12,
        ..trial()
    };
    for path in [Path::Loopback, Path::Host] {
        for finding in check(path, &Ok(lossy.clone())) {
            let why = finding.why.as_deref().expect("a reason");
            assert!(why.contains("courser"), "{why}");
            assert!(finding.fix.is_some(), "{}", finding.name);
        }
    }
}

#[test]
fn loopback_carries_batches_and_marks() {
    let trial = loopback(Ipv4Addr::LOCALHOST.into()).expect("UDP over loopback");
    assert!(trial.sent.0 > 0, "{trial:?}");
    let most = (2 * BURSTS * BURST / usize::from(SMALLEST)) as u64;
    assert!(
        trial.sent.0 < most,
        "at most the bytes of the bursts: {trial:?}"
    );
    assert_ne!(trial.batches, Feature::GivenUp, "{trial:?}");
    assert_ne!(trial.marks, Feature::GivenUp, "{trial:?}");
    assert!(trial.datagram >= SMALLEST);
}

#[test]
fn unused_port_is_a_note() {
    let unused = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = unused.local_addr().expect("bound");
    drop(unused);
    let trial = towards(address, "localhost");
    let found = check(Path::Host, &trial);
    assert_eq!((found.len(), found[0].verdict), (1, Fact), "{found:?}");
    assert_eq!(check(Path::Loopback, &trial)[0].verdict, Bad);
}
