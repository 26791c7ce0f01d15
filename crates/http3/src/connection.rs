//! What all requests of a connection share: settings, compression, control.

mod blocked;
mod control;
mod datagrams;
mod goaway;
mod priorities;
mod repeats;
mod sections;
mod unidirectional;

use std::collections::VecDeque;

use courser_base::{Side, Time};
use courser_qpack::{Decoder, DecoderLimits, Encoder, EncoderLimits};
use http::{Request, Response};

use self::blocked::BlockedSections;
use self::control::ControlReader;
use self::goaway::GoAway;
use self::priorities::Priorities;
use self::repeats::Repeats;
pub use self::sections::{RequestHead, ResponseHead, Section};
pub use self::unidirectional::UniFate;
use self::unidirectional::Unidirectional;
use crate::budget::{Budget, InstructionBudget};
use crate::error::{Code, Error};
use crate::fields::{FieldLimits, LineCache};
use crate::frame::{self, put_varint};
use crate::priority::Priority;
use crate::settings::Settings;
use crate::stream_type;

/// How a connection behaves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Bounds on what the peer may send as head or trailers.
    pub limits: FieldLimits,
    /// What the decoder allows the peer.
    pub decoder: DecoderLimits,
    /// Bytes of sections that may wait for the table at a time; a message whose section would be
    /// more is given up. 64 KiB.
    pub blocked_bytes: usize,
    /// What the encoder uses of what the peer allows.
    pub encoder: EncoderLimits,
    /// Offer extended CONNECT (RFC 9220); for servers.
    pub extended_connect: bool,
    /// Offer HTTP Datagrams (RFC 9297). The transport must be ready to receive DATAGRAM frames.
    pub datagrams: bool,
    /// Send settings, frames and codes that mean nothing, for peers not to forget that such exist.
    pub grease: bool,
    /// Origins that the connection may be used for, RFC 9412; for servers. Without any the client
    /// decides by the certificate.
    pub origins: Vec<String>,
}

impl Config {
    /// What suits our role: 4 KiB of table and 16 blocked streams either way.
    pub fn new(side: Side) -> Self {
        Self {
            limits: match side {
                Side::Client => FieldLimits::RESPONSE,
                Side::Server => FieldLimits::REQUEST,
            },
            decoder: DecoderLimits {
                max_table_capacity: 4096,
                max_blocked_streams: 16,
            },
            blocked_bytes: 64 * 1024,
            encoder: EncoderLimits {
                max_table_capacity: 4096,
                max_blocked_streams: 16,
            },
            extended_connect: false,
            datagrams: false,
            grease: true,
            origins: Vec::new(),
        }
    }
}

/// A unidirectional stream of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UniStream {
    /// §6.2.1.
    Control,
    /// RFC 9204 §4.2: instructions of our encoder.
    Encoder,
    /// RFC 9204 §4.2: instructions of our decoder.
    Decoder,
}

impl UniStream {
    /// All of them, the most urgent first.
    pub const ALL: [Self; 3] = [Self::Control, Self::Encoder, Self::Decoder];
}

/// Something that the application or the driver should know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The peer's settings have arrived.
    Settings(Settings),
    /// A section can be decoded that had to wait for the table.
    Unblocked {
        /// Its stream.
        stream: u64,
    },
    /// The peer goes away. On a client: requests from this stream on have not been processed and
    /// can be sent elsewhere. On a server: pushes, of which there are none.
    GoAway {
        /// The first stream that will not be served.
        first_refused: u64,
    },
    /// The client wants a response with another priority, RFC 9218 §7.
    Priority {
        /// The stream of its request.
        stream: u64,
        /// From now on.
        priority: Priority,
    },
    /// The origins that the server says to serve on this connection, RFC 9412. As they were sent:
    /// each has to be covered by the certificate before it is believed.
    Origins(Vec<String>),
}

