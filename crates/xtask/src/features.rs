//! `cargo xtask features`: checks that each feature of a crate compiles alone.

use std::path::Path;
use std::process::Command;

use crate::manifest::Manifest;
use crate::report::Problems;
use crate::tidy;
use crate::tree;

/// Runs `cargo check` for every crate with features: without any, and with each one alone.
///
/// Warnings count as problems: code that only one feature uses must depend on it.
pub(crate) fn run(root: &Path) -> Result<(), Problems> {
    let (manifests, mut problems) = tidy::read_manifests(&tree::files(root)?);
    for manifest in manifests.values() {
        for arguments in combinations(manifest) {
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

/// Returns the arguments of each check of a crate; none if it has no features.
fn combinations(manifest: &Manifest) -> Vec<Vec<&str>> {
    let features = manifest.features.iter().map(String::as_str);
    let features: Vec<&str> = features.filter(|name| !SKIPPED.contains(name)).collect();
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

/// Features that need more than the usual tools. `fuzz/run` builds `libfuzzer`, which is C++. The FIPS
/// module of AWS-LC needs CMake and Go.
const SKIPPED: &[&str] = &["fips", "libfuzzer"];

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
        let manifest = manifest(&["b", "c"]);
        let found = combinations(&manifest);
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
    fn crates_without_features_are_not_checked() {
        assert!(combinations(&manifest(&[])).is_empty());
        assert!(combinations(&manifest(&["fips", "libfuzzer"])).is_empty());
    }

    #[test]
    fn a_check_that_fails_is_a_problem() {
        let found = check(Path::new("."), &["no-such-command"]).unwrap();
        assert!(found.starts_with("cargo no-such-command:\n"), "{found}");
    }
}
