//! Congestion control: the controllers, their trait and its inputs.

mod ack_rate;
mod algorithm;
mod bbr;
mod builtin;
mod capacity_rise;
mod capacity_search;
mod careful_resume;
mod classic;
mod controller;
mod cubic;
mod dispatch;
mod hystart;
mod law;
mod new_reno;
mod prague;
mod prr;
mod recovery_period;
mod sample;
mod takeover;
mod undo;
mod utilization;
mod window;

pub use algorithm::{Algorithm, UnknownAlgorithm};
pub use bbr::Bbr;
pub use careful_resume::{CarefulResume, SavedPath};
pub use controller::{Controller, ControllerFactory};
pub use cubic::Cubic;
pub use dispatch::CongestionController;
pub use new_reno::NewReno;
pub use prague::Prague;
pub use sample::{AckSample, LossSample, LostPacket, SpuriousLoss};
pub(crate) use window::window_rate;
pub use window::{initial_window, minimum_window};

#[cfg(test)]
mod tests;
