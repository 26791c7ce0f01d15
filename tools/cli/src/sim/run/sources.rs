//! Reads scenarios and bounds from files.

use std::fs;
use std::path::{Path, PathBuf};

use courser_sim::scenario::{BoundsFile, Scenario};

use super::args::RunArguments;
use crate::error::Failure;
use crate::sim::file;

/// A scenario and its file.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The file that defines the scenario, for messages and the command that repeats a run.
    pub(crate) path: PathBuf,
    /// The scenario, with the bounds and the controller of the command line applied.
    pub(crate) scenario: Scenario,
}

/// Reads the scenarios that the command line selects.
pub(super) fn read(arguments: &RunArguments) -> Result<Vec<Source>, Failure> {
    let mut sources: Vec<Source> = Vec::new();
    for path in expand(&arguments.files)? {
        let text = file::read(&path)?;
        let family = Scenario::parse_all(&text).map_err(|error| file::unusable(&path, error))?;
        for mut scenario in family {
            if let Some(controller) = arguments.cc {
                scenario
                    .flows
                    .iter_mut()
                    .for_each(|flow| flow.controller = controller);
            }
            add(&mut sources, &path, scenario)?;
        }
    }
    if let Some(only) = &arguments.only {
        pick(only, &mut sources)?;
    }
    if let Some(path) = &arguments.bounds {
        let bounds = BoundsFile::parse(&file::read(path)?);
        let bounds = bounds.map_err(|error| file::unusable(path, error))?;
        apply(path, &bounds, &mut sources)?;
    }
    Ok(sources)
}

fn add(sources: &mut Vec<Source>, path: &Path, scenario: Scenario) -> Result<(), Failure> {
    let same = sources.iter().find(|it| it.scenario.name == scenario.name);
    if let Some(same) = same {
        return Err(Failure::new(format!(
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

/// Removes all scenarios except the one with this name.
fn pick(name: &str, sources: &mut Vec<Source>) -> Result<(), Failure> {
    let names: Vec<String> = sources.iter().map(|it| it.scenario.name.clone()).collect();
    sources.retain(|source| source.scenario.name == name);
    match sources.is_empty() {
        false => Ok(()),
        true => Err(Failure::new(format!(
            "unknown scenario '{name}', known are {}",
            names.join(", ")
        ))),
    }
}

/// Applies the bounds of a file. It is an error if none of them is for one of the scenarios: a name is probably
/// misspelt.
fn apply(path: &Path, bounds: &BoundsFile, sources: &mut [Source]) -> Result<(), Failure> {
    let mut is_used = false;
    for Source { scenario, .. } in &mut *sources {
        is_used |= bounds.apply(&scenario.name, &mut scenario.bounds);
    }
    if is_used {
        return Ok(());
    }
    let names: Vec<&str> = sources.iter().map(|it| it.scenario.name.as_str()).collect();
    Err(Failure::new(format!(
        "{} has no bounds for {}: name its tables after scenarios",
        path.display(),
        names.join(", ")
    )))
}

/// Replaces directories by the scenario files in them, in the order of their names.
fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = fs::read_dir(path).map_err(|error| file::cannot_read(path, &error))?;
        let mut inside = Vec::new();
        for entry in entries {
            let file = entry
                .map_err(|error| file::cannot_read(path, &error))?
                .path();
            if file.extension().is_some_and(|end| end == "toml") {
                inside.push(file);
            }
        }
        if inside.is_empty() {
            return Err(Failure::new(format!(
                "no scenario files (.toml) in {}",
                path.display()
            )));
        }
        inside.sort();
        files.extend(inside);
    }
    Ok(files)
}
