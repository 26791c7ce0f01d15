//! Responses to challenges from addresses that are no paths.

use std::collections::VecDeque;

use crate::path::Place;

/// The challenges that wait for a response. Each response is smaller than three times its challenge, so that no budget is needed
/// (RFC 9000 §8.1).
#[derive(Debug, Default)]
pub(super) struct Responses {
    waiting: VecDeque<(Place, [u8; 8])>,
}

impl Responses {
    /// Adds a challenge. Beyond the limit the oldest one is not answered.
    pub(super) fn push(&mut self, place: Place, data: [u8; 8]) {
        if self.waiting.len() >= MAX_RESPONSES {
            self.waiting.pop_front();
        }
        self.waiting.push_back((place, data));
    }

    pub(super) fn pop(&mut self) -> Option<(Place, [u8; 8])> {
        self.waiting.pop_front()
    }
}

/// Challenges that wait for a response (limit K285).
const MAX_RESPONSES: usize = 16;
