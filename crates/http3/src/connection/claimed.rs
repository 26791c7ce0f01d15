//! Streams, frames and settings of extensions that the application implements (RFC 9114 §9).

use bytes::Bytes;
use courser_base::{Side, Time};
use courser_telemetry::{Http3Frame, Http3Record, Http3StreamType};
use courser_wire::Direction;

use super::{Connection, Event, UniFate};
use crate::error::{Code, Error};
use crate::extensions::{Extensions, FrameStream, Group};
use crate::frame::{self, put_varint};

impl Connection {
    /// Returns the extensions of the application.
    pub const fn extensions(&self) -> &Extensions {
        &self.config.extensions
    }

    /// Returns the settings of the peer that this crate does not implement, with their values, in order. Empty
    /// until the peer's SETTINGS arrive, and for the default of
    /// [`Config::extensions`](super::Config::extensions).
    ///
    /// There are at most 64, including reserved ones (RFC 9114 §7.2.4.1).
    pub fn peer_other_settings(&self) -> &[(u64, u64)] {
        &self.peer.others
    }

    /// Returns true if the peer supports a group: it has announced one of the settings of
    /// [`Extensions::announced_by`], or none is required. `None` until its SETTINGS arrive.
    pub fn peer_supports(&self, group: Group) -> Option<bool> {
        self.peer.received()?;
        Some(self.peer.unsupported & bit(group) == 0)
    }

    /// Returns the settings of [`Extensions::announced_by`] that the peer has sent with a value other than 0,
    /// with their values, in the order of the group. Empty until its SETTINGS arrive.
    pub fn peer_announced(&self, group: Group) -> impl Iterator<Item = (u64, u64)> {
        let announcements = self.config.extensions.announcements(group).iter();
        announcements.filter_map(|&id| Some((id, self.peer.announced_value(id)?)))
    }

    /// Finds out which groups the peer supports, because its SETTINGS have arrived.
    pub(super) fn on_other_settings(&mut self, others: Vec<(u64, u64)>) {
        self.peer.others = others;
        for group in self.config.extensions.groups() {
            let is_required = !self.config.extensions.announcements(group).is_empty();
            if is_required && self.peer_announced(group).next().is_none() {
                self.peer.unsupported |= bit(group);
            }
        }
    }

    /// Sends a frame on the control stream. The type should be [claimed](Extensions::frame), and the peer should
    /// support it (RFC 9114 §9).
    pub fn send_frame(&mut self, frame_type: u64, payload: &[u8]) {
        frame::encode_header(&mut self.control_out, frame_type, payload.len());
        self.control_out.extend_from_slice(payload);
        let len = payload.len() as u64;
        self.record_control(|| Http3Frame::Other { frame_type, len });
    }

    /// Encodes a frame of an extension with its type and length, for a request stream (RFC 9114 §9).
    pub fn encode_frame(frame_type: u64, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(payload.len() + frame::LONGEST_HEADER);
        frame::encode_header(&mut out, frame_type, payload.len());
        out.extend_from_slice(payload);
        out
    }

    /// Encodes a stream type or the signal at the start of a bidirectional stream.
    pub fn encode_stream_type(stream_type: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(8);
        put_varint(&mut out, stream_type);
        out
    }

    /// Records that the client has opened a bidirectional stream, whose first integer has not arrived. Only for servers.
    pub fn on_stream_arrived(&mut self, stream: u64) {
        self.priorities.on_arrived(stream);
    }

    /// Records that a bidirectional stream of the client begins with an integer that the application has claimed. Only for
    /// servers; every other stream is for [`on_request_opened`](Self::on_request_opened).
    pub fn on_claimed_arrived(&mut self, stream: u64, signal: u64) {
        self.priorities.on_arrived(stream);
        self.priorities.forget(stream);
        self.record(|| Http3Record::StreamTypeSet {
            by_peer: true,
            stream,
            stream_type: Http3StreamType::Other(signal),
        });
    }

