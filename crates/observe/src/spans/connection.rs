//! The span of a connection, and the events in it.

use courser_base::{Side, Time};
use courser_telemetry::{ConnectionClosed, ConnectionStarted, Record};
use courser_wire::ConnectionId;
use courser_wire::transport_parameters::TransportParameters;
use tracing::field::{Empty, debug, display};
use tracing::{Span, debug, info, info_span};

use super::targets::CONNECTION;
use crate::names;

#[derive(Debug)]
pub(super) struct ConnectionSpan {
    span: Span,
    started_at: Option<Time>,
    /// The application protocol, which determines the meaning of error codes.
    protocol: Vec<u8>,
}

impl ConnectionSpan {
    pub(super) fn new(id: &ConnectionId, side: Side) -> Self {
        let span = info_span!(
            target: CONNECTION,
            "connection",
            %id,
            side = names::side(side),
            peer = Empty,
            version = Empty,
            alpn = Empty,
        );
        Self {
            span,
            started_at: None,
            protocol: Vec::new(),
        }
    }

    pub(super) fn span(&self) -> &Span {
        &self.span
    }

    pub(super) fn on_start(&mut self, now: Time, started: &ConnectionStarted) {
        self.started_at = Some(now);
        self.span.record("peer", display(started.path.peer));
        debug!(
            target: CONNECTION,
            parent: &self.span,
            local_id = %started.local_id,
            peer_id = %started.peer_id,
            "handshake started"
        );
    }

    pub(super) fn record(&mut self, now: Time, record: &Record) {
        let span = &self.span;
        match record {
            Record::ConnectionClosed(closed) => self.on_close(closed),
            Record::StateChanged(change) if change.state == "complete" => {
                let took = self.started_at.map(|start| now.saturating_since(start));
                let took = took.unwrap_or_default();
                info!(target: CONNECTION, parent: span, ?took, "established");
            }
            Record::StateChanged(change) => {
                let state = change.state;
                debug!(target: CONNECTION, parent: span, state, "state changed");
            }
            Record::VersionChosen(chosen) => {
                let version = format_args!("{:#x}", chosen.version).to_string();
                span.record("version", display(version));
            }
            Record::ProtocolChosen(chosen) => {
                let protocol = String::from_utf8_lossy(&chosen.protocol);
                span.record("alpn", debug(protocol));
                self.protocol.clone_from(&chosen.protocol);
            }
            Record::TransportParametersSet(set) => self.on_parameters(set.by_peer, &set.parameters),
            Record::KeyInstalled(keys) => {
                let kind = names::kind(keys.kind);
                debug!(target: CONNECTION, parent: span, kind, "keys installed");
            }
            Record::KeyDiscarded(keys) => {
                let kind = names::kind(keys.kind);
                debug!(target: CONNECTION, parent: span, kind, "keys discarded");
            }
            Record::KeyUpdated(update) => {
                let (by_peer, key_phase) = (update.by_peer, update.key_phase);
                debug!(target: CONNECTION, parent: span, by_peer, key_phase, "keys updated");
            }
            Record::ConnectionIdUpdated(update) => {
                let of_peer = update.of_peer;
                let id = update.new;
                debug!(target: CONNECTION, parent: span, of_peer, %id, "connection ID changed");
            }
            _ => {}
        }
    }

    /// Emits the close event. The peer's reason phrase is escaped, so that it cannot forge lines in the logs of
    /// the program.
    fn on_close(&self, closed: &ConnectionClosed) {
        let by = if closed.by_peer { "peer" } else { "local" };
        let cause = names::cause(&closed.cause, &self.protocol);
        let reason = closed.reason.as_str();
        info!(target: CONNECTION, parent: &self.span, by, %cause, ?reason, "closed");
    }

    fn on_parameters(&self, by_peer: bool, parameters: &TransportParameters) {
        debug!(
            target: CONNECTION,
            parent: &self.span,
            by_peer,
            max_idle_timeout_ms = parameters.max_idle_timeout,
            max_udp_payload_size = parameters.max_udp_payload_size,
            initial_max_data = parameters.initial_max_data,
            initial_max_stream_data_bidi_local = parameters.initial_max_stream_data_bidi_local,
            initial_max_stream_data_bidi_remote = parameters.initial_max_stream_data_bidi_remote,
            initial_max_stream_data_uni = parameters.initial_max_stream_data_uni,
            initial_max_streams_bidi = parameters.initial_max_streams_bidi,
            initial_max_streams_uni = parameters.initial_max_streams_uni,
            max_datagram_frame_size = parameters.max_datagram_frame_size,
            "transport parameters"
        );
    }
}
