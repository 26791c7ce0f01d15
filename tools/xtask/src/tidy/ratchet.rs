//! Numbers that may only fall, kept in `docs/ratchet.tsv`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::report::Problems;

/// The path of the table.
pub(super) const TABLE: &str = "docs/ratchet.tsv";

/// A number that a gate counted in one crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Count {
    /// The folder below `crates/`, or the first folder of another path.
    pub(super) folder: String,
    pub(super) gate: String,
    pub(super) count: usize,
    /// The number to reach. At or below it, the table has no row.
    pub(super) aim: usize,
    /// Describes each place that was counted, as `path:line: text`.
    pub(super) places: Vec<String>,
}

impl Count {
    /// Creates the count of a gate with an aim of 0, one for each place.
    pub(super) fn of_places(folder: &str, gate: &str, places: Vec<String>) -> Self {
        Self {
            folder: folder.to_owned(),
            gate: gate.to_owned(),
            count: places.len(),
            aim: 0,
            places,
        }
    }

    fn key(&self) -> Key {
        (self.folder.clone(), self.gate.clone())
    }

    fn has_row(&self) -> bool {
        self.count > self.aim
    }
}

/// Compares the counts with the table. Each difference is a problem, including a lower
/// number.
pub(super) fn check(table: &str, counts: &[Count]) -> Problems {
    let rows = match parse(table) {
        Ok(rows) => rows,
        Err(problems) => return problems,
    };
    let mut problems = Problems::new();
    for count in counts {
        problems.extend(compare(count, rows.get(&count.key())));
    }
    let counted: BTreeSet<Key> = counts.iter().map(Count::key).collect();
    for (folder, gate) in rows.keys().filter(|&key| !counted.contains(key)) {
        problems.push(format!(
            "{TABLE}: {folder} {gate} does not exist any more; {WRITE} removes the row"
        ));
    }
    problems
}

/// Writes the table with the present numbers.
pub(super) fn render(counts: &[Count]) -> String {
    let mut text = HEAD.to_owned();
    let rows: BTreeMap<Key, &Count> = counts.iter().map(|count| (count.key(), count)).collect();
    for ((folder, gate), count) in rows.iter().filter(|(_, count)| count.has_row()) {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{folder}\t{gate}\t{}\t{}", count.count, count.aim);
    }
    text
}

/// Describes each number that differs between two tables. Marks those that rose.
pub(super) fn changes(old: &str, new: &str) -> Vec<String> {
    let (Ok(old), Ok(new)) = (parse(old), parse(new)) else {
        return vec!["the old table cannot be read; every number is new".to_owned()];
    };
    let keys: BTreeSet<&Key> = old.keys().chain(new.keys()).collect();
    let mut lines = Vec::new();
    for key in keys {
        let number = |rows: &Rows| rows.get(key).map(|row| row.count);
        let (before, after) = (number(&old), number(&new));
        if before == after {
            continue;
        }
        let shown = |number: Option<usize>| number.map_or("no row".to_owned(), |n| n.to_string());
        let (folder, gate) = key;
        let mark = if after > before { " (HIGHER)" } else { "" };
        let (before, after) = (shown(before), shown(after));
        lines.push(format!("{folder} {gate}: {before} -> {after}{mark}"));
    }
    lines
}

fn compare(count: &Count, row: Option<&Row>) -> Option<String> {
    let Count {
        folder,
        gate,
        count: now,
        aim,
        ..
    } = count;
    let allowed = row.map_or(*aim, |row| row.count);
    if *now > allowed {
        return Some(format!(
            "{TABLE}: {folder} {gate}: {now} counted, {allowed} allowed; `cargo xtask tidy --list \
             {folder} {gate}` shows them"
        ));
    }
    let row = row?;
    if !count.has_row() {
        return Some(format!(
            "{TABLE}: {folder} {gate}: {now} counted, which reaches the aim; {WRITE} removes the \
             row"
        ));
    }
    if *now < row.count {
        return Some(format!(
            "{TABLE}: {folder} {gate}: {now} counted, the table has {}; {WRITE} writes the lower \
             number",
            row.count
        ));
    }
    (row.aim != *aim).then(|| {
        format!(
            "{TABLE}: {folder} {gate}: the aim is {aim}, the table has {}; {WRITE} corrects it",
            row.aim
        )
    })
}

fn parse(text: &str) -> Result<Rows, Problems> {
    let mut rows = Rows::new();
    let mut problems = Problems::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') || line == HEADER || line.is_empty() {
            continue;
        }
        let row = parse_row(line);
        let is_new = row.is_some_and(|(key, row)| rows.insert(key, row).is_none());
        if !is_new {
            problems.push(format!(
                "{TABLE}:{}: is not a row of its own: `{line}`; {WRITE} writes the table anew",
                index + 1
            ));
        }
    }
    if problems.is_empty() {
        Ok(rows)
    } else {
        Err(problems)
    }
}

