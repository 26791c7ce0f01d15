//! The records of a connection for telemetry.
//!
//! Request streams receive DATA frames without the connection, so [`RequestStream`](crate::RequestStream) keeps
//! their records.

use courser_telemetry::{Http3Frame, Http3Parameters, Http3Record, Http3StreamType, Record};
use courser_wire::Reader;

use super::control::{decode_origins, integer};
use super::unidirectional::Critical;
use super::{Connection, UniStream};
use crate::frame::{self, FrameType};
use crate::priority::Priority;
use crate::settings::{self, Settings};
use crate::stream_type::StreamType;

impl Connection {
    /// Starts or stops keeping records. Off initially.
    ///
    /// The records start with the settings of both ends and the types of the streams, as far as known. Take them
    /// with [`take_records`](Self::take_records) after each call: at most 256 are kept, and further ones are
    /// only counted.
    pub fn set_recording(&mut self, is_on: bool) {
        if is_on == self.is_recording() {
            return;
        }
        self.records.pending.set_enabled(is_on);
        self.compression.set_recording(is_on);
        self.records.early.clear();
        if is_on {
            self.record_state();
        }
    }

    /// Returns true while records are kept.
    #[inline]
    pub fn is_recording(&self) -> bool {
        self.records.pending.is_enabled()
    }

    /// Returns the records since the last call, in order.
    pub fn take_records(&mut self) -> Vec<Record> {
        self.collect_records();
        self.records.pending.take()
    }

    /// Sets the ID of a stream of this end, for records only.
    pub fn on_stream_opened(&mut self, stream: UniStream, id: u64) {
        self.records.streams[stream as usize] = Some(id);
        self.record(|| stream_type_of(stream, id));
        if stream == UniStream::Control {
            for frame in std::mem::take(&mut self.records.early) {
                self.record_control(|| frame);
            }
        }
    }

    /// Keeps the record that `make` builds, after those of QPACK.
    #[inline]
    pub(super) fn record(&mut self, make: impl FnOnce() -> Http3Record) {
        if self.is_recording() {
            self.collect_records();
            self.records.pending.http3(make);
        }
    }

    /// Records a frame sent on the control stream.
    pub(super) fn record_control(&mut self, make: impl FnOnce() -> Http3Frame) {
        if !self.is_recording() {
            return;
        }
        match self.records.streams[UniStream::Control as usize] {
            Some(stream) => self.record(|| Http3Record::FrameCreated {
                stream,
                frame: make(),
            }),
            None if self.records.early.len() < MAX_EARLY => self.records.early.push(make()),
            None => {}
        }
    }

    /// Records a sent GOAWAY, unless `before` was the last one.
    pub(super) fn record_goaway(&mut self, before: Option<u64>) {
        if let Some(id) = self.goaway.sent().filter(|_| self.goaway.sent() != before) {
            self.record_control(|| Http3Frame::GoAway { id });
        }
    }

    /// Records a frame received on the peer's control stream.
    pub(super) fn record_control_parsed(&mut self, make: impl FnOnce() -> Http3Frame) {
        if self.is_recording()
            && let Some(stream) = self.unidirectional.of(Critical::Control)
        {
            self.record(|| Http3Record::FrameParsed {
                stream,
                frame: make(),
            });
        }
    }

    /// Records the priority of a response.
    pub(super) fn record_priority(&mut self, stream: u64, priority: Priority, by_peer: bool) {
        self.record(|| Http3Record::PriorityUpdated {
            stream,
            new: priority.to_string(),
            by_peer,
        });
    }

    /// Records the type of a stream of the peer.
    pub(super) fn record_stream_type(&mut self, stream: u64, value: u64) {
        self.record(|| {
            let stream_type = match StreamType::from_value(value) {
                StreamType::Control => Http3StreamType::Control,
                StreamType::Push => Http3StreamType::Push,
                StreamType::QpackEncoder => Http3StreamType::QpackEncoder,
                StreamType::QpackDecoder => Http3StreamType::QpackDecoder,
                StreamType::Unknown => Http3StreamType::Other(value),
            };
            Http3Record::StreamTypeSet {
                by_peer: true,
                stream,
                stream_type,
            }
        });
    }

    fn collect_records(&mut self) {
        self.compression.take_records(&mut self.records.pending);
    }

