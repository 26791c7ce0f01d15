//! Clients that request a connection: their first packets, and the decisions of the application.
//! RFC 9000 §5.2.2, §8.1.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use courser_base::Time;
use courser_wire::packet::{MIN_INITIAL_DATAGRAM, Packet, decode_greased};
use courser_wire::{ConnectionId, PreferredAddress, TransportErrorCode, Version};

use super::admission::client::Client;
use super::admission::incoming::Incoming;
use super::admission::tokens::address_token::AddressProof;
use super::admission::verdict::Verdict;
use super::admission::waiting_clients::{StoredDatagram, Waiting};
use super::admission::{FirstPacket, OVER_SHARE};
use super::arrived::Arrived;
use super::router::MIN_DESTINATION;
use super::stateless::reply_limiter::is_refused_port;
use super::{ConnectionHandle, Endpoint};
use crate::config::ServerConfig;
use crate::connection::{Connection, ConnectionError, FirstInitial, ReceivedDatagram};
use crate::error::TransportError;
use crate::path::Place;

/// Maximum of NEW_TOKEN tokens per connection.
const MAX_TOKENS: u32 = 4;

impl Endpoint {
    /// Returns the next client that requests a connection. Networks take turns (limit K101).
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
            let incoming = self.admission.next_incoming()?;
            if !self.admission.is_blocked(incoming.path.peer.ip()) {
                return Some(incoming);
            }
            // Its address was blocked while it waited.
            self.take_waiting(&incoming);
        }
    }

    /// Returns true if [`Endpoint::poll_incoming`] has a client to return.
    pub fn has_incoming(&self) -> bool {
        self.admission.has_incoming()
    }

    /// Returns a measure of the work for clients without a connection: bytes of waiting clients, Retry
    /// packets sent, and datagrams dropped unread. Only differences are meaningful.
    pub fn arrivals(&self) -> u64 {
        self.admission.arrivals() + self.stateless.retries()
    }

    /// Counts `bytes`, which the application holds for its peers and keeps updating, towards the
    /// memory budget. Receive windows stop growing, clients are refused and connections are closed
    /// as if connections held these bytes; [`EndpointStats::memory_used`](super::EndpointStats)
    /// covers connections only.
    pub fn share_memory(&mut self, bytes: Arc<AtomicU64>) {
        self.table.memory_mut().share(bytes);
    }

    /// Starts or stops refusing new clients. Connections and handshakes in progress continue.
    pub fn set_busy(&mut self, is_busy: bool) {
        self.set_refusal(is_busy.then_some("the server is busy"));
    }

    /// Starts refusing new clients, which receive the reason, or stops it.
    pub fn set_refusal(&mut self, reason: Option<&'static str>) {
        self.admission.set_refusal(reason);
    }

    /// Accepts a client, with the endpoint's server configuration or another one.
    ///
    /// # Errors
    ///
    /// Fails when there is no configuration, TLS cannot start with it, or the client's first packets
    /// break a rule. The client receives an error or no answer.
    pub fn accept(
        &mut self,
        now: Time,
        incoming: Incoming,
        config: Option<Arc<ServerConfig>>,
    ) -> Result<ConnectionHandle, ConnectionError> {
        let Some(waiting) = self.take_waiting(&incoming) else {
            return Err(ConnectionError::TimedOut);
        };
        let Waiting {
            client,
            datagrams,
            claim,
        } = waiting;
        let server = self.server.as_deref();
        if let Some(verdict) = self.admission.judge_accepted(&claim, server) {
            self.answer(now, &client, verdict);
            return Err(refused(OVER_SHARE));
        }
        let Some(config) = config.or_else(|| self.server.clone()) else {
            return Err(internal("no server configuration"));
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
            preferred: self.preferred_address(&config, &local_source),
            version: client.version,
        };
        let origin =
            self.origins
                .origin(&self.config, now, client.place, local_source, &mut self.rng);
        let connection = Connection::server(origin, &config, &first).map_err(internal)?;
        let handle = self.table.add(connection, Some(claim.accepted(now)));
        if !self.route_new(handle, local_source, client.place.tuple) {
            // Without our own IDs, two connections with this address cannot be distinguished.
            return Err(internal("no free connection id"));
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
        let router = &mut self.router;
        if let Some(entry) = self.table.entry_mut(handle) {
            router.add_initial_id(handle, &mut entry.routes, client.destination);
            entry.new_tokens = config.new_tokens.min(MAX_TOKENS);
        }
        self.pass_datagrams(now, handle, client.place, datagrams);
        Ok(handle)
    }

    /// Passes the datagrams of a client to its connection.
    fn pass_datagrams(
        &mut self,
        now: Time,
        handle: ConnectionHandle,
        path: Place,
        datagrams: Vec<StoredDatagram>,
    ) {
        let cid_len = self.router.ids().length();
        for StoredDatagram { ecn, mut bytes } in datagrams {
            let accepts = self.config.grease_quic_bit;
            let Ok(packet) = decode_greased(&bytes, 0, cid_len, accepts) else {
                continue;
            };
            if let Some(connection) = self.connection_mut(handle) {
                let datagram = ReceivedDatagram {
                    now,
                    arrived: now,
                    place: path,
                    ecn,
                    len: bytes.len(),
                };
                connection.handle_datagram(&datagram, &mut bytes, &packet);
                connection.on_batch_end(now);
            }
        }
        self.mark_ready(handle);
    }

    /// Returns the preferred address with an ID for it. There is none for a client that addresses us
    /// without IDs (RFC 9000 §18.2).
    fn preferred_address(
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

    /// Refuses a client with CONNECTION_REFUSED.
    pub fn refuse(&mut self, now: Time, incoming: Incoming) {
        let Some(waiting) = self.take_waiting(&incoming) else {
            return;
        };
        self.stats.refused += 1;
        let reason = self.admission.refusal().unwrap_or_default();
        self.answer(now, &waiting.client, Verdict::refuse(reason));
    }

    /// Sends a Retry to a client, which must validate its address, and removes its state.
    ///
    /// # Errors
    ///
    /// Returns the client if it has already answered a Retry.
    #[expect(
        clippy::result_large_err,
        reason = "the client is returned, and no error is created"
    )]
    pub fn retry(&mut self, now: Time, incoming: Incoming) -> Result<(), Incoming> {
        if !incoming.may_retry() {
            return Err(incoming);
        }
        if let Some(waiting) = self.take_waiting(&incoming) {
            self.answer(now, &waiting.client, Verdict::Retry);
        }
        Ok(())
    }

    /// Removes a client without an answer.
    pub fn ignore(&mut self, incoming: Incoming) {
        if self.take_waiting(&incoming).is_some() {
            self.stats.ignored += 1;
        }
    }

    /// Removes a waiting client and its route.
    fn take_waiting(&mut self, incoming: &Incoming) -> Option<Waiting> {
        let waiting = self.admission.take(incoming)?;
        let destination = &waiting.client.destination;
        self.router.remove_waiting(destination, incoming.id);
        Some(waiting)
    }

    /// Processes the first packet of a new client.
    pub(super) fn handle_first_initial(
        &mut self,
        arrived: Arrived,
        datagram: &[u8],
        packet: &Packet,
    ) {
        let is_valid = datagram.len() >= MIN_INITIAL_DATAGRAM
            && packet.destination.len() >= MIN_DESTINATION
            && !is_refused_port(arrived.path.peer.port());
        let server = self.server.as_deref().filter(|_| is_valid);
        let (Some(server), Some(version)) = (server, Version::from_value(packet.version)) else {
            return self.drop_initial(arrived, datagram, packet);
        };
        let client = Client::new(arrived, packet, version);
        let first = FirstPacket {
            client,
            packet,
            datagram,
        };
        match self.admission.judge(&first, server, self.table.memory()) {
            Verdict::Wait(proof) => {
                let number = self.admission.next_number();
                if self.router.add_waiting(client.destination, number) {
                    let datagram = StoredDatagram::new(arrived, datagram);
                    self.admission.admit(client, proof, datagram);
                }
            }
            Verdict::Drop => self.drop_initial(arrived, datagram, packet),
            verdict => self.answer(arrived.now, &client, verdict),
        }
    }

    /// Drops an Initial packet that begins no connection, unless another shard may have its connection.
    fn drop_initial(&mut self, arrived: Arrived, datagram: &[u8], packet: &Packet) {
        if !self.forward_initial(arrived, datagram, packet) {
            self.stats.datagrams_dropped += 1;
        }
    }

    /// Stores a further datagram of a client that waits to be accepted.
    pub(super) fn keep_for_waiting(&mut self, number: u64, arrived: Arrived, datagram: &[u8]) {
        let server = self.server.as_deref();
        let is_stored = self.admission.keep(number, arrived, datagram, server);
        self.stats.datagrams_dropped += u64::from(!is_stored);
    }

    /// Returns true if this server accepts packets of a version, or if there is no server.
    pub(super) fn accepts_version(&self, version: u32) -> bool {
        let version = Version::from_value(version);
        self.server
            .as_ref()
            .is_none_or(|server| version.is_some_and(|version| server.versions.contains(version)))
    }

    /// Answers a packet of a version that this endpoint does not accept.
    pub(super) fn answer_unknown_version(&mut self, arrived: Arrived, datagram: &[u8]) {
        let versions = self.server.as_ref().map(|server| server.versions);
        let rng = &mut self.rng;
        let is_answered = self
            .stateless
            .negotiate_version(arrived, datagram, versions, rng);
        self.stats.datagrams_dropped += u64::from(!is_answered);
    }

    /// Answers a client that may not wait, unless the rate limit of its network is reached.
    pub(super) fn answer(&mut self, now: Time, to: &Client, verdict: Verdict) {
        if !matches!(verdict, Verdict::Retry | Verdict::Refuse { .. }) {
            return;
        }
        if !self.stateless.may_reply(now, to.place.tuple.peer) {
            self.stats.datagrams_dropped += 1;
            return;
        }
        let rng = &mut self.rng;
        if let Verdict::Refuse { code, reason } = verdict {
            let source = self.router.ids().generate_unrouted(rng);
            self.stateless.close(to, source, code, reason);
        } else {
            let source = self.router.retry_source(rng);
            let token = self.admission.tokens().retry(now, to, source, rng);
            self.stateless.retry(to, &source, &token);
        }
    }
}

/// Returns the error of a client that was refused.
fn refused(reason: &'static str) -> ConnectionError {
    let code = TransportErrorCode::CONNECTION_REFUSED;
    ConnectionError::TransportError(TransportError::new(code, reason))
}

/// Returns the error of a client that cannot be accepted because of this endpoint.
fn internal(error: impl std::fmt::Display) -> ConnectionError {
    let code = TransportErrorCode::INTERNAL_ERROR;
    ConnectionError::TransportError(TransportError::new(code, error.to_string()))
}
