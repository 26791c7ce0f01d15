//! Reports about a matrix: Markdown and HTML. JSON is the serialization of the matrix.

use std::fmt::Write as _;
use std::path::Path;
use std::str::FromStr;

use courser_measure::Failure;
use courser_plot::page::{Cell as PageCell, Page, Section, Table};

use crate::case::{CASES, Case};
use crate::matrix::{Cell, Matrix, Pair, Verdict};

/// Explanations of cells that fail, one a line: server, client, letter and text, separated by tabs.
#[derive(Clone, Debug, Default)]
pub struct Notes(Vec<Note>);

#[derive(Clone, Debug)]
struct Note {
    server: String,
    client: String,
    letter: String,
    text: String,
}

/// The format of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportFormat {
    /// The grid as plain text.
    Text,
    /// Markdown: the grid, rates, failures and cases.
    Markdown,
    /// A page without network or script.
    Html,
    /// All results as JSON, for other programs.
    Json,
}

impl FromStr for ReportFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "md" => Ok(Self::Markdown),
            "html" => Ok(Self::Html),
            "json" => Ok(Self::Json),
            _ => Err("known are text, md, html and json".to_owned()),
        }
    }
}

impl Notes {
    /// Reads notes from a file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or has a line that is not a note.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let unusable = |error: String| {
            let path = path.display();
            Failure::new(format!("cannot use the notes in {path}: {error}"))
        };
        let text = std::fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
        Self::parse(&text).map_err(unusable)
    }

    /// Reads notes. Empty lines and those that begin with `#` are skipped.
    ///
    /// # Errors
    /// Returns an error that names the first line without four fields.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lines = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        let note = |line: &str| match line.splitn(4, '\t').collect::<Vec<_>>()[..] {
            [server, client, letter, text] => Ok(Note {
                server: server.to_owned(),
                client: client.to_owned(),
                letter: letter.to_owned(),
                text: text.to_owned(),
            }),
            _ => Err(format!(
                "a note needs four fields with tabs between them: '{line}'"
            )),
        };
        lines.map(note).collect::<Result<_, _>>().map(Self)
    }

    fn about(&self, pair: &Pair, cell: &Cell) -> Option<&str> {
        let mut notes = self.0.iter();
        let note = notes.find(|note| {
            note.server == pair.server && note.client == pair.client && note.letter == cell.letter
        });
        note.map(|note| note.text.as_str())
    }
}

impl Matrix {
    /// Returns the grid for a terminal: a row for each pair, a column for each case.
    fn to_text(&self) -> String {
        let name = |pair: &Pair| format!("{} server, {} client", pair.server, pair.client);
        let width = self
            .pairs
            .iter()
            .map(|pair| name(pair).len())
            .max()
            .unwrap_or(0);
        let mut text = " ".repeat(width);
        let letters = self.pairs.first().map_or(&[][..], |pair| &pair.cells);
        for cell in letters {
            let _ = write!(text, " {:>3}", cell.letter);
        }
        for pair in &self.pairs {
            let _ = write!(text, "\n{:<width$}", name(pair));
            for cell in &pair.cells {
                let _ = write!(text, " {:>3}", symbol(cell));
            }
        }
        let letters = WEBTRANSPORT.map(|(letter, _)| letter).join(", ");
        let _ = write!(text, "\nWebTransport ({letters}): {ELSEWHERE}");
        text
    }

    /// Returns the report in a format, with explanations of cells that fail.
    ///
    /// # Errors
    /// Returns an error if the matrix cannot be written as JSON.
    pub fn report(&self, format: ReportFormat, notes: &Notes) -> Result<String, Failure> {
        Ok(match format {
            ReportFormat::Text => self.to_text(),
            ReportFormat::Markdown => self.to_markdown(notes),
            ReportFormat::Html => self.to_html(notes),
            ReportFormat::Json => self
                .to_json()
                .map_err(|error| Failure::new(error.to_string()))?,
        })
    }

