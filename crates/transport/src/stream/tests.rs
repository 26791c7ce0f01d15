mod accounting;
mod attacks;
mod deadlines;
mod events;
mod exhaustive;
mod fates;
mod many;
mod rates;
mod reset_at;
mod resize;
mod rules;
mod sending;
mod transfer;
mod watching;

use std::time::Duration;

use courser_wire::frame::{self, Frames};
use courser_wire::{Frame, TransportErrorCode};

use super::event::Stored;
use super::*;
use crate::build::packet_builder::PacketBuilder;
use crate::error::TransportError;
use crate::space::sent::{FrameLists, SentFrame, SentFrames};

const BIDI: Direction = Direction::Bidirectional;
const UNI: Direction = Direction::Unidirectional;
const RTT: Duration = Duration::from_millis(10);
const NOW: Time = Time::ZERO;
/// Room for frames in a usual packet.
const ROOM: usize = 1200;

/// The streams of one end, with the records that a connection would keep for them.
struct End {
    streams: Streams,
    lists: FrameLists,
    now: Time,
}

/// A packet that was sent: its bytes, and the record for its fate.
struct Flying {
    bytes: Vec<u8>,
    frames: SentFrames,
}

/// Returns the event of a STOP_SENDING frame.
fn stopped(id: StreamId, code: u64, was_finished: bool) -> StreamEvent {
    StreamEvent::Stopped {
        id,
        code,
        was_finished,
    }
}

impl End {
    /// Creates an end whose peer allows the limits of `config`.
    fn new(side: Side, config: &StreamsConfig) -> Self {
        let mut end = Self::without_parameters(side, config);
        end.streams.on_peer_parameters(&parameters(config));
        end
    }

    fn without_parameters(side: Side, config: &StreamsConfig) -> Self {
        let pool = ChunkPool::new(16);
        let streams = Streams::new(side, config.clone(), pool, [7; 16]);
        Self {
            streams,
            lists: FrameLists::default(),
            now: NOW,
        }
    }

    fn client() -> Self {
        Self::new(Side::Client, &config())
    }

    fn server() -> Self {
        Self::new(Side::Server, &config())
    }

    /// Sends one packet with up to `room` bytes of frames.
    fn send_within(&mut self, room: usize) -> Flying {
        let mut bytes = vec![0; room];
        let mut packet = PacketBuilder::new(&mut bytes, &mut self.lists);
        self.streams
            .write_control_frames(self.now, RTT, &mut packet);
        self.streams.write_stream_frames(&mut packet);
        let (len, frames) = packet.finish();
        bytes.truncate(len);
        Flying { bytes, frames }
    }

    /// Sends one packet, if there is anything to send.
    fn send(&mut self) -> Option<Flying> {
        let wanted = self.streams.has_frames_to_send();
        let flying = self.send_within(ROOM);
        assert_eq!(
            wanted,
            !flying.bytes.is_empty(),
            "has_frames_to_send() says {wanted}"
        );
        wanted.then_some(flying)
    }

    /// Sends everything without any acknowledgement.
    fn send_all(&mut self) -> Vec<Flying> {
        std::iter::from_fn(|| self.send()).collect()
    }

    fn on_acked(&mut self, flying: &Flying) {
        for frame in flying.sent(&self.lists) {
            fates::on_acked(&mut self.streams, frame);
        }
    }

    fn on_lost(&mut self, flying: &Flying) {
        for frame in flying.sent(&self.lists) {
            fates::on_lost(&mut self.streams, frame);
        }
    }

    /// Sends everything and acknowledges it, until nothing is left to send.
    fn send_and_ack_all(&mut self) -> Vec<Flying> {
        let mut all = Vec::new();
        while let Some(flying) = self.send() {
            self.on_acked(&flying);
            all.push(flying);
        }
        all
    }

    /// Receives a packet. Returns false if a frame was refused, so that it must not be
    /// acknowledged.
    fn receive(&mut self, flying: &Flying) -> Result<bool, TransportError> {
        let mut is_kept = true;
        for frame in flying.frames() {
            is_kept &= self.on_frame(frame)? == Stored::Kept;
        }
        Ok(is_kept)
    }

    fn on_frame(&mut self, frame: Frame<'_>) -> Result<Stored, TransportError> {
        let streams = &mut self.streams;
        match frame {
            Frame::Stream(frame) => {
                return streams.on_stream_frame(self.now, &frame).map(stored);
            }
            Frame::ResetStream(frame) => streams.on_reset_stream_frame(frame),
            Frame::ResetStreamAt(frame) => streams.on_reset_stream_at_frame(frame),
            Frame::StopSending(frame) => streams.on_stop_sending_frame(frame),
            Frame::MaxData(frame) => streams.on_max_data_frame(frame).map(drop),
            Frame::MaxStreamData(frame) => streams.on_max_stream_data_frame(frame).map(drop),
            Frame::MaxStreams(frame) => streams.on_max_streams_frame(frame).map(drop),
            Frame::DataBlocked(frame) => streams.on_data_blocked_frame(self.now, RTT, frame),
            Frame::StreamDataBlocked(frame) => {
                streams.on_stream_data_blocked_frame(self.now, RTT, frame)
            }
            Frame::StreamsBlocked(frame) => streams.on_streams_blocked_frame(self.now, RTT, frame),
            other => panic!("not a frame about streams: {other:?}"),
        }
        .map(|()| Stored::Kept)
    }

    fn stream(&mut self, id: StreamId, offset: u64, data: &[u8]) -> Result<Stored, Code> {
        let frame = frame::Stream {
            id,
            offset,
            data,
            fin: false,
        };
        code(self.streams.on_stream_frame(self.now, &frame).map(stored))
    }

