//! Unacknowledged sections and the table entries they protect from eviction (RFC 9204 §2.1.1,
//! §2.1.2).

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};

use foldhash::fast::FixedState;

/// Sections with references to the dynamic table that the peer has not acknowledged.
#[derive(Debug)]
pub(super) struct Outstanding {
    streams: HashMap<u64, Sections, FixedState>,
    sections: usize,
    /// The smallest index that each section refers to, and the number of sections with it.
    smallest: BTreeMap<u64, u32>,
    /// Streams that may be blocked, each with the insert count that unblocks all its sections.
    blocked: Vec<(u64, u64)>,
    /// The Known Received Count (§2.1.4).
    known_received: u64,
}

/// A section that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// Its Required Insert Count.
    required: u64,
    /// The smallest index it refers to.
    smallest: u64,
}

/// The outstanding sections of one stream. Most streams have one, which needs no allocation.
#[derive(Debug)]
struct Sections {
    oldest: Sent,
    later: VecDeque<Sent>,
}

impl Outstanding {
    /// Creates an empty record. Its hashes depend on `seed`, because the peer chooses stream IDs.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            streams: HashMap::with_hasher(FixedState::with_seed(seed)),
            sections: 0,
            smallest: BTreeMap::new(),
            blocked: Vec::new(),
            known_received: 0,
        }
    }

    pub(super) const fn known_received(&self) -> u64 {
        self.known_received
    }

    /// Returns true at the limit of unacknowledged sections. New sections then avoid the dynamic
    /// table, which bounds the memory that a peer without acknowledgments can occupy.
    pub(super) const fn is_full(&self) -> bool {
        self.sections >= MAX_SECTIONS
    }

    /// Returns the first index that must not be evicted. From there on, entries are referred to or
    /// may not have arrived.
    pub(super) fn first_pinned(&self) -> u64 {
        match self.smallest.first_key_value() {
            Some((&smallest, _)) => smallest.min(self.known_received),
            None => self.known_received,
        }
    }

    /// Returns true if another section of `stream` may refer to entries that may not have arrived,
    /// with at most `most` blocked streams.
    pub(super) fn may_block(&self, stream: u64, most: usize) -> bool {
        most > 0
            && (self.blocked.len() < most
                || self.blocked.iter().any(|&(blocked, _)| blocked == stream))
    }

    /// Records a section that was sent.
    pub(super) fn add(&mut self, stream: u64, required: u64, smallest: u64) {
        let sent = Sent { required, smallest };
        match self.streams.entry(stream) {
            Entry::Occupied(mut sections) => sections.get_mut().later.push_back(sent),
            Entry::Vacant(place) => {
                place.insert(Sections {
                    oldest: sent,
                    later: VecDeque::new(),
                });
            }
        }
        self.sections += 1;
        *self.smallest.entry(smallest).or_default() += 1;
        if required > self.known_received {
            match self
                .blocked
                .iter_mut()
                .find(|(blocked, _)| *blocked == stream)
            {
                Some((_, count)) => *count = required.max(*count),
                None => self.blocked.push((stream, required)),
            }
        }
    }

    /// Processes an acknowledgment of the oldest section of a stream (§4.4.1). Returns `None` if
    /// the stream has no outstanding section.
    pub(super) fn acknowledge(&mut self, stream: u64) -> Option<()> {
        let Entry::Occupied(mut sections) = self.streams.entry(stream) else {
            return None;
        };
        let sent = match sections.get_mut().later.pop_front() {
            Some(next) => std::mem::replace(&mut sections.get_mut().oldest, next),
            None => sections.remove().oldest,
        };
        self.release(sent);
        self.raise_known_received(sent.required);
        Some(())
    }

    /// Drops all sections of a stream, because the peer will not decode them (§4.4.2).
    pub(super) fn cancel(&mut self, stream: u64) {
        if let Some(sections) = self.streams.remove(&stream) {
            self.release(sections.oldest);
            for sent in sections.later {
                self.release(sent);
            }
        }
        self.blocked.retain(|&(blocked, _)| blocked != stream);
    }

    /// Raises the Known Received Count by `count` (§4.4.3). Returns `None` if it would exceed
    /// `insert_count`.
    pub(super) fn increment(&mut self, count: u64, insert_count: u64) -> Option<()> {
        let received = self.known_received.checked_add(count)?;
        (received <= insert_count).then(|| self.raise_known_received(received))
    }

    /// Removes the references of a section.
    fn release(&mut self, sent: Sent) {
        self.sections -= 1;
        if let Some(count) = self.smallest.get_mut(&sent.smallest) {
            *count -= 1;
            if *count == 0 {
                self.smallest.remove(&sent.smallest);
            }
        }
    }

    /// Raises the Known Received Count to `count` and removes streams that are no longer blocked.
    fn raise_known_received(&mut self, count: u64) {
        if count > self.known_received {
            self.known_received = count;
            self.blocked.retain(|&(_, required)| required > count);
        }
    }
}

/// Largest number of outstanding sections, more than any realistic connection has. Each takes 32 bytes and a map
/// entry.
const MAX_SECTIONS: usize = 2048;
