//! The files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Problems;

/// The folder of the root workspace.
///
/// Cargo says where this package lies when it runs it; a binary started by hand looks upwards
/// from the working directory.
pub(crate) fn root() -> Result<PathBuf, Problems> {
    let start = match std::env::var_os("CARGO_MANIFEST_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => std::env::current_dir().map_err(|error| vec![error.to_string()])?,
    };
    start
        .ancestors()
        .find(|folder| folder.join("Cargo.toml").is_file() && folder.join("crates").is_dir())
        .map(Path::to_path_buf)
        .ok_or_else(|| vec![format!("no workspace at or above {}", start.display())])
}

/// One file, by its path from the root with `/` between the parts.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    /// True for Rust sources.
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The folder below `crates/` that holds this file.
    pub(crate) fn crate_folder(&self) -> Option<&str> {
        self.path
            .strip_prefix("crates/")?
            .split_once('/')
            .map(|(folder, _)| folder)
    }

    /// True for sources that only tests, benches or examples compile.
    pub(crate) fn is_test(&self) -> bool {
        self.path
            .split('/')
            .any(|part| matches!(part, "tests" | "tests.rs" | "benches" | "examples"))
    }
}

/// Every text file below `root`, in the order of the paths; build output and Git's own are left out.
pub(crate) fn files(root: &Path) -> Result<Vec<File>, Problems> {
    let mut found = Vec::new();
    walk(root, "", &mut found)
        .map_err(|error| vec![format!("cannot read {}: {error}", root.display())])?;
    found.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(found)
}

fn walk(folder: &Path, prefix: &str, found: &mut Vec<File>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !SKIPPED.contains(&name.as_str()) {
                walk(&entry.path(), &format!("{path}/"), found)?;
            }
        } else if kind.is_file() {
            // Not UTF-8: a capture or a corpus file, nothing to check.
            if let Ok(text) = String::from_utf8(fs::read(entry.path())?) {
                found.push(File { path, text });
            }
        }
    }
    Ok(())
}

/// Folders that hold nothing of the repository; `corpus` and `artifacts` belong to the fuzzer.
const SKIPPED: &[&str] = &[".git", "target", "corpus", "artifacts"];
