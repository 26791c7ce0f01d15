//! Sections that were sent lately, for messages whose lines are the same again.

use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;

use super::Section;
use crate::field_line::FieldLine;

/// The last few sections that would be the same again, until something is inserted: of indices, and
/// of literals that will never be anything else.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    places: Vec<Place>,
    /// Hashes of the lines of `places`, so that most searches look at nothing else.
    hashes: Vec<u64>,
    /// The one that goes next.
    oldest: usize,
    /// The lines at hand, as places keep them. Empty when they are none that come again.
    wanted: Vec<u8>,
    /// The hash of `wanted`.
    hash: u64,
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
        // Nothing but time depends on it: lines are compared as well.
        self.hash = FixedState::with_seed(0).hash_one(&*wanted);
        let sent = &self.places[self.position()?].sent;
        (sent.insert_count == insert_count).then_some(sent)
    }

    /// The place of the lines at hand.
    fn position(&self) -> Option<usize> {
        let mut hashes = self.hashes.iter().zip(&self.places);
        hashes.position(|(hash, place)| *hash == self.hash && place.lines == self.wanted)
    }

    /// Keeps the section of the lines that were looked for last. `lines` are its bytes behind the
    /// prefix.
    pub(super) fn keep(&mut self, section: &Section, prefix: &[u8], lines: &[u8]) {
        if self.wanted.is_empty() || prefix.len() + lines.len() > MOST_BYTES {
            return;
        }
        let index = self.position().unwrap_or_else(|| self.next());
        self.hashes[index] = self.hash;
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

    /// The place that a section without one takes.
    fn next(&mut self) -> usize {
        if self.places.len() < PLACES {
            self.places.push(Place::default());
            self.hashes.push(0);
            return self.places.len() - 1;
        }
        let index = self.oldest;
        self.oldest = (index + 1) % PLACES;
        index
    }

    /// Bytes of each section that is kept.
    #[cfg(test)]
    pub(super) fn sections(&self) -> impl Iterator<Item = usize> {
        let lens = self.places.iter().map(|place| place.sent.bytes.len());
        lens.filter(|len| *len > 0)
    }
}

/// The files of a page, or the calls of a client: 18 KiB of lines and sections at most.
pub(super) const PLACES: usize = 32;
/// Bytes of names, values and their lengths that are kept of a section.
const MOST_LINES: usize = 512;
/// Bytes of a section that is kept: three for each of many lines.
const MOST_BYTES: usize = 64;
/// Before each line.
const LENGTHS: usize = 4;
