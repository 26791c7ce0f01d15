//! Reads `cargo metadata`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::report::Problems;

/// A package of the workspace or of a registry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    /// Empty where the manifest has none.
    pub(crate) description: String,
    pub(crate) license: String,
}

/// Returns the command that runs the Cargo that runs this program.
pub(crate) fn cargo(root: &Path) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root);
    command
}

/// Runs `cargo metadata` for the versions of `Cargo.lock`.
pub(crate) fn read(root: &Path, options: &[&str]) -> Result<Value, Problems> {
    let output = cargo(root)
        .args(["metadata", "--locked", "--format-version", "1"])
        .args(options)
        .output()
        .map_err(|error| vec![format!("cargo metadata: {error}")])?;
    if !output.status.success() {
        return Err(vec![String::from_utf8_lossy(&output.stderr).into_owned()]);
    }
    serde_json::from_slice(&output.stdout).map_err(|error| vec![format!("cargo metadata: {error}")])
}

/// Reads the packages of the output of `cargo metadata`.
pub(crate) fn packages(metadata: &Value) -> Vec<Package> {
    list(metadata, "packages").map(package).collect()
}

/// Returns the elements of a list, none if it is missing.
pub(crate) fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Returns a string, empty if it is missing.
pub(crate) fn text(value: &Value, key: &str) -> String {
    let found = value.get(key).and_then(Value::as_str);
    found.unwrap_or_default().to_owned()
}

fn package(value: &Value) -> Package {
    Package {
        id: text(value, "id"),
        name: text(value, "name"),
        version: text(value, "version"),
        description: text(value, "description"),
        license: text(value, "license"),
    }
}

/// Returns the packages that each package is compiled with, by id. Leaves out those of tests only.
pub(crate) fn edges(metadata: &Value) -> BTreeMap<String, Vec<String>> {
    let nodes = metadata.get("resolve").unwrap_or(&Value::Null);
    let nodes = list(nodes, "nodes").map(|node| {
        let used = list(node, "deps").filter(|used| {
            let mut kinds = list(used, "dep_kinds");
            kinds.any(|kind| text(kind, "kind") != "dev")
        });
        (
            text(node, "id"),
            used.map(|used| text(used, "pkg")).collect(),
        )
    });
    nodes.collect()
}
