//! Datagrams that are sent without a connection: Version Negotiation, Retry, refusals, stateless resets.

pub mod close;
pub mod late_ids;
pub mod reply_limiter;
pub mod reset;
pub mod version_negotiation;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use courser_base::{Ecn, Time};
use courser_crypto::{ResetKey, reset_token, retry_integrity};
use courser_wire::packet::{MIN_INITIAL_DATAGRAM, encode_retry, retry};
use courser_wire::version::Versions;
use courser_wire::{ConnectionId, TransportErrorCode, Writer};

use self::reply_limiter::is_refused_port;

use super::admission::client::Client;
use super::arrived::Arrived;
use super::shared::Shared;
use super::stats::EndpointStats;
use crate::build::transmit::{SocketId, Transmit, TransmitBuffer};
use crate::cid::ResetToken;
use crate::config::EndpointConfig;
use crate::path::Place;
use crate::rng::Rng;

/// Answers datagrams that belong to no connection. The answers are limited, because the address of a
/// datagram may be forged.
#[derive(Debug)]
pub struct Stateless {
    reset_key: ResetKey,
    shared: Arc<Shared>,
    /// Datagrams that wait to be sent, [`MAX_REPLIES`] at most.
    queue: VecDeque<Reply>,
    counts: Counts,
}

/// A datagram that belongs to no connection.
#[derive(Debug)]
struct Reply {
    to: Place,
    bytes: Vec<u8>,
}

/// The numbers of answers, and of those that were limited.
#[derive(Clone, Copy, Default, Debug)]
struct Counts {
    retries: u64,
    version_negotiations: u64,
    resets: u64,
    over_rate: u64,
    over_room: u64,
}

impl Stateless {
    /// Creates an empty queue. The limits are those of all shards.
    pub fn new(config: &EndpointConfig, shared: Arc<Shared>) -> Self {
        Self {
            reset_key: ResetKey::new(&config.reset_key),
            shared,
            queue: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// Returns the token with which a stateless reset of an ID ends.
    pub fn reset_token(&self, id: &ConnectionId) -> ResetToken {
        reset_token::derive(&self.reset_key, id)
    }

    /// Answers a packet of an unsupported version with the versions that we support (RFC 9000 §6.1).
    /// An endpoint without a server supports none. Returns false if there is no answer.
    pub fn negotiate_version(
        &mut self,
        arrived: Arrived,
        datagram: &[u8],
        supported: Option<Versions>,
        rng: &mut Rng,
    ) -> bool {
        let peer = arrived.path.peer;
        let is_answered = datagram.len() >= MIN_INITIAL_DATAGRAM
            && !is_refused_port(peer.port())
            && self.may_reply(arrived.now, peer);
        let answer = supported
            .filter(|_| is_answered)
            .and_then(|versions| version_negotiation::answer(datagram, versions, rng));
        let is_queued = answer.is_some_and(|answer| self.queue(arrived.place(), answer));
        self.counts.version_negotiations += u64::from(is_queued);
        is_queued
    }

    /// Answers a packet for an ID without a connection (RFC 9000 §10.3). Returns false if there is no answer.
    pub fn reset(
        &mut self,
        arrived: Arrived,
        len: usize,
        destination: &ConnectionId,
        rng: &mut Rng,
    ) -> bool {
        // Datagrams without an answer must not use up the budget of others.
        let is_answered = !destination.is_empty()
            && len >= reset::MIN_TRIGGER_LEN
            && !is_refused_port(arrived.path.peer.port())
            && self.may_reset(arrived.now, arrived.path.peer)
            && !self.shared.late_ids.lock().contains(destination);
        if !is_answered {
            return false;
        }
        let reset = reset::build(len, &self.reset_token(destination), rng);
        let is_queued = reset.is_some_and(|reset| self.queue(arrived.place(), reset));
        self.counts.resets += u64::from(is_queued);
        is_queued
    }

    /// Refuses a client. `source` is the Source Connection ID of the answer. Call
    /// [`Stateless::may_reply`] before.
    pub fn close(
        &mut self,
        to: &Client,
        source: ConnectionId,
        code: TransportErrorCode,
        reason: &'static str,
    ) {
        self.queue(to.place, close::build(to, source, code, reason));
    }

    /// Sends a Retry with this token, in the version of the client's first Initial (RFC 9369 §4.1). The
    /// client addresses its next Initial to `retry_source`. Call [`Stateless::may_reply`] before.
    pub fn retry(&mut self, to: &Client, retry_source: &ConnectionId, token: &[u8]) {
        let len = retry::encoded_retry_len(&to.source, retry_source, token);
        let mut bytes = vec![0; len];
        let mut writer = Writer::new(&mut bytes);
        let version = to.version.value();
        encode_retry(&mut writer, version, &to.source, retry_source, token);
        let written = writer.position();
        bytes.truncate(written);
        let tag = retry_integrity::tag(&to.destination, &bytes);
        bytes.extend_from_slice(&tag);
        let is_queued = self.queue(to.place, bytes);
        self.counts.retries += u64::from(is_queued);
    }

    /// Requests a Version Negotiation, Retry or refusal from the limiter (limit K19).
    #[must_use = "the reply was counted"]
    pub fn may_reply(&mut self, now: Time, to: SocketAddr) -> bool {
        let is_allowed = self.shared.replies.lock().allow(to, now);
        self.counts.over_rate += u64::from(!is_allowed);
        is_allowed
    }

    /// Requests a stateless reset from the limiter (limit K18).
    fn may_reset(&mut self, now: Time, to: SocketAddr) -> bool {
        let is_allowed = self.shared.resets.lock().allow(to.ip(), now);
        self.counts.over_rate += u64::from(!is_allowed);
        is_allowed
    }

    /// Queues a datagram. Returns false if the queue is full.
    fn queue(&mut self, to: Place, bytes: Vec<u8>) -> bool {
        let fits = self.queue.len() < MAX_REPLIES;
        if fits {
            self.queue.push_back(Reply { to, bytes });
        } else {
            self.counts.over_room += 1;
        }
        fits
    }

    /// Writes the next datagram into the buffer.
    pub fn poll_transmit(&mut self, buffer: &mut TransmitBuffer) -> Option<Transmit> {
        let Reply { to, bytes } = self.queue.pop_front()?;
        buffer.start();
        buffer.spare(bytes.len()).copy_from_slice(&bytes);
        buffer.advance(bytes.len());
        Some(Transmit {
            destination: to.tuple.peer,
            source: to.tuple.local,
            socket: to.socket,
            ecn: Ecn::NotEct,
            segment_size: None,
            len: bytes.len(),
        })
    }

    /// Returns the number of datagrams that wait to be sent.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Returns true if a datagram waits for this socket. Examines all of them.
    pub fn uses_socket(&self, socket: SocketId) -> bool {
        self.queue.iter().any(|reply| reply.to.socket == socket)
    }

    /// Returns the number of Retry packets so far.
    pub fn retries(&self) -> u64 {
        self.counts.retries
    }

    /// Writes the counters into those of the endpoint.
    pub fn count(&self, stats: &mut EndpointStats) {
        stats.retries_sent = self.counts.retries;
        stats.version_negotiations_sent = self.counts.version_negotiations;
        stats.resets_sent = self.counts.resets;
        stats.replies_over_rate = self.counts.over_rate;
        stats.replies_over_room = self.counts.over_room;
    }
}

/// Maximum of datagrams that may wait to be sent; more are dropped.
pub const MAX_REPLIES: usize = 4096;

#[cfg(test)]
mod tests;
