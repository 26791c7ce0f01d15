//! Reports a grade with its reasons, as text and as JSON.

use std::fmt;

use courser_measure::printable;
use serde::{Serialize, Serializer};

use crate::finding::{Finding, Verdict, name_width, to_json};
use crate::probe::connector::MAX_HANDSHAKES;
use crate::probe::facts::Facts;
use crate::probe::judge::judge;

/// A grade, from A to F without E.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[expect(missing_docs, reason = "grades are letters")]
pub enum Grade {
    A,
    B,
    C,
    D,
    F,
}

impl Grade {
    /// Returns the grade for a number of points from 0 to 100.
    fn of(points: u32) -> Self {
        match points {
            90.. => Self::A,
            80.. => Self::B,
            65.. => Self::C,
            50.. => Self::D,
            _ => Self::F,
        }
    }
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The result of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The grade, which follows from the points.
    pub grade: Grade,
    /// The points, from 0 to 100.
    pub points: u32,
    /// The aspects of the server with their verdicts.
    #[serde(serialize_with = "aspects")]
    pub aspects: Vec<Finding>,
    /// The observations behind them.
    pub facts: Facts,
}

impl Report {
    /// Judges observations, and grades the server.
    pub fn new(mut facts: Facts) -> Self {
        // The error is printed without further processing.
        facts.first = facts.first.map_err(|error| printable(&error));
        let aspects = judge(&facts);
        let lost: u32 = aspects.iter().map(|aspect| aspect.points).sum();
        let points = 100_u32.saturating_sub(lost);
        Self {
            grade: Grade::of(points),
            points,
            aspects,
            facts,
        }
    }

    /// Returns the exit code: 0 for the grades A to C, 3 for D, 4 for F and for a server that did not answer.
    pub fn exit_code(&self) -> u8 {
        let verdict = match self.grade {
            Grade::A | Grade::B | Grade::C => Verdict::Good,
            Grade::D => Verdict::Weak,
            Grade::F => Verdict::Bad,
        };
        verdict.exit_code()
    }

    /// Returns the report as JSON.
    pub fn to_json(&self) -> String {
        to_json(self)
    }

    /// Returns the aspects that cost points, the most expensive first.
    pub fn reasons(&self) -> Vec<&Finding> {
        let mut reasons: Vec<_> = self.aspects.iter().filter(|it| it.points > 0).collect();
        reasons.sort_by_key(|aspect| std::cmp::Reverse(aspect.points));
        reasons
    }

    /// Returns the grade and the number of handshakes in one line.
    pub(crate) fn headline(&self) -> String {
        let Self {
            grade,
            points,
            facts,
            ..
        } = self;
        let Facts {
            host,
            address,
            handshakes,
            ..
        } = facts;
        format!(
            "{host} ({address}): grade {grade}, {points} of 100 points; {handshakes} of at most {MAX_HANDSHAKES} handshakes"
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Err(error) = &self.facts.first {
            return write!(f, "{}: {error}", self.facts.host);
        }
        writeln!(f, "{}\n", self.headline())?;
        let width = name_width(&self.aspects);
        for Finding {
            name, verdict, saw, ..
        } in &self.aspects
        {
            writeln!(f, "{:<4}  {name:<width$}  {saw}", label(*verdict))?;
        }
        let reasons = self.reasons();
        if reasons.is_empty() {
            return write!(f, "\nno points were deducted");
        }
        write!(f, "\npoints deducted:")?;
        for Finding {
            name, points, why, ..
        } in reasons
        {
            write!(
                f,
                "\n  -{points:<3} {name}: {}",
                why.as_deref().unwrap_or_default()
            )?;
        }
        Ok(())
    }
}

/// An aspect in JSON.
#[derive(Serialize)]
struct Aspect<'a> {
    name: &'a str,
    verdict: Verdict,
    saw: &'a str,
    why: Option<&'a str>,
    points: u32,
}

fn aspects<S: Serializer>(findings: &[Finding], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(findings.iter().map(|it| Aspect {
        name: &it.name,
        verdict: it.verdict,
        saw: &it.saw,
        why: it.why.as_deref(),
        points: it.points,
    }))
}

/// Returns the label of a verdict in the text.
fn label(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Good => "good",
        Verdict::Fact => "",
        Verdict::Unknown => "?",
        Verdict::Weak => "weak",
        Verdict::Bad => "BAD",
    }
}
