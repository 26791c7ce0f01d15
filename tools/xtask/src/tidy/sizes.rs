//! Counts the lines of each crate.

use super::ratchet::Count;
use crate::code;
use crate::code::comments;
use crate::tree::File;

/// Counts the lines of each crate in `folders` without tests and without code in doc comments, rounded up to the next [`STEP`].
pub(super) fn count<'a>(files: &[File], folders: impl Iterator<Item = &'a str>) -> Vec<Count> {
    let limited = folders.filter(|folder| !WITHOUT_AIM.contains(folder));
    let counts = limited.map(|folder| {
        let sources = files.iter().filter(|file| file.is_production_of(folder));
        let mut sizes: Vec<(usize, &str)> = sources
            .map(|file| (lines(file), file.path.as_str()))
            .collect();
        sizes.sort_by(|left, right| right.cmp(left));
        let sum: usize = sizes.iter().map(|(lines, _)| lines).sum();
        let places = sizes
            .iter()
            .map(|(lines, path)| format!("{path}: {lines} lines"));
        Count {
            folder: folder.to_owned(),
            gate: "lines".to_owned(),
            count: sum.next_multiple_of(STEP),
            aim: aim(folder),
            places: places.collect(),
        }
    });
    counts.collect()
}

fn lines(file: &File) -> usize {
    let all = file.text.lines().count();
    let tests = code::test_lines(file.code()) + comments::example_lines(&file.text);
    all.saturating_sub(tests)
}

fn aim(folder: &str) -> usize {
    match folder {
        "cli" => 9_000,
        // The API, what must happen outside of its lock, and the reactions to sockets, shards and paths that fail.
        "quic" => 13_000,
        _ => 10_000,
    }
}

/// The crates without a limit: the transport protocol and the simulator.
const WITHOUT_AIM: &[&str] = &["sim", "transport"];

/// Numbers are rounded, so that not every commit changes them.
const STEP: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, lines: usize) -> File {
        File::new(path.to_owned(), "// line\n".repeat(lines))
    }

    fn counted(files: &[File], folder: &str) -> Vec<(usize, usize)> {
        let counts = count(files, [folder].into_iter()).into_iter();
        counts.map(|count| (count.count, count.aim)).collect()
    }

    #[test]
    fn a_crate_above_its_aim_needs_a_row() {
        let files = [
            file("crates/wire/src/lib.rs", 6_000),
            file("crates/wire/src/a.rs", 4_001),
        ];
        let counts = count(&files, ["wire"].into_iter());
        let problems = super::super::ratchet::check("", &counts);
        assert_eq!(problems.len(), 1);
        assert!(
            problems[0].contains("wire lines: 10100 counted, 10000 allowed"),
            "{problems:?}"
        );
        assert_eq!(counts[0].places[0], "crates/wire/src/lib.rs: 6000 lines");
    }

    #[test]
    fn tests_and_other_files_do_not_count() {
        let inline = "fn f() {}\n\n#[cfg(test)]\nmod tests {\n    // line\n}\n";
        let files = [
            File::new("crates/wire/src/lib.rs".to_owned(), inline.repeat(51)),
            file("crates/wire/src/a/tests.rs", 900),
            file("crates/wire/tests/it/main.rs", 900),
            file("crates/wire/examples/a.rs", 900),
            file("crates/wires/src/lib.rs", 900),
            File::new(
                "crates/wire/src/b.rs".to_owned(),
                "/// ```\n/// f();\n/// ```\n".repeat(300),
            ),
        ];
        assert_eq!(counted(&files, "wire"), [(200, 10_000)]);
    }

    #[test]
    fn some_crates_have_another_aim() {
        assert_eq!(counted(&[], "cli"), [(0, 9_000)]);
        assert_eq!(counted(&[], "transport"), []);
        assert_eq!(counted(&[], "sim"), []);
    }
}
