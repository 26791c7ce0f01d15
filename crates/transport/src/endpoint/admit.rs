//! Admission of new clients. RFC 9000 §5.2.2, §8.1.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use courser_base::{Ecn, Time};
use courser_wire::packet::{MIN_INITIAL_DATAGRAM, Packet, decode_greased};
use courser_wire::{ConnectionId, PreferredAddress, TransportErrorCode, Version};

use super::admission::claim::Claim;
use super::admission::client::{Client, is_authentic};
use super::admission::fair_shares::Claimant;
use super::admission::handshakes::Admission;
use super::admission::incoming::Incoming;
use super::admission::tokens::address_token::{AddressProof, Presented, RetryToken};
use super::admission::waiting_room::Waiting;
use super::arrived::Arrived;
use super::router::MIN_DESTINATION;
use super::stateless::reply_limiter::is_refused_port;
use super::{ConnectionHandle, Endpoint};
use crate::config::{RetryPolicy, ServerConfig};
use crate::connection::{Arrival, Connection, ConnectionError, FirstInitial};
use crate::error::TransportError;
use crate::path::Place;

/// Maximum of NEW_TOKEN tokens per connection.
const MAX_TOKENS: u32 = 4;

const OVER_SHARE: &str = "the address holds its share of handshakes";

/// The treatment of a first Initial.
enum Verdict {
    Wait,
    Retry,
    Ignore,
    Refuse(&'static str),
}

impl Verdict {
    /// Refuses a client. A client without a token is ignored instead: its address may be forged,
    /// and the owner of the address must not receive the refusal.
    fn refusal(claimant: Claimant, reason: &'static str) -> Self {
        match claimant.is_validated {
            true => Self::Refuse(reason),
            false => Self::Ignore,
        }
    }
}

/// Returns true if the client may be asked to validate its address.
fn may_retry(server: &ServerConfig, claimant: Claimant) -> bool {
    server.retry != RetryPolicy::Never && !claimant.is_validated
}

const NO_FREE_ID: &str = "no free connection id";

impl Endpoint {
    /// Returns the next client that wants to connect. Networks take turns (limit K101).
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # fn main() -> Result {
    /// # let mut pair = Pair::new()?;
    /// # pair.client.connect(pair.now, &pair.config, SERVER, "localhost")?;
    /// # carry(pair.now, (&mut pair.client, CLIENT), (&mut pair.server, SERVER), &mut pair.events);
    /// # let (server, now) = (&mut pair.server, pair.now);
    /// while let Some(incoming) = server.poll_incoming() {
    ///     println!("a client at {}", incoming.peer());
    ///     let handle = server.accept(now, incoming, None)?;
    ///     # let _ = handle;
    /// }
    /// # assert_eq!(server.connections(), 1);
    /// # Ok(()) }
    /// ```
    pub fn poll_incoming(&mut self) -> Option<Incoming> {
        loop {
            let incoming = self.incoming.pop()?;
            if !self.address_filter.is_blocked(incoming.path.peer.ip()) {
                return Some(incoming);
            }
            // Its address was blocked while it waited.
            self.forget_waiting(&incoming);
        }
    }

    /// Returns true if [`Endpoint::poll_incoming`] has a client to return.
    pub fn has_incoming(&self) -> bool {
        !self.incoming.is_empty()
    }

    /// Returns a measure of the work for clients without a connection: bytes kept while they wait,
    /// Retry packets sent, and datagrams dropped unread. Only differences are meaningful.
    pub fn arrivals(&self) -> u64 {
        let waiting_bytes = self.shared.counts(self.shard.id()).waiting_bytes() as u64;
        waiting_bytes + self.stateless.retries() + self.stats.datagrams_over_share
    }

    /// Counts `bytes`, which the application holds for its peers and keeps updating, towards the
    /// memory budget. Receive windows stop growing, clients are refused and connections are closed
    /// as if connections held these bytes; [`EndpointStats::memory_used`](super::EndpointStats)
    /// covers connections only.
    pub fn share_memory(&mut self, bytes: Arc<AtomicU64>) {
        self.memory.share(bytes);
    }

