//! Loss recovery of one network path: round-trip time, window, pacing, datagram size.

use std::time::Duration;

use courser_base::{Ecn, Rate, Time};
use courser_recovery::{
    AckSample, Algorithm, CongestionController, Controller, DeliveryRate, LossSample, LostPacket,
    MtuSearch, Pacer, PersistentCongestion, RttEstimator, Sent, SpuriousLoss,
};

use super::bandwidth::Bandwidth;
use super::features::{Experience, Features};
use super::refused::Refused;
use super::stats::PathStats;
use crate::config::TransportConfig;
use crate::space::sent::SentFrames;

/// Identifies the recovery state of a path. The records of sent packets contain it, so that packets of one path
/// do not affect another (RFC 9000 §9.4).
pub(crate) type PathKey = u32;

/// The state of loss recovery that belongs to one network path.
///
/// A path whose peer has only changed its port keeps the state of the path before it.
#[derive(Debug)]
pub(crate) struct PathRecovery {
    pub(super) key: PathKey,
    pub(super) rtt: RttEstimator,
    pub(super) congestion: CongestionController,
    /// Measures the delivery rate.
    pub(super) delivery: DeliveryRate,
    /// The delivery rate for statistics.
    pub(super) bandwidth: Bandwidth,
    /// Spreads batches over the round trip.
    pub(super) pacer: Pacer,
    /// Detects persistent congestion.
    pub(super) persistent: PersistentCongestion,
    /// Bytes sent and neither acknowledged nor lost.
    pub(super) bytes_in_flight: u64,
    /// UDP payload of full datagrams, as found by the search.
    pub(super) mtu: u16,
    /// Searches for larger datagrams.
    pub(super) search: MtuSearch,
    /// Packets that are too large for a link of the path, as a router has reported.
    pub(super) refused: Refused,
    /// True if the window was not filled because there was too little to send.
    pub(super) app_limited: bool,
    /// Optional features of packets, which the path may drop.
    pub(super) features: Features,
}

/// The part of a sent packet's record that its path provides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub(super) path: PathKey,
    pub(super) snapshot: u32,
    pub(super) tx_in_flight: u32,
}

impl PathRecovery {
    /// Creates the state of a path about which nothing is known.
    pub(super) fn new(
        now: Time,
        config: &TransportConfig,
        experience: &Experience,
        key: PathKey,
    ) -> Self {
        let seed = seed(now, key);
        let mut pacer = Pacer::new(now, config.mtu);
        pacer.set_cap(config.max_send_rate);
        Self {
            key,
            rtt: RttEstimator::new(config.initial_rtt),
            congestion: config.new_controller(config.mtu, seed),
            delivery: DeliveryRate::new(),
            bandwidth: Bandwidth::default(),
            pacer,
            persistent: PersistentCongestion::with_threshold(
                config.persistent_congestion_threshold,
            ),
            bytes_in_flight: 0,
            mtu: config.mtu,
            search: config.mtu_search(),
            refused: Refused::default(),
            app_limited: false,
            features: Features::new(experience),
        }
    }

    /// Frees the records of packets.
    pub(super) fn free(&mut self) {
        self.delivery = DeliveryRate::new();
        self.persistent.reset();
        self.refused = Refused::default();
    }

    pub(crate) fn key(&self) -> PathKey {
        self.key
    }

    /// Returns the UDP payload of full datagrams in bytes.
    pub(crate) fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Returns the UDP payload of full datagrams at present: less than [`PathRecovery::mtu`] after losses which
    /// suggest that the path does not carry that size.
    pub(crate) fn size_in_use(&self) -> u16 {
        self.search.size_in_use()
    }

    /// Returns the maximum rate of sending, if the controller or the configuration sets one.
    pub(super) fn pacing_rate(&self) -> Option<Rate> {
        let rates = [self.congestion.pacing_rate(&self.rtt), self.pacer.cap()];
        rates.into_iter().flatten().min()
    }

