//! A queue of the streams that have control frames to send.

use std::collections::VecDeque;

/// A control frame of one stream, as a bit of [`PendingFrames`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ControlFrame {
    /// RESET_STREAM or RESET_STREAM_AT.
    Reset = 1,
    Stop = 2,
    Credit = 4,
    Blocked = 8,
}

impl ControlFrame {
    /// All control frames, in the order in which they are sent.
    pub(super) const ALL: [Self; 4] = [Self::Reset, Self::Stop, Self::Credit, Self::Blocked];
}

/// The control frames that one stream has to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct PendingFrames {
    frames: u8,
    /// True if the queue has an entry for the stream. The entry may stay there after the frames were
    /// withdrawn, and even after the stream has ended.
    is_queued: bool,
}

impl PendingFrames {
    pub(super) const fn has(self, frame: ControlFrame) -> bool {
        self.frames & frame as u8 != 0
    }
}

/// Keys of streams with control frames to send, in first-come, first-served order.
#[derive(Debug, Default)]
pub(super) struct ControlQueue {
    queue: VecDeque<u32>,
    /// Number of streams with a frame to send, without stale entries.
    streams: usize,
}

impl ControlQueue {
    /// Returns true if no stream has a control frame to send.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.streams == 0
    }

    /// Returns the maximum number of pending frames: one for sending and one for receiving per
    /// stream.
    #[inline]
    pub(super) const fn max_frames(&self) -> usize {
        2 * self.streams
    }

    /// Marks a frame as pending, and queues the stream.
    pub(super) fn request(&mut self, key: u32, pending: &mut PendingFrames, frame: ControlFrame) {
        self.streams += usize::from(pending.frames == 0);
        pending.frames |= frame as u8;
        if !pending.is_queued {
            pending.is_queued = true;
            self.queue.push_back(key);
        }
    }

    /// Withdraws a request, because the frame was sent or is no longer useful.
    pub(super) fn withdraw(&mut self, pending: &mut PendingFrames, frame: ControlFrame) {
        let before = pending.frames;
        pending.frames &= !(frame as u8);
        self.streams -= usize::from(before != 0 && pending.frames == 0);
    }

    /// Withdraws all requests of a stream that is gone.
    pub(super) fn withdraw_all(&mut self, pending: &mut PendingFrames) {
        self.streams -= usize::from(pending.frames != 0);
        pending.frames = 0;
    }

    /// Returns the first stream in the queue.
    pub(super) fn first(&self) -> Option<u32> {
        self.queue.front().copied()
    }

    /// Removes the first stream, whose frames were all written.
    pub(super) fn pop_first(&mut self, pending: &mut PendingFrames) {
        debug_assert!(pending.frames == 0, "frames of this stream are pending");
        pending.is_queued = false;
        self.queue.pop_front();
    }

    /// Removes all streams.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests;
