//! `cargo xtask msrv`: checks the lowest Rust that the manifest promises, without that Rust.
//!
//! `.ci/msrv` compiles with it. This command takes a second: Cargo refuses to compile a package whose own
//! `rust-version` is newer than the compiler, so one such dependency breaks the promise.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use toml::Table;

use crate::metadata::{self, Package};
use crate::report::Problems;

/// Checks the manifests of all dependencies, and the pages that name the version.
pub(crate) fn run(root: &Path) -> Result<(), Problems> {
    let read = |path: &str| {
        fs::read_to_string(root.join(path)).map_err(|error| vec![format!("{path}: {error}")])
    };
    let promised = promised(&read("Cargo.toml")?)?;
    let mut problems = Problems::new();
    for page in PAGES {
        if !says(&read(page)?, &promised) {
            problems.push(format!(
                "{page}: does not say `{promised} or newer` of Rust"
            ));
        }
    }
    let metadata = metadata::read(root, &[])?;
    let packages = metadata::packages(&metadata);
    problems.extend(check(&packages, &used(&metadata, &packages), &promised));
    if !problems.is_empty() {
        return Err(problems);
    }
    println!("msrv: no dependency needs a newer Rust than {promised}");
    Ok(())
}

/// Returns the `rust-version` of the workspace.
fn promised(manifest: &str) -> Result<String, Problems> {
    let root: Table = manifest
        .parse()
        .map_err(|error| vec![format!("Cargo.toml: {error}")])?;
    let found = root.get("workspace").and_then(|it| it.get("package"));
    let found = found.and_then(|it| it.get("rust-version")?.as_str());
    let found = found.ok_or_else(|| vec!["Cargo.toml: no rust-version".to_owned()])?;
    Ok(found.to_owned())
}

/// Returns true if a page names a lowest Rust, and everywhere the promised one.
fn says(page: &str, promised: &str) -> bool {
    let ends = page.match_indices(" or newer").map(|(at, _)| &page[..at]);
    let words = ends.map(|text| text.rsplit([' ', '(', '\n']).next().unwrap_or(text));
    let mut versions = words.filter(|word| word.starts_with("1.")).peekable();
    versions.peek().is_some() && versions.all(|version| version == promised)
}

/// Returns the ids of the published crates and of everything that is compiled for them, without their tests.
fn used(metadata: &Value, packages: &[Package]) -> BTreeSet<String> {
    let edges = metadata::edges(metadata);
    let published = packages.iter().filter(|it| it.is_local && it.is_published);
    let mut waiting: Vec<String> = published.map(|package| package.id.clone()).collect();
    let mut found = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        let next = edges.get(&id).into_iter().flatten();
        waiting.extend(next.filter(|id| !found.contains(*id)).cloned());
        found.insert(id);
    }
    found
}

/// Returns a problem for each package in `used` that needs a newer Rust than `promised`.
fn check(packages: &[Package], used: &BTreeSet<String>, promised: &str) -> Problems {
    let used = packages.iter().filter(|package| used.contains(&package.id));
    let newer = used.filter_map(|package| {
        let needed = package.rust_version.as_deref()?;
        (parts(needed) > parts(promised)).then(|| {
            format!(
                "{} {} needs Rust {needed}, Cargo.toml promises {promised}",
                package.name, package.version
            )
        })
    });
    newer.collect()
}

/// Returns the numbers of a version. Cargo takes missing ones as zero.
fn parts(version: &str) -> [u32; 3] {
    let mut parts = [0; 3];
    for (part, text) in parts.iter_mut().zip(version.split('.')) {
        *part = text.parse().unwrap_or(0);
    }
    parts
}

/// The pages that say which Rust courser needs.
const PAGES: [&str; 3] = [
    "README.md",
    "docs/guide/src/introduction.md",
    "docs/guide/src/ten-minutes.md",
];

#[cfg(test)]
mod tests;
