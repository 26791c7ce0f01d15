//! `cargo xtask sbom`: lists the packages inside the binary as CycloneDX 1.6 (ECMA-424), in JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use toml::Table;

use crate::metadata::{self, Package};
use crate::report::{self, Problems};

/// Writes the list into `file`, or prints it.
///
/// It has no time and no random number: the same `Cargo.lock` gives the same bytes.
pub(crate) fn run(root: &Path, file: Option<&Path>) -> Result<(), Problems> {
    let lock = fs::read_to_string(root.join("Cargo.lock"))
        .map_err(|error| vec![format!("Cargo.lock: {error}")])?;
    let metadata = metadata::read(root, &["--features", "courser-cli/full"])?;
    let list = document(&metadata, &linked(root)?, &checksums(&lock)?)?;
    let text = format!("{list:#}\n");
    match file {
        Some(file) => {
            fs::write(file, text).map_err(|error| vec![format!("{}: {error}", file.display())])
        }
        None => {
            report::print(&text);
            Ok(())
        }
    }
}

/// A name and a version, which identify a package within `Cargo.lock`.
type Key = (String, String);

fn key(package: &Package) -> Key {
    (package.name.clone(), package.version.clone())
}

/// Returns the packages of the binary with all its features on this system, without those that only build
/// scripts use. `cargo metadata` is not precise enough: it unites the features of all crates of the workspace.
fn linked(root: &Path) -> Result<BTreeSet<Key>, Problems> {
    let output = metadata::cargo(root)
        .args([
            "tree",
            "--locked",
            "--package",
            BINARY,
            "--features",
            "full",
        ])
        .args(["--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .output()
        .map_err(|error| vec![format!("cargo tree: {error}")])?;
    if !output.status.success() {
        return Err(vec![String::from_utf8_lossy(&output.stderr).into_owned()]);
    }
    Ok(tree(&String::from_utf8_lossy(&output.stdout)))
}

/// Reads lines as `name v1.2.3 (source)`.
fn tree(text: &str) -> BTreeSet<Key> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let name = words.next()?;
        let version = words.next()?.strip_prefix('v')?;
        Some((name.to_owned(), version.to_owned()))
    });
    lines.collect()
}

/// Reads the SHA-256 of each archive from `Cargo.lock`.
fn checksums(lock: &str) -> Result<BTreeMap<Key, String>, Problems> {
    let root: Table = lock
        .parse()
        .map_err(|error| vec![format!("Cargo.lock: {error}")])?;
    let packages = root.get("package").and_then(toml::Value::as_array);
    let packages = packages.into_iter().flatten().filter_map(|package| {
        let text = |key: &str| Some(package.get(key)?.as_str()?.to_owned());
        Some(((text("name")?, text("version")?), text("checksum")?))
    });
    Ok(packages.collect())
}

fn document(
    metadata: &Value,
    linked: &BTreeSet<Key>,
    checksums: &BTreeMap<Key, String>,
) -> Result<Value, Problems> {
    let mut packages = metadata::packages(metadata);
    packages.retain(|package| linked.contains(&key(package)));
    packages.sort_by_key(key);
    let root = packages.iter().position(|package| package.name == BINARY);
    let root = root.ok_or_else(|| vec![format!("{BINARY} is not among the packages")])?;
    let root = packages.remove(root);
    let links: BTreeMap<&str, String> = packages
        .iter()
        .chain([&root])
        .map(|package| (package.id.as_str(), link(package)))
        .collect();
    let edges = metadata::edges(metadata);
    let dependencies: Vec<Value> = links
        .iter()
        .map(|(id, link)| {
            let used = edges.get(*id).into_iter().flatten();
            let used: BTreeSet<&String> = used.filter_map(|id| links.get(id.as_str())).collect();
            json!({ "ref": link, "dependsOn": used })
        })
        .collect();
    let components = packages.iter().map(|package| component(package, checksums));
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "lifecycles": [{ "phase": "build" }],
            "component": {
                "type": "application",
                "bom-ref": link(&root),
                "name": "courser",
                "version": root.version,
                "description": root.description,
                "licenses": [{ "expression": expression(&root.license) }],
                "purl": link(&root),
            },
        },
        "components": components.collect::<Vec<_>>(),
        "dependencies": dependencies,
    }))
}

fn component(package: &Package, checksums: &BTreeMap<Key, String>) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": link(package),
        "name": package.name,
        "version": package.version,
        "scope": "required",
        "purl": link(package),
    });
    if !package.description.is_empty() {
        component["description"] = json!(package.description.trim());
    }
    if !package.license.is_empty() {
        component["licenses"] = json!([{ "expression": expression(&package.license) }]);
    }
    if let Some(checksum) = checksums.get(&key(package)) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

/// Returns the package URL, which identifies a package across lists.
fn link(package: &Package) -> String {
    format!(
        "pkg:cargo/{}@{}",
        package.name,
        package.version.replace('+', "%2B")
    )
}

/// Returns a license as an expression of SPDX. Old manifests have a slash for `OR`.
fn expression(license: &str) -> String {
    license.replace(" / ", "/").replace('/', " OR ")
}

/// The package of the binary.
const BINARY: &str = "courser-cli";

#[cfg(test)]
mod tests;
