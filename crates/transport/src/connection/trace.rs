//! The records of a connection for a sink, if there is one.
//!
//! Without a sink each method costs one branch. Values that change in many places (windows, round-trip
//! times, ECN, datagram size) are compared in one, [`Trace::changes`], after each batch in and out.

use courser_base::{FourTuple, Side, Time};
use courser_crypto::KeyChange;
use courser_recovery as recovery;
use courser_telemetry::{
    CloseCause, CongestionStateUpdated, ConnectionClosed, ConnectionIdUpdated, ConnectionStarted,
    Detail, EcnState, EcnStateUpdated, KeyDiscarded, KeyInstalled, KeyUpdated, MetricsUpdated,
    MtuUpdated, PacketDropped, PacketReceived, PacketSent, PathFeatureUpdated, PathSilenceUpdated,
    PathState, PathUpdated, ProtocolChosen, Reason, Record, RecoveryParametersSet, SendLimit,
    SendLimited, StateChanged, Tap, TransportParametersSet, VersionChosen, frames_of,
};
use courser_wire::ConnectionId;
use courser_wire::Version;
use courser_wire::packet::{Packet, PacketKind};
use courser_wire::transport_parameters::TransportParameters;

use super::error::ConnectionError;
use super::state::State;
use crate::acknowledger::ACK_DELAY_EXPONENT;
use crate::config::TransportConfig;
use crate::path::Path;
use crate::recovery::LossRecovery;
use crate::recovery::features::FEATURES;
use crate::recovery::stats::WithheldFeatures;
use crate::space::SpaceId;
use crate::stream::Streams;

/// The records of a connection.
#[derive(Debug, Default)]
pub(super) struct Trace {
    tap: Tap,
    /// The values that were recorded last, while there is a sink.
    recorded: Option<Box<Recorded>>,
}

/// Values that are recorded when they change.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Recorded {
    ecn: recovery::EcnState,
    mtu: u16,
    congestion: &'static str,
    withheld: WithheldFeatures,
    metrics: MetricsUpdated,
}

/// A packet that is about to be sealed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub(super) kind: PacketKind,
    pub(super) number: u64,
    /// Bytes on the wire.
    pub(super) len: usize,
    pub(super) ack_eliciting: bool,
    pub(super) destination: ConnectionId,
    /// Our source ID; short headers have none.
    pub(super) source: Option<ConnectionId>,
    /// The version in a long header; 0 in short ones.
    pub(super) version: u32,
}

/// The beginning of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start<'a> {
    pub(super) side: Side,
    pub(super) original_destination: ConnectionId,
    pub(super) local_id: ConnectionId,
    pub(super) peer_id: ConnectionId,
    pub(super) path: FourTuple,
    pub(super) parameters: &'a TransportParameters,
    pub(super) version: Version,
}

impl Trace {
    /// Detaches all sinks, which may flush their files.
    pub(super) fn end(&mut self) {
        self.tap.set(None);
        self.tap.set_guest(None);
        self.recorded = None;
    }

    pub(super) fn tap(&mut self) -> &mut Tap {
        &mut self.tap
    }

    /// Passes an event to the sinks; without one, `record` is not called.
    #[inline]
    pub(super) fn record(&mut self, now: Time, record: impl FnOnce() -> Record) {
        self.tap.record(now, record);
    }

    /// Records that the path became silent, or answers again.
    #[cold]
    pub(super) fn path_silence(&mut self, now: Time, is_silent: bool, probe_timeouts: u32) {
        self.record(now, || {
            Record::PathSilenceUpdated(PathSilenceUpdated {
                is_silent,
                probe_timeouts,
            })
        });
    }

