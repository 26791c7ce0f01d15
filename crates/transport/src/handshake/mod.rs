//! The handshake: the TLS session and its CRYPTO streams, the connection IDs and transport
//! parameters that it authenticates, and the frames that conclude it. RFC 9000 §7, RFC 9001 §4.
//!
//! [`Handshake`] has no access to keys, paths or streams. [`Handshake::next_step`] returns what
//! happened, and the connection updates its other parts.

mod conclusion;
pub mod crypto_stream;
pub mod crypto_streams;
mod early_data;
mod ids;
mod restart;
mod step;
mod steps;
mod tls;
mod token_names;
mod version;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use courser_base::foreign::Foreign;
use courser_base::{Side, Time};
use courser_crypto::{Exporter, HandshakeData, KeyChange, TlsSession, TlsStartError};
use courser_wire::frame::{Ack, Crypto, NewToken};
use courser_wire::packet::{LongHeader, Packet, PacketKind};
use courser_wire::transport_parameters::TransportParameters;
use courser_wire::{ConnectionId, Version};

pub use self::early_data::EarlyData;
pub(crate) use self::early_data::EarlyKeys;
pub(crate) use self::ids::HandshakeIds;
pub(crate) use self::restart::Restart;
pub(crate) use self::step::Step;
pub(crate) use self::tls::Finished;
pub use self::tls::{TlsResult, TlsTask};
pub(crate) use self::token_names::server_at;
pub(crate) use self::version::{Negotiation, Reaction};

use self::conclusion::Conclusion;
use self::crypto_streams::CryptoStreams;
use self::early_data::Early;
use self::step::{Turn, tls_error, unexpected_message};
use self::tls::Tls;
use self::token_names::token_key;
use crate::build::packet_builder::PacketBuilder;
use crate::config::TokenStore;
use crate::error::TransportError;
use crate::space::SpaceId;

/// The handshake of a connection, and the state that remains after it.
pub(crate) struct Handshake {
    ids: HandshakeIds,
    version: Negotiation,
    /// What a client needs to start again after a Version Negotiation packet.
    restart: Option<Box<Restart>>,
    started: Time,
    timeout: Duration,
    tls: Tls,
    /// True if TLS reads in tasks that the endpoint hands out.
    offloads_tls: bool,
    turn: Turn,
    /// Keys from TLS that no step has returned yet.
    keys: Option<Box<KeyChange>>,
    early: Early,
    crypto: CryptoStreams,
    /// The level that TLS reads next.
    reading: SpaceId,
    /// The level that TLS writes next.
    writing: SpaceId,
    is_complete: bool,
    /// The smallest number that a 1-RTT packet of a client may have.
    first_one_rtt: u64,
    peer_parameters: Option<Box<TransportParameters>>,
    data: Option<HandshakeData>,
    peer_certificates: Option<Vec<Vec<u8>>>,
    exporter: Option<Exporter>,
    /// A client's token for its Initials.
    token: Bytes,
    /// The store into which a client puts tokens, and the name of the server there.
    token_store: Option<Foreign<(Arc<dyn TokenStore>, String), true>>,
    conclusion: Conclusion,
    /// True once data that the peer seemed to lack was repeated before a probe timeout.
    was_sped_up: bool,
}

/// The arguments with which both sides start a handshake.
pub(crate) struct Beginning {
    pub(crate) now: Time,
    /// The time that the whole handshake may take.
    pub(crate) timeout: Duration,
    pub(crate) tls: Box<dyn TlsSession>,
    pub(crate) offloads_tls: bool,
    pub(crate) version: Negotiation,
    /// The bytes of handshake data that are kept for TLS, if they are not the default.
    pub(crate) crypto_buffer: Option<u64>,
}

impl std::fmt::Debug for Handshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handshake")
            .field("reading", &self.reading)
            .finish_non_exhaustive()
    }
}

impl Handshake {
    /// Begins the handshake of a client. The store may have a token of an earlier connection.
    pub(crate) fn client(
        beginning: Beginning,
        ids: HandshakeIds,
        token_store: Option<(Arc<dyn TokenStore>, String)>,
        restart: Option<Box<Restart>>,
    ) -> Self {
        let mut handshake = Self::new(beginning, ids, Turn::Write);
        handshake.token_store = token_store.map(Foreign::new);
        handshake.restart = restart;
        handshake.take_token();
        handshake
    }

