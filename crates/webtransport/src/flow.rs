//! Flow control of a session: the credit of this end, and the windows of the peer (draft-ietf-webtrans-http3-16 §5).

mod credit;
mod window;

use std::time::Duration;

use courser_base::Time;
use courser_http3::Error;
use courser_wire::Direction;

use self::credit::Credit;
use self::window::{DataWindow, StreamWindow};
use crate::agreement::Agreement;
use crate::capsule::{SessionCapsule, flow_control};

/// The limits of a session in both directions, and the capsules that announce them.
#[derive(Debug)]
pub(crate) struct Flow {
    data: Credit,
    bidi: Credit,
    uni: Credit,
    data_of_peer: DataWindow,
    bidi_of_peer: StreamWindow,
    uni_of_peer: StreamWindow,
}

impl Flow {
    pub(crate) fn new(agreement: &Agreement) -> Self {
        let (own, peer) = (&agreement.local_limits, &agreement.peer_limits);
        Self {
            data: Credit::new(peer.max_data),
            bidi: Credit::new(peer.max_streams_bidi),
            uni: Credit::new(peer.max_streams_uni),
            data_of_peer: DataWindow::new(own.max_data, agreement.max_window),
            bidi_of_peer: StreamWindow::new(own.max_streams_bidi),
            uni_of_peer: StreamWindow::new(own.max_streams_uni),
        }
    }

    /// Uses the credit for a stream. Returns the limit if it is reached.
    pub(crate) const fn open_stream(&mut self, direction: Direction) -> Result<(), u64> {
        let credit = self.streams(direction);
        match credit.take(1) {
            1 => Ok(()),
            _ => Err(credit.limit()),
        }
    }

    /// Uses credit for up to `wanted` bytes. Returns the number of bytes that may be sent.
    pub(crate) const fn reserve(&mut self, wanted: u64) -> u64 {
        self.data.take(wanted)
    }

    /// Returns credit for bytes that were not sent.
    pub(crate) const fn give_back(&mut self, bytes: u64) {
        self.data.give_back(bytes);
    }

    /// Processes a limit of the peer, which must be above the one before. The credit of the direction, or that of
    /// data, has grown.
    pub(crate) const fn on_limit(&mut self, capsule: &SessionCapsule) -> Result<(), Error> {
        let is_raised = match *capsule {
            SessionCapsule::MaxData(limit) => self.data.raise(limit),
            SessionCapsule::MaxStreams(direction, limit) => self.streams(direction).raise(limit),
            _ => true,
        };
        match is_raised {
            true => Ok(()),
            false => Err(flow_control("a limit that is not above the one before")),
        }
    }

    /// Processes a report that a limit of this end holds the peer back. Returns true if it is the first one of the
    /// present limit.
    pub(crate) fn on_blocked(&mut self, now: Time, capsule: &SessionCapsule) -> bool {
        match *capsule {
            SessionCapsule::DataBlocked(limit) => self.data_of_peer.on_blocked(now, limit),
            SessionCapsule::StreamsBlocked(direction, limit) => {
                self.streams_of_peer(direction).on_blocked(limit)
            }
            _ => false,
        }
    }

    /// Returns the time of the next [`on_timeout`](Self::on_timeout).
    pub(crate) const fn next_timeout(&self) -> Option<Time> {
        self.data_of_peer.next_timeout()
    }

    /// Makes a limit due that has waited to grow.
    pub(crate) fn on_timeout(&mut self, now: Time) {
        self.data_of_peer.on_timeout(now);
    }

    /// Counts a stream of the peer.
    pub(crate) const fn on_stream(&mut self, direction: Direction) -> Result<(), Error> {
        match self.streams_of_peer(direction).open() {
            true => Ok(()),
            false => Err(flow_control("more streams than allowed")),
        }
    }

    /// Counts a stream of the peer that has ended.
    pub(crate) fn on_stream_ended(&mut self, direction: Direction) {
        self.streams_of_peer(direction).close();
    }

    /// Counts bytes of the peer.
    pub(crate) const fn on_data(&mut self, bytes: u64) -> Result<(), Error> {
        match self.data_of_peer.receive(bytes) {
            true => Ok(()),
            false => Err(flow_control("more data than allowed")),
        }
    }

    /// Counts bytes that the application has read, or that were discarded.
    pub(crate) fn on_consumed(&mut self, now: Time, rtt: Duration, bytes: u64) {
        self.data_of_peer.consume(now, rtt, bytes);
    }

    /// Returns true if there is a [capsule](Self::poll_capsule) to send.
    pub(crate) fn has_capsule(&self) -> bool {
        self.data_of_peer.is_due()
            || self.bidi_of_peer.next_limit().is_some()
            || self.uni_of_peer.next_limit().is_some()
            || self.data.is_report_due()
            || self.bidi.is_report_due()
            || self.uni.is_report_due()
    }

    /// Returns the next capsule to send.
    pub(crate) fn poll_capsule(&mut self) -> Option<SessionCapsule> {
        use Direction::{Bidirectional, Unidirectional};
        if let Some(limit) = self.data_of_peer.announcement() {
            return Some(SessionCapsule::MaxData(limit));
        }
        for direction in [Bidirectional, Unidirectional] {
            if let Some(limit) = self.streams_of_peer(direction).announcement() {
                return Some(SessionCapsule::MaxStreams(direction, limit));
            }
        }
        if let Some(limit) = self.data.report() {
            return Some(SessionCapsule::DataBlocked(limit));
        }
        for direction in [Bidirectional, Unidirectional] {
            if let Some(limit) = self.streams(direction).report() {
                return Some(SessionCapsule::StreamsBlocked(direction, limit));
            }
        }
        None
    }

    const fn streams(&mut self, direction: Direction) -> &mut Credit {
        match direction {
            Direction::Bidirectional => &mut self.bidi,
            Direction::Unidirectional => &mut self.uni,
        }
    }

    const fn streams_of_peer(&mut self, direction: Direction) -> &mut StreamWindow {
        match direction {
            Direction::Bidirectional => &mut self.bidi_of_peer,
            Direction::Unidirectional => &mut self.uni_of_peer,
        }
    }
}

#[cfg(test)]
mod tests;
