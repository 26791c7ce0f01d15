//! `cargo xtask release-notes`: prints the part of CHANGELOG.md about one version.

use std::fs;
use std::path::Path;

use crate::report::{self, Problems};

/// Prints the notes of `version`, as `0.1.0` or `Unreleased`.
pub(crate) fn run(root: &Path, version: &str) -> Result<(), Problems> {
    let text = fs::read_to_string(root.join("CHANGELOG.md"))
        .map_err(|error| vec![format!("CHANGELOG.md: {error}")])?;
    let notes = notes(&text, version)
        .ok_or_else(|| vec![format!("CHANGELOG.md: has nothing about `{version}`")])?;
    report::print(&notes);
    Ok(())
}

/// Returns the text below the heading of a version, or `None` if there is none. The heading may have the version
/// in brackets and a date behind it.
fn notes(changelog: &str, version: &str) -> Option<String> {
    let version = version.strip_prefix('v').unwrap_or(version);
    let is_of = |line: &&str| {
        let name = line
            .strip_prefix("## ")
            .and_then(|rest| rest.split(' ').next());
        name.is_some_and(|name| name.trim_matches(['[', ']']) == version)
    };
    let lines: Vec<&str> = changelog
        .lines()
        .skip_while(|line| !is_of(line))
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .collect();
    let text = lines.join("\n").trim().to_owned();
    (!text.is_empty()).then(|| text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGELOG: &str = "\
# Changelog

## Unreleased

## [0.2.0] - 2027-01-02

### Area

- New: a thing.

## 0.1.0

- First.
";

    #[test]
    fn the_notes_of_a_version_end_at_the_next_one() {
        let expected = Some("### Area\n\n- New: a thing.\n".to_owned());
        assert_eq!(notes(CHANGELOG, "0.2.0"), expected);
        // The name of a tag.
        assert_eq!(notes(CHANGELOG, "v0.2.0"), expected);
        assert_eq!(notes(CHANGELOG, "0.1.0"), Some("- First.\n".to_owned()));
    }

    #[test]
    fn a_version_without_notes_has_none() {
        for version in ["0.3.0", "0.1", "Unreleased", ""] {
            assert_eq!(notes(CHANGELOG, version), None, "{version}");
        }
    }
}
