//! The connection state that all requests share: settings, QPACK, the control stream, GOAWAY, priorities.

mod blocked;
mod claimed;
mod compression;
mod config;
mod control;
mod datagrams;
mod goaway;
mod outcomes;
mod peer_settings;
mod priorities;
mod recording;
mod records;
mod section_cache;
mod sections;
mod streams;
mod unidirectional;

use std::collections::VecDeque;

use bytes::Bytes;
use courser_base::{Side, Time};
use courser_telemetry::{Http3Frame, Http3Record, Http3StreamType};
use courser_wire::{Direction, StreamId};

use self::compression::Compression;
pub use self::compression::Section;
pub use self::config::Config;
use self::control::ControlReader;
use self::goaway::GoAway;
use self::outcomes::Outcomes;
use self::peer_settings::PeerSettings;
use self::priorities::Priorities;
use self::records::Records;
pub use self::sections::{RequestHead, ResponseHead};
pub use self::streams::UniFate;
use self::unidirectional::Unidirectional;
use crate::budget::FrameBudget;
use crate::error::{Code, Error};
use crate::frame::{self, put_varint};
use crate::priority::Priority;
use crate::settings::Settings;
use crate::stream_type;

/// A unidirectional stream that this end opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UniStream {
    /// The control stream (§6.2.1).
    Control,
    /// The encoder stream (RFC 9204 §4.2).
    Encoder,
    /// The decoder stream (RFC 9204 §4.2).
    Decoder,
}

impl UniStream {
    /// All streams, most urgent first.
    pub const ALL: [Self; 3] = [Self::Control, Self::Encoder, Self::Decoder];
}

/// An event for the application or the driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The peer's settings have arrived.
    Settings(Settings),
    /// The section of a blocked stream can be decoded.
    Unblocked {
        /// The stream that was blocked.
        stream: u64,
    },
    /// The server sent GOAWAY. Requests on this and later streams were not processed and can be repeated
    /// elsewhere.
    GoAway {
        /// The first stream whose request is not processed.
        first_refused: u64,
    },
    /// The client sent GOAWAY. Its pushes do not matter, because this server never pushes, but extensions may end
    /// what they have on the connection.
    ClientGoAway,
    /// The client has changed the priority of a response (RFC 9218 §7).
    Priority {
        /// The request stream of the response.
        stream: u64,
        /// The priority from the PRIORITY_UPDATE frame.
        priority: Priority,
    },
    /// The origins that the server claims for this connection (RFC 9412). They are not verified: the certificate
    /// must be valid for an origin before it is used.
    Origins(Vec<String>),
    /// A frame on the peer's control stream whose type the application has claimed
    /// ([`Extensions::frame`](crate::Extensions::frame)).
    Frame {
        /// The type of the frame.
        frame_type: u64,
        /// The payload, within the claimed length.
        payload: Bytes,
    },
}

/// The state of an HTTP/3 connection, except that of its requests.
///
/// Consumes the bytes of the peer's unidirectional streams and produces those of this end. Each request has its
/// own [`RequestStream`](crate::RequestStream), which needs the connection only for field sections and errors,
/// so that different tasks can read and write different requests.
#[derive(Debug)]
pub struct Connection {
    side: Side,
    config: Config,
    peer: PeerSettings,
    compression: Compression,
    unidirectional: Unidirectional,
    control: ControlReader,
    control_out: Vec<u8>,
    has_begun: [bool; 3],
    goaway: GoAway,
    priorities: Priorities,
    max_push_id: Option<u64>,
    budget: FrameBudget,
    outcomes: Outcomes,
    events: VecDeque<Event>,
    records: Records,
    seed: u64,
}

impl Connection {
    /// Creates the state of a connection that was just established, or on which early data can be sent. The peer
    /// must not be able to predict `seed`.
    pub fn new(side: Side, config: Config, seed: u64, now: Time) -> Self {
        let mut control_out = Vec::new();
        let grease = config.grease.then_some(seed >> 8);
        let settings = settings_of(side, &config);
        settings.encode(&mut control_out, config.extensions.settings(), grease);
        if let Some(seed) = grease {
            frame::encode_header(&mut control_out, frame::reserved(seed), 0);
        }
        if side.is_server() && !config.origins.is_empty() {
            control::encode_origins(&mut control_out, &config.origins);
        }
        Self {
            side,
            peer: PeerSettings::default(),
            compression: Compression::new(&config, seed),
            unidirectional: Unidirectional::default(),
            control: ControlReader::new(side, config.extensions.clone()),
            control_out,
            has_begun: [false; 3],
            goaway: GoAway::default(),
            priorities: Priorities::default(),
            max_push_id: None,
            budget: FrameBudget::new(now),
            outcomes: Outcomes::new(now),
            events: VecDeque::new(),
            records: Records::default(),
            config,
            seed,
        }
    }

