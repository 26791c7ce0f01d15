//! Scenarios and bounds from files.

use std::fs;
use std::path::{Path, PathBuf};

use courser::Algorithm;
use courser_sim::scenario::{BoundsFile, Scenario};

use crate::sim::error::Error;

/// A scenario and its file.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The file.
    pub(crate) path: PathBuf,
    /// The scenario.
    pub(crate) scenario: Scenario,
}

/// The scenarios to run, and what is changed of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selection<'a> {
    /// Scenario files, or directories of them.
    pub(super) files: &'a [PathBuf],
    /// Selects the scenario with this name.
    pub(super) only: Option<&'a str>,
    /// The congestion control algorithm of all flows, in place of those of the scenarios.
    pub(super) controller: Option<Algorithm>,
    /// A file of bounds, in place of those of the scenarios.
    pub(super) bounds: Option<&'a Path>,
}

/// Reads scenarios from files.
///
/// # Errors
/// When a file cannot be read or is not valid, or no scenario is selected.
pub(super) fn read(selection: &Selection<'_>) -> Result<Vec<Source>, Error> {
    let mut sources: Vec<Source> = Vec::new();
    for path in expand(selection.files)? {
        let text = text_of(&path)?;
        let family = Scenario::parse_all(&text).map_err(|error| Error::content(&path, error))?;
        for mut scenario in family {
            if let Some(controller) = selection.controller {
                scenario
                    .flows
                    .iter_mut()
                    .for_each(|flow| flow.controller = controller);
            }
            add(&mut sources, &path, scenario)?;
        }
    }
    if let Some(only) = selection.only {
        pick(only, &mut sources)?;
    }
    if let Some(path) = selection.bounds {
        let text = text_of(path)?;
        let bounds = BoundsFile::parse(&text).map_err(|error| Error::content(path, error))?;
        apply(path, &bounds, &mut sources)?;
    }
    Ok(sources)
}

fn add(sources: &mut Vec<Source>, path: &Path, scenario: Scenario) -> Result<(), Error> {
    let same = sources.iter().find(|it| it.scenario.name == scenario.name);
    if let Some(same) = same {
        return Err(Error::Mismatch(format!(
            "{} and {} both define the scenario '{}': rename one",
            same.path.display(),
            path.display(),
            scenario.name
        )));
    }
    let path = path.to_owned();
    sources.push(Source { path, scenario });
    Ok(())
}

/// Removes all scenarios but the one with this name.
fn pick(name: &str, sources: &mut Vec<Source>) -> Result<(), Error> {
    let names: Vec<String> = sources.iter().map(|it| it.scenario.name.clone()).collect();
    sources.retain(|source| source.scenario.name == name);
    match sources.is_empty() {
        false => Ok(()),
        true => Err(Error::Mismatch(format!(
            "unknown scenario '{name}', known are {}",
            names.join(", ")
        ))),
    }
}

/// Puts bounds in place. Bounds that no scenario takes are more often than not a misspelt name.
fn apply(path: &Path, bounds: &BoundsFile, sources: &mut [Source]) -> Result<(), Error> {
    let mut is_used = false;
    for Source { scenario, .. } in &mut *sources {
        is_used |= bounds.apply(&scenario.name, &mut scenario.bounds);
    }
    if is_used {
        return Ok(());
    }
    let names: Vec<&str> = sources.iter().map(|it| it.scenario.name.as_str()).collect();
    Err(Error::Mismatch(format!(
        "{} has no bounds for {}: name its tables after scenarios",
        path.display(),
        names.join(", ")
    )))
}

/// Replaces directories by the scenario files in them, in the order of their names.
fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = fs::read_dir(path).map_err(|error| Error::read(path, error))?;
        let mut inside = Vec::new();
        for entry in entries {
            let file = entry.map_err(|error| Error::read(path, error))?.path();
            if file.extension().is_some_and(|end| end == "toml") {
                inside.push(file);
            }
        }
        if inside.is_empty() {
            return Err(Error::Mismatch(format!(
                "no scenario files (.toml) in {}",
                path.display()
            )));
        }
        inside.sort();
        files.extend(inside);
    }
    Ok(files)
}

fn text_of(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|error| Error::read(path, error))
}
