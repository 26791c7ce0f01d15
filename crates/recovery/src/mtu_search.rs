//! The search for the largest datagram that a path carries: DPLPMTUD, RFC 8899, RFC 9000 §14.3.

use std::time::Duration;

use courser_base::Time;

/// The datagram size that every QUIC path carries, in bytes of UDP payload. RFC 9000 §14.
pub const BASE_MTU: u16 = 1200;

/// Finds the largest datagram of one path by probes, and notices when it carries less.
///
/// All sizes are bytes of UDP payload. A probe is a datagram of the size in question whose loss
/// costs nothing else; one at a time is in flight. Nothing is probed before a datagram of the
/// present size was filled: who sends little has no use for larger ones.
///
/// ```text
///            full datagram             nothing left to try
///    Base ------------------> Searching ---------------> Complete
///     ^ ^                       |    ^                    |    |
///     | '--- large ones lost ---'    '---- raise timer ---'    |
///     |                                                        |
///     '------------------- large ones lost --------------------'
///     |
///     '--- base size lost ---> Error
/// ```
///
/// A router's word that a datagram was too large leads straight to the size that it names: the
/// next one to probe, or, when smaller than the present one, `Complete` with that size.
#[derive(Clone, Debug)]
pub struct MtuSearch {
    state: State,
    /// The largest size that is believed to pass.
    mtu: u16,
    /// Larger ones are not tried: the configuration's or the peer's limit.
    max: u16,
    /// What the interface carries, if that is known.
    interface: Option<u16>,
    /// The probe in flight: its number and size.
    in_flight: Option<(u32, u16)>,
    probes: u32,
    /// Bytes of jumbo probes that got lost.
    wasted: u64,
    /// The size that was due when the window had no room for it; zero for none.
    awaited: u16,
    black_hole: BlackHole,
}

/// RFC 8899 §5.2, figure 5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The search is switched off: the size stays what it is.
    Disabled,
    /// The present size does; no search before this time.
    Base { not_before: Time },
    /// Probing between the present size and `refused`, the smallest that did not pass.
    Searching {
        refused: u16,
        candidate: Option<Candidate>,
    },
    /// The size is as good as it gets until then.
    Complete { raise_at: Time },
    /// Not even the base size passes.
    Error,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Candidate {
    size: u16,
    lost: u8,
}

/// Large packets that get lost while smaller ones arrive. RFC 8899 §4.3.
#[derive(Clone, Copy, Debug)]
struct BlackHole {
    /// Rounds of losses with nothing of that size acknowledged since.
    rounds: u8,
    /// Only packets sent after this make the next round.
    since: Time,
    /// The smallest size that was lost.
    size: u16,
    /// How often it was taken for one.
    found: u32,
}

impl MtuSearch {
    /// A search that starts from datagrams of `mtu` bytes and ends at `max`.
    pub fn new(mtu: u16, max: u16) -> Self {
        Self {
            state: State::Base {
                not_before: Time::ZERO,
            },
            mtu,
            max: max.max(mtu),
            interface: None,
            in_flight: None,
            probes: 0,
            wasted: 0,
            awaited: 0,
            black_hole: BlackHole::NONE,
        }
    }

    /// No search: datagrams have `mtu` bytes for ever.
    pub fn disabled(mtu: u16) -> Self {
        Self {
            state: State::Disabled,
            ..Self::new(mtu, mtu)
        }
    }

    /// The size of full datagrams.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Lowers the limit to what the peer takes: its `max_udp_payload_size`.
    pub fn set_peer_limit(&mut self, max: u16) {
        self.max = self.max.min(max);
        self.mtu = self.mtu.min(self.max);
    }

    /// Tells what the interface towards the peer carries. That is the first size to be tried and
    /// the largest; sizes below the base are not believed (RFC 9000 §14.2.1).
    pub fn set_interface_mtu(&mut self, size: u16) {
        if self.state == State::Disabled || size < BASE_MTU {
            return;
        }
        self.interface = Some(size);
        self.mtu = self.mtu.min(size);
        if !matches!(self.state, State::Base { .. } | State::Error) {
            self.restart(Time::ZERO);
        }
    }

    /// The largest size worth trying.
    pub fn limit(&self) -> u16 {
        self.interface.map_or(self.max, |size| size.min(self.max))
    }

    /// True when not even datagrams of the base size pass: a path of no use to QUIC
    /// (RFC 9000 §14.2).
    pub fn is_error(&self) -> bool {
        self.state == State::Error
    }

    /// A datagram of the present size left: larger ones would have been of use.
    pub fn on_full_datagram_sent(&mut self, now: Time) {
        match self.state {
            State::Base { not_before } if not_before <= now => self.begin(),
            State::Complete { raise_at } if raise_at <= now => self.begin(),
            _ => {}
        }
    }

