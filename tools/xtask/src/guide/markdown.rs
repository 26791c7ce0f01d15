//! The parts of a page: code, headings, prose.

use crate::report::Problems;
use crate::tree::File;

/// A page of the guide.
#[derive(Clone, Debug)]
pub(super) struct Page<'a> {
    pub(super) path: &'a str,
    pub(super) text: &'a str,
    pub(super) fences: Vec<Fence<'a>>,
    /// The lines outside of code, with their numbers from 1. Comments are left out.
    pub(super) prose: Vec<(usize, &'a str)>,
}

/// A fenced block of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fence<'a> {
    /// The line of its beginning, counted from 1.
    pub(super) line: usize,
    /// The words after the back quotes: the language and its attributes.
    pub(super) info: &'a str,
    pub(super) lines: Vec<&'a str>,
    /// The file whose copy it is.
    pub(super) copy_of: Option<&'a str>,
}

impl Fence<'_> {
    /// Returns the language without attributes.
    pub(super) fn language(&self) -> &str {
        self.info.split(',').next().unwrap_or_default().trim()
    }
}

impl<'a> Page<'a> {
    /// Splits a file into code and prose.
    pub(super) fn parse(file: &'a File) -> Self {
        let mut fences: Vec<Fence<'a>> = Vec::new();
        let mut prose = Vec::new();
        let mut is_open = false;
        let mut copy_of = None;
        for (index, line) in file.text.lines().enumerate() {
            let mark = line.trim_start().strip_prefix("```");
            match (mark, fences.last_mut()) {
                (Some(_), _) if is_open => is_open = false,
                (Some(info), _) => {
                    is_open = true;
                    fences.push(Fence {
                        line: index + 1,
                        info: info.trim(),
                        lines: Vec::new(),
                        copy_of: copy_of.take(),
                    });
                }
                (None, Some(fence)) if is_open => fence.lines.push(line),
                _ if line.starts_with("<!--") => copy_of = copied_file(line),
                _ => prose.push((index + 1, line)),
            }
        }
        Self {
            path: &file.path,
            text: &file.text,
            fences,
            prose,
        }
    }

    /// Returns the name of the file without its folder and ending.
    pub(super) fn name(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or(self.path);
        name.strip_suffix(".md").unwrap_or(name)
    }

    /// Returns the identifiers that mdBook gives the headings.
    pub(super) fn anchors(&self) -> Vec<String> {
        let headings = self.prose.iter().filter_map(|(_, line)| {
            let text = line.trim_start_matches('#');
            (text.len() < line.len() && text.starts_with(' ')).then(|| anchor(text.trim()))
        });
        headings.collect()
    }
}

/// Returns the identifier of a heading: its words in lower case, joined by hyphens.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '_' | '-' => Some(c),
        c if c.is_alphanumeric() => Some(c.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

/// Returns the file, and its part, that a comment names as the source of the block behind it.
fn copied_file(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("<!-- copy of ")?;
    rest.strip_suffix("-->").map(str::trim)
}

/// Checks that each block of code names a language, and that Rust is compiled.
pub(super) fn check_fences(page: &Page<'_>) -> Problems {
    let mut problems = Problems::new();
    for fence in &page.fences {
        let mut report = |problem: &str| {
            problems.push(format!("{}:{}: {problem}", page.path, fence.line));
        };
        if fence.language().is_empty() {
            report("code without a language");
        }
        if fence.lines.iter().any(|line| line.contains("{{#include")) {
            report(
                "readers of the Markdown see no code here; write `<!-- copy of FILE -->` before the block",
            );
        }
        let is_compiled = !fence.info.contains("ignore") || fence.copy_of.is_some();
        if fence.language() == "rust" && !is_compiled {
            report("Rust that is not compiled; copy a file that is");
        }
    }
    problems
}

/// Returns the path from the root of the repository that `target` on the page at `page` leads to.
pub(super) fn resolve(page: &str, target: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns true for a page of the guide.
pub(super) fn is_page(file: &File) -> bool {
    file.path.starts_with(PAGES) && file.path.ends_with(".md")
}

/// The folder of the pages.
pub(super) const PAGES: &str = "docs/guide/src/";

/// The file with the order of the pages.
pub(super) const SUMMARY: &str = "docs/guide/src/SUMMARY.md";

/// The crate whose doc tests are the code of the pages.
pub(super) const DOC_TESTS: &str = "tools/guide/src/lib.rs";
