//! Reads the parts of a `Cargo.toml` that the checks need.

use std::collections::BTreeMap;

use toml::{Table, Value};

/// A package, its dependencies and its features.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) package: String,
    /// False for crates with `publish = false`.
    pub(crate) is_published: bool,
    pub(crate) dependencies: Vec<Dependency>,
    /// The names of the features, without `default`.
    pub(crate) features: Vec<String>,
    /// The default features.
    pub(crate) defaults: Vec<String>,
    /// Those that select nothing but other features of the package.
    pub(crate) aliases: Vec<String>,
}

/// A dependency by the name of its package, which the crate may rename.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Dependency {
    pub(crate) package: String,
    pub(crate) purpose: Purpose,
}

/// The section that declares a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// The section `[dependencies]`, for the code of the package.
    Normal,
    /// The section `[build-dependencies]`, for build scripts.
    Build,
    /// The section `[dev-dependencies]`, for tests, benches and examples.
    Dev,
}

/// The packages that `[workspace.dependencies]` renames, by their new name.
pub(crate) type Renames = BTreeMap<String, String>;

/// Reads the renames from the root manifest.
pub(crate) fn parse_renames(text: &str) -> Result<Renames, String> {
    let root: Table = text.parse().map_err(|error| format!("{error}"))?;
    let shared = table(&root, "workspace").and_then(|workspace| table(workspace, "dependencies"));
    Ok(shared
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), package_key(value)?.to_owned())))
        .collect())
}

/// Reads the manifest of a package. Includes dependencies of single targets.
pub(crate) fn parse(text: &str, renames: &Renames) -> Result<Manifest, String> {
    let root: Table = text.parse().map_err(|error| format!("{error}"))?;
    let package = table(&root, "package").ok_or("no package name")?;
    let is_published = package.get("publish").and_then(Value::as_bool) != Some(false);
    let package = package
        .get("name")
        .and_then(Value::as_str)
        .ok_or("no package name")?
        .to_owned();
    let mut dependencies = Vec::new();
    collect(&root, renames, &mut dependencies);
    for target in table(&root, "target").into_iter().flatten() {
        if let Some(target) = target.1.as_table() {
            collect(target, renames, &mut dependencies);
        }
    }
    dependencies.sort();
    dependencies.dedup();
    let features = table(&root, "features");
    let defaults = features.and_then(|features| features.get("default")?.as_array());
    let features = features.into_iter().flatten();
    let features: Vec<_> = features.filter(|(name, _)| *name != "default").collect();
    let aliases = features.iter().filter(|(_, value)| is_alias(value));
    Ok(Manifest {
        package,
        is_published,
        dependencies,
        aliases: aliases.map(|(name, _)| (*name).clone()).collect(),
        defaults: defaults
            .into_iter()
            .flatten()
            .filter_map(|name| Some(name.as_str()?.to_owned()))
            .collect(),
        features: features.iter().map(|(name, _)| (*name).clone()).collect(),
    })
}

/// Returns true for a feature that selects no dependency and no feature of one.
fn is_alias(value: &Value) -> bool {
    let selected = value.as_array().into_iter().flatten();
    let mut selected = selected.filter_map(Value::as_str);
    selected.all(|name| !name.contains([':', '/']))
}

fn collect(section: &Table, renames: &Renames, dependencies: &mut Vec<Dependency>) {
    for (key, purpose) in SECTIONS {
        for (name, value) in table(section, key).into_iter().flatten() {
            let inherited = value.get("workspace").and_then(Value::as_bool) == Some(true);
            let renamed = if inherited {
                renames.get(name).map(String::as_str)
            } else {
                None
            };
            let package = renamed
                .or_else(|| package_key(value))
                .unwrap_or(name)
                .to_owned();
            dependencies.push(Dependency {
                package,
                purpose: *purpose,
            });
        }
    }
}

fn package_key(dependency: &Value) -> Option<&str> {
    dependency.get("package").and_then(Value::as_str)
}

fn table<'a>(parent: &'a Table, key: &str) -> Option<&'a Table> {
    parent.get(key).and_then(Value::as_table)
}

const SECTIONS: &[(&str, Purpose)] = &[
    ("dependencies", Purpose::Normal),
    ("build-dependencies", Purpose::Build),
    ("dev-dependencies", Purpose::Dev),
];

#[cfg(test)]
mod tests;
