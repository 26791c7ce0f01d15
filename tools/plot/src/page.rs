//! Pages: single HTML files with text, tables and charts, without network or script.
//!
//! ```
//! use courser_plot::page::{Cell, Page, Section, Table};
//!
//! let table = Table::new("Runs", ["scenario", "result"])
//!     .row([Cell::text("bulk"), Cell::good("passed")]);
//! let html = Page::new("Report").section(Section::new("Overview").table(table)).to_html();
//! assert!(html.starts_with("<!DOCTYPE html>"));
//! ```

mod html;
mod table;

use crate::Chart;

pub use table::{Cell, Table, Tone};

/// A page: a title, lines below it, and sections.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Page {
    title: String,
    lines: Vec<String>,
    sections: Vec<Section>,
}

/// A section of a page: a heading, then text, tables and charts in the order they were added.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Section {
    heading: String,
    is_folded: bool,
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Debug)]
enum Part {
    Text(String),
    Code(String),
    Table(Table),
    /// A chart, boxed because of its size.
    Chart(Box<Chart>),
}

impl Page {
    /// Creates a page without sections.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            ..Self::default()
        }
    }

    /// Adds a line of plain text under the title.
    #[must_use]
    pub fn line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// Adds a section. Sections have the addresses `#s1`, `#s2` and so on, in the order added. See
    /// [`Cell::section`].
    #[must_use]
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }
}

impl Section {
    /// Creates an empty section with a heading, which also appears in the table of contents.
    pub fn new(heading: impl Into<String>) -> Self {
        Self {
            heading: heading.into(),
            ..Self::default()
        }
    }

    /// Folds the section: readers have to open it.
    #[must_use]
    pub fn folded(mut self) -> Self {
        self.is_folded = true;
        self
    }

    /// Adds a paragraph of plain text, which is escaped.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.parts.push(Part::Text(text.into()));
        self
    }

    /// Adds preformatted text, such as the command that repeats a run.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.parts.push(Part::Code(code.into()));
        self
    }

    /// Adds a table. Wide tables scroll.
    #[must_use]
    pub fn table(mut self, table: Table) -> Self {
        self.parts.push(Part::Table(table));
        self
    }

    /// Adds a chart. Consecutive charts stand side by side on a wide page.
    #[must_use]
    pub fn chart(mut self, chart: Chart) -> Self {
        self.parts.push(Part::Chart(Box::new(chart)));
        self
    }
}

#[cfg(test)]
mod tests;
