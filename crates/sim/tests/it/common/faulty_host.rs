//! A host on a machine with faults: late timers, a busy processor, a clock that jumps, a failing
//! socket, changes of address, and an attacker beside it.

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
use super::random::SeededRandom;

/// The faults of a machine, which end when `calm` is called.
#[derive(Clone, Copy, Debug, Default)]
pub struct MachineFaults {
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
    pub address_changes: Option<AddressChanges>,
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
pub struct AddressChanges {
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
    /// The clock jumps forward once and keeps the offset.
    Jump { at: Time, by: Duration },
    /// The clock goes back once and keeps the offset. The clocks of drivers never do. If one did,
    /// timers must be late, and nothing worse may happen.
    Back { at: Time, by: Duration },
    /// The clock stops for a time, and then jumps to the real time.
    Freeze { at: Time, lasts: Duration },
}

impl Clock {
    fn clock_time(self, now: Time) -> Time {
        match self {
            Self::Jump { at, by } if now >= at => now + by,
            Self::Back { at, by } if now >= at => {
                Time::ZERO + (now - Time::ZERO).saturating_sub(by)
            }
            Self::Freeze { at, lasts } if now >= at && now < at + lasts => at,
            _ => now,
        }
    }

    /// Returns the time at which it shows at least `time`.
    fn world_time(self, now: Time, time: Time) -> Time {
        match self {
            Self::Jump { at, by } if time >= at => {
                let elapsed = time - at;
                at + elapsed.saturating_sub(by)
            }
            // The clock shows the times before the step back once more.
            Self::Back { at, by } if time > at || now >= at => time + by,
            Self::Freeze { at, lasts } if time > at => time.max(at + lasts),
            _ => time,
        }
    }
}

impl MachineFaults {
    pub fn new(random: &mut SeededRandom, chaos: Duration) -> Self {
        let mut faults = Self::default();
        let chaos = u64::try_from(chaos.as_millis()).expect("the time fits into u64");
        let at = Time::ZERO + random.millis(0, chaos);
        match random.below(15) {
            0 | 1 => faults.lateness = random.millis(1, 50),
            2 => faults.lateness = random.millis(50, 5000),
            3 => {
                let lasts = random.millis(5, 99);
                let every = Some(Duration::from_millis(100));
                faults.sleep = Some(Sleep {
                    first: at,
                    lasts,
                    every,
                });
            }
            4 => {
                let lasts = random.millis(100, 20_000);
                faults.sleep = Some(Sleep {
                    first: at,
                    lasts,
                    every: None,
                });
            }
            5 => {
                faults.clock = Clock::Jump {
                    at,
                    by: random.millis(1, 86_400_000),
                }
            }
            6 => {
                faults.clock = Clock::Jump {
                    at,
                    by: random.millis(1, 1000),
                }
            }
            7 => {
                faults.clock = Clock::Freeze {
                    at,
                    lasts: random.millis(1, 10_000),
                }
            }
            8 => faults.recut = random.between(1, 20),
            9 => {
                faults.clock = Clock::Back {
                    at,
                    by: random.millis(1, 1000),
                }
            }
            10 => faults.socket.refuses = random.between(1, 30),
            11 => {
                let longest = Duration::from_micros(random.magnitude(1, 5_000_000));
                faults.socket.stalls = Some((random.between(1, 20), longest));
            }
            _ => {}
        }
        faults
    }
}

impl MachineFaults {
    /// Returns true if the clock jumps forward, or stays behind for long.
    pub fn jumps(&self) -> bool {
        !matches!(self.clock, Clock::True)
    }
}

impl Sleep {
    /// Returns the time at which the machine wakes, if it sleeps now.
    fn wake_time(&self, now: Time) -> Option<Time> {
        if now < self.first {
            return None;
        }
        let elapsed = (now - self.first).as_nanos();
        let (round, into) = match self.every {
            Some(every) => (elapsed / every.as_nanos(), elapsed % every.as_nanos()),
            None => (0, elapsed),
        };
        let nanos = |nanos: u128| {
            Duration::from_nanos(u64::try_from(nanos).expect("the time fits into u64"))
        };
        let start = self.first + nanos(round * self.every.unwrap_or_default().as_nanos());
        (into < self.lasts.as_nanos()).then(|| start + self.lasts)
    }
}

/// The receive times of a connection, by the host's clock.
#[derive(Clone, Copy, Debug)]
pub struct ReceiveTimes {
    /// The time at which the connection was created.
    pub since: Time,
    pub last_received: Time,
    received_count: u64,
}

pub struct FaultyHost {
    inner: Watched,
    faults: MachineFaults,
    random: SeededRandom,
    /// The delay of the next timer.
    late: Duration,
    waiting: VecDeque<Packet>,
    outgoing: VecDeque<Packet>,
    /// The time until which the socket is full.
    stalled: Option<Time>,
    pub attacker: Option<Attacker>,
    receive_times: BTreeMap<ConnectionHandle, ReceiveTimes>,
    /// The time of the last call by the world.
    now: Time,
}

impl FaultyHost {
    pub fn new(inner: Watched, faults: MachineFaults, random: SeededRandom) -> Self {
        Self {
            inner,
            faults,
            random,
            late: Duration::ZERO,
            waiting: VecDeque::new(),
            outgoing: VecDeque::new(),
            stalled: None,
            attacker: None,
            receive_times: BTreeMap::new(),
            now: Time::ZERO,
        }
    }

