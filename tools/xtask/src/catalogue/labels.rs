//! Finds labels in comments, string literals and documents.

use std::collections::BTreeSet;

use quote::ToTokens;

use crate::code;
use crate::report::Problems;
use crate::tree::File;

/// Returns a problem for each label outside of code that has no row.
pub(super) fn check(files: &[File], known: &BTreeSet<String>) -> Problems {
    let mut problems = Problems::new();
    for file in files.iter().filter(|file| is_checked(file)) {
        for (index, line) in file.text.lines().enumerate() {
            for label in labels(line).filter(|label| !known.contains(*label)) {
                if is_identifier(label, file) {
                    continue;
                }
                problems.push(format!(
                    "{}:{}: {label} is in none of the catalogues in docs",
                    file.path,
                    index + 1
                ));
            }
        }
    }
    problems
}

/// Returns true if code of the source has this name.
fn is_identifier(name: &str, file: &File) -> bool {
    let words = || code::words(file.syntax().to_token_stream());
    file.is_rust() && words().iter().any(|word| word.text == name)
}

/// Returns true for documents and sources. Tests in xtask use labels without a row.
fn is_checked(file: &File) -> bool {
    let is_document = DOCUMENTS.contains(&file.path.as_str()) || file.path.starts_with(DECISIONS);
    is_document || (file.is_rust() && file.crate_folder() != Some("xtask"))
}

fn labels(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| is_label(word))
}

/// Returns true for K01 to K999, A01 to A999, F01 to F99 and O1 to O9.
pub(super) fn is_label(word: &str) -> bool {
    let Some(letter) = word.chars().next().filter(char::is_ascii) else {
        return false;
    };
    let digits = &word[1..];
    let lengths = match letter {
        'F' => 2..=2,
        'A' | 'K' => 2..=3,
        'O' => 1..=1,
        _ => return false,
    };
    lengths.contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The documents that may refer to rows.
const DOCUMENTS: &[&str] = &[
    "README.md",
    "SECURITY.md",
    "docs/ARCHITECTURE.md",
    "docs/ATTACKS.md",
    "docs/FAULTS.md",
    "docs/LIMITS.md",
    "docs/ROBUSTNESS.md",
    "docs/TESTING.md",
];

/// The folder of the decisions, which may refer to rows too.
const DECISIONS: &str = "docs/design/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_a_letter_and_its_number_of_digits() {
        let yes = ["K01", "K104", "A05", "A104", "F40", "O8"];
        let no = [
            "K1", "K1040", "A1", "A1040", "F4", "O10", "B12", "", "äK01", "K0x",
        ];
        assert!(yes.into_iter().all(is_label));
        assert!(!no.into_iter().any(is_label));
    }

    #[test]
    fn a_label_without_a_row_is_reported_with_its_line() {
        let text = "/// Limits K01 to K02.\nfn a() { b(K03, \"A99\") }\n";
        let files = [
            File::new("crates/a/src/lib.rs".to_owned(), text.to_owned()),
            File::new(
                "docs/design/0001-a.md".to_owned(),
                "See K01 and F77.".to_owned(),
            ),
            File::new(
                "docs/PERFORMANCE.md".to_owned(),
                "A machine A100.".to_owned(),
            ),
        ];
        let known = BTreeSet::from(["K01".to_owned()]);
        assert_eq!(
            check(&files, &known),
            [
                "crates/a/src/lib.rs:1: K02 is in none of the catalogues in docs",
                "crates/a/src/lib.rs:2: A99 is in none of the catalogues in docs",
                "docs/design/0001-a.md:1: F77 is in none of the catalogues in docs",
            ]
        );
    }
}
