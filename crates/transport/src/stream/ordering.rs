//! The calls of applications that order streams.

use courser_wire::StreamId;

use super::Streams;
use super::event::ClosedStream;
use super::schedule::{Level, Share};

impl Streams {
    /// Sets the priority: of two streams of a session with data to send, the one with the higher priority is
    /// sent first.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the stream is gone.
    pub fn set_priority(&mut self, id: StreamId, priority: i32) -> Result<(), ClosedStream> {
        self.set_share(id, |share| share.priority = priority)
    }

    /// Sets the priority of a stream, and its class among the streams and sessions of the connection.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the stream is gone.
    pub fn set_level(&mut self, id: StreamId, level: Level) -> Result<(), ClosedStream> {
        self.set_share(id, |share| {
            (share.class, share.priority) = (level.class, level.priority);
        })
    }

    /// Sets the order: of two streams of one priority and group with data to send, the one with the higher order is
    /// sent first, and streams of one order take turns.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the stream is gone.
    pub fn set_order(&mut self, id: StreamId, order: i64) -> Result<(), ClosedStream> {
        self.set_share(id, |share| share.order = order)
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

    /// Sets the session. The sessions of one class share by bytes; all streams in session 0, which have no other,
    /// count as one session of each of their classes.
    ///
    /// # Errors
    ///
    /// [`ClosedStream`] when the stream is gone.
    pub fn set_session(&mut self, id: StreamId, session: u32) -> Result<(), ClosedStream> {
        self.set_share(id, |share| share.session = session)
    }

    /// Sets the class of a session, 0 unless set: streams and sessions of a higher class are sent first. A class other
    /// than 0 is remembered until it is set to 0.
    pub fn set_session_class(&mut self, session: u32, class: i8) {
        self.queues.set_session_class(session, class);
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
        if share != state.share {
            self.queues.unschedule(state);
            state.share = share;
            self.schedule(key);
        }
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
