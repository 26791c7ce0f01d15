//! How fast the network delivers: samples of the delivery rate.
//! draft-ietf-ccwg-bbr §4.1, draft-cheng-iccrg-delivery-rate-estimation.

use std::collections::VecDeque;
use std::time::Duration;

use courser_base::{Rate, Time};

/// The rate at which the newest of some acknowledged packets, and all before it, were delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateSample {
    /// `delivered` over `interval`.
    pub rate: Rate,
    /// Bytes delivered between the sending of the packet and its acknowledgement.
    pub delivered: u64,
    /// The longer of the time in which they were sent and the time in which they were acknowledged.
    pub interval: Duration,
    /// The packet was sent while there was less to send than the window allowed: the path may be
    /// faster than this.
    pub is_app_limited: bool,
    /// Bytes that had been delivered on the path when the packet was sent.
    pub prior_delivered: u64,
    /// Bytes lost between the sending of the packet and its acknowledgement.
    pub lost: u64,
    /// Bytes in flight when the packet had just been sent, itself included.
    pub tx_in_flight: u64,
}

/// Measures the delivery rate of one path.
///
/// Packets of one batch leave at the same time and share one snapshot of the counters; a packet
/// remembers only which. That keeps 40 bytes out of every record of a sent packet.
#[derive(Debug, Default)]
pub struct DeliveryRate {
    /// Bytes acknowledged so far.
    delivered: u64,
    /// When the newest of them was.
    delivered_time: Time,
    /// When the first packet of the flight that is being measured was sent.
    first_sent: Time,
    /// Bytes lost so far.
    lost: u64,
    /// Packets are app-limited until so many bytes are delivered; zero when they are not.
    app_limited_until: u64,
    /// Since when there is nothing to send, and a pause that does not count as such.
    idle: Option<(Time, Duration)>,
    /// Counters at the sending of the batches whose packets may be in flight, oldest first.
    snapshots: VecDeque<Snapshot>,
    /// The number of `snapshots[0]`. Numbers wrap around.
    first: u32,
    /// When the newest snapshot was taken.
    taken: Time,
    newest: Option<Newest>,
}

#[derive(Clone, Copy, Debug)]
struct Snapshot {
    delivered: u64,
    delivered_time: Time,
    first_sent: Time,
    lost: u64,
    is_app_limited: bool,
}

/// The newest packet of those acknowledged since the last sample.
#[derive(Clone, Copy, Debug)]
struct Newest {
    snapshot: u32,
    sent: Time,
    tx_in_flight: u64,
}

