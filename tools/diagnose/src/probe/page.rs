//! The report as a self-contained HTML page.

use courser_plot::page::{Cell, Page, Section, Table};

use crate::finding::Verdict;
use crate::probe::report::Report;

impl Report {
    /// Returns the report as one HTML file.
    pub fn to_html(&self) -> String {
        let mut table = Table::new("Aspects", ["aspect", "verdict", "observation", "points"]);
        for aspect in &self.aspects {
            let verdict = match aspect.verdict {
                Verdict::Good => Cell::good("good"),
                Verdict::Fact => Cell::text(""),
                Verdict::Unknown => Cell::text("unknown"),
                Verdict::Weak => Cell::bad("weak"),
                Verdict::Bad => Cell::bad("bad"),
            };
            let points = match aspect.points {
                0 => String::new(),
                points => format!("-{points}"),
            };
            table = table.row([
                Cell::text(&aspect.name),
                verdict,
                Cell::text(&aspect.saw),
                Cell::text(points),
            ]);
        }
        let mut reasons = Section::new("Reasons for the grade");
        for aspect in self.reasons() {
            let why = aspect.why.as_deref().unwrap_or_default();
            reasons = reasons.text(format!(
                "{}: {} ({} points)",
                aspect.name, why, aspect.points
            ));
        }
        if self.reasons().is_empty() {
            reasons = reasons.text("No points were deducted.");
        }
        Page::new(format!("QUIC at {}: grade {}", self.facts.host, self.grade))
            .line(self.headline())
            .section(Section::new("Observations").table(table))
            .section(reasons)
            .section(Section::new("All facts").folded().code(self.to_json()))
            .to_html()
    }
}