    pub fn host(&self) -> &Host {
        &self.inner.host
    }

    /// Ends all faults. The offset of the clock stays.
    pub fn calm(&mut self) {
        self.faults.lateness = Duration::ZERO;
        self.faults.recut = 0;
        self.faults.sleep = None;
        self.faults.socket = Socket::default();
        self.faults.address_changes = None;
        self.stalled = None;
        if let Some(attacker) = &mut self.attacker {
            attacker.attack = Default::default();
        }
        self.late = Duration::ZERO;
    }

    /// Makes the attacker answer the client before the server does.
    pub fn attack_early(&mut self, early: Early) {
        let attacker = self.attacker.as_mut();
        attacker.expect("the host has an attacker").early = Some(early);
    }

    /// Replays all recorded datagrams of the client.
    pub fn replay_all(&mut self, from: Option<SocketAddr>) {
        if let Some(attacker) = &mut self.attacker {
            self.outgoing.extend(attacker.replay_all(from));
        }
    }

    /// Returns the time of the last packet of a connection, or of its creation.
    pub fn receive_times(&self, handle: ConnectionHandle) -> Option<ReceiveTimes> {
        self.receive_times.get(&handle).copied()
    }

    pub fn clock_time(&self, now: Time) -> Time {
        self.faults.clock.clock_time(now)
    }

