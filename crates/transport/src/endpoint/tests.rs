//! Tests which clients an endpoint admits, which datagrams it answers, and which state remains.

use std::net::SocketAddr;
use std::time::Duration;

use courser_base::{Ecn, FourTuple};
use courser_wire::packet::{self, PacketKind};

use super::stateless::MAX_REPLIES;
use super::stateless::reply_limiter::ReplyLimiter;
use super::*;
use crate::config::ReplyLimits;
use crate::connection::{ConnectionError, Event};
use crate::testing::first_datagram::{FirstDatagram, close_code, id, kind_of};
use crate::testing::link::Datagram;
use crate::testing::{End, Pair, RTT, Setup};

mod amplification;
mod connection_ids;
mod faults;
mod grease;
mod incoming;
mod lifecycle;
mod memory;
mod new_tokens;
mod resets;
mod retry;
mod shards;
mod sources;
mod storms;
mod versions;
mod zero_length_ids;

/// Creates a pair whose server has these settings.
fn pair_with(change: impl FnOnce(&mut ServerConfig)) -> Pair {
    let mut setup = Setup::default();
    change(&mut setup.server);
    Pair::with(setup)
}

/// Creates a pair whose server leaves its clients waiting.
fn waiting_pair(change: impl FnOnce(&mut ServerConfig)) -> Pair {
    let mut pair = pair_with(change);
    pair.accepts = false;
    pair
}

/// Delivers one datagram to the server and returns its immediate answers.
fn answers(pair: &mut Pair, datagram: Datagram) -> Vec<Datagram> {
    let before = pair.server.sent.len();
    pair.deliver(datagram);
    pair.drive();
    pair.server.sent[before..].to_vec()
}

/// Makes the server send at most 50 stateless replies per second to one network.
fn slow_replies(pair: &mut Pair) {
    let limits = ReplyLimits {
        per_prefix: 50,
        overall: 10_000,
    };
    *pair.server.endpoint.admission.shared().replies.lock() = ReplyLimiter::new(limits, [1; 16]);
}

/// Configures a server to send a Retry while this many handshakes are in progress.
fn retry_from(server: &mut ServerConfig, half_open: u64) {
    server.half_open_bytes = Some(half_open * admission::handshakes::HANDSHAKE_BYTES);
}

/// Intercepts the client's first flight and returns it.
fn catch_first_flight(pair: &mut Pair) -> Vec<Datagram> {
    pair.link.filter = Some(Box::new(|_, _| false));
    pair.start();
    pair.drive();
    pair.link.filter = None;
    pair.client.sent.clone()
}

impl Endpoint {
    /// Removes a connection without notifying its peer, as after a restart of the machine.
    fn remove_silently(&mut self, handle: ConnectionHandle) {
        self.table.release(handle);
        self.drain(handle);
    }
}

/// Returns the reason why the connection of this end is over.
fn lost(end: &End) -> Option<&ConnectionError> {
    end.events.iter().find_map(|event| match event {
        Event::Lost(error) => Some(error),
        _ => None,
    })
}

/// Returns the bytes of the datagrams of waiting clients.
fn waiting_bytes(endpoint: &Endpoint) -> usize {
    let shared = endpoint.admission.shared();
    shared.counts(endpoint.shard.id()).waiting_bytes()
}

/// Asserts that no state of any connection remains.
fn assert_clean(end: &End, whose: &str) {
    let endpoint = &end.endpoint;
    let stats = endpoint.stats();
    let left = (
        stats.connections,
        stats.half_open,
        stats.waiting,
        endpoint.router.len(),
    );
    assert_eq!(
        left,
        (0, 0, 0, 0),
        "{whose}: connections, half-open, waiting, routes"
    );
    assert_eq!(
        waiting_bytes(endpoint),
        0,
        "{whose}: bytes of waiting clients"
    );
    assert!(
        endpoint.admission.is_empty() && !endpoint.has_replies(),
        "{whose}: room"
    );
    assert_eq!(endpoint.handles().count(), 0, "{whose}: handles");
}
