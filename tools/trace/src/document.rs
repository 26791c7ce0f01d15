//! Writes the results of commands as JSON.

use std::path::Path;

use serde::Serialize;

use crate::explain::Explanation;
use crate::qlog::{About, Summary};
use crate::stats::Stats;

/// The summary of one file.
#[derive(Serialize)]
struct FileSummary<'a> {
    file: String,
    format: &'a str,
    loss_share: Option<f64>,
    repeated_share: Option<f64>,
    #[serde(flatten)]
    summary: &'a Summary,
}

/// Returns the summary of a file as a JSON object.
///
/// # Errors
/// Returns an error if a number in the summary cannot be written as JSON.
pub(crate) fn document(
    file: &Path,
    about: &About,
    summary: &Summary,
) -> serde_json::Result<String> {
    serde_json::to_string(&FileSummary {
        file: file.display().to_string(),
        format: about.format,
        loss_share: summary.loss_share(),
        repeated_share: summary.repeated_share(),
        summary,
    })
}

/// The explanation of one file.
#[derive(Serialize)]
struct FileExplanation<'a> {
    file: String,
    #[serde(flatten)]
    explanation: &'a Explanation,
}

/// Returns the explanation of a file as a JSON object.
///
/// # Errors
/// Returns an error if a number in the explanation cannot be written as JSON.
pub(crate) fn explanation(path: &Path, explanation: &Explanation) -> serde_json::Result<String> {
    serde_json::to_string(&FileExplanation {
        file: path.display().to_string(),
        explanation,
    })
}

/// The counts of one file.
#[derive(Serialize)]
struct FileStats<'a> {
    file: String,
    #[serde(flatten)]
    stats: &'a Stats,
}

/// Returns the counts of a file as a JSON object.
///
/// # Errors
/// Returns an error if a number in the counts cannot be written as JSON.
pub(crate) fn stats(path: &Path, stats: &Stats) -> serde_json::Result<String> {
    serde_json::to_string(&FileStats {
        file: path.display().to_string(),
        stats,
    })
}
