//! The budget of `transport::Connection`: its methods, and the files that reach into its fields.

use std::collections::{BTreeMap, BTreeSet};

use super::ratchet::Count;
use crate::code::tokens::{Token, closing, text_at, tokens};
use crate::tree::File;

/// Counts the inherent methods, and for each field the files that use it.
pub(super) fn count(files: &[File]) -> Vec<Count> {
    let sources = files.iter().filter(|file| file.is_production_of(FOLDER));
    let sources: Vec<(&File, Vec<Token<'_>>)> = sources
        .map(|file| (file, tokens(file.production_code())))
        .collect();
    let mut methods = Vec::new();
    let fields: BTreeSet<&str> = sources
        .iter()
        .flat_map(|(_, tokens)| fields_of(TYPE, tokens))
        .collect();
    let mut users: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (file, tokens) in &sources {
        let blocks = impl_blocks(TYPE, tokens);
        for block in blocks.iter().filter(|block| block.is_inherent) {
            let found = methods_of(tokens, block);
            methods.extend(found.map(|(line, name)| format!("{}:{line}: fn {name}", file.path)));
        }
        let used = fields_used(tokens, &blocks, &fields);
        for (field, line) in used {
            let place = format!("{}:{line}: {field}", file.path);
            users.entry(field).or_default().push(place);
        }
    }
    counts(methods, users)
}

fn counts(methods: Vec<String>, users: BTreeMap<&str, Vec<String>>) -> Vec<Count> {
    let count = |gate: String, aim: usize, places: Vec<String>| Count {
        folder: FOLDER.to_owned(),
        gate,
        count: places.len(),
        aim,
        places,
    };
    let most = users.values().max_by_key(|places| places.len());
    let most = most.cloned().unwrap_or_default();
    let mut counts = vec![
        count("connection-methods".to_owned(), MOST_METHODS, methods),
        count("connection-field-files".to_owned(), MOST_FILES, most),
    ];
    for (field, places) in users {
        let gate = format!("connection-field-files:{field}");
        counts.push(count(gate, MOST_FILES, places));
    }
    counts
}

/// The braces of an `impl`.
struct Block {
    open: usize,
    close: usize,
    is_inherent: bool,
}

/// Returns the blocks that implement `name`, with and without a trait.
fn impl_blocks(name: &str, tokens: &[Token<'_>]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for at in 0..tokens.len() {
        let before = at.checked_sub(1).map_or("", |before| tokens[before].text);
        // Elsewhere it begins an `impl Trait`.
        let is_item = matches!(before, "" | "}" | ";" | "]" | "{" | "unsafe");
        if tokens[at].text != "impl" || !is_item {
            continue;
        }
        let header = tokens[at..].iter().position(|token| token.text == "{");
        let Some(open) = header.map(|len| at + len) else {
            break;
        };
        let header = &tokens[at + 1..open];
        let target = header.iter().position(|token| token.text == "for");
        let target_type = &header[target.map_or(0, |target| target + 1)..];
        if type_name(target_type) == Some(name) {
            blocks.push(Block {
                open,
                close: closing(tokens, open),
                is_inherent: target.is_none(),
            });
        }
    }
    blocks
}

/// Returns the last name of a type's path, without generics.
fn type_name<'a>(tokens: &[Token<'a>]) -> Option<&'a str> {
    let mut depth = 0_usize;
    let mut name = None;
    for token in tokens {
        match token.text {
            "<" => depth += 1,
            ">" => depth = depth.saturating_sub(1),
            "where" if depth == 0 => break,
            text if depth == 0 && token.is_word() => name = Some(text),
            _ => {}
        }
    }
    name
}

/// Returns line and name of each function of a block, without nested ones.
fn methods_of<'a>(tokens: &[Token<'a>], block: &Block) -> impl Iterator<Item = (usize, &'a str)> {
    let mut methods = Vec::new();
    let mut at = block.open + 1;
    while at < block.close {
        match tokens[at].text {
            "fn" if tokens.get(at + 1).is_some_and(Token::is_word) => {
                methods.push((tokens[at].line, tokens[at + 1].text));
                at += 1;
            }
            "(" | "[" | "{" => at = closing(tokens, at),
            _ => {}
        }
        at += 1;
    }
    methods.into_iter()
}

/// Returns the fields of the struct `name`, if these tokens declare it.
fn fields_of<'a>(name: &str, tokens: &[Token<'a>]) -> Vec<&'a str> {
    let mut fields = Vec::new();
    let declared = (0..tokens.len()).find(|&at| {
        let texts = [at, at + 1, at + 2].map(|at| text_at(tokens, at));
        texts == ["struct", name, "{"]
    });
    let Some(open) = declared.map(|at| at + 2) else {
        return fields;
    };
    let mut at = open + 1;
    let end = closing(tokens, open);
    while at < end {
        if tokens[at].is_word() && text_at(tokens, at + 1) == ":" {
            fields.push(tokens[at].text);
            at = end_of_field(tokens, at, end);
        } else if matches!(tokens[at].text, "(" | "[") {
            at = closing(tokens, at);
        }
        at += 1;
    }
    fields
}

