//! Heads that came before, to the byte.

use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;
use http::{HeaderMap, Request, Response};

use super::Connection;

/// Heads of the last few sections, for those that come again: calls of the same method, polls of the
/// same page. To clone one costs a third of decoding it.
///
/// A head is kept from the second time on that its section comes, so that those that come once cost
/// next to nothing.
#[derive(Debug)]
pub(super) struct Repeats<T> {
    places: Vec<Place<T>>,
    /// Hashes of the sections of `places`, so that most searches look at nothing else.
    hashes: Vec<u64>,
    /// The one that goes next.
    oldest: usize,
}

#[derive(Debug)]
struct Place<T> {
    section: Vec<u8>,
    /// Of the decoder when it was decoded.
    state: u64,
    kept: Option<Kept<T>>,
}

/// What a section was decoded to.
#[derive(Debug)]
struct Kept<T> {
    head: Head<T>,
    /// Of its lines, as they count against the limits.
    size: usize,
    required: u64,
}

/// A message without its content, and the length that this has.
pub(super) type Head<T> = (T, Option<u64>);

/// What is cloned.
pub(super) trait Message: Clone {
    fn fields(&self) -> &HeaderMap;

    /// Those of a connection.
    fn repeats(connection: &mut Connection) -> &mut Repeats<Self>;
}

impl Message for Request<()> {
    fn fields(&self) -> &HeaderMap {
        self.headers()
    }

    fn repeats(connection: &mut Connection) -> &mut Repeats<Self> {
        &mut connection.requests
    }
}

impl Message for Response<()> {
    fn fields(&self) -> &HeaderMap {
        self.headers()
    }

    fn repeats(connection: &mut Connection) -> &mut Repeats<Self> {
        &mut connection.responses
    }
}

/// A section that was decoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) section: &'a [u8],
    /// Of the decoder.
    pub(super) state: u64,
    pub(super) required: u64,
    /// Of its lines.
    pub(super) size: u64,
}

impl<T: Message> Repeats<T> {
    /// Where this section stands, if it came lately and means the same.
    pub(super) fn place(&self, section: &[u8], state: u64) -> Option<usize> {
        let wanted = hash(section);
        let mut hashes = self.hashes.iter().zip(&self.places);
        hashes.position(|(hash, place)| {
            *hash == wanted && place.section == section && place.state == state
        })
    }

    /// The head of the section that stands at this place, and the insertions it requires, if it is kept.
    pub(super) fn get(&self, place: Option<usize>) -> Option<(Head<T>, u64)> {
        let kept = self.places[place?].kept.as_ref()?;
        Some((kept.head.clone(), kept.required))
    }

    /// Remembers that a section came, and what it is, if it has a place already.
    pub(super) fn on_decoded(&mut self, place: Option<usize>, seen: &Seen<'_>, head: &Head<T>) {
        let is_large = seen.section.len() > MOST_BYTES || seen.size > MOST_SIZE;
        if is_large || head.0.fields().len() > MOST_FIELDS {
            return;
        }
        if let Some(place) = place {
            if self.memory() + seen.size as usize > MOST_TOTAL {
                return;
            }
            self.places[place].kept = Some(Kept {
                head: head.clone(),
                size: seen.size as usize, // Small, it was just seen.
                required: seen.required,
            });
            return;
        }
        for stale in self
            .places
            .iter_mut()
            .filter(|place| place.state != seen.state)
        {
            // It may hold entries of the table that have made room for others.
            stale.kept = None;
        }
        if self.places.len() < PLACES {
            self.places.push(Place::default());
            self.hashes.push(0);
        }
        self.hashes[self.oldest] = hash(seen.section);
        let place = &mut self.places[self.oldest];
        self.oldest = (self.oldest + 1) % PLACES;
        place.section.clear();
        place.section.extend_from_slice(seen.section);
        place.state = seen.state;
        place.kept = None;
    }

    /// Bytes of the lines that are kept.
    pub(super) fn memory(&self) -> usize {
        let kept = self.places.iter().filter_map(|place| place.kept.as_ref());
        kept.map(|kept| kept.size).sum()
    }

    /// Sections that came lately, and how many of their heads are kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> (usize, usize) {
        let kept = self.places.iter().filter(|place| place.kept.is_some());
        (self.places.len(), kept.count())
    }
}

impl<T> Default for Repeats<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            hashes: Vec::new(),
            oldest: 0,
        }
    }
}

impl<T> Default for Place<T> {
    fn default() -> Self {
        Self {
            section: Vec::new(),
            state: 0,
            kept: None,
        }
    }
}

/// Nothing but time depends on it: sections are compared as well.
fn hash(section: &[u8]) -> u64 {
    FixedState::with_seed(0).hash_one(section)
}

/// The files of a page, or the calls of a client.
pub(super) const PLACES: usize = 32;
/// Bytes of a section: all of a large table would be 128.
const MOST_BYTES: usize = 64;
/// Fields of a head.
const MOST_FIELDS: usize = 16;
/// Bytes of its lines, and 32 for each: those of a small section may be long.
const MOST_SIZE: u64 = 1024;
/// The same of all heads that are kept.
pub(super) const MOST_TOTAL: usize = 16 * 1024;
