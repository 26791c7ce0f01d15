//! `cargo xtask rfc-map`: maps the sections of RFCs to the sources that refer to them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::report::Problems;
use crate::tree::{self, File};

/// The destination of the map.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Output {
    /// Writes it to `docs/rfc-map.md`.
    Write,
    /// Compares it with the document.
    Check,
    /// Prints it to standard output.
    Print,
}

/// Collects the references of all sources of crates into the map.
pub(crate) fn run(root: &Path, output: Output) -> Result<(), Problems> {
    let files = tree::files(root)?;
    let map = render(&collect(&files));
    let path = root.join(MAP);
    match output {
        Output::Print => crate::report::print(&map),
        Output::Write => {
            fs::write(&path, &map).map_err(|error| vec![format!("{MAP}: {error}")])?;
        }
        Output::Check => compare(&fs::read_to_string(&path).unwrap_or_default(), &map)?,
    }
    Ok(())
}

/// Refuses a document that differs from the map of the present sources.
fn compare(document: &str, map: &str) -> Result<(), Problems> {
    if document == map {
        return Ok(());
    }
    Err(vec![format!(
        "{MAP} is out of date; run `cargo xtask rfc-map`"
    )])
}

/// A document and one of its sections, such as RFC 9000 and 4.1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reference {
    document: String,
    section: Section,
}

/// A section, in the order of the document: 2 before 10, numbers before letters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Section(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u32),
    Letter(String),
}

impl Section {
    /// Reads `8.1.2` or `A.3`. Returns `None` for text that is not the number of a section.
    fn parse(text: &str) -> Option<Self> {
        let parts = text
            .split('.')
            .enumerate()
            .map(|(place, part)| match part.parse() {
                Ok(number) => Some(Part::Number(number)),
                Err(_) if place == 0 && is_letter(part) => Some(Part::Letter(part.to_uppercase())),
                Err(_) => None,
            });
        parts.collect::<Option<Vec<Part>>>().map(Section)
    }

    /// Formats the section as `§8.1.2`, or as `appendix A.3`.
    fn label(&self) -> String {
        let parts: Vec<String> = self
            .0
            .iter()
            .map(|part| match part {
                Part::Number(number) => number.to_string(),
                Part::Letter(letter) => letter.clone(),
            })
            .collect();
        let sign = if matches!(self.0.first(), Some(Part::Letter(_))) {
            "appendix "
        } else {
            "§"
        };
        format!("{sign}{}", parts.join("."))
    }
}

/// The files that refer to a section.
#[derive(Debug, Default, PartialEq, Eq)]
struct Places {
    code: BTreeSet<String>,
    tests: BTreeSet<String>,
}

fn collect(files: &[File]) -> BTreeMap<Reference, Places> {
    let mut map: BTreeMap<Reference, Places> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        // References in xtask are examples.
        if file.crate_folder().is_none_or(|folder| folder == "xtask") {
            continue;
        }
        for reference in references(&file.text) {
            let places = map.entry(reference).or_default();
            let paths = if file.is_test() {
                &mut places.tests
            } else {
                &mut places.code
            };
            paths.insert(file.path.clone());
        }
    }
    map
}

/// Returns all references of a source in their order. A reference may span two comment lines.
fn references(source: &str) -> Vec<Reference> {
    let text = joined(source);
    let mut found = Vec::new();
    for (at, _) in text.match_indices("RFC ") {
        let rest = &text[at + "RFC ".len()..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 4 {
            let document = format!("RFC {}", &rest[..digits]);
            found.extend(sections(&document, &rest[digits..]));
        }
    }
    for (at, _) in text.match_indices("draft-") {
        let length = text[at..]
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
            .unwrap_or(text.len() - at);
        found.extend(sections(&text[at..at + length], &text[at + length..]));
    }
    found
}

/// Returns the sections at the start of `text`: ` §7.3`, followed by `, §7.4`, ` and §8` or `–8.2`.
fn sections(document: &str, text: &str) -> Vec<Reference> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut leads: &[&str] = FIRST_LEADS;
    while let Some((section, after)) = leads.iter().find_map(|lead| section_after(rest, lead)) {
        found.push(Reference {
            document: document.to_owned(),
            section,
        });
        rest = after;
        leads = NEXT_LEADS;
    }
    found
}

fn section_after<'a>(text: &'a str, lead: &str) -> Option<(Section, &'a str)> {
    let rest = text.strip_prefix(lead)?;
    let end = rest
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '.')
        .unwrap_or(rest.len());
    let number = rest[..end].trim_end_matches('.');
    Some((Section::parse(number)?, &rest[number.len()..]))
}

/// Joins the source to one line. Comment markers and line breaks become single spaces.
fn joined(source: &str) -> String {
    let lines = source
        .lines()
        .map(|line| line.trim_start().trim_start_matches(['/', '!', '*']));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ")
}

fn is_letter(part: &str) -> bool {
    part.len() == 1 && part.bytes().all(|byte| byte.is_ascii_alphabetic())
}

fn render(map: &BTreeMap<Reference, Places>) -> String {
    let mut text = String::from(HEAD);
    let mut document = "";
    for (reference, places) in map {
        if reference.document != document {
            document = &reference.document;
            // Writing to a `String` cannot fail.
            let _ = write!(
                text,
                "\n## {document}\n\n| Section | Code | Tests |\n|---|---|---|\n"
            );
        }
        let _ = writeln!(
            text,
            "| {} | {} | {} |",
            reference.section.label(),
            links(&places.code),
            links(&places.tests)
        );
    }
    text
}

/// Formats links that work in `docs/`.
fn links(paths: &BTreeSet<String>) -> String {
    let links: Vec<String> = paths
        .iter()
        .map(|path| format!("[{}](../{path})", tree::strip_home(path).unwrap_or(path)))
        .collect();
    links.join("<br>")
}

const MAP: &str = "docs/rfc-map.md";

const FIRST_LEADS: &[&str] = &[" §", ", §", " appendix ", " Appendix "];
const NEXT_LEADS: &[&str] = &[
    ", §",
    " §",
    " and §",
    ", and §",
    "–",
    "-",
    " to §",
    ", appendix ",
    " and appendix ",
];

const HEAD: &str = "\
# Where each section is

Written by `cargo xtask rfc-map` from the references in the sources; do not edit.
";

#[cfg(test)]
mod tests;
