//! Names of the qlog drafts: draft-ietf-quic-qlog-main-schema-14 for the file,
//! draft-ietf-quic-qlog-quic-events-13 and draft-ietf-quic-qlog-h3-events-13 for the events.

use courser_base::Side;
use courser_telemetry::{EcnState, LossTrigger, PathFeature, PathState, Reason, SendLimit, Timer};
use courser_wire::packet::PacketKind;
use courser_wire::{Direction, TransportErrorCode};

/// The schema of the file (main-schema §5).
pub const FILE_SCHEMA: &str = "urn:ietf:params:qlog:file:sequential";
/// The serialization format of the file (main-schema §11.2, RFC 7464).
pub const SERIALIZATION: &str = "application/qlog+json-seq";
/// The extension of file names (main-schema §11.2).
pub const EXTENSION: &str = "sqlog";
/// The schema of the events of QPACK. They have the names and fields of
/// draft-ietf-quic-qlog-h3-events-04; later drafts define none.
pub const QPACK_EVENTS: &str = "urn:x-courser:qlog:events:qpack";
/// The schema of the events of WebTransport: `webtransport:session_opened`, `session_refused`, `session_draining` and
/// `session_closed`. No draft defines any.
pub const SESSION_EVENTS: &str = "urn:x-courser:qlog:events:webtransport";
/// The schema of events that the drafts do not define: `courser:spurious_loss`,
/// `courser:path_feature_updated`, which reports that packets with an optional feature do not pass, and
/// `courser:records_dropped`, which marks a gap and counts the missing records and bytes.
pub const OWN_EVENTS: &str = "urn:x-courser:qlog:events:courser";

/// The spelling of the events in a trace.
///
/// The drafts and the `qlog` crate (0.18, the newest as of this writing, which follows
/// quic-events-12) spell a few names differently. Traces of the two dialects differ in nothing
/// else, and `courser qlog` reads both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Dialect {
    /// The spelling of draft-ietf-quic-qlog-quic-events-13.
    #[default]
    Draft13,
    /// The spelling that the types of the `qlog` crate accept.
    ///
    /// - The state `handshake_complete` becomes `handshake_completed`.
    /// - Packets dropped for missing keys are `general`, and duplicates are `rejected`.
    /// - TLS alerts become `unknown` errors with their code.
    /// - Congestion states have no triggers except `ecn` and `persistent_congestion`.
    /// - The event `key_discarded` becomes `key_retired`.
    /// - ORIGIN frames are `unknown`.
    QlogCrate,
}

impl Dialect {
    /// Returns the event schema that the file declares.
    pub fn event_schema(self) -> &'static str {
        match self {
            Self::Draft13 => "urn:ietf:params:qlog:events:quic-13",
            Self::QlogCrate => "urn:ietf:params:qlog:events:quic-12",
        }
    }

    /// Returns the event schema of HTTP/3 that the file declares.
    pub fn http3_schema(self) -> &'static str {
        match self {
            Self::Draft13 => "urn:ietf:params:qlog:events:http3-13",
            Self::QlogCrate => "urn:ietf:params:qlog:events:http3-12",
        }
    }

    /// Returns a state as quic-events §4.6 spells it. Unknown states are unchanged.
    pub(crate) fn state(self, state: &'static str) -> &'static str {
        match (state, self) {
            ("handshaking", _) => "attempted",
            ("complete", Self::Draft13) => "handshake_complete",
            ("complete", Self::QlogCrate) => "handshake_completed",
            ("confirmed", _) => "handshake_confirmed",
            ("drained", _) => "closed",
            (other, _) => other,
        }
    }

    /// Returns the name of the event for discarded keys. It was `key_retired` up to quic-events-02,
    /// and still is in the crate.
    pub(crate) fn key_discarded(self) -> &'static str {
        match self {
            Self::Draft13 => "quic:key_discarded",
            Self::QlogCrate => "quic:key_retired",
        }
    }

    pub(crate) fn drop_trigger(self, reason: Reason) -> &'static str {
        match (reason, self) {
            (Reason::KeysUnavailable, Self::Draft13) => "key_unavailable",
            (Reason::KeysUnavailable, Self::QlogCrate) => "general",
            (Reason::Duplicate, Self::Draft13) => "duplicate",
            (Reason::Duplicate, Self::QlogCrate) | (Reason::UnknownPath, _) => "rejected",
            (Reason::NotAuthentic, _) => "decryption_failure",
            (Reason::Header, _) => "invalid",
        }
    }

    /// Returns the name of a transport error, or `None` if only its code can be written.
    pub(crate) fn transport_error(self, code: TransportErrorCode) -> Option<String> {
        if let Some(alert) = code.alert() {
            return (self == Self::Draft13).then(|| format!("crypto_error_0x1{alert:02x}"));
        }
        let known = TRANSPORT_ERRORS.get(usize::try_from(code.value()).ok()?)?;
        Some((*known).to_owned())
    }

    pub(crate) fn congestion_trigger(self, trigger: &'static str) -> Option<&'static str> {
        let taken = self == Self::Draft13 || ["ecn", "persistent_congestion"].contains(&trigger);
        taken.then_some(trigger)
    }
}

