//! Which streams have control frames to send.

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
    /// All of them, in the order in which they are sent.
    pub(super) const ALL: [Self; 4] = [Self::Reset, Self::Stop, Self::Credit, Self::Blocked];
}

/// The control frames that one stream wants to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Wanted {
    frames: u8,
    /// An entry for the slot is in the queue. It may outlive the wish, and even the stream.
    is_queued: bool,
}

impl Wanted {
    pub(super) const fn has(self, control: Control) -> bool {
        self.frames & control as u8 != 0
    }
}

/// Slots of streams with control frames to send, first come first served.
#[derive(Debug, Default)]
pub(super) struct ControlQueue {
    queue: VecDeque<u32>,
    /// Slots that want to send a frame, as opposed to entries left behind.
    wanting: usize,
}

impl ControlQueue {
    /// True when no stream has a control frame to send.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.wanting == 0
    }

    /// How many frames are wanted at most: what a stream may say of sending, and of receiving.
    #[inline]
    pub(super) const fn most_frames(&self) -> usize {
        2 * self.wanting
    }

    /// Wants a frame.
    pub(super) fn want(&mut self, slot: u32, wanted: &mut Wanted, control: Control) {
        self.wanting += usize::from(wanted.frames == 0);
        wanted.frames |= control as u8;
        if !wanted.is_queued {
            wanted.is_queued = true;
            self.queue.push_back(slot);
        }
    }

    /// Wants a frame no more, since it was sent or is pointless now.
    pub(super) fn unwant(&mut self, wanted: &mut Wanted, control: Control) {
        let before = wanted.frames;
        wanted.frames &= !(control as u8);
        self.wanting -= usize::from(before != 0 && wanted.frames == 0);
    }

    /// Wants nothing any more: the stream is gone.
    pub(super) fn unwant_all(&mut self, wanted: &mut Wanted) {
        self.wanting -= usize::from(wanted.frames != 0);
        wanted.frames = 0;
    }

    /// The first slot in the queue.
    pub(super) fn first(&self) -> Option<u32> {
        self.queue.front().copied()
    }

    /// The first slot has had its turn.
    pub(super) fn pop_first(&mut self, wanted: &mut Wanted) {
        debug_assert!(wanted.frames == 0, "has not had its turn");
        wanted.is_queued = false;
        self.queue.pop_front();
    }

    /// Forgets all slots.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests;
