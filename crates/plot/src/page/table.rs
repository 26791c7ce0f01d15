//! Tables of a page.

/// A table with a caption and a row of headings.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    pub(super) caption: String,
    pub(super) headings: Vec<String>,
    pub(super) rows: Vec<Vec<Cell>>,
}

/// One cell. What is said by colour is said in words or signs as well.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Cell {
    pub(super) text: String,
    pub(super) detail: String,
    pub(super) tone: Tone,
    pub(super) is_number: bool,
    /// Where in the page, or to which file beside it, the cell leads.
    pub(super) link: Option<String>,
}

/// How a cell is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tone {
    /// As all others.
    #[default]
    Plain,
    /// Passed; a `✓` stands before the text.
    Good,
    /// Failed; a `✗` stands before the text.
    Bad,
    /// Of no weight.
    Muted,
}

impl Table {
    /// A table without rows.
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

    /// Adds a row.
    #[must_use]
    pub fn row(mut self, cells: impl IntoIterator<Item = Cell>) -> Self {
        self.rows.push(cells.into_iter().collect());
        self
    }
}

impl Cell {
    /// Text, at the left.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A number, at the right.
    pub fn number(text: impl Into<String>) -> Self {
        Self {
            is_number: true,
            ..Self::text(text)
        }
    }

    /// Something that passed.
    pub fn good(text: impl Into<String>) -> Self {
        Self::text(text).tone(Tone::Good)
    }

    /// Something that failed.
    pub fn bad(text: impl Into<String>) -> Self {
        Self::text(text).tone(Tone::Bad)
    }

    /// Sets how the cell is meant.
    #[must_use]
    pub fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    /// Adds a second, smaller line.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Lets the cell lead to a section of the page; sections count from 1.
    #[must_use]
    pub fn section(mut self, number: usize) -> Self {
        self.link = Some(format!("#s{number}"));
        self
    }

    /// Lets the cell lead to a file beside the page. A name with anything but ASCII letters,
    /// digits, `-`, `_` and `.` leads nowhere, so that no stranger's name becomes an address.
    #[must_use]
    pub fn file(mut self, name: &str) -> Self {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        self.link = (!name.is_empty() && name.chars().all(is_plain)).then(|| name.to_owned());
        self
    }
}
