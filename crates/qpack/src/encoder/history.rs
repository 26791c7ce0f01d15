//! Which lines have come before.

/// Remembers the hashes of the lines that came last, some of them: each has one place, and the
/// newest takes it.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Empty until the first line.
    places: Box<[u32]>,
}

impl History {
    /// True if the line has come not too long ago; remembers it.
    pub(super) fn is_known(&mut self, hash: u64) -> bool {
        if self.places.is_empty() {
            self.places = vec![0; PLACES].into_boxed_slice();
        }
        let place = &mut self.places[hash as usize % PLACES];
        let tag = (hash >> 32) as u32 | 1; // The high half, and never that of an empty place.
        *place == tag || {
            *place = tag;
            false
        }
    }
}

/// A table of 4 KiB holds about as many lines.
const PLACES: usize = 64;
