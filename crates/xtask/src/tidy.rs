//! `cargo xtask tidy`: what the compiler cannot refuse.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Problems;
use crate::catalogue;
use crate::code;
use crate::dependencies;
use crate::floors;
use crate::manifest::{self, Manifest, Purpose};
use crate::tree::{self, File};

/// Runs every check over the repository at `root`.
pub(crate) fn run(root: &Path) -> Result<(), Problems> {
    let files = tree::files(root)?;
    let (manifests, mut problems) = read_manifests(&files);
    problems.extend(check_floors(&manifests));
    problems.extend(check_named_dependencies(&manifests));
    problems.extend(dependencies::check(&manifests));
    problems.extend(catalogue::check(&files));
    for file in &files {
        problems.extend(check_file(file, &root.display().to_string()));
    }
    if problems.is_empty() {
        println!(
            "tidy: {} crates and {} files are in order",
            manifests.len(),
            files.len()
        );
        return Ok(());
    }
    Err(problems)
}

/// The manifests below `crates/` by their folder, and what could not be read.
fn read_manifests(files: &[File]) -> (BTreeMap<String, Manifest>, Problems) {
    let mut problems = Problems::new();
    let mut manifests = BTreeMap::new();
    let root = files.iter().find(|file| file.path == "Cargo.toml");
    let renames = root.map_or_else(
        || Ok(BTreeMap::new()),
        |file| manifest::parse_renames(&file.text),
    );
    let renames = renames.unwrap_or_else(|error| {
        problems.push(format!("Cargo.toml: {error}"));
        BTreeMap::new()
    });
    for file in files {
        let Some(folder) = file.crate_folder() else {
            continue;
        };
        if file.path != format!("crates/{folder}/Cargo.toml") {
            continue;
        }
        match manifest::parse(&file.text, &renames) {
            Ok(manifest) => {
                manifests.insert(folder.to_owned(), manifest);
            }
            Err(error) => problems.push(format!("{}: {error}", file.path)),
        }
    }
    (manifests, problems)
}

/// Dependencies run down the floors, those of tests too: a test that needs more lives higher up.
fn check_floors(manifests: &BTreeMap<String, Manifest>) -> Problems {
    let mut problems = Problems::new();
    let folders: BTreeMap<&str, &str> = manifests
        .iter()
        .map(|(folder, manifest)| (manifest.package.as_str(), folder.as_str()))
        .collect();
    for (folder, manifest) in manifests {
        if floors::floor_of(folder).is_none() {
            problems.push(format!(
                "crates/{folder}/Cargo.toml: has no floor; give it one in crates/xtask/src/floors.rs"
            ));
            continue;
        }
        for dependency in &manifest.dependencies {
            let Some(other) = folders.get(dependency.package.as_str()) else {
                continue;
            };
            if !floors::is_allowed(folder, other) {
                problems.push(format!(
                    "crates/{folder}/Cargo.toml: {} on floor {} may not depend on {} on floor {}",
                    manifest.package,
                    floor_label(folder),
                    dependency.package,
                    floor_label(other),
                ));
            }
        }
    }
    problems
}

/// rustls stays in `tls`, tokio in `courser` and above; tests may use both.
fn check_named_dependencies(manifests: &BTreeMap<String, Manifest>) -> Problems {
    let mut problems = Problems::new();
    for (folder, manifest) in manifests {
        let used = manifest
            .dependencies
            .iter()
            .filter(|used| used.purpose != Purpose::Dev);
        for dependency in used {
            for guarded in GUARDED {
                if guarded.is_package(&dependency.package) && !(guarded.may_use)(folder) {
                    problems.push(format!(
                        "crates/{folder}/Cargo.toml: depends on {}; {}",
                        dependency.package, guarded.rule
                    ));
                }
            }
        }
    }
    problems
}

fn check_file(file: &File, root: &str) -> Problems {
    let mut problems = check_machine_paths(file, root);
    problems.extend(check_registries(file));
    if file.is_rust() {
        problems.extend(check_size(file));
        problems.extend(check_code(file));
    }
    problems
}

fn check_size(file: &File) -> Option<String> {
    let lines = file.text.lines().count();
    (lines > MAX_LINES).then(|| {
        format!(
            "{}: {lines} lines, allowed are {MAX_LINES}; split it",
            file.path
        )
    })
}

