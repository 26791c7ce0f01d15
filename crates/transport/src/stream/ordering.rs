//! The calls of applications that order streams.

use courser_base::Side;
use courser_wire::{Direction, StreamId};

use super::Streams;
use super::event::{ClosedStream, StreamEvent};
use super::schedule::{Level, Share};

impl Streams {
    /// Sets the priority: of two streams of a session with data to send, the one with the higher priority is
    /// sent first.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the stream is gone.
    pub fn set_priority(&mut self, id: StreamId, priority: i32) -> Result<(), ClosedStream> {
        self.set_share(id, |share| share.priority = priority)?;
        self.expect_order(priority != 0);
        Ok(())
    }

    /// Sets the priority of a stream, and its class among the streams and sessions of the connection. If it has begun a
    /// session, the class is that of the session.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the stream is gone.
    pub fn set_level(&mut self, id: StreamId, level: Level) -> Result<(), ClosedStream> {
        let session = session_of(id);
        let mut is_session = false;
        self.set_share(id, |share| {
            share.class = level.class;
            is_session = share.session == session;
            if !is_session {
                share.priority = level.priority;
            }
        })?;
        if is_session {
            self.queues.set_session_class(session, level.class);
        }
        Ok(())
    }

    /// Sets the order: of two streams of one priority and group with data to send, the one with the higher order is
    /// sent first, and streams of one order take turns.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the stream is gone.
    pub fn set_order(&mut self, id: StreamId, order: i64) -> Result<(), ClosedStream> {
        self.set_share(id, |share| share.order = order)?;
        self.expect_order(order != 0);
        Ok(())
    }

    /// Keeps a part of the send buffer for the streams that are first of their groups, from the first order or priority on.
    fn expect_order(&mut self, has_one: bool) {
        if has_one {
            self.buffers.sending.expect_order();
        }
    }

    /// Sets the group. The groups of one session and priority share by bytes; all streams in group 0, which have no
    /// other, count as one group.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the stream is gone.
    pub fn set_group(&mut self, id: StreamId, group: u32) -> Result<(), ClosedStream> {
        self.set_share(id, |share| share.group = group)
    }

    /// Begins a session on the stream of its request. The session has the class of this stream, and follows it
    /// ([`Streams::set_level`]) until the stream is over. In its session the stream is first.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the stream is gone.
    pub fn begin_session(&mut self, request: StreamId) -> Result<(), ClosedStream> {
        let session = session_of(request);
        let mut class = 0;
        self.set_share(request, |share| {
            class = share.class;
            (share.session, share.priority) = (session, i32::MAX);
        })?;
        self.queues.set_session_class(session, class);
        Ok(())
    }

    /// Puts a stream into the session of this request. The sessions of one class share by bytes; all streams without a
    /// session count as one session of each of their classes.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the stream is gone.
    pub fn set_session(&mut self, id: StreamId, request: StreamId) -> Result<(), ClosedStream> {
        let session = session_of(request);
        self.set_share(id, |share| share.session = session)
    }

    /// Counts bytes that were sent for a session outside of its streams, so that its streams send less.
    pub(crate) fn charge_session(&mut self, request: StreamId, len: u64) {
        self.queues.charge(session_of(request), len);
    }

    /// Returns true if a stream of the session with new data precedes a datagram of it with this order: its priority is
    /// above 0, or it is 0 and the order is higher, among the streams without a group.
    pub(crate) fn precede(&self, request: Option<StreamId>, order: i64) -> bool {
        let session = request.map_or(0, session_of);
        self.queues.precede(session, order)
    }

    /// Counts the bytes that a stream holds for its session, if it has one.
    pub(super) fn count_held(&mut self, key: u32) {
        let state = self.table.at(key);
        if state.share.session == 0 || !state.sends {
            return;
        }
        let before = std::mem::replace(&mut state.held, state.send.retained());
        let (session, after) = (state.share.session, state.held);
        if before != after {
            self.buffers.sending.on_held(session, before, after);
        }
    }

    /// Ends the session of a stream that is over, if it has begun one. The streams of the session that are left have the
    /// class 0.
    pub(super) fn end_session_of(&mut self, id: StreamId, share: &Share) {
        if share.session != 0 && share.session == session_of(id) {
            self.queues.set_session_class(share.session, 0);
            self.take_unsent(share.session);
        }
    }

    /// Returns the number of bytes that were written on streams of the session and will never be sent, because the
    /// streams were reset, since the last call. Flow control of sessions counts what is sent.
    ///
    /// [`StreamEvent::Readable`] for the stream of the request follows when there are more.
    pub fn take_unsent_of_session(&mut self, request: StreamId) -> u64 {
        self.take_unsent(session_of(request))
    }

    fn take_unsent(&mut self, session: u32) -> u64 {
        let unsent = self.unsent_of_sessions.as_mut();
        let taken = unsent.and_then(|unsent| unsent.remove(&session));
        taken.unwrap_or_default()
    }

    /// Counts the bytes that the reset of a stream has discarded unsent. `before` is the result of
    /// [`Streams::unsent_if_open`].
    pub(super) fn on_unsent_discarded(&mut self, key: u32, before: Option<u64>) {
        let Some(before) = before else { return };
        let len = before - self.buffers.sending.unsent();
        let session = self.table.at(key).share.session;
        if len == 0 || session == 0 {
            return;
        }
        let unsent = self.unsent_of_sessions.get_or_insert_default();
        *unsent.entry(session).or_default() += len;
        let id = StreamId::new(
            Side::Client,
            Direction::Bidirectional,
            u64::from(session) - 1,
        );
        self.events.push_back(StreamEvent::Readable { id });
    }

    fn set_share(
        &mut self,
        id: StreamId,
        change: impl FnOnce(&mut Share),
    ) -> Result<(), ClosedStream> {
        let key = self.table.find(id).ok_or(ClosedStream)?;
        let state = self.table.at(key);
        let mut share = state.share;
        change(&mut share);
        if share == state.share {
            return Ok(());
        }
        self.queues.unschedule(state);
        if share.session != state.share.session && state.held > 0 {
            let (session, held) = (state.share.session, std::mem::take(&mut state.held));
            self.buffers.sending.on_held(session, held, 0);
        }
        let (before, waits) = (state.share.session, state.sends);
        let waits = waits && state.send.is_waiting_for_connection();
        state.share = share;
        if waits && share.session != before {
            let sending = &mut self.buffers.sending;
            sending.forget_writer(id);
            sending.wait(share.session, id);
        }
        self.count_held(key);
        self.schedule(key);
        Ok(())
    }

    /// Returns the priority, zero unless set.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the stream is gone.
    pub fn priority(&self, id: StreamId) -> Result<i32, ClosedStream> {
        let state = self.table.get(id).ok_or(ClosedStream)?;
        Ok(state.share.priority)
    }

    /// Returns the order, zero unless set.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the stream is gone.
    pub fn order(&self, id: StreamId) -> Result<i64, ClosedStream> {
        let state = self.table.get(id).ok_or(ClosedStream)?;
        Ok(state.share.order)
    }
}

/// Returns the number of the session of a request. No session has 0. Sessions that are 2^32 requests apart have the same
/// number, but do not exist at the same time.
fn session_of(request: StreamId) -> u32 {
    let number = request.index() % u64::from(u32::MAX) + 1;
    u32::try_from(number).unwrap_or(u32::MAX)
}
