//! One HTML file with text, tables and charts, which needs neither network nor script.
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

/// A page: a title, lines below it, sections.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Page {
    title: String,
    lines: Vec<String>,
    sections: Vec<Section>,
}

/// A part of a page under a heading: text, tables, charts, in the order they were added.
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
    /// Boxed for its size.
    Chart(Box<Chart>),
}

impl Page {
    /// A page with a title and nothing else.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            ..Self::default()
        }
    }

    /// Adds a line under the title.
    #[must_use]
    pub fn line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// Adds a section. Its place in the page is `#s1`, `#s2` and so on, in the order added; see
    /// [`Cell::section`].
    #[must_use]
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }

    /// The page as one HTML file.
    pub fn to_html(&self) -> String {
        html::page(self)
    }
}

impl Section {
    /// An empty section.
    pub fn new(heading: impl Into<String>) -> Self {
        Self {
            heading: heading.into(),
            ..Self::default()
        }
    }

    /// Lets readers open the section first.
    #[must_use]
    pub fn folded(mut self) -> Self {
        self.is_folded = true;
        self
    }

    /// Adds a paragraph.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.parts.push(Part::Text(text.into()));
        self
    }

    /// Adds text as it is typed, such as the command that repeats a run.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.parts.push(Part::Code(code.into()));
        self
    }

    /// Adds a table.
    #[must_use]
    pub fn table(mut self, table: Table) -> Self {
        self.parts.push(Part::Table(table));
        self
    }

    /// Adds a chart. Charts that follow each other stand side by side where the page is wide.
    #[must_use]
    pub fn chart(mut self, chart: Chart) -> Self {
        self.parts.push(Part::Chart(Box::new(chart)));
        self
    }
}

#[cfg(test)]
mod tests;