    fn fin(&mut self, id: StreamId, offset: u64, data: &[u8]) -> Result<Stored, Code> {
        let frame = frame::Stream {
            id,
            offset,
            data,
            fin: true,
        };
        code(self.streams.on_stream_frame(self.now, &frame).map(stored))
    }

    fn reset_stream(&mut self, id: StreamId, error_code: u64, final_size: u64) -> Result<(), Code> {
        let frame = frame::ResetStream {
            id,
            error_code,
            final_size,
        };
        code(self.streams.on_reset_stream_frame(frame))
    }

    fn stop_sending(&mut self, id: StreamId, error_code: u64) -> Result<(), Code> {
        code(
            self.streams
                .on_stop_sending_frame(frame::StopSending { id, error_code }),
        )
    }

    fn max_stream_data(&mut self, id: StreamId, limit: u64) -> Result<(), Code> {
        code(
            self.streams
                .on_max_stream_data_frame(frame::MaxStreamData { id, limit })
                .map(drop),
        )
    }

    fn max_data(&mut self, limit: u64) {
        self.streams
            .on_max_data_frame(frame::MaxData { limit })
            .unwrap();
    }

    fn stream_data_blocked(&mut self, id: StreamId) -> Result<(), Code> {
        let frame = frame::StreamDataBlocked { id, limit: 0 };
        code(
            self.streams
                .on_stream_data_blocked_frame(self.now, RTT, frame),
        )
    }

    fn max_streams(&mut self, direction: Direction, limit: u64) -> Result<(), Code> {
        code(
            self.streams
                .on_max_streams_frame(frame::MaxStreams { direction, limit })
                .map(drop),
        )
    }

    fn read(&mut self, id: StreamId, max: usize) -> Result<Option<Vec<u8>>, ReadError> {
        let mut out = vec![0; max];
        let len = self.streams.read(id, &mut out)?;
        Ok(len.map(|len| out[..len].to_vec()))
    }

    fn events(&mut self) -> Vec<StreamEvent> {
        std::iter::from_fn(|| self.streams.poll_event()).collect()
    }
}

impl Flying {
    fn frames(&self) -> impl Iterator<Item = Frame<'_>> {
        Frames::new(&self.bytes).map(|frame| frame.expect("we write what can be read"))
    }

    fn sent(&self, lists: &FrameLists) -> Vec<SentFrame> {
        let mut sent = Vec::new();
        self.frames.for_each(lists, |frame| sent.push(frame));
        sent
    }
}

type Code = TransportErrorCode;

/// Returns whether the content of a frame is kept.
fn stored(outcome: StreamOutcome) -> Stored {
    match outcome {
        StreamOutcome::Fresh | StreamOutcome::Known => Stored::Kept,
        StreamOutcome::Refused => Stored::Refused,
    }
}

fn code<T>(result: Result<T, TransportError>) -> Result<T, Code> {
    result.map_err(|error| error.code)
}

/// Returns limits small enough to be reached by hand.
fn config() -> StreamsConfig {
    StreamsConfig {
        max_bidi: 10,
        max_uni: 5,
        stream_receive_window: 100,
        stream_receive_window_max: 100,
        receive_window: 250,
        receive_window_max: 250,
        unsent_limit: 1000,
        send_buffer_max: 2000,
        max_gaps_per_stream: 4,
        max_gaps: 6,
        reset_stream_at: true,
        are_fair: true,
    }
}

fn parameters(config: &StreamsConfig) -> TransportParameters {
    TransportParameters {
        initial_max_data: config.receive_window,
        initial_max_stream_data_bidi_local: config.stream_receive_window,
        initial_max_stream_data_bidi_remote: config.stream_receive_window,
        initial_max_stream_data_uni: config.stream_receive_window,
        initial_max_streams_bidi: config.max_bidi,
        initial_max_streams_uni: config.max_uni,
        reset_stream_at: config.reset_stream_at,
        ..TransportParameters::default()
    }
}

fn client_bidi(index: u64) -> StreamId {
    StreamId::new(Side::Client, BIDI, index)
}

fn client_uni(index: u64) -> StreamId {
    StreamId::new(Side::Client, UNI, index)
}

fn server_uni(index: u64) -> StreamId {
    StreamId::new(Side::Server, UNI, index)
}

/// Returns all frames of all packets, without their data.
fn kinds(packets: &[Flying]) -> Vec<String> {
    let describe = |frame: Frame<'_>| match frame {
        Frame::Stream(frame) => {
            let fin = if frame.fin { " FIN" } else { "" };
            format!(
                "STREAM {} {}+{}{fin}",
                frame.id,
                frame.offset,
                frame.data.len()
            )
        }
        Frame::ResetStream(frame) => {
            format!(
                "RESET_STREAM {} {} {}",
                frame.id, frame.error_code, frame.final_size
            )
        }
        Frame::StopSending(frame) => format!("STOP_SENDING {} {}", frame.id, frame.error_code),
        Frame::MaxData(frame) => format!("MAX_DATA {}", frame.limit),
        Frame::MaxStreamData(frame) => format!("MAX_STREAM_DATA {} {}", frame.id, frame.limit),
        Frame::MaxStreams(frame) => format!("MAX_STREAMS {:?} {}", frame.direction, frame.limit),
        Frame::DataBlocked(frame) => format!("DATA_BLOCKED {}", frame.limit),
        Frame::StreamDataBlocked(frame) => {
            format!("STREAM_DATA_BLOCKED {} {}", frame.id, frame.limit)
        }
        Frame::StreamsBlocked(frame) => {
            format!("STREAMS_BLOCKED {:?} {}", frame.direction, frame.limit)
        }
        other => format!("{other:?}"),
    };
    packets
        .iter()
        .flat_map(Flying::frames)
        .map(describe)
        .collect()
}