    /// Attaches the sink that the configuration provides, and records the start of the connection.
    pub(super) fn start(
        now: Time,
        start: &Start<'_>,
        config: &TransportConfig,
        recovery: &LossRecovery,
    ) -> Self {
        let mut trace = Self::default();
        let Some(factory) = &config.sinks else {
            return trace;
        };
        let sink = factory.sink(&start.original_destination, start.side);
        trace.tap.set(sink);
        trace.record(now, || {
            Record::ConnectionStarted(ConnectionStarted {
                path: start.path,
                local_id: start.local_id,
                peer_id: start.peer_id,
            })
        });
        trace.version(now, start.version);
        trace.state(now, None, State::Handshaking.name());
        trace.parameters(now, false, start.parameters);
        let path = recovery.path().stats();
        let thresholds = config.loss_thresholds();
        trace.record(now, || {
            Record::RecoveryParametersSet(RecoveryParametersSet {
                reordering_threshold: thresholds.packets(),
                time_threshold: thresholds.round_trips(),
                timer_granularity: recovery::TIMER_GRANULARITY,
                initial_rtt: config.initial_rtt,
                max_datagram_size: path.mtu,
                initial_congestion_window: path.congestion_window,
                controller: path.controller,
            })
        });
        trace.record(now, || {
            let kind = PacketKind::Initial;
            Record::KeyInstalled(KeyInstalled { kind })
        });
        trace.changes(now, recovery);
        trace
    }

    /// Records the first version of the connection, or a change to another one.
    pub(super) fn version(&mut self, now: Time, version: Version) {
        self.record(now, || {
            let version = version.value();
            Record::VersionChosen(VersionChosen { version })
        });
    }

    /// Records a change of the state of the connection.
    pub(super) fn state(&mut self, now: Time, old: Option<&'static str>, state: &'static str) {
        self.record(now, || Record::StateChanged(StateChanged { old, state }));
    }

    /// Records the transport parameters of an end.
    pub(super) fn parameters(
        &mut self,
        now: Time,
        by_peer: bool,
        parameters: &TransportParameters,
    ) {
        self.record(now, || {
            Record::TransportParametersSet(TransportParametersSet {
                by_peer,
                parameters: Box::new(parameters.clone()),
            })
        });
    }

    /// Records the negotiated application protocol.
    pub(super) fn protocol(&mut self, now: Time, protocol: Option<&[u8]>) {
        self.record(now, || {
            let protocol = protocol.unwrap_or_default().to_vec();
            Record::ProtocolChosen(ProtocolChosen { protocol })
        });
    }

    /// Records a packet that is sent; `payload` contains its frames before encryption.
    #[inline]
    pub(super) fn packet_sent(&mut self, now: Time, packet: Outgoing, payload: &[u8]) {
        self.tap.record_at(Detail::Packets, now, || {
            Record::PacketSent(PacketSent {
                kind: packet.kind,
                packet_number: packet.number,
                len: packet.len,
                payload_len: payload.len(),
                ack_eliciting: packet.ack_eliciting,
                is_mtu_probe: false,
                destination: packet.destination,
                source: packet.source,
                version: packet.version,
                frames: frames_of(payload, u64::from(ACK_DELAY_EXPONENT)),
            })
        });
    }

    /// Records a packet that was opened, before its frames are processed. `exponent` is the
    /// `ack_delay_exponent` of the peer, if its parameters are known.
    #[inline]
    pub(super) fn packet_received(
        &mut self,
        now: Time,
        packet: &Packet,
        packet_number: u64,
        payload: &[u8],
        exponent: Option<u64>,
    ) {
        self.tap.record_at(Detail::Packets, now, || {
            let is_one_rtt = packet.kind == PacketKind::OneRtt;
            let exponent = exponent.filter(|_| is_one_rtt).unwrap_or(DEFAULT_EXPONENT);
            Record::PacketReceived(PacketReceived {
                kind: packet.kind,
                packet_number,
                len: packet.end,
                payload_len: payload.len(),
                destination: packet.destination,
                source: (!is_one_rtt).then_some(packet.source),
                version: packet.version,
                frames: frames_of(payload, exponent),
            })
        });
    }

    /// Records a packet that is dropped.
    pub(super) fn packet_dropped(&mut self, now: Time, packet: &Packet, reason: Reason) {
        let (kind, len) = (packet.kind, packet.end);
        self.record(now, || {
            Record::PacketDropped(PacketDropped { kind, len, reason })
        });
    }

    /// Records the limit that prevents sending now.
    pub(super) fn limit(&mut self, now: Time, by: SendLimit) {
        self.record(now, || Record::SendLimited(SendLimited { by }));
    }

