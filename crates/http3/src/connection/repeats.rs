//! A cache for header sections that are identical to earlier ones.

use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;
use http::{HeaderMap, Request, Response};

/// Keeps the messages of the latest header sections for sections that repeat: calls of the same
/// method, polls of the same page. Cloning a message costs a third of decoding it.
///
/// A message is kept when its section arrives for the second time, so sections that arrive once cost
/// next to nothing.
#[derive(Debug)]
pub(super) struct Repeats<T> {
    places: Vec<RepeatEntry<T>>,
    /// The hashes of the sections in `places`, the only memory that most searches touch.
    hashes: Vec<u64>,
    /// The place that is overwritten next.
    oldest: usize,
}

#[derive(Debug)]
struct RepeatEntry<T> {
    section: Vec<u8>,
    /// The state of the decoder when the section was decoded.
    state: u64,
    kept: Option<Kept<T>>,
}

/// The message that a section was decoded to.
#[derive(Debug)]
struct Kept<T> {
    head: Head<T>,
    /// The size of the field lines, as it counts against the limits.
    size: usize,
    required: u64,
}

/// A message without its content, and the length of the content.
pub(super) type Head<T> = (T, Option<u64>);

/// A message that the cache can clone.
pub(super) trait Message: Clone {
    fn fields(&self) -> &HeaderMap;

    /// Returns the cache for messages of this type.
    fn cache(caches: &mut Caches) -> &mut Repeats<Self>;
}

impl Message for Request<()> {
    fn fields(&self) -> &HeaderMap {
        self.headers()
    }

    fn cache(caches: &mut Caches) -> &mut Repeats<Self> {
        &mut caches.requests
    }
}

impl Message for Response<()> {
    fn fields(&self) -> &HeaderMap {
        self.headers()
    }

    fn cache(caches: &mut Caches) -> &mut Repeats<Self> {
        &mut caches.responses
    }
}

/// The caches of one connection.
#[derive(Debug, Default)]
pub(super) struct Caches {
    pub(super) requests: Repeats<Request<()>>,
    pub(super) responses: Repeats<Response<()>>,
}

impl Caches {
    /// Returns the size of all field lines that are kept.
    pub(super) fn memory(&self) -> usize {
        self.requests.memory() + self.responses.memory()
    }
}

/// A section that was decoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) section: &'a [u8],
    /// The state of the decoder.
    pub(super) state: u64,
    pub(super) required: u64,
    /// The size of the field lines.
    pub(super) size: u64,
}

impl<T: Message> Repeats<T> {
    /// Returns the place of this section if it arrived lately and still means the same.
    pub(super) fn place(&self, section: &[u8], state: u64) -> Option<usize> {
        let wanted = hash(section);
        let mut hashes = self.hashes.iter().zip(&self.places);
        hashes.position(|(hash, place)| {
            *hash == wanted && place.section == section && place.state == state
        })
    }

    /// Returns the message at this place and the Required Insert Count of its section, if it is kept.
    pub(super) fn get(&self, place: Option<usize>) -> Option<(Head<T>, u64)> {
        let kept = self.places[place?].kept.as_ref()?;
        Some((kept.head.clone(), kept.required))
    }

    /// Records that a section has arrived. Keeps its message if the section already has an entry.
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
            // It may hold entries that were evicted from the dynamic table.
            stale.kept = None;
        }
        if self.places.len() < PLACES {
            // A vector would begin with four places, but many connections see one section.
            if self.places.len() == self.places.capacity() {
                self.places.reserve_exact(self.places.len().max(1));
            }
            self.places.push(RepeatEntry::default());
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

    /// Returns the size of all field lines that are kept.
    pub(super) fn memory(&self) -> usize {
        let kept = self.places.iter().filter_map(|place| place.kept.as_ref());
        kept.map(|kept| kept.size).sum()
    }

    /// Returns the number of sections with a place and the number of kept messages.
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

impl<T> Default for RepeatEntry<T> {
    fn default() -> Self {
        Self {
            section: Vec::new(),
            state: 0,
            kept: None,
        }
    }
}

/// Hashes a section for the search. Equal hashes are not trusted: sections are compared, too.
fn hash(section: &[u8]) -> u64 {
    FixedState::with_seed(0).hash_one(section)
}

/// The number of places: the files of a page, or the calls of a client.
pub(super) const PLACES: usize = 32;
/// The longest section with a place, in bytes. All of a large dynamic table would take 128.
const MOST_BYTES: usize = 64;
/// The maximum number of fields of a kept message.
const MOST_FIELDS: usize = 16;
/// The maximum size of a kept message, with 32 bytes per line: a short section may refer to long
/// lines.
const MOST_SIZE: u64 = 1024;
/// The maximum size of all kept messages together.
pub(super) const MOST_TOTAL: usize = 16 * 1024;
