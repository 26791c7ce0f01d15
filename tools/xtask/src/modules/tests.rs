use super::*;

/// Returns the references between the files of a crate `x` as `from to name`.
fn references(files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<File> = files
        .iter()
        .map(|(path, text)| File::new(format!("crates/x/src/{path}"), (*text).to_owned()))
        .collect();
    let modules = Modules::new(&files, "x");
    let short = |path: &str| path.trim_start_matches("crates/x/src/").to_owned();
    let found = modules.references().into_iter();
    found
        .map(|found| format!("{} {} {}", short(found.from), short(found.to), found.name))
        .collect()
}

#[test]
fn imports_and_qualified_names_are_references() {
    assert_eq!(
        references(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;"),
            ("a.rs", "use crate::b::B;\nfn f() { super::c::g() }"),
            ("b.rs", "pub struct B;"),
            ("c.rs", "pub fn g() {}"),
        ]),
        ["a.rs b.rs crate::b::B", "a.rs c.rs super::c::g"]
    );
}

#[test]
fn an_import_of_a_module_counts_where_its_names_are_used() {
    assert_eq!(
        references(&[
            ("lib.rs", "mod a;\nmod b;"),
            ("a.rs", "use crate::b;\nfn f() { b::g() }"),
            ("b.rs", "pub fn g() {}"),
        ]),
        ["a.rs b.rs b::g"]
    );
}

#[test]
fn names_lead_through_reexports_to_their_definition() {
    assert_eq!(
        references(&[
            ("lib.rs", "mod a;\nmod b;\npub use a::A;"),
            (
                "a/mod.rs",
                "mod inner;\npub use inner::A;\npub use inner::all::*;"
            ),
            ("a/inner.rs", "pub mod all;\npub struct A;"),
            ("a/inner/all.rs", "pub struct Z;"),
            ("b.rs", "use crate::A;\nuse crate::a::Z;"),
        ]),
        [
            "b.rs a/inner.rs crate::A",
            "b.rs a/inner/all.rs crate::a::Z",
        ]
    );
}

#[test]
fn a_reexport_that_its_file_uses_is_a_reference() {
    assert_eq!(
        references(&[
            ("lib.rs", "mod a;\npub use a::A;\npub fn f(_: A) {}"),
            ("a.rs", "pub struct A;"),
        ]),
        ["lib.rs a.rs a::A"]
    );
}

#[test]
fn children_refer_to_types_of_their_parent() {
    assert_eq!(
        references(&[
            ("lib.rs", "mod a;"),
            ("a.rs", "mod b;\npub struct A(b::B);"),
            ("a/b.rs", "use super::A;\npub struct B;\nimpl A {}"),
        ]),
        ["a.rs a/b.rs b::B", "a/b.rs a.rs super::A"]
    );
}

#[test]
fn names_of_other_crates_are_no_references() {
    assert_eq!(
        references(&[
            ("lib.rs", "use bytes::Bytes;\nmod a;\nstruct L;"),
            (
                "a.rs",
                "use super::Bytes;\nuse std::fmt;\nfn f() { fmt::format(Vec::new()) }"
            ),
        ]),
        Vec::<String>::new()
    );
}

#[test]
fn names_that_a_macro_defines_belong_to_the_module_that_is_named() {
    assert_eq!(
        references(&[
            ("lib.rs", "mod a;\nmod b;"),
            ("a.rs", "each! { A }"),
            ("b.rs", "use crate::a::A;"),
        ]),
        ["b.rs a.rs crate::a::A"]
    );
}

#[test]
fn tests_are_left_out() {
    assert_eq!(
        references(&[
            ("lib.rs", "mod a;\nstruct L;"),
            ("a.rs", "#[cfg(test)]\nmod tests { use super::super::L; }"),
            ("a/tests.rs", "use crate::L;"),
        ]),
        Vec::<String>::new()
    );
}

#[test]
fn a_cycle_of_reexports_ends() {
    let found = references(&[
        ("lib.rs", "mod a;\nmod b;"),
        ("a.rs", "pub use crate::b::X;\npub use crate::b::*;"),
        (
            "b.rs",
            "pub use crate::a::X;\npub use crate::a::*;\nfn f() { X::g() }",
        ),
    ]);
    assert!(found.len() <= 2, "{found:?}");
}

#[test]
fn a_program_without_a_library_is_a_root() {
    assert_eq!(
        references(&[
            ("main.rs", "mod a;\nfn main() {}\npub struct M;"),
            ("a.rs", "use crate::M;"),
        ]),
        ["a.rs main.rs crate::M"]
    );
}