/// The part of a connection that is not one request.
///
/// Consumes the bytes of the peer's unidirectional streams and produces those of ours. Each request
/// has a [`RequestStream`](crate::RequestStream) of its own, which needs the connection only for
/// field sections and errors, so different tasks can read and write different requests.
#[derive(Debug)]
pub struct Connection {
    side: Side,
    config: Config,
    peer_settings: Option<Settings>,
    /// Settings that a ticket remembers, which those that arrive must not fall below.
    remembered: Option<Settings>,
    encoder: Encoder,
    decoder: Decoder,
    blocked: BlockedSections,
    cache: LineCache,
    requests: Repeats<Request<()>>,
    responses: Repeats<Response<()>>,
    /// Of the section that was decoded last, if it may be kept.
    decoded_size: Option<u64>,
    section: Vec<u8>,
    unidirectional: Unidirectional,
    control: ControlReader,
    control_out: Vec<u8>,
    has_begun: [bool; 3],
    /// The decoder stream has more to send than acknowledgments of sections.
    has_prompt_answers: bool,
    goaway: GoAway,
    priorities: Priorities,
    max_push_id: Option<u64>,
    budget: Budget,
    instructions: InstructionBudget,
    /// The request that was counted as given up last: to reset and to stop it is one thing.
    given_up: Option<u64>,
    events: VecDeque<Event>,
    seed: u64,
}

impl Connection {
    /// A connection that has just been established, or that early data can be sent on. `seed` is
    /// nobody's business outside.
    pub fn new(side: Side, config: Config, seed: u64, now: Time) -> Self {
        let mut control_out = Vec::new();
        let grease = config.grease.then_some(seed >> 8);
        let settings = Settings {
            qpack_max_table_capacity: u64::from(config.decoder.max_table_capacity),
            qpack_blocked_streams: u64::from(config.decoder.max_blocked_streams),
            max_field_section_size: Some(config.limits.size),
            enable_connect_protocol: config.extended_connect && side.is_server(),
            h3_datagram: config.datagrams,
        };
        settings.encode(&mut control_out, grease);
        if let Some(seed) = grease {
            frame::encode_header(&mut control_out, frame::reserved(seed), 0);
        }
        if side.is_server() && !config.origins.is_empty() {
            control::encode_origins(&mut control_out, &config.origins);
        }
        let mut encoder = Encoder::new(config.encoder, seed);
        // A peer that takes no instructions, and claims to have them, gets no more of them.
        encoder.set_credit(MOST_INSTRUCTIONS);
        Self {
            side,
            peer_settings: None,
            remembered: None,
            encoder,
            decoder: Decoder::new(config.decoder),
            blocked: BlockedSections::default(),
            cache: LineCache::default(),
            requests: Repeats::default(),
            responses: Repeats::default(),
            decoded_size: None,
            section: Vec::new(),
            unidirectional: Unidirectional::default(),
            control: ControlReader::new(side),
            control_out,
            has_begun: [false; 3],
            has_prompt_answers: false,
            goaway: GoAway::default(),
            priorities: Priorities::default(),
            max_push_id: None,
            budget: Budget::new(now),
            instructions: InstructionBudget::new(),
            given_up: None,
            events: VecDeque::new(),
            config,
            seed,
        }
    }

    /// Settings of the server as a ticket remembers them: they hold for early data, and the server
    /// must not fall below them (§7.2.4.2).
    pub fn remember(&mut self, settings: Settings) {
        self.remembered = Some(settings);
        self.use_limits(&settings);
    }