    /// Sets the server's settings that were stored with a ticket. They apply to early data, and the server must
    /// not reduce them (§7.2.4.2).
    pub fn remember(&mut self, settings: Settings) {
        self.peer.remember(settings);
        self.record_restored(&settings);
        self.compression.set_peer_limits(&settings);
    }

    /// Returns the peer's settings, or `None` until they arrive.
    pub const fn peer_settings(&self) -> Option<&Settings> {
        self.peer.received()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        if event.is_none() && self.events.capacity() > USUAL_EVENTS {
            // A chunk of the control stream may cause thousands of events, whose memory is not kept.
            self.events = VecDeque::new();
        }
        event
    }

    /// Returns true if there is an [event](Self::poll_event).
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Returns true if bytes wait to be sent on the control or encoder stream.
    pub fn has_urgent(&mut self) -> bool {
        !self.control_out.is_empty() || !self.compression.instructions().is_empty()
    }

    /// Returns true if bytes wait to be sent on the decoder stream.
    pub fn has_answers(&self) -> bool {
        self.compression.has_answers()
    }

    /// Returns true if only Section Acknowledgments wait to be sent on the decoder stream. They may wait until
    /// all messages that have arrived are read, because each one alone costs as much as half a small request.
    /// Insert Count Increments and Stream Cancellations should be sent at once.
    pub fn may_delay_answers(&self) -> bool {
        self.compression.may_delay_answers()
    }

    /// Returns the bytes that wait to be sent on a stream of this end, starting with the stream type. The caller
    /// removes what it sends from the front, and opens the stream when there are bytes for the first time.
    ///
    /// None of the three streams may be closed (§6.2.1, RFC 9204 §4.2).
    pub fn outgoing(&mut self, stream: UniStream) -> &mut Vec<u8> {
        let (index, stream_type, out) = match stream {
            UniStream::Control => (0, stream_type::CONTROL, &mut self.control_out),
            UniStream::Encoder => {
                let out = self.compression.instructions();
                (1, stream_type::QPACK_ENCODER, out)
            }
            UniStream::Decoder => (2, stream_type::QPACK_DECODER, self.compression.answers()),
        };
        if !self.has_begun[index] && !out.is_empty() {
            self.has_begun[index] = true;
            let mut begun = Vec::with_capacity(out.len() + 1);
            put_varint(&mut begun, stream_type);
            begun.append(out);
            *out = begun;
        }
        out
    }

    /// Returns the error for a peer that stopped a stream of this end, which is forbidden.
    pub const fn on_stopped(&self) -> Error {
        Error::connection(
            Code::CLOSED_CRITICAL_STREAM,
            "a critical stream was stopped",
        )
    }

    /// Counts a frame without progress on a request stream (limit K17).
    ///
    /// # Errors
    ///
    /// Returns a connection error if there are too many.
    pub fn on_empty_frame(&mut self, now: Time) -> Result<(), Error> {
        self.budget.spend(now)
    }

    /// Counts a request that ended because of a reset or an error of the peer. No further section of it will be
    /// decoded.
    ///
    /// # Errors
    ///
    /// Returns a connection error if there are too many: opening and cancelling is free for the peer, but costs
    /// the work of a request (limit K270). Requests whose response has started do not count, and offset others.
    /// Nothing counts on a client, because it has chosen to send each request.
    pub fn on_cancelled(&mut self, now: Time, stream: u64) -> Result<(), Error> {
        self.forget(stream);
        self.on_given_up(now, stream)
    }

    /// Counts a request whose response the peer has cancelled. The request was decoded completely.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`on_cancelled`](Self::on_cancelled). Both together count once per request.
    pub fn on_given_up(&mut self, now: Time, stream: u64) -> Result<(), Error> {
        match self.side {
            Side::Server => self.outcomes.on_cancelled(now, stream),
            Side::Client => Ok(()),
        }
    }

    /// Returns false for a new request that must not be processed, because too many were cancelled before their
    /// response. The caller resets and stops it with `H3_REQUEST_REJECTED`. `now` is called only after many
    /// cancellations.
    ///
    /// # Errors
    ///
    /// Returns a connection error if the client continues despite rejections (limit K270).
    pub fn admit_request(&mut self, now: impl FnOnce() -> Time) -> Result<bool, Error> {
        self.outcomes.admit(now)
    }

    /// Records that this end cancels a request, so that no further section of it is decoded.
    pub fn forget(&mut self, stream: u64) {
        self.compression.cancel(stream);
        self.priorities.forget(stream);
    }