    /// Begins the handshake of a server, which first waits for the ClientHello. It accepts at
    /// most `early_budget` bytes of 0-RTT packets.
    pub(crate) fn server(beginning: Beginning, ids: HandshakeIds, early_budget: u64) -> Self {
        let mut handshake = Self::new(beginning, ids, Turn::Read);
        handshake.early = Early::of_server(early_budget);
        handshake
    }

    fn new(beginning: Beginning, ids: HandshakeIds, turn: Turn) -> Self {
        Self {
            ids,
            version: beginning.version,
            restart: None,
            started: beginning.now,
            timeout: beginning.timeout,
            tls: Tls::Here(Foreign::new(beginning.tls)),
            offloads_tls: beginning.offloads_tls,
            turn,
            keys: None,
            early: Early::default(),
            crypto: CryptoStreams::new(ids.side(), beginning.crypto_buffer),
            reading: SpaceId::Initial,
            writing: SpaceId::Initial,
            is_complete: false,
            first_one_rtt: 0,
            peer_parameters: None,
            data: None,
            peer_certificates: None,
            exporter: None,
            token: Bytes::new(),
            token_store: None,
            conclusion: Conclusion::default(),
            was_sped_up: false,
        }
    }

    /// Returns the side of the connection: client or server.
    #[inline]
    pub(crate) fn side(&self) -> Side {
        self.ids.side()
    }

    /// Returns our source ID.
    #[inline]
    pub(crate) fn local_id(&self) -> ConnectionId {
        self.ids.local()
    }

    /// Returns the version of the connection and its negotiation.
    #[inline]
    pub(crate) fn version(&self) -> &Negotiation {
        &self.version
    }

    /// Returns the version of the connection, to update it with what the peer sends.
    #[inline]
    pub(crate) fn version_mut(&mut self) -> &mut Negotiation {
        &mut self.version
    }

    /// Returns the ID from which the Initial keys of all versions are derived.
    pub(crate) fn initial_destination(&self) -> ConnectionId {
        self.ids.initial_destination()
    }

    /// Returns the peer's transport parameters, once they are authentic. An idle server has dropped
    /// them.
    #[inline]
    pub(crate) fn peer_parameters(&self) -> Option<&TransportParameters> {
        self.peer_parameters.as_deref()
    }

    /// Returns the negotiated values, or `None` until ALPN and server name are known.
    pub(crate) fn data(&self) -> Option<&HandshakeData> {
        self.data.as_ref()
    }

    /// Returns the peer's certificate chain in DER, its own first.
    pub(crate) fn peer_certificates(&self) -> Option<&Vec<Vec<u8>>> {
        self.peer_certificates.as_ref()
    }

    /// Returns the TLS exporter, once the handshake is complete.
    pub(crate) fn exporter(&self) -> Option<&Exporter> {
        self.exporter.as_ref()
    }

