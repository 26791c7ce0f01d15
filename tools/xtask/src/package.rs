//! `cargo xtask package`: packs every crate that is published, as `cargo publish` would.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::metadata::{self, Kind, Package};
use crate::report::Problems;

/// The check of each archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verify {
    /// Compile it, with the other archives as its dependencies. Takes minutes.
    Compile,
    /// None but that of the manifest and of the size. Takes seconds.
    Skip,
}

/// Checks the manifests, packs the crates and prints them in the order in which they can be published.
pub(crate) fn run(root: &Path, verify: Verify) -> Result<(), Problems> {
    let (packages, target) = workspace(root)?;
    let problems = check(&packages);
    if !problems.is_empty() {
        return Err(problems);
    }
    let names = order(&packages)?;
    // Archives of an earlier version or of a removed crate would be counted too.
    let folder = target.join("package");
    for name in &names {
        let _ = fs::remove_file(archive(&folder, &packages, name));
    }
    pack(root, &packages, verify)?;
    let mut problems = Problems::new();
    for name in &names {
        let path = archive(&folder, &packages, name);
        match fs::metadata(&path) {
            Ok(found) if found.len() > MAX_BYTES => problems.push(format!(
                "{name}: its archive has {} bytes, more than {MAX_BYTES}: exclude what only tests read",
                found.len()
            )),
            Ok(found) => println!("{:4} KiB  {name}", found.len().div_ceil(1024)),
            Err(error) => problems.push(format!("{}: {error}", path.display())),
        }
    }
    println!("{} crates, in the order of `cargo publish`", names.len());
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

/// Returns the crates of the workspace and the target folder.
fn workspace(root: &Path) -> Result<(Vec<Package>, PathBuf), Problems> {
    let read = metadata::read(root, &["--no-deps"])?;
    let target = read.get("target_directory").and_then(Value::as_str);
    let target = target.ok_or_else(|| vec!["cargo metadata names no target folder".to_owned()])?;
    Ok((metadata::packages(&read), PathBuf::from(target)))
}

fn archive(folder: &Path, packages: &[Package], name: &str) -> PathBuf {
    let version = packages.iter().find(|package| package.name == name);
    let version = version.map_or("", |package| &package.version);
    folder.join(format!("{name}-{version}.crate"))
}

/// Returns what keeps a crate from being published, or makes a poor package of it.
fn check(packages: &[Package]) -> Problems {
    let mut problems = Problems::new();
    for package in packages.iter().filter(|package| package.is_published) {
        let mut report = |text: String| problems.push(format!("{}: {text}", package.name));
        if package.description.is_empty() {
            report("it has no description".to_owned());
        }
        if package.license.is_empty() {
            report("it has no license".to_owned());
        }
        for file in LICENSES {
            if !package.folder.join(file).is_file() {
                report(format!("its folder has no {file}: link it to ../../{file}"));
            }
        }
        for used in package.dependencies.iter().filter(|used| used.is_local) {
            // Cargo leaves out dependencies of tests that have no version.
            if used.kind == Kind::Dev && !used.has_version {
                continue;
            }
            if !used.has_version {
                report(format!("its dependency {} has no version", used.name));
            }
            let found = packages.iter().find(|package| package.name == used.name);
            if found.is_none_or(|found| !found.is_published) {
                report(format!(
                    "it depends on {}, which is not published",
                    used.name
                ));
            }
        }
    }
    problems
}

/// Returns the published crates, each after those that it depends on.
fn order(packages: &[Package]) -> Result<Vec<&str>, Problems> {
    let mut rest: Vec<&Package> = packages.iter().filter(|it| it.is_published).collect();
    rest.sort_by(|left, right| left.name.cmp(&right.name));
    let mut done: Vec<&str> = Vec::new();
    while !rest.is_empty() {
        let is_waiting = |package: &&Package| {
            let mut needed = package.dependencies.iter().filter(|used| used.is_needed());
            needed.any(|used| !done.contains(&used.name.as_str()))
        };
        let (waiting, ready): (Vec<_>, Vec<_>) = rest.into_iter().partition(is_waiting);
        if ready.is_empty() {
            let names: Vec<&str> = waiting.iter().map(|package| &*package.name).collect();
            return Err(vec![format!(
                "crates depend on each other: {}",
                names.join(", ")
            )]);
        }
        done.extend(ready.iter().map(|package| package.name.as_str()));
        rest = waiting;
    }
    Ok(done)
}

/// Runs `cargo package`, which packs crates that depend on each other although none is published.
fn pack(root: &Path, packages: &[Package], verify: Verify) -> Result<(), Problems> {
    let mut arguments = vec![
        "package",
        "--locked",
        "--workspace",
        "--allow-dirty",
        "--quiet",
    ];
    if verify == Verify::Skip {
        arguments.push("--no-verify");
    }
    for package in packages.iter().filter(|package| !package.is_published) {
        arguments.extend(["--exclude", &package.name]);
    }
    // What is compiled already is enough to resolve versions, and asking the registry for each crate takes a
    // minute.
    let offline = [&arguments[..], &["--offline"]].concat();
    if cargo(root, &offline).is_ok() {
        return Ok(());
    }
    cargo(root, &arguments).map_err(|error| vec![error])
}

/// Runs Cargo, and returns what it reported if it failed.
fn cargo(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let output = metadata::cargo(root).args(arguments).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "cargo {}:\n{}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        )),
        Err(error) => Err(format!("cargo: {error}")),
    }
}

/// Both must be in each archive: the MIT license asks for its text in all copies.
const LICENSES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Maximum size of an archive. The largest one holds vectors of tests.
const MAX_BYTES: u64 = 1 << 20;

#[cfg(test)]
mod tests;