    /// Starts or stops refusing new clients. Connections and handshakes in progress continue.
    pub fn set_busy(&mut self, is_busy: bool) {
        self.is_busy = is_busy;
    }

    /// Answers a packet of a version that this endpoint does not accept.
    pub(super) fn answer_unknown_version(&mut self, arrived: Arrived, datagram: &[u8]) {
        let versions = self.server.as_ref().map(|server| server.versions);
        let (stateless, rng) = (&mut self.stateless, &mut self.rng);
        if !stateless.negotiate_version(arrived, datagram, versions, rng) {
            self.stats.datagrams_dropped += 1;
        }
    }

    /// Returns true if this server accepts packets of a version, or if there is no server.
    pub(super) fn accepts_version(&self, version: u32) -> bool {
        let version = Version::from_value(version);
        self.server
            .as_ref()
            .is_none_or(|server| version.is_some_and(|version| server.versions.contains(version)))
    }

    /// Handles the first packet of an unknown client.
    pub(super) fn handle_first_initial(
        &mut self,
        arrived: Arrived,
        datagram: &[u8],
        packet: &Packet,
    ) {
        let worthy = datagram.len() >= MIN_INITIAL_DATAGRAM
            && packet.destination.len() >= MIN_DESTINATION
            && !is_refused_port(arrived.path.peer.port());
        let server = self.server.clone().filter(|_| worthy);
        let (Some(server), Some(version)) = (server, Version::from_value(packet.version)) else {
            return self.drop_initial(arrived, datagram, packet);
        };
        let client = Client::new(arrived, packet, version);
        if self.is_busy {
            self.stats.refused_while_busy += 1;
            return self.turn_away(arrived.now, &client, "the server is busy");
        }
        // This check precedes any cryptography: a server with more clients than it can serve must
        // not spend its time on those that it cannot serve.
        let delay = self.incoming.delay(arrived.now, arrived.path.peer.ip());
        if self.shared.handshakes.lock().is_too_late(delay) {
            self.stats.ignored += 1;
            self.stats.ignored_for_room += 1;
            return;
        }
        let presented = Presented {
            token: &datagram[packet.token.clone()],
            peer: arrived.path.peer,
            destination: packet.destination,
            version,
            now: self.seconds(arrived.now),
        };
        let proof = presented.judge(&self.token_key, &self.shared.used_tokens.lock());
        if proof == AddressProof::InvalidRetry {
            // A token that was damaged in transit proves nothing about the client: apart from its
            // token the packet must be valid (RFC 9000 §8.1.2).
            if !is_authentic(datagram, packet) {
                return self.drop_initial(arrived, datagram, packet);
            }
            let reason = "the Retry token is not ours, not yours or too old";
            return self.send_close(
                arrived.now,
                &client,
                TransportErrorCode::INVALID_TOKEN,
                reason,
            );
        }
        let claimant = client.claimant(proof != AddressProof::None);
        let waiting_bytes = self.shared.handshakes.lock().waiting_bytes();
        if self.memory.is_short(waiting_bytes as u64) {
            self.stats.refused_for_memory += 1;
            return self.turn_away(arrived.now, &client, "memory is short");
        }
        let mut verdict = self.judge(arrived.now, &server, claimant, datagram.len());
        if matches!(verdict, Verdict::Wait) {
            // Anyone on the path sees the token, so a packet that does not open must not cost its
            // owner anything: neither the token nor part of the connection rate.
            if !is_authentic(datagram, packet) {
                return self.drop_initial(arrived, datagram, packet);
            }
            verdict = self.judge_rate(arrived.now, &server, claimant);
        }
        match verdict {
            Verdict::Retry => self.send_retry(arrived.now, &client),
            Verdict::Ignore => {}
            Verdict::Refuse(reason) => self.turn_away(arrived.now, &client, reason),
            Verdict::Wait => {
                let now = self.seconds(arrived.now);
                let proof = proof.claim(&mut self.shared.used_tokens.lock(), now);
                self.admit(client, proof, (arrived.ecn, datagram.to_vec()));
            }
        }
    }

