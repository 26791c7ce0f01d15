//! The controllers of courser.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use courser_quic::{Algorithm, PathStats};

use super::choice::Builtin;
use super::{Controller, ControllerFactory, ControllerMetrics};
use crate::unsupported::note;

macro_rules! config {
    ($name:ident, $algorithm:ident, $default:literal, $text:literal, $($field:ident: $value:literal)*) => {
        #[doc = $text]
        #[derive(Clone)]
        pub struct $name {
            initial_window: Option<u64>,
            $($field: f32,)*
        }

        impl $name {
            /// Sets the first congestion window in bytes, 2400 to 2^30. By default it is that of RFC 9002 §7.2.
            pub fn initial_window(&mut self, value: u64) -> &mut Self {
                self.initial_window = Some(value);
                self
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    initial_window: None,
                    $($field: $value,)*
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("initial_window", &self.initial_window.unwrap_or($default))
                    $(.field(stringify!($field), &self.$field))*
                    .finish()
            }
        }

        impl ControllerFactory for $name {
            /// Returns a snapshot of the controller at its start, which courser does not use.
            fn build(self: Arc<Self>, _: Instant, current_mtu: u16) -> Box<dyn Controller> {
                Box::new(Snapshot::at_start(current_mtu, self.initial_window))
            }

            fn builtin(&self) -> Option<Builtin> {
                Some(Builtin {
                    algorithm: Algorithm::$algorithm,
                    initial_window: self.initial_window,
                })
            }
        }
    };
}

config!(
    CubicConfig,
    Cubic,
    12_000,
    "CUBIC (RFC 9438) with HyStart++.",
);
config!(NewRenoConfig, NewReno, 12_000, "NewReno (RFC 9002 §7).", loss_reduction_factor: 0.5);
config!(BbrConfig, Bbr, 12_000, "BBR, version 3.",);

impl NewRenoConfig {
    /// Has no effect: the factor is that of RFC 9002 §7.3.2.
    pub fn loss_reduction_factor(&mut self, value: f32) -> &mut Self {
        note("NewRenoConfig::loss_reduction_factor");
        self.loss_reduction_factor = value;
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
    fn at_start(mtu: u16, window: Option<u64>) -> Self {
        Self {
            metrics: ControllerMetrics {
                congestion_window: window.unwrap_or_else(|| initial_window(mtu)),
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
