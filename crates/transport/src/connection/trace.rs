//! What the connection records of itself, for whoever plugged a sink in.
//!
//! Everything here costs one branch while nobody did. Changes of numbers and states that many
//! places make (windows, round-trip times, ECN, datagram size) are noticed in one place,
//! [`Connection::record_changes`], after each batch in and out.

use courser_base::Time;
use courser_crypto::KeyChange;
use courser_recovery as recovery;
use courser_telemetry::{
    CloseCause, CongestionStateUpdated, ConnectionClosed, ConnectionIdUpdated, ConnectionStarted,
    EcnState, EcnStateUpdated, KeyInstalled, KeyUpdated, MetricsUpdated, MtuUpdated,
    PacketReceived, PacketSent, PathState, PathUpdated, Record, RecoveryParametersSet, SendLimit,
    SendLimited, StateChanged, TransportParametersSet, VersionChosen, frames_of,
};
use courser_wire::ConnectionId;
use courser_wire::packet::{Packet, PacketKind};
use courser_wire::transport_parameters::TransportParameters;
use courser_wire::version::VERSION_1;

use super::Connection;
use super::close::Closing;
use super::error::ConnectionError;
use super::state::State;
use crate::acknowledger::ACK_DELAY_EXPONENT;
use crate::path::paths::PathIndex;
use crate::space::SpaceId;

/// What was recorded last, to tell changes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Recorded {
    ecn: recovery::EcnState,
    mtu: u16,
    congestion: &'static str,
    metrics: MetricsUpdated,
}

/// A packet that is about to be sealed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub(super) id: SpaceId,
    pub(super) number: u64,
    /// Bytes on the wire.
    pub(super) len: usize,
    pub(super) ack_eliciting: bool,
    pub(super) is_mtu_probe: bool,
    pub(super) destination: ConnectionId,
}

impl Connection {
    /// The connection begins: plugs in the sink that the configuration asks for.
    pub(super) fn record_start(
        &mut self,
        now: Time,
        original_destination: &ConnectionId,
        parameters: &TransportParameters,
    ) {
        let Some(factory) = &self.config.sinks else {
            return;
        };
        self.tap.set(factory.sink(original_destination, self.side));
        let path = self.paths.active();
        self.tap.record(now, || {
            Record::ConnectionStarted(ConnectionStarted {
                path: path.tuple,
                local_id: self.handshake.local_source,
                peer_id: *self.cids.peer.current(),
            })
        });
        self.tap.record(now, || {
            Record::VersionChosen(VersionChosen { version: VERSION_1 })
        });
        let state = self.state.name();
        self.tap.record(now, || {
            let old = None;
            Record::StateChanged(StateChanged { old, state })
        });
        self.record_parameters(now, false, parameters);
        let path = self.recovery.route().stats();
        self.tap.record(now, || {
            Record::RecoveryParametersSet(RecoveryParametersSet {
                reordering_threshold: recovery::PACKET_THRESHOLD,
                time_threshold: TIME_THRESHOLD,
                timer_granularity: recovery::TIMER_GRANULARITY,
                initial_rtt: self.config.initial_rtt,
                max_datagram_size: path.mtu,
                initial_congestion_window: path.congestion_window,
                controller: path.controller,
            })
        });
        self.tap.record(now, || {
            let kind = PacketKind::Initial;
            Record::KeyInstalled(KeyInstalled { kind })
        });
        self.record_changes(now);
    }

    pub(super) fn record_parameters(
        &mut self,
        now: Time,
        by_peer: bool,
        parameters: &TransportParameters,
    ) {
        self.tap.record(now, || {
            Record::TransportParametersSet(TransportParametersSet {
                by_peer,
                parameters: Box::new(parameters.clone()),
            })
        });
    }

    /// A packet leaves; `payload` are its frames in the clear.
    #[inline]
    pub(super) fn record_packet_sent(&mut self, now: Time, packet: Outgoing, payload: &[u8]) {
        self.tap.record(now, || {
            let kind = packet.id.packet_kind();
            Record::PacketSent(PacketSent {
                kind,
                packet_number: packet.number,
                len: packet.len,
                payload_len: payload.len(),
                ack_eliciting: packet.ack_eliciting,
                is_mtu_probe: packet.is_mtu_probe,
                destination: packet.destination,
                source: (kind != PacketKind::OneRtt).then_some(self.handshake.local_source),
                frames: frames_of(payload, u64::from(ACK_DELAY_EXPONENT)),
            })
        });
    }

