//! One bulk flow over a link, packet by packet. All randomness comes from a seed.

use std::collections::VecDeque;

use courser_link::{Aqm, Histogram, LinkSpec, Probability, QueueLimit, Repeated};

use super::network::{Arrival, Network};
use super::*;
use crate::Pacer;

/// A path: a bottleneck with a drop-tail queue, and a round trip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// Bytes per second; `None` is infinitely fast.
    pub(crate) rate: Option<u64>,
    pub(crate) rtt: Duration,
    /// The size of the queue in bytes, with the packet that is being transmitted.
    pub(crate) queue: u64,
    /// Packets are marked CE when they would wait longer than this.
    pub(crate) mark_above: Option<Duration>,
    /// True if CoDel drops packets from the queue.
    pub(crate) has_codel: bool,
    /// Losses on the path, apart from those of the queue.
    pub(crate) loss: Loss,
    /// Packets per acknowledgement, which is sent at most 25 ms after the first of them arrived.
    pub(crate) ack_every: u64,
    /// The longest random delay of acknowledgements.
    pub(crate) jitter: Duration,
    pub(crate) mtu: u16,
    pub(crate) seed: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Loss {
    None,
    /// One in this many packets is lost.
    Periodic(u64),
    Random(f64),
}

impl Path {
    fn spec(&self) -> LinkSpec {
        let random = |share: f64| Probability::from_parts_per_billion((share * 1e9) as u32);
        let (every, loss) = match self.loss {
            Loss::None => (None, None),
            Loss::Periodic(every) => (Some(every), None),
            Loss::Random(share) => (None, Some(Repeated::independent(random(share)))),
        };
        let step = |step| Aqm::L4s {
            step,
            target: Aqm::TARGET,
            interval: Aqm::INTERVAL,
        };
        LinkSpec {
            rate: self.rate.map(Rate::from_bytes_per_second),
            delay: Some(self.rtt),
            jitter: self.jitter,
            loss,
            every,
            queue: Some(QueueLimit::Bytes(self.queue - u64::from(self.mtu))),
            aqm: match (self.mark_above, self.has_codel) {
                (Some(above), _) => step(above),
                (None, true) => Aqm::CoDel {
                    target: Aqm::TARGET,
                    interval: Aqm::INTERVAL,
                    ecn: false,
                },
                (None, false) => Aqm::DropTail,
            },
            ..LinkSpec::default()
        }
    }

    /// Returns a link with this rate, and a queue of `bdps` times what the path holds.
    pub(crate) fn link(megabits: u64, rtt: Duration, bdps: f64) -> Self {
        let rate = megabits * 125_000;
        let bdp = rate as f64 * rtt.as_secs_f64();
        Self {
            rate: Some(rate),
            queue: (bdp * bdps) as u64,
            ..Self::lossy(rtt, Loss::None)
        }
    }