    /// Records earlier events whose result is still in effect.
    fn record_state(&mut self) {
        let parameters = parameters_of(&self.own_settings());
        self.record(|| Http3Record::ParametersSet {
            by_peer: false,
            parameters,
        });
        if let Some(settings) = self.peer.remembered().copied() {
            self.record_restored(&settings);
        }
        if let Some(settings) = self.peer.received().copied() {
            self.record_settings(&settings);
        }
        for stream in UniStream::ALL {
            if let Some(id) = self.records.streams[stream as usize] {
                self.record(|| stream_type_of(stream, id));
            }
        }
        for role in Critical::ALL {
            if let Some(stream) = self.unidirectional.of(role) {
                self.record_stream_type(stream, role.stream_type());
            }
        }
        if self.records.streams[UniStream::Control as usize].is_none() {
            self.record_first_frames();
        }
    }

    /// Records the first frames of the control stream.
    fn record_first_frames(&mut self) {
        let grease = self.grease();
        let others = self.config.extensions.settings();
        let settings = self.own_settings().pairs(others, grease);
        self.record_control(|| Http3Frame::Settings { settings });
        if let Some(seed) = grease {
            self.record_control(|| Http3Frame::Other {
                frame_type: frame::reserved(seed),
                len: 0,
            });
        }
        if self.side.is_server() && !self.config.origins.is_empty() {
            let sizes = self.config.origins.iter().map(|origin| 2 + origin.len());
            let (len, origins) = (sizes.sum::<usize>() as u64, self.config.origins.len());
            self.record_control(|| Http3Frame::Origin { len, origins });
        }
    }

    /// Records the settings that were stored with a session.
    pub(super) fn record_restored(&mut self, settings: &Settings) {
        let parameters = parameters_of(settings);
        self.record(|| Http3Record::ParametersRestored { parameters });
    }

    /// Records the settings of the peer.
    pub(super) fn record_settings(&mut self, settings: &Settings) {
        let parameters = parameters_of(settings);
        self.record(|| Http3Record::ParametersSet {
            by_peer: true,
            parameters,
        });
    }
}

/// Returns the record of a frame on the peer's control stream, whose payload was not validated.
pub(super) fn control_frame(frame_type: FrameType, payload: &[u8]) -> Http3Frame {
    let number = || integer(payload).unwrap_or_default();
    let len = payload.len() as u64;
    match frame_type {
        FrameType::Settings => Http3Frame::Settings {
            settings: settings::pairs_of(payload),
        },
        FrameType::GoAway => Http3Frame::GoAway { id: number() },
        FrameType::MaxPushId => Http3Frame::MaxPushId { push: number() },
        FrameType::CancelPush => Http3Frame::CancelPush { push: number() },
        FrameType::PriorityUpdateRequest => {
            let mut reader = Reader::new(payload);
            Http3Frame::PriorityUpdate {
                stream: reader.varint().unwrap_or_default(),
                // The payload is limited to 256 bytes.
                value: String::from_utf8_lossy(reader.rest()).into_owned(),
            }
        }
        FrameType::Origin => Http3Frame::Origin {
            len,
            origins: decode_origins(payload).map_or(0, |origins| origins.len()),
        },
        FrameType::PriorityUpdatePush => Http3Frame::Other {
            frame_type: frame::PRIORITY_UPDATE_PUSH,
            len,
        },
        FrameType::Claimed(frame_type) => Http3Frame::Other { frame_type, len },
        // Refused on a control stream.
        _ => Http3Frame::Other {
            frame_type: u64::MAX,
            len,
        },
    }
}

fn stream_type_of(stream: UniStream, id: u64) -> Http3Record {
    let stream_type = match stream {
        UniStream::Control => Http3StreamType::Control,
        UniStream::Encoder => Http3StreamType::QpackEncoder,
        UniStream::Decoder => Http3StreamType::QpackDecoder,
    };
    Http3Record::StreamTypeSet {
        by_peer: false,
        stream: id,
        stream_type,
    }
}

const fn parameters_of(settings: &Settings) -> Http3Parameters {
    Http3Parameters {
        max_field_section_size: settings.max_field_section_size,
        max_table_capacity: settings.qpack_max_table_capacity,
        blocked_streams: settings.qpack_blocked_streams,
        extended_connect: settings.enable_connect_protocol,
        datagrams: settings.h3_datagram,
    }
}

/// Largest number of control stream frames that are kept until the stream is open.
const MAX_EARLY: usize = 16;
