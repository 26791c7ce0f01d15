//! Counts comments that are not plain English: doc comments that open with a clause instead of a
//! subject or a verb, and comments with archaic or vague words.

use std::collections::BTreeMap;

use super::ratchet::Count;
use crate::code::comments::{Comment, Kind, comments};
use crate::tree::File;

/// Counts both gates in every folder that has Rust sources.
pub(super) fn count(files: &[File]) -> Vec<Count> {
    let mut openers: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut words: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let folder = folder_of(file);
        let openers = openers.entry(folder).or_default();
        let words = words.entry(folder).or_default();
        for comment in comments(&file.text) {
            if let Some((line, opener)) = bad_opener(&comment) {
                openers.push(format!("{}:{line}: opens with `{opener}`", file.path));
            }
            for (line, word) in bad_words(&comment) {
                words.push(format!("{}:{line}: `{word}`", file.path));
            }
        }
    }
    let counts = |gate: &'static str, found: BTreeMap<&str, Vec<String>>| {
        let counts = found.into_iter();
        counts
            .map(|(folder, places)| Count::of_places(folder, gate, places))
            .collect::<Vec<Count>>()
    };
    let mut all = counts("doc-openers", openers);
    all.extend(counts("plain-words", words));
    all
}

/// Returns the crate of a file, or the first folder of its path.
fn folder_of(file: &File) -> &str {
    let first = file.path.split('/').next().unwrap_or_default();
    file.crate_folder().unwrap_or(first)
}

/// Returns the line of a doc comment's opener and the opener, if it is one of [`OPENERS`].
fn bad_opener(comment: &Comment) -> Option<(usize, &'static str)> {
    let first = comment.lines.iter().find(|line| !line.is_empty())?;
    if comment.kind == Kind::Plain || !first.starts_with(char::is_alphabetic) {
        return None;
    }
    let words = words(comment);
    let opener = OPENERS
        .iter()
        .copied()
        .find(|opener| starts_with(&words, opener))?;
    Some((words[0].line, opener))
}

/// Returns each of [`WORDS`] in a comment, with its line.
fn bad_words(comment: &Comment) -> Vec<(usize, &'static str)> {
    let words = words(comment);
    let mut found = Vec::new();
    for at in 0..words.len() {
        // The capitals of RFC 2119 quote a requirement.
        if words[at].text == "SHALL" {
            continue;
        }
        let bad = WORDS.iter().copied();
        let bad = bad.filter(|bad| starts_with(&words[at..], bad));
        found.extend(bad.map(|bad| (words[at].line, bad)));
    }
    found
}

/// One word of a comment.
struct Word<'a> {
    text: &'a str,
    line: usize,
}

/// Splits a comment into words. Text between back quotes is code and left out.
fn words(comment: &Comment) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut is_code = false;
    for (index, text) in comment.lines.iter().enumerate() {
        let line = comment.line + index;
        for (part, prose) in text.split('`').enumerate() {
            is_code ^= part > 0;
            if is_code {
                continue;
            }
            let prose = prose.split(|c: char| !c.is_alphanumeric() && c != '_');
            let prose = prose.filter(|text| !text.is_empty());
            words.extend(prose.map(|text| Word { text, line }));
        }
    }
    words
}

fn starts_with(words: &[Word<'_>], phrase: &str) -> bool {
    let mut words = words.iter();
    phrase.split(' ').all(|expected| {
        let word = words.next();
        word.is_some_and(|word| word.text.eq_ignore_ascii_case(expected))
    })
}

const OPENERS: &[&str] = &[
    "what", "how", "where", "who", "whoever", "whose", "whether", "that", "for a", "of the",
];

const WORDS: &[&str] = &[
    "nobody",
    "somebody",
    "whoever",
    "for ever",
    "in vain",
    "by itself",
    "shall",
    "lest",
    "told of",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn places(source: &str) -> Vec<String> {
        let files = [File::new("crates/a/src/b.rs".to_owned(), source.to_owned())];
        count(&files)
            .into_iter()
            .flat_map(|count| count.places)
            .map(|place| place.replace("crates/a/src/b.rs:", ""))
            .collect()
    }

    #[test]
    fn openers_without_a_subject_are_refused() {
        for opener in [
            "What", "How", "Where", "Who", "Whoever", "Whose", "Whether", "That", "For a", "Of the",
        ] {
            let shown = opener.to_lowercase();
            let outer = format!("/// {opener} thing.\nfn f() {{}}");
            assert!(places(&outer).contains(&format!("1: opens with `{shown}`")));
            let inner = format!("\n//! {opener} thing.");
            assert!(places(&inner).contains(&format!("2: opens with `{shown}`")));
        }
    }

    #[test]
    fn complete_sentences_are_in_order() {
        let source = "//! Returns what was read, and how.\n//!\n//! What follows is free.\n\
                      /// However it ends.\n/// Whatsoever.\n// What a plain comment asks.\n\
                      /// `what` is code, [`a`]\n/// For all.\nfn g() {}\n\
                      /// `Code` that returns.\nfn f() { \"/// What\" }";
        assert_eq!(places(source), Vec::<String>::new());
    }

    #[test]
    fn forbidden_words_are_refused_in_every_comment() {
        for word in WORDS {
            let comments = [
                format!("// A {word} b."),
                format!("/// A {word} b."),
                format!("//! A {word}'s b."),
                format!("fn f() {{}} /* A {word} b. */"),
                format!("// A {}.", word.to_uppercase().replace("SHALL", "Shall")),
                format!("// A\n// {}", word.replace(' ', "\n// ")),
            ];
            for comment in comments {
                assert_eq!(places(&comment).len(), 1, "{comment}");
            }
        }
    }

    #[test]
    fn parts_of_words_code_and_requirements_are_in_order() {
        let source = "// Shallow, lester, `nobody`, nobody_listens, forever.\n\
                      // RFC 2119 has SHALL and `a\n// somebody` too.\nlet nobody = \"lest\";";
        assert_eq!(places(source), Vec::<String>::new());
    }

    #[test]
    fn both_gates_name_the_line() {
        let source =
            "\n// One,\n// and nobody.\n\n/// Two.\n/// Of the three.\n/// lest\nfn f() {}";
        assert_eq!(places(source), ["3: `nobody`", "7: `lest`"]);
    }

    #[test]
    fn files_count_for_their_crate_or_folder() {
        let file = |path: &str| File::new(path.to_owned(), "// shall".to_owned());
        let files = [
            file("crates/a/tests/b.rs"),
            file("peers/quiche/src/c.rs"),
            file("docs/d.md"),
        ];
        let counts = count(&files).into_iter();
        let words = counts.filter(|count| count.gate == "plain-words");
        let folders: Vec<(String, usize)> = words.map(|one| (one.folder, one.count)).collect();
        assert_eq!(folders, [("a".to_owned(), 1), ("peers".to_owned(), 1)]);
    }
}
