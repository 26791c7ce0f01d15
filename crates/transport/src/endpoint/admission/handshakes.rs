//! Handshakes in progress, and the pressure that they cause.

use std::time::Duration;

use courser_base::Time;

use super::fair_shares::{Amounts, Claimant, FairShares};
use super::recent_handshakes::RecentHandshakes;
use crate::config::{EndpointConfig, ServerConfig};

/// The limits of handshakes in progress, and the thresholds of pressure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandshakeLimits {
    /// Maximum of incoming connections that wait for the application to accept them (limit K10).
    pub max_waiting: usize,
    /// Maximum bytes of their datagrams (limit K10).
    pub max_waiting_bytes: usize,
    /// Time that the oldest of them may wait before new clients must validate their address (limit
    /// K11).
    pub max_delay: Duration,
    /// Bytes that handshakes in progress may hold before new clients must validate their address
    /// (limit K11).
    pub max_half_open_bytes: u64,
}

impl Default for HandshakeLimits {
    fn default() -> Self {
        Self {
            max_waiting: 16_384,
            max_waiting_bytes: 32 << 20,
            max_delay: Duration::from_millis(200),
            max_half_open_bytes: 256 << 20,
        }
    }
}

impl HandshakeLimits {
    /// Returns the number of handshakes in progress that hold that much memory.
    fn max_half_open(&self) -> usize {
        let count = self.max_half_open_bytes / HANDSHAKE_BYTES;
        usize::try_from(count).unwrap_or(usize::MAX)
    }
}

/// The decision of the limits about a first Initial because of the limits on handshakes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LimitVerdict {
    /// Keep it until the application accepts it.
    Wait,
    /// Send a Retry and store nothing.
    Retry,
    /// Drop it, because a limit is reached.
    Ignore,
    /// Its source has reached its share of a limited resource. Refuse it if it has validated its
    /// address, otherwise send a Retry and store nothing.
    OverShare,
}

/// Counts handshakes in progress, and detects pressure.
///
/// Pressure means that a resource is scarce. CPU time is scarce if clients wait long for the
/// application. Memory is scarce if the queue of incoming connections fills or handshakes hold much
/// memory. The number of handshakes alone is no pressure, because most of them wait for their clients
/// and use no CPU time.
#[derive(Clone, Debug)]
pub struct Handshakes {
    limits: HandshakeLimits,
    /// Number of incoming connections that the application has not accepted or refused.
    waiting: usize,
    waiting_bytes: usize,
    /// Number of these and of accepted connections whose handshake is in progress.
    half_open: usize,
    is_loaded: bool,
    recent: RecentHandshakes,
    /// Lower bound on the handshakes that have been in progress for more than a second.
    stale: usize,
    shares: FairShares,
}

impl Handshakes {
    /// Creates the state without any handshake; `key` must be secret.
    pub fn new(limits: HandshakeLimits, key: [u8; 16]) -> Self {
        Self {
            limits,
            waiting: 0,
            waiting_bytes: 0,
            half_open: 0,
            is_loaded: false,
            recent: RecentHandshakes::default(),
            stale: 0,
            shares: FairShares::new(key),
        }
    }

    /// Updates the number of stale handshakes. Call it before [`Handshakes::admit`].
    pub fn on_time(&mut self, now: Time) {
        let accepted = self.half_open.saturating_sub(self.waiting);
        self.stale = accepted.saturating_sub(self.recent.in_last_second(now));
    }

    /// Changes the limits. More clients than the new limits allow may be waiting already.
    pub fn set_limits(&mut self, limits: HandshakeLimits) {
        self.limits = limits;
    }

