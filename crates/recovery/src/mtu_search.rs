//! The search for the largest datagram that a path carries: DPLPMTUD, RFC 8899, RFC 9000 §14.3.

mod black_hole;

use std::time::Duration;

use courser_base::Time;

use self::black_hole::BlackHole;

/// The datagram size that every QUIC path carries, in bytes of UDP payload. RFC 9000 §14.
pub const BASE_MTU: u16 = 1200;

/// Finds the largest datagram of one path by probes, and detects when the path carries less.
///
/// All sizes are bytes of UDP payload. A probe is a datagram of the size in question without other
/// content; at most one is in flight. The search of a path in use tries sizes up to Ethernet's,
/// whatever is sent. Larger ones are tried once a datagram of the present size was filled: their
/// probes are expensive where they are lost, and senders of small datagrams have no use for them.
///
/// ```text
///             path in use              nothing left to try
///    Base ------------------> Searching ---------------> Complete
///     ^ ^                       |    ^                    |    |
///     | '--- large ones lost ---'    '---- raise timer ---'    |
///     |                                                        |
///     '------------------- large ones lost --------------------'
///     |
///     '--- base size lost ---> Error
/// ```
///
/// If only a probe of the base size was acknowledged after a timeout, larger datagrams are in doubt:
/// full datagrams have the base size until a probe of the present size arrives, or several are lost.
///
/// An ICMP Packet Too Big message leads directly to the size that it reports. If that is smaller
/// than the present size, the search is `Complete` with it; otherwise it is probed next.
#[derive(Clone, Debug)]
pub struct MtuSearch {
    state: State,
    /// The largest datagram size that the path is assumed to carry.
    mtu: u16,
    /// The largest size to try: the limit of the configuration or of the peer.
    max: u16,
    /// The MTU of the interface, if known.
    interface: Option<u16>,
    /// How far the search goes.
    reach: Reach,
    /// True once [`needs_interface_mtu`](Self::needs_interface_mtu) has returned true.
    has_requested_interface: bool,
    /// The probe in flight: its number and size.
    in_flight: Option<(u32, u16)>,
    probes: u32,
    /// Bytes of lost jumbo probes.
    lost_jumbo_bytes: u64,
    /// The size of a probe that is due but does not fit into the window; zero for none.
    awaited: u16,
    pace: MtuSearchPace,
    black_hole: BlackHole,
    /// True while full datagrams have the base size, because the path may no longer carry larger
    /// ones.
    is_doubtful: bool,
}

/// The states of RFC 8899 §5.2, figure 5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The search is disabled, and the size is fixed.
    Disabled,
    /// The present size suffices. The search starts no earlier than `not_before`.
    Base { not_before: Time },
    /// Probing between the present size and `refused`, the smallest that did not pass.
    Searching {
        refused: u16,
        candidate: Option<Candidate>,
    },
    /// The search is over until `raise_at`.
    Complete { raise_at: Time },
    /// The path does not carry even the base size.
    Error,
}

/// How often a search runs, and how exact its result is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MtuSearchPace {
    /// The time after which a larger size is tried again. Default [`PMTU_RAISE_TIMER`].
    pub raise_interval: Duration,
    /// The time without a search after a black hole. `None`, the default, begins it at once: the path may have changed. From
    /// the second black hole on it does not try the size that was lost and larger ones for a minute.
    pub black_hole_delay: Option<Duration>,
    /// The search ends when the largest size that passed and the smallest that did not are at most this far apart, in
    /// bytes, at least 1. Default 6, half a per cent of the smallest datagram.
    pub resolution: u16,
}

impl Default for MtuSearchPace {
    fn default() -> Self {
        Self {
            raise_interval: PMTU_RAISE_TIMER,
            black_hole_delay: None,
            resolution: RESOLUTION,
        }
    }
}

/// The sizes that are worth probing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reach {
    /// Up to the payload of Ethernet: a probe of this size is cheap and likely to pass.
    Ethernet,
    /// All sizes: full datagrams are sent.
    Limit,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Candidate {
    size: u16,
    lost: u8,
}

impl MtuSearch {
    /// Creates a search from datagrams of `mtu` bytes up to `max`.
    pub fn new(mtu: u16, max: u16) -> Self {
        Self {
            state: State::Base {
                not_before: Time::ZERO,
            },
            mtu,
            max: max.max(mtu),
            interface: None,
            reach: Reach::Ethernet,
            has_requested_interface: false,
            in_flight: None,
            probes: 0,
            lost_jumbo_bytes: 0,
            awaited: 0,
            pace: MtuSearchPace::default(),
            black_hole: BlackHole::NONE,
            is_doubtful: false,
        }
    }

