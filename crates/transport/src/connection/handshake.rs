//! Driving TLS: bytes in and out, keys, transport parameters. RFC 9001 §4, RFC 9000 §7.

use std::sync::Arc;

use bytes::Bytes;
use courser_base::Time;
use courser_crypto::{Exporter, HandshakeData, KeyChange, KeyPair, TlsError};
use courser_telemetry::{KeyDiscarded, ProtocolChosen, Record};
use courser_wire::transport_parameters::TransportParameters;
use courser_wire::{ConnectionId, TransportErrorCode};

use super::Connection;
use super::error::ConnectionError;
use super::event::Event;
use super::state::State;
use super::tls::{Finished, Tls};
use crate::config::TokenStore;
use crate::error::TransportError;
use crate::handshake::CryptoStreams;
use crate::space::SpaceId;

/// State of the handshake, and what remains of it.
pub(crate) struct Handshake {
    pub(crate) tls: Tls,
    /// TLS reads in tasks that the endpoint hands out.
    pub(crate) offloads_tls: bool,
    /// The CRYPTO streams.
    pub(crate) crypto: CryptoStreams,
    /// Level that TLS reads next.
    pub(crate) reading: SpaceId,
    /// Level that TLS writes next.
    pub(crate) writing: SpaceId,
    pub(crate) started: Time,
    pub(crate) peer_parameters: Option<Box<TransportParameters>>,
    /// The client's first destination ID.
    pub(crate) original_destination: ConnectionId,
    /// Our source ID of the handshake.
    pub(crate) local_source: ConnectionId,
    /// The peer's source ID, from its first packet.
    pub(crate) peer_source: Option<ConnectionId>,
    /// Source ID of the Retry, if there was one.
    pub(crate) retry_source: Option<ConnectionId>,
    /// A client's token for its Initials.
    pub(crate) token: Bytes,
    pub(crate) data: Option<HandshakeData>,
    pub(crate) peer_certificates: Option<Vec<Vec<u8>>>,
    pub(crate) exporter: Option<Exporter>,
    /// HANDSHAKE_DONE waits to be sent.
    pub(crate) send_done: bool,
    /// When HANDSHAKE_DONE was last sent, until it is acknowledged.
    pub(crate) done_sent: Option<Time>,
    /// What the peer seemed to miss was repeated before a probe timeout.
    pub(crate) was_sped_up: bool,
    /// The endpoint should make tokens.
    pub(crate) wants_tokens: bool,
    /// A server's tokens for the client's next connections.
    pub(crate) tokens: Vec<Bytes>,
    pub(crate) send_tokens: bool,
    /// Where a client puts tokens, and under which name.
    pub(crate) token_store: Option<(Arc<dyn TokenStore>, String)>,
}

impl std::fmt::Debug for Handshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handshake")
            .field("reading", &self.reading)
            .finish_non_exhaustive()
    }
}

impl Handshake {
    /// Gives back what only a handshake needs.
    pub(crate) fn on_close(&mut self) {
        self.tls = Tls::Gone;
        self.tokens = Vec::new();
        self.send_tokens = false;
        self.send_done = false;
    }
}

impl Connection {
    /// Hands TLS what has arrived, sends what it writes, installs the keys it makes. While TLS is
    /// in a task, what has arrived waits (limit K01).
    pub(crate) fn drive_handshake(&mut self, now: Time) -> Result<(), TransportError> {
        if self.handshake.tls.is_in_task() {
            return Ok(());
        }
        for id in SpaceId::ALL {
            while let Some(bytes) = self.handshake.crypto.read(id) {
                let Some(tls) = self.handshake.tls.here_mut() else {
                    return Err(unexpected_message());
                };
                if self.handshake.offloads_tls {
                    self.handshake.tls.ask(id.level(), bytes);
                    return Ok(());
                }
                tls.read(id.level(), &bytes).map_err(tls_error)?;
                self.write_handshake(now)?;
            }
        }
        Ok(())
    }

    /// TLS is back from a task. A connection that is over does not want it any more.
    pub(crate) fn on_tls_finished(&mut self, now: Time, finished: Finished) {
        if !matches!(self.handshake.tls, Tls::Away) {
            return;
        }
        self.handshake.tls = Tls::Here(finished.session);
        let read = finished.read.map_err(tls_error);
        let driven = read
            .and_then(|()| self.write_handshake(now))
            .and_then(|()| self.drive_handshake(now));
        match driven {
            Ok(()) => self.open_early(now),
            Err(error) => self.fail(now, error),
        }
        let rtt = self.recovery.route().rtt().smoothed();
        self.acknowledger.on_batch_end(now, rtt);
        self.record_changes(now);
    }

