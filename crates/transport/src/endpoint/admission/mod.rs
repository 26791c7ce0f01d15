//! Decides which new clients may connect (RFC 9000 §8.1).

pub mod address_filter;
pub mod backlog;
pub mod claim;
pub mod client;
pub mod creation_limiter;
pub mod fair_queue;
pub mod fair_shares;
pub mod handshake_counts;
pub mod handshakes;
pub mod incoming;
mod recent_handshakes;
pub mod tokens;
pub mod verdict;
pub mod waiting_clients;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use courser_base::Time;
use courser_wire::TransportErrorCode;
use courser_wire::packet::Packet;

use self::address_filter::AddressFilter;
use self::backlog::Backlog;
use self::claim::Claim;
use self::client::{Client, is_authentic};
use self::fair_queue::FairQueue;
use self::fair_shares::Claimant;
use self::handshakes::{HandshakeLimits, LimitVerdict};
use self::incoming::Incoming;
use self::tokens::Tokens;
use self::tokens::address_token::{AddressProof, Lifetimes, Presented, SystemSeconds};
use self::verdict::Verdict;
use self::waiting_clients::{StoredDatagram, Waiting, WaitingClients};
use super::arrived::Arrived;
use super::memory::Memory;
use super::secrets::Secrets;
use super::shards::ShardId;
use super::shared::Shared;
use super::stats::EndpointStats;
use crate::build::transmit::SocketId;
use crate::config::{EndpointConfig, RetryPolicy, ServerConfig};

/// Decides which datagrams are processed and which clients may wait, and stores the waiting clients.
#[derive(Debug)]
pub struct Admission {
    shared: Arc<Shared>,
    shard: ShardId,
    address_filter: Arc<AddressFilter>,
    backlog: Backlog,
    /// The reason for which new clients are refused, while they are.
    refusal: Option<&'static str>,
    tokens: Tokens,
    waiting: WaitingClients,
    queue: FairQueue<Incoming>,
    counts: Counts,
}

/// The numbers of clients and datagrams that were not admitted.
#[derive(Clone, Copy, Default, Debug)]
struct Counts {
    blocked: u64,
    over_share: u64,
    refused_while_busy: u64,
    refused_for_memory: u64,
    refused_for_share: u64,
    refused_for_rate: u64,
    ignored_for_room: u64,
}

/// A first Initial packet, and the client that it describes.
#[derive(Clone, Copy, Debug)]
pub struct FirstPacket<'a> {
    pub client: Client,
    pub packet: &'a Packet,
    pub datagram: &'a [u8],
}

impl FirstPacket<'_> {
    /// Returns true if the packet opens with the Initial keys.
    fn is_authentic(&self) -> bool {
        is_authentic(self.datagram, self.packet)
    }
}

/// The datagrams of a receive buffer that may be processed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admitted {
    All,
    /// Those of connections at their validated addresses.
    OfConnections,
    None,
}