    /// Decides about a first Initial in a datagram of `len` bytes, while the oldest waiting client
    /// has waited for `delay`. After [`LimitVerdict::Wait`] call [`Handshakes::on_waiting`].
    ///
    /// Under pressure a client has to validate its address first, which costs the endpoint no
    /// memory. Clients beyond the limits get the same answer. A client with a validated address gets
    /// no answer if it is beyond them, and tries again.
    ///
    /// Below the limits, a source may hold a multiple of what is left (limit K100).
    pub fn admit(&mut self, claimant: Claimant, len: usize, delay: Duration) -> LimitVerdict {
        self.update_load(delay);
        match (self.is_below_limits(len), claimant.is_validated) {
            (true, false) if self.is_loaded => LimitVerdict::Retry,
            (true, _) if self.shares.are_used_up(claimant, self.left()) => LimitVerdict::OverShare,
            (true, _) => LimitVerdict::Wait,
            (false, false) => LimitVerdict::Retry,
            (false, true) => LimitVerdict::Ignore,
        }
    }

    /// Returns true if a client whose turn comes after `delay` should not wait. By its turn it would have
    /// repeated its first flight or ended the attempt, and the work for it would be wasted.
    pub fn is_too_late(&self, delay: Duration) -> bool {
        delay >= LONGEST_DELAY && self.waiting >= MIN_STANDING
    }

    /// Decides about a first Initial of a client that has no token and must not get a Retry.
    pub fn admit_without_retry(&self, claimant: Claimant, len: usize) -> LimitVerdict {
        match self.is_below_limits(len) {
            true if self.shares.are_used_up(claimant, self.left()) => LimitVerdict::OverShare,
            true => LimitVerdict::Wait,
            false => LimitVerdict::Ignore,
        }
    }

    /// Returns false if the source of a waiting client has reached its share of handshakes in progress,
    /// because other clients of it were accepted meanwhile (limit K100).
    pub fn may_begin(&self, claimant: Claimant) -> bool {
        let left = self.left().handshaking;
        !self.shares.are_handshakes_used_up(claimant, left)
    }

    /// Returns the number of sources with clients.
    #[cfg(test)]
    pub fn sources(&self) -> usize {
        self.shares.len()
    }

    fn left(&self) -> Amounts {
        let handshaking = self.half_open.saturating_sub(self.waiting);
        Amounts {
            waiting: self.limits.max_waiting.saturating_sub(self.waiting),
            bytes: self
                .limits
                .max_waiting_bytes
                .saturating_sub(self.waiting_bytes),
            handshaking: self.limits.max_half_open().saturating_sub(handshaking),
        }
    }

    /// Returns true if the limits allow another client with a datagram of `len` bytes to wait.
    fn is_below_limits(&self, len: usize) -> bool {
        let left = self.left();
        left.waiting > 0 && len <= left.bytes
    }

    /// Returns true under pressure, when new clients get a Retry.
    pub fn is_loaded(&self) -> bool {
        self.is_loaded
    }

    /// Counts a new waiting connection with `len` bytes of datagrams.
    pub fn on_waiting(&mut self, claimant: Claimant, len: usize) {
        self.waiting += 1;
        self.waiting_bytes += len;
        self.half_open += 1;
        self.shares.change(claimant, |held| {
            held.waiting += 1;
            held.bytes += len;
        });
    }

    /// Counts another `len` bytes for a waiting connection. Returns false if they are not to be
    /// kept: the last quarter of the limit is for validated clients, and a source may use only its
    /// share (limit K100).
    pub fn on_waiting_bytes(&mut self, claimant: Claimant, len: usize) -> bool {
        let most = self.limits.max_waiting_bytes;
        let most = match claimant.is_validated {
            true => most,
            false => three_quarters(most),
        };
        let fits = self.waiting_bytes + len <= most && {
            let mut left = self.left();
            left.bytes -= len;
            !self.shares.are_bytes_used_up(claimant, len, left.bytes)
        };
        if fits {
            self.waiting_bytes += len;
            self.shares.change(claimant, |held| held.bytes += len);
        }
        fits
    }

    /// Counts a connection with `len` bytes of datagrams as accepted. It no longer waits, but its
    /// handshake continues.
    pub fn on_accepted(&mut self, now: Time, claimant: Claimant, len: usize) {
        self.recent.count(now);
        self.on_left(claimant, len);
    }

