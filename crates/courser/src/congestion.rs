//! Custom congestion controllers.
//!
//! A program implements [`Controller`] and [`ControllerFactory`], and sets the factory in
//! [`TransportConfig::controller_factory`](crate::TransportConfig::controller_factory). Controllers of courser are
//! selected with [`Algorithm`](crate::Algorithm). `examples/custom_controller.rs` is a complete one.
//!
//! ```
//! use std::sync::Arc;
//!
//! use courser::TransportConfig;
//! use courser::congestion::{Controller, ControllerFactory, Cubic, NewReno};
//!
//! /// NewReno on paths with small datagrams, CUBIC on others.
//! #[derive(Debug)]
//! struct BySize;
//!
//! impl ControllerFactory for BySize {
//!     fn make(&self, mtu: u16, _seed: u64) -> Box<dyn Controller> {
//!         if mtu < 1300 {
//!             Box::new(NewReno::new(mtu))
//!         } else {
//!             Box::new(Cubic::new(mtu))
//!         }
//!     }
//! }
//!
//! let transport = TransportConfig {
//!     controller_factory: Some(Arc::new(BySize)),
//!     ..TransportConfig::default()
//! };
//! # let _ = transport;
//! ```

pub use courser_base::{Ecn, Time};
pub use courser_recovery::{
    AckSample, Bbr, Controller, ControllerFactory, Cubic, LossSample, LostPacket, NewReno, Prague,
    RateSample, RttEstimator, SpuriousLoss, initial_window, minimum_window,
};