    /// Returns the matrix as JSON, with the cases of WebTransport, which have a runner of their own.
    fn to_json(&self) -> serde_json::Result<String> {
        let mut matrix = serde_json::to_value(self)?;
        let cases = WEBTRANSPORT.map(|(letter, case)| {
            serde_json::json!({"letter": letter, "case": case, "verdict": ELSEWHERE})
        });
        matrix["webtransport"] = serde_json::json!(cases);
        serde_json::to_string_pretty(&matrix)
    }

    fn about(&self) -> String {
        format!(
            "`courser interop matrix` wrote this report after {:.0} s of runs with the seed {}.",
            self.seconds, self.seed
        )
    }

    /// Names the implementations whose cases differ from the runner's in the protocol.
    fn protocols(&self) -> impl Iterator<Item = String> {
        self.implementations.iter().filter_map(|implementation| {
            let (name, protocol) = (&implementation.name, implementation.protocol.as_ref()?);
            Some(format!(
                "{name} speaks {protocol} only: the files of all its cases travel over it, where the \
                 runner has HTTP/0.9 in most."
            ))
        })
    }

    fn to_markdown(&self, notes: &Notes) -> String {
        let mut text = format!("# Interoperability\n\n{}\n\n", self.about());
        let _ = writeln!(
            text,
            "Each cell is the result of {} run(s) of a case of the [QUIC interop \
             runner](https://interop.seemann.io) between two\nprocesses and an emulated link: ✓ all \
             runs passed, ✕ a run failed, – one end does not support the test.\n",
            self.repeat
        );
        text.push_str("| implementation | version |\n|---|---|\n");
        for implementation in &self.implementations {
            let _ = writeln!(
                text,
                "| {} | {} |",
                implementation.name, implementation.version
            );
        }
        for line in self.protocols() {
            let _ = writeln!(text, "\n{line}");
        }
        text.push_str("\n## Grid\n\n");
        text.push_str(&self.markdown_grid());
        self.push_rates(&mut text);
        self.push_failures(&mut text, notes);
        self.push_earlier_failures(&mut text, notes);
        self.push_cases(&mut text);
        text.push_str("\n## WebTransport\n\n| letter | case | result |\n|---|---|---|\n");
        for (letter, case) in WEBTRANSPORT {
            let _ = writeln!(text, "| {letter} | {case} | {ELSEWHERE} |");
        }
        text
    }

    fn markdown_grid(&self) -> String {
        let mut text = String::from("| server | client |");
        let letters = self.pairs.first().map_or(&[][..], |pair| &pair.cells);
        for cell in letters {
            let _ = write!(text, " {} |", cell.letter);
        }
        text.push_str("\n|---|---|");
        text.push_str(&"---|".repeat(letters.len()));
        for pair in &self.pairs {
            let _ = write!(text, "\n| {} | {} |", pair.server, pair.client);
            for cell in &pair.cells {
                let _ = write!(text, " {} |", symbol(cell));
            }
        }
        text.push('\n');
        text
    }

    fn push_rates(&self, text: &mut String) {
        let mut lines = String::new();
        for pair in &self.pairs {
            for cell in &pair.cells {
                if let Some(rate) = cell.kbit_per_second {
                    let (server, client) = (&pair.server, &pair.client);
                    let case = cell.case;
                    let _ = writeln!(lines, "| {server} | {client} | {case} | {rate:.0} |");
                }
            }
        }
        if !lines.is_empty() {
            text.push_str(
                "\n## Rates\n\n| server | client | case | kbit/s |\n|---|---|---|---:|\n",
            );
            text.push_str(&lines);
        }
    }