    pub(crate) fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Returns the round-trip time, for tests that set it.
    #[cfg(test)]
    pub(crate) fn rtt_mut(&mut self) -> &mut RttEstimator {
        &mut self.rtt
    }

    #[cfg(test)]
    pub(crate) fn search(&self) -> &MtuSearch {
        &self.search
    }

    #[cfg(test)]
    pub(crate) fn delivery(&self) -> &DeliveryRate {
        &self.delivery
    }

    /// Returns the congestion window in bytes.
    pub(crate) fn window(&self) -> u64 {
        self.congestion.window()
    }

    /// Returns true while the window grows exponentially.
    pub(crate) fn in_slow_start(&self) -> bool {
        self.congestion.in_slow_start()
    }

    /// Returns the ECN mark that the congestion controller requires on packets.
    pub(crate) fn ecn_codepoint(&self) -> Ecn {
        self.congestion.ecn_codepoint()
    }

    /// Sets the round-trip time that is assumed until the first sample.
    pub(super) fn assume_rtt(&mut self, rtt: Duration) {
        if !self.rtt.has_sample() {
            self.rtt = RttEstimator::new(rtt);
        }
    }

    /// Returns the bytes that congestion control allows to be sent now.
    pub(crate) fn congestion_room(&self) -> u64 {
        self.congestion.room(self.bytes_in_flight)
    }

    /// Returns the probe timeout without backoff, for timeouts that are multiples of it
    /// (RFC 9000 §8.2.4, §10.2).
    pub(super) fn pto(&self, max_ack_delay: Duration) -> Duration {
        self.rtt.pto_base().saturating_add(max_ack_delay)
    }

    /// Returns the state of the path for statistics.
    pub(crate) fn stats(&self) -> PathStats {
        PathStats {
            rtt: self.rtt.smoothed(),
            latest_rtt: self.rtt.latest(),
            rtt_variance: self.rtt.rttvar(),
            min_rtt: self.rtt.min(),
            congestion_window: self.congestion.window(),
            bytes_in_flight: self.bytes_in_flight,
            mtu: self.size_in_use(),
            ssthresh: self.congestion.ssthresh(),
            pacing_rate: self.congestion.pacing_rate(&self.rtt),
            delivery_rate: self.bandwidth.latest(),
            is_delivery_rate_app_limited: self.bandwidth.is_app_limited(),
            bandwidth: self.bandwidth.estimate(),
            controller: self.congestion.name(),
            withheld: self.features.withheld(),
        }
    }

    /// Begins again with the window of a new path.
    pub(super) fn restart_congestion(&mut self, now: Time, config: &TransportConfig) {
        self.congestion = config.new_controller(self.mtu, seed(now, self.key));
        self.persistent.reset();
        self.set_pacing_rate();
    }

    /// Continues with another congestion controller.
    pub(super) fn switch_controller(&mut self, now: Time, algorithm: Algorithm) {
        let seed = seed(now, self.key);
        self.congestion
            .switch(algorithm, self.mtu, seed, &self.rtt, now);
        self.set_pacing_rate();
    }

    /// Sets the size of the largest datagram that the peer accepts.
    pub(super) fn set_peer_limit(&mut self, size: u16) {
        self.search.set_peer_limit(size);
        self.follow_search();
    }

    /// Adopts the datagram size that the search has found.
    pub(super) fn follow_search(&mut self) {
        let mtu = self.search.mtu();
        if mtu != self.mtu {
            self.mtu = mtu;
            self.congestion.on_mtu_update(mtu);
            self.set_pacing_rate();
        }
    }

    /// Counts a packet of `len` bytes that is sent on this path.
    #[inline]
    pub(super) fn begin_flight(&mut self, now: Time, len: usize, in_flight: bool) -> Flight {
        let mut snapshot = self.delivery.newest();
        if in_flight {
            snapshot = self.delivery.on_sent(now, self.bytes_in_flight);
            self.bytes_in_flight += len as u64;
        }
        Flight {
            path: self.key,
            snapshot,
            tx_in_flight: u32::try_from(self.bytes_in_flight).unwrap_or(u32::MAX),
        }
    }

