//! One bulk flow through one bottleneck, packet by packet. All randomness comes from a seed.

use std::collections::VecDeque;

use super::*;
use crate::Pacer;

/// A path: a bottleneck with a drop-tail queue, and a round trip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// Bytes per second; `None` is infinitely fast.
    pub(crate) rate: Option<u64>,
    pub(crate) rtt: Duration,
    /// Bytes that fit into the queue.
    pub(crate) queue: u64,
    /// Packets are marked CE when they would wait longer than this.
    pub(crate) mark_above: Option<Duration>,
    /// The loss of packets.
    pub(crate) loss: Loss,
    /// Packets per acknowledgement, which comes 25 ms after the first of them at the latest.
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
            loss,
            ack_every: 2,
            jitter: Duration::ZERO,
            mtu: MTU,
            seed: 1,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Flying {
    sent: Time,
    /// The time at which its acknowledgement could arrive; `None` if it was dropped.
    back: Option<Time>,
    is_marked: bool,
}

/// The totals so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    pub(crate) marked: u64,
    pub(crate) sent: u64,
    /// The integral of the window, in bytes times seconds.
    pub(crate) window_seconds: f64,
    /// The sum over packets of their seconds in the queue.
    pub(crate) queue_seconds: f64,
    /// The time at which the first slow start ended.
    pub(crate) slow_start_end: Option<Time>,
    /// Packets lost until then.
    pub(crate) lost_in_slow_start: u64,
}

#[derive(Debug)]
pub(crate) struct Model {
    path: Path,
    pub(crate) controller: CongestionController,
    pub(crate) rtt: RttEstimator,
    pub(crate) now: Time,
    pub(crate) totals: Totals,
    /// The time that each packet of the run waited in the queue.
    pub(crate) delays: Vec<f32>,
    pacer: Pacer,
    flying: VecDeque<Flying>,
    /// The number of `flying[0]`.
    oldest: u64,
    /// The offset into `flying` of the next packet to be acknowledged.
    next_back: usize,
    in_flight: u64,
    link_free: Time,
    /// Packets that arrived and are not acknowledged: their number and the arrival of the first.
    pending: Option<(u64, Time)>,
    back_before: Time,
    random: u64,
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
            delays: Vec::new(),
            pacer: Pacer::new(now, path.mtu),
            flying: VecDeque::new(),
            oldest: 0,
            next_back: 0,
            in_flight: 0,
            link_free: now,
            pending: None,
            back_before: now,
            random: path.seed,
        }
    }

    /// Changes the rate of the link. The size of its queue in bytes stays the same.
    pub(crate) fn set_megabits(&mut self, megabits: u64) {
        let wait = self.link_free - self.now;
        let before = self.path.rate.replace(megabits * 125_000);
        let before = before.expect("a link with a rate");
        let stretched = wait.mul_f64(before as f64 / (megabits * 125_000) as f64);
        self.link_free = self.now + stretched;
    }

    /// Runs the flow for this time.
    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            let paced = self.send();
            let back = self.skip_dropped().or_else(|| self.give_up_at());
            let ack = self.pending.map(|(_, since)| since + ms(25));
            let next = [paced, back, ack].into_iter().flatten().min();
            let next = next.expect("something is under way or may leave").min(end);
            let step = (next - self.now).as_secs_f64();
            self.totals.window_seconds += self.controller.window() as f64 * step;
            self.now = self.now.max(next);
            self.step(back, ack);
        }
    }

    fn step(&mut self, back: Option<Time>, ack: Option<Time>) {
        if back.is_some_and(|back| back <= self.now) {
            if self.next_back < self.flying.len() {
                self.arrive();
            } else {
                self.lose(self.flying.len());
            }
        } else if ack.is_some_and(|ack| ack <= self.now) {
            self.acknowledge();
        }
    }

    fn chance(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.random;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Sends what may be sent. Returns the time at which the pacer permits more.
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
            self.pacer.give_back(granted - count * mtu);
            let last = self.oldest + self.flying.len() as u64 - 1;
            self.controller
                .on_sent(self.now, count * mtu, last, self.in_flight);
        }
    }

    fn transmit(&mut self, size: u64) {
        self.in_flight += size;
        self.totals.sent += 1;
        let is_lost = match self.path.loss {
            Loss::None => false,
            Loss::Periodic(every) => self.totals.sent.is_multiple_of(every),
            Loss::Random(p) => self.chance() < p,
        };
        let mut packet = Flying {
            sent: self.now,
            back: None,
            is_marked: false,
        };
        let rate = self.path.rate.map(Rate::from_bytes_per_second);
        let wait = self.link_free - self.now;
        let fits = rate.is_none_or(|rate| rate.bytes_in(wait) + size <= self.path.queue.max(size));
        if !is_lost && fits {
            let leaves = self.now + wait + rate.map_or(Duration::ZERO, |rate| rate.time_for(size));
            self.link_free = leaves;
            self.totals.queue_seconds += wait.as_secs_f64();
            self.delays.push(wait.as_secs_f32());
            packet.is_marked = self.path.mark_above.is_some_and(|above| wait > above);
            let jitter = self.path.jitter.mul_f64(self.chance());
            // Delayed, but never reordered.
            let back = (leaves + self.path.rtt + jitter).max(self.back_before);
            self.back_before = back;
            packet.back = Some(back);
        }
        self.flying.push_back(packet);
    }

    /// Returns the time at which the next packet is acknowledged.
    fn skip_dropped(&mut self) -> Option<Time> {
        while let Some(packet) = self.flying.get(self.next_back) {
            if packet.back.is_some() {
                return packet.back;
            }
            self.next_back += 1;
        }
        None
    }

    /// Returns the time at which missing packets are declared lost: a little more than a round trip
    /// after they were sent if later ones have arrived (RFC 9002 §6.1.2), otherwise by a probe.
    fn give_up_at(&self) -> Option<Time> {
        if self.pending.is_some() {
            return None;
        }
        let missing = self
            .flying
            .iter()
            .position(|packet| packet.back.is_none())?;
        let was_overtaken = self
            .flying
            .range(missing..)
            .any(|packet| packet.back.is_some());
        let wait = if was_overtaken {
            self.time_threshold()
        } else {
            self.rtt.pto_base() + ms(25)
        };
        Some((self.flying[missing].sent + wait).max(self.now))
    }

    fn time_threshold(&self) -> Duration {
        self.rtt.smoothed().max(self.rtt.latest()) * 9 / 8
    }

    fn arrive(&mut self) {
        let has_gap = self.next_back > 0 && self.flying[self.next_back - 1].back.is_none();
        self.next_back += 1;
        let (count, since) = self.pending.unwrap_or((0, self.now));
        self.pending = Some((count + 1, since));
        if count + 1 >= self.path.ack_every || has_gap {
            self.acknowledge();
        }
    }

    /// Declares packets up to here lost if they were not acknowledged.
    fn lose(&mut self, end: usize) -> u64 {
        let mut lost = (0, Time::ZERO);
        for packet in self.flying.drain(..end) {
            if packet.back.is_none() {
                lost = (lost.0 + 1, packet.sent);
            }
        }
        self.oldest += end as u64;
        self.next_back -= end;
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
        let largest = self.flying[largest_at];
        let (mut marked, mut acked, mut earliest) = (0, 0, largest.sent);
        for packet in self.flying.range_mut(..=largest_at).rev() {
            if acked == count {
                break;
            }
            if packet.back.is_some() {
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
        while end <= largest_at && self.flying[end].sent <= overdue {
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
