//! Reads the rows of Markdown tables.

use super::labels;

/// A row whose first cell is a label.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row<'a> {
    /// The number of the line, counted from 1.
    pub(super) line: usize,
    pub(super) label: &'a str,
    /// The cells after the label.
    pub(super) cells: Vec<&'a str>,
}

/// Returns the rows of all tables in `text` whose labels start with `letter`.
pub(super) fn rows(text: &str, letter: char) -> Vec<Row<'_>> {
    let lines = text.lines().enumerate();
    lines
        .filter_map(|(index, line)| {
            let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
            let mut cells = inner.split('|').map(str::trim);
            let label = cells.next()?;
            let is_ours = labels::is_label(label) && label.starts_with(letter);
            is_ours.then(|| Row {
                line: index + 1,
                label,
                cells: cells.collect(),
            })
        })
        .collect()
}

/// Returns the texts of a cell that are in back quotes.
pub(super) fn references(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rows_with_a_label_count() {
        let text = "| label | name |\n|---|---|\n| K01 | one |\n| K1 | no |\n| A01 | other |\n";
        let found = rows(text, 'K');
        assert_eq!(
            found,
            [Row {
                line: 3,
                label: "K01",
                cells: vec!["one"]
            }]
        );
    }

    #[test]
    fn references_are_in_back_quotes() {
        assert_eq!(
            references("`a.rs::b`, and `c.rs::d`"),
            ["a.rs::b", "c.rs::d"]
        );
        assert!(references("nothing").is_empty());
    }
}
