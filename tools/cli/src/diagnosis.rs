//! `courser doctor` and `courser probe`, whose flags and texts are in the crate `courser-diagnose`.

use std::process::ExitCode;

use courser_diagnose::doctor::{self, Machine};
use courser_diagnose::probe;

use crate::error::Failure;
use crate::output::{self, Progress};
use crate::process::runtime;

/// Runs `courser doctor`. The exit code follows the worst finding.
pub(crate) fn doctor(arguments: &doctor::Arguments) -> Result<ExitCode, Failure> {
    let report = doctor::examine(&Machine::this(), arguments)?;
    match arguments.json {
        true => output::line(report.to_json()),
        false => output::line(report.to_string()),
    }
    Ok(ExitCode::from(report.exit_code()))
}

/// Runs `courser probe`. The exit code follows the grade.
pub(crate) fn probe(arguments: &probe::Arguments) -> Result<ExitCode, Failure> {
    let progress = Progress::new();
    let run = probe::run(arguments, |step| progress.begin(step));
    let report = runtime()?.block_on(run)?;
    drop(progress);
    match (arguments.json, &report.facts.first) {
        (true, _) => output::line(report.to_json()),
        (false, Ok(_)) => output::line(report.to_string()),
        (false, Err(_)) => output::note(report.to_string()),
    }
    // The report was printed already, in case the page cannot be written.
    if let Some(path) = &arguments.html {
        std::fs::write(path, report.to_html())
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
        output::note(format!("wrote {}", path.display()));
    }
    Ok(ExitCode::from(report.exit_code()))
}
