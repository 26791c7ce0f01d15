//! Behaviour of endpoints: who gets in, who gets an answer, what is left behind.

use std::time::Duration;

use courser_base::{Ecn, FourTuple};
use courser_wire::packet::{self, PacketKind};

use super::*;
use crate::connection::{ConnectionError, Event};
use crate::testing::link::Datagram;
use crate::testing::stranger::{Stranger, close_code, id, kind_of};
use crate::testing::{End, Pair, RTT, Setup};

mod amplification;
mod incoming;
mod lifecycle;
mod memory;
mod new_tokens;
mod resets;
mod retry;
mod sources;
mod storms;
mod versions;
mod zero_length_ids;

/// A pair whose server has these settings.
fn pair_with(change: impl FnOnce(&mut ServerConfig)) -> Pair {
    let mut setup = Setup::default();
    change(&mut setup.server);
    Pair::with(setup)
}

/// A pair whose server leaves its clients waiting.
fn waiting_pair(change: impl FnOnce(&mut ServerConfig)) -> Pair {
    let mut pair = pair_with(change);
    pair.accepts = false;
    pair
}

/// Hands the server one datagram and returns what it answers at once.
fn answers(pair: &mut Pair, datagram: Datagram) -> Vec<Datagram> {
    let before = pair.server.sent.len();
    pair.deliver(datagram);
    pair.drive();
    pair.server.sent[before..].to_vec()
}

/// Has the server send 50 stateless replies a second to one network.
fn slow_replies(pair: &mut Pair) {
    let limits = ReplyLimits {
        per_prefix: 50,
        overall: 10_000,
    };
    pair.server.endpoint.reply_limiter = ReplyLimiter::new(limits, [1; 16]);
}

/// Sends clients a Retry while so many handshakes are in progress.
fn retry_from(server: &mut ServerConfig, half_open: u64) {
    server.half_open_bytes = Some(half_open * limits::HANDSHAKE_BYTES);
}

/// Keeps what the client sends from arriving and returns it.
fn catch_first_flight(pair: &mut Pair) -> Vec<Datagram> {
    pair.link.filter = Some(Box::new(|_, _| false));
    pair.start();
    pair.drive();
    pair.link.filter = None;
    pair.client.sent.clone()
}

/// Why the connection of this end is over.
fn lost(end: &End) -> Option<&ConnectionError> {
    end.events.iter().find_map(|event| match event {
        Event::Lost(error) => Some(error),
        _ => None,
    })
}

/// Nothing is left of any connection.
fn assert_clean(end: &End, whose: &str) {
    let endpoint = &end.endpoint;
    let stats = endpoint.stats();
    let left = (
        stats.connections,
        stats.half_open,
        stats.waiting,
        endpoint.routing.len(),
    );
    assert_eq!(
        left,
        (0, 0, 0, 0),
        "{whose}: connections, half-open, waiting, routes"
    );
    assert_eq!(
        endpoint.handshakes.waiting_bytes(),
        0,
        "{whose}: bytes of waiting clients"
    );
    assert!(
        endpoint.room.waiting.is_empty() && endpoint.replies.is_empty(),
        "{whose}: room"
    );
    assert_eq!(endpoint.handles().count(), 0, "{whose}: handles");
}
