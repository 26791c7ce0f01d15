//! The files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Problems;
use crate::code;

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
    /// In a module that its parent declares behind `#[cfg(test)]`.
    is_in_test_module: bool,
}

impl File {
    /// A file of which only the path tells whether it is a test.
    pub(crate) fn new(path: String, text: String) -> Self {
        Self {
            path,
            text,
            is_in_test_module: false,
        }
    }

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
        self.is_in_test_module
            || self
                .path
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
    mark_test_modules(&mut found);
    Ok(found)
}

/// Finds `#[cfg(test)] mod name;` in the sources and marks the files of `name`.
fn mark_test_modules(files: &mut [File]) {
    let modules: Vec<String> = files
        .iter()
        .filter(|file| file.is_rust())
        .flat_map(|file| {
            let names = code::test_modules(&code::only_code(&file.text));
            let folder = module_folder(&file.path).to_owned();
            names
                .into_iter()
                .map(move |name| format!("{folder}/{name}"))
        })
        .collect();
    for file in files {
        let is_of = |module: &String| {
            let rest = file.path.strip_prefix(module.as_str());
            rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        file.is_in_test_module = modules.iter().any(is_of);
    }
}

/// The folder with the modules that the source at `path` declares.
fn module_folder(path: &str) -> &str {
    let roots = ["/lib.rs", "/main.rs", "/mod.rs"];
    let folder = roots.iter().find_map(|root| path.strip_suffix(root));
    folder.or_else(|| path.strip_suffix(".rs")).unwrap_or(path)
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
                found.push(File::new(path, text));
            }
        }
    }
    Ok(())
}

/// Folders that hold nothing of the repository; `corpus` and `artifacts` belong to the fuzzer.
const SKIPPED: &[&str] = &[".git", "target", "corpus", "artifacts"];

#[cfg(test)]
mod tests;
