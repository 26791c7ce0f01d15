//! Refuses import cycles between the files of a crate.

use std::collections::{BTreeMap, BTreeSet};

use crate::modules::{Modules, Reference};
use crate::report::Problems;
use crate::tree::File;

/// Returns each reference that is part of a cycle between files of a crate in `folders`.
pub(super) fn check<'a>(files: &[File], folders: impl Iterator<Item = &'a str>) -> Problems {
    let mut problems = Problems::new();
    for folder in folders {
        let references = Modules::new(files, folder).references();
        for reference in in_cycles(&references) {
            let Reference {
                from,
                to,
                line,
                name,
            } = reference;
            problems.push(format!(
                "{from}:{line}: `{name}` is in {to}, which imports this file, directly or through others"
            ));
        }
    }
    problems
}

/// Returns the references that are part of a cycle.
fn in_cycles<'r, 'a>(references: &'r [Reference<'a>]) -> Vec<&'r Reference<'a>> {
    let mut edges: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for reference in references {
        edges.entry(reference.from).or_default().push(reference.to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> = edges
        .keys()
        .map(|&from| (from, reachable(from, &edges)))
        .collect();
    let imports_back = |reference: &&Reference<'_>| {
        let behind = reached.get(reference.to);
        behind.is_some_and(|behind| behind.contains(reference.from))
    };
    references.iter().filter(imports_back).collect()
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

    fn problems(files: &[(&str, &str)]) -> Problems {
        let files: Vec<File> = files
            .iter()
            .map(|(path, text)| File::new(format!("crates/x/src/{path}"), (*text).to_owned()))
            .collect();
        check(&files, ["x"].into_iter())
    }

    #[test]
    fn files_that_import_each_other_are_refused() {
        let found = problems(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\npub use a::A;"),
            ("a.rs", "use crate::b::B;\npub struct A;"),
            ("b.rs", "use crate::c::C;\npub struct B;"),
            ("c.rs", "use crate::A;\npub struct C;"),
            ("d.rs", "use crate::c::C;"),
        ]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(
            found[0],
            "crates/x/src/a.rs:1: `crate::b::B` is in crates/x/src/b.rs, which imports this file, \
             directly or through others"
        );
    }

    #[test]
    fn children_that_use_their_parent_are_refused() {
        let found = problems(&[
            ("a/mod.rs", "mod b;\nuse b::B;\npub struct A(B);"),
            ("a/b.rs", "use super::A;\npub struct B;"),
        ]);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn files_that_import_one_way_are_in_order() {
        let found = problems(&[
            ("lib.rs", "mod a;\nmod b;\npub use b::B;"),
            (
                "a.rs",
                "pub struct A;\n#[cfg(test)]\nmod tests { use crate::b::B; }",
            ),
            ("b.rs", "use crate::a::A;\npub struct B(A);"),
            ("b/tests.rs", "use super::B;"),
        ]);
        assert_eq!(found, Problems::new());
    }
}
