use super::*;
use crate::finding::Verdict::{self, Bad, Fact, Good, Unknown, Weak};
use crate::probe::facts::{
    AddressChange, Announced, AnnouncedOutcome, Chain, Exchange, FirstConnection, Parameters,
    Priorities, Refusal, ResumedConnection, Settings, SmallFirstFlight,
};
use crate::probe::report::{Grade, Report};
use crate::probe::steps::versions::version_name;

/// Has the server announce another port.
fn announce(facts: &mut Facts, outcome: AnnouncedOutcome) {
    facts.announced = Some(Announced {
        place: ":8443".to_owned(),
        outcome,
    });
}

/// Returns the observations of a server without a fault.
fn perfect() -> Facts {
    let followed = Some(AddressChange {
        survived: true,
        validated: true,
    });
    let first = FirstConnection {
        handshake_ms: 20.0,
        rtt_ms: 9.5,
        version: 1,
        protocol: "h3".to_owned(),
        group: "X25519MLKEM768".to_owned(),
        suite: "Aes128Gcm".to_owned(),
        early_bytes: [2400, 3000],
        chain: Some(Chain {
            bytes: 2000,
            certificates: 2,
            in_order: 2,
            days_left: 60,
            key: "ECDSA".to_owned(),
            names: vec!["a.test".to_owned()],
            ..Chain::default()
        }),
        parameters: Some(Parameters {
            max_idle_timeout_ms: 30_000,
            initial_max_data: 1 << 20,
            initial_max_streams_bidi: 100,
            ..Parameters::default()
        }),
        ecn: Some("Capable".to_owned()),
        marks: [10, 0],
        greased: [10, 0],
        spins: [0, 1],
        mtu: (1452, true),
        spare: [3, 1],
        exchange: Some(Ok(Exchange {
            head: true,
            status: Some(200),
            header_bytes: Some([60, 12]),
            settings: Some(Settings::default()),
            priorities: Priorities::Honoured,
            ..Exchange::default()
        })),
        rebinding: followed,
        ..FirstConnection::default()
    };
    Facts {
        host: "a.test".to_owned(),
        address: ([192, 0, 2, 1], 443).into(),
        handshakes: 6,
        first: Ok(first),
        versions: Some(vec![1, 0x6b33_43cf, 0x0a1a_2a3a]),
        version2: Some(Ok(0x6b33_43cf)),
        resumed: Some(Ok(ResumedConnection {
            resumed: true,
            early_data: "accepted".to_owned(),
            early_status: Some(200),
            handshake_ms: 19.0,
            key_update: Some(true),
            migration: followed,
            ..ResumedConnection::default()
        })),
        small: Some(Ok(SmallFirstFlight {
            early_bytes: [1200, 3600],
            ..SmallFirstFlight::default()
        })),
        unknown_alpn: Some(Refusal::Code(0x178)),
        tcp: Some(Ok(Some("h3=\":443\"".to_owned()))),
        https_record: Some(Ok(vec!["h3".to_owned()])),
        announced: None,
    }
}

fn first(facts: &mut Facts) -> &mut FirstConnection {
    facts.first.as_mut().expect("a handshake")
}

fn resumed(facts: &mut Facts) -> &mut ResumedConnection {
    facts
        .resumed
        .as_mut()
        .expect("tried")
        .as_mut()
        .expect("resumed")
}

fn exchange(facts: &mut Facts) -> &mut Exchange {
    first(facts)
        .exchange
        .as_mut()
        .expect("tried")
        .as_mut()
        .expect("answered")
}

fn verdict(facts: &Facts, name: &str) -> Verdict {
    let found = judge(facts);
    let aspect = found.iter().find(|aspect| aspect.name == name);
    aspect
        .unwrap_or_else(|| panic!("{name} in {found:?}"))
        .verdict
}