    /// The peer's settings; `None` until they arrive.
    pub const fn peer_settings(&self) -> Option<&Settings> {
        self.peer_settings.as_ref()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// True when there is an [event](Self::poll_event).
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Returns true if something waits to leave on our control stream or that of the encoder.
    pub fn has_urgent(&mut self) -> bool {
        !self.control_out.is_empty() || !self.encoder.instructions().is_empty()
    }

    /// Returns true if something waits to leave on the stream of our decoder.
    pub fn has_answers(&self) -> bool {
        self.decoder.has_answers()
    }

    /// Returns true if only acknowledgments of sections wait on the stream of our decoder. They may
    /// wait until all messages that have arrived were read: each alone would cost as much as half a
    /// small request. Insert counts and cancellations should leave at once.
    pub fn may_delay_answers(&self) -> bool {
        !self.has_prompt_answers && self.decoder.has_answers()
    }

    /// Bytes that wait to leave on one of our streams; whoever sends them takes them from the
    /// front. A stream is to be opened when there is something for it for the first time.
    ///
    /// Its type comes first. None of the three may ever be closed (§6.2.1, RFC 9204 §4.2).
    pub fn outgoing(&mut self, stream: UniStream) -> &mut Vec<u8> {
        let (index, stream_type, out) = match stream {
            UniStream::Control => (0, stream_type::CONTROL, &mut self.control_out),
            UniStream::Encoder => (1, stream_type::QPACK_ENCODER, self.encoder.instructions()),
            UniStream::Decoder => {
                self.has_prompt_answers = false;
                (2, stream_type::QPACK_DECODER, self.decoder.answers())
            }
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

    /// Says how much more the encoder stream may carry, RFC 9204 §2.1.3; more than 16 KiB never
    /// wait.
    pub fn set_encoder_credit(&mut self, bytes: usize) {
        self.encoder.set_credit(bytes.min(MOST_INSTRUCTIONS));
    }

    /// Says that the peer has stopped one of our streams, which it must not.
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
    /// Returns an error of the connection when there are too many.
    pub fn on_empty_frame(&mut self, now: Time) -> Result<(), Error> {
        self.budget.spend(now)
    }

    /// A request was cancelled, by the peer's reset or because of a mistake of the peer's: nothing
    /// of it will be decoded any more.
    ///
    /// # Errors
    ///
    /// Of the connection, when that happens too often: opening and cancelling costs the peer
    /// nothing and us a request.
    pub fn on_cancelled(&mut self, now: Time, stream: u64) -> Result<(), Error> {
        self.forget(stream);
        self.on_given_up(now, stream)
    }

    /// The peer wants no answer to a request any more, all of which was decoded.
    ///
    /// # Errors
    ///
    /// As of [`on_cancelled`](Self::on_cancelled), with which it counts as one.
    pub fn on_given_up(&mut self, now: Time, stream: u64) -> Result<(), Error> {
        if self.given_up.replace(stream) == Some(stream) {
            return Ok(());
        }
        self.budget.spend(now)
    }

    /// We cancel a request: nothing of it will be decoded any more.
    pub fn forget(&mut self, stream: u64) {
        self.decoder.cancel(stream);
        self.has_prompt_answers |= self.decoder.has_answers();
        self.blocked.remove(stream);
        self.priorities.forget(stream);
    }

    /// The code for closing a connection when nothing is wrong: now and then one that means
    /// nothing (§8.1).
    pub fn closing_code(&self) -> Code {
        if self.config.grease && self.seed.is_multiple_of(4) {
            Code::reserved(self.seed >> 16)
        } else {
            Code::NO_ERROR
        }
    }

    /// Bytes of sections that wait for the table, which those who wait keep.
    pub const fn blocked_bytes(&self) -> usize {
        self.blocked.bytes()
    }

    /// Bytes held in tables and buffers, and of heads that are kept for others like them.
    pub fn memory(&self) -> usize {
        let kept = self.requests.memory() + self.responses.memory();
        self.encoder.memory() + self.decoder.memory() + self.control_out.len() + kept
    }

    fn use_limits(&mut self, settings: &Settings) {
        self.encoder.set_peer_limits(
            settings.qpack_max_table_capacity,
            settings.qpack_blocked_streams,
        );
    }

    fn on_settings(&mut self, settings: Settings) -> Result<(), Error> {
        if let Some(remembered) = &self.remembered {
            check_remembered(remembered, &settings)?;
        } else {
            self.use_limits(&settings);
        }
        self.peer_settings = Some(settings);
        self.events.push_back(Event::Settings(settings));
        Ok(())
    }
}

/// Bytes that wait for the encoder stream.
const MOST_INSTRUCTIONS: usize = 16 * 1024;

/// §7.2.4.2, RFC 9204 §3.2.3, RFC 9297 §2.1.1.
fn check_remembered(remembered: &Settings, new: &Settings) -> Result<(), Error> {
    let size = |settings: &Settings| settings.max_field_section_size.unwrap_or(u64::MAX);
    let is_lower = size(new) < size(remembered)
        || new.qpack_blocked_streams < remembered.qpack_blocked_streams
        || (remembered.enable_connect_protocol && !new.enable_connect_protocol)
        || (remembered.h3_datagram && !new.h3_datagram)
        || (remembered.qpack_max_table_capacity != 0
            && new.qpack_max_table_capacity != remembered.qpack_max_table_capacity);
    if is_lower {
        return Err(Error::connection(
            Code::SETTINGS_ERROR,
            "settings below those that early data was sent with",
        ));
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