fn check_code(file: &File) -> Problems {
    let mut problems = Problems::new();
    let code = code::only_code(&file.text);
    let folder = file.crate_folder();
    if folder != Some("udp") && file.path != COUNTING_ALLOCATOR {
        for line in code::lines_with(&code, "unsafe") {
            problems.push(format!("{}:{line}: only udp may be unsafe", file.path));
        }
    }
    let Some(folder) = folder.filter(|_| !file.is_test()) else {
        return problems;
    };
    let code = code::without_tests(&code);
    for guarded in GUARDED.iter().filter(|guarded| !(guarded.may_name)(folder)) {
        for line in code::lines_with(&code, guarded.name) {
            problems.push(format!("{}:{line}: {}", file.path, guarded.rule));
        }
    }
    problems
}

fn check_machine_paths(file: &File, root: &str) -> Problems {
    let mut problems = Problems::new();
    for (index, line) in file.text.lines().enumerate() {
        let prefixes = MACHINE_PREFIXES.iter().copied().chain([root]);
        if let Some(prefix) = prefixes.into_iter().find(|prefix| holds_path(line, prefix)) {
            problems.push(format!(
                "{}:{}: holds a path of one machine ({prefix})",
                file.path,
                index + 1
            ));
        }
    }
    problems
}

/// True when `prefix` begins a path in `line`, rather than going on with one.
fn holds_path(line: &str, prefix: &str) -> bool {
    line.match_indices(prefix).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_.-~*$})>".contains(c))
    })
}

/// Lock files and Cargo settings name no registry but crates.io.
fn check_registries(file: &File) -> Problems {
    let lock = file.path.ends_with("Cargo.lock");
    let settings = file.path.contains(".cargo/config");
    if !lock && !settings {
        return Problems::new();
    }
    let mut problems = Problems::new();
    for (index, line) in file.text.lines().enumerate() {
        let foreign = if lock {
            line.starts_with("source = ") && !line.contains(CRATES_IO)
        } else {
            line.starts_with("[source") || line.starts_with("[registr")
        };
        if foreign {
            problems.push(format!(
                "{}:{}: names a registry: {line}",
                file.path,
                index + 1
            ));
        }
    }
    problems
}

fn floor_label(folder: &str) -> String {
    floors::floor_of(folder).map_or_else(|| "?".to_owned(), |floor| floor.to_string())
}

/// A library that only some crates may name.
struct Guarded {
    name: &'static str,
    /// May depend on it.
    may_use: fn(folder: &str) -> bool,
    /// May name it in code, where another crate hands it on.
    may_name: fn(folder: &str) -> bool,
    rule: &'static str,
}

impl Guarded {
    /// True for the library's package and for those that put it into their own interface.
    fn is_package(&self, package: &str) -> bool {
        let parts: Vec<&str> = package.split('-').collect();
        parts.first() == Some(&self.name) || parts.last() == Some(&self.name)
    }
}

const GUARDED: &[Guarded] = &[
    Guarded {
        name: "rustls",
        // The facade serves TLS over TCP beside QUIC.
        may_use: |folder| folder == "tls" || is_at_least(folder, floors::FACADE),
        // Users bring their own configurations, which the facade takes through tls.
        may_name: |folder| folder == "tls" || is_at_least(folder, floors::FACADE),
        rule: "below the facade, tls is the only crate that depends on rustls",
    },
    Guarded {
        name: "tokio",
        // Reading a disk needs threads that may wait.
        may_use: |folder| folder == "files" || is_at_least(folder, floors::FACADE),
        may_name: |folder| folder == "files" || is_at_least(folder, floors::FACADE),
        rule: "below the facade, files is the only library that names tokio",
    },
];

fn is_at_least(folder: &str, floor: u8) -> bool {
    floors::floor_of(folder).is_some_and(|own| own >= floor)
}

/// The one test that measures memory: an allocator cannot be written without `unsafe`.
const COUNTING_ALLOCATOR: &str = "crates/courser/tests/memory/counting.rs";

/// The aim is 500 lines; this is where it stops being an aim.
const MAX_LINES: usize = 700;

/// Put together here so that this file holds none of them.
const MACHINE_PREFIXES: &[&str] = &[
    concat!("/", "work/"),
    concat!("/", "root/"),
    concat!("/", "home/"),
    concat!("/", "Users/"),
];

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[cfg(test)]
mod tests;
