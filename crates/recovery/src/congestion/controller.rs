//! The trait of congestion controllers.

use std::fmt;

use courser_base::{Ecn, Rate, Time};

use super::sample::{AckSample, LossSample, SpuriousLoss};
use crate::rtt::RttEstimator;

/// A congestion controller of one path.
///
/// Methods are called once per batch, acknowledgement or loss event, never per packet.
///
/// ```
/// use courser_base::{Rate, Time};
/// use courser_recovery::{AckSample, Controller, LossSample, RttEstimator, minimum_window};
///
/// /// Grows by a datagram per window and halves on loss, without slow start.
/// #[derive(Debug)]
/// struct Careful {
///     window: u64,
///     mtu: u16,
/// }
///
/// impl Controller for Careful {
///     fn on_sent(&mut self, _: Time, _: u64, _: u64, _: u64) {}
///     fn on_ack(&mut self, sample: &AckSample<'_>) {
///         if !sample.app_limited {
///             // One datagram for each window (RFC 9002 §7.3.3).
///             self.window += u64::from(self.mtu) * sample.acked_bytes / self.window;
///         }
///     }
///     fn on_congestion(&mut self, _: &LossSample<'_>) {
///         self.window = (self.window / 2).max(minimum_window(self.mtu));
///     }
///     fn on_mtu_update(&mut self, mtu: u16) {
///         self.mtu = mtu;
///     }
///     fn window(&self) -> u64 {
///         self.window
///     }
///     fn ssthresh(&self) -> Option<u64> {
///         None
///     }
///     fn pacing_rate(&self, _: &RttEstimator) -> Option<Rate> {
///         None
///     }
///     fn in_slow_start(&self) -> bool {
///         false
///     }
///     fn name(&self) -> &'static str {
///         "careful"
///     }
/// }
/// ```
///
/// Methods are called while the lock of the endpoint is held. Using the endpoint or its connections
/// in a method panics, which ends the connection. No lock is held when a controller is dropped.
pub trait Controller: Send + fmt::Debug {
    /// Records that `bytes` were sent, up to packet number `last_pn`. They are included in
    /// `bytes_in_flight`.
    fn on_sent(&mut self, now: Time, bytes: u64, last_pn: u64, bytes_in_flight: u64);
    /// Processes newly acknowledged packets.
    fn on_ack(&mut self, sample: &AckSample<'_>);
    /// Processes lost or marked packets. Call it before [`on_ack`](Self::on_ack) for the
    /// acknowledgement that revealed them.
    fn on_congestion(&mut self, sample: &LossSample<'_>);
    /// Processes a loss that turned out to be spurious. Call it before [`on_ack`](Self::on_ack) for
    /// the acknowledgement that revealed it.
    fn on_spurious_loss(&mut self, _loss: &SpuriousLoss) {}
    /// Sets the datagram size of the path, in bytes.
    fn on_mtu_update(&mut self, mtu: u16);
    /// Returns the congestion window: the bytes that may be in flight.
    fn window(&self) -> u64;
    /// Returns the bytes that may be sent now. This is the window less the bytes in flight, except
    /// for controllers that count sent bytes during recovery (RFC 9937).
    fn room(&self, bytes_in_flight: u64) -> u64 {
        self.window().saturating_sub(bytes_in_flight)
    }
    /// Returns the slow start threshold; `None` while it is infinite.
    fn ssthresh(&self) -> Option<u64>;
    /// Returns the pacing rate; `None` leaves it to the pacer.
    fn pacing_rate(&self, rtt: &RttEstimator) -> Option<Rate>;
    /// Returns the bytes to send in one batch when pacing; `None` leaves the choice to the pacer.
    fn send_quantum(&self) -> Option<u64> {
        None
    }
    /// Returns the codepoint of sent packets where ECN works.
    fn ecn_codepoint(&self) -> Ecn {
        Ecn::Ect0
    }
    /// Returns true while the window grows exponentially.
    fn in_slow_start(&self) -> bool;
    /// Returns the name of the present state for telemetry: `slow_start`, `recovery`, ...
    fn state(&self) -> &'static str {
        if self.in_slow_start() {
            "slow_start"
        } else {
            "congestion_avoidance"
        }
    }
    /// Returns the name of the controller, for telemetry and configuration.
    fn name(&self) -> &'static str;
}

/// Creates custom controllers, one for each path.
pub trait ControllerFactory: Send + Sync + fmt::Debug {
    /// Creates a controller for a path with datagrams of `mtu` bytes. It should derive random
    /// numbers from `seed`.
    fn make(&self, mtu: u16, seed: u64) -> Box<dyn Controller>;
}
