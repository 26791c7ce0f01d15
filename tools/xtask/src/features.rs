//! `cargo xtask features`: checks that each feature of a crate compiles alone.

use std::path::Path;
use std::process::Command;

use crate::manifest::Manifest;
use crate::report::Problems;
use crate::tidy;
use crate::tree::{self, File};

/// Runs `cargo check` for every published crate with features and for the binary: without any feature, with each one
/// alone, and with the default ones. The other tools are compiled with the features that the binary selects.
///
/// Warnings count as problems: code that only one feature uses must depend on it.
pub(crate) fn run(root: &Path) -> Result<(), Problems> {
    let files = tree::files(root)?;
    let (manifests, mut problems) = tidy::read_manifests(&files);
    let checked = manifests
        .iter()
        .filter(|(_, manifest)| is_built_alone(manifest));
    for (folder, manifest) in checked {
        let source = |file: &&File| file.crate_folder() == Some(folder) && is_rust(file);
        let names = |name: &str| {
            let condition = format!("feature = \"{name}\"");
            let mut sources = files.iter().filter(source);
            sources.any(|file| file.text.contains(&condition))
        };
        for arguments in combinations(manifest, names) {
            println!("cargo {}", arguments.join(" "));
            problems.extend(check(root, &arguments));
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

/// Returns true for crates that people build with features of their choice.
fn is_built_alone(manifest: &Manifest) -> bool {
    manifest.is_published || manifest.package == BINARY
}

fn is_rust(file: &File) -> bool {
    Path::new(&file.path)
        .extension()
        .is_some_and(|it| it == "rs")
}

/// Returns the arguments of each check of a crate; none if it has no features. `names` returns true if its code names
/// a feature: one that is only an alias changes nothing that is not checked already.
fn combinations(manifest: &Manifest, names: impl Fn(&str) -> bool) -> Vec<Vec<&str>> {
    let is_alias = |name: &str| manifest.aliases.iter().any(|alias| alias == name);
    let features = manifest.features.iter().map(String::as_str);
    let features: Vec<&str> = features
        .filter(|name| !SKIPPED.contains(name) && (!is_alias(name) || names(name)))
        .collect();
    if features.is_empty() {
        return Vec::new();
    }
    let none = [
        "check",
        "--quiet",
        "--locked",
        "--package",
        manifest.package.as_str(),
        "--no-default-features",
    ];
    let mut all = vec![none.to_vec()];
    for feature in features {
        all.push([&none[..], &["--features", feature]].concat());
    }
    // A single one was checked alone.
    if manifest.defaults.len() > 1 {
        all.push(none[..none.len() - 1].to_vec());
    }
    all
}

/// Runs Cargo, and returns a problem if it reports anything.
fn check(root: &Path, arguments: &[&str]) -> Option<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(root)
        .args(arguments)
        // Clippy has seen all features together, and takes a third longer than the compiler alone.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .output();
    let report = match output {
        Ok(output) if output.status.success() && output.stderr.is_empty() => return None,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    Some(format!("cargo {}:\n{report}", arguments.join(" ")))
}

/// The package of the binary.
const BINARY: &str = "courser-cli";

/// Features that need more than the usual tools. `fuzz/run` builds `libfuzzer`, which is C++. The FIPS
/// module of AWS-LC needs CMake and Go.
const SKIPPED: &[&str] = &["aws-lc-rs-fips", "fips", "libfuzzer"];

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(features: &[&str]) -> Manifest {
        Manifest {
            package: "courser-a".to_owned(),
            features: features.iter().map(|&name| name.to_owned()).collect(),
            ..Manifest::default()
        }
    }

    #[test]
    fn each_feature_is_checked_alone_and_the_crate_without_any() {
        let mut manifest = manifest(&["b", "c", "d", "e"]);
        manifest.aliases = ["c", "d", "e"].map(str::to_owned).to_vec();
        let found = combinations(&manifest, |name| name == "c");
        let ends: Vec<String> = found.iter().map(|all| all[3..].join(" ")).collect();
        assert_eq!(
            ends,
            [
                "--package courser-a --no-default-features",
                "--package courser-a --no-default-features --features b",
                "--package courser-a --no-default-features --features c",
            ]
        );
    }

    #[test]
    fn several_default_features_are_checked_together() {
        let mut manifest = manifest(&["b", "c"]);
        for (defaults, count) in [(&[][..], 3), (&["b"], 3), (&["b", "c"], 4)] {
            manifest.defaults = defaults.iter().map(|&name| name.to_owned()).collect();
            assert_eq!(combinations(&manifest, |_| true).len(), count);
        }
        let with_defaults = combinations(&manifest, |_| true).pop().unwrap();
        assert_eq!(with_defaults[3..].join(" "), "--package courser-a");
    }

    #[test]
    fn published_crates_and_the_binary_are_checked() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let (manifests, problems) = tidy::read_manifests(&tree::files(&root).unwrap());
        assert!(problems.is_empty(), "{problems:?}");
        let is_checked = |folder: &str| is_built_alone(&manifests[folder]);
        assert!(is_checked("courser") && is_checked("transport") && is_checked("cli"));
        assert!(!is_checked("services") && !is_checked("xtask"));
    }

    #[test]
    fn crates_without_features_are_not_checked() {
        assert!(combinations(&manifest(&[]), |_| true).is_empty());
        assert!(combinations(&manifest(&["fips", "libfuzzer"]), |_| true).is_empty());
    }

    #[test]
    fn a_check_that_fails_is_a_problem() {
        let found = check(Path::new("."), &["no-such-command"]).unwrap();
        assert!(found.starts_with("cargo no-such-command:\n"), "{found}");
    }
}
