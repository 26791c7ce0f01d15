use super::*;

fn row(line: usize, rule: &str, package: &str, test: &str) -> Row {
    Row {
        line,
        rule: rule.to_owned(),
        proof: Proof::Test {
            package: package.to_owned(),
            test: test.to_owned(),
        },
    }
}

fn excluded(line: usize, rule: &str, reason: &str) -> Row {
    Row {
        line,
        rule: rule.to_owned(),
        proof: Proof::Excluded(Exclusion::NotApplicable(reason.to_owned())),
    }
}

fn not_built(line: usize, rule: &str, reason: &str) -> Row {
    Row {
        line,
        rule: rule.to_owned(),
        proof: Proof::Excluded(Exclusion::NotBuilt(reason.to_owned())),
    }
}

fn held<const N: usize>(rules: [&'static str; N]) -> State<'static> {
    State {
        held: BTreeSet::from(rules),
        excluded: BTreeMap::new(),
    }
}

fn requirements() -> Requirements {
    requirements::parse(
        "id\trfc\tsection\tlevel\tside\trule\terror\n\
         9000-001\t9000\t2.1\tMUST\tboth-tx\tone\t-\n\
         9000-002\t9000\t2.1\tMUST\tboth-rx\ttwo\t-\n\
         9000-003\t9000\t2.2\tMUST\tserver-rx\tthree\t-\n\
         9002-001\t9002\t5\tMUST\tclient-rx\tfour\t-\n\
         9002-002\t9002\t6\tSHOULD\tproxy\tfive\t-",
    )
    .unwrap()
}

fn tests() -> Tests {
    let list = parse_list("stream::tests::low_bits: test\nspeed: bench\n\n1 test, 1 benchmark\n");
    Tests::from([("courser-transport".to_owned(), list)])
}

#[test]
fn the_mapping_is_read() {
    let text = "rule\tpackage\ttest\n# why\n\n9000-002\tcourser-wire\ta::b\n\
                9002-001\tnot-applicable\tno timers: none\n9002-002\tnot-built\tlater\n";
    assert_eq!(
        parse_mapping(text),
        Ok(vec![
            row(4, "9000-002", "courser-wire", "a::b"),
            excluded(5, "9002-001", "no timers: none"),
            not_built(6, "9002-002", "later"),
        ])
    );
}

#[test]
fn bad_lines_of_the_mapping_are_all_named() {
    let text = "a\tb\tc\na\tb\nx\t\ty\na\tb\tc";
    assert_eq!(
        parse_mapping(text),
        Err(vec![
            "line 2: has 2 columns, not 3".to_owned(),
            "line 3: has an empty column".to_owned(),
            "line 4: repeats an earlier line".to_owned(),
        ])
    );
}

#[test]
fn lists_hold_tests_only() {
    let list = parse_list(
        "a::b: test\nspeed: benchmark\nsrc/lib.rs - varint (line 3): test\n2 tests, 1 benchmark\n",
    );
    let names: Vec<&str> = list.iter().map(String::as_str).collect();
    assert_eq!(names, ["a::b", "src/lib.rs - varint (line 3)"]);
}

#[test]
fn a_sound_mapping_has_no_problem() {
    let mapping = [row(
        1,
        "9000-002",
        "courser-transport",
        "stream::tests::low_bits",
    )];
    let (state, problems) = check(&mapping, &requirements(), &tests());
    assert_eq!(problems, Problems::new());
    assert_eq!(state, held(["9000-002"]));
}

#[test]
fn unknown_rules_tests_and_packages_are_refused_and_prove_nothing() {
    let mapping = [
        row(
            1,
            "9000-999",
            "courser-transport",
            "stream::tests::low_bits",
        ),
        row(2, "9000-002", "courser-transport", "speed"),
        row(3, "9000-002", "courser-wire", "stream::tests::low_bits"),
    ];
    let (state, problems) = check(&mapping, &requirements(), &tests());
    assert_eq!(
        problems,
        [
            "line 1: no rule has the id 9000-999",
            "line 2: courser-transport has no test `speed`",
            "line 3: courser-wire has no test `stream::tests::low_bits`",
        ]
    );
    assert_eq!(state, State::default());
}

#[test]
fn rules_that_do_not_apply_are_counted_apart() {
    let mapping = [
        row(
            1,
            "9000-002",
            "courser-transport",
            "stream::tests::low_bits",
        ),
        excluded(2, "9002-002", "no proxy"),
    ];
    let requirements = requirements();
    let (state, problems) = check(&mapping, &requirements, &tests());
    assert_eq!(problems, Problems::new());
    assert_eq!(
        report(&state, &requirements),
        "RFC 9000  receiver   1 of   2  sender   0 of   1  all   1 of   3 rules mapped,  33 %,   2 without a test,  0 do not apply,  0 not built\n\
         RFC 9002  receiver   0 of   1  all   0 of   1 rules mapped,   0 %,   1 without a test,  1 do not apply,  0 not built\n\
         overall   receiver   1 of   3  sender   0 of   1  all   1 of   4 rules mapped,  25 %,   3 without a test,  1 do not apply,  0 not built\n"
    );
    let ids: Vec<&str> = missing(&state, &requirements)
        .map(|rule| rule.id.as_str())
        .collect();
    assert_eq!(ids, ["9000-001", "9000-003", "9002-001"]);
}

#[test]
fn rules_of_what_is_not_built_are_counted_apart_from_those_that_do_not_apply() {
    let text = "id\trfc\tsection\tlevel\tside\trule\terror\n\
                WT-h3-001\tWT-h3\t3\tMUST\tclient-rx\tone\t-\n\
                WT-h3-002\tWT-h3\t3\tMUST\tclient-tx\ttwo\t-\n\
                WT-h3-003\tWT-h3\t3\tMUST\tboth-rx\tthree\t-";
    let requirements = requirements::parse(text).unwrap();
    let mapping = [
        not_built(1, "WT-h3-001", "later"),
        excluded(2, "WT-h3-002", "never"),
    ];
    let (state, problems) = check(&mapping, &requirements, &Tests::new());
    assert_eq!(problems, Problems::new());
    let counts = "receiver   0 of   1  all   0 of   1 rules mapped,   0 %,   1 without a test,  1 do not apply,  1 not built\n";
    let lines = format!("WT-h3     {counts}overall   {counts}");
    assert_eq!(report(&state, &requirements), lines);
    let texts: Vec<String> = state.excluded.values().map(ToString::to_string).collect();
    assert_eq!(texts, ["is not built: later", "does not apply: never"]);
    assert_eq!(missing(&state, &requirements).count(), 1);
}

#[test]
fn rule_with_a_test_is_not_unbuilt() {
    let test = "stream::tests::low_bits";
    let mapping = [
        not_built(1, "9000-002", "later"),
        row(2, "9000-002", "courser-transport", test),
    ];
    let (state, problems) = check(&mapping, &requirements(), &tests());
    assert_eq!(problems, ["9000-002 has a test and is not built"]);
    assert_eq!(state, held(["9000-002"]));
}

#[test]
fn reason_for_an_unknown_or_tested_rule_is_refused() {
    let mapping = [
        excluded(1, "9000-999", "none"),
        excluded(2, "9000-002", "none"),
        row(
            3,
            "9000-002",
            "courser-transport",
            "stream::tests::low_bits",
        ),
    ];
    let (state, problems) = check(&mapping, &requirements(), &tests());
    assert_eq!(
        problems,
        [
            "line 1: no rule has the id 9000-999",
            "9000-002 has a test and does not apply",
        ]
    );
    assert_eq!(state, held(["9000-002"]));
}

#[test]
fn every_side_is_counted() {
    assert_eq!(
        report(&held(["9000-001", "9000-002"]), &requirements()),
        "RFC 9000  receiver   1 of   2  sender   1 of   1  all   2 of   3 rules mapped,  66 %,   1 without a test,  0 do not apply,  0 not built\n\
         RFC 9002  receiver   0 of   1  proxy   0 of   1  all   0 of   2 rules mapped,   0 %,   2 without a test,  0 do not apply,  0 not built\n\
         overall   receiver   1 of   3  sender   1 of   1  proxy   0 of   1  all   2 of   5 rules mapped,  40 %,   3 without a test,  0 do not apply,  0 not built\n"
    );
}

#[test]
fn missing_names_the_rules_of_every_side_without_a_test() {
    let state = held(["9000-002"]);
    let requirements = requirements();
    let lines: Vec<String> = missing(&state, &requirements).map(missing_line).collect();
    assert_eq!(
        lines,
        [
            "9000-001  §2.1  MUST  both-tx  one\n",
            "9000-003  §2.2  MUST  server-rx  three\n",
            "9002-001  §5  MUST  client-rx  four\n",
            "9002-002  §6  SHOULD  proxy  five\n",
        ]
    );
}

#[test]
fn ignored_tests_are_not_listed() {
    let list = "a::b: test\na::c: test\n\n2 tests, 0 benchmarks\n";
    let ignored = "a::b: test\n\n1 test, 0 benchmarks\n";
    let listed = without(list, ignored);
    assert_eq!(parse_list(&listed), BTreeSet::from(["a::c".to_owned()]));
}

#[test]
fn test_binaries_are_found_by_package() {
    let message = |id: &str, kind: &str, is_test: bool| {
        format!(
            r#"{{"reason":"compiler-artifact","package_id":"path+file:///x/crates/{id}","target":{{"kind":["{kind}"]}},"profile":{{"test":{is_test}}},"executable":"/x/target/a"}}"#
        )
    };
    let found = |line: &str| test_binary(line).map(|(package, _)| package);
    let named = message("http3#courser-http3@0.1.0", "lib", true);
    assert_eq!(found(&named).as_deref(), Some("courser-http3"));
    let plain = message("courser#0.1.0", "test", true);
    assert_eq!(found(&plain).as_deref(), Some("courser"));
    assert_eq!(found(&message("courser#0.1.0", "example", true)), None);
    assert_eq!(found(&message("courser#0.1.0", "bin", false)), None);
    assert_eq!(found("{\"reason\":\"build-finished\"}"), None);
    assert_eq!(found("no JSON"), None);
}