    /// Announces that this server is shutting down while it still accepts requests in flight. Call
    /// [`go_away`](Self::go_away) at least a round trip later.
    pub fn announce_going_away(&mut self) {
        let before = self.goaway.sent();
        self.goaway.announce(self.side, &mut self.control_out);
        self.record_goaway(before);
    }

    /// Sends a GOAWAY that excludes requests from the stream `first_refused` on. A client sends 0, because it
    /// accepts no pushes.
    pub fn go_away(&mut self, first_refused: u64) {
        let before = self.goaway.sent();
        self.goaway
            .send_smaller(first_refused, &mut self.control_out);
        self.record_goaway(before);
    }

    /// Sends a GOAWAY that excludes all requests that are not open yet.
    pub fn go_away_after_last(&mut self) {
        let index = self.priorities.opened();
        self.go_away(StreamId::new(Side::Client, Direction::Bidirectional, index).value());
    }

    /// Returns false if a GOAWAY of this end excludes the request on `stream`. The caller resets and stops it
    /// with `H3_REQUEST_REJECTED`.
    pub fn is_served(&self, stream: u64) -> bool {
        self.goaway.is_served(stream)
    }

    /// Returns true if this end has sent a GOAWAY.
    pub const fn goes_away(&self) -> bool {
        self.goaway.sent().is_some()
    }

    /// Returns true if the peer has sent a GOAWAY, after which no request may be sent.
    pub fn peer_goes_away(&self) -> bool {
        self.goaway.is_received()
    }

    /// Returns true if a GOAWAY of the server excludes this request, so that it was not processed.
    pub fn is_refused(&self, stream: u64) -> bool {
        self.side.is_client() && self.goaway.is_refused(stream)
    }

    /// Sets the number of requests that the client may have opened according to the transport's stream limit.
    pub fn set_request_limit(&mut self, streams: u64) {
        self.priorities.set_limit(streams);
    }

    /// Records that a request was opened. Returns the priority of an earlier PRIORITY_UPDATE, which takes
    /// precedence over the `priority` field.
    pub fn on_request_opened(&mut self, stream: u64) -> Option<Priority> {
        self.outcomes.on_opened(stream);
        self.budget.on_request();
        self.record(|| Http3Record::StreamTypeSet {
            by_peer: true,
            stream,
            stream_type: Http3StreamType::Request,
        });
        let priority = self.priorities.on_opened(stream)?;
        self.record_priority(stream, priority, true);
        Some(priority)
    }

    /// Requests that the server changes the priority of a response.
    pub fn update_priority(&mut self, stream: u64, priority: Priority) {
        priorities::encode_update(&mut self.control_out, stream, priority);
        self.record_control(|| Http3Frame::PriorityUpdate {
            stream,
            value: priority.to_string(),
        });
        self.record_priority(stream, priority, false);
    }

    /// Returns the code for closing the connection without an error, sometimes a reserved one (§8.1).
    pub fn closing_code(&self) -> Code {
        if self.config.grease && self.seed.is_multiple_of(4) {
            Code::reserved(self.seed >> 16)
        } else {
            Code::NO_ERROR
        }
    }

    /// Returns the number of bytes of all blocked sections, which their streams hold.
    pub const fn blocked_bytes(&self) -> usize {
        self.compression.blocked_bytes()
    }

    /// Returns the number of bytes held in dynamic tables, buffers and caches of header sections.
    pub fn memory(&self) -> usize {
        self.compression.memory() + self.control_out.len()
    }

    /// Returns the settings that this end announces.
    fn own_settings(&self) -> Settings {
        settings_of(self.side, &self.config)
    }

    /// Returns the seed of reserved values, if they are sent.
    const fn grease(&self) -> Option<u64> {
        if self.config.grease {
            Some(self.seed >> 8)
        } else {
            None
        }
    }

    fn on_settings(&mut self, settings: Settings) -> Result<(), Error> {
        self.peer.receive(settings)?;
        self.compression.set_peer_limits(&settings);
        self.record_settings(&settings);
        self.events.push_back(Event::Settings(settings));
        Ok(())
    }
}

/// Returns the settings that an end of this role announces.
fn settings_of(side: Side, config: &Config) -> Settings {
    Settings {
        qpack_max_table_capacity: u64::from(config.decoder.max_table_capacity),
        qpack_blocked_streams: u64::from(config.decoder.max_blocked_streams),
        max_field_section_size: Some(config.limits.size),
        enable_connect_protocol: config.extended_connect && side.is_server(),
        h3_datagram: config.datagrams,
    }
}

/// Number of events whose memory is kept.
const USUAL_EVENTS: usize = 64;

/// Largest number of bytes that wait for the encoder stream.
const MAX_INSTRUCTIONS: usize = 16 * 1024;

#[cfg(test)]
pub(crate) mod tests;
