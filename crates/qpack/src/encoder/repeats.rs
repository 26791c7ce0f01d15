//! Sections that were sent lately, for messages whose lines are the same again.

use super::Section;
use crate::field_line::FieldLine;

/// The last few sections that would be the same again, until something is inserted: of indices, and
/// of literals that will never be anything else.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    places: [Place; PLACES],
    /// The one that goes next.
    oldest: usize,
    /// The lines at hand, as places keep them. Empty when they are none that come again.
    wanted: Vec<u8>,
}

#[derive(Debug, Default)]
struct Place {
    lines: Vec<u8>,
    sent: Sent,
}

/// A section, and what it needs of the table.
#[derive(Clone, Debug, Default)]
pub(super) struct Sent {
    pub(super) bytes: Vec<u8>,
    /// Insertions before it, and since.
    pub(super) insert_count: u64,
    pub(super) required: u64,
    pub(super) smallest: u64,
}

impl Repeats {
    /// The section that was sent for these lines when as much had been inserted.
    pub(super) fn find<'a>(
        &mut self,
        mut lines: impl Iterator<Item = FieldLine<'a>>,
        insert_count: u64,
    ) -> Option<&Sent> {
        let wanted = &mut self.wanted;
        wanted.clear();
        // Not a loop: chains of iterators are slow in one.
        let is_kept = lines.all(|line| {
            let lengths = [line.name.len(), line.value.len()];
            let len = LENGTHS + lengths[0] + lengths[1];
            if line.is_sensitive || wanted.len() + len > MOST_LINES {
                return false;
            }
            wanted.reserve(len);
            for len in lengths {
                wanted.extend_from_slice(&(len as u16).to_le_bytes()); // At most 508.
            }
            wanted.extend_from_slice(line.name);
            wanted.extend_from_slice(line.value);
            true
        });
        if !is_kept {
            wanted.clear();
        }
        if wanted.is_empty() {
            return None;
        }
        let wanted = &self.wanted;
        let mut sent = self.places.iter().filter(|place| place.lines == *wanted);
        sent.find(|place| place.sent.insert_count == insert_count)
            .map(|place| &place.sent)
    }

    /// Keeps the section of the lines that were looked for last. `lines` are its bytes behind the
    /// prefix.
    pub(super) fn keep(&mut self, section: &Section, prefix: &[u8], lines: &[u8]) {
        if self.wanted.is_empty() || prefix.len() + lines.len() > MOST_BYTES {
            return;
        }
        let same = self
            .places
            .iter()
            .position(|place| place.lines == self.wanted);
        let index = same.unwrap_or(self.oldest);
        if same.is_none() {
            self.oldest = (self.oldest + 1) % PLACES;
        }
        let place = &mut self.places[index];
        std::mem::swap(&mut place.lines, &mut self.wanted);
        let sent = &mut place.sent;
        sent.bytes.clear();
        sent.bytes.extend_from_slice(prefix);
        sent.bytes.extend_from_slice(lines);
        sent.insert_count = section.base;
        sent.required = section.required;
        sent.smallest = section.smallest;
    }

    /// Bytes of each section that is kept.
    #[cfg(test)]
    pub(super) fn sections(&self) -> impl Iterator<Item = usize> {
        let lens = self.places.iter().map(|place| place.sent.bytes.len());
        lens.filter(|len| *len > 0)
    }
}

/// Calls of a client with a few of them, or answers of a server.
const PLACES: usize = 4;
/// Bytes of names, values and their lengths that are kept of a section.
const MOST_LINES: usize = 512;
/// Bytes of a section that is kept: three for each of many lines.
const MOST_BYTES: usize = 64;
/// Before each line.
const LENGTHS: usize = 4;
