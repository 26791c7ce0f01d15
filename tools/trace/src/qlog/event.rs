//! Events of all drafts in one form.

mod decode;
mod fields;
mod frame;
mod frames;
mod raw;
mod values;

use std::ops::RangeInclusive;

pub(crate) use self::decode::Clock;
pub use self::frame::{Closed, Frame, Span};
pub(crate) use self::raw::Columns;
pub use self::raw::RawEvent;

/// An event of a trace.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// The line where the event begins, counted from 1. In a plain file, the number of the event.
    pub line: u64,
    /// Seconds since the first event of the trace.
    pub time: f64,
    /// The kind of event, with its data.
    pub kind: EventKind,
}

/// The kind of an event, with its data. Numbers are in base units: seconds, bytes, bits per
/// second.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum EventKind {
    /// A packet was sent: `packet_sent`.
    PacketSent(Packet),
    /// A packet was received: `packet_received`.
    PacketReceived(Packet),
    /// A packet was dropped: `packet_dropped`.
    PacketDropped {
        /// The reason, spelled as in the trace.
        trigger: Option<String>,
        /// The size in bytes, if the trace records it.
        len: Option<u64>,
    },
    /// A packet was declared lost: `packet_lost`.
    PacketLost(Lost),
    /// A packet declared lost was acknowledged after all: `spurious_loss`.
    SpuriousLoss,
    /// Recovery metrics changed: `recovery_metrics_updated`, or `metrics_updated` before
    /// quic-events-08.
    Metrics(Metrics),
    /// Congestion control changed its state: `congestion_state_updated`.
    CongestionState {
        /// The new state, spelled as in the trace.
        new: String,
    },
    /// The connection changed its state: `connection_state_updated`.
    ConnectionState {
        /// The new state. Older spellings of a state become the current one.
        new: String,
    },
    /// The connection was closed: `connection_closed`.
    Closed(Closed),
    /// The limit on sending changed: `connection_data_blocked_updated`.
    Limited {
        /// The limit, spelled as in the trace; `None` if nothing limits sending.
        reason: Option<String>,
    },
    /// A probe timeout expired: `timer_updated` or `loss_timer_updated`.
    ProbeTimeout,
    /// The path MTU changed: `mtu_updated`.
    Mtu {
        /// The new UDP payload size in bytes.
        new: u64,
    },
    /// The trace has a gap, because its writer was too slow: `records_dropped`.
    RecordsDropped {
        /// The number of records missing.
        records: u64,
    },
    /// The transport parameters of one end became known: `parameters_set`.
    Parameters(Parameters),
    /// Recovery was configured: `recovery_parameters_set`, or `parameters_set` of the category
    /// `recovery` before quic-events-08.
    RecoveryParameters {
        /// The congestion controller, if the trace names it.
        controller: Option<String>,
    },
    /// The state of ECN validation changed: `ecn_state_updated`.
    EcnState {
        /// The new state: `testing`, `unknown`, `failed` or `capable`.
        new: String,
    },
    /// An optional feature of packets was given up, because packets with it do not pass the path, or
    /// it is used again: `path_feature_updated`.
    PathFeature {
        /// The feature: `batches`, `ecn` or `cleared_quic_bit`.
        feature: String,
        /// True if the feature is used again, and false if it was given up.
        is_used: bool,
    },
    /// A path changed its state: `migration_state_updated`.
    PathState {
        /// The new state: `probing_started`, `migration_complete`...
        new: String,
    },
    /// The application protocol was negotiated: `alpn_information`.
    Protocol {
        /// The name of the protocol: `h3`.
        name: String,
    },
    /// A frame of HTTP/3 was sent or received: `frame_created` or `frame_parsed` of the category `http3`,
    /// which was `http` or `h3` in older drafts.
    Http3Frame {
        /// True if it was received.
        is_received: bool,
        /// The type, spelled as in the trace: `headers`, `data`, `settings`...
        frame_type: String,
    },
    /// A stream became blocked on the dynamic table of QPACK, or is not blocked any more:
    /// `qpack:stream_state_updated`.
    QpackStream {
        /// The ID of the stream that carries the header section.
        stream: u64,
        /// True if it is blocked now.
        is_blocked: bool,
    },
    /// An event that the analysis does not use, or whose fields are missing.
    Other {
        /// The name of the event, without its category.
        name: String,
    },
}

/// A packet number space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Space {
    /// The space of Initial packets.
    Initial,
    /// The space of Handshake packets.
    Handshake,
    /// The space of 0-RTT and 1-RTT packets.
    Application,
}

