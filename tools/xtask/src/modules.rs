//! The modules of a crate and the references between their files.

mod scan;

use std::collections::BTreeMap;

use crate::tree::File;
use scan::Scan;

/// The modules of one crate that have a file of their own, without tests.
pub(crate) struct Modules<'a> {
    by_path: BTreeMap<Path, Module<'a>>,
}

/// The names from the root of the crate to a module or an item.
pub(crate) type Path = Vec<String>;

struct Module<'a> {
    file: &'a File,
    scan: Scan,
}

impl<'a> Module<'a> {
    fn item(&self, name: &str) -> Target<'a> {
        Target::Item(Definition {
            file: &self.file.path,
            name: name.to_owned(),
        })
    }
}

/// The use of a name that another file defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference<'a> {
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    /// The first line that uses a name of `to`, counted from 1.
    pub(crate) line: usize,
    pub(crate) name: String,
}

/// The meaning of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target<'a> {
    /// A module with a file of its own.
    Module(Path),
    Item(Definition<'a>),
    /// An item of another crate, or a name of the language.
    Foreign,
}

/// An item of the crate: the file that defines it, and its name there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Definition<'a> {
    pub(crate) file: &'a str,
    pub(crate) name: String,
}

impl<'a> Modules<'a> {
    /// Reads the modules of the crate in `folder`.
    pub(crate) fn new(files: &'a [File], folder: &str) -> Self {
        let sources = files.iter().filter(|file| file.is_production_of(folder));
        let modules = sources.map(|file| {
            let scan = scan::scan(file.production());
            (module_path(&file.path), Module { file, scan })
        });
        let mut by_path: BTreeMap<Path, Module<'a>> = modules.collect();
        // The library is the root of a package that also has a program.
        if let Some(program) = by_path.remove(["main".to_owned()].as_slice()) {
            by_path.entry(Path::new()).or_insert(program);
        }
        Self { by_path }
    }

    /// Returns the references between files, one for each pair, in the order of their paths.
    ///
    /// A re-export counts only if its file also uses the name, and a name leads to the file that
    /// defines it, not to those that re-export it.
    pub(crate) fn references(&self) -> Vec<Reference<'a>> {
        let mut found: BTreeMap<(&str, &str), Reference<'a>> = BTreeMap::new();
        for (path, module) in &self.by_path {
            for (to, line, name) in self.references_of(path, module) {
                let from = module.file.path.as_str();
                let reference = Reference {
                    from,
                    to,
                    line,
                    name,
                };
                let first = found.entry((from, to)).or_insert_with(|| reference.clone());
                if first.line > line {
                    *first = reference;
                }
            }
        }
        let others = found.into_values();
        others
            .filter(|reference| reference.from != reference.to)
            .collect()
    }

    fn references_of(&self, path: &Path, module: &Module<'a>) -> Vec<(&'a str, usize, String)> {
        let mut found = Vec::new();
        for import in &module.scan.imports {
            let is_used = !import.is_reexport || module.scan.words.contains(&import.name);
            if !is_used {
                continue;
            }
            match self.resolve(path, &import.path, MAX_STEPS) {
                Target::Item(item) => found.push((item.file, import.line, import.path.join("::"))),
                Target::Module(other) if import.is_glob() => {
                    let file = &self.by_path[&other].file.path;
                    found.push((file, import.line, import.path.join("::")));
                }
                // The import of a module counts where one of its names is used.
                Target::Module(_) | Target::Foreign => {}
            }
        }
        for mention in &module.scan.mentions {
            if let Target::Item(item) = self.resolve(path, &mention.path, MAX_STEPS) {
                found.push((item.file, mention.line, mention.path.join("::")));
            }
        }
        found
    }

    /// Returns the files of the crate with the paths of their modules.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&Path, &'a File)> {
        self.by_path
            .iter()
            .map(|(path, module)| (path, module.file))
    }

    /// Returns the item of the crate that `path` names in the module `from`.
    pub(crate) fn definition(&self, from: &Path, path: &[String]) -> Option<Definition<'a>> {
        match self.resolve(from, path, MAX_STEPS) {
            Target::Item(item) => Some(item),
            Target::Module(_) | Target::Foreign => None,
        }
    }

    /// Resolves `path` as written in the module `from`.
    fn resolve(&self, from: &Path, path: &[String], steps: usize) -> Target<'a> {
        let Some((first, rest)) = path.split_first() else {
            return Target::Module(from.clone());
        };
        let mut target = match first.as_str() {
            "crate" => Target::Module(Path::new()),
            "self" => Target::Module(from.clone()),
            "super" => Target::Module(parent(from)),
            name => self.member(from, name, steps).unwrap_or(Target::Foreign),
        };
        for name in rest {
            let Target::Module(module) = &target else {
                break;
            };
            target = match name.as_str() {
                "self" => continue,
                "super" => Target::Module(parent(module)),
                // A macro may define it.
                name => self.member(module, name, steps).unwrap_or_else(|| {
                    let module = self.by_path.get(module);
                    module.map_or(Target::Foreign, |module| module.item(name))
                }),
            };
        }
        target
    }

    /// Finds `name` in a module: a child module, an import, an item, or a name behind a glob import.
    fn member(&self, path: &Path, name: &str, steps: usize) -> Option<Target<'a>> {
        let steps = steps.checked_sub(1)?;
        let mut child = path.clone();
        child.push(name.to_owned());
        if self.by_path.contains_key(&child) {
            return Some(Target::Module(child));
        }
        let module = self.by_path.get(path)?;
        let imports = &module.scan.imports;
        if let Some(import) = imports.iter().find(|import| import.name == name) {
            // `use name;` names another crate.
            let is_foreign = import.path == [name];
            return Some(if is_foreign {
                Target::Foreign
            } else {
                self.resolve(path, &import.path, steps)
            });
        }
        if module.scan.items.contains(name) {
            return Some(module.item(name));
        }
        let mut globs = imports.iter().filter(|import| import.is_glob());
        globs.find_map(|glob| match self.resolve(path, &glob.path, steps) {
            Target::Module(other) if other != *path => self.member(&other, name, steps),
            _ => None,
        })
    }
}

fn parent(path: &Path) -> Path {
    let end = path.len().saturating_sub(1);
    path[..end].to_vec()
}

/// Returns the module path of the file at `path`: `a::b` for `crates/x/src/a/b.rs`.
fn module_path(path: &str) -> Path {
    let inner = path.splitn(4, '/').nth(3).unwrap_or(path);
    let inner = inner.strip_suffix(".rs").unwrap_or(inner);
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    if inner == "lib" {
        return Path::new();
    }
    inner.split('/').map(str::to_owned).collect()
}

/// The most re-exports that a name is followed through.
const MAX_STEPS: usize = 12;

#[cfg(test)]
mod tests;
