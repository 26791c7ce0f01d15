//! Streams and datagrams that arrive before their session (draft-ietf-webtrans-http3-16 §4.6).

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use courser_base::Time;
use courser_wire::Direction;

use crate::session_id::SessionId;

/// Streams of all sessions that are not established, the oldest first.
#[derive(Debug)]
pub(super) struct EarlyStreams<S>(VecDeque<EarlyStream<S>>);

#[derive(Debug)]
struct EarlyStream<S> {
    session: SessionId,
    direction: Direction,
    stream: S,
    arrived: Time,
}

impl<S> Default for EarlyStreams<S> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<S> EarlyStreams<S> {
    /// Adds a stream. Returns it if as many wait as may.
    pub(super) fn add(
        &mut self,
        now: Time,
        session: SessionId,
        direction: Direction,
        stream: S,
    ) -> Result<(), S> {
        if self.0.len() >= MAX_STREAMS {
            return Err(stream);
        }
        self.0.push_back(EarlyStream {
            session,
            direction,
            stream,
            arrived: now,
        });
        Ok(())
    }

    /// Removes the streams of a session, in order.
    pub(super) fn take(&mut self, session: SessionId) -> impl Iterator<Item = (Direction, S)> {
        let (taken, kept): (VecDeque<_>, _) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|early| early.session == session);
        self.0 = kept;
        taken
            .into_iter()
            .map(|early| (early.direction, early.stream))
    }

    /// Removes all streams, in order.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = S> {
        std::mem::take(&mut self.0)
            .into_iter()
            .map(|early| early.stream)
    }

    /// Removes the oldest stream if its time has passed.
    pub(super) fn pop_expired(&mut self, now: Time) -> Option<S> {
        let is_expired = self.next_timeout().is_some_and(|time| time <= now);
        let expired = is_expired.then(|| self.0.pop_front())??;
        Some(expired.stream)
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.0.front().map(|early| early.arrived + LONGEST_STREAM)
    }
}

/// Datagrams of all sessions that are not established, the oldest first.
#[derive(Debug, Default)]
pub(super) struct EarlyDatagrams {
    waiting: VecDeque<(SessionId, Bytes, Time)>,
    bytes: usize,
}

impl EarlyDatagrams {
    /// Adds a datagram. Returns false if it is dropped because as many, or as many bytes, wait as may.
    pub(super) fn add(&mut self, now: Time, session: SessionId, payload: Bytes) -> bool {
        self.expire(now);
        let bytes = self.bytes.saturating_add(payload.len());
        if self.waiting.len() >= MAX_DATAGRAMS || bytes > MAX_DATAGRAM_BYTES {
            return false;
        }
        self.bytes = bytes;
        self.waiting.push_back((session, payload, now));
        true
    }

    /// Removes the datagrams of a session, in order.
    pub(super) fn take(&mut self, session: SessionId) -> impl Iterator<Item = Bytes> {
        let (taken, kept): (VecDeque<_>, _) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(of, ..)| *of == session);
        self.waiting = kept;
        self.bytes = self
            .waiting
            .iter()
            .map(|(_, payload, _)| payload.len())
            .sum();
        taken.into_iter().map(|(_, payload, _)| payload)
    }

    /// Drops the datagrams whose time has passed.
    pub(super) fn expire(&mut self, now: Time) {
        while self.next_timeout().is_some_and(|time| time <= now) {
            if let Some((_, payload, _)) = self.waiting.pop_front() {
                self.bytes -= payload.len();
            }
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.waiting
            .front()
            .map(|&(.., arrived)| arrived + LONGEST_DATAGRAM)
    }
}

/// Streams of a connection that wait for their sessions (limit K302).
const MAX_STREAMS: usize = 16;
/// Time that a stream waits for its session (limit K302).
const LONGEST_STREAM: Duration = Duration::from_secs(5);
/// Datagrams of a connection that wait for their sessions (limit K303).
const MAX_DATAGRAMS: usize = 32;
/// Bytes of these datagrams (limit K303).
const MAX_DATAGRAM_BYTES: usize = 64 * 1024;
/// Time that a datagram waits for its session (limit K303).
const LONGEST_DATAGRAM: Duration = Duration::from_millis(300);