impl Admission {
    /// Creates the admission of a shard, without clients.
    pub fn new(
        config: &EndpointConfig,
        shard: ShardId,
        secrets: &Secrets,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            shared,
            shard,
            address_filter: Arc::default(),
            backlog: Backlog::new(secrets.backlog),
            refusal: None,
            tokens: Tokens::new(config),
            waiting: WaitingClients::new(secrets.waiting_clients),
            queue: FairQueue::new(secrets.queue),
            counts: Counts::default(),
        }
    }

    /// Changes the limits of handshakes in progress, for all shards.
    pub fn set_limits(&self, limits: HandshakeLimits) {
        self.shared.handshakes.lock().set_limits(limits);
    }

    /// Changes the key, the clock and the lifetime of tokens; without a server they are those of the endpoint.
    pub fn set_tokens(&mut self, config: &EndpointConfig, server: Option<&ServerConfig>) {
        let key = server.and_then(|server| server.token_key);
        let clock = server.and_then(|server| server.time_of_day.clone());
        self.tokens.set(&key.unwrap_or(config.token_key), clock);
        if let Some(server) = server {
            let mut used = self.shared.used_tokens.lock();
            used.set_lifetime(server.new_token_lifetime);
        }
    }

    /// Replaces the list of blocked addresses.
    pub fn set_address_filter(&mut self, filter: Arc<AddressFilter>) {
        self.address_filter = filter;
    }

    /// Returns true if datagrams from this address must be dropped.
    pub fn is_blocked(&self, address: IpAddr) -> bool {
        self.address_filter.is_blocked(address)
    }

    /// Starts refusing new clients with this reason, or stops it.
    pub fn set_refusal(&mut self, reason: Option<&'static str>) {
        self.refusal = reason;
    }

    /// Returns the reason why all new clients are refused, if they are.
    pub fn refusal(&self) -> Option<&'static str> {
        self.refusal
    }

    /// Returns the tokens that prove addresses.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Returns the tokens that prove addresses.
    #[cfg(test)]
    pub fn tokens_mut(&mut self) -> &mut Tokens {
        &mut self.tokens
    }

    /// Returns which of `count` datagrams from this address may be processed. Counts those of blocked addresses as
    /// dropped.
    #[inline]
    pub fn admit_datagrams(&mut self, now: Time, peer: SocketAddr, count: u64) -> Admitted {
        if self.address_filter.is_blocked(peer.ip()) {
            self.counts.blocked += count;
            return Admitted::None;
        }
        match self.backlog.must_drop(now, peer, count) {
            true => Admitted::OfConnections,
            false => Admitted::All,
        }
    }

    /// Counts a datagram that was dropped because its network sends too much.
    pub fn on_over_share(&mut self) {
        self.counts.over_share += 1;
    }

    /// Records whether the socket still has datagrams after a turn.
    #[inline]
    pub fn on_socket_read(&mut self, now: Time, has_more: bool) {
        self.backlog.on_turn(now, has_more);
    }

    /// Decides about a client that sends its first Initial.
    pub fn judge(
        &mut self,
        first: &FirstPacket<'_>,
        server: &ServerConfig,
        memory: &Memory,
    ) -> Verdict {
        let (client, now) = (&first.client, first.client.since);
        let peer = client.place.tuple.peer;
        if let Some(reason) = self.refusal {
            self.counts.refused_while_busy += 1;
            return Verdict::refuse(reason);
        }
        // This check precedes any cryptography, so that an overloaded server spends no time on clients
        // that it cannot serve.
        let delay = self.queue.delay(now, peer.ip());
        let handshakes = self.shared.handshakes.lock();
        let is_too_late = handshakes.is_too_late(delay);
        let waiting_bytes = handshakes.waiting_bytes();
        drop(handshakes);
        if is_too_late {
            self.counts.ignored_for_room += 1;
            return Verdict::Ignore;
        }
        let presented = Presented {
            token: &first.datagram[first.packet.token.clone()],
            peer,
            destination: client.destination,
            version: client.version,
            now: self.tokens.seconds(now),
            lifetimes: Lifetimes {
                retry: server.retry_token_lifetime,
                validation: server.new_token_lifetime,
            },
        };
        let proof = presented.judge(&self.tokens.key, &self.shared.used_tokens.lock());
        if proof == AddressProof::InvalidRetry {
            // The token may have been damaged in transit. The client is refused only if its packet is
            // valid apart from the token (RFC 9000 §8.1.2).
            return match first.is_authentic() {
                true => Verdict::Refuse {
                    code: TransportErrorCode::INVALID_TOKEN,
                    reason: "the Retry token is forged, of another client or expired",
                },
                false => Verdict::Drop,
            };
        }
        if memory.is_short(waiting_bytes as u64) {
            self.counts.refused_for_memory += 1;
            return Verdict::refuse("memory is short");
        }
        let claimant = client.claimant(proof != AddressProof::None);
        let is_loaded = match self.judge_limits(now, server, claimant, first.datagram.len()) {
            Ok(is_loaded) => is_loaded,
            Err(verdict) => return verdict,
        };
        // Anyone on the path sees the token, so a packet that does not open must not cost its
        // owner anything: neither the token nor part of the connection rate.
        if !first.is_authentic() {
            return Verdict::Drop;
        }
        let rate = server.rate(is_loaded);
        if let Some(verdict) = rate.and_then(|rate| self.judge_rate(now, server, claimant, rate)) {
            return verdict;
        }
        let seconds = presented.now;
        self.use_token(first, server, proof, seconds)
    }

    /// Uses up the token of a client that may wait. Only now it may be known that the token was used before: the client
    /// is then judged as one without.
    fn use_token(
        &mut self,
        first: &FirstPacket<'_>,
        server: &ServerConfig,
        proof: AddressProof,
        now: SystemSeconds,
    ) -> Verdict {
        let claimed = match &server.token_log {
            Some(log) => proof.claim_in(&**log, server.new_token_lifetime),
            None => proof.claim(&mut self.shared.used_tokens.lock(), now),
        };
        if claimed == proof {
            return Verdict::Wait(claimed);
        }
        let claimant = first.client.claimant(false);
        let (since, len) = (first.client.since, first.datagram.len());
        let judged = self.judge_limits(since, server, claimant, len);
        judged.err().unwrap_or(Verdict::Wait(claimed))
    }

    /// Applies the limits of handshakes to a client. Returns whether the server is under pressure if they
    /// allow the client to wait, and the verdict otherwise.
    fn judge_limits(
        &mut self,
        now: Time,
        server: &ServerConfig,
        claimant: Claimant,
        len: usize,
    ) -> Result<bool, Verdict> {
        let delay = self.waiting.delay(now);
        let mut handshakes = self.shared.handshakes.lock();
        handshakes.on_time(now);
        let mut verdict = handshakes.admit(claimant, len, delay);
        if server.retry == RetryPolicy::Always && !claimant.is_validated {
            return Err(Verdict::Retry);
        }
        let may_retry = may_retry(server, claimant);
        if verdict == LimitVerdict::Retry && !may_retry {
            verdict = handshakes.admit_without_retry(claimant, len);
        }
        match verdict {
            LimitVerdict::Wait => Ok(handshakes.is_loaded()),
            LimitVerdict::Retry => Err(Verdict::Retry),
            LimitVerdict::OverShare if may_retry => Err(Verdict::Retry),
            LimitVerdict::OverShare => {
                self.counts.refused_for_share += 1;
                Err(Verdict::refuse_source(claimant, OVER_SHARE))
            }
            LimitVerdict::Ignore => {
                self.counts.ignored_for_room += 1;
                Err(Verdict::Ignore)
            }
        }
    }

    /// Decides about a client beyond the rate of its source (limit K102), whose packet was opened. Returns
    /// `None` and counts the client if it is within the rate.
    fn judge_rate(
        &mut self,
        now: Time,
        server: &ServerConfig,
        claimant: Claimant,
        rate: u32,
    ) -> Option<Verdict> {
        let Claimant {
            address,
            is_validated,
        } = claimant;
        let mut creation = self.shared.creation.lock();
        if creation.allow(address, is_validated, rate, now) {
            return None;
        }
        if may_retry(server, claimant) {
            return Some(Verdict::Retry);
        }
        self.counts.refused_for_rate += 1;
        let reason = "the address opens connections too fast";
        Some(Verdict::refuse_source(claimant, reason))
    }

    /// Decides about a client whose source has reached its share of handshakes while the client waited.
    /// Returns `None` if it may be accepted. An endpoint without a server may send a Retry.
    pub fn judge_accepted(
        &mut self,
        claim: &Claim,
        server: Option<&ServerConfig>,
    ) -> Option<Verdict> {
        if claim.may_begin() {
            return None;
        }
        let claimant = claim.claimant();
        let may_retry = match server {
            Some(server) => may_retry(server, claimant),
            None => !claimant.is_validated,
        };
        if may_retry {
            return Some(Verdict::Retry);
        }
        self.counts.refused_for_share += 1;
        Some(Verdict::refuse_source(claimant, OVER_SHARE))
    }

    /// Counts a connection towards the rate of its address when its handshake is complete, which validates
    /// the address (limit K102).
    pub fn on_created(&self, now: Time, server: Option<&ServerConfig>, claimant: Claimant) {
        let is_loaded = self.shared.handshakes.lock().is_loaded();
        let rate = server.and_then(|server| server.rate(is_loaded));
        if let Some(rate) = rate.filter(|_| !claimant.is_validated) {
            let mut creation = self.shared.creation.lock();
            creation.count(claimant.address, rate, now);
        }
    }

    /// Returns the number of the next waiting client.
    pub fn next_number(&self) -> u64 {
        self.waiting.next_id()
    }

    /// Stores a client that waits, under [`Admission::next_number`]. `datagram` is its first one.
    pub fn admit(&mut self, client: Client, proof: AddressProof, datagram: StoredDatagram) {
        let incoming = Incoming {
            id: self.waiting.next_id(),
            path: client.place.tuple,
            proof,
            original_destination: match proof {
                AddressProof::Retry(token) => token.original_destination,
                _ => client.destination,
            },
        };
        let claimant = client.claimant(proof != AddressProof::None);
        let bytes = datagram.bytes.len();
        self.waiting.add(Waiting {
            client,
            datagrams: vec![datagram],
            claim: Claim::new(self.shared.clone(), self.shard, claimant, bytes),
        });
        let peer = client.place.tuple.peer;
        self.queue.push(client.since, peer.ip(), incoming);
    }

    /// Stores a further datagram of a waiting client. Returns false if it must be dropped.
    pub fn keep(
        &mut self,
        number: u64,
        arrived: Arrived,
        datagram: &[u8],
        server: Option<&ServerConfig>,
    ) -> bool {
        let most = server.and_then(|server| server.incoming_bytes_per_client);
        let waiting = self.waiting.get_mut(number);
        waiting.is_none_or(|waiting| waiting.keep(arrived, datagram, most))
    }

    /// Removes and returns the next client for the application. Networks take turns.
    pub fn next_incoming(&mut self) -> Option<Incoming> {
        self.queue.pop()
    }

    /// Returns true if [`Admission::next_incoming`] has a client to return.
    pub fn has_incoming(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Removes a waiting client and returns its state.
    pub fn take(&mut self, incoming: &Incoming) -> Option<Waiting> {
        self.waiting.take(incoming.id)
    }

    /// Returns a waiting client.
    pub fn waiting(&self, incoming: &Incoming) -> Option<&Client> {
        self.waiting.get(incoming.id).map(|waiting| &waiting.client)
    }

    /// Returns true if a waiting client arrived at this socket. Examines all of them.
    pub fn uses_socket(&self, socket: SocketId) -> bool {
        self.waiting.uses_socket(socket)
    }

    /// Returns a measure of the work for waiting clients and for datagrams that were dropped unread.
    pub fn arrivals(&self) -> u64 {
        let waiting_bytes = self.shared.counts(self.shard).waiting_bytes();
        waiting_bytes as u64 + self.counts.over_share
    }

    /// Writes the counters into those of the endpoint.
    pub fn count(&self, stats: &mut EndpointStats) {
        let handshakes = self.shared.counts(self.shard);
        stats.half_open = handshakes.half_open();
        stats.waiting = handshakes.waiting();
        stats.datagrams_blocked = self.counts.blocked;
        stats.datagrams_over_share = self.counts.over_share;
        stats.refused_while_busy = self.counts.refused_while_busy;
        stats.refused_for_memory = self.counts.refused_for_memory;
        stats.refused_for_share = self.counts.refused_for_share;
        stats.refused_for_rate = self.counts.refused_for_rate;
        stats.ignored_for_room = self.counts.ignored_for_room;
        // `ignored` already contains the clients that the application ignored.
        stats.ignored += self.counts.ignored_for_room;
    }

    /// Returns the state of all shards.
    #[cfg(test)]
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Returns true if no client waits.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// Returns true if the client may get a Retry.
fn may_retry(server: &ServerConfig, claimant: Claimant) -> bool {
    server.retry != RetryPolicy::Never && !claimant.is_validated
}

/// The reason in a refusal because of limit K100.
pub const OVER_SHARE: &str = "the address holds its share of handshakes";

#[cfg(test)]
mod tests;
