//! The report: a grade with its reasons, as text and as JSON.

use std::fmt;

use courser_measure::printable;
use serde::Serialize;

use crate::probe::aspect::{Aspect, Verdict};
use crate::probe::dial::MOST_HANDSHAKES;
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
    /// Returns the grade of so many points of 100.
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
    /// The grade.
    pub grade: Grade,
    /// Its points, of 100.
    pub points: u32,
    /// The aspects with their verdicts.
    pub aspects: Vec<Aspect>,
    /// The observations behind them.
    pub facts: Facts,
}

impl Report {
    /// Judges observations.
    pub fn new(mut facts: Facts) -> Self {
        // It is shown as it is.
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
        match self.grade {
            Grade::A | Grade::B | Grade::C => 0,
            Grade::D => 3,
            Grade::F => 4,
        }
    }

    /// Returns the report as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Returns the aspects that cost points, the most expensive first.
    pub fn reasons(&self) -> Vec<&Aspect> {
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
            "{host} ({address}): grade {grade}, {points} of 100 points; {handshakes} of at most {MOST_HANDSHAKES} handshakes"
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Err(error) = &self.facts.first {
            return write!(f, "{}: {error}", self.facts.host);
        }
        writeln!(f, "{}\n", self.headline())?;
        let width = self
            .aspects
            .iter()
            .map(|it| it.name.len())
            .max()
            .unwrap_or(0);
        for Aspect {
            name, verdict, saw, ..
        } in &self.aspects
        {
            writeln!(f, "{verdict:<4}  {name:<width$}  {saw}")?;
        }
        let reasons = self.reasons();
        if reasons.is_empty() {
            return write!(f, "\nnothing costs points");
        }
        write!(f, "\nwhat costs points:")?;
        for Aspect {
            name, points, why, ..
        } in reasons
        {
            write!(f, "\n  -{points:<3} {name}: {}", why.unwrap_or_default())?;
        }
        Ok(())
    }
}

/// Returns true for verdicts that cost points.
pub(crate) fn costs(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Weak | Verdict::Bad)
}
