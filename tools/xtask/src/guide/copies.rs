//! Code on the pages that is a copy of a file, so that readers of the Markdown see it too.
//!
//! A comment before the block names the file, and a part of it: `<!-- copy of examples/a.rs:part -->`. The part is
//! between the lines `ANCHOR: part` and `ANCHOR_END: part`.

use super::markdown::Page;
use crate::report::Problems;
use crate::tree::File;

/// Checks that the copies of a page are up to date.
pub(super) fn check(page: &Page<'_>, files: &[File]) -> Problems {
    let problems = page.fences.iter().filter_map(|fence| {
        let problem = match original(fence.copy_of?, files) {
            Ok(code) if code == fence.lines => return None,
            Ok(_) => format!(
                "differs from {}; `cargo xtask guide` copies it",
                fence.copy_of.unwrap_or_default()
            ),
            Err(problem) => problem,
        };
        Some(format!("{}:{}: {problem}", page.path, fence.line))
    });
    problems.collect()
}

/// Returns the text of a page with its copies replaced, if one of them has changed.
pub(super) fn replace(page: &Page<'_>, files: &[File]) -> Option<String> {
    let mut lines: Vec<&str> = page.text.lines().collect();
    // From the end, so that the numbers of earlier lines stay true.
    for fence in page.fences.iter().rev() {
        if let Some(Ok(code)) = fence.copy_of.map(|source| original(source, files)) {
            lines.splice(fence.line..fence.line + fence.lines.len(), code);
        }
    }
    let text = lines.join("\n") + "\n";
    (text != page.text).then_some(text)
}

/// Returns the lines of a file, or of a part of it, without the marks of parts.
fn original<'a>(source: &str, files: &'a [File]) -> Result<Vec<&'a str>, String> {
    let (path, part) = source.split_once(':').unwrap_or((source, ""));
    let file = files.iter().find(|file| file.path == path);
    let file = file.ok_or_else(|| format!("copies {path}, which does not exist"))?;
    let (begin, end) = (format!("ANCHOR: {part}"), format!("ANCHOR_END: {part}"));
    let mut is_inside = part.is_empty();
    let mut code = Vec::new();
    let mut is_found = is_inside;
    for line in file.text.lines() {
        let line = line.trim_end();
        if line.ends_with(&begin) {
            (is_inside, is_found) = (true, true);
        } else if line.ends_with(&end) {
            is_inside = false;
        } else if is_inside && !line.contains("ANCHOR") {
            code.push(line);
        }
    }
    if !is_found {
        return Err(format!("{path} has no ANCHOR: {part}"));
    }
    if code.iter().any(|line| line.trim_start().starts_with("```")) {
        return Err(format!(
            "{path} has a code block, which would end that of the page"
        ));
    }
    Ok(code)
}
