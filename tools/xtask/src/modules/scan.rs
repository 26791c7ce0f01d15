//! Reads the imports, paths and items of a module.

use std::collections::BTreeSet;

use crate::code::tokens::{Token, closing, text_at};

/// The names that a module imports, mentions and defines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scan<'a> {
    pub(super) imports: Vec<Import<'a>>,
    pub(super) mentions: Vec<Mention<'a>>,
    /// The first names of all paths outside of imports.
    pub(super) words: BTreeSet<&'a str>,
    /// The items that the module defines.
    pub(super) items: BTreeSet<&'a str>,
}

/// One name that a `use` brings into the module.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Import<'a> {
    pub(super) path: Vec<&'a str>,
    /// The name inside the module, or `*` for a glob import.
    pub(super) name: &'a str,
    pub(super) line: usize,
    pub(super) is_reexport: bool,
}

impl Import<'_> {
    pub(super) fn is_glob(&self) -> bool {
        self.name == "*"
    }
}

/// A path of at least two names outside of imports.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mention<'a> {
    pub(super) path: Vec<&'a str>,
    pub(super) line: usize,
}

/// Reads the tokens of one file. Inline modules count as part of it.
pub(super) fn scan<'a>(tokens: &[Token<'a>]) -> Scan<'a> {
    let mut scan = Scan::default();
    // The ends of the inline modules around the current token.
    let mut ends: Vec<usize> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        ends.retain(|&end| end > at);
        let token = tokens[at];
        let before = at.checked_sub(1).map_or("", |before| tokens[before].text);
        let is_inside_path = before == "::" || before == ".";
        at = match token.text {
            "mod" if text_at(tokens, at + 2) == "{" => {
                ends.push(closing(tokens, at + 2));
                at + 3
            }
            "mod" => at + 2,
            // `use<'a>` captures lifetimes.
            "use" if text_at(tokens, at + 1) != "<" => {
                let mut tree = Tree {
                    tokens,
                    depth: ends.len(),
                    line: token.line,
                    is_reexport: matches!(before, "pub" | ")"),
                };
                tree.read(at + 1, &[], &mut scan.imports)
            }
            _ if token.is_word() && !is_inside_path => scan.read_path(tokens, at, ends.len()),
            _ => at + 1,
        };
    }
    scan
}

impl<'a> Scan<'a> {
    /// Reads the path at `at`, and returns the index after it.
    fn read_path(&mut self, tokens: &[Token<'a>], at: usize, depth: usize) -> usize {
        let before = at.checked_sub(1).map_or("", |before| tokens[before].text);
        if DEFINING.contains(&before) {
            self.items.insert(tokens[at].text);
            return at + 1;
        }
        let (path, end) = path_at(tokens, at);
        self.words.insert(path[0]);
        if path.len() > 1 {
            self.mentions.push(Mention {
                path: from_file(path, depth),
                line: tokens[at].line,
            });
        }
        end
    }
}

/// The tree of one `use`.
struct Tree<'t, 'a> {
    tokens: &'t [Token<'a>],
    depth: usize,
    line: usize,
    is_reexport: bool,
}

impl<'a> Tree<'_, 'a> {
    /// Reads the branch at `at`, which continues `prefix`, and returns the index after it.
    fn read(&mut self, at: usize, prefix: &[&'a str], imports: &mut Vec<Import<'a>>) -> usize {
        let tokens = self.tokens;
        let at = at + usize::from(text_at(tokens, at) == "::");
        let is_path = tokens.get(at).is_some_and(Token::is_word);
        let (names, mut at) = if is_path {
            path_at(tokens, at)
        } else {
            (Vec::new(), at)
        };
        let mut path = [prefix, &names].concat();
        at += usize::from(text_at(tokens, at) == "::");
        match text_at(tokens, at) {
            "{" => {
                let end = closing(tokens, at);
                at += 1;
                while at < end {
                    self.line = tokens[at].line;
                    at = self.read(at, &path, imports);
                    at += usize::from(text_at(tokens, at) == ",");
                }
                end + 1
            }
            "*" => {
                imports.push(self.import(path, "*"));
                at + 1
            }
            other => {
                if path.len() > 1 && path.last() == Some(&"self") {
                    path.pop();
                }
                let alias = (other == "as").then(|| text_at(tokens, at + 1));
                let name = alias.or_else(|| path.last().copied());
                imports.extend(name.map(|name| self.import(path, name)));
                // Consumes at least one token, so that a scan of malformed code ends.
                at + if alias.is_some() {
                    2
                } else {
                    usize::from(!is_path)
                }
            }
        }
    }

    fn import(&self, path: Vec<&'a str>, name: &'a str) -> Import<'a> {
        Import {
            path: from_file(path, self.depth),
            name,
            line: self.line,
            is_reexport: self.is_reexport,
        }
    }
}

