use std::collections::BTreeSet;

use super::*;

#[test]
fn names_are_unique_and_labels_are_those_of_the_catalogue() {
    let names: BTreeSet<_> = ALL.iter().map(|plan| plan.name).collect();
    assert_eq!(names.len(), ALL.len(), "two attacks have one name");
    for plan in ALL {
        assert!(!plan.labels.is_empty(), "{} has no label", plan.name);
        for label in plan.labels {
            let (kind, number) = label.split_at(1);
            assert!(
                kind == "A" && number.parse::<u32>().is_ok(),
                "{}: {label} is not a label",
                plan.name
            );
        }
    }
}

#[test]
fn attacks_are_found_by_name() {
    assert_eq!(
        find("rapid-reset").map(|plan| plan.labels),
        Some(&["A71"][..])
    );
    assert!(find("rapid_reset").is_none());
}