    fn push_failures(&self, text: &mut String, notes: &Notes) {
        text.push_str("\n## Failures\n\n");
        if !notes.0.is_empty() {
            let _ = writeln!(text, "{SUPPOSED}\n");
        }
        let mut failed = self.failed().peekable();
        if failed.peek().is_none() {
            text.push_str("None.\n");
        }
        for (pair, cell) in failed {
            let (server, client) = (&pair.server, &pair.client);
            let (case, passed) = (cell.case, cell.passed);
            let _ = writeln!(
                text,
                "- {server} server, {client} client, {case}: {passed} of {} runs passed.",
                self.repeat
            );
            if let Some(reason) = cell.failures.first() {
                let _ = writeln!(text, "  First failure: {reason}.");
            }
            if let Some(note) = notes.about(pair, cell) {
                let _ = writeln!(text, "  {note}");
            }
        }
    }

    /// Lists the cells that passed although a note explains why they fail now and then.
    fn push_earlier_failures(&self, text: &mut String, notes: &Notes) {
        let mut cells = self.passed_with_notes(notes).peekable();
        if cells.peek().is_some() {
            text.push_str("\n## Failures of other runs\n\nThese cells passed here.\n\n");
        }
        for (pair, cell, note) in cells {
            let (server, client) = (&pair.server, &pair.client);
            let case = cell.case;
            let _ = writeln!(text, "- {server} server, {client} client, {case}: {note}");
        }
    }

    fn passed_with_notes<'a>(
        &'a self,
        notes: &'a Notes,
    ) -> impl Iterator<Item = (&'a Pair, &'a Cell, &'a str)> {
        let passed = self.cells_with(Verdict::Succeeded);
        passed.filter_map(|(pair, cell)| Some((pair, cell, notes.about(pair, cell)?)))
    }

    fn push_cases(&self, text: &mut String) {
        text.push_str("\n## Cases\n\n| letter | case | link |\n|---|---|---|\n");
        let cells = self.pairs.first().map_or(&[][..], |pair| &pair.cells);
        for case in cells.iter().filter_map(|cell| Case::find(cell.letter)) {
            let _ = writeln!(
                text,
                "| {} | {} | `{}` |",
                case.letter, case.name, case.link
            );
        }
    }

    fn to_html(&self, notes: &Notes) -> String {
        let letters: Vec<&str> = CASES
            .iter()
            .map(|case| case.letter)
            .filter(|letter| self.has(letter))
            .collect();
        let columns = ["server", "client"].into_iter().chain(letters);
        let mut grid = Table::new("Cases", columns);
        let mut failures = Table::new(
            "Failures",
            [
                "server",
                "client",
                "case",
                "passed",
                "first failure",
                "explanation",
            ],
        );
        for pair in &self.pairs {
            let names = [&pair.server, &pair.client].map(|name| PageCell::text(name.as_str()));
            let cells = pair.cells.iter().map(|cell| match cell.verdict {
                Verdict::Succeeded => PageCell::good(symbol(cell)),
                Verdict::Unsupported => PageCell::text(symbol(cell)),
                Verdict::Failed => PageCell::bad(symbol(cell)),
            });
            grid = grid.row(names.into_iter().chain(cells));
        }
        for (pair, cell) in self.failed() {
            let first = cell.failures.first().map_or("", String::as_str);
            let passed = format!("{} of {}", cell.passed, self.repeat);
            let note = notes.about(pair, cell).unwrap_or_default();
            let texts = [&pair.server, &pair.client, cell.case, &passed, first, note];
            failures = failures.row(texts.map(PageCell::text));
        }
        let mut earlier = Table::new(
            "Failures of other runs",
            ["server", "client", "case", "explanation"],
        );
        for (pair, cell, note) in self.passed_with_notes(notes) {
            let texts = [&pair.server, &pair.client, cell.case, note];
            earlier = earlier.row(texts.map(PageCell::text));
        }
        let mut section = Section::new("Grid").table(grid);
        if self.failed().next().is_some() {
            section = section.table(failures);
        }
        if self.passed_with_notes(notes).next().is_some() {
            section = section.table(earlier);
        }
        let mut webtransport = Table::new("Cases", ["letter", "case", "result"]);
        for (letter, case) in WEBTRANSPORT {
            webtransport = webtransport.row([letter, case, ELSEWHERE].map(PageCell::text));
        }
        let mut page = Page::new("Interoperability").line(self.about());
        if !notes.0.is_empty() {
            page = page.line(SUPPOSED);
        }
        self.protocols()
            .fold(page, Page::line)
            .section(section)
            .section(Section::new("WebTransport").table(webtransport))
            .to_html()
    }

    fn has(&self, letter: &str) -> bool {
        let mut cells = self.pairs.iter().flat_map(|pair| &pair.cells);
        cells.any(|cell| cell.letter == letter)
    }
}