    /// A packet was opened; its frames are processed next.
    #[inline]
    pub(super) fn record_packet_received(
        &mut self,
        now: Time,
        packet: &Packet,
        packet_number: u64,
        payload: &[u8],
    ) {
        self.tap.record(now, || {
            let peer = &self.handshake.peer_parameters;
            let exponent = peer.as_ref().map_or(DEFAULT_EXPONENT, |peer| {
                if packet.kind == PacketKind::OneRtt {
                    peer.ack_delay_exponent
                } else {
                    DEFAULT_EXPONENT
                }
            });
            Record::PacketReceived(PacketReceived {
                kind: packet.kind,
                packet_number,
                len: packet.end,
                payload_len: payload.len(),
                destination: packet.destination,
                source: (packet.kind != PacketKind::OneRtt).then_some(packet.source),
                frames: frames_of(payload, exponent),
            })
        });
    }

    /// Nothing more leaves for now.
    pub(super) fn record_limit(&mut self, now: Time, by: SendLimit) {
        self.tap
            .record(now, || Record::SendLimited(SendLimited { by }));
    }

    /// There is nothing to send, or nothing that the peer gave credit for.
    pub(super) fn record_idle(&mut self, now: Time) {
        let streams = &self.streams;
        self.tap.record(now, || {
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

    /// TLS has made keys, which are used from now on.
    pub(super) fn record_keys(&mut self, now: Time, change: &KeyChange) {
        let kind = match change {
            KeyChange::Handshake(_) => PacketKind::Handshake,
            KeyChange::OneRtt(_) => PacketKind::OneRtt,
        };
        self.tap
            .record(now, || Record::KeyInstalled(KeyInstalled { kind }));
    }

    /// One end began a key update.
    pub(super) fn record_key_update(&mut self, now: Time, by_peer: bool) {
        let key_phase = self.protection.key_phase().unwrap_or_default();
        self.tap.record(now, || {
            Record::KeyUpdated(KeyUpdated { key_phase, by_peer })
        });
    }

    /// Something happened to a path.
    pub(super) fn record_path(&mut self, now: Time, index: PathIndex, state: PathState) {
        let Some(path) = self.paths.get_mut(index) else {
            return;
        };
        let path = path.tuple;
        self.tap
            .record(now, || Record::PathUpdated(PathUpdated { state, path }));
    }

    /// One end is addressed differently, if `old` is not what is in use now.
    pub(super) fn record_peer_id(&mut self, now: Time, old: ConnectionId) {
        let new = *self.cids.peer.current();
        if new == old {
            return;
        }
        self.tap.record(now, || {
            Record::ConnectionIdUpdated(ConnectionIdUpdated {
                of_peer: true,
                old: Some(old),
                new,
            })
        });
    }

    /// The connection is about to enter `state`, its last but the goodbye, because of `error`.
    pub(super) fn record_closed(&mut self, now: Time, state: &State, error: &ConnectionError) {
        self.tap
            .record(now, || Record::ConnectionClosed(closed(state, error)));
    }

    /// Records what has changed since the last call. For the ends of batches: what it tells is
    /// what the next batch meets.
    #[inline]
    pub(super) fn record_changes(&mut self, now: Time) {
        if self.tap.is_plugged() {
            self.compare(now);
        }
    }

    #[cold]
    fn compare(&mut self, now: Time) {
        let new = self.current_figures();
        let old = self.recorded.replace(Box::new(new));
        let old = old.as_deref();
        if let Some(old) = old.filter(|old| old.mtu != new.mtu) {
            let (old, new) = (old.mtu, new.mtu);
            self.tap.record(now, || {
                let done = false;
                Record::MtuUpdated(MtuUpdated { old, new, done })
            });
        }
        if let Some(old) = old.filter(|old| old.ecn != new.ecn) {
            let (old, new) = (ecn_state(old.ecn), ecn_state(new.ecn));
            self.tap.record(now, || {
                Record::EcnStateUpdated(EcnStateUpdated { old, new })
            });
        }
        if old.is_none_or(|old| old.congestion != new.congestion) {
            self.tap.record(now, || {
                Record::CongestionStateUpdated(CongestionStateUpdated {
                    old: old.map(|old| old.congestion),
                    new: new.congestion,
                    trigger: None,
                })
            });
        }
        if old.is_none_or(|old| old.metrics != new.metrics) {
            self.tap.record(now, || Record::MetricsUpdated(new.metrics));
        }
    }

    fn current_figures(&self) -> Recorded {
        Recorded {
            ecn: self.recovery.ecn_state(),
            mtu: self.recovery.route().mtu(),
            congestion: self.recovery.congestion_state(),
            metrics: self.recovery.metrics(),
        }
    }
}

fn closed(state: &State, error: &ConnectionError) -> ConnectionClosed {
    let text = |reason: &[u8]| String::from_utf8_lossy(reason).into_owned();
    let (by_peer, cause, reason) = match (error, state) {
        (ConnectionError::LocallyClosed, State::Closing(closing)) => {
            let (cause, reason) = Closing::cause(closing);
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

/// RFC 9000 §18.2.
const DEFAULT_EXPONENT: u64 = 3;
/// Packets are lost after 9/8 of a round trip (RFC 9002 §6.1.2).
const TIME_THRESHOLD: f64 = 9.0 / 8.0;
