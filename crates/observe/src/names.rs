//! Names of values in events, as in qlog and the RFCs.

use courser_base::Side;
use courser_http3::Code;
#[cfg(feature = "tracing")]
use courser_telemetry::PathFeature;
use courser_telemetry::{CloseCause, EcnState, LossTrigger, PathState, Reason, SendLimit, Timer};
#[cfg(feature = "tracing")]
use courser_wire::packet::PacketKind;

/// Returns the close cause of a connection with this application protocol.
///
/// HTTP/3 codes have names (RFC 9114 §8.1, RFC 9204 §6); codes of other protocols are numbers.
pub(crate) fn cause(cause: &CloseCause, protocol: &[u8]) -> String {
    match *cause {
        CloseCause::Transport { code } => code.to_string(),
        CloseCause::Application { code } if protocol == b"h3" => {
            Code::from_value(code.0).to_string()
        }
        CloseCause::Application { code } => code.to_string(),
        CloseCause::IdleTimeout => "idle timeout".to_owned(),
        CloseCause::HandshakeTimeout => "handshake timeout".to_owned(),
        CloseCause::PathSilent => "path silent".to_owned(),
        CloseCause::StatelessReset => "stateless reset".to_owned(),
        CloseCause::VersionMismatch => "no common version".to_owned(),
    }
}

/// Returns true if the cause has a name that a peer cannot choose freely.
#[cfg(feature = "metrics")]
pub(crate) fn has_name(cause: &CloseCause, protocol: &[u8]) -> bool {
    match *cause {
        CloseCause::Transport { code } => code.name().is_some(),
        CloseCause::Application { code } => {
            protocol == b"h3" && Code::from_value(code.0).name().is_some()
        }
        _ => true,
    }
}

pub(crate) const fn side(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

#[cfg(feature = "tracing")]
pub(crate) const fn kind(kind: PacketKind) -> &'static str {
    match kind {
        PacketKind::Initial => "initial",
        PacketKind::ZeroRtt => "0rtt",
        PacketKind::Handshake => "handshake",
        PacketKind::OneRtt => "1rtt",
        PacketKind::Retry => "retry",
        PacketKind::VersionNegotiation => "version_negotiation",
    }
}

pub(crate) const fn drop_reason(reason: Reason) -> &'static str {
    match reason {
        Reason::KeysUnavailable => "keys_unavailable",
        Reason::NotAuthentic => "not_authentic",
        Reason::Duplicate => "duplicate",
        Reason::Header => "header",
        Reason::UnknownPath => "unknown_path",
    }
}

pub(crate) const fn loss_trigger(trigger: Option<LossTrigger>) -> &'static str {
    match trigger {
        Some(LossTrigger::ReorderingThreshold) => "reordering_threshold",
        Some(LossTrigger::TimeThreshold) => "time_threshold",
        Some(LossTrigger::ProbeTimeout) => "probe_timeout",
        None => "unknown",
    }
}

pub(crate) const fn timer(timer: Timer) -> &'static str {
    match timer {
        Timer::LossDetection => "loss_detection",
        Timer::Probe => "probe",
    }
}

pub(crate) const fn limit(limit: SendLimit) -> &'static str {
    match limit {
        SendLimit::Application => "application",
        SendLimit::CongestionWindow => "congestion_window",
        SendLimit::Pacer => "pacing",
        SendLimit::FlowControl => "flow_control",
        SendLimit::StreamFlowControl => "stream_flow_control",
        SendLimit::Amplification => "amplification",
    }
}

pub(crate) const fn ecn(state: EcnState) -> &'static str {
    match state {
        EcnState::Testing => "testing",
        EcnState::Unknown => "unknown",
        EcnState::Capable => "capable",
        EcnState::Failed => "failed",
    }
}

#[cfg(feature = "tracing")]
pub(crate) const fn path_feature(feature: PathFeature) -> &'static str {
    match feature {
        PathFeature::Batches => "batches",
        PathFeature::EcnMarks => "ecn",
        PathFeature::ClearedQuicBit => "cleared_quic_bit",
    }
}

pub(crate) const fn path(state: PathState) -> &'static str {
    match state {
        PathState::ProbingStarted => "probing_started",
        PathState::ProbingSuccessful => "probing_successful",
        PathState::ProbingAbandoned => "probing_abandoned",
        PathState::MigrationStarted => "migration_started",
        PathState::MigrationComplete => "migration_complete",
        PathState::MigrationAbandoned => "migration_abandoned",
    }
}

pub(crate) const fn silence(is_silent: bool) -> &'static str {
    match is_silent {
        true => "began",
        false => "ended",
    }
}
