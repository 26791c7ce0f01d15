//! `courser doctor`, whose flags, checks and text are in a crate of its own.

use std::process::ExitCode;

use courser_doctor::Machine;

use crate::error::Failure;
use crate::output;

/// Runs `courser doctor`. The exit code follows the worst finding.
pub(crate) fn doctor(arguments: &courser_doctor::Arguments) -> Result<ExitCode, Failure> {
    let report = courser_doctor::examine(&Machine::this(), arguments)?;
    match arguments.json {
        true => output::line(report.to_json()),
        false => output::line(report.to_string()),
    }
    Ok(ExitCode::from(report.exit_code()))
}
