use super::*;

const CODE: &str = "const MOST: usize = 10; // K01\n#[test]\nfn eleventh_is_refused() {}\n";

/// Returns a tree with one limit, one attack, one fault, one oracle and their code.
fn tree(limit: &str, attack: &str) -> Vec<File> {
    let files = [
        ("crates/a/src/lib.rs", CODE.to_owned()),
        (
            "docs/ATTACKS.md",
            format!("| O1 | no panic | hook |\n{attack}\n"),
        ),
        (
            "docs/FAULTS.md",
            "| F01 | loss | completion | none | n/a: no network |\n".to_owned(),
        ),
        ("docs/LIMITS.md", format!("{limit}\n")),
    ];
    let files = files.into_iter();
    files
        .map(|(path, text)| File::new(path.to_owned(), text))
        .collect()
}

const LIMIT: &str = "| K01 | most | 10 | packets | memory | `a/src/lib.rs::MOST` | `a/src/lib.rs::eleventh_is_refused` |";
const ATTACK: &str = "| A01 | garbage | limit K01 | `a/src/lib.rs::eleventh_is_refused` | held |";

fn problems_of_limit(limit: &str) -> Problems {
    check(&tree(limit, ATTACK))
}

fn problems_of_attack(attack: &str) -> Problems {
    check(&tree(LIMIT, attack))
}

#[test]
fn catalogues_that_agree_with_the_code_are_in_order() {
    assert_eq!(problems_of_limit(LIMIT), Problems::new());
}

#[test]
fn a_value_that_differs_from_the_code_is_reported() {
    assert_eq!(
        problems_of_limit(&LIMIT.replace("| 10 |", "| 11 |")),
        [
            "docs/LIMITS.md:1: K01 states 11 packets for a/src/lib.rs::MOST, which is 11; \
             the code has 10"
        ]
    );
}

#[test]
fn missing_constants_and_tests_are_reported() {
    let limit = LIMIT.replace("MOST", "LEAST").replace("eleventh", "tenth");
    assert_eq!(
        problems_of_limit(&limit),
        [
            "docs/LIMITS.md:1: K01 names a/src/lib.rs::LEAST, which has no such constant",
            "docs/LIMITS.md:1: K01 names the test a/src/lib.rs::tenth_is_refused, which does not \
             exist in this file",
        ]
    );
}

#[test]
fn limits_have_a_default_for_each_constant() {
    let problems = problems_of_limit(&LIMIT.replace("| 10 |", "| 10, 20 |"));
    assert_eq!(
        problems,
        ["docs/LIMITS.md:1: K01 has 1 constants, 2 defaults and 1 units"]
    );
}

#[test]
fn a_limit_without_a_constant_needs_a_reason() {
    let constant = "`a/src/lib.rs::MOST`";
    let designed = LIMIT.replace(constant, "by design: one field of a path");
    assert_eq!(problems_of_limit(&designed), Problems::new());
    let problems = problems_of_limit(&LIMIT.replace(constant, "a field"));
    assert_eq!(
        problems,
        ["docs/LIMITS.md:1: K01 has 0 constants, 1 defaults and 1 units"]
    );
}

#[test]
fn a_limit_without_a_test_names_the_missing_test() {
    let without = LIMIT.replace("`a/src/lib.rs::eleventh_is_refused`", "none");
    assert_eq!(
        problems_of_limit(&without),
        ["docs/LIMITS.md:1: K01 names no test and has no `open: …`"]
    );
    let open = LIMIT.replace("`a/src/lib.rs::eleventh_is_refused`", "open: one more");
    assert_eq!(problems_of_limit(&open), Problems::new());
}

#[test]
fn held_needs_a_test() {
    let attack = "| A01 | garbage | limit K01 | none | held |";
    assert_eq!(
        problems_of_attack(attack),
        ["docs/ATTACKS.md:2: A01 is `held` but names no test"]
    );
}

#[test]
fn open_and_not_applicable_need_a_reason() {
    for status in ["open", "n/a", "open: ", "partly", ""] {
        let attack = format!("| A01 | garbage | limit K01 | none | {status} |");
        let problems = problems_of_attack(&attack);
        assert_eq!(problems.len(), 1, "{status}: {problems:?}");
        assert!(problems[0].contains("allowed are"), "{problems:?}");
    }
    for status in ["open: a flood", "n/a: no such feature"] {
        let attack = format!("| A01 | garbage | limit K01 | none | {status} |");
        assert_eq!(problems_of_attack(&attack), Problems::new(), "{status}");
    }
}

#[test]
fn rows_are_unique_and_have_all_columns() {
    let twice = format!("{ATTACK}\n{ATTACK}");
    assert_eq!(
        problems_of_attack(&twice),
        ["docs/ATTACKS.md:3: A01 already has a row"]
    );
    assert_eq!(
        problems_of_attack("| A01 | garbage | held |"),
        ["docs/ATTACKS.md:2: A01 has 3 columns, not 5"]
    );
}

#[test]
fn a_missing_catalogue_is_reported() {
    let mut files = tree(LIMIT, ATTACK);
    files.retain(|file| file.path != "docs/FAULTS.md");
    assert_eq!(check(&files), ["docs/FAULTS.md: does not exist"]);
}
