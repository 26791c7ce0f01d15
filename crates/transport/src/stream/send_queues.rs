//! The streams of a connection that have frames to send, in the order of sending.

use std::collections::BTreeMap;

use courser_base::{Rate, Time};
use courser_wire::StreamId;

use super::control::{ControlFrame, ControlQueue};
use super::rate_caps::RateCaps;
use super::schedule::{Schedule, Share};
use super::table::Entry;

/// The queues of the streams that have control frames, lost data or new data to send.
///
/// A stream is in each queue at most once. Its [`Entry`] records in which queues it is, so each method takes
/// both the key and the entry.
#[derive(Debug, Default)]
pub(super) struct SendQueues {
    /// Streams with control frames to send.
    pub(super) control: ControlQueue,
    /// Streams with frames that need no credit: lost spans, or a FIN without data.
    pub(super) free: Schedule,
    /// Streams with new data that their own limit allows.
    pub(super) new: Schedule,
    /// Created for the first stream with a limit on its rate.
    rate_caps: Option<Box<RateCaps>>,
    /// The classes of the sessions that have another one than 0. Created for the first of them.
    #[expect(clippy::box_collection, reason = "a pointer in each idle connection")]
    sessions: Option<Box<BTreeMap<u32, i8>>>,
}

impl SendQueues {
    /// Creates empty queues, in which streams of one priority take turns if they are fair.
    pub(super) fn new(are_fair: bool) -> Self {
        Self {
            free: Schedule::new(are_fair),
            new: Schedule::new(are_fair),
            ..Self::default()
        }
    }

    /// Returns the class of a stream, which is that of its session if it has one.
    #[inline]
    fn class_of(&self, share: &Share) -> i8 {
        match share.session {
            0 => share.class,
            session => self.session_class(session),
        }
    }

    /// Returns the class of a session.
    #[inline(never)]
    fn session_class(&self, session: u32) -> i8 {
        let sessions = self.sessions.as_ref();
        let class = sessions.and_then(|sessions| sessions.get(&session));
        class.copied().unwrap_or_default()
    }

    /// Sets the class of a session, 0 unless set, and that of all its streams.
    pub(super) fn set_session_class(&mut self, session: u32, class: i8) {
        let before = self.session_class(session);
        if class == before {
            return;
        }
        let sessions = self.sessions.get_or_insert_default();
        match class {
            0 => sessions.remove(&session),
            _ => sessions.insert(session, class),
        };
        self.free.move_session(session, before, class);
        self.new.move_session(session, before, class);
    }

    /// Counts bytes that were sent for a session outside of its streams.
    pub(super) fn charge(&mut self, session: u32, len: u64) {
        self.new.charge(self.session_class(session), session, len);
    }

    /// Adds a stream to the queues that match the data it has to send. Returns true if that requests
    /// STREAM_DATA_BLOCKED.
    #[inline]
    pub(super) fn schedule(&mut self, key: u32, stream: &mut Entry) -> bool {
        if stream.send.has_free() && stream.in_free.is_none() {
            let class = self.class_of(&stream.share);
            stream.in_free = Some(self.free.push(class, &stream.share, key));
        }
        if !stream.send.has_new() {
            return self.signal_blocked(key, stream);
        }
        let is_paused = match &self.rate_caps {
            Some(caps) => caps.is_paused(stream.id),
            None => false,
        };
        if stream.in_new.is_none() && !is_paused {
            let class = self.class_of(&stream.share);
            stream.in_new = Some(self.new.push(class, &stream.share, key));
        }
        false
    }

    /// Requests STREAM_DATA_BLOCKED, once per limit, if the stream's credit is used up. Returns true if
    /// it did.
    #[inline]
    pub(super) fn signal_blocked(&mut self, key: u32, stream: &mut Entry) -> bool {
        let is_new = stream.send.take_blocked();
        if is_new {
            self.request(key, stream, ControlFrame::Blocked);
        }
        is_new
    }

    /// Returns true if all other streams of its session and group that have new data have lower places than this one.
    pub(super) fn is_led_by(&self, key: u32, share: &Share) -> bool {
        self.new.is_led_by(self.class_of(share), share, key)
    }

