//! The template of a protocol: its tests run here, and `.ci/template` builds a crate from it.

#[path = "../../../../examples/template-protocol/src/lib.rs"]
mod protocol;

use std::fs;
use std::path::{Path, PathBuf};

const FOLDER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/template-protocol"
);

/// Returns the files of a folder and those below.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![path],
        })
        .collect()
}

/// The names that cargo-generate and `.ci/template` replace.
#[test]
fn placeholders_are_those_that_are_replaced() {
    let known = ["{{project-name}}", "{{crate_name}}", "{{courser}}"];
    let mut found = 0;
    for path in files(Path::new(FOLDER)) {
        let mut text = fs::read_to_string(&path).expect("text");
        for name in known {
            found += text.matches(name).count();
            text = text.replace(name, "");
        }
        assert!(!text.contains("{{"), "{}", path.display());
    }
    assert!(found >= 5, "{found}");
}

/// Its dependencies are those of this repository, at paths that exist.
#[test]
fn paths_of_the_manifest_exist() {
    let manifest = fs::read_to_string(Path::new(FOLDER).join("Cargo.toml")).expect("a manifest");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let manifest = manifest.replace("{{courser}}", root);
    let table: toml::Table = manifest.parse().expect("TOML, but for the name");
    for (section, name) in [
        ("dependencies", "courser"),
        ("dev-dependencies", "courser-sim"),
    ] {
        let path = table[section][name]["path"].as_str().expect("a path");
        let manifest = fs::read_to_string(Path::new(path).join("Cargo.toml")).expect("a crate");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{path}");
    }
}