    /// Processes the sending of packets with `bytes` in flight, up to packet `last_number`.
    pub(super) fn on_batch_sent(&mut self, now: Time, bytes: u64, last_number: u64) {
        let was_idle = self.bytes_in_flight <= bytes;
        self.congestion
            .on_sent(now, bytes, last_number, self.bytes_in_flight);
        if was_idle {
            // BBR may change the rate at the end of an idle period.
            self.set_pacing_rate();
        }
        self.pacer.on_sent(bytes);
        self.app_limited = false;
    }

    /// Passes the controller's rate to the pacer.
    pub(super) fn set_pacing_rate(&mut self) {
        let rate = self.congestion.pacing_rate(&self.rtt);
        self.pacer.set_rate(rate);
        self.pacer.set_quantum(self.congestion.send_quantum());
    }

    /// Subtracts bytes that are no longer in flight.
    pub(super) fn take_from_flight(&mut self, bytes: u64) {
        debug_assert!(
            self.bytes_in_flight >= bytes,
            "more acknowledged than in flight"
        );
        self.bytes_in_flight = self.bytes_in_flight.saturating_sub(bytes);
    }

    /// Counts an acknowledged packet for the delivery rate.
    #[inline]
    pub(super) fn on_packet_acked(&mut self, sent: &Sent<SentFrames>) {
        self.delivery.on_acked(
            u64::from(sent.size),
            sent.snapshot,
            sent.time,
            u64::from(sent.tx_in_flight),
        );
    }

    /// Counts a lost packet for the delivery rate and describes it for the controller.
    pub(super) fn on_packet_lost(&mut self, number: u64, sent: &Sent<SentFrames>) -> LostPacket {
        let bytes = u64::from(sent.size);
        let (lost_since_sent, is_app_limited) = self.delivery.on_lost(bytes, sent.snapshot);
        LostPacket {
            number,
            bytes,
            sent: sent.time,
            tx_in_flight: u64::from(sent.tx_in_flight),
            lost_since_sent,
            is_app_limited,
        }
    }

    /// Passes an acknowledgement to the controller.
    pub(super) fn on_ack(&mut self, now: Time, ack: &AckedOnPath) {
        self.congestion.on_ack(&AckSample {
            now,
            acked_bytes: ack.acked_bytes,
            largest_acked: ack.largest_acked,
            largest_acked_sent: ack.largest_acked_sent,
            earliest_acked_sent: ack.earliest_acked_sent,
            rtt: &self.rtt,
            rtt_sample: ack.rtt_sample,
            app_limited: self.app_limited,
            bytes_in_flight_before: ack.bytes_in_flight_before,
            bytes_in_flight: self.bytes_in_flight,
            lost_bytes: ack.lost_bytes,
            delivered: self.delivery.delivered(),
            rate: ack.rate,
            ecn_capable_packets: ack.ecn_capable_packets,
            ce_packets: ack.ce_packets,
        });
        self.set_pacing_rate();
    }

    /// Passes an ECN signal about the packet sent at `largest_sent` to the controller.
    pub(super) fn on_ecn_congestion(&mut self, now: Time, largest_sent: Time) {
        let bytes_in_flight = self.bytes_in_flight;
        self.congestion.on_congestion(&LossSample {
            now,
            lost_bytes: 0,
            largest_lost_sent: largest_sent,
            persistent: false,
            is_ecn: true,
            bytes_in_flight,
            packets: &[],
        });
    }