    /// Drops an Initial packet that begins no connection, unless another shard may know its connection.
    fn drop_initial(&mut self, arrived: Arrived, datagram: &[u8], packet: &Packet) {
        if !self.hand_on_initial(arrived, datagram, packet) {
            self.stats.datagrams_dropped += 1;
        }
    }

    /// Decides about a client, and counts it unless it is to wait.
    fn judge(
        &mut self,
        now: Time,
        server: &ServerConfig,
        claimant: Claimant,
        len: usize,
    ) -> Verdict {
        let delay = self.room.delay(now);
        let mut handshakes = self.shared.handshakes.lock();
        handshakes.on_time(now);
        let mut admission = handshakes.admit(claimant, len, delay);
        if server.retry == RetryPolicy::Always && !claimant.is_validated {
            return Verdict::Retry;
        }
        let may_retry = may_retry(server, claimant);
        if admission == Admission::Retry && !may_retry {
            admission = handshakes.admit_without_retry(claimant, len);
        }
        drop(handshakes);
        match admission {
            Admission::Wait => Verdict::Wait,
            Admission::Retry => Verdict::Retry,
            Admission::OverShare if may_retry => Verdict::Retry,
            Admission::OverShare => {
                self.stats.refused_for_share += 1;
                Verdict::refusal(claimant, OVER_SHARE)
            }
            Admission::Ignore => {
                self.stats.ignored += 1;
                self.stats.ignored_for_room += 1;
                Verdict::Ignore
            }
        }
    }

    /// Decides about a client for which there is room and whose packet was opened: it may wait if
    /// it is within the rate of its source.
    fn judge_rate(&mut self, now: Time, server: &ServerConfig, claimant: Claimant) -> Verdict {
        if self.may_create(now, server, claimant) {
            return Verdict::Wait;
        }
        if may_retry(server, claimant) {
            return Verdict::Retry;
        }
        self.stats.refused_for_rate += 1;
        Verdict::refusal(claimant, "the address opens connections too fast")
    }

    /// Requests a connection within the rate of the client's source (limit K102).
    fn may_create(&mut self, now: Time, server: &ServerConfig, claimant: Claimant) -> bool {
        let is_loaded = self.shared.handshakes.lock().is_loaded();
        server.rate(is_loaded).is_none_or(|rate| {
            let Claimant {
                address,
                is_validated,
            } = claimant;
            let mut creation = self.shared.creation.lock();
            creation.allow(address, is_validated, rate, now)
        })
    }

    /// Counts the connection as one of its address when the handshake is complete, which has
    /// validated the address (limit K102).
    pub(super) fn count_created(&mut self, now: Time, claimant: Claimant) {
        let is_loaded = self.shared.handshakes.lock().is_loaded();
        let rate = self
            .server
            .as_ref()
            .and_then(|server| server.rate(is_loaded));
        if let Some(rate) = rate.filter(|_| !claimant.is_validated) {
            let mut creation = self.shared.creation.lock();
            creation.count(claimant.address, rate, now);
        }
    }

    /// Refuses a client without keeping any state for it.
    fn turn_away(&mut self, now: Time, client: &Client, reason: &'static str) {
        let code = TransportErrorCode::CONNECTION_REFUSED;
        self.send_close(now, client, code, reason);
    }

    /// Lets a client wait that has sent this datagram.
    fn admit(&mut self, client: Client, proof: AddressProof, datagram: (Ecn, Vec<u8>)) {
        let id = self.room.next_id();
        if !self.router.add_waiting(client.destination, id) {
            return;
        }
        let claimant = client.claimant(proof != AddressProof::None);
        let bytes = datagram.1.len();
        self.room.add(Waiting {
            client,
            datagrams: vec![datagram],
            claim: Claim::new(self.shared.clone(), self.shard.id(), claimant, bytes),
        });
        let original_destination = match proof {
            AddressProof::Retry(token) => token.original_destination,
            _ => client.destination,
        };
        let (path, since) = (client.place.tuple, client.since);
        let incoming = Incoming {
            id,
            path,
            proof,
            original_destination,
        };
        self.incoming.push(since, path.peer.ip(), incoming);
    }

