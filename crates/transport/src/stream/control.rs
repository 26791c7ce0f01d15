//! A queue of the streams that have control frames to send.

use std::collections::VecDeque;

/// A control frame of one stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Control {
    /// RESET_STREAM.
    Reset = 1,
    /// STOP_SENDING.
    Stop = 2,
    /// MAX_STREAM_DATA.
    Credit = 4,
    /// STREAM_DATA_BLOCKED.
    Blocked = 8,
}

impl Control {
    /// All control frames, in the order in which they are sent.
    pub(super) const ALL: [Self; 4] = [Self::Reset, Self::Stop, Self::Credit, Self::Blocked];
}

/// The control frames that one stream wants to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Wanted {
    frames: u8,
    /// True if the queue has an entry for the slot. The entry may outlive the request for frames,
    /// and even the stream.
    is_queued: bool,
}

impl Wanted {
    pub(super) const fn has(self, control: Control) -> bool {
        self.frames & control as u8 != 0
    }
}

/// Slots of streams with control frames to send, in first-come, first-served order.
#[derive(Debug, Default)]
pub(super) struct ControlQueue {
    queue: VecDeque<u32>,
    /// Number of slots that want to send a frame, without stale entries.
    wanting: usize,
}

impl ControlQueue {
    /// Returns true if no stream has a control frame to send.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.wanting == 0
    }

    /// Returns the maximum number of frames wanted: one for sending and one for receiving per
    /// stream.
    #[inline]
    pub(super) const fn most_frames(&self) -> usize {
        2 * self.wanting
    }

    /// Requests a frame.
    pub(super) fn want(&mut self, slot: u32, wanted: &mut Wanted, control: Control) {
        self.wanting += usize::from(wanted.frames == 0);
        wanted.frames |= control as u8;
        if !wanted.is_queued {
            wanted.is_queued = true;
            self.queue.push_back(slot);
        }
    }

    /// Withdraws a request, because the frame was sent or is pointless now.
    pub(super) fn unwant(&mut self, wanted: &mut Wanted, control: Control) {
        let before = wanted.frames;
        wanted.frames &= !(control as u8);
        self.wanting -= usize::from(before != 0 && wanted.frames == 0);
    }

    /// Withdraws all requests of a stream that is gone.
    pub(super) fn unwant_all(&mut self, wanted: &mut Wanted) {
        self.wanting -= usize::from(wanted.frames != 0);
        wanted.frames = 0;
    }

    /// Returns the first slot in the queue.
    pub(super) fn first(&self) -> Option<u32> {
        self.queue.front().copied()
    }

    /// Removes the first slot after its turn.
    pub(super) fn pop_first(&mut self, wanted: &mut Wanted) {
        debug_assert!(wanted.frames == 0, "has not had its turn");
        wanted.is_queued = false;
        self.queue.pop_front();
    }

    /// Removes all slots.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests;
