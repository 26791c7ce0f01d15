//! Flows that share one link. Senders are real, with controller, pacer, delivery rate and
//! round-trip times.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use courser_link::{Change, Histogram, LinkSpec, Probability, QueueLimit, Repeated};

use super::harness::{MTU, SIZE};
use super::*;
use crate::congestion::tests::network::{Arrival, Network};
use crate::congestion::{AckSample, CongestionController, Controller, LossSample, LostPacket};
use crate::{DeliveryRate, Pacer, RttEstimator};

const REORDERING_THRESHOLD: u64 = 3;

/// The properties of the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathSpec {
    /// The rate in bytes per second.
    pub(super) rate: u64,
    /// The round-trip time without a queue.
    pub(super) rtt: Duration,
    /// The size of the queue in bytes, with the packet that is being transmitted.
    pub(super) queue: u64,
    /// Lost packets in a million.
    pub(super) loss: u64,
    /// The period at which aggregated acknowledgements arrive.
    pub(super) aggregate: Option<Duration>,
    /// The longest random delay of acknowledgements, which are never reordered.
    pub(super) jitter: Duration,
}

impl PathSpec {
    /// Returns a path with this rate, whose queue is as large as what it holds.
    pub(super) fn new(megabits: u64, rtt_ms: u64) -> Self {
        let mut path = Self {
            rate: megabits * 125_000,
            rtt: Duration::from_millis(rtt_ms),
            queue: 0,
            loss: 0,
            aggregate: None,
            jitter: Duration::ZERO,
        };
        path.queue = path.bdp();
        path
    }

    pub(super) fn bdp(&self) -> u64 {
        Rate::from_bytes_per_second(self.rate).bytes_in(self.rtt)
    }

    /// Sets the queue to a size in tenths of what the path holds, at least ten packets.
    pub(super) fn queue(self, tenths: u64) -> Self {
        Self {
            queue: (self.bdp() * tenths / 10).max(10 * SIZE),
            ..self
        }
    }

    fn link(&self) -> LinkSpec {
        let loss = Probability::from_parts_per_billion(self.loss as u32 * 1000);
        LinkSpec {
            rate: Some(Rate::from_bytes_per_second(self.rate)),
            delay: Some(self.rtt),
            jitter: self.jitter,
            aggregate: self.aggregate,
            loss: Some(Repeated::independent(loss)),
            queue: Some(QueueLimit::Bytes(self.queue - SIZE)),
            ..LinkSpec::default()
        }
    }

