//! Reads `cargo metadata`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
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
    /// The lowest Rust, as the manifest writes it.
    pub(crate) rust_version: Option<String>,
    pub(crate) folder: PathBuf,
    pub(crate) is_published: bool,
    /// True for crates of this workspace.
    pub(crate) is_local: bool,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A dependency as a manifest declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// True for crates of this workspace.
    pub(crate) is_local: bool,
    pub(crate) has_version: bool,
}

impl Dependency {
    /// Returns true for a crate of this workspace that must be published first.
    pub(crate) fn is_needed(&self) -> bool {
        self.is_local && self.has_version
    }
}

/// The section that declares a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Build,
    Dev,
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
    let manifest = PathBuf::from(text(value, "manifest_path"));
    // A list names the registries that may have it; an empty one is `publish = false`.
    let registries = value.get("publish").and_then(Value::as_array);
    let rust_version = value.get("rust_version").and_then(Value::as_str);
    Package {
        id: text(value, "id"),
        name: text(value, "name"),
        version: text(value, "version"),
        description: text(value, "description"),
        license: text(value, "license"),
        rust_version: rust_version.map(str::to_owned),
        folder: manifest.parent().map(Path::to_path_buf).unwrap_or_default(),
        is_published: registries.is_none_or(|registries| !registries.is_empty()),
        is_local: value.get("source").is_none_or(Value::is_null),
        dependencies: list(value, "dependencies").map(dependency).collect(),
    }
}

fn dependency(value: &Value) -> Dependency {
    Dependency {
        name: text(value, "name"),
        kind: match value.get("kind").and_then(Value::as_str) {
            Some("dev") => Kind::Dev,
            Some("build") => Kind::Build,
            _ => Kind::Normal,
        },
        is_local: value.get("path").is_some_and(Value::is_string),
        has_version: text(value, "req") != "*",
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
