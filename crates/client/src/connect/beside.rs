//! QUIC connections beside a TCP connection that serves the origin.

use std::sync::Arc;
use std::time::Instant;

use tokio::task::JoinSet;

use super::super::core::Core;
use super::super::link::Established;
use super::super::pool::Key;
use super::super::race::Race;
use super::super::timing::Timing;
use super::{Attempts, addresses, late};

/// The result of a move to QUIC.
pub(in super::super) enum Move {
    Connected(Established),
    /// Earlier connections failed, so that none was tried. The period ends then.
    Avoided(Instant),
    /// Nothing announces HTTP/3.
    Unannounced,
    /// No server answered, or none has an address.
    Failed,
}

/// Connects to the servers that may offer an origin over HTTP/3, and remembers a failure.
///
/// # Cancel safety
/// Dropping the future abandons all attempts, and nothing is remembered.
pub(in super::super) async fn connect_over_quic(core: &Arc<Core>, key: &Key) -> Move {
    let (host, port) = core.settings.destination(&key.origin);
    let mut searches = JoinSet::new();
    addresses::begin(core, &key.origin, (&host, port), &mut searches);
    let Ok(resolved) = core.lookup(&host, port).await else {
        return Move::Failed;
    };
    let race = Race::new(core.settings.attempt_delay);
    // Without early data, so that the connection has proved to work before a request uses it.
    let mut attempts = Attempts::of(core, key, resolved, race, true);
    if let Some(until) = attempts.quic_avoided_until() {
        return Move::Avoided(until);
    }
    while let Some(found) = searches.join_next().await {
        attempts.add(found.unwrap_or_default());
    }
    if attempts.race.is_lost() {
        return match attempts.avoided_until {
            Some(until) => Move::Avoided(until),
            // None of the announced servers has an address that may be used.
            None if core.announces_http3(&key.origin) => Move::Failed,
            None => Move::Unannounced,
        };
    }
    let mut timing = Timing::new();
    let running = attempts.run(&mut searches, &mut timing);
    match tokio::time::timeout(late::PATIENCE, running).await {
        Ok(Ok(established)) => Move::Connected(established.moved()),
        Ok(Err(error)) => attempts.on_lost(error.is_tls()),
        Err(_) => attempts.on_lost(false),
    }
}

impl Attempts<'_> {
    /// Returns the end of the period in which QUIC to the origin is not tried.
    fn quic_avoided_until(&self) -> Option<Instant> {
        let (memory, now) = (self.core.udp_memory(), Instant::now());
        memory.avoided_until(now, self.local?, &self.key.origin)
    }

    /// Remembers that QUIC failed while TCP served the origin. `is_answered` is true if a server answered.
    fn on_lost(&self, is_answered: bool) -> Move {
        let Some(local) = self.local else {
            return Move::Failed;
        };
        let (origin, now) = (&self.key.origin, Instant::now());
        let mut memory = self.core.udp_memory();
        for alternative in &self.tried_alternatives {
            memory.on_alternative_failed(now, local, (origin, alternative));
        }
        // A server with a wrong certificate says nothing about UDP in this network, and an alternative on another
        // host nothing about others.
        let is_elsewhere = self.tried_alternatives.len() == self.quic_attempts;
        match is_answered {
            true if is_elsewhere => {}
            true => memory.on_broken(now, local, origin),
            false => memory.on_failed(now, local, origin),
        }
        let until = memory.avoided_until(now, local, origin);
        let of_alternatives = self.tried_alternatives.iter().filter_map(|alternative| {
            memory.alternative_avoided_until(now, local, (origin, alternative))
        });
        match until.or(of_alternatives.min()) {
            Some(until) => Move::Avoided(until),
            None => Move::Failed,
        }
    }
}