    /// TLS panicked in a task. Only the session is lost, so the peer can be told; what the panic
    /// said is for our side alone. True if the connection was not over.
    pub(crate) fn on_tls_panicked(&mut self, now: Time, error: ConnectionError) -> bool {
        let is_awaited = matches!(self.handshake.tls, Tls::Away);
        if is_awaited {
            self.handshake.tls = Tls::Gone;
            self.fail_internally(now, error);
        }
        is_awaited
    }

    /// Sends what TLS has to say.
    pub(crate) fn write_handshake(&mut self, now: Time) -> Result<(), TransportError> {
        let mut out = Vec::new();
        while let Some(tls) = self.handshake.tls.here_mut() {
            out.clear();
            let change = tls.write(&mut out);
            self.handshake.crypto.write(self.handshake.writing, &out);
            self.on_peer_parameters(now)?;
            match change {
                Some(change) => {
                    self.record_keys(now, &change);
                    self.install_keys(change)?;
                }
                None if out.is_empty() => break,
                None => {}
            }
        }
        self.note_handshake_data();
        self.check_complete(now)
    }

    /// Opens a packet number space with its keys.
    pub(super) fn open_space(&mut self, id: SpaceId, keys: KeyPair) {
        self.protection.install(id, keys);
        self.recovery.open_space(id, self.config.ecn);
        self.acknowledger.open(id);
        self.handshake.crypto.open(id);
    }

    fn install_keys(&mut self, change: KeyChange) -> Result<(), TransportError> {
        match change {
            KeyChange::Handshake(secrets) => {
                self.open_space(SpaceId::Handshake, secrets.key_pair());
                self.handshake.writing = SpaceId::Handshake;
                self.read_next_level(SpaceId::Handshake)?;
            }
            KeyChange::OneRtt(secrets) => {
                let update_after = self.config.key_update_after;
                self.protection
                    .install_one_rtt(secrets, self.side, update_after);
                self.handshake.writing = SpaceId::Application;
            }
        }
        Ok(())
    }

    /// No byte of a level may be left over when the next one begins (RFC 9001 §4.1.3).
    fn read_next_level(&mut self, next: SpaceId) -> Result<(), TransportError> {
        let reading = std::mem::replace(&mut self.handshake.reading, next);
        if self.handshake.crypto.has_unread(reading) {
            let reason = "CRYPTO data left over at the old encryption level";
            return Err(TransportError::protocol_violation(reason));
        }
        Ok(())
    }

    fn note_handshake_data(&mut self) {
        if self.handshake.data.is_some() || self.handshake.peer_parameters.is_none() {
            return;
        }
        if let Some(tls) = self.handshake.tls.here() {
            self.handshake.data = Some(tls.handshake_data());
            self.events.push_back(Event::HandshakeDataReady);
        }
    }

    fn check_complete(&mut self, now: Time) -> Result<(), TransportError> {
        let Some(tls) = self.handshake.tls.here() else {
            return Ok(());
        };
        let has_keys = self.protection.has_keys(SpaceId::Application);
        if !self.state.is_handshaking() || tls.is_handshaking() || !has_keys {
            return Ok(());
        }
        if self.handshake.peer_parameters.is_none() {
            // RFC 9001 §8.2: missing_extension.
            let code = TransportErrorCode::crypto(109);
            return Err(TransportError::new(
                code,
                "the peer sent no transport parameters",
            ));
        }
        let data = tls.handshake_data();
        let protocol = data.protocol.as_deref();
        self.tap.record(now, || {
            let protocol = protocol.unwrap_or_default().to_vec();
            Record::ProtocolChosen(ProtocolChosen { protocol })
        });
        self.handshake.data = Some(data);
        self.handshake.peer_certificates = tls.peer_certificates();
        self.handshake.exporter = tls.exporter();
        self.read_next_level(SpaceId::Application)?;
        self.stats.handshake_time = Some(now - self.handshake.started);
        self.enter(now, State::Complete);
        self.recovery.on_handshake_complete();
        self.events.push_back(Event::Connected);
        if self.side.is_server() {
            // The server's handshake is confirmed when it is complete (RFC 9001 §4.1.2).
            self.handshake.send_done = true;
            self.handshake.wants_tokens = true;
            self.confirm(now);
        }
        Ok(())
    }

    /// Both ends have completed: only 1-RTT keys are needed from now on (RFC 9001 §4.9.2).
    pub(crate) fn confirm(&mut self, now: Time) {
        if !matches!(self.state, State::Complete) {
            return;
        }
        self.enter(now, State::Confirmed);
        self.recovery.on_handshake_confirmed();
        self.discard_space(now, SpaceId::Initial);
        self.discard_space(now, SpaceId::Handshake);
        self.events.push_back(Event::Confirmed);
        self.drop_tls();
    }