    /// Returns a path without a bottleneck that loses packets.
    pub(crate) fn lossy(rtt: Duration, loss: Loss) -> Self {
        Self {
            rate: None,
            rtt,
            queue: u64::MAX,
            mark_above: None,
            has_codel: false,
            loss,
            ack_every: 2,
            jitter: Duration::ZERO,
            mtu: MTU,
            seed: 1,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct InTransit {
    sent: Time,
    has_arrived: bool,
    is_marked: bool,
}

/// The totals since the start of the flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    pub(crate) marked: u64,
    pub(crate) sent: u64,
    /// The integral of the window, in bytes times seconds.
    pub(crate) window_seconds: f64,
    /// The time at which the first slow start ended.
    pub(crate) slow_start_end: Option<Time>,
    /// Packets lost until `slow_start_end`.
    pub(crate) lost_in_slow_start: u64,
}

#[derive(Debug)]
pub(crate) struct Model {
    path: Path,
    pub(crate) controller: CongestionController,
    pub(crate) rtt: RttEstimator,
    pub(crate) now: Time,
    pub(crate) totals: Totals,
    network: Network,
    pacer: Pacer,
    in_transit: VecDeque<InTransit>,
    /// The number of `in_transit[0]`.
    oldest: u64,
    /// The offset into `in_transit` behind the last packet that arrived.
    next_back: usize,
    in_flight: u64,
    /// Packets that arrived and are not acknowledged: their number and the arrival of the first.
    pending: Option<(u64, Time)>,
}

impl Model {
    pub(crate) fn new(path: Path, algorithm: Algorithm) -> Self {
        let now = Time::ZERO + ms(1);
        Self {
            path,
            controller: CongestionController::new(algorithm, path.mtu, path.seed),
            rtt: RttEstimator::default(),
            now,
            totals: Totals::default(),
            network: Network::new(&path.spec(), path.seed),
            pacer: Pacer::new(now, path.mtu),
            in_transit: VecDeque::new(),
            oldest: 0,
            next_back: 0,
            in_flight: 0,
            pending: None,
        }
    }

    /// Changes the rate of the link. The size of its queue in bytes stays the same.
    pub(crate) fn set_megabits(&mut self, megabits: u64) {
        let rate = Rate::from_bytes_per_second(megabits * 125_000);
        self.network.link.set_rate(self.now, rate);
    }

    /// Returns the delays in the queue since the last call.
    pub(crate) fn take_queue_delays(&mut self) -> Histogram {
        self.network.link.take_queue_delays()
    }

    /// Runs the flow for this time.
    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            let paced = self.send();
            let ack = self.pending.map(|(_, since)| since + ms(25));
            let limit = [paced, ack].into_iter().flatten().fold(end, Time::min);
            if let Some(arrival) = self.network.receive(limit) {
                self.advance_to(arrival.at);
                self.arrive(arrival);
                continue;
            }
            let timeout = self.timeout_at().filter(|at| *at <= limit);
            self.advance_to(timeout.unwrap_or(limit));
            if timeout.is_some() {
                self.lose(self.in_transit.len());
            } else if ack.is_some_and(|ack| ack <= self.now) {
                self.acknowledge();
            }
        }
    }

    fn advance_to(&mut self, next: Time) {
        let step = (next - self.now).as_secs_f64();
        self.totals.window_seconds += self.controller.window() as f64 * step;
        self.now = self.now.max(next);
    }

    /// Sends as much as is permitted. Returns the time at which the pacer permits more.
    fn send(&mut self) -> Option<Time> {
        let mtu = u64::from(self.path.mtu);
        loop {
            let room = self.controller.room(self.in_flight) / mtu * mtu;
            if room == 0 {
                return None;
            }
            self.pacer.set_rate(self.controller.pacing_rate(&self.rtt));
            self.pacer.set_quantum(self.controller.send_quantum());
            let window = self.controller.window();
            let granted = self
                .pacer
                .reserve(self.now, room, &self.rtt, window, self.path.mtu);
            if granted == 0 {
                let at =
                    self.pacer
                        .next_release(self.now, u64::MAX, &self.rtt, window, self.path.mtu);
                return Some(at.max(self.now + Duration::from_nanos(1)));
            }
            let count = (granted / mtu).min(54);
            (0..count).for_each(|_| self.transmit(mtu));
            self.pacer.return_unused(granted - count * mtu);
            let last = self.oldest + self.in_transit.len() as u64 - 1;
            self.controller
                .on_sent(self.now, count * mtu, last, self.in_flight);
        }
    }

    fn transmit(&mut self, size: u64) {
        self.in_flight += size;
        self.totals.sent += 1;
        let number = self.oldest + self.in_transit.len() as u64;
        self.network.send(self.now, 1, number, size);
        self.in_transit.push_back(InTransit {
            sent: self.now,
            has_arrived: false,
            is_marked: false,
        });
    }

    /// Returns the time at which missing packets are declared lost: a little more than a round trip
    /// after they were sent if later ones have arrived (RFC 9002 §6.1.2), otherwise by a probe.
    fn timeout_at(&self) -> Option<Time> {
        if self.pending.is_some() || !self.network.is_empty() {
            return None;
        }
        let missing = self
            .in_transit
            .iter()
            .position(|packet| !packet.has_arrived)?;
        let was_overtaken = self
            .in_transit
            .range(missing..)
            .any(|packet| packet.has_arrived);
        let wait = if was_overtaken {
            self.time_threshold()
        } else {
            self.rtt.pto_base() + ms(25)
        };
        Some((self.in_transit[missing].sent + wait).max(self.now))
    }

