//! Links between pages, the list of pages, and paths that the text names.

use super::markdown::{DOC_TESTS, PAGES, Page, SUMMARY, resolve};
use crate::report::Problems;
use crate::tree::File;

/// Checks that the list of pages and the doc tests have each page, and that each page is in a list.
pub(super) fn check_summary(pages: &[Page<'_>], files: &[File]) -> Problems {
    let Some(summary) = pages.iter().find(|page| page.path == SUMMARY) else {
        return vec![format!("{SUMMARY}: there is no list of pages")];
    };
    let listed: Vec<String> = links_of(summary)
        .map(|(_, target)| resolve(SUMMARY, target))
        .collect();
    let doc_tests = files.iter().find(|file| file.path == DOC_TESTS);
    let doc_tests = doc_tests.map_or("", |file| &file.text);
    let mut problems = Problems::new();
    for page in pages.iter().filter(|page| page.path != SUMMARY) {
        if !listed.iter().any(|path| path == page.path) {
            problems.push(format!("{SUMMARY}: does not list {}", page.path));
        }
        if !doc_tests.contains(&format!("{}.md", page.name())) {
            problems.push(format!(
                "{DOC_TESTS}: does not compile the code of {}",
                page.path
            ));
        }
    }
    problems
}

/// Checks the links of a page, and the paths between back quotes.
pub(super) fn check(page: &Page<'_>, pages: &[Page<'_>], files: &[File]) -> Problems {
    let mut problems = Problems::new();
    for (line, target) in links_of(page) {
        if let Some(problem) = check_link(page, target, pages, files) {
            problems.push(format!("{}:{line}: {problem}", page.path));
        }
    }
    for (line, path) in paths_of(page) {
        let is_there = |file: &File| {
            let rest = file.path.strip_prefix(path.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if !files.iter().any(is_there) {
            problems.push(format!("{}:{line}: `{path}` does not exist", page.path));
        }
    }
    problems
}

fn check_link(page: &Page<'_>, target: &str, pages: &[Page<'_>], files: &[File]) -> Option<String> {
    if target.starts_with("https://") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match path {
        "" => page.path.to_owned(),
        path => resolve(page.path, path),
    };
    if !path.starts_with(PAGES) {
        return Some(format!(
            "{target} leaves the guide; name the file between back quotes"
        ));
    }
    let Some(other) = pages.iter().find(|page| page.path == path) else {
        let is_there = files.iter().any(|file| file.path == path);
        return (!is_there).then(|| format!("{target} does not exist"));
    };
    let is_missing = !anchor.is_empty() && !other.anchors().iter().any(|one| one == anchor);
    is_missing.then(|| format!("{path} has no heading #{anchor}"))
}

/// Returns the targets of links in the prose of a page, with their lines.
fn links_of<'a>(page: &Page<'a>) -> impl Iterator<Item = (usize, &'a str)> {
    page.prose.iter().flat_map(|&(number, line)| {
        line.match_indices("](").filter_map(move |(at, _)| {
            // A link inside of code is text.
            let is_code = line[..at].matches('`').count() % 2 == 1;
            let rest = &line[at + 2..];
            let end = rest.find(')')?;
            (!is_code).then_some((number, &rest[..end]))
        })
    })
}

/// Returns the paths of the repository that stand between back quotes.
fn paths_of<'a>(page: &Page<'a>) -> impl Iterator<Item = (usize, &'a str)> {
    page.prose.iter().flat_map(|&(number, line)| {
        let code = line.split('`').skip(1).step_by(2);
        code.filter(|text| {
            let is_path = FOLDERS.iter().any(|folder| text.starts_with(folder));
            is_path && !text.contains([' ', '*', '<', '…'])
        })
        .map(move |path| (number, path))
    })
}

/// Folders of the repository. Code that starts with one of them is a path.
const FOLDERS: &[&str] = &[
    "crates/",
    "docs/",
    "examples/",
    "fuzz/",
    "interop/",
    "packaging/",
    "peers/",
    "scenarios/",
    "tools/",
];
