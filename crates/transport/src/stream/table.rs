//! The table from stream IDs to the states of streams.

use std::collections::HashMap;

use courser_base::Side;
use courser_wire::{Direction, StreamId};

use super::buffers::Buffers;
use super::control::PendingFrames;
use super::half::Half;
use super::receive::ReceivePart;
use super::schedule::{Place, Share};
use super::send::SendPart;
use crate::hasher::StreamIdState;

/// One stream. If it is unidirectional, the unused part takes no memory.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: StreamId,
    /// True if we may send on this stream.
    pub(super) sends: bool,
    /// True if the peer may send on this stream.
    pub(super) receives: bool,
    pub(super) send: Half<SendPart>,
    pub(super) receive: Half<ReceivePart>,
    pub(super) share: Share,
    /// The bytes held for sending that were counted for its session.
    pub(super) held: u64,
    pub(super) pending: PendingFrames,
    /// The place of this stream in [`SendQueues::free`](super::send_queues::SendQueues::free), if it is there.
    pub(super) in_free: Option<Place>,
    /// The place of this stream in [`SendQueues::new`](super::send_queues::SendQueues::new), if it is there.
    pub(super) in_new: Option<Place>,
}

impl Entry {
    /// Returns true if both parts have ended.
    pub(super) fn is_over(&self) -> bool {
        (!self.sends || self.send.is_over()) && (!self.receives || self.receive.is_over())
    }

    /// Returns true if the receiving part has ended.
    #[inline]
    pub(super) fn is_read_to_end(&self) -> bool {
        self.receives && self.receive.is_over()
    }

    /// Returns true if the peer cancelled it, in either direction.
    pub(super) fn was_cancelled(&self) -> bool {
        (self.receives && self.receive.was_reset()) || (self.sends && self.send.stopped().is_some())
    }
}

/// All streams of a connection that are not over.
///
/// Entries of ended streams are reused, with the memory of their lists. Recent lookups are cached,
/// about as many as there are streams, so that not every frame causes the hash of an ID.
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
            recent: vec![EMPTY],
        }
    }

    /// Returns the key of a stream.
    #[inline]
    pub(super) fn find(&mut self, id: StreamId) -> Option<u32> {
        let (recent, key) = self.recent[self.cache_index(id)];
        if recent == id.value() {
            return Some(key);
        }
        self.find_hashed(id)
    }

    #[inline(never)]
    fn find_hashed(&mut self, id: StreamId) -> Option<u32> {
        let key = *self.by_id.get(&id.value())?;
        self.cache(id, key);
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

    /// Inserts a new stream and returns its key. The caller must call `begin` on its parts.
    pub(super) fn insert(&mut self, id: StreamId) -> u32 {
        let key = self.free.pop().unwrap_or_else(|| self.grow());
        let is_ours = id.initiator() == self.side;
        let is_bidi = id.direction() == Direction::Bidirectional;
        let state = &mut self.entries[key as usize];
        (state.id, state.share, state.held) = (id, Share::default(), 0);
        (state.sends, state.receives) = (is_bidi || is_ours, is_bidi || !is_ours);
        self.by_id.insert(id.value(), key);
        self.cache(id, key);
        key
    }

    fn grow(&mut self) -> u32 {
        if self.entries.len() == self.entries.capacity() {
            // A vector would begin with four entries, but most connections have one stream at a
            // time.
            self.entries.reserve_exact(self.entries.len().max(1));
        }
        let recent = (self.entries.len() + 1).next_power_of_two();
        let recent = recent.clamp(MIN_RECENT, MAX_RECENT);
        if self.recent.len() < recent {
            self.recent = vec![EMPTY; recent];
        }
        self.entries.push(Entry {
            id: StreamId::from_value(0),
            sends: false,
            receives: false,
            send: Half::default(),
            receive: Half::default(),
            share: Share::default(),
            held: 0,
            pending: PendingFrames::default(),
            in_free: None,
            in_new: None,
        });
        u32::try_from(self.entries.len() - 1).expect("streams use up memory long before 2^32")
    }

    /// Removes a stream that has ended, and keeps its entry for reuse.
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
        let cache_index = self.cache_index(id);
        if self.recent[cache_index].0 == id.value() {
            self.recent[cache_index] = EMPTY;
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

    /// Returns true if no stream is left and there are more than [`KEPT_ENTRIES`] empty entries.
    pub(super) fn is_oversized(&self) -> bool {
        self.by_id.is_empty() && self.entries.len() > KEPT_ENTRIES
    }

    /// Removes everything and frees all memory.
    pub(super) fn clear(&mut self) {
        (self.entries, self.free) = (Vec::new(), Vec::new());
        self.by_id.clear();
        self.by_id.shrink_to_fit();
        self.recent = vec![EMPTY];
    }

    /// Returns the number of entries, empty ones included.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.entries.len()
    }

    /// Frees the memory that is kept for reuse.
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

    fn cache(&mut self, id: StreamId, key: u32) {
        let cache_index = self.cache_index(id);
        self.recent[cache_index] = (id.value(), key);
    }

    /// Returns the cache index of a stream. Consecutive streams of one direction get different indices.
    #[inline]
    fn cache_index(&self, id: StreamId) -> usize {
        let value = id.value();
        (value >> 2 ^ value << 1) as usize & (self.recent.len() - 1)
    }
}

/// Size of the cache of lookups while there are few streams; 1 before the first stream.
const MIN_RECENT: usize = 8;
/// Maximum size of the cache of lookups, which takes 4 KiB.
const MAX_RECENT: usize = 256;
/// An empty place in the cache. No stream has this ID.
const EMPTY: (u64, u32) = (u64::MAX, 0);
/// If there are more entries than this when the last stream ends, all are freed.
const KEPT_ENTRIES: usize = 1024;

#[cfg(test)]
mod tests;