    /// A Handshake packet came after its keys were dropped: the client may not know yet that the
    /// handshake is confirmed. It is told again, once per round trip at the most, since anybody
    /// may have made the packet.
    pub(crate) fn on_late_handshake_packet(&mut self, now: Time) {
        let rtt = self.recovery.route().rtt().smoothed();
        if self.state.is_confirmed()
            && self
                .handshake
                .done_sent
                .is_some_and(|sent| now >= sent + rtt)
        {
            self.handshake.send_done = true;
        }
    }

    /// Gives back the TLS session once nothing can arrive for it.
    pub(crate) fn drop_tls(&mut self) {
        let confirmed = self.state.is_confirmed();
        if confirmed
            && self
                .handshake
                .tls
                .here()
                .is_some_and(|tls| tls.can_be_dropped())
        {
            self.handshake.tls = Tls::Gone;
        }
    }

    /// Drops the keys of a space and what is in flight in it (RFC 9001 §4.9, RFC 9002 §6.4).
    pub(crate) fn discard_space(&mut self, now: Time, id: SpaceId) {
        if !self.acknowledger.is_open(id) {
            return;
        }
        self.tap.record(now, || {
            let kind = id.packet_kind();
            Record::KeyDiscarded(KeyDiscarded { kind })
        });
        self.recovery.discard_space(id);
        self.acknowledger.discard(id);
        self.handshake.crypto.discard(id);
        self.protection.discard(id);
    }

    /// The peer's parameters, as soon as TLS has read them: checked against what was seen on the
    /// wire (RFC 9000 §7.3) and handed to the parts.
    fn on_peer_parameters(&mut self, now: Time) -> Result<(), TransportError> {
        if self.handshake.peer_parameters.is_some() {
            return Ok(());
        }
        let Some(bytes) = self
            .handshake
            .tls
            .here()
            .and_then(|tls| tls.peer_transport_parameters())
        else {
            return Ok(());
        };
        let parameters = TransportParameters::decode(bytes, self.side.peer())
            .map_err(|error| parameter_error(error.to_string()))?;
        self.record_parameters(now, true, &parameters);
        self.check_ids(&parameters)?;
        self.streams.on_peer_parameters(&parameters);
        self.datagrams
            .on_peer_parameter(parameters.max_datagram_frame_size);
        self.cids
            .issued
            .on_peer_limit(parameters.active_connection_id_limit);
        if let Some(token) = parameters.stateless_reset_token {
            self.cids.peer.set_reset_token(token);
        }
        self.idle.on_peer_timeout(parameters.max_idle_timeout);
        self.recovery
            .on_peer_parameters(now, &parameters, self.config.ack_frequency);
        if let Some(preferred) = &parameters.preferred_address {
            let limit = LOCAL_CID_LIMIT;
            self.cids
                .peer
                .on_preferred_address(preferred.id, preferred.reset_token, limit)?;
        }
        self.handshake.peer_parameters = Some(Box::new(parameters));
        Ok(())
    }

    fn check_ids(&self, peer: &TransportParameters) -> Result<(), TransportError> {
        let handshake = &self.handshake;
        if peer.initial_source_connection_id.is_none()
            || peer.initial_source_connection_id != handshake.peer_source
        {
            return Err(mismatch("initial_source_connection_id"));
        }
        if self.side.is_server() {
            return Ok(());
        }
        if peer.original_destination_connection_id != Some(handshake.original_destination) {
            return Err(mismatch("original_destination_connection_id"));
        }
        if peer.retry_source_connection_id != handshake.retry_source {
            return Err(mismatch("retry_source_connection_id"));
        }
        Ok(())
    }
}

/// IDs of the peer that we keep (limit K04).
pub(crate) const LOCAL_CID_LIMIT: u64 = 4;

fn parameter_error(reason: String) -> TransportError {
    TransportError::new(TransportErrorCode::TRANSPORT_PARAMETER_ERROR, reason)
}

fn mismatch(name: &str) -> TransportError {
    parameter_error(format!("{name} is not what the packets say"))
}

fn tls_error(error: TlsError) -> TransportError {
    TransportError::new(error.code(), error.message)
}

/// CRYPTO data for a session that has nothing left to hear (RFC 9001 §6, §8.3).
fn unexpected_message() -> TransportError {
    let code = TransportErrorCode::crypto(courser_crypto::session::UNEXPECTED_MESSAGE);
    TransportError::new(code, "TLS message after the handshake")
}
