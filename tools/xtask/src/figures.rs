//! `cargo xtask figures`: copies measured figures from the document that owns them to all others.
//!
//! A figure stands once where its measurement is described. `docs/figures.tsv` names it and the text around
//! it there. Other documents have copies between two comments, which this command writes and `tidy` compares:
//!
//! ```text
//! takes <!-- figure idle-connection -->26.4<!-- end --> KiB
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::report::Problems;
use crate::tree::{self, File};

/// The table of figures: name, document, text before the value, text after it.
const TABLE: &str = "docs/figures.tsv";
const OPEN: &str = "<!-- figure ";
const OPEN_END: &str = " -->";
const CLOSE: &str = "<!-- end -->";

/// Writes the present values into all copies.
pub(crate) fn run(root: &Path) -> Result<(), Problems> {
    let files = tree::files(root)?;
    let (figures, mut problems) = read(&files);
    for file in documents(&files) {
        match rewrite(&file.text, &figures) {
            Ok(text) if text == file.text => {}
            Ok(text) => match fs::write(root.join(&file.path), text) {
                Ok(()) => println!("{}: written", file.path),
                Err(error) => problems.push(format!("{}: {error}", file.path)),
            },
            Err(problem) => problems.push(format!("{}: {problem}", file.path)),
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

/// Returns a problem for each copy that differs from its figure, and for each figure that cannot be read or
/// has no copy.
pub(crate) fn check(files: &[File]) -> Problems {
    let (figures, mut problems) = read(files);
    let mut used = BTreeSet::new();
    for file in documents(files) {
        match rewrite(&file.text, &figures) {
            Ok(text) if text == file.text => {}
            Ok(_) => problems.push(format!(
                "{}: has figures that are out of date; run `cargo xtask figures`",
                file.path
            )),
            Err(problem) => problems.push(format!("{}: {problem}", file.path)),
        }
        used.extend(names(&file.text));
    }
    for name in figures.keys().filter(|name| !used.contains(*name)) {
        problems.push(format!("{TABLE}: no document has a copy of `{name}`"));
    }
    problems
}

/// Returns the documents that may have copies.
fn documents(files: &[File]) -> impl Iterator<Item = &File> {
    files.iter().filter(|file| file.path.ends_with(".md"))
}

/// Reads each figure of the table from the document that owns it.
fn read(files: &[File]) -> (BTreeMap<&str, &str>, Problems) {
    let (mut figures, mut problems) = (BTreeMap::new(), Vec::new());
    let Some(table) = files.iter().find(|file| file.path == TABLE) else {
        return (figures, problems);
    };
    let lines = table.text.lines().filter(|line| !line.starts_with('#'));
    for line in lines.skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [name, document, before, after] = columns[..] else {
            problems.push(format!("{TABLE}: `{line}` does not have four columns"));
            continue;
        };
        match value(files, document, before, after) {
            Ok(value) if figures.insert(name, value).is_none() => {}
            Ok(_) => problems.push(format!("{TABLE}: `{name}` occurs twice")),
            Err(problem) => problems.push(format!("{TABLE}: `{name}`: {problem}")),
        }
    }
    (figures, problems)
}

/// Returns the text between `before` and `after` in a line of `document`.
fn value<'a>(
    files: &'a [File],
    document: &str,
    before: &str,
    after: &str,
) -> Result<&'a str, String> {
    let file = files.iter().find(|file| file.path == document);
    let text = &file.ok_or(format!("there is no {document}"))?.text;
    let mut places = text.match_indices(before);
    let (place, _) = places
        .next()
        .ok_or(format!("{document} has no `{before}`"))?;
    if places.next().is_some() {
        return Err(format!("{document} has `{before}` more than once"));
    }
    let rest = &text[place + before.len()..];
    let line = rest.split('\n').next().unwrap_or(rest);
    match line.split_once(after) {
        Some((value, _)) if !value.is_empty() => Ok(value),
        _ => Err(format!("{document} has no `{after}` after `{before}`")),
    }
}