/// Separates evidence from guesses in the notes.
const SUPPOSED: &str = "Explanations are based on traces, captures or the source of the peer. Those that begin \
                        with \"Supposed\" are unproven guesses.";

/// The runner's cases of WebTransport: letters and names.
const WEBTRANSPORT: [(&str, &str); 7] = [
    ("H", "handshake"),
    ("UR", "unidirectional receive"),
    ("US", "unidirectional send"),
    ("BR", "bidirectional receive"),
    ("BS", "bidirectional send"),
    ("DR", "datagram receive"),
    ("DS", "datagram send"),
];

/// The result of a case that courser does not run.
const ELSEWHERE: &str = "run by interop/webtransport/runner";

fn symbol(cell: &Cell) -> &'static str {
    match cell.verdict {
        Verdict::Succeeded => "✓",
        Verdict::Unsupported => "–",
        Verdict::Failed => "✕",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Implementation;

    fn matrix() -> Matrix {
        let cell = |letter, verdict, failures: &[&str]| {
            let case = Case::find(letter).expect("a case");
            Cell {
                letter: case.letter,
                case: case.name,
                verdict,
                passed: 2,
                kbit_per_second: case.is_measurement().then_some(9123.4),
                failures: failures.iter().map(ToString::to_string).collect(),
            }
        };
        Matrix {
            seed: 7,
            seconds: 12.3,
            repeat: 3,
            implementations: [("courser", None), ("other", Some("h3"))]
                .map(|(name, protocol)| Implementation {
                    name: name.to_owned(),
                    version: "0.1.0".to_owned(),
                    protocol: protocol.map(str::to_owned),
                })
                .into(),
            pairs: vec![Pair {
                server: "courser".to_owned(),
                client: "other".to_owned(),
                cells: vec![
                    cell("H", Verdict::Succeeded, &[]),
                    cell("S", Verdict::Failed, &["no <Retry>"]),
                    cell("V2", Verdict::Unsupported, &[]),
                    cell("G", Verdict::Succeeded, &[]),
                ],
            }],
        }
    }

    #[test]
    fn markdown_has_grid_rates_failures_and_notes() {
        let notes = "# why\n\ncourser\tother\tS\tThe other end ignores it.\n";
        let notes = Notes::parse(notes).expect("notes");
        let text = matrix().to_markdown(&notes);
        for line in [
            "`courser interop matrix` wrote this report after 12 s of runs with the seed 7.",
            "| courser | 0.1.0 |",
            "| server | client | H | S | V2 | G |",
            "| courser | other | ✓ | ✕ | – | ✓ |",
            "| courser | other | goodput | 9123 |",
            "- courser server, other client, retry: 2 of 3 runs passed.",
            "  First failure: no <Retry>.",
            "  The other end ignores it.",
            "| S | retry | `10mbit,15ms,queue=25p,mtu=1500` |",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line:?} in:\n{text}"
            );
        }
    }

    #[test]
    fn failures_of_other_runs_are_reported_beside_a_passed_cell() {
        let notes = "courser\tother\tH\tSupposed: a lost packet.\ncourser\tother\tV2\tNot run.\n";
        let notes = Notes::parse(notes).expect("notes");
        let text = matrix().to_markdown(&notes);
        let section = "\n## Failures of other runs\n\nThese cells passed here.\n\n\
                       - courser server, other client, handshake: Supposed: a lost packet.\n\n";
        assert!(text.contains(section), "{text}");
        assert!(text.contains(SUPPOSED), "{text}");
        assert!(!text.contains("Not run."), "{text}");
        let html = matrix().to_html(&notes);
        assert!(html.contains("Supposed: a lost packet."), "{html}");
        let text = matrix().to_markdown(&Notes::default());
        assert!(
            !text.contains("other runs") && !text.contains(SUPPOSED),
            "{text}"
        );
    }

    /// The report in the repository was written in two parts, so its explanations could differ.
    #[test]
    fn published_report_has_the_explanations_of_the_notes() {
        let report = include_str!("../../../docs/INTEROP.md");
        let notes = include_str!("../../../interop/peers/notes.tsv");
        for Note {
            server,
            client,
            letter,
            text,
        } in Notes::parse(notes).expect("notes").0
        {
            let case = Case::find(&letter).expect("a case").name;
            let cell = format!("- {server} server, {client} client, {case}: ");
            let mut lines = report.lines().skip_while(|line| !line.starts_with(&cell));
            let item = lines.next().unwrap_or_else(|| panic!("no item {cell:?}"));
            let is_there = item.strip_prefix(&cell) == Some(text.as_str())
                || lines.take(2).any(|line| line.trim_start() == text);
            assert!(is_there, "the report needs for {cell:?}: {text}");
        }
        assert!(report.contains(SUPPOSED), "the report needs: {SUPPOSED}");
    }

    #[test]
    fn every_format_reports_webtransport_as_not_implemented() {
        let (matrix, notes) = (matrix(), Notes::default());
        let report = |format| matrix.report(format, &notes).expect("a report");
        let text = report(ReportFormat::Text);
        let last = "WebTransport (H, UR, US, BR, BS, DR, DS): run by interop/webtransport/runner";
        assert_eq!(text.lines().last(), Some(last));
        let rows = report(ReportFormat::Markdown);
        assert!(
            rows.contains("| DS | datagram send | run by interop/webtransport/runner |\n"),
            "{rows}"
        );
        let html = report(ReportFormat::Html);
        assert_eq!(
            html.matches("run by interop/webtransport/runner").count(),
            7,
            "{html}"
        );
        let json: serde_json::Value =
            serde_json::from_str(&report(ReportFormat::Json)).expect("JSON");
        assert_eq!(json["webtransport"][1]["letter"], "UR");
        assert_eq!(
            json["webtransport"][6]["verdict"],
            "run by interop/webtransport/runner"
        );
        assert_eq!(json["pairs"][0]["server"], "courser");
    }

    #[test]
    fn implementation_with_one_protocol_is_named() {
        let note = "other speaks h3 only";
        let matrix = matrix();
        for format in [ReportFormat::Markdown, ReportFormat::Html] {
            let text = matrix.report(format, &Notes::default());
            let text = text.expect("a report");
            assert_eq!(text.matches(note).count(), 1, "{text}");
            assert!(!text.contains("courser speaks"), "{text}");
        }
    }

    #[test]
    fn html_escapes_reasons() {
        let html = matrix().to_html(&Notes::default());
        assert!(html.contains("no &lt;Retry&gt;"), "{html}");
    }

    #[test]
    fn grid_for_terminals_has_a_column_for_each_case() {
        let text = matrix().to_text();
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines[0], ["H", "S", "V2", "G"]);
        assert_eq!(lines[1][4..], ["✓", "✕", "–", "✓"]);
    }

    #[test]
    fn note_without_its_fields_is_refused() {
        let error = Notes::parse("courser\tother\tS").expect_err("three fields");
        assert!(error.contains("four fields"), "{error}");
    }
}
