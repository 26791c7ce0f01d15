//! `cargo xtask house`: reports the sizes of types and crates. It is for reading and fails nothing.
//!
//! A type is as large as what works on it: its methods, the functions that take it, and those of its views.
//! A view is a struct that borrows fields of another type, so that its functions are methods of that type in
//! all but name. Types that are `Copy` are values and have no row, because many functions take them and none
//! works on them; `--type` describes them all the same.

mod survey;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use quote::ToTokens;
use serde_json::{Value, json};

use crate::code;
use crate::report::{Problems, print};
use crate::tidy;
use crate::tree::{self, File};
use survey::Types;

/// The options of the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// The folder of the only crate to report.
    pub(crate) folder: Option<String>,
    /// The name of the types to describe.
    pub(crate) name: Option<String>,
    /// Reports all types rather than the largest ones.
    pub(crate) all: bool,
    pub(crate) json: bool,
}

/// Prints the report on the repository at `root`.
pub(crate) fn run(root: &Path, options: &Options) -> Result<(), Problems> {
    let files = tree::files(root)?;
    let (manifests, problems) = tidy::read_manifests(&files);
    if !problems.is_empty() {
        return Err(problems);
    }
    let folders = manifests.keys().map(String::as_str);
    let folders: Vec<&str> = folders
        .filter(|folder| options.folder.as_deref().is_none_or(|only| only == *folder))
        .collect();
    if folders.is_empty() {
        return Err(vec!["no crate has this folder".to_owned()]);
    }
    print(&report(&files, &folders, options));
    Ok(())
}

/// Reports on the crates in `folders`.
fn report(files: &[File], folders: &[&str], options: &Options) -> String {
    let mut types: Vec<Size> = Vec::new();
    for folder in folders {
        types.extend(sizes(folder, &survey::survey(files, folder)));
    }
    if let Some(name) = &options.name {
        types.retain(|size| size.name == *name);
    }
    types.sort_by(|left, right| right.order().cmp(&left.order()));
    if options.json {
        let lines = lines(files, folders);
        let crates = lines.iter().map(
            |(folder, lines)| json!({ "crate": folder, "code": lines.code, "tests": lines.tests }),
        );
        let all = json!({
            "crates": crates.collect::<Vec<Value>>(),
            "types": types.iter().map(Size::json).collect::<Vec<Value>>(),
        });
        return format!("{all:#}\n");
    }
    if options.name.is_some() {
        return types.iter().map(Size::describe).collect();
    }
    types.retain(|size| !size.is_value);
    let shown = if options.all { types.len() } else { LARGEST };
    let mut text = "methods functions fields files  type\n".to_owned();
    for size in types.iter().take(shown) {
        text.push_str(&size.row());
    }
    text.push_str("\n   code    tests  crate\n");
    let mut lines: Vec<(&str, Lines)> = lines(files, folders).into_iter().collect();
    lines.sort_by_key(|(_, lines)| std::cmp::Reverse(lines.code));
    for (folder, Lines { code, tests }) in lines {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{code:>7}  {tests:>7}  {folder}");
    }
    text
}

/// A type, with everything that works on it.
struct Size {
    folder: String,
    is_value: bool,
    /// The file and the line of its declaration.
    place: String,
    name: String,
    /// Its own methods and those of its views, as `path:line name`.
    methods: Vec<String>,
    /// The functions outside of it that take it or one of its views.
    functions: Vec<String>,
    /// The files that use each field.
    fields: BTreeMap<String, BTreeSet<String>>,
    views: Vec<String>,
}

/// Returns the sizes of types, each with those of its views added.
fn sizes(folder: &str, types: &Types<'_>) -> Vec<Size> {
    let sizes = types.iter().map(|(key, own)| {
        let mut size = Size {
            folder: folder.to_owned(),
            is_value: own.is_value,
            place: format!("{}:{}", key.file, own.line),
            name: key.name.clone(),
            methods: own.methods.clone(),
            functions: own.functions.clone(),
            fields: own.fields.clone(),
            views: Vec::new(),
        };
        for (view_key, view) in types.iter().filter(|(it, _)| *it != key) {
            let Some(borrowed) = view.views.get(key) else {
                continue;
            };
            size.views.push(view_key.name.clone());
            size.methods.extend(view.methods.iter().cloned());
            size.functions.extend(view.functions.iter().cloned());
            for (field, of_owner) in borrowed {
                let users = view.fields.get(field).into_iter().flatten().cloned();
                size.fields
                    .entry(of_owner.clone())
                    .or_default()
                    .extend(users);
            }
        }
        size.functions
            .retain(|function| !size.methods.contains(function));
        size.functions.sort();
        size.functions.dedup();
        size
    });
    sizes.collect()
}

impl Size {
    fn order(&self) -> (usize, usize, &str) {
        let all = self.methods.len() + self.functions.len();
        (all, self.fields.len(), &self.name)
    }

    fn files(&self) -> usize {
        self.fields
            .values()
            .flatten()
            .collect::<BTreeSet<_>>()
            .len()
    }

    fn row(&self) -> String {
        let views = match self.views.as_slice() {
            [] => String::new(),
            views => format!(", seen through {}", views.join(" and ")),
        };
        format!(
            "{:>7} {:>9} {:>6} {:>5}  {}::{}{views}\n",
            self.methods.len(),
            self.functions.len(),
            self.fields.len(),
            self.files(),
            self.folder,
            self.name,
        )
    }

    fn describe(&self) -> String {
        let mut text = format!("{}::{} ({})\n", self.folder, self.name, self.place);
        let mut list = |title: &str, lines: Vec<String>| {
            let _ = writeln!(text, "{} {title}", lines.len());
            for line in lines {
                let _ = writeln!(text, "  {line}");
            }
        };
        list("methods", self.methods.clone());
        list("functions", self.functions.clone());
        let fields = self.fields.iter().map(|(name, files)| {
            let files: Vec<&str> = files.iter().map(String::as_str).collect();
            format!("{name}: {}", files.join(", "))
        });
        list("fields", fields.collect());
        list("views", self.views.clone());
        text
    }

    fn json(&self) -> Value {
        json!({
            "crate": self.folder,
            "type": self.name,
            "place": self.place,
            "methods": self.methods,
            "functions": self.functions,
            "fields": self.fields,
            "views": self.views,
        })
    }
}

/// The lines of a crate that are neither empty nor comments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    code: usize,
    /// Those of its tests, examples and benches.
    tests: usize,
}

fn lines<'a>(files: &[File], folders: &[&'a str]) -> BTreeMap<&'a str, Lines> {
    let mut found: BTreeMap<&str, Lines> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let Some(folder) = folders.iter().find(|it| file.crate_folder() == Some(**it)) else {
            continue;
        };
        let all = lines_of_code(file.syntax());
        let code = match file.is_production_of(folder) {
            true => lines_of_code(file.production()),
            false => 0,
        };
        let lines = found.entry(folder).or_default();
        lines.code += code;
        lines.tests += all - code;
    }
    found
}

fn lines_of_code(file: &syn::File) -> usize {
    let words = code::words(file.to_token_stream());
    let lines: BTreeSet<usize> = words.iter().map(|word| word.line).collect();
    lines.len()
}

/// The number of types in a report.
const LARGEST: usize = 40;

#[cfg(test)]
mod tests;