    /// Returns the search with another pace.
    #[must_use]
    pub fn with_pace(self, pace: MtuSearchPace) -> Self {
        Self { pace, ..self }
    }

    /// Creates a disabled search: the datagram size is fixed at `mtu`.
    pub fn disabled(mtu: u16) -> Self {
        Self {
            state: State::Disabled,
            ..Self::new(mtu, mtu)
        }
    }

    /// Returns the largest datagram size that the path is assumed to carry.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Returns the size of full datagrams: [`mtu`](Self::mtu), or the base size while larger ones are
    /// in doubt.
    #[inline]
    pub fn size_in_use(&self) -> u16 {
        match self.is_doubtful {
            true => self.mtu.min(BASE_MTU),
            false => self.mtu,
        }
    }

    /// Lowers the limit to the largest size that the peer accepts, its `max_udp_payload_size`.
    pub fn set_peer_limit(&mut self, max: u16) {
        self.max = self.max.min(max);
        self.mtu = self.mtu.min(self.max);
    }

    /// Sets the MTU of the interface towards the peer. It is the next size to be tried and the
    /// largest. Sizes below the base are ignored (RFC 9000 §14.2.1).
    ///
    /// A search in which no size has failed continues, and so does a probe in flight that the
    /// interface can send.
    pub fn set_interface_mtu(&mut self, size: u16) {
        if self.state == State::Disabled || size < BASE_MTU {
            return;
        }
        if self.interface.replace(size) != Some(size) {
            // What was lost on the interface before says nothing about this one.
            self.black_hole.unbar();
        }
        self.mtu = self.mtu.min(size);
        let limit = self.ceiling();
        let in_flight = self.probe_in_flight();
        match &mut self.state {
            State::Base { .. } | State::Error => {}
            State::Searching { refused, .. }
                if *refused > limit && in_flight.is_none_or(|size| size <= limit) =>
            {
                *refused = limit.saturating_add(1);
            }
            _ => self.restart(Time::ZERO),
        }
    }

    /// Returns true once if the search would benefit from the MTU of the interface, which is
    /// unknown.
    pub fn needs_interface_mtu(&mut self) -> bool {
        let is_needed =
            self.is_searching() && self.interface.is_none() && !self.has_requested_interface;
        self.has_requested_interface |= is_needed;
        is_needed
    }

    /// Returns the largest size worth trying.
    pub fn limit(&self) -> u16 {
        self.interface.map_or(self.max, |size| size.min(self.max))
    }

    /// Returns the largest size that is worth trying for what is sent at present.
    fn ceiling(&self) -> u16 {
        match self.reach {
            Reach::Ethernet => self.limit().min(ETHERNET_PAYLOAD),
            Reach::Limit => self.limit(),
        }
    }

    /// Returns true if the path does not carry even datagrams of the base size, so that QUIC cannot
    /// use it (RFC 9000 §14.2).
    pub fn is_error(&self) -> bool {
        self.state == State::Error
    }

    /// Records that a datagram of the present size was sent: any larger size would be useful.
    pub fn on_full_datagram_sent(&mut self, now: Time) {
        if self.reach == Reach::Ethernet {
            self.extend();
        }
        self.on_path_used(now);
    }

    /// Extends the search to all sizes, unless smaller ones have failed.
    fn extend(&mut self) {
        let reached = self.ceiling();
        self.reach = Reach::Limit;
        let limit = self.limit();
        match &mut self.state {
            State::Searching { refused, .. } if *refused > reached => {
                *refused = limit.saturating_add(1);
            }
            State::Complete { raise_at } if self.mtu >= reached && self.mtu < limit => {
                *raise_at = Time::ZERO;
            }
            _ => {}
        }
    }

    /// Records that the path is in use, whatever is sent: a size up to Ethernet's is worth a few
    /// probes.
    #[inline]
    pub fn on_path_used(&mut self, now: Time) {
        match self.state {
            State::Base { not_before } if not_before <= now => self.begin(now),
            State::Complete { raise_at } if raise_at <= now => self.begin(now),
            _ => {}
        }
    }

    fn begin(&mut self, now: Time) {
        let limit = self.ceiling().saturating_add(1);
        let bar = self.black_hole.bar(now);
        self.state = State::Searching {
            refused: bar.map_or(limit, |(size, _)| size.min(limit)),
            candidate: None,
        };
    }

    fn restart(&mut self, not_before: Time) {
        self.state = State::Base { not_before };
        self.in_flight = None;
        self.awaited = 0;
        self.is_doubtful = false;
    }

