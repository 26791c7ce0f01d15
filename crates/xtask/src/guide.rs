//! `cargo xtask guide`: checks the pages of the guide, and runs the commands on them.
//!
//! The pages are an mdBook in `docs/guide`. [`check`] needs no binary and is part of `tidy`; the other
//! checks run the commands of each block in an empty folder and compare their output with the page.

mod form;
mod links;
mod markdown;
mod ports;
mod run;
mod shell;

use std::fs;
use std::path::{Path, PathBuf};

use crate::report::Problems;
use crate::tree::{self, File};
use markdown::{Page, is_page};
use run::Programs;

/// The options of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// Fails if an output on a page is out of date, instead of writing it.
    pub(crate) check: bool,
    /// The folder with the `courser` binary and the folder `examples`.
    pub(crate) programs: Option<PathBuf>,
    /// The names of the pages to run, without `.md`. Empty for all.
    pub(crate) pages: Vec<String>,
}

/// Runs the commands of the pages of the repository at `root`.
pub(crate) fn run(root: &Path, options: &Options) -> Result<(), Problems> {
    let files = tree::files(root)?;
    let mut problems = check(&files);
    let folder = match &options.programs {
        Some(folder) => folder.clone(),
        None => root.join("target/debug"),
    };
    let programs = Programs::new(folder, root.to_owned())?;
    let (mut commands, mut stale) = (0, 0);
    for file in files.iter().filter(|file| is_page(file)) {
        let page = Page::parse(file);
        let is_wanted = |name: &String| page.name() == name;
        if !options.pages.is_empty() && !options.pages.iter().any(is_wanted) {
            continue;
        }
        problems.extend(shell::check(&page, &programs));
        let outcome = run::run(&page, &programs)?;
        commands += outcome.commands;
        problems.extend(outcome.problems);
        let Some(text) = outcome.text else { continue };
        stale += 1;
        if options.check {
            problems.extend(outcome.differences);
        } else {
            fs::write(root.join(&file.path), text)
                .map_err(|error| vec![format!("{}: {error}", file.path)])?;
            println!("{}: outputs written", file.path);
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    println!("guide: {commands} commands, {stale} pages with new output");
    Ok(())
}

/// Checks everything that needs no program: the list of pages, links, languages of code, included files and
/// paths that the text names.
pub(crate) fn check(files: &[File]) -> Problems {
    let pages: Vec<Page<'_>> = files
        .iter()
        .filter(|file| is_page(file))
        .map(Page::parse)
        .collect();
    let mut problems = links::check_summary(&pages, files);
    for page in &pages {
        problems.extend(links::check(page, &pages, files));
        problems.extend(markdown::check_fences(page, files));
    }
    problems
}

#[cfg(test)]
mod tests;
