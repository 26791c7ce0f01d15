//! A cache of decoded header sections, keyed by their encoded bytes.

use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;
use http::{HeaderMap, Request, Response};

/// Keeps the messages of recent header sections for identical ones, such as calls of the same method or polls of
/// the same page. Cloning a message costs a third of decoding it.
///
/// A message is kept when its section arrives for the second time, so that sections that arrive once cost
/// little.
#[derive(Debug)]
pub(super) struct SectionCache<T> {
    entries: Vec<CacheEntry<T>>,
    /// Hashes of the sections in `entries`; most searches read only these.
    hashes: Vec<u64>,
    /// The index of the entry that is overwritten next.
    oldest: usize,
}

#[derive(Debug)]
struct CacheEntry<T> {
    section: Vec<u8>,
    /// The state of the decoder when the section was decoded.
    state: u64,
    kept: Option<CachedMessage<T>>,
}

/// The message to which a section was decoded.
#[derive(Debug)]
struct CachedMessage<T> {
    head: Head<T>,
    /// The size of the field lines, as counted against the limits.
    size: usize,
    required: u64,
}

/// A message without its content, and the length of the content.
pub(super) type Head<T> = (T, Option<u64>);

/// A message that the cache can clone.
pub(super) trait Message: Clone {
    fn fields(&self) -> &HeaderMap;

    /// Returns the cache for messages of this type.
    fn cache(caches: &mut Caches) -> &mut SectionCache<Self>;
}

impl Message for Request<()> {
    fn fields(&self) -> &HeaderMap {
        self.headers()
    }

    fn cache(caches: &mut Caches) -> &mut SectionCache<Self> {
        &mut caches.requests
    }
}

impl Message for Response<()> {
    fn fields(&self) -> &HeaderMap {
        self.headers()
    }

    fn cache(caches: &mut Caches) -> &mut SectionCache<Self> {
        &mut caches.responses
    }
}

/// The caches of one connection.
#[derive(Debug, Default)]
pub(super) struct Caches {
    pub(super) requests: SectionCache<Request<()>>,
    pub(super) responses: SectionCache<Response<()>>,
}

impl Caches {
    /// Returns the size of all field lines that are kept.
    pub(super) fn memory(&self) -> usize {
        self.requests.memory() + self.responses.memory()
    }
}

/// A section that was decoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecodedSection<'a> {
    pub(super) section: &'a [u8],
    /// The state of the decoder.
    pub(super) state: u64,
    pub(super) required: u64,
    /// The size of the field lines.
    pub(super) size: u64,
}

impl<T: Message> SectionCache<T> {
    /// Returns the index of this section if it arrived recently and still has the same meaning.
    pub(super) fn find(&self, section: &[u8], state: u64) -> Option<usize> {
        let section_hash = hash(section);
        let mut hashes = self.hashes.iter().zip(&self.entries);
        hashes.position(|(hash, entry)| {
            *hash == section_hash && entry.section == section && entry.state == state
        })
    }

    /// Returns the message at this index and the Required Insert Count of its section, if it is kept.
    pub(super) fn get(&self, index: Option<usize>) -> Option<(Head<T>, u64)> {
        let kept = self.entries[index?].kept.as_ref()?;
        Some((kept.head.clone(), kept.required))
    }

    /// Records that a section has arrived. Keeps its message if the section already has an entry.
    pub(super) fn on_decoded(
        &mut self,
        index: Option<usize>,
        seen: &DecodedSection<'_>,
        head: &Head<T>,
    ) {
        let is_large = seen.section.len() > MAX_BYTES || seen.size > MAX_SIZE;
        if is_large || head.0.fields().len() > MAX_FIELDS {
            return;
        }
        if let Some(index) = index {
            if self.memory() + seen.size as usize > MAX_TOTAL {
                return;
            }
            self.entries[index].kept = Some(CachedMessage {
                head: head.clone(),
                size: seen.size as usize, // Small, it was just seen.
                required: seen.required,
            });
            return;
        }
        for stale in self
            .entries
            .iter_mut()
            .filter(|entry| entry.state != seen.state)
        {
            // It may refer to entries that were evicted from the dynamic table.
            stale.kept = None;
        }
        if self.entries.len() < ENTRIES {
            // A vector would start with four entries, but many connections receive one section.
            if self.entries.len() == self.entries.capacity() {
                self.entries.reserve_exact(self.entries.len().max(1));
            }
            self.entries.push(CacheEntry::default());
            self.hashes.push(0);
        }
        self.hashes[self.oldest] = hash(seen.section);
        let entry = &mut self.entries[self.oldest];
        self.oldest = (self.oldest + 1) % ENTRIES;
        entry.section.clear();
        entry.section.extend_from_slice(seen.section);
        entry.state = seen.state;
        entry.kept = None;
    }

    /// Returns the size of all field lines that are kept.
    pub(super) fn memory(&self) -> usize {
        let kept = self.entries.iter().filter_map(|entry| entry.kept.as_ref());
        kept.map(|kept| kept.size).sum()
    }

    /// Returns the number of entries and the number of kept messages.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        let kept = self.entries.iter().filter(|entry| entry.kept.is_some());
        (self.entries.len(), kept.count())
    }
}

impl<T> Default for SectionCache<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            hashes: Vec::new(),
            oldest: 0,
        }
    }
}

impl<T> Default for CacheEntry<T> {
    fn default() -> Self {
        Self {
            section: Vec::new(),
            state: 0,
            kept: None,
        }
    }
}

/// Hashes a section for the search. The sections are compared too, because hashes may collide.
fn hash(section: &[u8]) -> u64 {
    FixedState::with_seed(0).hash_one(section)
}

/// Number of entries: the files of a page, or the calls of a client.
pub(super) const ENTRIES: usize = 32;
/// Longest section with an entry, in bytes. One that refers to all entries of a large dynamic table would take
/// 128.
const MAX_BYTES: usize = 64;
/// Largest number of fields of a kept message.
const MAX_FIELDS: usize = 16;
/// Largest size of a kept message, with 32 bytes per field line, because a short section may refer to long field
/// lines.
const MAX_SIZE: u64 = 1024;
/// Largest size of all kept messages.
pub(super) const MAX_TOTAL: usize = 16 * 1024;
