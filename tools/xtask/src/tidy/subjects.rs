//! Checks the subjects of commits.

use std::path::Path;
use std::process::Command;

use crate::report::Problems;

/// Checks the subjects of all commits after [`BASE`], including merges.
///
/// Skips the check without Git, outside of a repository and in a shallow clone.
pub(super) fn check(root: &Path) -> Problems {
    let range = format!("{BASE}..HEAD");
    let is_known = git(root, &["merge-base", "--is-ancestor", BASE, "HEAD"]).is_some();
    let log = is_known.then(|| git(root, &["log", "--format=%h %s", &range]));
    check_log(&log.flatten().unwrap_or_default())
}

/// Checks lines of an abbreviated hash and a subject.
fn check_log(log: &str) -> Problems {
    let mut problems = Problems::new();
    for line in log.lines() {
        let (commit, subject) = line.split_once(' ').unwrap_or((line, ""));
        let length = subject.chars().count();
        if length > MOST_CHARACTERS {
            problems.push(format!(
                "commit {commit}: the subject has {length} characters, allowed are \
                 {MOST_CHARACTERS}: {subject}"
            ));
        }
        if subject.contains(';') {
            problems.push(format!(
                "commit {commit}: the subject joins two thoughts with `;`: {subject}"
            ));
        }
    }
    problems
}

/// Runs Git, and returns its output if it succeeds.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .current_dir(root)
        .args(arguments)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then_some(text)
}

/// The last commit whose subject is not checked; history before it stays as it is.
const BASE: &str = "8ee3a1a";

const MOST_CHARACTERS: usize = 72;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_subjects_are_in_order() {
        let log = format!("abc1234 {}\nabc1235 area: verb what\n", "é".repeat(72));
        assert_eq!(check_log(&log), Problems::new());
        assert_eq!(check_log(""), Problems::new());
    }

    #[test]
    fn long_subjects_are_refused() {
        let found = check_log(&format!("abc1234 {}", "x".repeat(73)));
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("commit abc1234: the subject has 73 characters, allowed are 72"),
            "{found:?}"
        );
    }

    #[test]
    fn subjects_with_two_thoughts_are_refused() {
        let found = check_log("abc1234 wire: read this; qlog: write that");
        assert_eq!(
            found,
            [
                "commit abc1234: the subject joins two thoughts with `;`: wire: read this; qlog: \
                 write that"
            ]
        );
    }

    #[test]
    fn a_folder_without_history_has_nothing_to_check() {
        let missing = Path::new("no/such/folder");
        assert_eq!(check(missing), Problems::new());
    }
}
