//! The controllers of courser.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use courser_quic::{Algorithm, PathStats};

use super::{Controller, ControllerFactory, ControllerMetrics};
use crate::unsupported::note;

macro_rules! config {
    ($name:ident, $algorithm:ident, $text:literal) => {
        #[doc = $text]
        #[derive(Clone, Debug, Default)]
        pub struct $name {
            _private: (),
        }

        impl $name {
            /// Has no effect: the initial window is that of RFC 9002 §7.2.
            pub fn initial_window(&mut self, _value: u64) -> &mut Self {
                note(concat!(stringify!($name), "::initial_window"));
                self
            }
        }

        impl ControllerFactory for $name {
            /// Returns a snapshot of the controller at its start, which courser does not use.
            fn build(self: Arc<Self>, _: Instant, current_mtu: u16) -> Box<dyn Controller> {
                Box::new(Snapshot::at_start(current_mtu))
            }

            fn algorithm(&self) -> Option<Algorithm> {
                Some(Algorithm::$algorithm)
            }
        }
    };
}

config!(CubicConfig, Cubic, "CUBIC (RFC 9438) with HyStart++.");
config!(NewRenoConfig, NewReno, "NewReno (RFC 9002 §7).");
config!(BbrConfig, Bbr, "BBR, version 3.");

impl NewRenoConfig {
    /// Has no effect: the factor is that of RFC 9002 §7.3.2.
    pub fn loss_reduction_factor(&mut self, _value: f32) -> &mut Self {
        note("NewRenoConfig::loss_reduction_factor");
        self
    }
}

/// A snapshot of a controller of courser.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    metrics: ControllerMetrics,
    mtu: u16,
}

impl Snapshot {
    fn at_start(mtu: u16) -> Self {
        Self {
            metrics: ControllerMetrics {
                congestion_window: initial_window(mtu),
                ..ControllerMetrics::default()
            },
            mtu,
        }
    }

    /// Takes a snapshot of the controller of a path.
    pub(crate) fn of(path: &PathStats) -> Self {
        Self {
            metrics: ControllerMetrics {
                congestion_window: path.congestion_window,
                ssthresh: path.ssthresh,
                pacing_rate: path
                    .pacing_rate
                    .map(|rate| rate.as_bytes_per_second().saturating_mul(8)),
            },
            mtu: path.mtu,
        }
    }
}

/// Returns the window at the start of a path. RFC 9002 §7.2.
fn initial_window(mtu: u16) -> u64 {
    let mtu = u64::from(mtu);
    (10 * mtu).min(14_720.max(2 * mtu))
}

impl Controller for Snapshot {
    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: u64) {}

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu;
    }

    fn window(&self) -> u64 {
        self.metrics.congestion_window
    }

    fn metrics(&self) -> ControllerMetrics {
        self.metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        initial_window(self.mtu)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