impl DeliveryRate {
    /// Counters at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes delivered so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Bytes lost so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// True while packets are sent that say only how little there was to send.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until > 0
    }

    /// A packet is about to leave; the result belongs into its record
    /// ([`Sent::snapshot`](crate::Sent::snapshot)).
    #[inline]
    pub fn on_sent(&mut self, now: Time, bytes_in_flight_before: u64) -> u32 {
        if let Some((since, pause)) = self.idle.take()
            && now - since > pause
            && bytes_in_flight_before > 0
        {
            // The gap is in the pipe until what is ahead of it has left.
            self.app_limited_until = self.delivered + bytes_in_flight_before;
        }
        let newest = self.newest();
        if self.taken == now && self.is_same_batch(bytes_in_flight_before) {
            return newest.wrapping_sub(1);
        }
        self.take_snapshot(now, bytes_in_flight_before);
        newest
    }

    fn is_same_batch(&self, bytes_in_flight_before: u64) -> bool {
        let same = |newest: &Snapshot| {
            newest.delivered == self.delivered
                && newest.lost == self.lost
                && newest.is_app_limited == self.is_app_limited()
        };
        bytes_in_flight_before > 0 && self.snapshots.back().is_some_and(same)
    }

    fn take_snapshot(&mut self, now: Time, bytes_in_flight_before: u64) {
        self.taken = now;
        if bytes_in_flight_before == 0 {
            // The pipe was empty: time in which nothing was sent is no slowness of the network.
            self.first_sent = now;
            self.delivered_time = now;
        }
        let snapshot = Snapshot {
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_sent: self.first_sent,
            lost: self.lost,
            is_app_limited: self.is_app_limited(),
        };
        self.snapshots.push_back(snapshot);
    }

    /// A packet that had been declared lost was acknowledged.
    pub fn on_spurious_loss(&mut self, bytes: u64) {
        self.delivered += bytes;
    }

    /// A packet was acknowledged.
    #[inline]
    pub fn on_acked(&mut self, bytes: u64, snapshot: u32, sent: Time, tx_in_flight: u64) {
        self.delivered += bytes;
        // Ranges of an ACK come newest first, and the newest packet counts.
        let is_newer = self.newest.is_none_or(|newest| {
            let ahead = snapshot.wrapping_sub(newest.snapshot);
            ahead == 0 || ahead < u32::MAX / 2
        });
        if is_newer {
            self.newest = Some(Newest {
                snapshot,
                sent,
                tx_in_flight,
            });
        }
    }

    /// A packet was lost. Gives the bytes lost since it was sent, itself included, and whether it
    /// was app-limited.
    pub fn on_lost(&mut self, bytes: u64, snapshot: u32) -> (u64, bool) {
        self.lost += bytes;
        self.get(snapshot).map_or((bytes, false), |snapshot| {
            (self.lost - snapshot.lost, snapshot.is_app_limited)
        })
    }

    /// There is less to send than the window allows. Whether that makes a gap in the pipe shows
    /// when the next packet leaves: a pause of `pause` is none, that is only a writer being woken.
    pub fn on_app_limited(&mut self, now: Time, pause: Duration) {
        self.idle.get_or_insert((now, pause));
    }

    /// The number that a packet which is not in flight belongs behind.
    pub fn newest(&self) -> u32 {
        self.first.wrapping_add(self.snapshots.len() as u32)
    }

    /// The sample that the packets acknowledged since the last call give, if they give one.
    pub fn sample(&mut self, now: Time, min_rtt: Duration) -> Option<RateSample> {
        if self.app_limited_until > 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let newest = self.newest.take()?;
        self.delivered_time = now;
        let then = *self.get(newest.snapshot)?;
        self.first_sent = newest.sent;
        let send_elapsed = newest.sent - then.first_sent;
        let ack_elapsed = now - then.delivered_time;
        // Acknowledgements that were held up somewhere arrive together, and packets cannot be
        // delivered faster than they were sent.
        let interval = send_elapsed.max(ack_elapsed);
        let delivered = self.delivered - then.delivered;
        // Shorter than any round trip: what was acknowledged is not what was measured.
        if interval < min_rtt || interval.is_zero() {
            return None;
        }
        Some(RateSample {
            rate: Rate::from_bytes_in(delivered, interval),
            delivered,
            interval,
            is_app_limited: then.is_app_limited,
            prior_delivered: then.delivered,
            lost: self.lost - then.lost,
            tx_in_flight: newest.tx_in_flight,
        })
    }

    /// No packet with an older snapshot than this is in flight; `None` when no packet is.
    pub fn forget_before(&mut self, oldest: Option<u32>) {
        let past = match oldest {
            Some(oldest) => oldest.wrapping_sub(self.first) as usize,
            None => self.snapshots.len(),
        };
        // A number from before the first one looks like a very large one.
        if past <= self.snapshots.len() {
            self.snapshots.drain(..past);
            self.first = self.first.wrapping_add(past as u32);
        }
        if self.snapshots.is_empty() {
            self.snapshots.shrink_to(KEPT_SNAPSHOTS);
        }
    }

    /// Bytes of memory held beside the struct itself.
    pub fn memory(&self) -> usize {
        self.snapshots.capacity() * size_of::<Snapshot>()
    }

    fn get(&self, snapshot: u32) -> Option<&Snapshot> {
        self.snapshots
            .get(snapshot.wrapping_sub(self.first) as usize)
    }
}

/// Room for so many batches is kept while nothing is in flight.
const KEPT_SNAPSHOTS: usize = 8;

#[cfg(test)]
mod tests;
