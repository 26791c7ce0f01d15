//! Samples of the delivery rate.
//! draft-ietf-ccwg-bbr §4.1, draft-cheng-iccrg-delivery-rate-estimation.

use std::collections::VecDeque;
use std::time::Duration;

use courser_base::{Rate, Time};

/// The rate at which a packet and those sent before it were delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateSample {
    /// The delivery rate: `delivered` divided by `interval`.
    pub rate: Rate,
    /// Bytes delivered between the sending of the packet and its acknowledgement.
    pub delivered: u64,
    /// The longer of two times: that of sending these bytes and that of acknowledging them.
    pub interval: Duration,
    /// True if there was less to send than the window allowed when the packet was sent: the path
    /// may be faster than this.
    pub is_app_limited: bool,
    /// Bytes delivered on the path before the packet was sent.
    pub prior_delivered: u64,
    /// Bytes lost between the sending of the packet and its acknowledgement.
    pub lost: u64,
    /// Bytes in flight after the packet was sent, its own included.
    pub tx_in_flight: u64,
}

/// Measures the delivery rate of one path.
///
/// Packets of one batch are sent at the same time and share one snapshot of the counters. A sent
/// packet stores only the number of its snapshot, which saves 40 bytes per packet.
#[derive(Debug, Default)]
pub struct DeliveryRate {
    /// Bytes acknowledged so far.
    delivered: u64,
    /// The time of the last acknowledgement.
    delivered_time: Time,
    /// The time at which the first packet of the measured flight was sent.
    first_sent: Time,
    /// Bytes lost so far.
    lost: u64,
    /// Packets are app-limited until this many bytes are delivered; zero if they are not.
    app_limited_until: u64,
    /// The time at which there was nothing left to send, and the pause to be tolerated.
    idle: Option<(Time, Duration)>,
    /// Snapshots of the batches whose packets may be in flight, oldest first.
    snapshots: VecDeque<Snapshot>,
    /// The number of `snapshots[0]`; wraps around.
    first: u32,
    /// The time of the newest snapshot.
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

/// The newest packet acknowledged since the last sample.
#[derive(Clone, Copy, Debug)]
struct Newest {
    snapshot: u32,
    sent: Time,
    tx_in_flight: u64,
}

impl DeliveryRate {
    /// Creates a meter with all counters at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the bytes delivered so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns the bytes lost so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns true if packets sent now are app-limited, so that their samples may be lower than
    /// the rate of the path.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until > 0
    }

    /// Records that a packet is about to be sent. Returns the number of its snapshot, for
    /// [`Sent::snapshot`](crate::Sent::snapshot).
    #[inline]
    pub fn on_sent(&mut self, now: Time, bytes_in_flight_before: u64) -> u32 {
        if let Some((since, pause)) = self.idle.take()
            && now - since > pause
            && bytes_in_flight_before > 0
        {
            // The gap stays in the pipe until the bytes ahead of it are delivered.
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
            // The pipe was empty: time without sending does not make the network slow.
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

    /// Counts a packet that was declared lost and then acknowledged.
    pub fn on_spurious_loss(&mut self, bytes: u64) {
        self.delivered += bytes;
    }

    /// Counts an acknowledged packet.
    #[inline]
    pub fn on_acked(&mut self, bytes: u64, snapshot: u32, sent: Time, tx_in_flight: u64) {
        self.delivered += bytes;
        // The ranges of an ACK are sorted newest first, and the newest packet counts.
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

    /// Counts a lost packet. Returns the bytes lost since it was sent, its own included, and
    /// whether it was app-limited.
    pub fn on_lost(&mut self, bytes: u64, snapshot: u32) -> (u64, bool) {
        self.lost += bytes;
        self.get(snapshot).map_or((bytes, false), |snapshot| {
            (self.lost - snapshot.lost, snapshot.is_app_limited)
        })
    }

    /// Records that there is less to send than the window allows. This leaves a gap in the pipe
    /// unless the next packet is sent within `pause`, the time that it takes to wake a writer.
    pub fn on_app_limited(&mut self, now: Time, pause: Duration) {
        self.idle.get_or_insert((now, pause));
    }

    /// Records that a probe is about to be sent, although there is no data: until it is delivered, samples may be lower
    /// than the rate of the path. `bytes_in_flight` includes it.
    pub fn on_lone_probe(&mut self, bytes_in_flight: u64) {
        // One less, so that it ends with the acknowledgement of the probe.
        let last = self.delivered + bytes_in_flight.saturating_sub(1);
        self.app_limited_until = last.max(1);
    }

    /// Returns the snapshot number for a packet that is not in flight.
    pub fn newest(&self) -> u32 {
        self.first.wrapping_add(self.snapshots.len() as u32)
    }

    /// Returns the sample of the packets acknowledged since the last call, if they give one.
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
        // Delayed acknowledgements may arrive together, but packets cannot be delivered faster than
        // they were sent.
        let interval = send_elapsed.max(ack_elapsed);
        let delivered = self.delivered - then.delivered;
        // An interval shorter than any round trip is not that of the acknowledged packets.
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

    /// Removes the snapshots before `oldest`, that of the oldest packet in flight; `None` if no
    /// packet is in flight.
    pub fn remove_before(&mut self, oldest: Option<u32>) {
        let past = match oldest {
            Some(oldest) => oldest.wrapping_sub(self.first) as usize,
            None => self.snapshots.len(),
        };
        // A number before the first one wraps to a very large distance.
        if past <= self.snapshots.len() {
            self.snapshots.drain(..past);
            self.first = self.first.wrapping_add(past as u32);
        }
        if self.snapshots.is_empty() {
            self.snapshots.shrink_to(KEPT_SNAPSHOTS);
        }
    }

    /// Frees the memory that the packets in flight do not need.
    pub fn shrink(&mut self) {
        self.snapshots.shrink_to_fit();
    }

    /// Returns the bytes of memory held, the struct itself excluded.
    pub fn memory(&self) -> usize {
        self.snapshots.capacity() * size_of::<Snapshot>()
    }

    fn get(&self, snapshot: u32) -> Option<&Snapshot> {
        self.snapshots
            .get(snapshot.wrapping_sub(self.first) as usize)
    }
}

/// Snapshots for which memory is kept while nothing is in flight.
const KEPT_SNAPSHOTS: usize = 8;

#[cfg(test)]
mod tests;
