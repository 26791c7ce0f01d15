//! A network that loses, duplicates, delays and reorders datagrams.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use courser_base::Time;

/// A datagram with its destination and source.
pub(super) type Arrival = (SocketAddr, SocketAddr, Vec<u8>);

/// The network between two ends, in both directions.
pub(super) struct Link {
    /// Datagrams in transit by time of arrival and order of sending.
    queue: BTreeMap<(Time, u64), Arrival>,
    /// Datagrams sent so far.
    count: u64,
    /// One of this many datagrams is lost, or none if zero.
    lost: u64,
    /// One of this many datagrams is duplicated, or none if zero.
    duplicated: u64,
    /// One of this many datagrams is delayed beyond later ones, or none if zero.
    late: u64,
    delay: Duration,
    /// The next datagrams to drop.
    drops: u8,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            queue: BTreeMap::new(),
            count: 0,
            lost: 0,
            duplicated: 0,
            late: 0,
            delay: DELAY,
            drops: 0,
        }
    }
}

impl Link {
    /// Sets the rates of loss, duplication and reordering, and the delay.
    pub(super) fn configure(&mut self, rates: u8, more: u8) {
        self.lost = [0, 2, 3, 7, 20, 100, 1, 5][usize::from(rates & 7)];
        self.duplicated = [0, 1, 2, 5][usize::from(rates >> 3 & 3)];
        self.late = [0, 2, 3, 10][usize::from(rates >> 5 & 3)];
        self.delay = Duration::from_micros(u64::from(more) * u64::from(more) * 4);
    }

    /// Drops the next `count` datagrams.
    pub(super) fn drop_next(&mut self, count: u8) {
        self.drops = count;
    }

    /// Restores the default: a fixed delay and nothing else. Datagrams in transit still arrive.
    pub(super) fn restore(&mut self) {
        *self = Self {
            queue: std::mem::take(&mut self.queue),
            count: self.count,
            ..Self::default()
        };
    }

    pub(super) fn send(&mut self, now: Time, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        self.count += 1;
        let is = |rate: u64, salt: u64| rate != 0 && self.draw(salt).is_multiple_of(rate);
        if self.drops > 0 {
            self.drops -= 1;
            return;
        }
        if is(self.lost, 1) || self.queue.len() > MAX_QUEUE {
            return;
        }
        let late = if is(self.late, 3) {
            self.delay * 3 + DELAY
        } else {
            Duration::ZERO
        };
        let at = now + self.delay + late;
        if is(self.duplicated, 2) {
            let arrival = (to, from, bytes.clone());
            self.queue
                .insert((at + self.delay, 2 * self.count + 1), arrival);
        }
        self.queue.insert((at, 2 * self.count), (to, from, bytes));
    }

    /// Returns a pseudo-random number that depends only on the count of datagrams and `salt`.
    const fn draw(&self, salt: u64) -> u64 {
        let mixed = (self.count ^ salt << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 16
    }

    pub(super) fn next_arrival(&self) -> Option<Time> {
        self.queue.first_key_value().map(|((at, _), _)| *at)
    }

    pub(super) fn receive(&mut self, now: Time) -> Option<Arrival> {
        let entry = self.queue.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }
}

const DELAY: Duration = Duration::from_millis(10);

/// Datagrams in transit, above which further ones are dropped.
const MAX_QUEUE: usize = 2000;
