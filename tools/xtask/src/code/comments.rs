//! Finds the comments of a source file.

use super::not_code_until;

/// One comment. Consecutive comment lines of the same kind are one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    /// The number of its first line, counted from 1.
    pub(crate) line: usize,
    pub(crate) kind: Kind,
    /// The text of each line, without comment markers.
    pub(crate) lines: Vec<String>,
}

/// The three kinds of comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `//` and `/* */`.
    Plain,
    /// `///` and `/** */`.
    OuterDoc,
    /// `//!` and `/*! */`.
    InnerDoc,
}

/// Returns all comments of `source` in their order.
pub(crate) fn comments(source: &str) -> Vec<Comment> {
    let characters: Vec<char> = source.chars().collect();
    let mut found: Vec<Comment> = Vec::new();
    let mut is_adjacent = false;
    let (mut at, mut line) = (0, 1);
    while at < characters.len() {
        let end = not_code_until(&characters, at);
        if end == at {
            is_adjacent &= characters[at].is_whitespace();
            line += usize::from(characters[at] == '\n');
            at += 1;
            continue;
        }
        let text: String = characters[at..end].iter().collect();
        if characters[at] == '/' {
            add(&mut found, &text, line, is_adjacent);
        }
        is_adjacent = characters[at] == '/';
        line += text.matches('\n').count();
        at = end;
    }
    found
}

/// Returns the number of lines of code in the doc comments of a source, with the fences around it. Each such
/// block is a test, which rustdoc runs.
pub(crate) fn example_lines(source: &str) -> usize {
    let is_doc = |comment: &Comment| comment.kind != Kind::Plain;
    let mut count = 0;
    for comment in comments(source).iter().filter(|it| is_doc(it)) {
        let mut is_open = false;
        for line in &comment.lines {
            let is_fence = line.starts_with("```");
            count += usize::from(is_open || is_fence);
            is_open ^= is_fence;
        }
    }
    count
}

/// Appends a comment, or extends the last one if it continues on this line.
fn add(found: &mut Vec<Comment>, text: &str, line: usize, is_adjacent: bool) {
    let (kind, body) = split(text);
    let lines = body.split('\n').map(|line| {
        let line = line.trim();
        line.strip_prefix("* ").unwrap_or(line).to_owned()
    });
    let last = found
        .last_mut()
        .filter(|last| is_adjacent && last.kind == kind && last.line + last.lines.len() == line);
    match last {
        Some(last) => last.lines.extend(lines),
        None => found.push(Comment {
            line,
            kind,
            lines: lines.collect(),
        }),
    }
}

/// Returns the kind of a comment and its text without the outer markers.
fn split(text: &str) -> (Kind, &str) {
    let block = text.strip_prefix("/*");
    let body = match block {
        Some(body) => body.strip_suffix("*/").unwrap_or(body),
        None => text.strip_prefix("//").unwrap_or(text),
    };
    let marker = if block.is_some() { '*' } else { '/' };
    if let Some(body) = body.strip_prefix('!') {
        return (Kind::InnerDoc, body);
    }
    match body.strip_prefix(marker) {
        // Four slashes are a plain comment.
        Some(body) if !body.starts_with(marker) => (Kind::OuterDoc, body),
        _ => (Kind::Plain, body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comment(line: usize, kind: Kind, lines: &[&str]) -> Comment {
        Comment {
            line,
            kind,
            lines: lines.iter().map(|&line| line.to_owned()).collect(),
        }
    }

    #[test]
    fn consecutive_lines_of_a_kind_are_one_comment() {
        let source = "//! One\n//! two\n\n/// Three\n// four\n// five\nfn f() {}\n// six\n";
        assert_eq!(
            comments(source),
            [
                comment(1, Kind::InnerDoc, &["One", "two"]),
                comment(4, Kind::OuterDoc, &["Three"]),
                comment(5, Kind::Plain, &["four", "five"]),
                comment(8, Kind::Plain, &["six"]),
            ]
        );
    }

    #[test]
    fn code_and_empty_lines_separate_comments() {
        let source = "a; // one\nb; // two\n\n// three\n";
        let lines: Vec<usize> = comments(source).iter().map(|one| one.line).collect();
        assert_eq!(lines, [1, 2, 4]);
    }

    #[test]
    fn block_comments_are_found() {
        assert_eq!(
            comments("/** One\n * two\n */ fn f() {} /* three */ //// four"),
            [
                comment(1, Kind::OuterDoc, &["One", "two", ""]),
                comment(3, Kind::Plain, &["three"]),
                comment(3, Kind::Plain, &["// four"]),
            ]
        );
    }

    #[test]
    fn texts_are_no_comments() {
        assert_eq!(comments("\"// one\"; r#\"/// two\"#; '/'"), []);
    }
}