    pub fn act<T>(
        &mut self,
        now: Time,
        act: impl FnOnce(&mut dyn App, &mut Context<'_>) -> T,
    ) -> T {
        let now = self.clock_time(now);
        self.inner.host.act(now, act)
    }

    fn wake_time(&self, now: Time) -> Option<Time> {
        self.faults.sleep.and_then(|sleep| sleep.wake_time(now))
    }

    fn update_receive_times(&mut self, now: Time) {
        let endpoint = self.inner.host.endpoint();
        for handle in endpoint.handles() {
            let connection = endpoint.connection(handle);
            let count = connection.map_or(0, |it| it.stats().packets_received);
            let receive_times = self.receive_times.entry(handle).or_insert(ReceiveTimes {
                since: now,
                last_received: now,
                received_count: 0,
            });
            if receive_times.received_count != count {
                (receive_times.last_received, receive_times.received_count) = (now, count);
            }
        }
    }

    /// Passes a batch of the host through socket, network card and attacker.
    fn send_batch(&mut self, now: Time, shown: Time) {
        let mut cut = VecDeque::new();
        while let Some(mut packet) = self.inner.transmit(shown) {
            if self.is_refused(&packet) {
                continue;
            }
            if let Some(address_changes) = self.faults.address_changes
                && (now - Time::ZERO).as_nanos() / address_changes.every.as_nanos() % 2 == 1
            {
                packet.source = address_changes.other;
            }
            self.recut(packet, &mut cut);
        }
        for packet in cut {
            match &mut self.attacker {
                Some(attacker) => attacker.pass_out(packet, &mut self.outgoing),
                None => self.outgoing.push_back(packet),
            }
        }
        if let Some((chance, longest)) = self.faults.socket.stalls
            && self.stalled.is_none_or(|until| until <= now)
        {
            let micros = u64::try_from(longest.as_micros()).expect("the time fits into u64");
            let lasts = Duration::from_micros(self.random.between(1, micros));
            self.stalled = self.random.percent(chance).then(|| now + lasts);
        }
    }

    fn is_refused(&mut self, packet: &Packet) -> bool {
        let socket = self.faults.socket;
        let is_large = |largest| packet.payload.len() > largest;
        self.random.percent(socket.refuses) || socket.largest.is_some_and(is_large)
    }

    /// Splits datagrams, and joins them with the next one.
    fn recut(&mut self, packet: Packet, out: &mut VecDeque<Packet>) {
        let len = packet.payload.len();
        if len > 1 && self.random.percent(self.faults.recut) {
            let at = self.random.between(1, len as u64 - 1);
            let (mut first, mut second) = (packet.clone(), packet);
            second.payload = first
                .payload
                .split_off(usize::try_from(at).expect("the length fits into usize"));
            out.extend([first, second]);
            return;
        }
        match out.back_mut() {
            Some(last)
                if last.destination == packet.destination
                    && last.payload.len() + len <= MAX_PAYLOAD
                    && self.random.percent(self.faults.recut) =>
            {
                last.payload = [&last.payload[..], &packet.payload[..]].concat().into();
            }
            _ => out.push_back(packet),
        }
    }
}

impl Node for FaultyHost {
    fn receive(&mut self, _now: Time, packet: Packet) {
        let attacker = self.attacker.as_mut();
        let forged = attacker.and_then(|attacker| attacker.pass_in(&packet));
        self.waiting.extend(forged);
        self.waiting.push_back(packet);
    }

    fn run(&mut self, now: Time) {
        self.now = now;
        if self.wake_time(now).is_some() {
            return;
        }
        let shown = self.clock_time(now);
        while let Some(packet) = self.waiting.pop_front() {
            self.inner.receive(shown, packet);
        }
        self.inner.run(shown);
        self.update_receive_times(shown);
        self.send_batch(now, shown);
        if !self.faults.lateness.is_zero() {
            let most =
                u64::try_from(self.faults.lateness.as_micros()).expect("the time fits into u64");
            self.late = Duration::from_micros(self.random.below(most));
        }
    }

    fn transmit(&mut self, now: Time) -> Option<Packet> {
        if self.stalled.is_some_and(|until| now < until) {
            return None;
        }
        self.outgoing.pop_front()
    }

    fn next_timeout(&self) -> Option<Time> {
        let timeout = self.inner.next_timeout();
        let timeout = timeout.map(|at| self.faults.clock.world_time(self.now, at) + self.late);
        let timeout = match self.waiting.is_empty() {
            true => timeout.map(|at| at.max(self.now)),
            false => Some(self.now),
        };
        let room = self.stalled.filter(|_| !self.outgoing.is_empty());
        let room = room.map(|at| at.max(self.now));
        let timeout = timeout.into_iter().chain(room).min()?;
        // A timer that fires while the machine sleeps runs when it wakes.
        Some(self.wake_time(timeout).unwrap_or(timeout))
    }
}

/// The largest payload of a UDP datagram.
const MAX_PAYLOAD: usize = 65_507;