    /// Returns the header of a packet of the handshake, or of a 0-RTT packet, to `destination`.
    pub(crate) fn long_header(
        &self,
        kind: PacketKind,
        destination: ConnectionId,
    ) -> LongHeader<'_> {
        let has_token = kind == PacketKind::Initial && self.side().is_client();
        LongHeader {
            kind,
            version: self.version.of_kind(kind).value(),
            destination,
            source: self.ids.local(),
            token: if has_token { &self.token } else { &[] },
        }
    }

    /// Returns true when 1-RTT packets may be sent. A client first sends its Finished. A server may
    /// send before it has the client's (RFC 9001 §5.7), but only to a validated address, or if
    /// it has accepted early data: then the client has presented a ticket of ours.
    #[inline]
    pub(crate) fn may_send_application(&self, is_address_validated: bool) -> bool {
        match self.side() {
            Side::Client => self.is_complete,
            Side::Server => is_address_validated || self.early.state() == EarlyData::Accepted,
        }
    }

    /// Returns the state of the early data.
    pub(crate) fn early_data(&self) -> EarlyData {
        self.early.state()
    }

    /// Returns true if 0-RTT packets should be buffered: as long as the ClientHello is incomplete, their keys
    /// may still become available.
    pub(crate) fn may_get_early_keys(&self) -> bool {
        self.side().is_server() && !self.early.was_asked()
    }

    /// Subtracts a 0-RTT packet of `len` bytes from a server's budget. Returns false when that is used up
    /// (limit K153).
    pub(crate) fn take_early_budget(&mut self, len: usize) -> bool {
        self.early.take_budget(len)
    }

    /// Checks that a server which has rejected early data acknowledges none of it.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION if it does (RFC 9001 §4.6.2).
    pub(crate) fn check_ack(&self, frame: &Ack<'_>) -> Result<(), TransportError> {
        let mut ranges = frame.ranges();
        if self.early.state() == EarlyData::Rejected
            && ranges.any(|range| *range.start() < self.first_one_rtt)
        {
            let reason = "acknowledgement of rejected 0-RTT packets";
            return Err(TransportError::protocol_violation(reason));
        }
        Ok(())
    }

    /// Returns true if the acknowledgement of packet `number` confirms the handshake of a client: it
    /// was a 1-RTT packet, which a server reads only after the client's Finished (RFC 9001 §4.1.2).
    pub(crate) fn is_confirmed_by(&self, number: u64) -> bool {
        self.side().is_client() && number >= self.first_one_rtt
    }

    /// Returns the time at which the handshake times out.
    ///
    /// The timeout covers the whole handshake. A client whose address is not validated, and from
    /// which the server receives nothing, has half of it (limit K12), because attackers make
    /// half-open connections. A validated client may be on a path with many losses,where
    /// probe timeouts of four and eight seconds occur. `last_received` is the time of the last packet from
    /// the peer.
    pub(crate) fn deadline(&self, last_received: Time, is_address_validated: bool) -> Option<Time> {
        if self.is_complete {
            return None;
        }
        let whole = self.started + self.timeout;
        Some(if self.side().is_server() && !is_address_validated {
            whole.min(last_received + self.timeout / 2)
        } else {
            whole
        })
    }

    /// Checks the rules about long headers that can be checked without keys (RFC 9000 §7.2, §14.1, §17.2.2,
    /// RFC 9369 §4.1).
    pub(crate) fn accepts_header(&self, packet: &Packet, datagram_len: usize) -> bool {
        self.version.accepts(packet) && self.ids.accepts(packet, datagram_len)
    }

    /// Processes the server's first packet. Returns the destination ID from now on (RFC 9000 §7.2).
    #[inline]
    pub(crate) fn on_first_packet(&mut self, packet: &Packet) -> Option<ConnectionId> {
        self.restart = None;
        self.ids.on_first_packet(packet)
    }

    /// Processes a Retry in `bytes`, by which the server validates the client's address (RFC 9000
    /// §17.2.5.2). Returns false when the packet has to be discarded.
    pub(crate) fn on_retry(&mut self, packet: &Packet, bytes: &[u8]) -> bool {
        let is_acceptable = self.version.accepts(packet) && self.ids.on_retry(packet, bytes);
        if is_acceptable {
            self.token = Bytes::copy_from_slice(&bytes[packet.token.clone()]);
            self.crypto.rewind_initial();
        }
        is_acceptable
    }

    /// Returns true when a Version Negotiation packet from `source` is acceptable (RFC 9000 §6.2).
    pub(crate) fn is_unanswered_by(&self, source: &[u8]) -> bool {
        self.ids.is_unanswered_by(source)
    }

    /// Returns true for a client that has received neither a packet of the server nor a Retry.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.ids.is_unanswered()
    }

    /// Creates the CRYPTO stream of a space whose keys became available.
    pub(crate) fn open_space(&mut self, id: SpaceId) {
        self.crypto.open(id);
    }

    /// Removes the CRYPTO stream of a space whose keys are discarded.
    pub(crate) fn discard_space(&mut self, id: SpaceId) {
        self.crypto.discard(id);
    }

    /// Processes a CRYPTO frame. Returns true when it repeats data of an Initial: the peer has not received our
    /// acknowledgement of that data.
    ///
    /// # Errors
    ///
    /// CRYPTO_BUFFER_EXCEEDED when the frame runs ahead of TLS too far, PROTOCOL_VIOLATION for new
    /// data at an old level, and the alert `unexpected_message` after the handshake.
    pub(crate) fn on_crypto_frame(
        &mut self,
        id: SpaceId,
        frame: &Crypto<'_>,
    ) -> Result<bool, TransportError> {
        let is_repeated = id == SpaceId::Initial && self.crypto.has_received_initial(frame);
        if id < self.reading {
            // A repetition is harmless; new data is not (RFC 9001 §4.1.3).
            if self.crypto.is_ahead(id, frame) {
                let reason = "CRYPTO data at an old encryption level";
                return Err(TransportError::protocol_violation(reason));
            }
            return Ok(is_repeated);
        }
        if self.tls.is_gone() {
            return Err(unexpected_message());
        }
        self.crypto.on_crypto_frame(id, frame)?;
        Ok(is_repeated)
    }

    /// Processes a NEW_TOKEN frame: stores the token.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION on a server.
    pub(crate) fn on_new_token_frame(
        &mut self,
        frame: &NewToken<'_>,
    ) -> Result<(), TransportError> {
        if self.side().is_server() {
            let reason = "NEW_TOKEN from a client";
            return Err(TransportError::protocol_violation(reason));
        }
        if let Some((store, name)) = self.token_store.as_deref()
            && frame.token.len() <= MAX_TOKEN
        {
            let key = token_key(name, self.version.current());
            store.put(&key, Bytes::copy_from_slice(frame.token));
        }
        Ok(())
    }

    /// Starts a client's handshake again in another version, with a first flight to `destination`
    /// (RFC 9368 §2.1).
    ///
    /// # Errors
    ///
    /// Fails if TLS does not start. Then the connection cannot continue.
    pub(crate) fn restart(
        &mut self,
        version: Version,
        destination: ConnectionId,
    ) -> Result<(), TlsStartError> {
        let unexpected = || TlsStartError::Configuration("no other version was offered".to_owned());
        let mut restart = self.restart.take().ok_or_else(unexpected)?;
        restart.parameters.version_information = self.version.information(version);
        self.tls = Tls::Here(Foreign::new(restart.start(version)?));
        self.turn = Turn::Write;
        self.crypto.restart();
        self.ids.restart(destination);
        self.token = Bytes::new();
        self.take_token();
        Ok(())
    }

    /// Takes a token of an earlier connection of the same version from the store.
    pub(super) fn take_token(&mut self) {
        if let Some((store, name)) = self.token_store.as_deref() {
            let token = store.take(&token_key(name, self.version.current()));
            let token = token.filter(|token| token.len() <= MAX_TOKEN);
            self.token = token.unwrap_or_default();
        }
    }

    /// Checks that a HANDSHAKE_DONE frame comes from a server.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION on a server.
    pub(crate) fn check_handshake_done_frame(&self) -> Result<(), TransportError> {
        if self.side().is_server() {
            let reason = "HANDSHAKE_DONE from a client";
            return Err(TransportError::protocol_violation(reason));
        }
        Ok(())
    }

    /// Processes a Handshake packet that arrived after its keys were discarded: the client may not have
    /// received HANDSHAKE_DONE. The frame is sent again, at most once per round trip, because the packet may
    /// be forged.
    pub(crate) fn on_late_packet(&mut self, now: Time, rtt: Duration) {
        self.conclusion.repeat_done(now, rtt);
    }

    /// Returns true once per connection: then data that the peer seems to lack may be repeated before the
    /// probe timeout. That compensates for one lost packet. If both ends did this each time, they would
    /// trigger each other endlessly (RFC 9002 §6.2.3).
    pub(crate) fn take_speed_up(&mut self) -> bool {
        !std::mem::replace(&mut self.was_sped_up, true)
    }

    /// Processes the confirmation of the handshake. Frees the TLS session if no data for it can arrive.
    pub(crate) fn on_confirmed(&mut self) {
        if self.tls.here().is_some_and(|tls| tls.can_be_dropped()) {
            self.tls = Tls::Gone;
        }
    }

    /// Frees the state that only a handshake needs, because the connection is over.
    pub(crate) fn on_close(&mut self) {
        self.tls = Tls::Gone;
        self.restart = None;
        self.conclusion.on_close();
    }

    /// Frees all but the results that the application may ask for.
    pub(crate) fn free(&mut self) {
        self.on_close();
        self.keys = None;
        self.crypto.restart();
        self.peer_parameters = None;
        self.token = Bytes::new();
        self.exporter = None;
        self.token_store = None;
    }

    /// Frees memory that an idle connection does not need. A server has passed the client's parameters
    /// on; a client may ask for them when it migrates.
    pub(crate) fn shrink(&mut self) {
        self.crypto.shrink();
        if self.is_complete && self.side().is_server() {
            self.peer_parameters = None;
        }
    }

    /// Returns true when CRYPTO data of a space is unsent or lost.
    #[inline]
    pub(crate) fn has_crypto_to_send(&self, id: SpaceId) -> bool {
        self.crypto.has_frames_to_send(id)
    }

    /// Returns true when a frame for a 1-RTT packet is due.
    #[inline]
    pub(crate) fn has_frames_to_send(&self) -> bool {
        self.crypto.has_frames_to_send(SpaceId::Application) || self.conclusion.has_frames_to_send()
    }

    /// Writes CRYPTO frames of a space.
    #[inline]
    pub(crate) fn write_crypto_frames(&mut self, id: SpaceId, packet: &mut PacketBuilder<'_>) {
        self.crypto.write_frames(id, packet);
    }

    /// Writes HANDSHAKE_DONE and NEW_TOKEN frames of a server.
    #[inline]
    pub(crate) fn write_frames(&mut self, now: Time, packet: &mut PacketBuilder<'_>) {
        if self.conclusion.has_frames_to_send() {
            self.conclusion.write_frames(now, packet);
        }
    }

    /// Processes the acknowledgement of a CRYPTO frame.
    pub(crate) fn on_crypto_acked(&mut self, id: SpaceId, offset: u64, len: u16) {
        self.crypto.on_acked(id, offset, len);
    }

    /// Sends the content of a CRYPTO frame again that was lost or that a probe repeats.
    pub(crate) fn on_crypto_lost(&mut self, id: SpaceId, offset: u64, len: u16) {
        self.crypto.on_lost(id, offset, len);
    }

    /// Processes the acknowledgement of HANDSHAKE_DONE.
    pub(crate) fn on_handshake_done_acked(&mut self) {
        self.conclusion.on_done_acked();
    }

    /// Sends a lost HANDSHAKE_DONE again.
    pub(crate) fn on_handshake_done_lost(&mut self) {
        self.conclusion.on_done_lost();
    }

    /// Processes the acknowledgement of the NEW_TOKEN frames.
    pub(crate) fn on_new_token_acked(&mut self) {
        self.conclusion.on_tokens_acked();
    }

    /// Sends lost NEW_TOKEN frames again, unless a copy was acknowledged.
    pub(crate) fn on_new_token_lost(&mut self) {
        self.conclusion.on_tokens_lost();
    }

    /// Returns true once, when a server should give the client tokens for its next connection.
    pub(crate) fn take_token_request(&mut self) -> bool {
        self.conclusion.take_token_request()
    }

    /// Queues a NEW_TOKEN frame for each token.
    pub(crate) fn queue_tokens(&mut self, tokens: Vec<Bytes>) {
        self.conclusion.queue_tokens(tokens);
    }

    /// Returns true once for each task with TLS work: the endpoint has to add the connection to its list.
    #[inline]
    pub(crate) fn list_tls_task(&mut self) -> bool {
        self.tls.list()
    }

    /// Returns the listed TLS task, if there is one.
    pub(crate) fn take_tls_task(&mut self) -> Option<TlsTask> {
        self.tls.take_listed()
    }

    /// Puts back the session of a finished task. Returns false when no task is awaited, as on a connection
    /// that is over.
    ///
    /// # Errors
    ///
    /// Returns the error of TLS.
    pub(crate) fn on_tls_finished(&mut self, finished: Finished) -> Result<bool, TransportError> {
        if !matches!(self.tls, Tls::Away) {
            return Ok(false);
        }
        self.tls = Tls::Here(finished.session);
        self.turn = Turn::Write;
        finished.read.map_err(tls_error)?;
        Ok(true)
    }

    /// Processes a panic of TLS in a task, which has lost the session. Returns false when no task is awaited.
    pub(crate) fn on_tls_lost(&mut self) -> bool {
        let is_awaited = matches!(self.tls, Tls::Away);
        if is_awaited {
            self.tls = Tls::Gone;
        }
        is_awaited
    }

    /// Returns the CRYPTO streams, for tests.
    #[cfg(test)]
    pub(crate) fn crypto(&self) -> &CryptoStreams {
        &self.crypto
    }
}

/// Maximum length of a token, so that a ClientHello fits into the same Initial. Longer tokens are neither
/// stored nor used (limit K36).
const MAX_TOKEN: usize = 512;

#[cfg(test)]
mod tests;