    fn begin(&mut self) {
        self.state = State::Searching {
            refused: self.limit().saturating_add(1),
            candidate: None,
        };
    }

    fn restart(&mut self, not_before: Time) {
        self.state = State::Base { not_before };
        self.in_flight = None;
        self.awaited = 0;
    }

    /// True while there is something to probe.
    pub fn wants_probe(&self) -> bool {
        matches!(self.state, State::Searching { .. }) && self.in_flight.is_none()
    }

    /// Room that the window has to get for the next probe; zero for none. A sender that always
    /// fills the window would never have it without holding back.
    pub fn awaited_room(&self) -> u64 {
        u64::from(self.awaited)
    }

    /// The size of the probe whose fate is open, if there is one.
    pub fn probe_in_flight(&self) -> Option<u16> {
        self.in_flight.map(|(_, size)| size)
    }

    /// False when the size is fixed for ever.
    pub fn is_searching(&self) -> bool {
        self.state != State::Disabled
    }

    /// True while jumbo probes that got lost are a small part of the bytes that the path has
    /// `delivered`. Usual sizes are cheap, and most likely to pass.
    ///
    /// A jumbo interface and a path of 1500 bytes are common, and the search between them loses some
    /// thirty probes. All within 2 MB they cost that transfer a twentieth of its time: each takes its
    /// room in the window and its turn of the pacer.
    pub fn can_afford_probe(&self, delivered: u64) -> bool {
        self.wasted.saturating_mul(DELIVERED_PER_WASTED) <= delivered
    }

    /// The size to probe next, of at most `room` bytes; `None` when there is nothing to probe,
    /// not now or not any more.
    pub fn next_probe(&mut self, now: Time, room: u64) -> Option<u16> {
        self.awaited = 0;
        let State::Searching { refused, candidate } = self.state else {
            return None;
        };
        if self.in_flight.is_some() {
            return None;
        }
        // The limit may have come down since.
        let refused = refused.min(self.limit().saturating_add(1));
        let still_open = |it: &Candidate| self.mtu < it.size && it.size < refused;
        let size = match candidate.filter(still_open) {
            Some(candidate) => candidate.size,
            None => match self.choose(refused) {
                Some(size) => size,
                None => {
                    self.complete(now);
                    return None;
                }
            },
        };
        if u64::from(size) <= room {
            return Some(size);
        }
        // The window has yet to grow: what fits may be had already.
        let fits = |it: &&u16| u64::from(**it) <= room && **it < size && **it > self.mtu;
        let fitting = LIKELY.iter().rev().find(fits).copied();
        if fitting.is_none() {
            self.awaited = size;
        }
        fitting
    }

    fn complete(&mut self, now: Time) {
        self.state = State::Complete {
            raise_at: if self.mtu < self.limit() {
                now + PMTU_RAISE_TIMER
            } else {
                Time::MAX
            },
        };
    }

    /// The next size between the present one and the smallest that was refused.
    fn choose(&self, refused: u16) -> Option<u16> {
        if refused.saturating_sub(self.mtu) <= RESOLUTION {
            return None;
        }
        let untried = refused - 1;
        if untried == self.limit() {
            // Nothing was refused yet.
            if self.interface.is_some() {
                return Some(untried);
            }
            let next = |size: &&u16| **size > self.mtu && **size >= FIRST_GUESS;
            let next = LIKELY.iter().find(next).copied();
            return Some(next.unwrap_or(untried).min(untried));
        }
        let start = LIKELY.partition_point(|&size| size <= self.mtu);
        let end = LIKELY.partition_point(|&size| size < refused);
        let between = &LIKELY[start..end.max(start)];
        let middle = self.mtu + (refused - self.mtu) / 2;
        Some(between.get(between.len() / 2).copied().unwrap_or(middle))
    }

    /// A probe of this size left. The number it gets is for [`on_probe_lost`](Self::on_probe_lost).
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

    /// The peer has got a probe of this size. True when the datagram size rises.
    pub fn on_probe_acked(&mut self, size: u16) -> bool {
        if self.in_flight.is_some_and(|(_, pending)| pending <= size) {
            self.in_flight = None;
        }
        let is_news = matches!(self.state, State::Searching { .. }) && size > self.mtu;
        if is_news {
            self.mtu = size.min(self.limit());
        }
        is_news
    }

