//! The confusion table: known causes, and the causes that explanations rank first.

use std::fmt::Write as _;

use super::scenarios::{SCENARIOS, Scenario};
use courser_trace::explain::Explanation;

/// The line before the table in the document.
pub const BEGIN: &str = "<!-- table: cargo run -p courser-trace --example confusion -->\n";
/// The line after the table.
pub const END: &str = "<!-- end of table -->";

/// The seeds with which each scenario runs.
pub const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;

/// The results of one scenario.
pub struct Outcome {
    /// The scenario.
    pub scenario: &'static Scenario,
    /// The explanations of its traces, one for each seed.
    pub explanations: Vec<Explanation>,
}

impl Outcome {
    /// Returns the number of explanations that rank the cause first.
    pub fn right(&self) -> usize {
        let all = self.explanations.iter();
        all.filter(|it| it.first_cause() == Some(self.scenario.cause))
            .count()
    }
}

/// Runs all scenarios.
pub fn outcomes() -> Vec<Outcome> {
    let run = |scenario: &'static Scenario| Outcome {
        scenario,
        explanations: SEEDS
            .map(|seed| (scenario.run)(seed).explain(scenario.side))
            .collect(),
    };
    SCENARIOS.iter().map(run).collect()
}

/// Returns the table as Markdown.
pub fn markdown(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "| scenario | trace of | cause | right | ranked first | share | ranked second |\n\
         |---|---|---|---|---|---:|---|\n",
    );
    for outcome in outcomes {
        let scenario = outcome.scenario;
        // A wrong run is more informative than a right one.
        let wrong = |it: &&Explanation| it.first_cause() != Some(scenario.cause);
        let all = &outcome.explanations;
        let shown = all.iter().find(wrong).or(all.first());
        let findings = shown.map_or(&[][..], |it| &it.findings);
        let first = findings.first();
        let name = first.map_or("nothing", |it| it.cause.name());
        let share = first.map_or(0.0, |it| it.share * 100.0);
        let second = findings.get(1).map(|it| {
            let share = it.share * 100.0;
            format!("{} {share:.0} %", it.cause.name())
        });
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} of {} | {name} | {share:.0} % | {} |",
            scenario.about,
            if scenario.side.is_client() {
                "client"
            } else {
                "server"
            },
            scenario.cause.name(),
            outcome.right(),
            all.len(),
            second.unwrap_or_default(),
        );
    }
    let right: usize = outcomes.iter().map(Outcome::right).sum();
    let all: usize = outcomes.iter().map(|it| it.explanations.len()).sum();
    let count = outcomes.len();
    let _ = writeln!(
        text,
        "\n{right} of {all} runs of {count} scenarios are right."
    );
    text
}
