//! The trait of congestion controllers.

use std::fmt;

use courser_base::{Ecn, Rate, Time};

use super::sample::{AckSample, LossSample, SpuriousLoss};
use crate::rtt::RttEstimator;

/// A congestion controller of one path. Called once per batch, acknowledgement or loss event,
/// never per packet.
pub trait Controller: Send + fmt::Debug {
    /// `bytes` were sent, up to packet number `last_pn`; `bytes_in_flight` counts them already.
    fn on_sent(&mut self, now: Time, bytes: u64, last_pn: u64, bytes_in_flight: u64);
    /// Packets were acknowledged.
    fn on_ack(&mut self, sample: &AckSample<'_>);
    /// Packets were lost or marked. To be told before the acknowledgement that showed it.
    fn on_congestion(&mut self, sample: &LossSample<'_>);
    /// A loss that was told of was none. To be told before the acknowledgement that showed it.
    fn on_spurious_loss(&mut self, _loss: &SpuriousLoss) {}
    /// Datagrams have another size from now on.
    fn on_mtu_update(&mut self, mtu: u16);
    /// Bytes that may be in flight.
    fn window(&self) -> u64;
    /// Bytes that may leave now with so many in flight. What is left of the window, but for a
    /// controller that counts what it sends during recovery (RFC 9937).
    fn room(&self, bytes_in_flight: u64) -> u64 {
        self.window().saturating_sub(bytes_in_flight)
    }
    /// The slow start threshold; `None` while it is still infinite.
    fn ssthresh(&self) -> Option<u64>;
    /// How fast to send; `None` leaves it to the pacer.
    fn pacing_rate(&self, rtt: &RttEstimator) -> Option<Rate>;
    /// Bytes to send in one go when pacing; `None` leaves it to the pacer.
    fn send_quantum(&self) -> Option<u64> {
        None
    }
    /// How packets are marked where ECN works.
    fn ecn_codepoint(&self) -> Ecn {
        Ecn::Ect0
    }
    /// True while the window grows exponentially.
    fn in_slow_start(&self) -> bool;
    /// The name of the state it is in, for records: `slow_start`, `recovery`, ...
    fn state(&self) -> &'static str {
        if self.in_slow_start() {
            "slow_start"
        } else {
            "congestion_avoidance"
        }
    }
    /// Its name, for records and configuration.
    fn name(&self) -> &'static str;
}

/// Makes controllers of the user's own, one for each path.
pub trait ControllerFactory: Send + Sync + fmt::Debug {
    /// A controller for a path with datagrams of `mtu` bytes. What it draws by lot should come
    /// from `seed`.
    fn make(&self, mtu: u16, seed: u64) -> Box<dyn Controller>;
}