    /// A probe got lost: after [`MAX_PROBES`] of a size, it counts as too large. RFC 8899 §5.1.2.
    pub fn on_probe_lost(&mut self, number: u32) {
        let Some((_, size)) = self.in_flight.filter(|(pending, _)| *pending == number) else {
            return;
        };
        self.in_flight = None;
        if size > ETHERNET_PAYLOAD {
            self.wasted = self.wasted.saturating_add(u64::from(size));
        }
        let State::Searching { refused, candidate } = &mut self.state else {
            return;
        };
        if let Some(tried) = candidate.as_mut().filter(|tried| tried.size == size) {
            tried.lost += 1;
            if tried.lost >= MAX_PROBES {
                *refused = size.min(*refused);
                *candidate = None;
            }
        }
    }

    /// Packets were acknowledged, the largest of `size` bytes.
    pub fn on_acked(&mut self, size: u16) {
        if self.black_hole.rounds > 0 && size >= self.black_hole.size {
            self.black_hole.rounds = 0;
        }
        if self.state == State::Error && size >= BASE_MTU {
            self.restart(Time::ZERO);
        }
    }

    /// Packets were lost, probes not among them: the largest of `size` bytes, the newest sent at
    /// `sent`. True when the datagram size falls.
    ///
    /// Losses of one burst are one sign, however many acknowledgements it takes to see them:
    /// each round begins with packets sent after the last one was noticed.
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
        if hole.rounds < BLACK_HOLE_ROUNDS {
            return false;
        }
        hole.found += 1;
        let wait = if hole.found > 1 {
            COOL_DOWN
        } else {
            Duration::ZERO
        };
        self.fall_back(now + wait);
        true
    }

    /// A router says that a datagram of `size` bytes did not fit and that `claimed` bytes do. True
    /// when the datagram size falls.
    ///
    /// The caller has made sure that such a datagram was sent. A claim never raises the size: of
    /// a probe it only says which size to probe next. Claims below the base size, and such as the
    /// datagram would have met, are not believed (RFC 9000 §14.2.1, RFC 8899 §4.6).
    pub fn on_packet_too_big(&mut self, now: Time, size: u16, claimed: u16) -> bool {
        let is_deaf = matches!(self.state, State::Disabled | State::Error);
        if is_deaf || claimed < BASE_MTU || claimed >= size {
            return false;
        }
        if claimed < self.mtu {
            // No need to wait until enough of them are lost. Should it be wrong, the raise timer
            // mends it; should even that not pass, losses tell.
            self.mtu = claimed;
            self.black_hole.rounds = 0;
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

    /// Nothing was acknowledged for `count` probe timeouts in a row. True when the datagram size
    /// falls: if nothing but small packets passes any more, only they can show it. When the
    /// silence had other reasons, the first probe brings the size back.
    pub fn on_probe_timeout(&mut self, count: u32) -> bool {
        let falls = self.state != State::Disabled && count >= PTO_LIMIT && self.mtu > BASE_MTU;
        if falls {
            self.fall_back(Time::ZERO);
        }
        falls
    }

    fn fall_back(&mut self, not_before: Time) {
        self.mtu = BASE_MTU.min(self.mtu);
        self.black_hole.rounds = 0;
        self.restart(not_before);
    }
}

impl BlackHole {
    const NONE: Self = Self {
        rounds: 0,
        since: Time::ZERO,
        size: 0,
        found: 0,
    };
}

/// What IPv4 over Ethernet carries.
const ETHERNET_PAYLOAD: u16 = 1472;

/// Bytes that a path has to deliver for each byte of a lost jumbo probe.
const DELIVERED_PER_WASTED: u64 = 64;

/// Losses after which a size counts as too large. RFC 8899 §5.1.2.
pub const MAX_PROBES: u8 = 3;

/// After this time it is tried again whether the path has got better. RFC 8899 §5.1.1.
pub const PMTU_RAISE_TIMER: Duration = Duration::from_secs(600);

/// Payloads that fill the packets of common links: IPv6's minimum in both families, tunnels,
/// PPPoE and Ethernet in both, jumbo frames in both, a loopback interface in both.
const LIKELY: [u16; 14] = [
    1232, 1252, 1352, 1372, 1392, 1412, 1432, 1444, 1452, 1464, 1472, 8952, 8972, 65_488,
];

/// Where to start when nothing is known of the interface: Ethernet under IPv6.
const FIRST_GUESS: u16 = 1452;

/// Sizes closer than this are not worth a probe: half a percent of the smallest datagram.
const RESOLUTION: u16 = 6;

/// Rounds of lost large packets that are a black hole and not congestion.
const BLACK_HOLE_ROUNDS: u8 = 3;

/// Rounds of lost packets of the base size that make a path useless. Many, because it ends the
/// connection: a path that loses a third of its packets gets here once in a billion times.
const ERROR_ROUNDS: u8 = 12;

/// Probe timeouts in a row after which smaller packets are tried.
const PTO_LIMIT: u32 = 2;

/// The wait for another search on a path that lost large packets again after it carried large
/// probes.
const COOL_DOWN: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
