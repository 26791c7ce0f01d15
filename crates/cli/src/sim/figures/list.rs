//! The rows of the document, as a file has them.

use std::fs;
use std::path::{Path, PathBuf};

use courser_sim::report::Measure;
use courser_sim::scenario::Scenario;
use serde::Deserialize;

use super::cannot;
use crate::error::Failure;

/// What the document consists of. Paths are relative to the file.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    pub(super) title: String,
    /// Text above the overview.
    pub(super) about: String,
    /// Directory of what was measured, a file for each row.
    data: PathBuf,
    #[serde(rename = "row")]
    pub(super) rows: Vec<Row>,
    #[serde(skip)]
    directory: PathBuf,
}

/// A target, and the scenarios that it is about.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    /// For the command line and the name of the file with the data.
    pub(super) name: String,
    pub(super) title: String,
    pub(super) target: String,
    pub(super) files: Vec<FilePart>,
    /// Measures with a column each.
    pub(super) columns: Vec<String>,
    /// Text below the table.
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

/// A chart from one run.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct ChartPart {
    pub(super) file: PathBuf,
    pub(super) scenario: String,
    /// Title of the chart in the report of the run, or how it begins.
    pub(super) chart: String,
    #[serde(default = "first_seed")]
    pub(super) seed: u64,
}

fn first_seed() -> u64 {
    1
}

pub(super) fn read(path: &Path) -> Result<List, Failure> {
    let text = fs::read_to_string(path).map_err(|error| cannot("read", path, &error))?;
    parse(path, &text)
}

/// Reads the text of a file at `path`.
pub(crate) fn parse(path: &Path, text: &str) -> Result<List, Failure> {
    let wrong = |what: String| Failure::new(format!("{}: {what}", path.display()));
    let mut list: List = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
    list.directory = path.parent().unwrap_or(Path::new("")).to_owned();
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
    /// A path of the file, from where we are.
    pub(super) fn path(&self, path: &Path) -> PathBuf {
        self.directory.join(path)
    }

    /// Where the numbers of a row are.
    pub(super) fn data_of(&self, row: &Row) -> PathBuf {
        self.path(&self.data).join(format!("{}.tsv", row.name))
    }

    /// The scenarios of a row, each with how many runs it wants.
    pub(super) fn scenarios(&self, row: &Row) -> Result<Vec<(Scenario, u64)>, Failure> {
        let mut all = Vec::new();
        for file in &row.files {
            let path = self.path(&file.path);
            let text = fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))?;
            let family = Scenario::parse_all(&text)
                .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
            all.extend(family.into_iter().map(|scenario| (scenario, file.runs)));
        }
        Ok(all)
    }
}