    /// Keeps further datagrams of a client that waits to be accepted.
    pub(super) fn keep_for_waiting(&mut self, id: u64, arrived: Arrived, datagram: &[u8]) {
        let Some(waiting) = self.room.get_mut(id) else {
            return;
        };
        if !waiting.keep(arrived, datagram) {
            self.stats.datagrams_dropped += 1;
        }
    }

    /// Accepts a client, with the endpoint's server configuration or another one.
    ///
    /// # Errors
    ///
    /// When there is no configuration, TLS cannot start with it, or the client's first packets
    /// break a rule. The client has then received an error, or gets no answer.
    pub fn accept(
        &mut self,
        now: Time,
        incoming: Incoming,
        config: Option<Arc<ServerConfig>>,
    ) -> Result<ConnectionHandle, ConnectionError> {
        let Some(waiting) = self.room.take(incoming.id) else {
            return Err(ConnectionError::TimedOut);
        };
        let Waiting {
            client,
            datagrams,
            claim,
        } = waiting;
        self.router.remove_waiting(&client.destination, incoming.id);
        if !claim.may_begin() {
            return Err(self.put_off(now, &client, claim));
        }
        let Some(config) = config.or_else(|| self.server.clone()) else {
            return Err(internal_error("no server configuration"));
        };
        self.config.validate_server(&config).map_err(internal)?;
        let local_source = self.router.new_id(&mut self.rng).map_err(internal)?;
        let first = FirstInitial {
            destination: client.destination,
            source: client.source,
            original_destination: incoming.original_destination,
            retry_source: match incoming.proof {
                AddressProof::Retry(token) => Some(token.retry_source),
                _ => None,
            },
            is_validated: incoming.is_address_validated(),
            reset_token: self.stateless.reset_token(&local_source),
            preferred: self.prefer(&config, &local_source),
            version: client.version,
        };
        let origin = self.origin(now, client.place, local_source);
        let connection = Connection::server(origin, &config, &first).map_err(internal)?;
        let handle = self.add(connection, Some(claim.accepted(now)));
        if !self.route_new(handle, local_source, client.place.tuple) {
            // Without our own IDs, two connections with this address cannot be distinguished.
            self.undo_add(handle);
            return Err(internal_error(NO_FREE_ID));
        }
        if let Some(preferred) = first.preferred {
            let PreferredAddress {
                id, reset_token, ..
            } = preferred;
            self.router.add_id(handle, id);
            if let Some(connection) = self.connection_mut(handle) {
                connection.ids_mut().issue_preferred(id, reset_token);
            }
        }
        self.stats.accepted += 1;
        let Self { router, slots, .. } = self;
        if let Some(slot) = slots.get_mut(handle.index()) {
            router.add_initial_id(handle, &mut slot.routes, client.destination);
            slot.new_tokens = config.new_tokens.min(MAX_TOKENS);
        }
        self.feed(now, handle, client.place, datagrams);
        Ok(handle)
    }

    /// Returns the address that a client should move to, with an ID for its use. There is none for a
    /// client that addresses us without IDs (RFC 9000 §18.2).
    fn prefer(
        &mut self,
        config: &ServerConfig,
        local_source: &ConnectionId,
    ) -> Option<PreferredAddress> {
        let (ipv4, ipv6) = (config.preferred_address_v4, config.preferred_address_v6);
        if local_source.is_empty() || ipv4.is_none() && ipv6.is_none() {
            return None;
        }
        let id = self.router.new_id(&mut self.rng).ok();
        let id = id.filter(|id| id != local_source)?;
        Some(PreferredAddress {
            ipv4,
            ipv6,
            id,
            reset_token: self.stateless.reset_token(&id),
        })
    }

    /// Rejects a client whose source has come to hold its share of handshakes while the client
    /// waited: with a Retry, or finally.
    fn put_off(&mut self, now: Time, client: &Client, claim: Claim) -> ConnectionError {
        let claimant = claim.claimant();
        let server = self.server.as_ref();
        let may_retry = server.is_none_or(|server| may_retry(server, claimant));
        if may_retry && !claimant.is_validated {
            self.send_retry(now, client);
        } else {
            self.stats.refused_for_share += 1;
            if let Verdict::Refuse(reason) = Verdict::refusal(claimant, OVER_SHARE) {
                self.turn_away(now, client, reason);
            }
        }
        ConnectionError::TransportError(TransportError::new(
            TransportErrorCode::CONNECTION_REFUSED,
            OVER_SHARE,
        ))
    }