fn parse_row(line: &str) -> Option<(Key, Row)> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [folder, gate, count, aim] = columns[..] else {
        return None;
    };
    let row = Row {
        count: count.parse().ok()?,
        aim: aim.parse().ok()?,
    };
    Some(((folder.to_owned(), gate.to_owned()), row))
}

/// Crate and gate.
type Key = (String, String);

type Rows = BTreeMap<Key, Row>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    count: usize,
    aim: usize,
}

const HEADER: &str = "crate\tgate\tcount\taim";

const HEAD: &str = "\
# Numbers that may only fall: see `Gates` in TESTING.md. A number at or below its aim has no row.
# `cargo xtask tidy --write` writes this file, also after a merge conflict.
crate\tgate\tcount\taim
";

const WRITE: &str = "`cargo xtask tidy --write`";

#[cfg(test)]
mod tests {
    use super::*;

    fn count(gate: &str, count: usize, aim: usize) -> Count {
        Count {
            folder: "wire".to_owned(),
            gate: gate.to_owned(),
            count,
            aim,
            places: Vec::new(),
        }
    }

    fn table(rows: &[&str]) -> String {
        let rows: Vec<String> = rows.iter().map(|row| row.replace(' ', "\t")).collect();
        format!("{HEAD}{}\n", rows.join("\n"))
    }

    #[test]
    fn equal_numbers_are_in_order() {
        let counts = [count("a", 3, 0), count("b", 0, 0), count("c", 5, 5)];
        assert_eq!(check(&table(&["wire a 3 0"]), &counts), Problems::new());
    }

    #[test]
    fn a_higher_number_is_refused() {
        let found = check(&table(&["wire a 3 0"]), &[count("a", 4, 0)]);
        assert_eq!(
            found,
            [
                "docs/ratchet.tsv: wire a: 4 counted, 3 allowed; `cargo xtask tidy --list wire a` \
                 shows them"
            ]
        );
    }

    #[test]
    fn a_lower_number_is_refused_until_it_is_written() {
        let counts = [count("a", 2, 0)];
        let found = check(&table(&["wire a 3 0"]), &counts);
        assert_eq!(
            found,
            [
                "docs/ratchet.tsv: wire a: 2 counted, the table has 3; `cargo xtask tidy --write` \
                 writes the lower number"
            ]
        );
        assert_eq!(check(&render(&counts), &counts), Problems::new());
    }

    #[test]
    fn without_a_row_the_aim_is_the_limit() {
        assert_eq!(check(&table(&[]), &[count("a", 1, 0)]).len(), 1);
        assert_eq!(check(&table(&[]), &[count("a", 71, 70)]).len(), 1);
        assert_eq!(check(&table(&[]), &[count("a", 70, 70)]), Problems::new());
    }

    #[test]
    fn rows_that_reach_their_aim_or_count_nothing_are_refused() {
        let found = check(
            &table(&["wire a 3 0", "wire b 9 7", "attic a 1 0"]),
            &[count("a", 0, 0), count("b", 6, 7)],
        );
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("reaches the aim"), "{found:?}");
        assert!(found[1].contains("reaches the aim"), "{found:?}");
        assert!(found[2].contains("does not exist any more"), "{found:?}");
    }

    #[test]
    fn another_aim_is_refused() {
        let found = check(&table(&["wire a 9 7"]), &[count("a", 9, 6)]);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("the aim is 6"), "{found:?}");
    }

    #[test]
    fn conflicts_and_repeated_rows_are_refused() {
        let found = check(
            &table(&["<<<<<<< ours", "wire a 3 0", "wire a 2 0", "wire b x 0"]),
            &[],
        );
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn rows_are_written_in_order_without_those_that_reach_their_aim() {
        let counts = [count("b", 8, 7), count("a", 1, 0), count("c", 7, 7)];
        assert_eq!(render(&counts), table(&["wire a 1 0", "wire b 8 7"]));
    }

    #[test]
    fn changes_name_numbers_that_rose() {
        let old = table(&["wire a 3 0", "wire b 2 0", "wire c 1 0"]);
        let new = table(&["wire a 2 0", "wire b 3 0", "wire d 1 0"]);
        assert_eq!(
            changes(&old, &new),
            [
                "wire a: 3 -> 2",
                "wire b: 2 -> 3 (HIGHER)",
                "wire c: 1 -> no row",
                "wire d: no row -> 1 (HIGHER)",
            ]
        );
    }
}