    fn time_threshold(&self) -> Duration {
        self.rtt.smoothed().max(self.rtt.latest()) * 9 / 8
    }

    fn arrive(&mut self, arrival: Arrival) {
        let at = (arrival.number - self.oldest) as usize;
        let has_gap = at > 0 && !self.in_transit[at - 1].has_arrived;
        self.in_transit[at].has_arrived = true;
        self.in_transit[at].is_marked = arrival.is_marked;
        self.next_back = at + 1;
        let (count, since) = self.pending.unwrap_or((0, self.now));
        self.pending = Some((count + 1, since));
        if count + 1 >= self.path.ack_every || has_gap {
            self.acknowledge();
        }
    }

    /// Removes the packets before `end`, and declares those lost that have not arrived.
    fn lose(&mut self, end: usize) -> u64 {
        let mut lost = (0, Time::ZERO);
        for packet in self.in_transit.drain(..end) {
            if !packet.has_arrived {
                lost = (lost.0 + 1, packet.sent);
            }
        }
        self.oldest += end as u64;
        self.next_back = self.next_back.saturating_sub(end);
        let bytes = lost.0 * u64::from(self.path.mtu);
        self.in_flight -= bytes;
        self.totals.lost += lost.0;
        if bytes > 0 {
            self.controller.on_congestion(&LossSample {
                now: self.now,
                lost_bytes: bytes,
                largest_lost_sent: lost.1,
                persistent: false,
                is_ecn: false,
                bytes_in_flight: self.in_flight,
                packets: &[],
            });
        }
        bytes
    }

    fn acknowledge(&mut self) {
        let Some((count, _)) = self.pending.take() else {
            return;
        };
        let mtu = u64::from(self.path.mtu);
        let before = self.in_flight;
        let largest_at = self.next_back - 1;
        let largest = self.in_transit[largest_at];
        let (mut marked, mut acked, mut earliest) = (0, 0, largest.sent);
        for packet in self.in_transit.range_mut(..=largest_at).rev() {
            if acked == count {
                break;
            }
            if packet.has_arrived {
                acked += 1;
                marked += u64::from(packet.is_marked);
                earliest = packet.sent;
            }
        }
        self.in_flight -= count * mtu;
        self.totals.delivered += count * mtu;
        self.totals.marked += marked;
        let sample = self.now - largest.sent;
        self.rtt.on_sample(self.now, sample, Duration::ZERO, None);
        let largest_pn = self.oldest + largest_at as u64;
        // Three later packets have arrived: RFC 9002 §6.1.1.
        let overdue = self.now.saturating_sub(self.time_threshold());
        let mut end = (largest_at + 1).saturating_sub(3);
        while end <= largest_at && self.in_transit[end].sent <= overdue {
            end += 1;
        }
        let lost_bytes = self.lose(end);
        if marked > 0 {
            self.controller.on_congestion(&LossSample {
                now: self.now,
                lost_bytes: 0,
                largest_lost_sent: largest.sent,
                persistent: false,
                is_ecn: true,
                bytes_in_flight: self.in_flight,
                packets: &[],
            });
        }
        self.controller.on_ack(&AckSample {
            now: self.now,
            acked_bytes: count * mtu,
            largest_acked: largest_pn,
            largest_acked_sent: largest.sent,
            earliest_acked_sent: earliest,
            rtt: &self.rtt,
            rtt_sample: Some(sample),
            app_limited: false,
            bytes_in_flight_before: before,
            bytes_in_flight: self.in_flight,
            lost_bytes,
            delivered: self.totals.delivered,
            rate: None,
            ecn_capable_packets: count,
            ce_packets: marked,
        });
        if !self.controller.in_slow_start() && self.totals.slow_start_end.is_none() {
            self.totals.slow_start_end = Some(self.now);
            self.totals.lost_in_slow_start = self.totals.lost;
        }
    }
}
