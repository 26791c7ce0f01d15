//! Sections that were not acknowledged, and what they keep in the table. RFC 9204 §2.1.1, §2.1.2.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};

use foldhash::fast::FixedState;

#[derive(Debug)]
pub(super) struct Outstanding {
    streams: HashMap<u64, Sections, FixedState>,
    sections: usize,
    /// The smallest index of each section, and how many sections share it.
    smallest: BTreeMap<u64, u32>,
    /// Streams with a section that may be blocked, and the count that would release all of them.
    blocked: Vec<(u64, u64)>,
    /// Insertions that are known to have arrived.
    known_received: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    required: u64,
    smallest: u64,
}

/// Of one stream. Most have one, which takes no list.
#[derive(Debug)]
struct Sections {
    oldest: Sent,
    later: VecDeque<Sent>,
}

impl Outstanding {
    /// Its hashes depend on `seed`: the peer chooses the numbers of streams.
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

    /// True when so many sections wait for an acknowledgement that new ones do without the table:
    /// a peer that never acknowledges does not get memory for it.
    pub(super) const fn is_full(&self) -> bool {
        self.sections >= MOST
    }

    /// Entries from this index on cannot go: they are referred to or may not have arrived.
    pub(super) fn first_pinned(&self) -> u64 {
        match self.smallest.first_key_value() {
            Some((&smallest, _)) => smallest.min(self.known_received),
            None => self.known_received,
        }
    }

    /// Whether another section of `stream` may refer to entries that may not have arrived.
    pub(super) fn may_block(&self, stream: u64, most: usize) -> bool {
        most > 0
            && (self.blocked.len() < most
                || self.blocked.iter().any(|&(blocked, _)| blocked == stream))
    }

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

    /// The oldest section of a stream was decoded (§4.4.1). `None` if there is none.
    pub(super) fn acknowledge(&mut self, stream: u64) -> Option<()> {
        let Entry::Occupied(mut sections) = self.streams.entry(stream) else {
            return None;
        };
        let sent = match sections.get_mut().later.pop_front() {
            Some(next) => std::mem::replace(&mut sections.get_mut().oldest, next),
            None => sections.remove().oldest,
        };
        self.release(sent);
        self.receive(sent.required);
        Some(())
    }

    /// No section of a stream will be decoded any more (§4.4.2).
    pub(super) fn cancel(&mut self, stream: u64) {
        if let Some(sections) = self.streams.remove(&stream) {
            self.release(sections.oldest);
            for sent in sections.later {
                self.release(sent);
            }
        }
        self.blocked.retain(|&(blocked, _)| blocked != stream);
    }

    /// So many more insertions have arrived (§4.4.3). `None` if they are more than were sent.
    pub(super) fn increment(&mut self, count: u64, insert_count: u64) -> Option<()> {
        let received = self.known_received.checked_add(count)?;
        (received <= insert_count).then(|| self.receive(received))
    }

    fn release(&mut self, sent: Sent) {
        self.sections -= 1;
        if let Some(count) = self.smallest.get_mut(&sent.smallest) {
            *count -= 1;
            if *count == 0 {
                self.smallest.remove(&sent.smallest);
            }
        }
    }

    fn receive(&mut self, count: u64) {
        if count > self.known_received {
            self.known_received = count;
            self.blocked.retain(|&(_, required)| required > count);
        }
    }
}

/// More sections than are in flight on any sensible connection; 32 bytes and a map entry each.
const MOST: usize = 2048;
