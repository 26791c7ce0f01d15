//! Received messages, with a text for comparisons.

use std::fmt;

use crate::message::Field;

/// A received message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// The method and the target, or the status.
    pub start: String,
    /// The interim responses before it.
    pub interim: Vec<(String, Vec<Field>)>,
    /// The fields. `:authority` counts as Host, and Host beside it is called `host (field)`.
    pub fields: Vec<Field>,
    /// The framing of the content.
    pub framing: Framing,
    /// The content.
    pub content: Vec<u8>,
    /// The fields behind the content.
    pub trailers: Vec<Field>,
    /// The names of fields that HPACK or QPACK carried as literals that must never be indexed. They are not part of the text.
    pub never_indexed: Vec<Vec<u8>>,
    /// The end of the message.
    pub end: End,
}

/// The framing of content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// No framing field.
    None,
    /// Content-Length.
    Length(u64),
    /// Chunks.
    Chunked,
    /// The end of the connection.
    Close,
}

/// The end of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The end that its framing announces.
    Complete,
    /// The connection ended before the message.
    Cut,
    /// The stream was reset with this code, or the TCP connection was reset.
    Reset(u64),
    /// The peer closed the connection with this code (GOAWAY, CONNECTION_CLOSE) before an answer.
    Closed(u64),
    /// The bytes are not valid HTTP.
    Malformed,
    /// No more bytes arrived within [`crate::PATIENCE`].
    Silent,
}

impl Seen {
    /// Returns a message of which nothing arrived before this end.
    pub const fn nothing(end: End) -> Self {
        Self {
            start: String::new(),
            interim: Vec::new(),
            fields: Vec::new(),
            framing: Framing::None,
            content: Vec::new(),
            trailers: Vec::new(),
            never_indexed: Vec::new(),
            end,
        }
    }

    /// Returns the values of a field in their order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let same = move |field: &&'a Field| field.0.eq_ignore_ascii_case(name.as_bytes());
        self.fields.iter().filter(same).map(|(_, value)| &**value)
    }

    /// Returns the values of a field as text, joined by a bar.
    pub fn get(&self, name: &str) -> String {
        let values: Vec<_> = self.all(name).map(String::from_utf8_lossy).collect();
        values.join("|")
    }

    /// Returns the status, or 0 if there is none.
    pub fn status(&self) -> u16 {
        self.start.parse().unwrap_or(0)
    }

    /// Returns true if it ended as its framing announces.
    pub fn is_complete(&self) -> bool {
        self.end == End::Complete
    }

    /// Removes fields for which `is_noise` returns true, also from interim responses and trailers.
    pub fn without(mut self, is_noise: impl Fn(&str) -> bool) -> Self {
        let keep = |(name, _): &Field| !is_noise(&String::from_utf8_lossy(name));
        self.fields.retain(keep);
        self.trailers.retain(keep);
        for (_, fields) in &mut self.interim {
            fields.retain(keep);
        }
        self
    }
}

/// Writes the start line, the fields sorted by name, the content, the trailers and the end, each on a line of its own.
impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (status, fields) in &self.interim {
            writeln!(f, "interim {status}")?;
            write_fields(f, fields)?;
        }
        writeln!(f, "{}", self.start)?;
        write_fields(f, &self.fields)?;
        write!(f, "body {}", self.content.len())?;
        match self.content.len() {
            0 => writeln!(f)?,
            1..=200 => writeln!(f, " {}", printable(&self.content))?,
            _ => writeln!(f, " {} ...", printable(&self.content[..20]))?,
        }
        if !self.trailers.is_empty() {
            writeln!(f, "trailers")?;
            write_fields(f, &self.trailers)?;
        }
        match self.end {
            End::Complete => write!(f, "end complete"),
            End::Cut => write!(f, "end cut"),
            End::Reset(code) => write!(f, "end reset {code:#x}"),
            End::Closed(code) => write!(f, "end closed {code:#x}"),
            End::Malformed => write!(f, "end malformed"),
            End::Silent => write!(f, "end silent"),
        }
    }
}

fn write_fields(f: &mut fmt::Formatter<'_>, fields: &[Field]) -> fmt::Result {
    let mut fields: Vec<_> = fields
        .iter()
        .map(|(name, value)| (printable(&name.to_ascii_lowercase()), value))
        .collect();
    fields.sort_by(|one, other| one.0.cmp(&other.0));
    for (name, value) in fields {
        writeln!(f, "  {name}: {}", printable(value))?;
    }
    Ok(())
}

/// Returns bytes as text, with escapes for all but printable ASCII.
pub(crate) fn printable(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