    /// Counts a client as handshaking instead of waiting.
    fn on_left(&mut self, claimant: Claimant, len: usize) {
        subtract(&mut self.waiting, 1);
        subtract(&mut self.waiting_bytes, len);
        self.shares.change(claimant, |held| {
            subtract(&mut held.waiting, 1);
            subtract(&mut held.bytes, len);
            held.handshaking += 1;
        });
    }

    /// Removes a waiting connection with `len` bytes of datagrams that is refused or ignored.
    pub fn on_refused(&mut self, claimant: Claimant, len: usize) {
        self.on_left(claimant, len);
        self.on_handshake_ended(claimant);
    }

    /// Removes an accepted connection whose handshake is complete or has failed.
    pub fn on_handshake_ended(&mut self, claimant: Claimant) {
        subtract(&mut self.half_open, 1);
        self.shares
            .change(claimant, |held| subtract(&mut held.handshaking, 1));
    }

    /// Returns the number of connections that wait for the application.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Returns the bytes of the datagrams of waiting connections.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Returns the number of connections in a handshake.
    #[cfg(test)]
    pub fn half_open(&self) -> usize {
        self.half_open
    }

    /// Updates the pressure, which begins at a limit and ends below half of it, so that it does not
    /// oscillate.
    fn update_load(&mut self, delay: Duration) {
        let part = if self.is_loaded { 2 } else { 1 };
        let reaches = |count: usize, limit: usize| count >= limit.div_ceil(part);
        let limits = &self.limits;
        let max_delay = if self.is_loaded {
            limits.max_delay / 2
        } else {
            limits.max_delay
        };
        let half_open = limits.max_half_open();
        self.is_loaded = reaches(self.waiting, three_quarters(limits.max_waiting))
            || reaches(self.waiting_bytes, three_quarters(limits.max_waiting_bytes))
            || reaches(self.half_open, half_open)
            || reaches(self.stale, MAX_STALE)
            || (delay >= max_delay && reaches(self.waiting, MIN_STANDING));
    }
}

/// Returns three quarters of a limit; the rest is for clients with a validated address.
const fn three_quarters(limit: usize) -> usize {
    limit - limit / 4
}

/// Bytes counted for a handshake in progress before the client's address is validated.
pub const HANDSHAKE_BYTES: u64 = 28 << 10;

/// Number of handshakes in progress for a second or more above which new clients must validate
/// their address (limit K11). Honest clients complete within a few round trips; a server under full
/// load, with every fiftieth handshake abandoned, stays below.
pub const MAX_STALE: usize = 1000;

/// Maximum wait of a network's clients: above it, no other client of the network may start to wait
/// (limit K11). A client repeats its first flight after one second and after three (RFC 9002
/// §6.2.2).
pub const LONGEST_DELAY: Duration = Duration::from_secs(2);

/// Number of waiting clients below which their delay does not indicate pressure. So few are accepted
/// within milliseconds; if they wait for longer, the application delays them on purpose.
pub const MIN_STANDING: usize = 32;

/// Returns the limits of an endpoint with this server.
pub fn limits_of(config: &EndpointConfig, server: Option<&ServerConfig>) -> HandshakeLimits {
    let Some(server) = server else {
        return HandshakeLimits::default();
    };
    HandshakeLimits {
        max_waiting: server.max_incoming,
        max_waiting_bytes: server.max_incoming_bytes,
        max_delay: server.max_incoming_delay,
        max_half_open_bytes: server
            .half_open_bytes
            .unwrap_or(config.memory_budget / HALF_OPEN_PART)
            .min(config.memory_budget),
    }
}

/// Divisor of the memory budget that yields the part for handshakes in progress; above it, clients
/// get a Retry.
const HALF_OPEN_PART: u64 = 2;

fn subtract(count: &mut usize, amount: usize) {
    debug_assert!(*count >= amount, "more clients removed than added");
    *count = count.saturating_sub(amount);
}

#[cfg(test)]
mod tests;
