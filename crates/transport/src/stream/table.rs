//! The table from stream IDs to the states of streams.

use std::collections::HashMap;

use courser_base::Side;
use courser_wire::{Direction, StreamId};

use super::buffers::Buffers;
use super::control::PendingFrames;
use super::half::Half;
use super::receive::ReceivePart;
use super::send::SendPart;
use crate::hasher::StreamIdState;

/// One stream. A part that its direction lacks takes no memory.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: StreamId,
    /// True if we send on it.
    pub(super) sends: bool,
    /// True if the peer sends on it.
    pub(super) receives: bool,
    pub(super) send: Half<SendPart>,
    pub(super) receive: Half<ReceivePart>,
    pub(super) priority: i32,
    pub(super) pending: PendingFrames,
    /// True if it is in the schedule of frames that need no credit.
    pub(super) in_free: bool,
    /// True if it is in the schedule of new data.
    pub(super) in_new: bool,
}

impl Entry {
    /// Returns true if both parts have ended.
    pub(super) fn is_over(&self) -> bool {
        (!self.sends || self.send.is_over()) && (!self.receives || self.receive.is_over())
    }

    /// Returns true if the peer cancelled it, in either direction.
    pub(super) fn was_cancelled(&self) -> bool {
        (self.receives && self.receive.was_reset()) || (self.sends && self.send.stopped().is_some())
    }
}

/// All streams of a connection that are not over.
///
/// Entries of ended streams are reused, with the memory of their lists. Recent lookups are cached,
/// about as many as there are streams, so that IDs are not hashed per frame.
#[derive(Debug)]
pub(super) struct Table {
    side: Side,
    entries: Vec<Entry>,
    free: Vec<u32>,
    by_id: HashMap<u64, u32, StreamIdState>,
    /// Cached lookups; the length is a power of two.
    recent: Vec<(u64, u32)>,
}

impl Table {
    pub(super) fn new(side: Side, hash_key: [u8; 16]) -> Self {
        Self {
            side,
            entries: Vec::new(),
            free: Vec::new(),
            by_id: HashMap::with_hasher(StreamIdState::new(hash_key)),
            recent: vec![NOBODY],
        }
    }

    /// Returns the key of a stream.
    #[inline]
    pub(super) fn find(&mut self, id: StreamId) -> Option<u32> {
        let (recent, key) = self.recent[self.place(id)];
        if recent == id.value() {
            return Some(key);
        }
        self.find_hashed(id)
    }

    #[inline(never)]
    fn find_hashed(&mut self, id: StreamId) -> Option<u32> {
        let key = *self.by_id.get(&id.value())?;
        self.remember(id, key);
        Some(key)
    }

    /// Returns the state of a stream.
    pub(super) fn get(&self, id: StreamId) -> Option<&Entry> {
        self.by_id
            .get(&id.value())
            .map(|&key| &self.entries[key as usize])
    }

    /// Returns the state of the stream with a key that [`Table::find`] or [`Table::insert`] returned.
    #[inline]
    pub(super) fn at(&mut self, key: u32) -> &mut Entry {
        &mut self.entries[key as usize]
    }

    /// Gives a new stream an entry, whose parts the caller must begin.
    pub(super) fn insert(&mut self, id: StreamId) -> u32 {
        let key = self.free.pop().unwrap_or_else(|| self.grow());
        let is_ours = id.initiator() == self.side;
        let is_bidi = id.direction() == Direction::Bidirectional;
        let state = &mut self.entries[key as usize];
        (state.id, state.priority) = (id, 0);
        (state.sends, state.receives) = (is_bidi || is_ours, is_bidi || !is_ours);
        self.by_id.insert(id.value(), key);
        self.remember(id, key);
        key
    }

    fn grow(&mut self) -> u32 {
        if self.entries.len() == self.entries.capacity() {
            // A vector would begin with four entries, but most connections have one stream at a
            // time.
            self.entries.reserve_exact(self.entries.len().max(1));
        }
        let recent = (self.entries.len() + 1).next_power_of_two();
        let recent = recent.clamp(FEWEST_RECENT, MOST_RECENT);
        if self.recent.len() < recent {
            self.recent = vec![NOBODY; recent];
        }
        self.entries.push(Entry {
            id: StreamId::from_value(0),
            sends: false,
            receives: false,
            send: Half::default(),
            receive: Half::default(),
            priority: 0,
            pending: PendingFrames::default(),
            in_free: false,
            in_new: false,
        });
        u32::try_from(self.entries.len() - 1).expect("streams use up memory long before 2^32")
    }

    /// Empties the entry of a stream that is over.
    pub(super) fn remove(&mut self, key: u32, buffers: &mut Buffers) {
        let state = &mut self.entries[key as usize];
        let id = state.id;
        if let Some(send) = state.send.allocated() {
            send.recycle(buffers);
        }
        if let Some(receive) = state.receive.allocated() {
            receive.recycle(buffers);
        }
        self.by_id.remove(&id.value());
        let place = self.place(id);
        if self.recent[place].0 == id.value() {
            self.recent[place] = NOBODY;
        }
        self.free.push(key);
    }

    /// Returns the number of streams that are not over.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns the states of all streams.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.by_id.values().map(|&key| &self.entries[key as usize])
    }

    /// Returns the keys of all streams.
    pub(super) fn keys(&self) -> impl Iterator<Item = u32> + '_ {
        self.by_id.values().copied()
    }

    /// Returns true if no stream is left and there are more empty entries than are worth keeping.
    pub(super) fn is_oversized(&self) -> bool {
        self.by_id.is_empty() && self.entries.len() > KEPT_ENTRIES
    }

    /// Removes everything and frees all memory.
    pub(super) fn clear(&mut self) {
        (self.entries, self.free) = (Vec::new(), Vec::new());
        self.by_id.clear();
        self.by_id.shrink_to_fit();
        self.recent = vec![NOBODY];
    }

    /// Returns the number of entries.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.entries.len()
    }

    /// Frees the memory that the streams there are do not need.
    pub(super) fn shrink(&mut self) {
        for &key in &self.free {
            let state = &mut self.entries[key as usize];
            (state.send, state.receive) = (Half::default(), Half::default());
        }
        for state in &mut self.entries {
            if let Some(send) = state.send.allocated() {
                send.shrink();
            }
            if let Some(receive) = state.receive.allocated() {
                receive.shrink();
            }
        }
        self.free.shrink_to_fit();
        self.entries.shrink_to_fit();
        self.by_id.shrink_to_fit();
    }

    fn remember(&mut self, id: StreamId, key: u32) {
        let place = self.place(id);
        self.recent[place] = (id.value(), key);
    }

    /// Returns the cache index of a stream: neighbours of one kind get different indices.
    #[inline]
    fn place(&self, id: StreamId) -> usize {
        let value = id.value();
        (value >> 2 ^ value << 1) as usize & (self.recent.len() - 1)
    }
}

/// Number of cached lookups while there are few streams; a single one before the first stream.
const FEWEST_RECENT: usize = 8;
/// Maximum of cached lookups, which take 4 KiB.
const MOST_RECENT: usize = 256;
/// An entry that matches no stream, because no stream has this ID.
const NOBODY: (u64, u32) = (u64::MAX, 0);
/// More empty entries than this are freed at once when the last stream ends.
const KEPT_ENTRIES: usize = 1024;

#[cfg(test)]
mod tests;