/// Returns the text with the present value in each copy.
fn rewrite(text: &str, figures: &BTreeMap<&str, &str>) -> Result<String, String> {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((ahead, name, behind)) = next_copy(rest)? {
        let value = figures
            .get(name)
            .ok_or(format!("{TABLE} has no figure `{name}`"))?;
        written.push_str(ahead);
        written.push_str(&format!("{OPEN}{name}{OPEN_END}{value}{CLOSE}"));
        rest = behind;
    }
    written.push_str(rest);
    Ok(written)
}

/// Splits at the next copy: the text before it, its name and the text after it.
fn next_copy(text: &str) -> Result<Option<(&str, &str, &str)>, String> {
    let Some((ahead, copy)) = text.split_once(OPEN) else {
        return Ok(None);
    };
    let incomplete = || {
        format!(
            "a copy of a figure lacks `{}` or `{CLOSE}`",
            OPEN_END.trim()
        )
    };
    let (name, copy) = copy.split_once(OPEN_END).ok_or_else(incomplete)?;
    let (value, behind) = copy.split_once(CLOSE).ok_or_else(incomplete)?;
    if value.contains('\n') {
        return Err(format!("the copy of `{name}` is longer than a line"));
    }
    Ok(Some((ahead, name, behind)))
}

/// Returns the names of all copies in a text that is well-formed.
fn names(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Ok(Some((_, name, behind))) = next_copy(rest) {
        names.push(name);
        rest = behind;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: &str = "| idle | 26.4 KiB of RSS |\n| attacks | all 40 of them |\n";

    fn repository(table: &str, copies: &str) -> Vec<File> {
        let files = [
            (TABLE, format!("name\tdocument\tbefore\tafter\n{table}")),
            ("docs/OWNER.md", OWNER.to_owned()),
            ("docs/copy.md", copies.to_owned()),
        ];
        let file = |(path, text): (&str, String)| File::new(path.to_owned(), text);
        files.into_iter().map(file).collect()
    }

    const IDLE: &str = "idle\tdocs/OWNER.md\t| idle | \t KiB\n";

    #[test]
    fn copies_that_agree_are_in_order() {
        let files = repository(IDLE, "takes <!-- figure idle -->26.4<!-- end --> KiB");
        assert_eq!(check(&files), Problems::new());
    }

    #[test]
    fn stale_copies_are_reported_and_written() {
        let stale = "a <!-- figure idle -->28.4<!-- end --> b <!-- figure idle --><!-- end --> c";
        let files = repository(IDLE, stale);
        assert!(check(&files)[0].contains("docs/copy.md: has figures that are out of date"));
        let (figures, _) = read(&files);
        let written = rewrite(stale, &figures).expect("well-formed");
        let expected =
            "a <!-- figure idle -->26.4<!-- end --> b <!-- figure idle -->26.4<!-- end --> c";
        assert_eq!(written, expected);
    }

    #[test]
    fn figures_without_a_copy_and_copies_without_a_figure_are_reported() {
        let problems = check(&repository(IDLE, "nothing"));
        assert_eq!(
            problems,
            ["docs/figures.tsv: no document has a copy of `idle`"]
        );
        let problems = check(&repository("", "<!-- figure speed -->1<!-- end -->"));
        assert_eq!(
            problems,
            ["docs/copy.md: docs/figures.tsv has no figure `speed`"]
        );
    }

    #[test]
    fn figures_whose_owner_has_changed_are_reported() {
        let moved = "idle\tdocs/OWNER.md\t| busy | \t KiB\n";
        let problems = check(&repository(moved, ""));
        assert_eq!(
            problems,
            ["docs/figures.tsv: `idle`: docs/OWNER.md has no `| busy | `"]
        );
        let unclear = "idle\tdocs/OWNER.md\t| \t KiB\n";
        assert!(check(&repository(unclear, ""))[0].contains("more than once"));
    }

    #[test]
    fn copies_that_do_not_end_are_reported() {
        let problems = check(&repository("", "<!-- figure idle -->26.4 KiB"));
        assert!(problems[0].contains("lacks"), "{problems:?}");
        let problems = check(&repository(IDLE, "<!-- figure idle -->26\n.4<!-- end -->"));
        assert!(problems[0].contains("longer than a line"), "{problems:?}");
    }
}
