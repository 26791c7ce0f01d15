//! Counts the files of each crate that import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

use super::ratchet::Count;
use crate::modules::{Modules, Reference};
use crate::tree::File;

/// Counts the files in circles of each crate in `folders`. The places are their references.
pub(super) fn count<'a>(files: &[File], folders: impl Iterator<Item = &'a str>) -> Vec<Count> {
    let counts = folders.map(|folder| {
        let references = Modules::new(files, folder).references();
        let circles = in_circles(&references);
        let within: BTreeSet<&str> = circles.iter().map(|reference| reference.from).collect();
        let places = circles.iter().map(|reference| {
            let Reference {
                from,
                to,
                line,
                name,
            } = reference;
            format!("{from}:{line}: `{name}` is in {to}, which leads back")
        });
        Count {
            folder: folder.to_owned(),
            gate: "files-in-circles".to_owned(),
            count: within.len(),
            aim: 0,
            places: places.collect(),
        }
    });
    counts.collect()
}

/// Returns the references that are part of a circle.
fn in_circles<'r, 'a>(references: &'r [Reference<'a>]) -> Vec<&'r Reference<'a>> {
    let mut edges: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for reference in references {
        edges.entry(reference.from).or_default().push(reference.to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> = edges
        .keys()
        .map(|&from| (from, reachable(from, &edges)))
        .collect();
    let leads_back = |reference: &&Reference<'_>| {
        let behind = reached.get(reference.to);
        behind.is_some_and(|behind| behind.contains(reference.from))
    };
    references.iter().filter(leads_back).collect()
}

/// Returns every file that references lead to from `start`.
fn reachable<'a>(start: &'a str, edges: &BTreeMap<&'a str, Vec<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![start];
    while let Some(file) = open.pop() {
        for &next in edges.get(file).into_iter().flatten() {
            if reached.insert(next) {
                open.push(next);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(files: &[(&str, &str)]) -> Count {
        let files: Vec<File> = files
            .iter()
            .map(|(path, text)| File::new(format!("crates/x/src/{path}"), (*text).to_owned()))
            .collect();
        count(&files, ["x"].into_iter()).remove(0)
    }

    #[test]
    fn files_that_import_each_other_are_counted() {
        let found = counted(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\npub use a::A;"),
            ("a.rs", "use crate::b::B;\npub struct A;"),
            ("b.rs", "use crate::c::C;\npub struct B;"),
            ("c.rs", "use crate::A;\npub struct C;"),
            ("d.rs", "use crate::c::C;"),
        ]);
        assert_eq!(found.count, 3);
        assert_eq!(
            found.places[0],
            "crates/x/src/a.rs:1: `crate::b::B` is in crates/x/src/b.rs, which leads back"
        );
    }

    #[test]
    fn children_that_use_their_parent_are_counted() {
        let found = counted(&[
            ("a/mod.rs", "mod b;\nuse b::B;\npub struct A(B);"),
            ("a/b.rs", "use super::A;\npub struct B;"),
        ]);
        assert_eq!(found.count, 2);
    }

    #[test]
    fn files_that_import_one_way_are_in_order() {
        let found = counted(&[
            ("lib.rs", "mod a;\nmod b;\npub use b::B;"),
            (
                "a.rs",
                "pub struct A;\n#[cfg(test)]\nmod tests { use crate::b::B; }",
            ),
            ("b.rs", "use crate::a::A;\npub struct B(A);"),
            ("b/tests.rs", "use super::B;"),
        ]);
        assert_eq!(found.count, 0);
        assert_eq!(found.places, Vec::<String>::new());
    }
}