    /// Checks that the peer may open a bidirectional stream. A server may do so only for an extension (§6.1).
    ///
    /// # Errors
    ///
    /// Returns a connection error on a client whose application claims no such streams.
    pub fn check_bidirectional(&self) -> Result<(), Error> {
        match self.side {
            Side::Server => Ok(()),
            Side::Client if self.config.extensions.has_any_bidirectional() => Ok(()),
            Side::Client => Err(BIDIRECTIONAL_OF_SERVER),
        }
    }

    /// Processes bytes of a bidirectional stream that a server has opened, and its end if `fin` is true, until
    /// the result is not [`UniFate::Read`]. Only for clients.
    ///
    /// # Errors
    ///
    /// Returns a connection error if the application does not claim streams with this first integer (§6.1), or
    /// if the stream ends before it.
    pub fn handle_bidirectional(
        &mut self,
        stream: u64,
        mut chunk: Bytes,
        fin: bool,
    ) -> Result<UniFate, Error> {
        match self.unidirectional.read_type(stream, &mut chunk) {
            Some((stream_type, len)) if self.is_claimed(stream_type, Direction::Bidirectional) => {
                self.record(|| Http3Record::StreamTypeSet {
                    by_peer: true,
                    stream,
                    stream_type: Http3StreamType::Other(stream_type),
                });
                Ok(UniFate::Claimed {
                    stream_type,
                    len,
                    first: chunk,
                })
            }
            None if !fin => Ok(UniFate::Read),
            _ => Err(BIDIRECTIONAL_OF_SERVER),
        }
    }

    /// Processes the reset of such a stream before it is claimed.
    ///
    /// # Errors
    ///
    /// Returns a connection error if there are too many (limit K17).
    pub fn handle_bidirectional_reset(&mut self, now: Time, stream: u64) -> Result<(), Error> {
        self.unidirectional.forget(stream);
        self.budget.spend(now)
    }

    /// Counts a claimed stream that is refused because the application does not accept it (attack A122).
    ///
    /// # Errors
    ///
    /// Returns a connection error if there are too many (limit K17).
    pub fn on_claimed_refused(&mut self, now: Time) -> Result<(), Error> {
        self.budget.spend(now)
    }

    pub(super) fn is_claimed(&self, value: u64, direction: Direction) -> bool {
        let extensions = &self.config.extensions;
        let group = match direction {
            Direction::Unidirectional => extensions.unidirectional(value),
            Direction::Bidirectional => extensions.bidirectional(value),
        };
        group.is_some_and(|group| self.peer_supports(group) != Some(false))
    }

    /// Passes a frame to the application, whose queue is bounded (limit K203). Counts the frame if the
    /// application receives no frames of this peer.
    pub(super) fn on_claimed_frame(
        &mut self,
        now: Time,
        frame_type: u64,
        payload: Bytes,
    ) -> Result<(), Error> {
        let extensions = &self.config.extensions;
        let group = extensions.group_of_frame(frame_type, FrameStream::Control);
        if group.and_then(|group| self.peer_supports(group)) != Some(true) {
            return self.budget.spend(now);
        }
        if self.events.len() >= MAX_WAITING {
            return Err(Error::connection(
                Code::EXCESSIVE_LOAD,
                "too many unread frames of an extension",
            ));
        }
        let event = Event::Frame {
            frame_type,
            payload,
        };
        self.events.push_back(event);
        Ok(())
    }
}

/// Returns the bit of a group.
const fn bit(group: Group) -> u8 {
    1 << group.index()
}

const BIDIRECTIONAL_OF_SERVER: Error = Error::connection(
    Code::STREAM_CREATION_ERROR,
    "a bidirectional stream of a server",
);

/// Largest number of waiting events when a claimed frame arrives, equal to the number of frames in the queue of
/// the application (limit K203).
const MAX_WAITING: usize = 256;