/// Returns the index of the comma after the field at `at`, or `end`.
fn end_of_field(tokens: &[Token<'_>], mut at: usize, end: usize) -> usize {
    let mut depth = 0_usize;
    while at < end {
        match tokens[at].text {
            "(" | "[" | "{" => at = closing(tokens, at),
            "<" => depth += 1,
            ">" => depth = depth.saturating_sub(1),
            "," if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    end
}

/// Returns each field that the tokens of a file use, with the first line.
///
/// A use is `self.field` or `let Self { field, .. }` in a block of the type, and
/// `connection.field` anywhere.
fn fields_used<'a>(
    tokens: &[Token<'a>],
    blocks: &[Block],
    fields: &BTreeSet<&'a str>,
) -> BTreeMap<&'a str, usize> {
    let mut used = BTreeMap::new();
    let mut add = |at: usize| {
        let Token { text, line } = tokens[at];
        if let Some(field) = fields.get(text) {
            used.entry(*field).or_insert(line);
        }
    };
    for at in 0..tokens.len() {
        let is_inside = blocks.iter().any(|one| (one.open..one.close).contains(&at));
        let [first, second, third, fourth] = [0, 1, 2, 3].map(|ahead| text_at(tokens, at + ahead));
        let is_owner = first == "connection" || (first == "self" && is_inside);
        if is_owner && second == "." && !third.is_empty() && fourth != "(" {
            add(at + 2);
        }
        if is_inside && [first, second, third] == ["let", "Self", "{"] {
            (at + 3..closing(tokens, at + 2)).for_each(&mut add);
        }
    }
    used
}

const FOLDER: &str = "transport";
const TYPE: &str = "Connection";

/// The aim for the methods.
const MOST_METHODS: usize = 80;

/// The aim for the files that use one field.
const MOST_FILES: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARATION: &str = "
        pub struct Connection {
            pub(crate) spaces: BTreeMap<Id, Space>,
            paths: [Path; 2],
            stats: Stats,
        }
        struct Other { rest: u8 }
    ";

    /// Returns gate and count for sources of the transport.
    fn counted(files: &[(&str, &str)]) -> Vec<(String, usize)> {
        let files = files.iter();
        let files: Vec<File> = files
            .map(|(path, text)| {
                let path = format!("crates/transport/src/connection/{path}");
                File::new(path, (*text).to_owned())
            })
            .collect();
        let counts = count(&files).into_iter();
        counts.map(|count| (count.gate, count.count)).collect()
    }

    fn row(gate: &str, count: usize) -> (String, usize) {
        (gate.to_owned(), count)
    }

    #[test]
    fn inherent_methods_of_all_blocks_are_counted() {
        let more =
            "impl Connection { fn a(&self, _: fn(u8)) { fn inner() {} } pub const fn b() {} }
            impl fmt::Debug for Connection { fn fmt(&self) {} }
            impl Other { fn c() -> impl Iterator<Item = Connection> { d() } }
            #[cfg(test)] impl Connection { fn e() {} }";
        let second = "impl<'a> super::Connection { #[inline] pub(crate) async fn f() {}
            #[cfg(test)] fn g() {} }";
        let found = counted(&[
            ("mod.rs", DECLARATION),
            ("a.rs", more),
            ("b.rs", second),
            ("tests.rs", "impl Connection { fn h() {} }"),
        ]);
        assert_eq!(found[0], row("connection-methods", 3));
    }

    #[test]
    fn files_that_use_a_field_are_counted() {
        let found = counted(&[
            ("mod.rs", DECLARATION),
            (
                "a.rs",
                "impl Connection { fn a(&self) { self.spaces.b(); self\n.spaces; self.stats() } }",
            ),
            (
                "b.rs",
                "fn c(connection: &Connection) { connection.spaces }",
            ),
            (
                "c.rs",
                "impl Drop for Connection { fn d(&mut self) { let Self { paths: p, .. } = self; } }",
            ),
            (
                "d.rs",
                "impl Other { fn e(&self) { self.spaces; self.rest } }",
            ),
            (
                "e.rs",
                "#[cfg(test)] impl Connection { fn f(&self) { self.paths } }",
            ),
        ]);
        assert_eq!(
            found,
            [
                row("connection-methods", 1),
                row("connection-field-files", 2),
                row("connection-field-files:paths", 1),
                row("connection-field-files:spaces", 2),
            ]
        );
    }

    #[test]
    fn a_budget_that_is_exceeded_needs_a_row() {
        let method = |number: usize| format!("fn m{number}() {{}} ");
        let methods: String = (0..=MOST_METHODS).map(method).collect();
        let files = [File::new(
            "crates/transport/src/connection/mod.rs".to_owned(),
            format!("impl Connection {{ {methods} }}"),
        )];
        let problems = super::super::ratchet::check("", &count(&files));
        assert_eq!(problems.len(), 1);
        assert!(
            problems[0].contains("81 counted, 80 allowed"),
            "{problems:?}"
        );
    }
}
