//! Explanations of transfers whose cause is known.

use courser_trace::explain::Explanation;

use crate::lab::table::{BEGIN, END, markdown, outcomes};

/// The document with the confusion table.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/QLOG.md");

#[test]
fn first_cause_is_the_known_one_in_every_scenario() {
    let outcomes = outcomes();
    assert!(outcomes.len() >= 24);
    let wrong: Vec<_> = outcomes
        .iter()
        .filter(|outcome| outcome.right() < outcome.explanations.len())
        .map(|outcome| {
            let causes = outcome.explanations.iter().map(Explanation::first_cause);
            (outcome.scenario.about, causes.collect::<Vec<_>>())
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    for outcome in &outcomes {
        let about = outcome.scenario.about;
        for explanation in &outcome.explanations {
            let first = &explanation.findings[0];
            assert!(!first.evidence.is_empty(), "{about}: no evidence");
            let mut evidence = first.evidence.iter();
            assert!(
                evidence.all(|it| it.from.line < it.to.line),
                "{about}: {:?}",
                first.evidence
            );
            let shares: f64 = explanation.findings.iter().map(|it| it.seconds).sum();
            let duration = explanation.duration;
            assert!(
                shares <= duration * 1.000_001,
                "{about}: {shares} of {duration}"
            );
        }
    }
    let document = std::fs::read_to_string(DOCUMENT).expect("the document");
    let (_, rest) = document.split_once(BEGIN).expect("a table");
    let (table, _) = rest.split_once(END).expect("the end of the table");
    assert_eq!(
        table.trim(),
        markdown(&outcomes).trim(),
        "run `cargo run -p courser-trace --example confusion`"
    );
}