/// A packet that was sent or received.
#[derive(Clone, PartialEq, Debug)]
pub struct Packet {
    /// The type, spelled as in the trace: `initial`, `handshake`, `0RTT`, `1RTT`, `retry`...
    pub packet_type: String,
    /// The packet number. Retry and Version Negotiation packets have none.
    pub number: Option<u64>,
    /// Bytes on the wire; 0 if the trace does not record them.
    pub len: u64,
    /// Spans of streams that the packet carries.
    pub streams: Vec<Span>,
    /// Packet numbers acknowledged by its ACK frames.
    pub acked: Vec<RangeInclusive<u64>>,
    /// The frames of the packet in the order of the trace.
    pub frames: Vec<Frame>,
    /// True if the packet holds a frame other than ACK, PADDING and CONNECTION_CLOSE, so that it
    /// must be acknowledged.
    pub ack_eliciting: bool,
}

impl Packet {
    /// Returns the end that closes the connection and the error, if the packet has a CONNECTION_CLOSE frame. `is_sent`
    /// is true for a packet that the end of the trace sent.
    pub fn close(&self, is_sent: bool) -> Option<Closed> {
        let frames = self.frames.iter();
        let mut closes = frames.filter_map(|frame| match frame {
            Frame::ConnectionClose(closed) => Some(closed),
            _ => None,
        });
        let initiator = if is_sent { "local" } else { "remote" };
        closes.next().map(|closed| Closed {
            initiator: Some(initiator.to_owned()),
            ..closed.clone()
        })
    }

    /// Returns the packet number space of the packet.
    pub fn space(&self) -> Space {
        space_of(&self.packet_type)
    }
}

fn space_of(packet_type: &str) -> Space {
    match packet_type {
        "initial" => Space::Initial,
        "handshake" => Space::Handshake,
        _ => Space::Application,
    }
}

/// A packet declared lost.
#[derive(Clone, PartialEq, Debug)]
pub struct Lost {
    /// The packet number space.
    pub space: Space,
    /// The packet number, if the trace records it.
    pub number: Option<u64>,
    /// The size in bytes, if the trace records it.
    pub len: Option<u64>,
    /// The reason: `reordering_threshold`, `time_threshold` or `pto_expired`.
    pub trigger: Option<String>,
    /// True if the packet probed the path MTU, so that its loss is no sign of congestion.
    pub is_mtu_probe: bool,
}

/// Recovery metrics. A field is `None` if the event does not name it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Metrics {
    /// Lowest round-trip time in seconds.
    pub min_rtt: Option<f64>,
    /// Smoothed round-trip time in seconds.
    pub smoothed_rtt: Option<f64>,
    /// Latest round-trip time sample in seconds.
    pub latest_rtt: Option<f64>,
    /// Congestion window in bytes.
    pub congestion_window: Option<u64>,
    /// Bytes in flight (RFC 9002 §2).
    pub bytes_in_flight: Option<u64>,
    /// Slow-start threshold in bytes; `None` if it is infinite.
    pub ssthresh: Option<u64>,
    /// Pacing rate in bits per second.
    pub pacing_rate: Option<u64>,
    /// Consecutive probe timeouts; an acknowledgement resets the count.
    pub pto_count: Option<u64>,
    /// Packets lost since the connection began. Only traces that count losses here instead of
    /// having an event for each record it (quiche).
    pub lost_packets: Option<u64>,
}

/// Transport parameters of one end. Times are seconds. A field is `None` if the event does not name
/// it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Parameters {
    /// True if they are the parameters of the peer.
    pub is_peers: bool,
    /// Idle timeout in seconds; zero disables it (RFC 9000 §18.2).
    pub max_idle_timeout: Option<f64>,
    /// Longest intended delay of an acknowledgement in seconds.
    pub max_ack_delay: Option<f64>,
    /// Largest UDP payload in bytes.
    pub max_udp_payload_size: Option<u64>,
    /// Initial limit on the bytes of all streams.
    pub initial_max_data: Option<u64>,
    /// Initial limit on bidirectional streams that this end opens.
    pub initial_max_stream_data_bidi_local: Option<u64>,
    /// Initial limit on bidirectional streams that the other end opens.
    pub initial_max_stream_data_bidi_remote: Option<u64>,
    /// Initial limit on unidirectional streams.
    pub initial_max_stream_data_uni: Option<u64>,
    /// Initial limit on the number of bidirectional streams.
    pub initial_max_streams_bidi: Option<u64>,
    /// Initial limit on the number of unidirectional streams.
    pub initial_max_streams_uni: Option<u64>,
}

#[cfg(test)]
mod tests;
