use super::*;

fn marked(files: &[(&str, &str)]) -> Vec<String> {
    let mut files: Vec<File> = files
        .iter()
        .map(|(path, text)| File::new((*path).to_owned(), (*text).to_owned()))
        .collect();
    mark_test_modules(&mut files);
    files
        .into_iter()
        .filter(File::is_test)
        .map(|file| file.path)
        .collect()
}

#[test]
fn a_module_declared_for_tests_is_a_test() {
    let found = marked(&[
        (
            "crates/a/src/lib.rs",
            "mod b;\n#[cfg(test)]\nmod testing;\nmod testing_ground;",
        ),
        ("crates/a/src/b.rs", "#[cfg(test)]\npub(crate) mod model;"),
        ("crates/a/src/b/model.rs", ""),
        ("crates/a/src/model.rs", ""),
        ("crates/a/src/testing/mod.rs", ""),
        ("crates/a/src/testing/link.rs", ""),
        ("crates/a/src/testing_ground.rs", ""),
        ("crates/b/src/testing/link.rs", ""),
    ]);
    assert_eq!(
        found,
        [
            "crates/a/src/b/model.rs",
            "crates/a/src/testing/mod.rs",
            "crates/a/src/testing/link.rs",
        ]
    );
}

#[test]
fn tests_are_recognized_by_their_path() {
    let found = marked(&[
        ("crates/a/src/b/tests.rs", ""),
        ("crates/a/tests/echo.rs", ""),
        ("crates/a/src/tests_of_time.rs", ""),
    ]);
    assert_eq!(found, ["crates/a/src/b/tests.rs", "crates/a/tests/echo.rs"]);
}
