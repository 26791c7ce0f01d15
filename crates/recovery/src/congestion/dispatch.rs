//! All controllers as one type.

use std::time::Duration;

use courser_base::foreign::Foreign;
use courser_base::{Ecn, Rate, Time};

use super::algorithm::{Algorithm, controllers};
use super::bbr::Bbr;
use super::builtin::Builtin;
use super::careful_resume::{CarefulResume, SavedPath};
use super::controller::Controller;
use super::cubic::Cubic;
use super::new_reno::NewReno;
use super::prague::Prague;
use super::sample::{AckSample, LossSample, SpuriousLoss};
use super::takeover::Takeover;
use crate::rtt::RttEstimator;

macro_rules! congestion_controller {
    ([] $(
        $(#[$default:ident])?
        $variant:ident($controller:ty) = $name:literal, [$($other_name:literal),*], $about:literal;
    )*) => {
        /// A controller of the crate or a custom one.
        #[derive(Debug)]
        pub enum CongestionController {
            $(
                #[doc = $about]
                $variant($controller),
            )*
            /// Starts from the measurements of an earlier connection (RFC 9959). BBR does so
            /// without this wrapper.
            Careful(Box<CarefulResume>),
            /// A controller of the application, called through dynamic dispatch.
            Custom(Foreign<Box<dyn Controller>>),
        }

        impl CongestionController {
            /// Creates a controller for a path with datagrams of `mtu` bytes. It derives random
            /// numbers from `seed`.
            pub fn new(algorithm: Algorithm, mtu: u16, seed: u64) -> Self {
                match algorithm {
                    $(Algorithm::$variant => Self::$variant(Builtin::start(mtu, seed)),)*
                }
            }

            fn take_over(algorithm: Algorithm, previous: &Takeover<'_>, seed: u64) -> Self {
                match algorithm {
                    $(Algorithm::$variant => Self::$variant(Builtin::take_over(previous, seed)),)*
                }
            }

            /// Returns the algorithm; `None` for a custom controller.
            pub fn algorithm(&self) -> Option<Algorithm> {
                match self {
                    $(Self::$variant(_) => Some(Algorithm::$variant),)*
                    Self::Careful(careful) => Some(careful.algorithm()),
                    Self::Custom(_) => None,
                }
            }
        }
    };
}

controllers!(congestion_controller[]);

/// Evaluates an expression for a controller of the table, and others for `Careful` and `Custom`.
macro_rules! by_kind {
    ($self:ident, $builtin:ident => $call:expr, $($others:tt)*) => {
        controllers!(match_kinds[$self, $builtin => $call, $($others)*])
    };
}

macro_rules! match_kinds {
    ([$self:ident, $builtin:ident => $call:expr, $($others:tt)*] $(
        $(#[$default:ident])?
        $variant:ident($controller:ty) = $name:literal, [$($other_name:literal),*], $about:literal;
    )*) => {
        match $self {
            $(CongestionController::$variant($builtin) => $call,)*
            $($others)*
        }
    };
}

impl CongestionController {
    /// Wraps a custom controller.
    pub fn custom(controller: Box<dyn Controller>) -> Self {
        Self::Custom(Foreign::new(controller))
    }

    /// Creates a controller like [`new`](Self::new), but with a window of `window` bytes instead of the initial one
    /// of RFC 9002 §7.2. Slow start begins there. The minimum window of the algorithm applies.
    pub fn with_window(algorithm: Algorithm, mtu: u16, seed: u64, window: u64) -> Self {
        let unsampled = RttEstimator::new(Duration::ZERO);
        let start = Takeover {
            mtu,
            window,
            ssthresh: None,
            rtt: &unsampled,
            now: Time::ZERO,
        };
        Self::take_over(algorithm, &start, seed)
    }

    /// Switches to another algorithm in the middle of a connection.
    ///
    /// The new controller keeps the window, does not return to slow start, and sends no burst. BBR
    /// assumes that the path delivers a window per round trip until it has measured the rate.
    /// Switching to the present algorithm has no effect.
    ///
    /// `rtt` is the estimator of the path. `seed` is used as by [`new`](Self::new).
    pub fn switch(
        &mut self,
        algorithm: Algorithm,
        mtu: u16,
        seed: u64,
        rtt: &RttEstimator,
        now: Time,
    ) {
        if self.algorithm() == Some(algorithm) {
            return;
        }
        let window = self.window();
        let previous = Takeover {
            mtu,
            window,
            ssthresh: (!self.in_slow_start()).then_some(window),
            rtt,
            now,
        };
        *self = Self::take_over(algorithm, &previous, seed);
    }

    /// Starts from the properties of the path that an earlier connection has observed (RFC 9959).
    /// Call it before the first packet is sent. Custom controllers ignore it.
    pub fn start_carefully(&mut self, mtu: u16, saved: SavedPath) {
        let Some(algorithm) = self.algorithm() else {
            return;
        };
        let careful = by_kind!(self, controller => Builtin::start_carefully(controller, algorithm, mtu, saved),
            Self::Careful(_) | Self::Custom(_) => None,
        );
        if let Some(careful) = careful {
            *self = Self::Careful(Box::new(careful));
        }
    }

    /// Makes the controller stay in congestion avoidance when the capacity of the path has risen
    /// since the last congestion event, as in RFC 9438 and RFC 9002 §7. By default, NewReno and
    /// CUBIC search for a larger window.
    pub fn ignore_capacity_rise(&mut self) {
        by_kind!(self, controller => Builtin::ignore_capacity_rise(controller),
            Self::Careful(careful) => careful.inner().ignore_capacity_rise(),
            Self::Custom(_) => {}
        );
    }
}

/// Calls the same method of any controller, without dynamic dispatch for those of the crate.
macro_rules! each {
    ($self:ident, $controller:ident => $call:expr) => {
        by_kind!($self, $controller => $call,
            Self::Careful($controller) => $call,
            Self::Custom($controller) => $call,
        )
    };
}

impl Controller for CongestionController {
    fn on_sent(&mut self, now: Time, bytes: u64, last_pn: u64, bytes_in_flight: u64) {
        each!(self, controller => controller.on_sent(now, bytes, last_pn, bytes_in_flight));
    }

    fn on_ack(&mut self, sample: &AckSample<'_>) {
        each!(self, controller => controller.on_ack(sample));
    }

    fn on_congestion(&mut self, sample: &LossSample<'_>) {
        each!(self, controller => controller.on_congestion(sample));
    }

    fn on_spurious_loss(&mut self, loss: &SpuriousLoss) {
        each!(self, controller => controller.on_spurious_loss(loss));
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        each!(self, controller => controller.on_mtu_update(mtu));
    }

    fn window(&self) -> u64 {
        each!(self, controller => controller.window())
    }

    fn room(&self, bytes_in_flight: u64) -> u64 {
        each!(self, controller => controller.room(bytes_in_flight))
    }

    fn send_quantum(&self) -> Option<u64> {
        each!(self, controller => controller.send_quantum())
    }

    fn ecn_codepoint(&self) -> Ecn {
        each!(self, controller => controller.ecn_codepoint())
    }

    fn state(&self) -> &'static str {
        each!(self, controller => controller.state())
    }

    fn ssthresh(&self) -> Option<u64> {
        each!(self, controller => controller.ssthresh())
    }

    fn pacing_rate(&self, rtt: &RttEstimator) -> Option<Rate> {
        each!(self, controller => controller.pacing_rate(rtt))
    }

    fn in_slow_start(&self) -> bool {
        each!(self, controller => controller.in_slow_start())
    }

    fn name(&self) -> &'static str {
        each!(self, controller => controller.name())
    }
}
