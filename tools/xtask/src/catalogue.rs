//! Compares the catalogues of limits, attacks and faults with the code.
//!
//! Every label in a comment has a row. Every row names tests that exist. Every limit has the value
//! that its row states.

mod labels;
mod number;
mod source;
mod table;

use std::collections::BTreeSet;

use crate::report::Problems;
use crate::tree::File;
use number::Value;
use source::Sources;
use table::Row;

/// Returns every contradiction between the catalogues and the code.
pub(crate) fn check(files: &[File]) -> Problems {
    let sources = Sources::new(files);
    let mut problems = Problems::new();
    let mut known = BTreeSet::new();
    for catalogue in CATALOGUES {
        let Some(file) = files.iter().find(|file| file.path == catalogue.path) else {
            problems.push(format!("{}: does not exist", catalogue.path));
            continue;
        };
        for row in table::rows(&file.text, catalogue.letter) {
            let found = if known.insert(row.label.to_owned()) {
                check_row(catalogue, &row, &sources)
            } else {
                vec![format!("{} already has a row", row.label)]
            };
            problems.extend(
                found
                    .iter()
                    .map(|problem| format!("{}:{}: {problem}", catalogue.path, row.line)),
            );
        }
    }
    problems.extend(labels::check(files, &known));
    problems
}

fn check_row(catalogue: &Catalogue, row: &Row<'_>, sources: &Sources<'_>) -> Problems {
    let columns = row.cells.len() + 1;
    if columns != catalogue.columns {
        return vec![format!(
            "{} has {columns} columns, not {}",
            row.label, catalogue.columns
        )];
    }
    match (catalogue.kind, row.cells.as_slice()) {
        (Kind::Limits, [_, default, unit, _, code, test]) => {
            let mut problems = check_limit(row.label, default, unit, code, sources);
            problems.extend(check_tests(row.label, test, sources));
            if table::references(test).is_empty() && !has_reason(test, "open") {
                problems.push(format!("{} names no test and has no `open: …`", row.label));
            }
            problems
        }
        (Kind::Statuses, [.., test, status]) => {
            let mut problems = check_tests(row.label, test, sources);
            problems.extend(check_status(row.label, test, status));
            problems
        }
        _ => Problems::new(),
    }
}

/// Checks that each text in back quotes names a test function that exists.
fn check_tests(label: &str, cell: &str, sources: &Sources<'_>) -> Problems {
    let mut problems = Problems::new();
    for reference in table::references(cell) {
        let found = reference
            .split_once("::")
            .ok_or_else(|| "is not `path::name`".to_owned())
            .and_then(|(path, name)| sources.find_test(path, name));
        if let Err(reason) = found {
            problems.push(format!(
                "{label} names the test {reference}, which {reason}"
            ));
        }
    }
    problems
}

fn check_status(label: &str, test: &str, status: &str) -> Option<String> {
    let has_test = !table::references(test).is_empty();
    if status == "held" {
        return (!has_test).then(|| format!("{label} is `held` but names no test"));
    }
    if has_reason(status, "n/a") || has_reason(status, "open") {
        return None;
    }
    Some(format!(
        "{label} has the status `{status}`, allowed are `held`, `n/a: …` and `open: …`"
    ))
}

/// Returns true for `word: ` followed by a reason.
fn has_reason(cell: &str, word: &str) -> bool {
    cell.strip_prefix(word)
        .and_then(|rest| rest.strip_prefix(": "))
        .is_some_and(|reason| !reason.trim().is_empty())
}

/// Checks that the constants and settings in `code` have the values in `default`, in this order.
fn check_limit(
    label: &str,
    default: &str,
    unit: &str,
    code: &str,
    sources: &Sources<'_>,
) -> Problems {
    let references = table::references(code);
    if references.is_empty() && has_reason(code, "by design") {
        return Problems::new();
    }
    let defaults: Vec<&str> = default.split(", ").collect();
    let units: Vec<&str> = unit.split(", ").collect();
    let units_fit = units.len() == 1 || units.len() == defaults.len();
    if references.len() != defaults.len() || !units_fit {
        return vec![format!(
            "{label} has {} constants, {} defaults and {} units",
            references.len(),
            defaults.len(),
            units.len()
        )];
    }
    let mut problems = Problems::new();
    for (index, (reference, stated)) in references.iter().zip(defaults).enumerate() {
        let unit = units.get(index).copied().unwrap_or(units[0]);
        let Some(stated_value) = number::with_unit(stated, unit) else {
            problems.push(format!(
                "{label}: cannot read the default `{stated} {unit}`"
            ));
            continue;
        };
        match value_of(reference, sources) {
            Err(reason) => problems.push(format!("{label} names {reference}, which {reason}")),
            Ok(value) if value != stated_value => problems.push(format!(
                "{label} states {stated} {unit} for {reference}, which is {stated_value}; \
                 the code has {value}"
            )),
            Ok(_) => {}
        }
    }
    problems
}

fn value_of(reference: &str, sources: &Sources<'_>) -> Result<Value, String> {
    let Some((path, name)) = reference.split_once("::") else {
        return Err("is not `path::NAME`".to_owned());
    };
    sources.find_value(path, name)
}

/// A document and the format of its rows.
struct Catalogue {
    path: &'static str,
    letter: char,
    kind: Kind,
    columns: usize,
}

#[derive(Clone, Copy)]
enum Kind {
    /// Rows of label, limit, default, unit, reason, code and test.
    Limits,
    /// Rows that end with test and status.
    Statuses,
    /// Rows that do not refer to the code.
    Definitions,
}

const CATALOGUES: &[Catalogue] = &[
    Catalogue {
        path: "docs/LIMITS.md",
        letter: 'K',
        kind: Kind::Limits,
        columns: 7,
    },
    Catalogue {
        path: "docs/ATTACKS.md",
        letter: 'A',
        kind: Kind::Statuses,
        columns: 5,
    },
    Catalogue {
        path: "docs/FAULTS.md",
        letter: 'F',
        kind: Kind::Statuses,
        columns: 5,
    },
    Catalogue {
        path: "docs/ATTACKS.md",
        letter: 'O',
        kind: Kind::Definitions,
        columns: 3,
    },
];

#[cfg(test)]
mod tests;
