//! Reads the imports, paths and items of a module.

use std::collections::BTreeSet;

use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{Item, UseTree, Visibility};

use crate::code;

/// The names that a module imports, mentions and defines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    pub(super) imports: Vec<Import>,
    pub(super) mentions: Vec<Mention>,
    /// The first names of all paths outside of imports.
    pub(super) words: BTreeSet<String>,
    /// The items that the module defines.
    pub(super) items: BTreeSet<String>,
    /// The number of inline modules around what is read.
    depth: usize,
}

/// One name that a `use` brings into the module.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) path: Vec<String>,
    /// The name inside the module, or `*` for a glob import.
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) is_reexport: bool,
}

impl Import {
    pub(super) fn is_glob(&self) -> bool {
        self.name == "*"
    }
}

/// A path of at least two names outside of imports.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mention {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
}

/// Reads one file. Inline modules count as part of it.
pub(super) fn scan(file: &syn::File) -> Scan {
    let mut scan = Scan::default();
    scan.visit_file(file);
    scan
}

impl Scan {
    fn add_path(&mut self, path: Vec<String>, line: usize) {
        self.words.insert(path[0].clone());
        if path.len() > 1 {
            let path = from_file(path, self.depth);
            self.mentions.push(Mention { path, line });
        }
    }

    /// Adds the names of a branch of a `use`, which continues `prefix`.
    fn add_imports(&mut self, tree: &UseTree, prefix: &[String], is_reexport: bool) {
        let extended = |ident: &syn::Ident| [prefix, &[ident.to_string()]].concat();
        let (path, name, span) = match tree {
            UseTree::Path(branch) => {
                return self.add_imports(&branch.tree, &extended(&branch.ident), is_reexport);
            }
            UseTree::Group(group) => {
                for branch in &group.items {
                    self.add_imports(branch, prefix, is_reexport);
                }
                return;
            }
            UseTree::Glob(glob) => (prefix.to_vec(), "*".to_owned(), glob.star_token.span),
            // `a::{self}` imports `a`.
            UseTree::Name(used) if used.ident == "self" && !prefix.is_empty() => {
                let name = prefix.last().cloned().unwrap_or_default();
                (prefix.to_vec(), name, used.ident.span())
            }
            UseTree::Name(used) => {
                let name = used.ident.to_string();
                (extended(&used.ident), name, used.ident.span())
            }
            UseTree::Rename(used) => {
                let name = used.rename.to_string();
                (extended(&used.ident), name, used.ident.span())
            }
        };
        self.imports.push(Import {
            path: from_file(path, self.depth),
            name,
            line: span.start().line,
            is_reexport,
        });
    }
}

impl<'ast> Visit<'ast> for Scan {
    fn visit_item(&mut self, item: &'ast Item) {
        let name = match item {
            Item::Const(item) => Some(&item.ident),
            Item::Enum(item) => Some(&item.ident),
            Item::Fn(item) => Some(&item.sig.ident),
            Item::Static(item) => Some(&item.ident),
            Item::Struct(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            Item::Union(item) => Some(&item.ident),
            _ => None,
        };
        self.items.extend(name.map(ToString::to_string));
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.depth += 1;
        visit::visit_item_mod(self, module);
        self.depth -= 1;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_reexport = !matches!(item.vis, Visibility::Inherited);
        self.add_imports(&item.tree, &[], is_reexport);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path.segments.iter().map(|part| part.ident.to_string());
        let line = path.segments.first().map(|part| part.ident.span());
        let line = line.map_or(0, |span| span.start().line);
        self.add_path(names.collect(), line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        visit::visit_macro(self, call);
        let words = code::words(call.tokens.to_token_stream());
        let mut at = 0;
        while at < words.len() {
            let names = path_at(&words[at..]);
            let is_inside = at > 0 && matches!(words[at - 1].text.as_str(), "::" | ".");
            let line = words[at].line;
            at += (2 * names.len()).max(2) - 1;
            if !names.is_empty() && !is_inside {
                self.add_path(names, line);
            }
        }
    }
}

/// Returns the names of the path at the start of `words`.
fn path_at(words: &[code::Word]) -> Vec<String> {
    let is_name = |word: &code::Word| {
        word.text
            .starts_with(|c: char| c.is_alphabetic() || c == '_')
    };
    let mut names = Vec::new();
    for pair in words.chunks(2) {
        if !is_name(&pair[0]) {
            break;
        }
        names.push(pair[0].text.clone());
        if pair.get(1).is_none_or(|word| word.text != "::") {
            break;
        }
    }
    names
}

/// Rewrites a path inside `depth` inline modules as their file would write it.
fn from_file(mut path: Vec<String>, depth: usize) -> Vec<String> {
    let supers = path.iter().take_while(|name| *name == "super").count();
    let inside = supers.min(depth);
    if inside > 0 {
        path.drain(..inside);
        if path.first().is_none_or(|name| name != "super") {
            path.insert(0, "self".to_owned());
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(code: &str) -> Vec<(String, String)> {
        let found = scan(&syn::parse_file(code).unwrap()).imports;
        let found = found.iter();
        found
            .map(|import| (import.path.join("::"), import.name.clone()))
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
        let found = scan(&syn::parse_file(code).unwrap()).imports;
        let reexports: Vec<bool> = found.iter().map(|import| import.is_reexport).collect();
        assert_eq!(reexports, [true, true, false]);
    }

    #[test]
    fn paths_and_items_are_found_outside_of_imports() {
        let code = "use a::B;\nmod c;\nfn d() -> e::F { self.g.h(super::I::new::<J>()) }";
        let found = scan(&syn::parse_file(code).unwrap());
        let mentions: Vec<String> = found
            .mentions
            .iter()
            .map(|mention| format!("{}:{}", mention.line, mention.path.join("::")))
            .collect();
        assert_eq!(mentions, ["3:e::F", "3:super::I::new"]);
        assert_eq!(found.items, BTreeSet::from(["d".to_owned()]));
        assert!(found.words.contains("e") && !found.words.contains("B"));
    }

    #[test]
    fn inline_modules_belong_to_their_file() {
        let code = "mod a { use super::B; fn c() { super::super::D::e() } }\nuse super::F;";
        let found = scan(&syn::parse_file(code).unwrap());
        assert_eq!(found.imports[0].path, ["self", "B"]);
        assert_eq!(found.mentions[0].path, ["super", "D", "e"]);
        assert_eq!(found.imports[1].path, ["super", "F"]);
    }

    #[test]
    fn captured_lifetimes_are_no_import() {
        assert_eq!(imports("fn a() -> impl B + use<'_> {}"), []);
    }
}