#[test]
fn server_without_faults_has_all_points() {
    let report = Report::new(perfect());
    assert_eq!(
        (report.grade, report.points, report.exit_code()),
        (Grade::A, 100, 0),
        "{report}"
    );
    assert!(report.reasons().is_empty());
    assert!(
        report
            .aspects
            .iter()
            .all(|it| matches!(it.verdict, Good | Fact)),
        "{report}"
    );
}

/// The name of an aspect, the expected verdict on it, and a fault.
type Case = (&'static str, Verdict, fn(&mut Facts));

/// Judges a server once for each fault.
fn check(cases: &[Case]) {
    for (index, (name, expected, change)) in cases.iter().enumerate() {
        let mut facts = perfect();
        change(&mut facts);
        assert_eq!(verdict(&facts, name), *expected, "case {index}, {name}");
        let costs = matches!(expected, Weak | Bad);
        assert_eq!(
            Report::new(facts).points < 100,
            costs,
            "case {index}, {name}"
        );
    }
}

#[test]
fn faults_of_handshake_and_certificate_have_their_verdicts() {
    check(&[
        ("version negotiation", Weak, |it| it.versions = None),
        ("version 2", Fact, |it| it.version2 = Some(Ok(1))),
        ("version 2", Bad, |it| {
            it.version2 = Some(Err("closed".to_owned()))
        }),
        ("unknown protocol", Weak, |it| {
            it.unknown_alpn = Some(Refusal::Code(0x128))
        }),
        ("unknown protocol", Weak, |it| {
            it.unknown_alpn = Some(Refusal::Other("late".to_owned()))
        }),
        ("unknown protocol", Bad, |it| {
            it.unknown_alpn = Some(Refusal::Accepted)
        }),
        ("Retry", Fact, |it| first(it).retry = true),
        ("Retry", Weak, |it| {
            first(it).retry = true;
            resumed(it).retry = true;
        }),
        ("key exchange", Weak, |it| {
            first(it).group = "X25519".to_owned()
        }),
        ("certificate", Bad, |it| {
            first(it).chain.as_mut().expect("a chain").distrust = Some("expired".to_owned());
        }),
        ("certificate", Weak, |it| {
            first(it).chain.as_mut().expect("a chain").days_left = 4
        }),
        ("certificate", Weak, |it| {
            first(it).chain.as_mut().expect("a chain").in_order = 1
        }),
        ("certificate chain", Weak, |it| {
            first(it).chain.as_mut().expect("a chain").bytes = 3001
        }),
    ]);
}

#[test]
fn faults_of_resumption_and_limits_have_their_verdicts() {
    check(&[
        ("three times", Bad, |it| {
            first(it).exceeds_three_times = true
        }),
        ("three times", Bad, |it| {
            it.small = Some(Ok(SmallFirstFlight {
                exceeds_three_times: true,
                ..SmallFirstFlight::default()
            }));
        }),
        ("resumption", Weak, |it| resumed(it).resumed = false),
        ("resumption", Bad, |it| {
            it.resumed = Some(Err("closed".to_owned()))
        }),
        ("0-RTT", Weak, |it| {
            resumed(it).early_data = "rejected".to_owned()
        }),
        ("0-RTT", Fact, |it| {
            resumed(it).early_data = "none".to_owned()
        }),
        ("first limits", Weak, |it| {
            first(it)
                .parameters
                .as_mut()
                .expect("known")
                .initial_max_data = 0
        }),
        ("idle timeout", Weak, |it| {
            first(it)
                .parameters
                .as_mut()
                .expect("known")
                .max_idle_timeout_ms = 5000;
        }),
    ]);
}

#[test]
fn faults_of_path_and_requests_have_their_verdicts() {
    check(&[
        ("ECN", Weak, |it| first(it).ecn = Some("Failed".to_owned())),
        ("ECN", Unknown, |it| first(it).ecn = None),
        ("path MTU", Weak, |it| first(it).mtu = (1200, true)),
        ("path MTU", Unknown, |it| first(it).mtu = (1200, false)),
        ("key update", Bad, |it| resumed(it).key_update = Some(false)),
        ("rebinding", Bad, |it| {
            first(it).rebinding = Some(AddressChange::default())
        }),
        ("rebinding", Bad, |it| {
            first(it).rebinding = Some(AddressChange {
                survived: true,
                validated: false,
            });
        }),
        ("migration", Weak, |it| {
            resumed(it).migration = Some(AddressChange::default())
        }),
        ("migration", Fact, |it| {
            first(it)
                .parameters
                .as_mut()
                .expect("known")
                .disable_active_migration = true;
        }),
        ("request", Weak, |it| exchange(it).head = false),
        ("priorities", Weak, |it| {
            exchange(it).priorities = Priorities::Ignored
        }),
        ("announced port", Weak, |it| {
            announce(it, AnnouncedOutcome::Failed("no answer".to_owned()))
        }),
        ("announced port", Good, |it| {
            announce(it, AnnouncedOutcome::Answers)
        }),
        ("announced port", Fact, |it| {
            announce(it, AnnouncedOutcome::Examined)
        }),
        ("announced port", Unknown, |it| {
            announce(it, AnnouncedOutcome::NotContacted)
        }),
        ("alt-svc", Fact, |it| it.tcp = Some(Ok(None))),
        ("alt-svc", Weak, |it| {
            (it.tcp, it.https_record) = (Some(Ok(None)), Some(Ok(Vec::new())));
        }),
    ]);
}

#[test]
fn skipped_steps_are_unknown_and_cost_no_points() {
    let mut facts = perfect();
    (facts.version2, facts.resumed, facts.unknown_alpn) = (None, None, None);
    (facts.small, facts.tcp, facts.https_record) = (None, None, None);
    first(&mut facts).rebinding = None;
    let report = Report::new(facts);
    assert_eq!(report.points, 100, "{report}");
    for name in [
        "version 2",
        "resumption",
        "unknown protocol",
        "rebinding",
        "migration",
        "alt-svc",
    ] {
        assert_eq!(verdict(&report.facts, name), Unknown, "{name}");
    }
}

#[test]
fn unreachable_server_is_one_line_with_the_worst_grade() {
    let mut facts = perfect();
    facts.first = Err("no answer".to_owned());
    let report = Report::new(facts);
    assert_eq!((report.grade, report.exit_code()), (Grade::F, 4));
    assert_eq!(report.to_string(), "a.test: no answer");
}

#[test]
fn reasons_are_sorted_by_points() {
    let mut facts = perfect();
    facts.versions = None;
    first(&mut facts).exceeds_three_times = true;
    let report = Report::new(facts);
    let names: Vec<_> = report.reasons().iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["three times", "version negotiation"]);
    assert_eq!((report.points, report.grade), (70, Grade::C));
    assert!(
        report.to_string().contains("-25  three times: an attacker"),
        "{report}"
    );
}

#[test]
fn page_and_json_have_all_aspects() {
    let mut facts = perfect();
    first(&mut facts).protocol = "<h3>".to_owned();
    let report = Report::new(facts);
    let (html, json) = (report.to_html(), report.to_json());
    for aspect in &report.aspects {
        assert!(
            html.contains(&*aspect.name) && json.contains(&*aspect.name),
            "{}",
            aspect.name
        );
    }
    assert!(!html.contains("<h3>"), "text of a server is escaped");
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value["grade"], "A");
    assert_eq!(value["facts"]["unknown_alpn"]["code"], 0x178);
}

#[test]
fn versions_have_names() {
    for (version, expected) in [
        (1, "v1"),
        (0x6b33_43cf, "v2"),
        (0xff00_001d, "draft-29"),
        (0x1a2a_3a4a, "reserved"),
        (0x5130_3530, "0x51303530"),
    ] {
        assert_eq!(version_name(version), expected);
    }
}