    /// Records that nothing can be sent, for want of data or of credit from the peer.
    pub(super) fn nothing_to_send(&mut self, now: Time, streams: &Streams) {
        self.record(now, || {
            let by = if streams.is_connection_blocked() {
                SendLimit::FlowControl
            } else if streams.is_stream_blocked() {
                SendLimit::StreamFlowControl
            } else {
                SendLimit::Application
            };
            Record::SendLimited(SendLimited { by })
        });
    }

    /// Records the installation of keys from TLS.
    pub(super) fn keys(&mut self, now: Time, change: &KeyChange) {
        let kind = match change {
            KeyChange::Handshake(_) => PacketKind::Handshake,
            KeyChange::OneRtt(_) => PacketKind::OneRtt,
        };
        self.record(now, || Record::KeyInstalled(KeyInstalled { kind }));
    }

    /// Records that the keys of 0-RTT packets are installed or discarded.
    pub(super) fn early_keys(&mut self, now: Time, is_installed: bool) {
        let kind = PacketKind::ZeroRtt;
        self.record(now, || match is_installed {
            true => Record::KeyInstalled(KeyInstalled { kind }),
            false => Record::KeyDiscarded(KeyDiscarded { kind }),
        });
    }

    /// Records that the keys of a space are discarded.
    pub(super) fn keys_discarded(&mut self, now: Time, id: SpaceId) {
        self.record(now, || {
            let kind = id.packet_kind();
            Record::KeyDiscarded(KeyDiscarded { kind })
        });
    }

    /// Records that an end began a key update to `key_phase`.
    pub(super) fn key_update(&mut self, now: Time, by_peer: bool, key_phase: Option<bool>) {
        let key_phase = key_phase.unwrap_or_default();
        self.record(now, || {
            Record::KeyUpdated(KeyUpdated { key_phase, by_peer })
        });
    }

    /// Records the new state of a path.
    pub(super) fn path(&mut self, now: Time, path: &Path, state: PathState) {
        self.record(now, || {
            let path = path.tuple();
            Record::PathUpdated(PathUpdated { state, path })
        });
    }

    /// Records that the validation of a path failed or was abandoned.
    pub(super) fn probing_abandoned(&mut self, now: Time, path: FourTuple) {
        let state = PathState::ProbingAbandoned;
        self.record(now, || Record::PathUpdated(PathUpdated { state, path }));
    }

    /// Records the new ID by which we address the peer, if `new` differs from `old`.
    #[inline]
    pub(super) fn destination(&mut self, now: Time, old: ConnectionId, new: ConnectionId) {
        if new != old {
            self.record(now, || {
                let (of_peer, old) = (true, Some(old));
                Record::ConnectionIdUpdated(ConnectionIdUpdated { of_peer, old, new })
            });
        }
    }

    /// Records the new ID by which the peer addresses us.
    pub(super) fn source(&mut self, now: Time, new: ConnectionId) {
        self.record(now, || {
            let (of_peer, old) = (false, None);
            Record::ConnectionIdUpdated(ConnectionIdUpdated { of_peer, old, new })
        });
    }

    /// Records the end of the connection by `error`, before it enters the closing or draining `state`.
    pub(super) fn closed(&mut self, now: Time, state: &State, error: &ConnectionError) {
        self.record(now, || Record::ConnectionClosed(closed(state, error)));
    }

    /// Records the values that have changed since the last call. Called at the end of each batch.
    #[inline]
    pub(super) fn changes(&mut self, now: Time, recovery: &LossRecovery) {
        if self.tap.has_sink() {
            self.compare(now, recovery);
        }
    }

    #[cold]
    fn compare(&mut self, now: Time, recovery: &LossRecovery) {
        let new = Recorded {
            ecn: recovery.ecn_state(),
            mtu: recovery.path().size_in_use(),
            congestion: recovery.congestion_state(),
            withheld: recovery.withheld(),
            metrics: recovery.metrics(),
        };
        if self.tap.are_all_new() {
            // The sinks that received the earlier values are detached.
            self.recorded = None;
        }
        let recorded = self.recorded.get_or_insert_with(|| Box::new(new));
        let old = std::mem::replace(&mut **recorded, new);
        self.catch_up(now, old);
        self.differences(now, old, new);
    }