/// The names of transport errors, indexed by code (RFC 9000 §20.1).
const TRANSPORT_ERRORS: [&str; 17] = [
    "no_error",
    "internal_error",
    "connection_refused",
    "flow_control_error",
    "stream_limit_error",
    "stream_state_error",
    "final_size_error",
    "frame_encoding_error",
    "transport_parameter_error",
    "connection_id_limit_error",
    "protocol_violation",
    "invalid_token",
    "application_error",
    "crypto_buffer_exceeded",
    "key_update_error",
    "aead_limit_reached",
    "no_viable_path",
];

pub(crate) fn side(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

pub(crate) fn initiator(is_remote: bool) -> &'static str {
    if is_remote { "remote" } else { "local" }
}

pub(crate) fn packet_type(kind: PacketKind) -> &'static str {
    match kind {
        PacketKind::Initial => "initial",
        PacketKind::ZeroRtt => "0RTT",
        PacketKind::Handshake => "handshake",
        PacketKind::Retry => "retry",
        PacketKind::OneRtt => "1RTT",
        PacketKind::VersionNegotiation => "version_negotiation",
    }
}

pub(crate) fn packet_number_space(kind: PacketKind) -> &'static str {
    match kind {
        PacketKind::Initial => "initial",
        PacketKind::Handshake => "handshake",
        _ => "application_data",
    }
}

/// Returns the names of the secrets of both directions at an encryption level.
pub(crate) fn key_types(kind: PacketKind) -> [&'static str; 2] {
    match kind {
        PacketKind::Initial => ["client_initial_secret", "server_initial_secret"],
        PacketKind::Handshake => ["client_handshake_secret", "server_handshake_secret"],
        PacketKind::ZeroRtt => ["client_0rtt_secret", "server_0rtt_secret"],
        _ => ["client_1rtt_secret", "server_1rtt_secret"],
    }
}

pub(crate) fn loss_trigger(trigger: LossTrigger) -> &'static str {
    match trigger {
        LossTrigger::ReorderingThreshold => "reordering_threshold",
        LossTrigger::TimeThreshold => "time_threshold",
        LossTrigger::ProbeTimeout => "pto_expired",
    }
}

/// Returns the name of a timer. In quic-events §5.23, `ack` is the timer of the time threshold.
pub(crate) fn timer_type(timer: Timer) -> &'static str {
    match timer {
        Timer::LossDetection => "ack",
        Timer::Probe => "pto",
    }
}

pub(crate) fn blocked_reason(limit: SendLimit) -> &'static str {
    match limit {
        SendLimit::Application => "application",
        SendLimit::CongestionWindow => "congestion_control",
        SendLimit::Pacer => "pacing",
        SendLimit::FlowControl => "connection_flow_control",
        SendLimit::StreamFlowControl => "stream_flow_control",
        SendLimit::Amplification => "amplification_protection",
    }
}

pub(crate) fn ecn_state(state: EcnState) -> &'static str {
    match state {
        EcnState::Testing => "testing",
        EcnState::Unknown => "unknown",
        EcnState::Capable => "capable",
        EcnState::Failed => "failed",
    }
}

pub(crate) fn path_feature(feature: PathFeature) -> &'static str {
    match feature {
        PathFeature::Batches => "batches",
        PathFeature::EcnMarks => "ecn",
        PathFeature::ClearedQuicBit => "cleared_quic_bit",
    }
}

pub(crate) fn path_state(state: PathState) -> &'static str {
    match state {
        PathState::ProbingStarted => "probing_started",
        PathState::ProbingSuccessful => "probing_successful",
        PathState::ProbingAbandoned => "probing_abandoned",
        PathState::MigrationStarted => "migration_started",
        PathState::MigrationComplete => "migration_complete",
        PathState::MigrationAbandoned => "migration_abandoned",
    }
}

pub(crate) fn stream_type(direction: Direction) -> &'static str {
    match direction {
        Direction::Bidirectional => "bidirectional",
        Direction::Unidirectional => "unidirectional",
    }
}
