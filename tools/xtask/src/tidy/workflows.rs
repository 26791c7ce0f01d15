//! Checks that the workflows of a forge and the commands that they run name what the repository has.

use std::collections::BTreeSet;

use crate::layers::{self, SYSTEM_CALLS};
use crate::report::Problems;
use crate::tree::File;

/// Returns the paths in workflows that lead nowhere, the fuzz targets that no workflow runs, and the crates
/// without I/O that are not tested for 32 bits.
pub(super) fn check(files: &[File]) -> Problems {
    let known: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let is_folder = |path: &str| {
        known
            .iter()
            .any(|file| file.starts_with(&format!("{path}/")))
    };
    let mut problems = Problems::new();
    for file in files.iter().filter(|file| file.path.starts_with(FOLDER)) {
        for (number, line) in file.text.lines().enumerate() {
            let missing = paths(line).find(|path| !known.contains(path) && !is_folder(path));
            if let Some(path) = missing {
                problems.push(format!(
                    "{}:{}: {path} does not exist",
                    file.path,
                    number + 1
                ));
            }
        }
    }
    let text = |path: &str| {
        let found = files.iter().find(|file| file.path == path);
        found.map_or("", |file| file.text.as_str())
    };
    let nightly = format!("{FOLDER}nightly.yml");
    let listed: BTreeSet<&str> = text(&nightly).split([' ', ',', '\n', '[', ']']).collect();
    for target in targets(text(TARGETS)).filter(|target| !listed.contains(target)) {
        problems.push(format!("{nightly}: does not run the fuzz target {target}"));
    }
    let tested = words_of_array(text(THIRTY_TWO_BIT), "crates");
    let without_io: BTreeSet<&str> = files.iter().filter_map(crate_without_io).collect();
    for name in without_io.difference(&tested) {
        problems.push(format!("{THIRTY_TWO_BIT}: does not test {name}"));
    }
    for name in tested.difference(&without_io) {
        let reason = "which is not a crate of layers 0 to 3";
        problems.push(format!("{THIRTY_TWO_BIT}: tests {name}, {reason}"));
    }
    problems
}

/// Returns the folder of the crate whose manifest this is, if it is below the layer of I/O.
fn crate_without_io(file: &File) -> Option<&str> {
    let inner = file.path_in_workspace()?;
    let folder = inner.strip_suffix("/Cargo.toml")?;
    layers::layer_of(folder)
        .is_some_and(|layer| layer < SYSTEM_CALLS)
        .then_some(folder)
}

/// Returns the words of the array `name=(WORD...)` of a shell script.
fn words_of_array<'a>(script: &'a str, name: &str) -> BTreeSet<&'a str> {
    let start = format!("\n{name}=(");
    let rest = script.split_once(&start).map_or("", |(_, rest)| rest);
    let mut words = BTreeSet::new();
    for line in rest.lines() {
        let (line, is_last) = match without_comment(line).split_once(')') {
            Some((before, _)) => (before, true),
            None => (without_comment(line), false),
        };
        words.extend(line.split_whitespace());
        if is_last {
            break;
        }
    }
    words
}

/// Returns the part of a line of a script before its comment.
fn without_comment(line: &str) -> &str {
    line.split_once('#').map_or(line, |(code, _)| code)
}

/// Returns the words of a line that are paths of this repository, without those that a matrix completes.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split_whitespace();
    let words = words.map(|word| word.trim_matches(['"', '\'']));
    words.filter(|word| {
        let is_ours = FOLDERS.iter().any(|folder| word.starts_with(folder));
        is_ours && !word.contains(['$', '*'])
    })
}

/// Returns the names of fuzz targets, of lines as `target("name", function, KIND),`.
fn targets(source: &str) -> impl Iterator<Item = &str> {
    source.lines().filter_map(|line| {
        let rest = line.trim().strip_prefix("target(\"")?;
        rest.split('"').next()
    })
}

const FOLDER: &str = ".github/workflows/";

/// The list of fuzz targets.
const TARGETS: &str = "tools/fuzzing/src/lib.rs";

/// The command that tests crates without I/O for 32 bits.
const THIRTY_TWO_BIT: &str = ".ci/thirty-two-bit";

/// The folders with commands.
const FOLDERS: [&str; 6] = [
    ".ci/",
    "docs/",
    "fuzz/run",
    "interop/",
    "packaging/",
    "peers/",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File::new(path.to_owned(), text.to_owned())
    }

    #[test]
    fn missing_paths_and_omitted_targets_are_reported() {
        let files = [
            file(".ci/run", ""),
            file("interop/http3/curl", ""),
            file(
                ".github/workflows/nightly.yml",
                "- run: bash .ci/run\n- run: packaging/none && .ci/run\n- run: interop/http3\n\
                 - run: interop/${{ matrix.peer }}/run\n- target: [header, pair]\n",
            ),
            file(
                TARGETS,
                "    target(\"header\", header, PARSER),\n    target(\"frames\", frames, PARSER),\n",
            ),
        ];
        assert_eq!(
            check(&files),
            [
                ".github/workflows/nightly.yml:2: packaging/none does not exist",
                ".github/workflows/nightly.yml: does not run the fuzz target frames",
            ]
        );
    }

    #[test]
    fn the_list_for_32_bits_has_all_crates_without_io_and_no_others() {
        let files = [
            file("crates/base/Cargo.toml", ""),
            file("crates/wire/Cargo.toml", ""),
            file("crates/transport/Cargo.toml", ""),
            file("crates/udp/Cargo.toml", ""),
            file(
                THIRTY_TWO_BIT,
                "# crates=(wire)\ncrates=(base udp # not wire (layer 1)\n  transport)\n",
            ),
        ];
        assert_eq!(
            check(&files),
            [
                ".ci/thirty-two-bit: does not test wire",
                ".ci/thirty-two-bit: tests udp, which is not a crate of layers 0 to 3",
            ]
        );
    }
}