    /// Passes the last recorded values to a sink that was attached since the last call, and to no other, so
    /// that the differences that follow are complete for this sink too.
    fn catch_up(&mut self, now: Time, recorded: Recorded) {
        self.tap.catch_up(now, || {
            let congestion = CongestionStateUpdated {
                old: None,
                new: recorded.congestion,
                trigger: None,
            };
            [
                (Detail::Events, Record::CongestionStateUpdated(congestion)),
                (Detail::Metrics, Record::MetricsUpdated(recorded.metrics)),
            ]
        });
    }

    fn differences(&mut self, now: Time, old: Recorded, new: Recorded) {
        if old.mtu != new.mtu {
            let (old, new, done) = (old.mtu, new.mtu, false);
            self.record(now, || Record::MtuUpdated(MtuUpdated { old, new, done }));
        }
        if old.ecn != new.ecn {
            let (old, new) = (ecn_state(old.ecn), ecn_state(new.ecn));
            self.record(now, || {
                Record::EcnStateUpdated(EcnStateUpdated { old, new })
            });
        }
        if old.withheld != new.withheld {
            for feature in FEATURES {
                let is_used = !new.withheld.contains(feature);
                if is_used == old.withheld.contains(feature) {
                    self.record(now, || {
                        Record::PathFeatureUpdated(PathFeatureUpdated { feature, is_used })
                    });
                }
            }
        }
        if old.congestion != new.congestion {
            let (old, new) = (Some(old.congestion), new.congestion);
            self.record(now, || {
                let trigger = None;
                Record::CongestionStateUpdated(CongestionStateUpdated { old, new, trigger })
            });
        }
        if old.metrics != new.metrics {
            self.tap
                .record_at(Detail::Metrics, now, || Record::MetricsUpdated(new.metrics));
        }
    }
}

fn closed(state: &State, error: &ConnectionError) -> ConnectionClosed {
    let text = |reason: &[u8]| String::from_utf8_lossy(reason).into_owned();
    let (by_peer, cause, reason) = match (error, state) {
        (ConnectionError::LocallyClosed, State::Closing(closing)) => {
            let (cause, reason) = closing.cause();
            (false, cause, text(reason))
        }
        (ConnectionError::TransportError(error), _) => {
            let code = error.code;
            (
                false,
                CloseCause::Transport { code },
                error.reason.to_string(),
            )
        }
        (ConnectionError::ConnectionClosed(close), _) => {
            let code = close.code;
            (true, CloseCause::Transport { code }, text(&close.reason))
        }
        (ConnectionError::ApplicationClosed { code, reason }, _) => {
            (true, CloseCause::Application { code: *code }, text(reason))
        }
        (ConnectionError::Reset, _) => (true, CloseCause::StatelessReset, error.to_string()),
        (ConnectionError::VersionMismatch { .. }, _) => {
            (true, CloseCause::VersionMismatch, error.to_string())
        }
        (ConnectionError::HandshakeTimedOut, _) => {
            (false, CloseCause::HandshakeTimeout, error.to_string())
        }
        (ConnectionError::PathSilent, State::Closing(closing)) => {
            let (_, reason) = closing.cause();
            (false, CloseCause::PathSilent, text(reason))
        }
        (ConnectionError::PathSilent, _) => (false, CloseCause::PathSilent, error.to_string()),
        (ConnectionError::TimedOut | ConnectionError::LocallyClosed, _) => {
            (false, CloseCause::IdleTimeout, error.to_string())
        }
    };
    ConnectionClosed {
        by_peer,
        cause,
        reason,
    }
}

fn ecn_state(state: recovery::EcnState) -> EcnState {
    match state {
        recovery::EcnState::Testing => EcnState::Testing,
        recovery::EcnState::Unknown => EcnState::Unknown,
        recovery::EcnState::Capable => EcnState::Capable,
        recovery::EcnState::Failed => EcnState::Failed,
    }
}

/// The `ack_delay_exponent` of a peer that does not announce one (RFC 9000 §18.2).
const DEFAULT_EXPONENT: u64 = 3;
