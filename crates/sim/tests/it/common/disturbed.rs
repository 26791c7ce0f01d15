//! A host on a faulty machine: late timers, a busy processor, a clock that jumps, a failing socket,
//! changes of address, and an attacker beside it.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use courser_base::Time;
use courser_sim::host::{App, Context, Host};
use courser_sim::node::Node;
use courser_sim::packet::Packet;
use courser_transport::ConnectionHandle;

use super::Watched;
use super::attacker::{Attacker, Early};
use super::dice::Dice;

/// The faults of a machine until its network is calm.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trouble {
    /// The largest delay of timers (F29).
    pub lateness: Duration,
    /// A period and the part of it in which the machine is stopped (F30), or one long stop (F31).
    pub sleep: Option<Sleep>,
    pub clock: Clock,
    /// The share of datagrams in per cent that are joined with the next. The same share is split
    /// (F10).
    pub recut: u64,
    pub socket: Socket,
    /// The interval at which the host changes between two source addresses (F23).
    pub hops: Option<Hops>,
}

/// The faults of a socket (F33 to F38), as a correct driver reports them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Socket {
    /// The share of datagrams in per cent that are refused: EPERM, ENOBUFS, EHOSTUNREACH.
    pub refuses: u64,
    /// The size above which datagrams are refused with EMSGSIZE.
    pub largest: Option<usize>,
    /// The share of turns in per cent after which the socket is full (EAGAIN), and the longest
    /// time.
    pub stalls: Option<(u64, Duration)>,
}

#[derive(Clone, Copy, Debug)]
pub struct Hops {
    pub every: Duration,
    pub other: SocketAddr,
}

#[derive(Clone, Copy, Debug)]
pub struct Sleep {
    pub first: Time,
    pub lasts: Duration,
    pub every: Option<Duration>,
}

/// The fault of the host's clock (F28).
#[derive(Clone, Copy, Debug, Default)]
pub enum Clock {
    #[default]
    True,
    /// It leaps forward once and stays ahead.
    Leap { at: Time, by: Duration },
    /// It goes back once and stays behind. Drivers do not have such clocks. One that did must do no
    /// more harm than to delay timers.
    Back { at: Time, by: Duration },
    /// It stands still, and then catches up.
    Freeze { at: Time, lasts: Duration },
}

impl Clock {
    fn shows(self, now: Time) -> Time {
        match self {
            Self::Leap { at, by } if now >= at => now + by,
            Self::Back { at, by } if now >= at => {
                Time::ZERO + (now - Time::ZERO).saturating_sub(by)
            }
            Self::Freeze { at, lasts } if now >= at && now < at + lasts => at,
            _ => now,
        }
    }

    /// Returns the time at which it shows at least `time`.
    fn when(self, now: Time, time: Time) -> Time {
        match self {
            Self::Leap { at, by } if time >= at => {
                let gone = time - at;
                at + gone.saturating_sub(by)
            }
            // The clock shows the times before the step back once more.
            Self::Back { at, by } if time > at || now >= at => time + by,
            Self::Freeze { at, lasts } if time > at => time.max(at + lasts),
            _ => time,
        }
    }
}

impl Trouble {
    pub fn new(dice: &mut Dice, chaos: Duration) -> Self {
        let mut trouble = Self::default();
        let chaos = u64::try_from(chaos.as_millis()).expect("some seconds");
        let at = Time::ZERO + dice.millis(0, chaos);
        match dice.below(15) {
            0 | 1 => trouble.lateness = dice.millis(1, 50),
            2 => trouble.lateness = dice.millis(50, 5000),
            3 => {
                let lasts = dice.millis(5, 99);
                let every = Some(Duration::from_millis(100));
                trouble.sleep = Some(Sleep {
                    first: at,
                    lasts,
                    every,
                });
            }
            4 => {
                let lasts = dice.millis(100, 20_000);
                trouble.sleep = Some(Sleep {
                    first: at,
                    lasts,
                    every: None,
                });
            }
            5 => {
                trouble.clock = Clock::Leap {
                    at,
                    by: dice.millis(1, 86_400_000),
                }
            }
            6 => {
                trouble.clock = Clock::Leap {
                    at,
                    by: dice.millis(1, 1000),
                }
            }
            7 => {
                trouble.clock = Clock::Freeze {
                    at,
                    lasts: dice.millis(1, 10_000),
                }
            }
            8 => trouble.recut = dice.between(1, 20),
            9 => {
                trouble.clock = Clock::Back {
                    at,
                    by: dice.millis(1, 1000),
                }
            }
            10 => trouble.socket.refuses = dice.between(1, 30),
            11 => {
                let longest = Duration::from_micros(dice.magnitude(1, 5_000_000));
                trouble.socket.stalls = Some((dice.between(1, 20), longest));
            }
            _ => {}
        }
        trouble
    }
}

