//! Limits on the work for unauthenticated peers.

use std::hash::BuildHasher;
use std::net::IpAddr;
use std::time::Duration;

use courser_base::{ScopedIp, Time};

use super::begun::Begun;
use super::shares::{Amounts, Claim, Shares};
use crate::hasher::KeyedState;

/// The room that an endpoint has for handshakes, and the thresholds of pressure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandshakeLimits {
    /// Maximum of incoming connections that wait for the application to accept them (limit K10).
    pub max_waiting: usize,
    /// Maximum bytes of datagrams that are kept for them (limit K10).
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

/// The action for a first Initial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// There is room: keep it until the application accepts it.
    Wait,
    /// Send a Retry and forget it.
    Retry,
    /// Drop it: there is no room.
    Ignore,
    /// Its source holds its share of a scarce resource. Refuse it if it has validated its address;
    /// otherwise send a Retry and forget it.
    OverShare,
}

/// Counts handshakes in progress, and detects pressure.
///
/// Pressure follows the scarce resources. CPU time is short if clients wait long for the
/// application. Memory is short if the queue of incoming connections fills or handshakes hold much
/// memory. The mere number of handshakes is no pressure: most of them wait for their clients and
/// cost no CPU time.
#[derive(Clone, Debug)]
pub struct Handshakes {
    limits: HandshakeLimits,
    /// Number of incoming connections that the application has not accepted or refused.
    waiting: usize,
    waiting_bytes: usize,
    /// Number of these and of accepted connections whose handshake is in progress.
    half_open: usize,
    is_loaded: bool,
    begun: Begun,
    /// Lower bound on the handshakes that have been in progress for more than a second.
    stale: usize,
    shares: Shares,
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
            begun: Begun::default(),
            stale: 0,
            shares: Shares::new(key),
        }
    }

    /// Sets the time before [`Handshakes::admit`].
    pub fn on_time(&mut self, now: Time) {
        let accepted = self.half_open.saturating_sub(self.waiting);
        self.stale = accepted.saturating_sub(self.begun.lately(now));
    }

    /// Changes the limits. More clients than the new limits allow may be waiting already.
    pub fn set_limits(&mut self, limits: HandshakeLimits) {
        self.limits = limits;
    }

    /// Decides about a first Initial in a datagram of `len` bytes, while the oldest waiting client
    /// has waited for `delay`. After [`Admission::Wait`] call [`Handshakes::on_waiting`].
    ///
    /// Under pressure a client has to validate its address first, which costs the endpoint no
    /// memory. Clients for which there is no room get the same answer. A client with a validated
    /// address for which there is no room gets no answer, and tries again.
    ///
    /// While there is room, a source may hold a multiple of what is left (limit K100).
    pub fn admit(&mut self, claim: Claim, len: usize, delay: Duration) -> Admission {
        self.update_load(delay);
        match (self.has_room(len), claim.is_validated) {
            (true, false) if self.is_loaded => Admission::Retry,
            (true, _) if self.shares.are_used_up(claim, self.left()) => Admission::OverShare,
            (true, _) => Admission::Wait,
            (false, false) => Admission::Retry,
            (false, true) => Admission::Ignore,
        }
    }

    /// Returns true if a client whose turn comes after `delay` should rather try again later. By
    /// its turn it would have repeated its first flight or given up, and all work spent on it until
    /// then is lost for clients that can be served.
    pub fn is_too_late(&self, delay: Duration) -> bool {
        delay >= LONGEST_DELAY && self.waiting >= MIN_STANDING
    }

    /// Decides about a first Initial of a client that has no token and must not get a Retry.
    pub fn admit_without_retry(&self, claim: Claim, len: usize) -> Admission {
        match self.has_room(len) {
            true if self.shares.are_used_up(claim, self.left()) => Admission::OverShare,
            true => Admission::Wait,
            false => Admission::Ignore,
        }
    }

    /// Returns false if the source of a waiting client holds its share of handshakes in progress,
    /// because others of it were accepted meanwhile (limit K100).
    pub fn may_begin(&self, claim: Claim) -> bool {
        let left = self.left().handshaking;
        !self.shares.are_handshakes_used_up(claim, left)
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

    /// Returns true if another client with a datagram of `len` bytes may wait.
    fn has_room(&self, len: usize) -> bool {
        self.waiting < self.limits.max_waiting && self.has_room_for(len)
    }

    /// Returns true under pressure, when new clients get a Retry.
    pub fn is_loaded(&self) -> bool {
        self.is_loaded
    }

    /// Counts a new waiting connection, with `len` bytes kept for it.
    pub fn on_waiting(&mut self, claim: Claim, len: usize) {
        self.waiting += 1;
        self.waiting_bytes += len;
        self.half_open += 1;
        self.shares.change(claim, |held| {
            held.waiting += 1;
            held.bytes += len;
        });
    }

    /// Counts another `len` bytes for a waiting connection. Returns false if they are not to be
    /// kept: the last quarter of the room is for validated clients, and a source may use only its
    /// share (limit K100).
    pub fn on_waiting_bytes(&mut self, claim: Claim, len: usize) -> bool {
        let most = self.limits.max_waiting_bytes;
        let most = match claim.is_validated {
            true => most,
            false => three_quarters(most),
        };
        let keeps = self.waiting_bytes + len <= most && {
            let mut left = self.left();
            left.bytes -= len;
            !self.shares.are_bytes_used_up(claim, len, left.bytes)
        };
        if keeps {
            self.waiting_bytes += len;
            self.shares.change(claim, |held| held.bytes += len);
        }
        keeps
    }

    /// Counts a connection, for which `len` bytes were kept in total, as accepted: it no longer
    /// waits, but its handshake continues.
    pub fn on_accepted(&mut self, now: Time, claim: Claim, len: usize) {
        self.begun.count(now);
        self.on_left(claim, len);
    }

    /// Counts a client as handshaking instead of waiting.
    fn on_left(&mut self, claim: Claim, len: usize) {
        subtract(&mut self.waiting, 1);
        subtract(&mut self.waiting_bytes, len);
        self.shares.change(claim, |held| {
            subtract(&mut held.waiting, 1);
            subtract(&mut held.bytes, len);
            held.handshaking += 1;
        });
    }

    /// Removes a waiting connection, for which `len` bytes were kept in total, that is refused,
    /// ignored or given up.
    pub fn on_refused(&mut self, claim: Claim, len: usize) {
        self.on_left(claim, len);
        self.on_handshake_ended(claim);
    }

    /// Removes an accepted connection whose handshake is complete or has failed.
    pub fn on_handshake_ended(&mut self, claim: Claim) {
        subtract(&mut self.half_open, 1);
        self.shares
            .change(claim, |held| subtract(&mut held.handshaking, 1));
    }

    /// Returns the number of connections that wait for the application.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Returns the bytes kept for waiting connections.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Returns the number of connections in a handshake.
    #[cfg(test)]
    pub fn half_open(&self) -> usize {
        self.half_open
    }

    fn has_room_for(&self, len: usize) -> bool {
        let room = self
            .limits
            .max_waiting_bytes
            .saturating_sub(self.waiting_bytes);
        len <= room
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

/// Number of waiting clients below which their delay is no sign of pressure. So few are served
/// within milliseconds; if they wait for longer, the application delays them for its own reasons.
pub const MIN_STANDING: usize = 32;

fn subtract(count: &mut usize, amount: usize) {
    debug_assert!(*count >= amount, "counted down more than up");
    *count = count.saturating_sub(amount);
}

/// Rates of packets that are sent without a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplyLimits {
    /// Packets per second to the addresses of one /24 (IPv4) or /56 (IPv6).
    pub per_prefix: u32,
    /// Packets per second to all addresses.
    pub overall: u32,
}

impl ReplyLimits {
    /// Limits for stateless resets (limit K18).
    ///
    /// Each reset is shorter than the datagram that it answers, so that reflection gains nothing.
    /// After a crash, the peers behind one address are reset at this rate, and the last ones detect
    /// the loss only by their idle timeout.
    pub const STATELESS_RESET: Self = Self {
        per_prefix: 200,
        overall: 2_000,
    };
    /// Limits for Version Negotiation, Retry and refusals (limit K19).
    ///
    /// Each reply is shorter than the datagram that it answers, so that reflection gains nothing.
    /// The rate of a network lets a burst of honest clients behind one address pass. The overall
    /// rate bounds the CPU time: a Retry costs a few microseconds.
    pub const HANDSHAKE: Self = Self {
        per_prefix: 10_000,
        overall: 40_000,
    };
}

/// Prevents the use of an endpoint against victims whose addresses were forged.
///
/// Each prefix, and all of them together, may get one second's worth of packets at once and the
/// rate after that. The table has a fixed size. If all slots for a prefix are taken, the prefix
/// with the least debt is forgotten; it can gain one burst, within the overall rate.
#[derive(Debug)]
pub struct ReplyLimiter {
    limits: ReplyLimits,
    hasher: KeyedState,
    overall: Debt,
    /// [`SETS`] sets; empty until the first packet.
    sets: Vec<[Slot; WAYS]>,
}

impl ReplyLimiter {
    /// Maximum of prefixes that are remembered.
    #[cfg(test)]
    pub const MAX_PREFIXES: usize = SETS * WAYS;

    /// Creates an empty limiter; `key` must be secret. A rate of zero forbids all packets.
    pub fn new(limits: ReplyLimits, key: [u8; 16]) -> Self {
        Self {
            limits,
            hasher: KeyedState::new(key),
            overall: Debt::default(),
            sets: Vec::new(),
        }
    }

    /// Requests one packet to `peer`. Returns true and counts the packet if it may be sent.
    pub fn allow(&mut self, peer: impl Into<ScopedIp>, now: Time) -> bool {
        if self.sets.is_empty() {
            self.sets.resize(SETS, Default::default());
        }
        let prefix = Prefix::of(peer.into());
        let set = usize::try_from(self.hasher.hash_one(prefix.0) % SETS as u64);
        let slot = Slot::find(&mut self.sets[set.expect("less than SETS")], prefix);
        let debt = if slot.prefix == prefix {
            slot.debt
        } else {
            Debt::default()
        };
        let overall = self.overall.plus_one(self.limits.overall, now);
        let of_prefix = debt.plus_one(self.limits.per_prefix, now);
        let (Some(overall), Some(of_prefix)) = (overall, of_prefix) else {
            return false;
        };
        self.overall = overall;
        *slot = Slot {
            prefix,
            debt: of_prefix,
        };
        true
    }
}

/// Sets of the table, and slots of a set: together more than the overall rate of resets fills in
/// the second after which a debt is paid.
const SETS: usize = 1024;
const WAYS: usize = 4;

/// One prefix and its debt.
#[derive(Clone, Copy, Default, Debug)]
struct Slot {
    prefix: Prefix,
    debt: Debt,
}

impl Slot {
    /// Returns the slot of a prefix, or the one that it may take over.
    fn find(set: &mut [Self; WAYS], prefix: Prefix) -> &mut Self {
        let known = set.iter().position(|slot| slot.prefix == prefix);
        let least = (0..WAYS).min_by_key(|&index| set[index].debt);
        &mut set[known.or(least).unwrap_or_default()]
    }
}

/// The time at which all packets so far are paid for, each costing a fraction of a second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
struct Debt(Time);

impl Debt {
    /// Returns the debt after another packet, unless that exceeds one second's worth.
    fn plus_one(self, rate: u32, now: Time) -> Option<Self> {
        let cost = Duration::from_secs(1).checked_div(rate)?;
        let paid_at = self.0.max(now) + cost;
        (paid_at - now <= Duration::from_secs(1)).then_some(Self(paid_at))
    }
}

/// The part of an address that one party is assumed to hold: 24 bits of IPv4, 56 of IPv6. All ones
/// in the high byte mark IPv4; zero is not a valid prefix.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Prefix(u64);

impl Prefix {
    fn of(address: ScopedIp) -> Self {
        match address.ip() {
            IpAddr::V4(v4) => Self(0xff << 56 | u64::from(v4.to_bits() >> 8)),
            // A link is a network of its own.
            IpAddr::V6(v6) if v6.is_unicast_link_local() => {
                Self(0x02 << 56 | u64::from(address.scope_id()))
            }
            IpAddr::V6(v6) => {
                let bits = u64::try_from(v6.to_bits() >> 72).expect("56 bits");
                Self(0x01 << 56 | bits)
            }
        }
    }
}

/// Returns true for source ports that no QUIC client uses: services on them would answer our reply,
/// or a forged datagram aims our reply at them (limit K20, RFC 9000 §21.5). Datagrams from these
/// ports that belong to no connection are dropped.
pub fn is_refused_port(port: u16) -> bool {
    REFUSED_PORTS.contains(&port)
}

/// The ports of echo, discard-like and time services, then of name, file, directory, key and
/// discovery services.
const REFUSED_PORTS: [u16; 17] = [
    0, 7, 17, 19, 53, 111, 123, 137, 138, 161, 389, 500, 1900, 3702, 5353, 5355, 11211,
];

#[cfg(test)]
mod tests;
