//! The files of the repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::code;
use crate::report::Problems;

/// Returns the folder of the root workspace.
///
/// Cargo passes the folder of this package. A binary that is started without Cargo searches
/// upwards from the working directory.
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

/// A source as `syn` reads it.
#[derive(Clone)]
struct Syntax {
    file: syn::File,
    error: Option<String>,
}

/// A text file of the repository.
#[derive(Clone)]
pub(crate) struct File {
    /// The path from the root, with `/` between the parts.
    pub(crate) path: String,
    pub(crate) text: String,
    /// True in a module that its parent declares behind `#[cfg(test)]`.
    is_in_test_module: bool,
    syntax: OnceLock<Syntax>,
    production: OnceLock<syn::File>,
}

impl File {
    /// Creates a file that is a test only if its path has the name of one.
    pub(crate) fn new(path: String, text: String) -> Self {
        Self {
            path,
            text,
            is_in_test_module: false,
            syntax: OnceLock::new(),
            production: OnceLock::new(),
        }
    }

    /// Returns true for Rust sources.
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Returns the syntax of a Rust source, without content if it cannot be read.
    pub(crate) fn syntax(&self) -> &syn::File {
        &self.read().file
    }

    /// Returns the syntax of a Rust source without the items that only tests compile.
    pub(crate) fn production(&self) -> &syn::File {
        self.production
            .get_or_init(|| code::without_tests(self.syntax()))
    }

    /// Returns the problem of a Rust source that cannot be read.
    pub(crate) fn syntax_error(&self) -> Option<&str> {
        self.read().error.as_deref()
    }

    fn read(&self) -> &Syntax {
        self.syntax.get_or_init(
            || match syn::parse_file(&without_placeholders(&self.text)) {
                Ok(file) => Syntax { file, error: None },
                Err(error) => Syntax {
                    file: syn::parse_quote!(),
                    error: Some(format!("{}: {error}", self.path)),
                },
            },
        )
    }

    /// Returns true for a source below the `src` of the crate in `folder` that is not a test.
    pub(crate) fn is_production_of(&self, folder: &str) -> bool {
        let is_source = self
            .path_in_workspace()
            .and_then(|rest| rest.strip_prefix(folder))
            .is_some_and(|rest| rest.starts_with("/src/"));
        is_source && self.is_rust() && !self.is_test()
    }

    /// Returns the folder of the crate that holds this file, without `crates/` or `tools/`.
    pub(crate) fn crate_folder(&self) -> Option<&str> {
        self.path_in_workspace()?
            .split_once('/')
            .map(|(folder, _)| folder)
    }

    /// Returns the path below the folder that holds the crates, or `None` for a file outside both.
    pub(crate) fn path_in_workspace(&self) -> Option<&str> {
        strip_home(&self.path)
    }

    /// Returns true for sources that only tests, benches, examples or doc tests compile.
    pub(crate) fn is_test(&self) -> bool {
        self.is_in_test_module
            || self
                .path
                .split('/')
                .any(|part| matches!(part, "tests" | "tests.rs" | "benches" | "examples" | "doc"))
    }
}

/// Returns the text of a source, in which the placeholders of a template are names.
fn without_placeholders(text: &str) -> String {
    text.replace("{{crate_name}}", "crate_name")
}

/// The folders that hold crates: `crates/` those that are published, `tools/` the binary and what only it
/// and the upkeep of the repository need.
const HOMES: [&str; 2] = ["crates/", "tools/"];

/// Returns `path` without `crates/` or `tools/`, or `None` if it starts with neither.
pub(crate) fn strip_home(path: &str) -> Option<&str> {
    HOMES.iter().find_map(|home| path.strip_prefix(home))
}

/// Returns every text file below `root` in the order of the paths. Skips build output and the
/// files of Git.
pub(crate) fn files(root: &Path) -> Result<Vec<File>, Problems> {
    let mut found = Vec::new();
    walk(root, "", &mut found)
        .map_err(|error| vec![format!("cannot read {}: {error}", root.display())])?;
    found.sort_by(|left, right| left.path.cmp(&right.path));
    mark_test_modules(&mut found);
    Ok(found)
}

/// Marks the files of each module that is declared as `#[cfg(test)] mod name;`.
fn mark_test_modules(files: &mut [File]) {
    let modules: Vec<String> = files
        .iter()
        .filter(|file| file.is_rust() && file.text.contains("cfg("))
        .flat_map(|file| {
            let names = code::test_modules(file.syntax());
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

/// Returns the folder with the modules that the source at `path` declares.
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
        if SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if kind.is_dir() {
            walk(&entry.path(), &format!("{path}/"), found)?;
        } else if kind.is_file() {
            // Captures and corpus files are not UTF-8, and have nothing to check.
            if let Ok(text) = String::from_utf8(fs::read(entry.path())?) {
                found.push(File::new(path, text));
            }
        }
    }
    Ok(())
}

/// Names of folders and files that are not part of the repository. `.git` is a file in a further
/// worktree; `corpus` and `artifacts` belong to the fuzzer.
const SKIPPED: &[&str] = &[".git", "target", "corpus", "artifacts"];

#[cfg(test)]
mod tests;