    /// Sets the loss in packets of a thousand.
    pub(super) fn loss(self, per_mille: u64) -> Self {
        Self {
            loss: per_mille * 1000,
            ..self
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    number: u64,
    sent: Time,
    snapshot: u32,
    tx_in_flight: u64,
}

/// One sender and its measurements.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) controller: CongestionController,
    pacer: Pacer,
    delivery: DeliveryRate,
    pub(super) rtt: RttEstimator,
    sent: VecDeque<InFlight>,
    bytes_in_flight: u64,
    next_number: u64,
    start: Time,
    /// The bytes that the application has left; `None` is infinite.
    pub(super) backlog: Option<u64>,
    is_app_limited: bool,
    wake: Option<Time>,
    last_ack: Time,
    pub(super) lost_packets: u64,
    /// The states in order, with the times at which they were entered.
    pub(super) states: Vec<(Time, &'static str)>,
}

impl Flow {
    fn new(controller: CongestionController, start: Time) -> Self {
        Self {
            controller,
            pacer: Pacer::new(start, MTU),
            delivery: DeliveryRate::new(),
            rtt: RttEstimator::default(),
            sent: VecDeque::new(),
            bytes_in_flight: 0,
            next_number: 0,
            start,
            backlog: None,
            is_app_limited: false,
            wake: None,
            last_ack: start,
            lost_packets: 0,
            states: Vec::new(),
        }
    }

    pub(super) fn delivered(&self) -> u64 {
        self.delivery.delivered()
    }

    pub(super) fn bytes_in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    pub(super) fn bbr(&self) -> &Bbr {
        match &self.controller {
            CongestionController::Bbr(bbr) => bbr,
            other => panic!("{other:?} is not BBR"),
        }
    }

    /// Returns an error if no packet may be sent, with the time at which to try again.
    fn may_send(&mut self, now: Time) -> Result<(), Option<Time>> {
        if self.controller.room(self.bytes_in_flight) < SIZE {
            return Err(None);
        }
        if self.backlog.is_some_and(|backlog| backlog < SIZE) {
            self.is_app_limited = true;
            self.delivery.on_app_limited(now, self.rtt.min() / 16);
            return Err(None);
        }
        let window = self.controller.window();
        if self.pacer.budget(now, &self.rtt, window, MTU) < SIZE {
            let at = self
                .pacer
                .next_release(now, u64::MAX, &self.rtt, window, MTU);
            return Err(Some(at.max(now + Duration::from_nanos(1))));
        }
        Ok(())
    }

    fn send(&mut self, now: Time) -> u64 {
        let snapshot = self.delivery.on_sent(now, self.bytes_in_flight);
        self.bytes_in_flight += SIZE;
        let number = self.next_number;
        self.next_number += 1;
        self.sent.push_back(InFlight {
            number,
            sent: now,
            snapshot,
            tx_in_flight: self.bytes_in_flight,
        });
        if let Some(backlog) = &mut self.backlog {
            *backlog -= SIZE;
        }
        self.is_app_limited = false;
        self.controller
            .on_sent(now, SIZE, number, self.bytes_in_flight);
        self.pacer.on_sent(SIZE);
        number
    }

    fn on_acks(&mut self, now: Time, numbers: &[u64]) {
        self.last_ack = now;
        let before = self.bytes_in_flight;
        let mut newest: Option<InFlight> = None;
        let mut oldest = Time::MAX;
        for number in numbers {
            let Ok(at) = self.sent.binary_search_by_key(number, |sent| sent.number) else {
                continue;
            };
            let packet = self
                .sent
                .remove(at)
                .expect("the index is that of a sent packet");
            self.bytes_in_flight -= SIZE;
            self.delivery
                .on_acked(SIZE, packet.snapshot, packet.sent, packet.tx_in_flight);
            oldest = oldest.min(packet.sent);
            newest = newest.max_by_key(packet);
        }
        let Some(newest) = newest else { return };
        let sample = now - newest.sent;
        self.rtt.on_sample(now, sample, Duration::ZERO, None);
        let lost = self.lose(now, newest.number.saturating_sub(REORDERING_THRESHOLD - 1));
        let rate = self.delivery.sample(now, self.rtt.min());
        self.controller.on_ack(&AckSample {
            now,
            acked_bytes: before - self.bytes_in_flight - lost,
            largest_acked: newest.number,
            largest_acked_sent: newest.sent,
            earliest_acked_sent: oldest,
            rtt: &self.rtt,
            rtt_sample: Some(sample),
            app_limited: self.is_app_limited,
            bytes_in_flight_before: before,
            bytes_in_flight: self.bytes_in_flight,
            lost_bytes: lost,
            delivered: self.delivery.delivered(),
            rate,
            ecn_capable_packets: 0,
            ce_packets: 0,
        });
        self.after_event(now);
    }

    /// Declares the packets before a number lost.
    fn lose(&mut self, now: Time, before: u64) -> u64 {
        let mut lost = Vec::new();
        while let Some(first) = self.sent.front().filter(|first| first.number < before) {
            let (lost_since_sent, is_app_limited) = self.delivery.on_lost(SIZE, first.snapshot);
            lost.push(LostPacket {
                number: first.number,
                bytes: SIZE,
                sent: first.sent,
                tx_in_flight: first.tx_in_flight,
                lost_since_sent,
                is_app_limited,
            });
            self.sent.pop_front();
        }
        let Some(newest) = lost.last() else { return 0 };
        let bytes = SIZE * lost.len() as u64;
        self.bytes_in_flight -= bytes;
        self.lost_packets += lost.len() as u64;
        let span = newest.sent - lost[0].sent;
        self.controller.on_congestion(&LossSample {
            now,
            lost_bytes: bytes,
            largest_lost_sent: newest.sent,
            persistent: lost.len() > 1 && span > 3 * self.rtt.pto_base(),
            is_ecn: false,
            bytes_in_flight: self.bytes_in_flight,
            packets: &lost,
        });
        self.after_event(now);
        bytes
    }

    /// Declares all packets lost after a long time without acknowledgements.
    fn on_timeout(&mut self, now: Time) {
        self.last_ack = now;
        self.lose(now, u64::MAX);
        self.delivery.remove_before(None);
    }

    fn timeout(&self) -> Time {
        self.last_ack + 2 * self.rtt.pto_base()
    }

    fn after_event(&mut self, now: Time) {
        let oldest = self.sent.front().map(|sent| sent.snapshot);
        self.delivery.remove_before(oldest);
        self.pacer.set_rate(self.controller.pacing_rate(&self.rtt));
        let state = self.controller.state();
        if self.states.last().is_none_or(|(_, last)| *last != state) {
            self.states.push((now, state));
        }
    }
}

trait MaxByKey {
    fn max_by_key(self, packet: InFlight) -> Self;
}

impl MaxByKey for Option<InFlight> {
    fn max_by_key(self, packet: InFlight) -> Self {
        match self {
            Some(newest) if newest.number > packet.number => Some(newest),
            _ => Some(packet),
        }
    }
}

/// Flows that share a path.
#[derive(Debug)]
pub(super) struct World {
    pub(super) now: Time,
    pub(super) spec: PathSpec,
    pub(super) flows: Vec<Flow>,
    network: Network,
    /// The times at which flows may send again or time out, with the index of the flow.
    wakes: BinaryHeap<Reverse<(Time, usize)>>,
}

impl World {
    pub(super) fn new(spec: PathSpec) -> Self {
        Self::seeded(spec, 7)
    }

    /// Creates the world. Random numbers come from `seed`.
    pub(super) fn seeded(spec: PathSpec, seed: u64) -> Self {
        Self {
            now: Time::ZERO + Duration::from_secs(100),
            spec,
            flows: Vec::new(),
            network: Network::new(&spec.link(), seed),
            wakes: BinaryHeap::new(),
        }
    }

    /// Adds a BBR flow that starts now.
    pub(super) fn with_bbr(spec: PathSpec) -> Self {
        let mut world = Self::new(spec);
        world.add(Algorithm::Bbr, Duration::ZERO);
        world
    }

    pub(super) fn add(&mut self, algorithm: Algorithm, after: Duration) -> usize {
        let flow = self.flows.len();
        let start = self.now + after;
        let controller = CongestionController::new(algorithm, MTU, 11 + flow as u64);
        self.flows.push(Flow::new(controller, start));
        self.wakes.push(Reverse((start, flow)));
        flow
    }

    pub(super) fn set_megabits(&mut self, megabits: u64) {
        self.spec.rate = megabits * 125_000;
        let rate = Rate::from_bytes_per_second(self.spec.rate);
        self.network.link.set_rate(self.now, rate);
    }

    /// Starts an outage, in which every packet is lost, or ends it.
    pub(super) fn set_outage(&mut self, is_on: bool) {
        let usual = self.spec.link().loss;
        let all = Repeated::independent(Probability::ALWAYS);
        let loss = usual.filter(|_| !is_on).unwrap_or(all);
        self.network.link.change(self.now, Change::Loss(loss));
    }

    /// Returns the delays in the queue since the last call.
    pub(super) fn take_queue_delays(&mut self) -> Histogram {
        self.network.link.take_queue_delays()
    }

    pub(super) fn write(&mut self, flow: usize, bytes: u64) {
        *self.flows[flow].backlog.get_or_insert(0) += bytes;
        self.wakes.push(Reverse((self.now, flow)));
    }

    /// Runs for a time. Returns the bytes delivered for each flow.
    pub(super) fn run(&mut self, time: Duration) -> Vec<u64> {
        let before: Vec<u64> = self.flows.iter().map(Flow::delivered).collect();
        let end = self.now + time;
        loop {
            let wake = self.wakes.peek().map(|Reverse((at, _))| *at);
            let limit = wake.map_or(end, |wake| wake.min(end));
            if let Some(arrival) = self.network.receive(limit) {
                self.on_arrivals(arrival);
                continue;
            }
            let Some(at) = wake.filter(|wake| *wake <= end) else {
                break;
            };
            self.now = at;
            let Reverse((_, flow)) = self.wakes.pop().expect("the first wake was peeked at");
            self.on_wake(flow);
        }
        self.now = end;
        let delivered = self.flows.iter().map(Flow::delivered);
        delivered
            .zip(before)
            .map(|(now, then)| now - then)
            .collect()
    }

    /// Returns the first flow's share of the path during the next `ms` milliseconds, in per cent.
    pub(super) fn utilisation(&mut self, ms: u64) -> u64 {
        let time = Duration::from_millis(ms);
        let possible = Rate::from_bytes_per_second(self.spec.rate).bytes_in(time);
        self.run(time)[0] * 100 / possible.max(1)
    }

    /// Acknowledges all packets that arrive at the time of the first one, flow by flow.
    fn on_arrivals(&mut self, first: Arrival) {
        self.now = first.at;
        let mut numbers = vec![Vec::new(); self.flows.len()];
        let mut next = Some(first);
        while let Some(arrival) = next {
            numbers[usize::from(arrival.flow)].push(arrival.number);
            next = self.network.receive(self.now);
        }
        for (flow, numbers) in numbers.into_iter().enumerate() {
            if !numbers.is_empty() {
                self.flows[flow].on_acks(self.now, &numbers);
                self.send_permitted(flow);
            }
        }
    }

    fn on_wake(&mut self, flow: usize) {
        let now = self.now;
        let state = &mut self.flows[flow];
        if now < state.start {
            return;
        }
        if state.wake.is_some_and(|wake| wake <= now) {
            state.wake = None;
        }
        if state.bytes_in_flight > 0 && now >= state.timeout() {
            state.on_timeout(now);
        }
        self.send_permitted(flow);
    }

    /// Sends as much as is permitted, and schedules the next call.
    fn send_permitted(&mut self, flow: usize) {
        let now = self.now;
        let again = loop {
            match self.flows[flow].may_send(now) {
                Ok(()) => {
                    let number = self.flows[flow].send(now);
                    self.network.send(now, flow as u16, number, SIZE);
                }
                Err(again) => break again,
            }
        };
        let state = &mut self.flows[flow];
        let timeout = (state.bytes_in_flight > 0).then(|| state.timeout().max(now));
        let Some(next) = again.into_iter().chain(timeout).min() else {
            return;
        };
        if state.wake.is_none_or(|wake| next < wake) {
            state.wake = Some(next);
            self.wakes.push(Reverse((next, flow)));
        }
    }
}

/// Returns Jain's index of shares, in per cent.
pub(super) fn jain(shares: &[u64]) -> u64 {
    let sum: u128 = shares.iter().map(|share| u128::from(*share)).sum();
    let squares: u128 = shares.iter().map(|share| u128::from(*share).pow(2)).sum();
    (100 * sum * sum / (shares.len() as u128 * squares)) as u64
}
