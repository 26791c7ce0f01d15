//! Flow control of a whole connection. RFC 9000 §4.1.

use std::time::Duration;

use courser_base::Time;
use courser_wire::frame::{DataBlocked, MaxData};

use super::{Draw, ReceiveWindow, SendLimit, fits_control_frame};
use crate::build::packet_builder::PacketBuilder;
use crate::space::sent::SentFrame;

/// The credit of a connection in both directions, and the frames about it: MAX_DATA and DATA_BLOCKED.
///
/// Streams count their bytes in `send` and `receive` as well as in their own limits.
#[derive(Debug)]
pub(crate) struct ConnectionFlow {
    /// The credit that the peer grants us.
    pub(crate) send: SendLimit,
    /// The credit that we grant the peer.
    pub(crate) receive: ReceiveWindow,
    /// The window at first, up to 4 GiB: an idle connection has room for no more.
    initial: u32,
    /// Bytes by which the windows of open streams have grown.
    grown: u64,
    is_max_data_due: bool,
    is_data_blocked_due: bool,
    /// True once the connection is over, and no frame can be sent.
    is_over: bool,
}

impl ConnectionFlow {
    /// Starts without credit from the peer. The peer gets `window` bytes, as in our transport
    /// parameters, and the window may grow to `max` bytes.
    pub(crate) fn new(window: u64, max: u64) -> Self {
        Self {
            send: SendLimit::default(),
            receive: ReceiveWindow::new(window, max),
            initial: u32::try_from(window).unwrap_or(u32::MAX),
            grown: 0,
            is_max_data_due: false,
            is_data_blocked_due: false,
            is_over: false,
        }
    }

    /// Takes the memory for growth of the receive window from a shared budget.
    pub(crate) fn draw_from(&mut self, draw: Draw) {
        self.receive.draw_from(draw);
    }

    /// Returns the size that the window of a stream gets, which would like to grow from `before` to `size` bytes. The
    /// window of the connection grows by as much: a stream that was fast and is not read any more must leave to the
    /// other streams what they had before (attack A375). If the connection cannot grow, a quarter of it is left to them.
    pub(crate) fn grow_stream(&mut self, now: Time, before: u64, size: u64) -> u64 {
        let wanted = u64::from(self.initial) + self.grown + (size - before);
        let of_connection = self.receive.grow_to(now, wanted);
        let size = match of_connection >= wanted {
            true => size,
            false => size.min(of_connection / 4 * 3).max(before),
        };
        self.grown += size - before;
        size
    }

    /// Returns the bytes by which the windows of open streams have grown.
    #[cfg(test)]
    pub(crate) const fn grown(&self) -> u64 {
        self.grown
    }

    /// Records that a stream whose window had grown by this much is over.
    pub(crate) fn on_stream_over(&mut self, grown: u64) {
        self.grown -= grown;
    }

    #[inline]
    pub(crate) const fn has_frames_to_send(&self) -> bool {
        self.is_max_data_due | self.is_data_blocked_due
    }

    pub(crate) const fn due_frames(&self) -> usize {
        self.is_max_data_due as usize + self.is_data_blocked_due as usize
    }

    /// Requests MAX_DATA if enough of the receive window is used.
    #[inline]
    pub(crate) fn update_credit(&mut self) {
        if self.receive.is_update_due() {
            self.request_max_data();
        }
    }

    fn request_max_data(&mut self) {
        self.is_max_data_due = !self.is_over;
    }

    /// Requests DATA_BLOCKED, once per limit, if the peer's credit is used up. Returns true if it
    /// did. The caller has data to send.
    #[inline]
    pub(crate) fn signal_blocked(&mut self) -> bool {
        let is_new = self.send.take_signal();
        if is_new {
            self.is_data_blocked_due = !self.is_over;
        }
        is_new
    }

    /// Withdraws DATA_BLOCKED, because no data waits for the peer's credit any more. It is requested again when
    /// data waits.
    pub(crate) fn withdraw_blocked(&mut self) {
        if std::mem::take(&mut self.is_data_blocked_due) {
            self.send.clear_signal();
        }
    }

    /// Processes MAX_DATA. Returns true if it raises the limit (RFC 9000 §4.1).
    pub(crate) fn on_max_data(&mut self, limit: u64) -> bool {
        let raises = self.send.raise(limit);
        self.is_data_blocked_due &= !raises;
        raises
    }

    /// Processes DATA_BLOCKED, in which the peer reports its limit. Repeats MAX_DATA if the frame that
    /// raised the limit must have arrived a round trip ago.
    pub(crate) fn on_data_blocked(&mut self, now: Time, rtt: Duration, limit: u64) {
        if self.receive.is_limit_overdue(now, rtt, limit) {
            self.request_max_data();
        }
    }

    /// Writes the frames that are due and fit. `has_data` is true if new stream data waits: without it
    /// DATA_BLOCKED is dropped. `rtt` determines how fast the window grows.
    pub(crate) fn write_frames(
        &mut self,
        now: Time,
        rtt: Duration,
        has_data: bool,
        packet: &mut PacketBuilder<'_>,
    ) {
        if self.is_max_data_due && fits_control_frame(packet) {
            self.is_max_data_due = false;
            let limit = self.receive.announce(now, rtt);
            MaxData { limit }.encode(packet.writer());
            packet.record(SentFrame::MaxData { limit });
        }
        if self.is_data_blocked_due && fits_control_frame(packet) {
            self.is_data_blocked_due = false;
            if has_data && self.send.available() == 0 {
                let limit = self.send.limit();
                DataBlocked { limit }.encode(packet.writer());
                packet.record(SentFrame::DataBlocked { limit });
            }
        }
    }

    /// Processes the loss of MAX_DATA, which is repeated unless the latest limit was acknowledged.
    pub(crate) fn on_max_data_lost(&mut self) {
        if !self.receive.is_limit_acked() {
            self.request_max_data();
        }
    }

    /// Processes the loss of DATA_BLOCKED. Returns true if [`ConnectionFlow::signal_blocked`] is to
    /// request it again, because none for the present limit was acknowledged.
    pub(crate) fn on_data_blocked_lost(&mut self) -> bool {
        let is_needed = !self.send.is_blocked_acked();
        if is_needed {
            self.send.clear_signal();
        }
        is_needed
    }

    /// Resets the peer's limit and the credit that rejected early data used (RFC 9001 §4.6.2).
    pub(crate) fn on_early_data_rejected(&mut self) {
        self.send = SendLimit::default();
        (self.is_max_data_due, self.is_data_blocked_due) = (false, false);
    }

    /// Ends the exchange of credit: no frame is due any more.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
        (self.is_max_data_due, self.is_data_blocked_due) = (false, false);
    }
}

#[cfg(test)]
mod tests;