/// Returns the names of the path at `at`, and the index after it.
fn path_at<'a>(tokens: &[Token<'a>], at: usize) -> (Vec<&'a str>, usize) {
    let mut path = vec![tokens[at].text];
    let mut at = at + 1;
    while text_at(tokens, at) == "::" && tokens.get(at + 1).is_some_and(Token::is_word) {
        path.push(tokens[at + 1].text);
        at += 2;
    }
    (path, at)
}

/// Rewrites a path inside `depth` inline modules as their file would write it.
fn from_file(mut path: Vec<&str>, depth: usize) -> Vec<&str> {
    let supers = path.iter().take_while(|name| **name == "super").count();
    let inside = supers.min(depth);
    if inside > 0 {
        path.drain(..inside);
        if path.first() != Some(&"super") {
            path.insert(0, "self");
        }
    }
    path
}

/// The keywords before the name of an item.
const DEFINING: &[&str] = &[
    "const", "enum", "fn", "static", "struct", "trait", "type", "union",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::tokens::tokens;

    fn imports(code: &str) -> Vec<(String, String)> {
        let found = scan(&tokens(code)).imports;
        let found = found.iter();
        found
            .map(|import| (import.path.join("::"), import.name.to_owned()))
            .collect()
    }

    fn pair(path: &str, name: &str) -> (String, String) {
        (path.to_owned(), name.to_owned())
    }

    #[test]
    fn nested_imports_are_all_found() {
        assert_eq!(
            imports("use crate::a::{self, B, c::{D as E, f::*}};\nuse ::std::fmt;\nuse g;"),
            [
                pair("crate::a", "a"),
                pair("crate::a::B", "B"),
                pair("crate::a::c::D", "E"),
                pair("crate::a::c::f", "*"),
                pair("std::fmt", "fmt"),
                pair("g", "g"),
            ]
        );
    }

    #[test]
    fn reexports_differ_from_imports() {
        let code = "pub(crate) use a::B;\npub use c::D;\nuse e::F;";
        let found = scan(&tokens(code)).imports;
        let reexports: Vec<bool> = found.iter().map(|import| import.is_reexport).collect();
        assert_eq!(reexports, [true, true, false]);
    }

    #[test]
    fn paths_and_items_are_found_outside_of_imports() {
        let code = "use a::B;\nmod c;\nfn d() -> e::F { self.g.h(super::I::new::<J>()) }";
        let found = scan(&tokens(code));
        let mentions: Vec<String> = found
            .mentions
            .iter()
            .map(|mention| format!("{}:{}", mention.line, mention.path.join("::")))
            .collect();
        assert_eq!(mentions, ["3:e::F", "3:super::I::new"]);
        assert_eq!(found.items, BTreeSet::from(["d"]));
        assert!(found.words.contains("e") && !found.words.contains("B"));
    }

    #[test]
    fn inline_modules_belong_to_their_file() {
        let code = "mod a { use super::B; fn c() { super::super::D::e() } }\nuse super::F;";
        let found = scan(&tokens(code));
        assert_eq!(found.imports[0].path, ["self", "B"]);
        assert_eq!(found.mentions[0].path, ["super", "D", "e"]);
        assert_eq!(found.imports[1].path, ["super", "F"]);
    }

    #[test]
    fn captured_lifetimes_are_no_import() {
        assert_eq!(imports("fn a() -> impl B + use<'_> {}"), []);
    }

    #[test]
    fn unfinished_code_is_read_to_its_end() {
        for code in ["use", "use a::", "use {", "use {;", "mod", "use a as"] {
            scan(&tokens(code));
        }
    }
}
