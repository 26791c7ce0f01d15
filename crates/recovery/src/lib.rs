//! Loss detection, congestion control and pacing: numbers in, decisions out.
//!
//! The crate has no notion of frames, keys or sockets. A packet is a number, a size, a time and a
//! payload of the caller, which is handed back when the packet is acknowledged or lost:
//!
//! - [`SentPackets`] records the packets in flight of one packet number space,
//! - [`RttEstimator`] (RFC 9002 §5) and [`LossDetector`] (§6.1) process acknowledgements,
//! - [`Pto`] (§6.2) and [`LossTimer`] limit the time to wait for an acknowledgement,
//! - [`DeliveryRate`] measures the rate at which the network delivers,
//! - [`CongestionController`] (§7, RFC 9438, RFC 9406, BBR, Prague) and [`PersistentCongestion`]
//!   (§7.6) determine the window, and RFC 9937 limits sending during recovery,
//! - [`Pacer`] (§7.7) spreads the window over a round trip,
//! - [`MtuSearch`] (RFC 8899) finds the largest datagram that a path carries,
//! - [`EcnValidation`] (RFC 9000 §13.4.2) checks that ECN marks survive the path,
//! - [`PathSupport`] finds out whether a path drops packets that use an optional feature,
//! - [`PathScheduler`] (RFC 10069 §5.2) chooses among several paths.
//!
//! Controllers are called once per acknowledgement, never per packet.

mod ack_only;
pub mod congestion;
mod delivery_rate;
mod ecn_validation;
mod loss;
mod loss_timer;
mod lost_packets;
mod mtu_search;
mod pacer;
mod path_support;
mod persistent_congestion;
mod pto;
mod rtt;
mod scheduler;
mod sent;
mod sent_packets;

pub use ack_only::{AckOnlyPackets, MAX_ACK_ONLY};
pub use congestion::{
    AckSample, Algorithm, Bbr, CarefulResume, CongestionController, Controller, ControllerFactory,
    Cubic, LossSample, LostPacket, NewReno, Prague, SavedPath, SpuriousLoss, UnknownAlgorithm,
    initial_window, minimum_window,
};
pub use delivery_rate::{DeliveryRate, RateSample};
pub use ecn_validation::{EcnOutcome, EcnState, EcnValidation};
pub use loss::{LossDetector, LossThresholds, LossTrigger, MAX_PACKET_THRESHOLD, PACKET_THRESHOLD};
pub use loss_timer::{LossTimer, LossTimerInputs, SpaceTimes};
pub use lost_packets::{Lost, LostPackets};
pub use mtu_search::{BASE_MTU, MAX_PROBES, MtuSearch, MtuSearchPace, PMTU_RAISE_TIMER};
pub use pacer::Pacer;
pub use path_support::{FeatureLoss, PathSupport, Support};
pub use persistent_congestion::PersistentCongestion;
pub use pto::Pto;
pub use rtt::{INITIAL_RTT, RttEstimator, TIMER_GRANULARITY};
pub use scheduler::{
    Earliest, Fastest, PathChoice, PathDemand, PathSchedule, PathScheduler, PathSchedulerFactory,
    PathView,
};
pub use sent::Sent;
pub use sent_packets::{MAX_SENT_PACKETS, SentPackets, Walk};
