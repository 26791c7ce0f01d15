//! `cargo xtask guide`: checks the pages of the guide, and runs the commands on them.
//!
//! The pages are an mdBook in `docs/guide`. [`check`] needs no binary and is part of `tidy`; the other
//! checks run the commands of each block in an empty folder and compare their output with the page.

mod copies;
mod form;
mod links;
mod markdown;
mod ports;
mod run;
mod shell;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::report::Problems;
use crate::tree::{self, File};
use markdown::{Page, is_page};
use run::{Outcome, Programs};

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
    let mut files = tree::files(root)?;
    if !options.check && copy_code(root, &files)? {
        files = tree::files(root)?;
    }
    let mut problems = check(&files);
    let folder = match &options.programs {
        Some(folder) => folder.clone(),
        None => root.join("target/debug"),
    };
    let programs = Programs::new(folder, root.to_owned())?;
    let is_wanted = |page: &Page<'_>| {
        options.pages.is_empty() || options.pages.iter().any(|name| page.name() == name)
    };
    let pages: Vec<Page<'_>> = files
        .iter()
        .filter(|file| is_page(file))
        .map(Page::parse)
        .collect();
    let pages: Vec<Page<'_>> = pages.into_iter().filter(is_wanted).collect();
    let (mut commands, mut stale) = (0, 0);
    for (page, outcome) in run_all(&pages, &programs) {
        problems.extend(shell::check(page, &programs));
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(failed) => {
                problems.extend(failed);
                continue;
            }
        };
        commands += outcome.commands;
        let Some(text) = outcome.text else { continue };
        stale += 1;
        if options.check {
            problems.extend(outcome.differences);
        } else {
            fs::write(root.join(page.path), text)
                .map_err(|error| vec![format!("{}: {error}", page.path)])?;
            println!("{}: outputs written", page.path);
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    println!("guide: {commands} commands, {stale} pages with new output");
    Ok(())
}

/// Writes the code that pages copy from other files. Returns true if a page has changed.
fn copy_code(root: &Path, files: &[File]) -> Result<bool, Problems> {
    let mut has_changed = false;
    for page in files.iter().filter(|file| is_page(file)).map(Page::parse) {
        if let Some(text) = copies::replace(&page, files) {
            fs::write(root.join(page.path), text)
                .map_err(|error| vec![format!("{}: {error}", page.path)])?;
            println!("{}: code copied", page.path);
            has_changed = true;
        }
    }
    Ok(has_changed)
}

/// Runs several pages at a time, because their commands mostly wait. Returns the outcomes in the order of the
/// pages.
fn run_all<'a>(
    pages: &'a [Page<'a>],
    programs: &Programs,
) -> Vec<(&'a Page<'a>, Result<Outcome, Problems>)> {
    let next = AtomicUsize::new(0);
    let finished = Mutex::new(Vec::new());
    let work = || {
        while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = run::run(page, programs);
            finished.lock().expect("no panic").push((page, outcome));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(work);
        }
    });
    let mut finished = finished.into_inner().expect("no panic");
    finished.sort_by_key(|(page, _)| page.path);
    finished
}

/// Checks everything that needs no program: the list of pages, links, languages of code, copied code and paths
/// that the text names.
pub(crate) fn check(files: &[File]) -> Problems {
    let pages: Vec<Page<'_>> = files
        .iter()
        .filter(|file| is_page(file))
        .map(Page::parse)
        .collect();
    let mut problems = links::check_summary(&pages, files);
    for page in &pages {
        problems.extend(links::check(page, &pages, files));
        problems.extend(markdown::check_fences(page));
        problems.extend(copies::check(page, files));
    }
    problems
}

/// The pages that run at a time.
const WORKERS: usize = 4;

#[cfg(test)]
mod tests;
