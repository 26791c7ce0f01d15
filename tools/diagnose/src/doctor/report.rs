//! Reports the findings of all checks as text and as JSON.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::finding::{Finding, Verdict, name_width, to_json};

/// The findings of all checks.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The machine: system, kernel, architecture and cores.
    pub machine: String,
    /// The findings in the order of the checks.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Creates a report of findings.
    pub fn new(machine: String, findings: Vec<Finding>) -> Self {
        Self { machine, findings }
    }

    /// Returns the worst verdict.
    pub fn worst(&self) -> Verdict {
        let worst = self.findings.iter().map(|it| it.verdict).max();
        worst.unwrap_or(Verdict::Good)
    }

    /// Returns the exit code: 4 if there are errors, 3 if there are warnings, and 0 otherwise.
    pub fn exit_code(&self) -> u8 {
        self.worst().exit_code()
    }

    /// Returns the report as JSON.
    pub fn to_json(&self) -> String {
        to_json(&Document {
            machine: &self.machine,
            severity: severity(self.worst()),
            findings: &self.findings,
        })
    }

    fn count(&self, severity_name: &str) -> usize {
        let all = self.findings.iter();
        all.filter(|it| severity(it.verdict) == severity_name)
            .count()
    }
}

/// The JSON of a report.
#[derive(Serialize)]
struct Document<'a> {
    machine: &'a str,
    severity: &'static str,
    #[serde(serialize_with = "entries")]
    findings: &'a [Finding],
}

/// A finding in JSON.
#[derive(Serialize)]
struct Entry<'a> {
    check: &'a str,
    severity: &'static str,
    visible: bool,
    saw: &'a str,
    why: Option<&'a str>,
    fix: Option<&'a str>,
}

fn entries<S: Serializer>(findings: &[Finding], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(findings.iter().map(|it| Entry {
        check: &it.name,
        severity: severity(it.verdict),
        visible: it.verdict != Verdict::Unknown,
        saw: &it.saw,
        why: it.why.as_deref(),
        fix: it.fix.as_deref(),
    }))
}

/// Returns the name of a verdict in this report. A subject that could not be observed counts as a note.
fn severity(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Good => "ok",
        Verdict::Fact | Verdict::Unknown => "note",
        Verdict::Weak => "warning",
        Verdict::Bad => "error",
    }
}

impl fmt::Display for Report {
    /// Writes one line for each finding. Unless the verdict is good, the reason and the command that corrects
    /// the problem follow.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.machine)?;
        let width = name_width(&self.findings);
        for finding in &self.findings {
            let Finding { name, saw, .. } = finding;
            let severity = severity(finding.verdict);
            writeln!(f, "{severity:<7}  {name:<width$}  {saw}")?;
            if finding.verdict == Verdict::Good {
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
        write!(
            f,
            "\n{}, {}, {}, {} ok",
            counted(self.count("error"), "error"),
            counted(self.count("warning"), "warning"),
            counted(self.count("note"), "note"),
            self.count("ok"),
        )?;
        let unknown = self.findings.iter();
        match unknown.filter(|it| it.verdict == Verdict::Unknown).count() {
            0 => Ok(()),
            1 => write!(f, "; 1 check could not be completed"),
            unseen => write!(f, "; {unseen} checks could not be completed"),
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