    /// Returns true if new data of a stream of the session precedes data of the priority 0 and this order.
    pub(super) fn precede(&self, session: u32, order: i64) -> bool {
        let share = Share {
            session,
            order,
            ..Share::default()
        };
        self.new.precede(self.class_of(&share), &share)
    }

    /// Removes a stream from the queues of data.
    #[inline]
    pub(super) fn unschedule(&mut self, stream: &mut Entry) {
        if stream.in_free.is_some() || stream.in_new.is_some() {
            self.remove_data(stream);
        }
    }

    #[inline(never)]
    fn remove_data(&mut self, stream: &mut Entry) {
        if let Some(place) = stream.in_free.take() {
            let class = self.class_of(&stream.share);
            self.free.remove(class, &stream.share, place);
        }
        if let Some(place) = stream.in_new.take() {
            let class = self.class_of(&stream.share);
            self.new.remove(class, &stream.share, place);
        }
    }

    /// Removes a stream from the queue of lost data if none is left, because it was acknowledged.
    #[inline]
    pub(super) fn on_acked(&mut self, stream: &mut Entry) {
        if let Some(place) = stream.in_free
            && !stream.send.has_free()
        {
            stream.in_free = None;
            let class = self.class_of(&stream.share);
            self.free.remove(class, &stream.share, place);
        }
    }

    /// Counts `len` bytes of new data sent by the stream whose turn it is. Returns true if its limit
    /// allows more.
    #[inline]
    pub(super) fn on_new_sent(&mut self, now: Time, stream: &mut Entry, len: u64) -> bool {
        let pauses = match &mut self.rate_caps {
            Some(caps) => caps.on_sent(now, stream.id, len),
            None => false,
        };
        let has_new = stream.send.has_new();
        if has_new && !pauses {
            if let Some(place) = self.new.on_sent(len) {
                stream.in_new = Some(place);
            }
        } else {
            stream.in_new = None;
            self.new.on_last_sent(len);
        }
        has_new
    }

    /// Counts `len` bytes of lost data sent again by the stream whose turn it is.
    pub(super) fn on_free_sent(&mut self, stream: &mut Entry, len: u64) {
        if stream.send.has_free() {
            let place = self.free.on_sent(len);
            stream.in_free = place.or(stream.in_free);
        } else {
            stream.in_free = None;
            self.free.on_last_sent(len);
        }
    }

    /// Requests a control frame.
    pub(super) fn request(&mut self, key: u32, stream: &mut Entry, frame: ControlFrame) {
        self.control.request(key, &mut stream.pending, frame);
    }

    /// Withdraws a control frame that is no longer useful.
    pub(super) fn withdraw(&mut self, stream: &mut Entry, frame: ControlFrame) {
        self.control.withdraw(&mut stream.pending, frame);
    }

    /// Removes a stream that is over from all queues.
    pub(super) fn remove(&mut self, stream: &mut Entry) {
        self.unschedule(stream);
        self.control.withdraw_all(&mut stream.pending);
        if let Some(caps) = &mut self.rate_caps {
            caps.remove(stream.id);
        }
    }

    /// Limits the rate of a stream, or removes its limit.
    pub(super) fn set_rate(&mut self, now: Time, id: StreamId, rate: Option<Rate>) {
        match (rate, &mut self.rate_caps) {
            (Some(rate), caps) => caps.get_or_insert_default().set(now, id, rate),
            (None, Some(caps)) => caps.remove(id),
            (None, None) => {}
        }
    }

    /// Returns the time at which the next paused stream may continue.
    pub(super) fn next_resumption(&self) -> Option<Time> {
        self.rate_caps.as_ref().and_then(|caps| caps.next())
    }

    /// Ends a pause that is over, and returns its stream.
    pub(super) fn pop_resumed(&mut self, now: Time) -> Option<StreamId> {
        self.rate_caps.as_mut()?.pop_due(now)
    }

    /// Removes all streams.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Frees spare capacity.
    pub(super) fn shrink(&mut self) {
        self.free.shrink();
        self.new.shrink();
    }
}

#[cfg(test)]
mod tests;
