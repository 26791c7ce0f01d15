//! The race of HTTP/3 against TCP: the order and times of connection attempts.
//!
//! It resembles Happy Eyeballs (draft-ietf-happy-happyeyeballs-v3 §6): attempts start one after the other with a
//! connection attempt delay between them, and the next starts at once when one fails. QUIC and TCP have a lane
//! each, in which address families alternate. The TCP lane opens one delay after the first QUIC attempt, or as
//! soon as QUIC has no attempts left.
//!
//! This deviates from the draft, which has one queue sorted by protocol first. In a network that drops UDP, TCP
//! would then start after two delays with two families, and after four delays with four addresses.
//!
//! The race has no clock and no socket: the caller passes in the time and makes the attempts.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The transport of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Transport {
    /// QUIC over UDP, for HTTP/3.
    Quic,
    /// TCP, for HTTP/2 and HTTP/1.1.
    Tcp,
}

/// An address to try over a transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Candidate {
    pub(super) transport: Transport,
    pub(super) address: SocketAddr,
}

/// A race, from the first candidate to the first connection.
#[derive(Debug)]
pub(super) struct Race {
    quic: Lane,
    tcp: Lane,
    delay: Duration,
    /// True if TCP starts at the same time as QUIC.
    is_level: bool,
}

#[derive(Debug, Default)]
struct Lane {
    waiting: VecDeque<SocketAddr>,
    seen: Vec<SocketAddr>,
    running: usize,
    first_start: Option<Instant>,
    last_start: Option<Instant>,
}

impl Race {
    /// Creates a race whose attempts start `delay` apart.
    pub(super) fn new(delay: Duration) -> Self {
        Self {
            quic: Lane::default(),
            tcp: Lane::default(),
            delay: within_limits(delay),
            is_level: false,
        }
    }

    /// Opens both lanes at once, because QUIC was silent just now.
    pub(super) fn without_head_start(mut self) -> Self {
        self.is_level = true;
        self
    }

    /// Adds addresses in order of preference, except known ones and those beyond the limit.
    pub(super) fn add(&mut self, transport: Transport, addresses: &[SocketAddr]) {
        self.lane_mut(transport).add(addresses);
    }

    /// Returns an attempt to start now. Call it until it returns `None`.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Candidate> {
        for transport in [Transport::Quic, Transport::Tcp] {
            let is_due = self
                .due(transport)
                .is_some_and(|due| due.is_none_or(|at| at <= now));
            if is_due && let Some(address) = self.lane_mut(transport).start(now) {
                return Some(Candidate { transport, address });
            }
        }
        None
    }

    /// Returns when to call [`poll`](Self::poll) again if no attempt ends before, or `None` if no attempt is
    /// left.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        [Transport::Quic, Transport::Tcp]
            .into_iter()
            .filter_map(|transport| self.due(transport)?)
            .min()
    }

    /// Records that an attempt failed.
    pub(super) fn on_failed(&mut self, transport: Transport) {
        let lane = self.lane_mut(transport);
        lane.running = lane.running.saturating_sub(1);
    }

    /// Returns true if all attempts have failed.
    pub(super) fn is_lost(&self) -> bool {
        self.quic.is_over() && self.tcp.is_over()
    }

    /// Returns when the next attempt of a lane is due: `None` for never, `Some(None)` for now.
    fn due(&self, transport: Transport) -> Option<Option<Instant>> {
        let lane = self.lane(transport);
        if lane.waiting.is_empty() {
            return None;
        }
        if let Some(started) = lane.last_start {
            let next = (lane.running > 0).then(|| started + self.delay);
            return Some(next);
        }
        if transport == Transport::Quic || self.is_level || self.quic.is_over() {
            return Some(None);
        }
        // QUIC has no attempts, or it has had its head start.
        Some(self.quic.first_start.map(|started| started + self.delay))
    }

    const fn lane(&self, transport: Transport) -> &Lane {
        match transport {
            Transport::Quic => &self.quic,
            Transport::Tcp => &self.tcp,
        }
    }

    const fn lane_mut(&mut self, transport: Transport) -> &mut Lane {
        match transport {
            Transport::Quic => &mut self.quic,
            Transport::Tcp => &mut self.tcp,
        }
    }
}

impl Lane {
    fn add(&mut self, addresses: &[SocketAddr]) {
        for address in interleave(addresses) {
            if self.seen.len() < MAX_CANDIDATES && !self.seen.contains(&address) {
                self.seen.push(address);
                self.waiting.push_back(address);
            }
        }
    }

    fn start(&mut self, now: Instant) -> Option<SocketAddr> {
        let address = self.waiting.pop_front()?;
        self.running += 1;
        self.first_start.get_or_insert(now);
        self.last_start = Some(now);
        Some(address)
    }

    fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.running == 0
    }
}

/// Clamps an attempt delay to the allowed range.
pub(super) fn within_limits(delay: Duration) -> Duration {
    delay.clamp(MIN_DELAY, MAX_DELAY)
}

/// Alternates between address families, starting with that of the first address, which the resolver prefers
/// (draft-ietf-happy-happyeyeballs-v3 §5.3, RFC 6724).
pub(super) fn interleave(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let Some(first) = addresses.first() else {
        return Vec::new();
    };
    let is_first_family = |address: &&SocketAddr| address.is_ipv6() == first.is_ipv6();
    let mut one = addresses.iter().copied().filter(|a| is_first_family(&a));
    let mut other = addresses.iter().copied().filter(|a| !is_first_family(&a));
    let mut sorted = Vec::with_capacity(addresses.len());
    loop {
        let (a, b) = (one.next(), other.next());
        if a.is_none() && b.is_none() {
            return sorted;
        }
        sorted.extend(a.into_iter().chain(b));
    }
}

/// Recommended delay between attempts (draft-ietf-happy-happyeyeballs-v3 §9).
pub(super) const DEFAULT_DELAY: Duration = Duration::from_millis(250);
/// Shortest delay, because each attempt costs the network a handshake.
const MIN_DELAY: Duration = Duration::from_millis(10);
/// Longest delay, because a user waits.
const MAX_DELAY: Duration = Duration::from_secs(2);
/// Largest number of addresses per transport. Some names have more, but users do not wait that long.
const MAX_CANDIDATES: usize = 10;

#[cfg(test)]
mod tests;
