//! Network paths: addresses, what was learned about them, whether the peer is really there.

pub mod amplification;
pub mod paths;
pub mod validation;

use std::time::Duration;

use courser_base::{FourTuple, Time};
use courser_recovery::{
    Algorithm, CongestionController, Controller, DeliveryRate, MtuSearch, Pacer,
    PersistentCongestion, RttEstimator,
};

use self::amplification::Amplification;
use self::validation::Validation;
use crate::config::TransportConfig;

/// Nothing useful fits into a smaller datagram: header, one small frame, tag.
pub const MIN_DATAGRAM: usize = 64;

/// One network path and everything that is true of it alone.
#[derive(Debug)]
pub struct Path {
    /// Addresses.
    pub tuple: FourTuple,
    /// Budget before the peer's address is proven.
    pub amplification: Amplification,
    /// Challenges out and responses owed.
    pub validation: Validation,
    /// Round-trip time.
    pub rtt: RttEstimator,
    /// Congestion controller.
    pub congestion: CongestionController,
    /// How fast the network delivers.
    pub delivery: DeliveryRate,
    /// Spreads batches over the round trip.
    pub pacer: Pacer,
    /// Lost stretches long enough to forget the window.
    pub persistent: PersistentCongestion,
    /// Bytes sent and neither acknowledged nor lost.
    pub bytes_in_flight: u64,
    /// UDP payload of full datagrams: what the search has found.
    pub mtu: u16,
    /// Looks for larger datagrams.
    pub search: MtuSearch,
    /// Packets that a router has refused, or would have.
    pub refused: Refused,
    /// Sent packets carry this number: those of another path say nothing of this one
    /// (RFC 9000 §9.4).
    pub id: u32,
    /// The window was not filled because there was nothing to send.
    pub app_limited: bool,
    /// Sequence number of the ID of the peer that probes of this path carry, while another path
    /// is in use (RFC 9000 §9.5).
    pub peer_id: Option<u64>,
}

impl Path {
    /// A path nothing is known about.
    pub fn new(now: Time, tuple: FourTuple, config: &TransportConfig, id: u32) -> Self {
        let seed = lot(now, id);
        Self {
            tuple,
            amplification: Amplification::default(),
            validation: Validation::default(),
            rtt: RttEstimator::new(config.initial_rtt),
            congestion: config.new_controller(config.mtu, seed),
            delivery: DeliveryRate::new(),
            pacer: Pacer::new(now, config.mtu),
            persistent: PersistentCongestion::new(),
            bytes_in_flight: 0,
            mtu: config.mtu,
            search: config.mtu_search(),
            refused: Refused::default(),
            id,
            app_limited: false,
            peer_id: None,
        }
    }

    /// Goes on with another congestion controller.
    pub fn switch_controller(&mut self, now: Time, algorithm: Algorithm) {
        let seed = lot(now, self.id);
        self.congestion
            .switch(algorithm, self.mtu, seed, &self.rtt, now);
        self.set_pacing_rate();
    }

    /// Bytes that congestion control lets out now.
    pub fn congestion_room(&self) -> u64 {
        self.congestion.room(self.bytes_in_flight)
    }

    /// The peer takes no larger datagrams than this.
    pub fn set_peer_limit(&mut self, size: u16) {
        self.search.set_peer_limit(size);
        self.follow_search();
    }

    /// Makes the size that the search has found the size of datagrams.
    pub fn follow_search(&mut self) {
        let mtu = self.search.mtu();
        if mtu != self.mtu {
            self.mtu = mtu;
            self.congestion.on_mtu_update(mtu);
            self.set_pacing_rate();
        }
    }

    /// Packets with `bytes` that count as in flight left, up to packet `last_number`.
    pub fn on_batch_sent(&mut self, now: Time, bytes: u64, last_number: u64) {
        let was_idle = self.bytes_in_flight <= bytes;
        self.congestion
            .on_sent(now, bytes, last_number, self.bytes_in_flight);
        if was_idle {
            // The end of idleness may be a reason for another rate (BBR).
            self.set_pacing_rate();
        }
        self.pacer.on_sent(bytes);
        self.app_limited = false;
    }

    /// Tells the pacer what the controller thinks by now.
    pub fn set_pacing_rate(&mut self) {
        let rate = self.congestion.pacing_rate(&self.rtt);
        self.pacer.set_rate(rate);
        self.pacer.set_quantum(self.congestion.send_quantum());
    }

    /// Probe timeout without back-off, for spans of time that count in it (RFC 9000 §8.2.4, §10.2).
    pub fn pto(&self, max_ack_delay: Duration) -> Duration {
        self.rtt.pto_base().saturating_add(max_ack_delay)
    }

    /// A datagram of this size left.
    pub fn on_datagram_sent(&mut self, len: usize) {
        self.amplification.on_sent(len);
    }
}

/// Packets above a size that were sent before a router said that they do not fit: their loss says
/// nothing about congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Refused {
    /// Only packets with smaller numbers.
    before: u64,
    /// Only larger ones.
    above: u16,
}

impl Refused {
    /// Packets of more than `above` bytes with numbers smaller than `before` will not arrive.
    pub fn new(before: u64, above: u16) -> Self {
        Self { before, above }
    }

    /// True for a packet that will not arrive.
    pub fn contains(self, number: u64, size: u16) -> bool {
        number < self.before && size > self.above
    }
}

/// Where a controller's draws come from: they need not be secret, only different.
fn lot(now: Time, id: u32) -> u64 {
    now.as_nanos() ^ u64::from(id) << 48
}
