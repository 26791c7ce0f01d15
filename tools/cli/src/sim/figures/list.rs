//! Reads the TOML file that lists the rows of a document.

use std::path::{Path, PathBuf};

use courser_sim::report::Measure;
use courser_sim::scenario::Scenario;
use serde::Deserialize;

use crate::error::Failure;
use crate::sim::file;

/// The content of a document. Paths are relative to the file.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    pub(super) title: String,
    /// Markdown above the overview.
    pub(super) about: String,
    /// Directory of the measured values, with a file for each row.
    data: PathBuf,
    #[serde(rename = "row")]
    pub(super) rows: Vec<Row>,
    #[serde(skip)]
    file: PathBuf,
}

/// A target, and the scenarios that have to reach it.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    /// The name of the row, for the command line and the file of its values.
    pub(super) name: String,
    pub(super) title: String,
    pub(super) target: String,
    pub(super) files: Vec<FilePart>,
    /// Names of the measures that have a column.
    pub(super) columns: Vec<String>,
    /// Markdown below the table.
    #[serde(default)]
    pub(super) text: String,
    #[serde(default, rename = "chart")]
    pub(super) charts: Vec<ChartPart>,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct FilePart {
    pub(super) path: PathBuf,
    /// Runs of each of its scenarios.
    pub(super) runs: u64,
}

/// A chart of one run.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct ChartPart {
    pub(super) file: PathBuf,
    pub(super) scenario: String,
    /// Title of the chart in the report of the run, or the beginning of the title.
    pub(super) chart: String,
    #[serde(default = "first_seed")]
    pub(super) seed: u64,
}

fn first_seed() -> u64 {
    1
}

/// Reads and checks a list.
pub(crate) fn read(path: &Path) -> Result<List, Failure> {
    parse(path, &file::read(path)?)
}

/// Reads the text of a file at `path`.
pub(crate) fn parse(path: &Path, text: &str) -> Result<List, Failure> {
    let wrong = |reason: String| file::unusable(path, reason);
    let mut list: List = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
    list.file = path.to_owned();
    for row in &list.rows {
        for column in &row.columns {
            if Measure::named(column).is_none() {
                let message = format!("row {} has a column '{column}'", row.name);
                return Err(wrong(format!("{message}, which is not a measure")));
            }
        }
    }
    Ok(list)
}

impl List {
    /// Returns the rows with these names, or all for the name `all`.
    pub(crate) fn select(&self, names: &[String]) -> Result<Vec<&Row>, Failure> {
        let known: Vec<&str> = self.rows.iter().map(|row| row.name.as_str()).collect();
        for name in names {
            if name != "all" && !known.contains(&name.as_str()) {
                let reason = format!("has no row '{name}', known are all, {}", known.join(", "));
                let path = self.file.display();
                return Err(Failure::new(format!("{path} {reason}")));
            }
        }
        let is_selected = |row: &&Row| names.iter().any(|name| name == "all" || *name == row.name);
        Ok(self.rows.iter().filter(is_selected).collect())
    }

    /// Returns a path of the list relative to the current directory.
    pub(super) fn path(&self, path: &Path) -> PathBuf {
        let directory = self.file.parent().unwrap_or(Path::new(""));
        directory.join(path)
    }

    /// Returns the file with the numbers of a row.
    pub(super) fn data_of(&self, row: &Row) -> PathBuf {
        self.path(&self.data).join(format!("{}.tsv", row.name))
    }

    /// Reads the scenarios of a row, each with its number of runs.
    pub(super) fn scenarios(&self, row: &Row) -> Result<Vec<(Scenario, u64)>, Failure> {
        let mut all = Vec::new();
        for part in &row.files {
            let path = self.path(&part.path);
            let family = Scenario::parse_all(&file::read(&path)?);
            let family = family.map_err(|error| file::unusable(&path, error))?;
            all.extend(family.into_iter().map(|scenario| (scenario, part.runs)));
        }
        Ok(all)
    }
}
