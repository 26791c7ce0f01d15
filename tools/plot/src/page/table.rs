//! Tables of pages.

/// A table with a caption and a row of headings.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    pub(super) caption: String,
    pub(super) headings: Vec<String>,
    pub(super) rows: Vec<Vec<Cell>>,
}

/// One cell of a table. Its text or a sign has the same meaning as its colour.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Cell {
    pub(super) text: String,
    pub(super) detail: String,
    pub(super) tone: Tone,
    pub(super) is_number: bool,
    /// The section of the page, or the file in the same directory, that the cell links to.
    pub(super) link: Option<String>,
}

/// The meaning of a cell, which decides its colour and sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tone {
    /// A cell without a special meaning.
    #[default]
    Plain,
    /// A check that passed, with a `✓` before the text.
    Good,
    /// A check that failed, with a `✗` before the text.
    Bad,
    /// A cell of little importance.
    Muted,
}

impl Table {
    /// Creates a table without rows. The caption is above the headings.
    pub fn new<Heading: Into<String>>(
        caption: impl Into<String>,
        headings: impl IntoIterator<Item = Heading>,
    ) -> Self {
        Self {
            caption: caption.into(),
            headings: headings.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row. Cells belong to the headings in their order.
    #[must_use]
    pub fn row(mut self, cells: impl IntoIterator<Item = Cell>) -> Self {
        self.rows.push(cells.into_iter().collect());
        self
    }
}

impl Cell {
    /// Creates a cell of text, aligned to the left.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Creates a cell with a number, aligned to the right.
    pub fn number(text: impl Into<String>) -> Self {
        Self {
            is_number: true,
            ..Self::text(text)
        }
    }

    /// Creates a cell for a check that passed, with a `✓` before the text.
    pub fn good(text: impl Into<String>) -> Self {
        Self::text(text).tone(Tone::Good)
    }

    /// Creates a cell for a check that failed, with a `✗` before the text.
    pub fn bad(text: impl Into<String>) -> Self {
        Self::text(text).tone(Tone::Bad)
    }

    /// Sets the meaning of the cell.
    #[must_use]
    pub fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    /// Adds a second, smaller line of text.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Links the cell to a section of the page. Sections count from 1.
    #[must_use]
    pub fn section(mut self, number: usize) -> Self {
        self.link = Some(format!("#s{number}"));
        self
    }

    /// Links the cell to a file in the directory of the page.
    ///
    /// A name with characters other than ASCII letters, digits, `-`, `_` and `.` is not linked, because untrusted
    /// names must not become addresses.
    #[must_use]
    pub fn file(mut self, name: &str) -> Self {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        self.link = (!name.is_empty() && name.chars().all(is_plain)).then(|| name.to_owned());
        self
    }
}
