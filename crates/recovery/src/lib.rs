//! Loss detection, congestion control and pacing: numbers in, decisions out.
//!
//! Nothing in here knows a frame, a key or a socket. A packet is a number, a size, a time and a
//! payload of the caller's that comes back when the packet's fate is known:
//!
//! - [`SentPackets`] remembers what is in flight, one per packet number space,
//! - [`RttEstimator`] (RFC 9002 §5) and [`LossDetector`] (§6.1) judge acknowledgements,
//! - [`Pto`] (§6.2) and [`LossTimer`] say when to stop waiting for one,
//! - [`DeliveryRate`] measures how fast the network delivers,
//! - [`CongestionController`] (§7, RFC 9438, RFC 9406, BBR, Prague) and [`PersistentCongestion`]
//!   (§7.6) set the window, [`Pacer`] (§7.7) spreads it over time; RFC 9937 says what leaves
//!   during recovery,
//! - [`MtuSearch`] (RFC 8899) finds the largest datagram that a path carries,
//! - [`EcnValidation`] (RFC 9000 §13.4.2) tells whether ECN marks can be believed.
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
mod persistent_congestion;
mod pto;
mod rtt;
mod sent;
mod sent_packets;

pub use ack_only::{AckOnlyPackets, MAX_ACK_ONLY};
pub use congestion::{
    AckSample, Algorithm, Bbr, CongestionController, Controller, ControllerFactory, Cubic,
    LossSample, LostPacket, NewReno, Prague, SpuriousLoss, UnknownAlgorithm, initial_window,
    minimum_window,
};
pub use delivery_rate::{DeliveryRate, RateSample};
pub use ecn_validation::{EcnOutcome, EcnState, EcnValidation};
pub use loss::{LossDetector, LossTrigger, MAX_PACKET_THRESHOLD, PACKET_THRESHOLD};
pub use loss_timer::{LossTimer, LossTimerInputs, SpaceTimes};
pub use lost_packets::{Lost, LostPackets};
pub use mtu_search::{BASE_MTU, MAX_PROBES, MtuSearch, PMTU_RAISE_TIMER};
pub use pacer::Pacer;
pub use persistent_congestion::PersistentCongestion;
pub use pto::Pto;
pub use rtt::{INITIAL_RTT, RttEstimator, TIMER_GRANULARITY};
pub use sent::Sent;
pub use sent_packets::{MAX_SENT_PACKETS, SentPackets, Walk};
