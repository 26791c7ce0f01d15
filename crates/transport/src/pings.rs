//! PING frames of the application, and the round trips that they measure. RFC 9000 §19.2.

use std::time::Duration;

use courser_base::{Pace, Time};
use courser_wire::frame::Frame;

use crate::build::packet_builder::PacketBuilder;
use crate::space::sent::SentFrame;

/// Requests of the application for a PING, in the order of their numbers.
///
/// The acknowledgement of a PING answers all requests that were made before it was sent. The size of
/// the state is therefore independent of the number of requests.
#[derive(Debug, Default)]
pub struct Pings {
    /// The pace of PINGs, created for the first one.
    pace: Option<Box<Pace>>,
    /// The time at which a due PING may be sent, if there were many before.
    held_until: Time,
    /// Number of the newest request.
    requested: u64,
    /// Number of the newest request that was answered.
    answered: u64,
    /// True while a PING waits to be sent.
    is_due: bool,
    /// True if requests were answered since the last event.
    was_answered: bool,
    /// Round-trip time of the last PING that was acknowledged.
    round_trip: Duration,
    /// The time of the ACK frame that is processed.
    now: Time,
}

/// PINGs of the application that are sent as soon as they are requested, and the interval of further ones
/// (limit K280). Peers with the same limit K17 end a connection after 2000 frames without progress.
const BURST: u32 = 500;
const INTERVAL: Duration = Duration::from_millis(20);

impl Pings {
    /// Requests a PING and returns the number of the request, for [`Pings::answer`]. Requests that
    /// wait for the same packet share one frame and one number.
    pub fn request(&mut self) -> u64 {
        if !self.is_due {
            self.is_due = true;
            self.requested += 1;
        }
        self.requested
    }

    /// Returns the round-trip time that answers a request, or `None` until there is one. It counts
    /// from the sending of the packet that was acknowledged; a lost PING is replaced by another.
    ///
    /// The time includes the acknowledgement delay of the peer. If later requests were answered too, it
    /// belongs to the last of them.
    pub fn answer(&self, request: u64) -> Option<Duration> {
        (self.answered >= request).then_some(self.round_trip)
    }

    /// Returns true while a PING waits to be sent.
    #[inline]
    pub(crate) fn has_frames_to_send(&self) -> bool {
        self.is_due && self.held_until == Time::ZERO
    }

    /// Returns the time at which a delayed PING may be sent.
    #[inline]
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        (self.is_due && self.held_until > Time::ZERO).then_some(self.held_until)
    }

    /// Permits a delayed PING if its time has come.
    #[inline]
    pub(crate) fn on_timeout(&mut self, now: Time) {
        if self.held_until <= now {
            self.held_until = Time::ZERO;
        }
    }

    /// Writes the PING that waits, if there is one.
    #[inline]
    pub(crate) fn write_frame(&mut self, now: Time, packet: &mut PacketBuilder<'_>) {
        if !self.has_frames_to_send() || packet.remaining() < 1 {
            return;
        }
        self.is_due = false;
        let pace = self
            .pace
            .get_or_insert_with(|| Box::new(Pace::new(BURST, INTERVAL)));
        pace.take(now);
        let next = pace.next(now);
        if next > now {
            self.held_until = next;
        }
        Frame::Ping.encode(packet.writer());
        packet.record(SentFrame::MeasuredPing {
            request: self.requested,
            sent: now,
        });
    }

    /// Records the time of an ACK frame, before [`Pings::on_acked`] for each PING that it acknowledges.
    #[inline]
    pub(crate) fn on_ack_received(&mut self, now: Time) {
        self.now = now;
    }

    /// Processes the acknowledgement of the PING for `request` that was sent at `sent`.
    pub(crate) fn on_acked(&mut self, request: u64, sent: Time) {
        if request <= self.answered {
            return;
        }
        (self.answered, self.round_trip) = (request, self.now - sent);
        self.was_answered = true;
        if self.answered == self.requested {
            // A probe may have requested another copy.
            self.is_due = false;
        }
    }

    /// Processes the loss of the PING for `request`: another one replaces it, unless the request is
    /// answered.
    pub(crate) fn on_lost(&mut self, request: u64) {
        self.is_due |= request > self.answered;
    }

    /// Returns true if requests were answered since the last call.
    #[inline]
    pub(crate) fn take_answered(&mut self) -> bool {
        std::mem::take(&mut self.was_answered)
    }
}
