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
    /// The means of another first flight, which a Version Negotiation packet may cause.
    restart: Option<Box<Restart>>,
    started: Time,
    timeout: Duration,
    tls: Tls,
    /// True if TLS reads in tasks that the endpoint hands out.
    offloads_tls: bool,
    turn: Turn,
    /// Keys that TLS has made and that no step has returned.
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
    /// True once data that the peer seemed to miss was repeated before a probe timeout.
    was_sped_up: bool,
}

/// The beginning of a handshake.
pub(crate) struct Beginning {
    pub(crate) now: Time,
    /// The time that the whole handshake may take.
    pub(crate) timeout: Duration,
    pub(crate) tls: Box<dyn TlsSession>,
    pub(crate) offloads_tls: bool,
    pub(crate) version: Negotiation,
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

    /// Begins the handshake of a server, with nothing to write before it has read. It takes at most
    /// `early_room` bytes of 0-RTT packets.
    pub(crate) fn server(beginning: Beginning, ids: HandshakeIds, early_room: u64) -> Self {
        let mut handshake = Self::new(beginning, ids, Turn::Read);
        handshake.early = Early::of_server(early_room);
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
            crypto: CryptoStreams::new(ids.side()),
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

    /// Returns the peer's transport parameters, once they are authentic. A server that was idle has them
    /// no longer.
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
    /// send before it has the client's (RFC 9001 §5.7), but only to a validated address, or in
    /// answer to early data: then the client has shown a session of ours.
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

    /// Returns true if 0-RTT packets without keys may be kept: their keys may come as long as the
    /// ClientHello is not complete.
    pub(crate) fn may_get_early_keys(&self) -> bool {
        self.side().is_server() && !self.early.was_asked()
    }

    /// Takes room for a 0-RTT packet of `len` bytes on a server. Returns false when it is used up
    /// (limit K153).
    pub(crate) fn take_early_budget(&mut self, len: usize) -> bool {
        self.early.take_room(len)
    }

    /// Checks that a server which has refused early data acknowledges none of it.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION if it does (RFC 9001 §4.6.2).
    pub(crate) fn check_ack(&self, frame: &Ack<'_>) -> Result<(), TransportError> {
        let mut ranges = frame.ranges();
        if self.early.state() == EarlyData::Rejected
            && ranges.any(|range| *range.start() < self.first_one_rtt)
        {
            let reason = "0-RTT packets acknowledged that were refused";
            return Err(TransportError::protocol_violation(reason));
        }
        Ok(())
    }

    /// Returns true if the acknowledgement of packet `number` confirms the handshake of a client: it
    /// was a 1-RTT packet, which a server reads only after the client's Finished (RFC 9001 §4.1.2).
    pub(crate) fn is_confirmed_by(&self, number: u64) -> bool {
        self.side().is_client() && number >= self.first_one_rtt
    }

    /// Returns the time at which the handshake has taken too long.
    ///
    /// The timeout covers the whole handshake. A client whose address is not validated, and from
    /// which the server receives nothing, has half of it (limit K12), because attackers make
    /// half-open connections. A validated client may be on a path with many losses, where probe
    /// timeouts of four and eight seconds are left. `last_received` is the time of the last packet from
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

    /// Checks the rules about long headers that need no keys (RFC 9000 §7.2, §14.1, §17.2.2,
    /// RFC 9369 §4.1).
    pub(crate) fn accepts_header(&self, packet: &Packet, datagram_len: usize) -> bool {
        self.version.accepts(packet) && self.ids.accepts(packet, datagram_len)
    }

    /// Takes the server's first packet. Returns the destination ID from now on (RFC 9000 §7.2).
    #[inline]
    pub(crate) fn on_first_packet(&mut self, packet: &Packet) -> Option<ConnectionId> {
        self.restart = None;
        self.ids.on_first_packet(packet)
    }

    /// Takes a Retry in `bytes`, by which the server validates the client's address
    /// (RFC 9000 §17.2.5.2). Returns false when the packet has to be discarded.
    pub(crate) fn on_retry(&mut self, packet: &Packet, bytes: &[u8]) -> bool {
        let is_welcome = self.version.accepts(packet) && self.ids.on_retry(packet, bytes);
        if is_welcome {
            self.token = Bytes::copy_from_slice(&bytes[packet.token.clone()]);
            self.crypto.rewind_initial();
        }
        is_welcome
    }

    /// Returns true when a Version Negotiation packet from `source` is acceptable (RFC 9000 §6.2).
    pub(crate) fn is_unanswered_by(&self, source: &[u8]) -> bool {
        self.ids.is_unanswered_by(source)
    }

    /// Returns true for a client that neither a server nor a Retry has answered.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.ids.is_unanswered()
    }

    /// Opens the CRYPTO stream of a space whose keys have arrived.
    pub(crate) fn open_space(&mut self, id: SpaceId) {
        self.crypto.open(id);
    }

    /// Forgets the CRYPTO stream of a space whose keys are discarded.
    pub(crate) fn discard_space(&mut self, id: SpaceId) {
        self.crypto.discard(id);
    }

    /// Takes a CRYPTO frame. Returns true when it repeats data of an Initial: the peer has no
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

    /// Takes a NEW_TOKEN frame.
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

    /// Begins a client's handshake again in another version, with a first flight to `destination`
    /// (RFC 9368 §2.1).
    ///
    /// # Errors
    ///
    /// Fails if TLS does not start. The connection cannot go on then.
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
        self.crypto = CryptoStreams::new(self.side());
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

    /// Handles a Handshake packet that arrived after its keys were discarded: the client may have
    /// missed HANDSHAKE_DONE. The frame is sent again, at most once per round trip, since the
    /// packet may be forged.
    pub(crate) fn on_late_packet(&mut self, now: Time, rtt: Duration) {
        self.conclusion.repeat_done(now, rtt);
    }

    /// Returns true once per connection: data that the peer seems to miss may be repeated ahead of
    /// the probe timeout. That compensates for one lost packet. Two ends that answered every such
    /// sign with another one would never stop (RFC 9002 §6.2.3).
    pub(crate) fn take_speed_up(&mut self) -> bool {
        !std::mem::replace(&mut self.was_sped_up, true)
    }

    /// Handles the confirmation of the handshake. Frees the TLS session if no data can arrive for
    /// it.
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
        self.crypto.free();
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

    /// Returns true when CRYPTO data waits in a space.
    #[inline]
    pub(crate) fn wants_to_send_crypto(&self, id: SpaceId) -> bool {
        self.crypto.has_frames_to_send(id)
    }

    /// Returns true when a frame for a 1-RTT packet waits.
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

    /// Takes tokens for NEW_TOKEN frames.
    pub(crate) fn queue_tokens(&mut self, tokens: Vec<Bytes>) {
        self.conclusion.queue_tokens(tokens);
    }

    /// Returns true once for each task with TLS work, so that the endpoint lists it.
    #[inline]
    pub(crate) fn list_tls_task(&mut self) -> bool {
        self.tls.list()
    }

    /// Hands out the TLS work that is listed.
    pub(crate) fn take_tls_task(&mut self) -> Option<TlsTask> {
        self.tls.take_listed()
    }

    /// Takes the session back from a task. Returns false when no task is awaited, as on a
    /// connection that is over.
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

    /// Handles a panic of TLS in a task, which loses the session. Returns false when no task is
    /// awaited.
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

/// The longest token, which must leave room for the ClientHello in our Initials. Longer ones are
/// neither kept nor taken from a store (limit K36).
const MAX_TOKEN: usize = 512;

#[cfg(test)]
mod tests;
