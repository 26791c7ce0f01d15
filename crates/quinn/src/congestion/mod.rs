//! Congestion controllers.

mod adapter;
mod builtin;
mod choice;

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) use self::adapter::custom;
pub(crate) use self::builtin::Snapshot;
pub use self::builtin::{BbrConfig, CubicConfig, NewRenoConfig};
#[doc(hidden)]
pub use self::choice::Builtin;

/// A congestion controller. Programs may implement their own.
///
/// courser reports the packets of one ACK frame together: `on_ack` is called once for it, with their bytes.
pub trait Controller: Send + Sync {
    /// Records that a packet was sent.
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        let _ = (now, bytes, last_packet_number);
    }

    /// Records that packets were acknowledged, the newest of which was sent at `sent`.
    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let _ = (now, sent, bytes, app_limited, rtt);
    }

    /// Records that an ACK frame was processed.
    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        let _ = (now, in_flight, app_limited, largest_packet_num_acked);
    }

    /// Records that packets were lost, or marked by the network (no lost bytes). The newest was sent at `sent`.
    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    );

    /// Notes the size of datagrams.
    fn on_mtu_update(&mut self, new_mtu: u16);

    /// Returns the bytes that may be in flight.
    fn window(&self) -> u64;

    /// Returns figures for records.
    fn metrics(&self) -> ControllerMetrics {
        ControllerMetrics {
            congestion_window: self.window(),
            ..ControllerMetrics::default()
        }
    }

    /// Returns a copy of the controller.
    fn clone_box(&self) -> Box<dyn Controller>;

    /// Returns the window at the start of a path.
    fn initial_window(&self) -> u64;

    /// Returns the controller for a conversion to its type.
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// Figures of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ControllerMetrics {
    /// The congestion window in bytes.
    pub congestion_window: u64,
    /// The slow start threshold in bytes.
    pub ssthresh: Option<u64>,
    /// The pacing rate in bits per second.
    pub pacing_rate: Option<u64>,
}

/// Makes a controller for each path.
pub trait ControllerFactory {
    /// Makes a controller for datagrams of this size.
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller>;

    /// Returns the controller of courser that is used instead of [`build`](Self::build).
    #[doc(hidden)]
    fn builtin(&self) -> Option<Builtin> {
        None
    }
}

/// The round-trip time of a path. RFC 9002 §5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RttEstimator {
    latest: Duration,
    smoothed: Duration,
    min: Duration,
}

impl RttEstimator {
    /// Returns the smoothed round-trip time.
    pub fn get(&self) -> Duration {
        self.smoothed
    }

    /// Returns the larger of the smoothed and the latest round-trip time.
    pub fn conservative(&self) -> Duration {
        self.smoothed.max(self.latest)
    }

    /// Returns the smallest round-trip time.
    pub fn min(&self) -> Duration {
        self.min
    }
}

impl fmt::Debug for dyn Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("window", &self.window())
            .finish_non_exhaustive()
    }
}
