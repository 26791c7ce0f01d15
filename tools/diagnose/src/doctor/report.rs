//! The findings of all checks, as text and as JSON.

use std::fmt;

use serde::Serialize;

use crate::doctor::finding::{Finding, Severity};

/// The findings of all checks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The machine: system, kernel, architecture and cores.
    pub machine: String,
    /// The worst severity of all findings.
    pub severity: Severity,
    /// The findings in the order of the checks.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Makes a report of findings.
    pub fn new(machine: String, findings: Vec<Finding>) -> Self {
        let severity = findings.iter().map(|it| it.severity).max();
        Self {
            machine,
            severity: severity.unwrap_or(Severity::Ok),
            findings,
        }
    }

    /// Returns the exit code: 0 if there is nothing worse than a note, 3 for warnings and 4 for
    /// errors. Programs use 1 for failures of their own and 2 for mistakes in the arguments.
    pub fn exit_code(&self) -> u8 {
        match self.severity {
            Severity::Ok | Severity::Note => 0,
            Severity::Warning => 3,
            Severity::Error => 4,
        }
    }

    /// Returns the report as JSON.
    pub fn to_json(&self) -> String {
        // Strings and booleans cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    fn count(&self, severity: Severity) -> usize {
        let all = self.findings.iter();
        all.filter(|finding| finding.severity == severity).count()
    }
}

impl fmt::Display for Report {
    /// Writes one line for each finding. Those that ask for something are followed by the reason and the
    /// command.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.machine)?;
        let width = self.findings.iter().map(|it| it.check.len()).max();
        let width = width.unwrap_or(0);
        for finding in &self.findings {
            let Finding { check, saw, .. } = finding;
            writeln!(f, "{:<7}  {check:<width$}  {saw}", finding.severity)?;
            if finding.severity == Severity::Ok {
                continue;
            }
            let indent = 7 + 2 + width + 2;
            if let Some(why) = &finding.why {
                writeln!(f, "{:indent$}why: {why}", "")?;
            }
            for (index, line) in finding.fix.iter().flat_map(|it| it.lines()).enumerate() {
                let label = if index == 0 { "fix: " } else { "     " };
                writeln!(f, "{:indent$}{label}{line}", "")?;
            }
        }
        let (errors, warnings) = (self.count(Severity::Error), self.count(Severity::Warning));
        let (notes, fine) = (self.count(Severity::Note), self.count(Severity::Ok));
        let unseen = self.findings.iter().filter(|it| !it.visible).count();
        write!(
            f,
            "\n{}, {}, {}, {fine} ok",
            counted(errors, "error"),
            counted(warnings, "warning"),
            counted(notes, "note"),
        )?;
        match unseen {
            0 => Ok(()),
            1 => write!(f, "; 1 check could not see its subject"),
            _ => write!(f, "; {unseen} checks could not see their subject"),
        }
    }
}

/// Returns a number with its noun: `1 error`, `2 errors`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

#[cfg(test)]
mod tests;
