//! `cargo xtask tidy`: checks rules that the compiler cannot enforce.

mod clocks;
mod cycles;
mod examples;
mod module_order;
mod workflows;

use std::collections::BTreeMap;
use std::path::Path;

use quote::ToTokens;

use crate::catalogue;
use crate::code;
use crate::dependencies;
use crate::figures;
use crate::guide;
use crate::layers;
use crate::manifest::{self, Manifest, Purpose};
use crate::report::Problems;
use crate::tree::{self, File};

/// Checks every rule over the repository at `root`.
pub(crate) fn run(root: &Path) -> Result<(), Problems> {
    let files = tree::files(root)?;
    let (manifests, mut problems) = read_manifests(&files);
    problems.extend(check_layers(&manifests));
    problems.extend(check_named_dependencies(&manifests));
    problems.extend(dependencies::check(&manifests));
    problems.extend(catalogue::check(&files));
    problems.extend(guide::check(&files));
    problems.extend(figures::check(&files));
    problems.extend(module_order::check(&files));
    problems.extend(cycles::check(&files, folders(&manifests)));
    problems.extend(clocks::check(&files, folders(&manifests)));
    problems.extend(examples::check(&files));
    problems.extend(workflows::check(&files));
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

/// Returns the folders of all crates.
fn folders(manifests: &BTreeMap<String, Manifest>) -> impl Iterator<Item = &str> {
    manifests.keys().map(String::as_str)
}

/// Returns the manifests of all crates by their folder, and a problem for each unreadable one.
pub(crate) fn read_manifests(files: &[File]) -> (BTreeMap<String, Manifest>, Problems) {
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
        if file.path_in_workspace() != Some(&format!("{folder}/Cargo.toml")) {
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

/// Checks that dependencies lead to lower layers. Those of tests too: a test that needs a higher
/// layer belongs there.
fn check_layers(manifests: &BTreeMap<String, Manifest>) -> Problems {
    let mut problems = Problems::new();
    let folders: BTreeMap<&str, &str> = manifests
        .iter()
        .map(|(folder, manifest)| (manifest.package.as_str(), folder.as_str()))
        .collect();
    for (folder, manifest) in manifests {
        if layers::layer_of(folder).is_none() {
            problems.push(format!(
                "{folder}/Cargo.toml: has no layer; give it one in tools/xtask/src/layers.rs"
            ));
            continue;
        }
        for dependency in &manifest.dependencies {
            let Some(other) = folders.get(dependency.package.as_str()) else {
                continue;
            };
            if !layers::is_allowed(folder, other) {
                problems.push(format!(
                    "{folder}/Cargo.toml: {} in layer {} may not depend on {} in layer {}",
                    manifest.package,
                    layer_label(folder),
                    dependency.package,
                    layer_label(other),
                ));
            }
        }
    }
    problems
}

/// Checks that rustls stays in `tls`, and tokio in `quic` and above. Tests may use both.
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
                        "{folder}/Cargo.toml: depends on {}; {}",
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
        problems.extend(check_comments(file));
        problems.extend(check_code(file));
    }
    problems
}

/// Checks that a space separates the text of a doc comment from its marks, as in rendered pages.
fn check_comments(file: &File) -> Problems {
    let mut problems = Problems::new();
    for (index, line) in file.text.lines().enumerate() {
        let line = line.trim_start();
        let marks = ["///", "//!"].into_iter();
        let text = marks.filter_map(|marks| line.strip_prefix(marks)).next();
        if text.is_some_and(|text| !text.is_empty() && !text.starts_with([' ', '/'])) {
            problems.push(format!(
                "{}:{}: a doc comment begins without a space",
                file.path,
                index + 1
            ));
        }
    }
    problems
}

fn check_code(file: &File) -> Problems {
    let mut problems = Problems::from_iter(file.syntax_error().map(str::to_owned));
    if file.text.contains("unsafe") && !may_be_unsafe(&file.path) {
        let words = code::words(file.syntax().to_token_stream());
        for line in code::lines_with(&words, &["unsafe"]) {
            problems.push(format!("{}:{line}: {UNSAFE_RULE}", file.path));
        }
    }
    let Some(folder) = file.crate_folder().filter(|_| !file.is_test()) else {
        return problems;
    };
    let is_named = |guarded: &&Guarded| file.text.contains(guarded.name);
    for guarded in GUARDED.iter().filter(is_named) {
        if (guarded.may_name)(folder) {
            continue;
        }
        let words = code::words(file.production().to_token_stream());
        for line in code::lines_with(&words, &[guarded.name]) {
            problems.push(format!("{}:{line}: {}", file.path, guarded.rule));
        }
    }
    problems
}

/// Returns true for code that calls the system or instructions of the processor.
fn may_be_unsafe(path: &str) -> bool {
    path.starts_with("crates/udp/")
        || path.starts_with("crates/tun/")
        || path.starts_with("crates/fused/src/")
        || path == COUNTING_ALLOCATOR
        || path.starts_with(MSQUIC)
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

/// Returns true if a path in `line` starts with `prefix`.
fn holds_path(line: &str, prefix: &str) -> bool {
    line.match_indices(prefix).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_.-~*$})>".contains(c))
    })
}

/// Checks that lock files and Cargo's settings name no registry other than crates.io.
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

fn layer_label(folder: &str) -> String {
    layers::layer_of(folder).map_or_else(|| "?".to_owned(), |layer| layer.to_string())
}

/// A library that only some crates may name.
struct Guarded {
    name: &'static str,
    /// Returns true for crates that may depend on it.
    may_use: fn(folder: &str) -> bool,
    /// Returns true for crates that may name it in code, after another crate re-exports it.
    may_name: fn(folder: &str) -> bool,
    rule: &'static str,
}

impl Guarded {
    /// Returns true for the library's package, and for packages named after it.
    fn is_package(&self, package: &str) -> bool {
        let parts: Vec<&str> = package.split('-').collect();
        parts.first() == Some(&self.name) || parts.last() == Some(&self.name)
    }
}

const GUARDED: &[Guarded] = &[
    Guarded {
        name: "rustls",
        // The server and the client speak TLS over TCP beside QUIC.
        may_use: |folder| folder == "tls" || is_at_least(folder, layers::QUIC),
        // Users pass their own configurations, which these crates take through tls.
        may_name: |folder| folder == "tls" || is_at_least(folder, layers::QUIC),
        rule: "below quic, tls is the only crate that depends on rustls",
    },
    Guarded {
        name: "tokio",
        // Reading from a disk needs threads that may block.
        may_use: |folder| folder == "files" || is_at_least(folder, layers::QUIC),
        may_name: |folder| folder == "files" || is_at_least(folder, layers::QUIC),
        rule: "below quic, files is the only library that names tokio",
    },
];

fn is_at_least(folder: &str, layer: u8) -> bool {
    layers::layer_of(folder).is_some_and(|own| own >= layer)
}

const UNSAFE_RULE: &str = "only udp, tun and the kernels of fused may be unsafe";

/// The allocator of the test that measures memory. It cannot be written without `unsafe`.
const COUNTING_ALLOCATOR: &str = "crates/courser/tests/memory/counting.rs";

/// The programs of msquic for the lab and for interoperability tests. The interface of msquic is unsafe, and no crate of
/// courser depends on them.
const MSQUIC: &str = "peers/msquic/";

/// Prefixes of paths on one machine, assembled here so that this file contains none of them.
const MACHINE_PREFIXES: &[&str] = &[
    concat!("/", "work/"),
    concat!("/", "root/"),
    concat!("/", "home/"),
    concat!("/", "Users/"),
];

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[cfg(test)]
mod tests;