    /// Passes lost packets to the controller. Returns true if it lowered the window.
    pub(super) fn on_loss(&mut self, now: Time, packets: &[LostPacket], persistent: bool) -> bool {
        let lost_bytes = packets.iter().map(|packet| packet.bytes).sum();
        self.take_from_flight(lost_bytes);
        let before = self.congestion.window();
        let newest = packets.iter().map(|packet| packet.sent).max();
        self.congestion.on_congestion(&LossSample {
            now,
            lost_bytes,
            largest_lost_sent: newest.unwrap_or_default(),
            persistent,
            is_ecn: false,
            bytes_in_flight: self.bytes_in_flight,
            packets,
        });
        self.set_pacing_rate();
        self.congestion.window() < before
    }

    /// Passes a spurious loss to the controller. Returns true if it raised the window.
    pub(super) fn on_spurious_loss(&mut self, loss: &SpuriousLoss) -> bool {
        self.delivery.on_spurious_loss(loss.bytes);
        let before = self.congestion.window();
        self.congestion.on_spurious_loss(loss);
        self.set_pacing_rate();
        self.congestion.window() > before
    }

    /// Processes lost packets other than MTU probes: the path may no longer carry their size. `is_after_timeout`
    /// is true if their loss was detected after a probe timeout. Returns true if the path does not even carry the
    /// smallest datagrams of QUIC.
    pub(super) fn on_large_packets_lost(
        &mut self,
        now: Time,
        packets: &[LostPacket],
        is_after_timeout: bool,
    ) -> bool {
        let Some(largest) = packets.iter().max_by_key(|packet| packet.bytes) else {
            return false;
        };
        let size = u16::try_from(largest.bytes).unwrap_or(u16::MAX);
        let newest = packets.iter().map(|packet| packet.sent).max();
        if self
            .search
            .on_lost(now, size, newest.unwrap_or(largest.sent))
        {
            self.follow_search();
        } else if is_after_timeout {
            self.search.on_lost_before_timeout(size);
        }
        self.search.is_error()
    }

    /// Returns true while there is data to send and the window has not grown from a few datagrams to the capacity
    /// of the path yet.
    pub(super) fn is_hurried(&self, has_stream_data: bool) -> bool {
        let few = self.congestion.window() < HURRIED_WINDOW;
        few && self.congestion.in_slow_start() && has_stream_data
    }

    /// Returns true while an MTU probe waits for data in flight to be acknowledged. Only if it
    /// is a small part of the window, so that the pause is a small part of a round trip. Bytes that the
    /// controller withholds itself, in recovery, do not count: acknowledgements might never free them.
    pub(super) fn makes_room_for_probe(&self, has_stream_data: bool) -> bool {
        let awaited = self.search.awaited_room();
        let window = self.congestion.window();
        let is_small = 4 * awaited <= window;
        let is_missing = awaited > window.saturating_sub(self.bytes_in_flight);
        is_missing && is_small && !self.is_hurried(has_stream_data)
    }
}

/// The acknowledgement of packets of one path, for its controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckedOnPath {
    pub(super) acked_bytes: u64,
    pub(super) largest_acked: u64,
    pub(super) largest_acked_sent: Time,
    pub(super) earliest_acked_sent: Time,
    pub(super) rtt_sample: Option<Duration>,
    pub(super) bytes_in_flight_before: u64,
    pub(super) lost_bytes: u64,
    pub(super) rate: Option<courser_recovery::RateSample>,
    pub(super) ecn_capable_packets: u64,
    pub(super) ce_packets: u64,
}

/// Returns the seed of a controller's random numbers. It need not be secret, only different for each path.
fn seed(now: Time, key: PathKey) -> u64 {
    now.as_nanos() ^ u64::from(key) << 48
}

/// Bytes of a window, 32 datagrams of 1200,below which data in slow start is sent before
/// probes. A probe would also slow the growth of the next rounds: each of the ten datagrams of an initial
/// window costs a transfer a tenth of a round trip, whereas datagrams that are larger by a fifth save two
/// percent of the bytes.
const HURRIED_WINDOW: u64 = 32 * 1200;
