//! Moves to HTTP/3 while TCP serves an origin (RFC 7838 §2.4, RFC 9114 §3.1.1).
//!
//! A response over TCP can announce HTTP/3, and so can an HTTPS record that arrives after TCP has won the race.
//! From the second request on, the client opens a QUIC connection beside the TCP connection. Requests use TCP
//! until QUIC has connected, so none waits for it; afterwards they use QUIC. Those in progress end on the
//! connection on which they began. An HTTP/2 connection remains in the pool until its idle timeout, for the case
//! that the path of the QUIC connection becomes silent.
//!
//! A move that fails is repeated after the periods of [`udp_memory`](super::udp_memory). A client that sends one
//! request to an origin opens no second connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_http3_tokio as h3;
use courser_quic::{Connection, ConnectionError, TransportErrorCode};

use super::connect::{Move, connect_over_quic, local_address_for};
use super::core::Core;
use super::link::Facts;
use super::origin::Origin;
use super::pool::{Key, MoveTimes};

/// Begins a move of requests to `key`, in a task of its own.
pub(super) fn begin(core: &Arc<Core>, key: &Key) {
    let Some(permit) = core.moves.take() else {
        let now = Instant::now();
        let later = Some(now + CROWDED);
        core.pool
            .with_moves(key, |moves| moves.on_ended(now, later, false));
        return;
    };
    let (cloned, key) = (core.clone(), key.clone());
    core.spawn_in_background(async move {
        let core = cloned;
        let (next, has_failed) = run(&core, &key).await;
        let now = Instant::now();
        let end = |moves: &mut MoveTimes| moves.on_ended(now, next, has_failed);
        core.pool.with_moves(&key, end);
        drop(permit);
    });
}

/// Makes one move. Returns the earliest time of the next one, and whether this one has failed.
async fn run(core: &Arc<Core>, key: &Key) -> (Option<Instant>, bool) {
    let moved = tokio::time::timeout(LIMIT, connect_over_quic(core, key)).await;
    match moved {
        Ok(Move::Connected(established)) => {
            core.share_quic(key, &established);
            (Some(Instant::now() + AFTER_MOVE), false)
        }
        Ok(Move::Avoided(until)) => (Some(until), true),
        Ok(Move::Unannounced) => (None, false),
        Ok(Move::Failed) | Err(_) => (Some(Instant::now() + AFTER_FAILURE), true),
    }
}

/// Records that a moved connection has ended with an error or, if `is_broken`, that the server has violated a rule
/// on it, so that requests use TCP for a while.
pub(super) fn on_lost(
    core: &Core,
    key: &Key,
    facts: &Facts,
    (quic, is_broken): (&Connection, bool),
) {
    let is_fault = || quic.close_reason().is_some_and(|reason| is_fault(&reason));
    if facts.is_moved && (is_broken || is_fault()) {
        on_refused(core, &key.origin, facts);
    }
}

/// Records that a server of HTTP/3 answers, but does not serve the origin.
pub(super) fn on_refused(core: &Core, origin: &Origin, facts: &Facts) {
    let local = facts.local.map(|local| local.ip());
    let Some(local) = local.or_else(|| local_address_for(facts.remote)) else {
        return;
    };
    let (mut memory, now) = (core.udp_memory(), Instant::now());
    match &facts.alternative {
        Some(name) => memory.on_alternative_failed(now, local, (origin, name)),
        None => memory.on_broken(now, local, origin),
    }
}

/// Returns true unless a connection ended as connections do: closed by its server without an error, by a timeout,
/// by a restart of the server, or by the client itself.
fn is_fault(reason: &ConnectionError) -> bool {
    match reason {
        ConnectionError::TransportError(_) => true,
        ConnectionError::ConnectionClosed(close) => close.code != TransportErrorCode::NO_ERROR,
        ConnectionError::ApplicationClosed { code, .. } => {
            !h3::Code::from_value(code.value()).is_no_error()
        }
        _ => false,
    }
}

const CROWDED: Duration = Duration::from_secs(1);
/// Time limit of a move, with its name lookups. Its handshake has a shorter one.
const LIMIT: Duration = Duration::from_secs(30);
/// Time between a move and the next one, if its connection is lost.
const AFTER_MOVE: Duration = Duration::from_secs(5);
/// Time after a move that found no server to try, for example because a name had no address.
const AFTER_FAILURE: Duration = Duration::from_secs(60);