    /// Passes the datagrams of a client to its connection.
    fn feed(
        &mut self,
        now: Time,
        handle: ConnectionHandle,
        path: Place,
        datagrams: Vec<(Ecn, Vec<u8>)>,
    ) {
        let cid_len = self.router.ids().length();
        for (ecn, mut datagram) in datagrams {
            let accepts = self.config.grease_quic_bit;
            let packet = decode_greased(&datagram, 0, cid_len, accepts);
            let Ok(packet) = packet else {
                continue;
            };
            let len = datagram.len();
            if let Some(connection) = self.connection_mut(handle) {
                let arrival = Arrival {
                    now,
                    arrived: now,
                    path,
                    ecn,
                    len,
                };
                connection.handle_datagram(&arrival, &mut datagram, &packet);
                connection.on_batch_end(now);
            }
        }
        self.touched(handle);
    }

    /// Refuses a client with CONNECTION_REFUSED.
    pub fn refuse(&mut self, now: Time, incoming: Incoming) {
        let Some(waiting) = self.forget_waiting(&incoming) else {
            return;
        };
        let code = TransportErrorCode::CONNECTION_REFUSED;
        self.stats.refused += 1;
        self.send_close(now, &waiting.client, code, "");
    }

    /// Asks a client to prove its address with a Retry, and forgets it.
    ///
    /// # Errors
    ///
    /// Returns the client if it has already answered a Retry.
    #[expect(
        clippy::result_large_err,
        reason = "the client is handed back, not an error made"
    )]
    pub fn retry(&mut self, now: Time, incoming: Incoming) -> Result<(), Incoming> {
        if !incoming.may_retry() {
            return Err(incoming);
        }
        if let Some(waiting) = self.forget_waiting(&incoming) {
            self.send_retry(now, &waiting.client);
        }
        Ok(())
    }

    /// Forgets a client without an answer.
    pub fn ignore(&mut self, incoming: Incoming) {
        if self.forget_waiting(&incoming).is_some() {
            self.stats.ignored += 1;
        }
    }

    fn forget_waiting(&mut self, incoming: &Incoming) -> Option<Waiting> {
        let waiting = self.room.take(incoming.id)?;
        let destination = &waiting.client.destination;
        self.router.remove_waiting(destination, incoming.id);
        Some(waiting)
    }

    pub(super) fn send_close(
        &mut self,
        now: Time,
        to: &Client,
        code: TransportErrorCode,
        reason: &'static str,
    ) {
        if !self.stateless.may_reply(now, to.place.tuple.peer) {
            self.stats.datagrams_dropped += 1;
            return;
        }
        let source = self.router.ids().generate_unrouted(&mut self.rng);
        self.stateless.close(to, source, code, reason);
    }

    fn send_retry(&mut self, now: Time, to: &Client) {
        let peer = to.place.tuple.peer;
        if !self.stateless.may_reply(now, peer) {
            self.stats.datagrams_dropped += 1;
            return;
        }
        let retry_source = self.router.retry_source(&mut self.rng);
        let token = RetryToken {
            address: peer,
            original_destination: to.destination,
            retry_source,
            version: to.version,
            issued: self.seconds(now),
        };
        let token = token.seal(&self.token_key, &mut self.rng);
        self.stateless.retry(to, &retry_source, &token);
    }
}

/// Returns the error of a client that cannot be accepted because of this endpoint.
fn internal(error: impl std::fmt::Display) -> ConnectionError {
    internal_error(error.to_string())
}

fn internal_error(reason: impl Into<std::borrow::Cow<'static, str>>) -> ConnectionError {
    ConnectionError::TransportError(TransportError::new(
        TransportErrorCode::INTERNAL_ERROR,
        reason,
    ))
}
