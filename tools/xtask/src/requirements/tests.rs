use super::*;

fn table(rows: &[&str]) -> String {
    let mut text = HEADER.to_owned();
    for row in rows {
        text.push('\n');
        text.push_str(&row.replace('|', "\t"));
    }
    text
}

#[test]
fn a_row_is_read() {
    let text =
        table(&["9000-002|9000|2.1|MUST|both-rx|The two low bits decide|STREAM_STATE_ERROR 0x05"]);
    let requirements = parse(&text).unwrap();
    let requirement = &requirements["9000-002"];
    assert_eq!(requirement.rfc, "9000");
    assert_eq!(requirement.section, "2.1");
    assert_eq!(requirement.level, "MUST");
    assert_eq!(requirement.rule, "The two low bits decide");
    assert_eq!(requirement.bound, "both-rx");
    assert_eq!(requirement.side, Side::Receiver);
}

#[test]
fn every_side_is_read() {
    for (text, side) in [
        ("client-rx", Side::Receiver),
        ("both-tx", Side::Sender),
        ("proxy", Side::Proxy),
        ("origin", Side::Origin),
        ("ua", Side::UserAgent),
    ] {
        let requirements = parse(&table(&[&format!("a|9000|1|MUST|{text}|r|-")])).unwrap();
        assert_eq!(requirements["a"].side, side, "{text}");
    }
}

#[test]
fn bad_rows_are_all_named() {
    let text = table(&[
        "a|9000|1|MUST|both-rx|r|-",
        "short|9000",
        "a|9000|1|MUST|both-rx|r|-",
        "b|9000|1|MUST|somewhere-rx|r|-",
    ]);
    assert_eq!(
        parse(&text),
        Err(vec![
            "line 3: has 2 columns, not 7".to_owned(),
            "line 4: repeats the rule a".to_owned(),
            "line 5: no side is named `somewhere-rx`".to_owned(),
        ])
    );
}

#[test]
fn a_table_without_its_header_is_refused() {
    assert!(parse("a\t9000\t1\tMUST\tboth-rx\tr\t-").is_err());
    assert!(parse("").is_err());
}

#[test]
fn the_table_of_the_repository_is_read() {
    let requirements = parse(include_str!("../../../../docs/requirements.tsv")).unwrap();
    for rfc in [
        "8999", "9000", "9001", "9002", "9110", "9111", "9112", "9113", "9114", "9204", "9297",
        "6265bis",
    ] {
        assert!(
            requirements.values().any(|rule| rule.rfc == rfc),
            "RFC {rfc}"
        );
    }
}