    /// Returns true if a probe may be due.
    pub fn wants_probe(&self) -> bool {
        let is_searching = matches!(self.state, State::Searching { .. });
        (is_searching || self.is_doubtful) && self.in_flight.is_none()
    }

    /// Returns the room in the window that the next probe waits for; zero for none. A sender that
    /// always fills the window must hold back this much.
    pub fn awaited_room(&self) -> u64 {
        u64::from(self.awaited)
    }

    /// Returns the size of the probe in flight, if there is one.
    pub fn probe_in_flight(&self) -> Option<u16> {
        self.in_flight.map(|(_, size)| size)
    }

    /// Returns false if the search is disabled.
    pub fn is_searching(&self) -> bool {
        self.state != State::Disabled
    }

    /// Returns true if lost jumbo probes are a small part of the bytes that the path has
    /// `delivered`, or the next probe has a usual size. Those are not counted, because they are cheap and likely to
    /// pass.
    ///
    /// Jumbo interfaces with a path of 1500 bytes are common, and the search between these sizes
    /// loses some thirty probes. Sent within 2 MB, they took a twentieth of the time of that
    /// transfer: each uses a part of the window and of the pacer's budget.
    fn can_afford(&self, size: u16, delivered: u64) -> bool {
        let lost = self.lost_jumbo_bytes;
        size <= ETHERNET_PAYLOAD || lost.saturating_mul(DELIVERED_PER_LOST_JUMBO_BYTE) <= delivered
    }

    /// Returns the size to probe next, of at most `room` bytes; `None` if no probe is due, or only a jumbo one, of which too
    /// many were lost for the bytes that the path has `delivered`.
    pub fn next_probe(&mut self, now: Time, room: u64, delivered: u64) -> Option<u16> {
        self.awaited = 0;
        if self.is_doubtful && self.in_flight.is_none() {
            let fits = u64::from(self.mtu) <= room;
            self.awaited = if fits { 0 } else { self.mtu };
            return fits.then_some(self.mtu);
        }
        let State::Searching { refused, candidate } = self.state else {
            return None;
        };
        if self.in_flight.is_some() {
            return None;
        }
        // The limit may have been lowered since the search began.
        let refused = refused.min(self.ceiling().saturating_add(1));
        let is_untried = |it: &Candidate| self.mtu < it.size && it.size < refused;
        let size = match candidate.filter(is_untried) {
            Some(candidate) => candidate.size,
            None => match self.choose(refused) {
                Some(size) => size,
                None => {
                    self.complete(now);
                    return None;
                }
            },
        };
        if !self.can_afford(size, delivered) {
            return None;
        }
        if u64::from(size) <= room {
            return Some(size);
        }
        // The window must grow first. Meanwhile a smaller size that fits is probed.
        let fits = |it: &&u16| u64::from(**it) <= room && **it < size && **it > self.mtu;
        let fitting = LIKELY.iter().rev().find(fits).copied();
        if fitting.is_none() {
            self.awaited = size;
        }
        fitting
    }

    fn complete(&mut self, now: Time) {
        let later = now + self.pace.raise_interval;
        let raise_at = match self.black_hole.bar(now) {
            _ if self.mtu >= self.ceiling() => Time::MAX,
            Some((_, until)) => until.min(later),
            None => later,
        };
        self.state = State::Complete { raise_at };
    }

    /// Returns the next size between the present one and the smallest that did not pass.
    fn choose(&self, refused: u16) -> Option<u16> {
        if refused.saturating_sub(self.mtu) <= self.pace.resolution.max(1) {
            return None;
        }
        let untried = refused - 1;
        if untried == self.ceiling() {
            // No size has failed yet.
            if self.interface.is_some() && untried == self.limit() {
                return Some(untried);
            }
            let next = |size: &&u16| **size > self.mtu && **size >= FIRST_GUESS;
            let next = LIKELY.iter().find(next).copied();
            return Some(next.unwrap_or(untried).min(untried));
        }
        let is_early = self.mtu < NESTED_SIZE && self.black_hole.is_below(NESTED_SIZE);
        if is_early && refused > NESTED_SIZE {
            return Some(NESTED_SIZE);
        }
        let start = LIKELY.partition_point(|&size| size <= self.mtu);
        let end = LIKELY.partition_point(|&size| size < refused);
        let between = &LIKELY[start..end.max(start)];
        let middle = self.mtu + (refused - self.mtu) / 2;
        Some(between.get(between.len() / 2).copied().unwrap_or(middle))
    }