impl Trouble {
    /// Returns true if the clock leaps forward, or stays behind for long.
    pub fn leaps(&self) -> bool {
        !matches!(self.clock, Clock::True)
    }
}

impl Sleep {
    /// Returns the time at which the machine wakes, if it sleeps now.
    fn wakes(&self, now: Time) -> Option<Time> {
        if now < self.first {
            return None;
        }
        let gone = (now - self.first).as_nanos();
        let (round, into) = match self.every {
            Some(every) => (gone / every.as_nanos(), gone % every.as_nanos()),
            None => (0, gone),
        };
        let nanos = |nanos: u128| Duration::from_nanos(u64::try_from(nanos).expect("a while"));
        let begun = self.first + nanos(round * self.every.unwrap_or_default().as_nanos());
        (into < self.lasts.as_nanos()).then(|| begun + self.lasts)
    }
}

/// The last receive times of connections, by the host's clock.
#[derive(Clone, Copy, Debug)]
pub struct Signs {
    /// The time at which it was first known.
    pub since: Time,
    pub heard: Time,
    heard_count: u64,
}

pub struct Disturbed {
    inner: Watched,
    trouble: Trouble,
    dice: Dice,
    /// The delay of the next timer.
    late: Duration,
    waiting: VecDeque<Packet>,
    outgoing: VecDeque<Packet>,
    /// The time until which the socket is full.
    stalled: Option<Time>,
    pub attacker: Option<Attacker>,
    signs: BTreeMap<ConnectionHandle, Signs>,
    /// The time of the last call by the world.
    now: Time,
}

impl Disturbed {
    pub fn new(inner: Watched, trouble: Trouble, dice: Dice) -> Self {
        Self {
            inner,
            trouble,
            dice,
            late: Duration::ZERO,
            waiting: VecDeque::new(),
            outgoing: VecDeque::new(),
            stalled: None,
            attacker: None,
            signs: BTreeMap::new(),
            now: Time::ZERO,
        }
    }

    pub fn host(&self) -> &Host {
        &self.inner.host
    }

    /// Ends all faults. The offset of the clock stays.
    pub fn calm(&mut self) {
        self.trouble.lateness = Duration::ZERO;
        self.trouble.recut = 0;
        self.trouble.sleep = None;
        self.trouble.socket = Socket::default();
        self.trouble.hops = None;
        self.stalled = None;
        if let Some(attacker) = &mut self.attacker {
            attacker.attack = Default::default();
        }
        self.late = Duration::ZERO;
    }

    /// Adds an attacker who answers the client before the server.
    pub fn attack_early(&mut self, early: Early) {
        let attacker = self.attacker.as_mut();
        attacker.expect("somebody beside it").early = Some(early);
    }

    /// Replays all recorded datagrams of the client.
    pub fn replay_all(&mut self, from: Option<SocketAddr>) {
        if let Some(attacker) = &mut self.attacker {
            self.outgoing.extend(attacker.replay_all(from));
        }
    }

    /// Returns the time of the last packet of a connection, or of its creation.
    pub fn signs(&self, handle: ConnectionHandle) -> Option<Signs> {
        self.signs.get(&handle).copied()
    }

    pub fn shows(&self, now: Time) -> Time {
        self.trouble.clock.shows(now)
    }

