//! Reusable memory for datagrams on the link.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Copies received datagrams into blocks, and reuses a block once all datagrams in it have left. Most links
/// keep the order, so the oldest block becomes free first.
#[derive(Debug)]
pub(crate) struct Slabs {
    current: BytesMut,
    /// The ends of full blocks, through which the blocks are reclaimed.
    full: VecDeque<BytesMut>,
}

impl Slabs {
    pub(crate) fn new() -> Self {
        Self {
            current: BytesMut::with_capacity(BLOCK),
            full: VecDeque::new(),
        }
    }

    /// Returns a copy of `bytes`, which are at most 64 KiB.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Bytes {
        if self.current.capacity() < bytes.len() {
            self.next_block();
        }
        self.current.extend_from_slice(bytes);
        self.current.split().freeze()
    }

    fn next_block(&mut self) {
        if self.current.try_reclaim(BLOCK) {
            return;
        }
        let is_free = |block: &mut BytesMut| block.try_reclaim(BLOCK);
        let next = if self.full.front_mut().is_some_and(is_free) {
            self.full.pop_front()
        } else {
            None
        };
        let next = next.unwrap_or_else(|| BytesMut::with_capacity(BLOCK));
        let full = std::mem::replace(&mut self.current, next);
        self.full.push_back(full);
        if self.full.len() > MAX_FULL {
            // The block is freed with the last datagram in it.
            self.full.pop_front();
        }
    }
}

/// Size of a block: small enough that a late datagram retains little memory, large enough that new blocks
/// are rarely needed.
const BLOCK: usize = 256 << 10;

/// The largest number of full blocks that are kept for reuse: 64 MiB, 50 ms at 10 Gbit/s.
const MAX_FULL: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_is_reused_once_all_datagrams_in_it_have_left() {
        let mut slabs = Slabs::new();
        let first = slabs.copy(&[1; 1000]);
        let place = first.as_ptr();
        drop(first);
        let mut places = Vec::new();
        for number in 0..2_000 {
            let kept = slabs.copy(&[(number % 250) as u8; 1000]);
            assert_eq!(kept[..], [(number % 250) as u8; 1000]);
            places.push(kept.as_ptr());
        }
        assert!(places[300..].contains(&place));
        assert!(slabs.full.is_empty());
    }

    #[test]
    fn copies_stay_unchanged() {
        let mut slabs = Slabs::new();
        let kept: Vec<_> = (0..5_000_u32)
            .map(|number| slabs.copy(&number.to_be_bytes().repeat(300)))
            .collect();
        for (number, kept) in (0_u32..).zip(&kept) {
            assert_eq!(kept[..], number.to_be_bytes().repeat(300));
        }
        let blocks = slabs.full.len();
        drop(kept);
        for _ in 0..5_000 {
            slabs.copy(&[0; 1200]);
        }
        assert!(slabs.full.len() <= blocks, "no more than before");
    }

    #[test]
    fn number_of_kept_blocks_is_bounded() {
        let mut slabs = Slabs::new();
        let kept: Vec<_> = (0..2_000).map(|_| slabs.copy(&[0; 65_000])).collect();
        assert_eq!(slabs.full.len(), MAX_FULL);
        assert!(kept.iter().all(|bytes| bytes.len() == 65_000));
    }
}