    /// Records that a probe of this size was sent. Returns its number for
    /// [`on_probe_lost`](Self::on_probe_lost).
    pub fn on_probe_sent(&mut self, size: u16) -> u32 {
        self.probes = self.probes.wrapping_add(1);
        self.in_flight = Some((self.probes, size));
        if let State::Searching { candidate, .. } = &mut self.state
            && candidate.is_none_or(|candidate| candidate.size != size)
        {
            *candidate = Some(Candidate { size, lost: 0 });
        }
        self.probes
    }

    /// Records that a probe of this size was acknowledged. Returns true if the datagram size rises.
    pub fn on_probe_acked(&mut self, size: u16) -> bool {
        if self.in_flight.is_some_and(|(_, pending)| pending <= size) {
            self.in_flight = None;
        }
        self.black_hole.on_passed(size);
        self.end_doubt(size);
        let is_larger_than_mtu = matches!(self.state, State::Searching { .. }) && size > self.mtu;
        if is_larger_than_mtu {
            self.mtu = size.min(self.limit());
        }
        is_larger_than_mtu
    }

    fn end_doubt(&mut self, size: u16) {
        if self.is_doubtful && size >= self.mtu {
            (self.is_doubtful, self.black_hole.rounds) = (false, 0);
        }
    }

    /// Records that a probe was lost. After [`MAX_PROBES`] losses a size counts as too large. RFC
    /// 8899 §5.1.2. Returns true if the datagram size falls.
    pub fn on_probe_lost(&mut self, number: u32) -> bool {
        let Some((_, size)) = self.in_flight.filter(|(pending, _)| *pending == number) else {
            return false;
        };
        self.in_flight = None;
        if self.is_doubtful && size >= self.mtu {
            self.black_hole.rounds = self.black_hole.rounds.saturating_add(1);
            return self.detect_black_hole(self.black_hole.since);
        }
        if size > ETHERNET_PAYLOAD {
            self.lost_jumbo_bytes = self.lost_jumbo_bytes.saturating_add(u64::from(size));
        }
        let State::Searching { refused, candidate } = &mut self.state else {
            return false;
        };
        if let Some(tried) = candidate.as_mut().filter(|tried| tried.size == size) {
            tried.lost += 1;
            if tried.lost >= MAX_PROBES || self.black_hole.has_lost(size) {
                *refused = size.min(*refused);
                *candidate = None;
            }
        }
        false
    }

    /// Records that packets were acknowledged. The largest has `size` bytes.
    pub fn on_acked(&mut self, size: u16) {
        if self.black_hole.rounds > 0 && size >= self.black_hole.size {
            self.black_hole.rounds = 0;
        }
        self.end_doubt(size);
        if self.state == State::Error && size >= BASE_MTU {
            self.restart(Time::ZERO);
        }
    }

    /// Records that packets other than probes were lost. The largest has `size` bytes, and the newest
    /// was sent at `sent`. Returns true if the datagram size falls.
    ///
    /// Losses of one burst count once, regardless of the number of acknowledgements that reveal
    /// them: each round consists of packets sent after the previous one was detected.
    pub fn on_lost(&mut self, now: Time, size: u16, sent: Time) -> bool {
        if self.state == State::Disabled || size < BASE_MTU.min(self.mtu) {
            return false;
        }
        let hole = &mut self.black_hole;
        if hole.rounds == 0 {
            hole.size = size;
        } else if sent < hole.since {
            return false;
        }
        hole.size = hole.size.min(size);
        hole.rounds = hole.rounds.saturating_add(1);
        hole.since = now;
        if self.mtu <= BASE_MTU {
            if hole.rounds >= ERROR_ROUNDS {
                self.state = State::Error;
                self.in_flight = None;
            }
            return false;
        }
        self.detect_black_hole(now)
    }

    /// Records that a probe of the base size, sent after a timeout, revealed the losses of
    /// [`on_lost`](Self::on_lost).
    pub fn on_lost_before_timeout(&mut self, size: u16) {
        let may_doubt = !matches!(self.state, State::Disabled | State::Error);
        self.is_doubtful |= may_doubt && size > BASE_MTU && self.mtu > BASE_MTU;
    }

    fn detect_black_hole(&mut self, now: Time) -> bool {
        let hole = &mut self.black_hole;
        if hole.rounds < BLACK_HOLE_ROUNDS {
            return false;
        }
        hole.found = hole.found.saturating_add(1);
        let delay = self.pace.black_hole_delay;
        if delay.is_none() && hole.found > 1 {
            hole.bar_until(now + HOLE_BAR);
        }
        let lost = hole.size;
        self.fall_back(now + delay.unwrap_or(Duration::ZERO), lost);
        true
    }