    pub fn act<T>(
        &mut self,
        now: Time,
        act: impl FnOnce(&mut dyn App, &mut Context<'_>) -> T,
    ) -> T {
        let now = self.shows(now);
        self.inner.host.act(now, act)
    }

    fn wakes(&self, now: Time) -> Option<Time> {
        self.trouble.sleep.and_then(|sleep| sleep.wakes(now))
    }

    fn note_signs(&mut self, now: Time) {
        let endpoint = self.inner.host.endpoint();
        for handle in endpoint.handles() {
            let connection = endpoint.connection(handle);
            let count = connection.map_or(0, |it| it.stats().packets_received);
            let signs = self.signs.entry(handle).or_insert(Signs {
                since: now,
                heard: now,
                heard_count: 0,
            });
            if signs.heard_count != count {
                (signs.heard, signs.heard_count) = (now, count);
            }
        }
    }

    /// Passes a batch of the host through socket, network card and attacker.
    fn leave(&mut self, now: Time, shown: Time) {
        let mut cut = VecDeque::new();
        while let Some(mut packet) = self.inner.transmit(shown) {
            if self.is_refused(&packet) {
                continue;
            }
            if let Some(hops) = self.trouble.hops
                && (now - Time::ZERO).as_nanos() / hops.every.as_nanos() % 2 == 1
            {
                packet.source = hops.other;
            }
            self.recut(packet, &mut cut);
        }
        for packet in cut {
            match &mut self.attacker {
                Some(attacker) => attacker.pass_out(packet, &mut self.outgoing),
                None => self.outgoing.push_back(packet),
            }
        }
        if let Some((chance, longest)) = self.trouble.socket.stalls
            && self.stalled.is_none_or(|until| until <= now)
        {
            let micros = u64::try_from(longest.as_micros()).expect("seconds");
            let lasts = Duration::from_micros(self.dice.between(1, micros));
            self.stalled = self.dice.percent(chance).then(|| now + lasts);
        }
    }

    fn is_refused(&mut self, packet: &Packet) -> bool {
        let socket = self.trouble.socket;
        let is_large = |largest| packet.payload.len() > largest;
        self.dice.percent(socket.refuses) || socket.largest.is_some_and(is_large)
    }

    /// Splits and joins datagrams on their way.
    fn recut(&mut self, packet: Packet, out: &mut VecDeque<Packet>) {
        let len = packet.payload.len();
        if len > 1 && self.dice.percent(self.trouble.recut) {
            let at = self.dice.between(1, len as u64 - 1);
            let (mut first, mut second) = (packet.clone(), packet);
            second.payload = first
                .payload
                .split_off(usize::try_from(at).expect("a length"));
            out.extend([first, second]);
            return;
        }
        match out.back_mut() {
            Some(last)
                if last.destination == packet.destination
                    && last.payload.len() + len <= MAX_PAYLOAD
                    && self.dice.percent(self.trouble.recut) =>
            {
                last.payload = [&last.payload[..], &packet.payload[..]].concat().into();
            }
            _ => out.push_back(packet),
        }
    }
}

impl Node for Disturbed {
    fn receive(&mut self, _now: Time, packet: Packet) {
        let attacker = self.attacker.as_mut();
        let forged = attacker.and_then(|attacker| attacker.pass_in(&packet));
        self.waiting.extend(forged);
        self.waiting.push_back(packet);
    }

    fn run(&mut self, now: Time) {
        self.now = now;
        if self.wakes(now).is_some() {
            return;
        }
        let shown = self.shows(now);
        while let Some(packet) = self.waiting.pop_front() {
            self.inner.receive(shown, packet);
        }
        self.inner.run(shown);
        self.note_signs(shown);
        self.leave(now, shown);
        if !self.trouble.lateness.is_zero() {
            let most = u64::try_from(self.trouble.lateness.as_micros()).expect("seconds");
            self.late = Duration::from_micros(self.dice.below(most));
        }
    }

    fn transmit(&mut self, now: Time) -> Option<Packet> {
        if self.stalled.is_some_and(|until| now < until) {
            return None;
        }
        self.outgoing.pop_front()
    }

    fn next_timeout(&self) -> Option<Time> {
        let rings = self.inner.next_timeout();
        let rings = rings.map(|at| self.trouble.clock.when(self.now, at) + self.late);
        let rings = match self.waiting.is_empty() {
            true => rings.map(|at| at.max(self.now)),
            false => Some(self.now),
        };
        let room = self.stalled.filter(|_| !self.outgoing.is_empty());
        let room = room.map(|at| at.max(self.now));
        let rings = rings.into_iter().chain(room).min()?;
        // A timer that fires while the machine sleeps runs when it wakes.
        Some(self.wakes(rings).unwrap_or(rings))
    }
}

/// The largest payload of a UDP datagram.
const MAX_PAYLOAD: usize = 65_507;
