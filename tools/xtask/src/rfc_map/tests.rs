use super::*;

fn labels(source: &str) -> Vec<String> {
    let all = references(source);
    all.iter()
        .map(|found| format!("{} {}", found.document, found.section.label()))
        .collect()
}

#[test]
fn a_reference_is_found() {
    assert_eq!(labels("/// Doubles. RFC 9002 §6.2.1."), ["RFC 9002 §6.2.1"]);
    assert_eq!(labels("(RFC 9000 §4)"), ["RFC 9000 §4"]);
    assert_eq!(labels("RFC 9000, §18.2"), ["RFC 9000 §18.2"]);
}

#[test]
fn an_rfc_without_a_section_is_no_reference() {
    assert_eq!(
        labels("RFC 9000 says so, and RFC 90 §1, RFC 90000 §1"),
        Vec::<String>::new()
    );
}

#[test]
fn further_sections_belong_to_the_same_rfc() {
    assert_eq!(
        labels("RFC 9000 §7.3, §7.4"),
        ["RFC 9000 §7.3", "RFC 9000 §7.4"]
    );
    assert_eq!(
        labels("RFC 9000 §7 and §8.1"),
        ["RFC 9000 §7", "RFC 9000 §8.1"]
    );
    assert_eq!(
        labels("RFC 9000 §8.1.2–8.1.4"),
        ["RFC 9000 §8.1.2", "RFC 9000 §8.1.4"]
    );
    assert_eq!(
        labels("RFC 9000 §8, RFC 9001 §5"),
        ["RFC 9000 §8", "RFC 9001 §5"]
    );
}

#[test]
fn appendices_are_found() {
    assert_eq!(labels("RFC 9002 appendix B.3"), ["RFC 9002 appendix B.3"]);
    assert_eq!(labels("RFC 9000 §A.2"), ["RFC 9000 appendix A.2"]);
    assert_eq!(labels("RFC 9002 appendix has more"), Vec::<String>::new());
}

#[test]
fn drafts_are_found_with_their_number() {
    assert_eq!(
        labels("// draft-ietf-quic-multipath-21 §3.4"),
        ["draft-ietf-quic-multipath-21 §3.4"]
    );
}

#[test]
fn a_reference_may_span_two_lines() {
    assert_eq!(
        labels("    /// as in RFC\n    /// 9000 §10.1"),
        ["RFC 9000 §10.1"]
    );
    assert_eq!(
        labels("//! RFC 9000\n//! §10.1, §10.2"),
        ["RFC 9000 §10.1", "RFC 9000 §10.2"]
    );
}

#[test]
fn sections_are_in_the_order_of_the_document() {
    let mut sections: Vec<Section> = ["B.1", "10", "2.10", "2", "2.9", "A"]
        .iter()
        .filter_map(|s| Section::parse(s))
        .collect();
    sections.sort();
    let labels: Vec<String> = sections.iter().map(Section::label).collect();
    assert_eq!(
        labels,
        ["§2", "§2.9", "§2.10", "§10", "appendix A", "appendix B.1"]
    );
}

#[test]
fn the_map_keeps_code_and_tests_apart() {
    let files = [
        ("crates/wire/src/varint.rs", "// RFC 9000 §16"),
        (
            "crates/wire/src/varint/tests.rs",
            "// RFC 9000 §16\n// RFC 9000 §16",
        ),
        ("tools/xtask/src/rfc_map.rs", "// RFC 9000 §17"),
        ("README.md", "RFC 9000 §18"),
    ]
    .map(|(path, text)| File::new(path.to_owned(), text.to_owned()));
    assert_eq!(
        render(&collect(&files)),
        format!(
            "{HEAD}\n## RFC 9000\n\n| Section | Code | Tests |\n|---|---|---|\n\
             | §16 | [wire/src/varint.rs](../crates/wire/src/varint.rs) | \
             [wire/src/varint/tests.rs](../crates/wire/src/varint/tests.rs) |\n"
        )
    );
}

#[test]
fn a_document_that_is_out_of_date_is_refused() {
    let map = |source: &str| {
        let path = "crates/wire/src/varint.rs".to_owned();
        render(&collect(&[File::new(path, source.to_owned())]))
    };
    let document = map("// RFC 9000 §16");
    assert_eq!(compare(&document, &map("// RFC 9000 §16")), Ok(()));
    for source in ["// RFC 9000 §16, §17", "// RFC 9000 §17", ""] {
        let problems = compare(&document, &map(source));
        assert_eq!(
            problems,
            Err(vec![
                "docs/rfc-map.md is out of date; run `cargo xtask rfc-map`".to_owned()
            ]),
            "{source}"
        );
    }
    assert!(compare("", &document).is_err());
}