    /// Processes an ICMP Packet Too Big message: a datagram of `size` bytes did not fit, and
    /// `claimed` bytes do. Returns true if the datagram size falls.
    ///
    /// The caller must check that such a datagram was sent. A claim never raises the size: for a
    /// probe it only selects the size to probe next. Claims below the base size, and those that the
    /// datagram would have satisfied, are ignored (RFC 9000 §14.2.1, RFC 8899 §4.6).
    pub fn on_packet_too_big(&mut self, now: Time, size: u16, claimed: u16) -> bool {
        let ignores_icmp = matches!(self.state, State::Disabled | State::Error);
        if ignores_icmp || claimed < BASE_MTU || claimed >= size {
            return false;
        }
        if claimed < self.mtu {
            // The size falls without waiting for losses. The raise timer corrects a claim that is
            // too low, and losses one that is too high.
            self.mtu = claimed;
            (self.black_hole.rounds, self.is_doubtful) = (0, false);
            self.in_flight = None;
            self.awaited = 0;
            self.complete(now);
            return true;
        }
        let mtu = self.mtu;
        if let State::Searching { refused, candidate } = &mut self.state {
            *refused = claimed.saturating_add(1).min(*refused);
            let is_larger = claimed > mtu && claimed < *refused;
            *candidate = is_larger.then_some(Candidate {
                size: claimed,
                lost: 0,
            });
        }
        false
    }

    /// Records that `count` probe timeouts in a row have expired. Returns true if the datagram size
    /// falls: if the path now carries only small packets, only they can be acknowledged. If the
    /// timeouts had other causes, the first probe restores the size.
    pub fn on_probe_timeout(&mut self, count: u32) -> bool {
        let falls = self.state != State::Disabled && count >= PTO_LIMIT && self.mtu > BASE_MTU;
        if falls {
            self.fall_back(Time::ZERO, self.mtu);
        }
        falls
    }

    /// Records that the address of the peer has changed, on a network path that may be the same.
    /// Earlier losses no longer count, because packets of any size may have been lost at the old
    /// address.
    pub fn on_peer_address_changed(&mut self) {
        (self.black_hole.rounds, self.is_doubtful) = (0, false);
    }

    /// Falls back to the base size, because datagrams of `lost` bytes were lost.
    fn fall_back(&mut self, not_before: Time, lost: u16) {
        self.mtu = BASE_MTU.min(self.mtu);
        self.black_hole.on_fallen(lost);
        self.restart(not_before);
    }
}

/// The UDP payload that IPv4 over Ethernet carries.
const ETHERNET_PAYLOAD: u16 = 1472;

/// Bytes that the path must deliver for each byte of a lost jumbo probe.
const DELIVERED_PER_LOST_JUMBO_BYTE: u64 = 64;

/// Losses after which a size counts as too large. RFC 8899 §5.1.2.
pub const MAX_PROBES: u8 = 3;

/// The time after which a larger size is tried again. RFC 8899 §5.1.1.
pub const PMTU_RAISE_TIMER: Duration = Duration::from_secs(600);

/// Payloads that fill the packets of common links, for IPv6 and IPv4: the minimum MTU of IPv6,
/// tunnels, PPPoE, Ethernet, jumbo frames, loopback interfaces.
const LIKELY: [u16; 14] = [
    1232, 1252, 1352, 1372, 1392, 1412, 1432, 1444, 1452, 1464, 1472, 8952, 8972, 65_488,
];

/// The first size to try if the interface is unknown: that of IPv6 over Ethernet.
const FIRST_GUESS: u16 = 1452;

/// The smallest difference between two sizes that justifies a probe: half a per cent of the
/// smallest datagram.
const RESOLUTION: u16 = 6;

/// Rounds of lost large packets after which they count as a black hole and not as congestion.
const BLACK_HOLE_ROUNDS: u8 = 3;

/// Rounds of lost packets of the base size after which the path counts as unusable. The number is
/// large, because the connection ends then: a path that loses a third of its packets reaches it
/// once in a billion times.
const ERROR_ROUNDS: u8 = 12;

/// Probe timeouts in a row after which smaller packets are tried.
const PTO_LIMIT: u32 = 2;

/// The time for which sizes from that of a black hole on are not tried again, from the second one on: their probes pass, and
/// packets of this size are lost.
const HOLE_BAR: Duration = Duration::from_secs(60);

/// The least size that carries a QUIC connection inside of DATAGRAM frames, as proxies do: its packets have 1200 bytes at
/// first. After a fall it is tried before larger ones.
const NESTED_SIZE: u16 = 1252;

#[cfg(test)]
mod tests;
