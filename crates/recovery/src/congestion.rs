//! Congestion control: the trait, the controllers that come with it, and what they are told.

mod ack_rate;
mod bbr;
mod capacity_rise;
mod cubic;
mod hystart;
mod new_reno;
mod prague;
mod prr;
mod recovery_period;
mod undo;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use courser_base::{Ecn, Rate, Time};

use crate::{RateSample, RttEstimator};

pub use bbr::Bbr;
pub use cubic::Cubic;
pub use new_reno::NewReno;
pub use prague::Prague;

/// One acknowledgement, all packets that it newly acknowledged taken together.
///
/// Only packets that were in flight on the controller's path count.
#[derive(Clone, Copy, Debug)]
pub struct AckSample<'a> {
    /// When the ACK arrived.
    pub now: Time,
    /// Bytes newly acknowledged.
    pub acked_bytes: u64,
    /// The largest number newly acknowledged.
    pub largest_acked: u64,
    /// When that packet was sent.
    pub largest_acked_sent: Time,
    /// When the oldest of the packets newly acknowledged was sent.
    pub earliest_acked_sent: Time,
    /// The path's estimator, this ACK's sample included.
    pub rtt: &'a RttEstimator,
    /// The sample that this ACK gave, if it gave one.
    pub rtt_sample: Option<Duration>,
    /// The window was not used up when the packets left, for want of data or flow control
    /// credit. Waiting for the pacer is no such want. RFC 9002 §7.8.
    pub app_limited: bool,
    /// Bytes in flight before this ACK.
    pub bytes_in_flight_before: u64,
    /// Bytes in flight after this ACK and the losses that it showed.
    pub bytes_in_flight: u64,
    /// Bytes that this ACK showed to be lost.
    pub lost_bytes: u64,
    /// Bytes ever delivered on the path, this ACK included.
    pub delivered: u64,
    /// How fast the network has delivered the newest of these packets.
    pub rate: Option<RateSample>,
    /// How many of the packets left marked as ECN-capable.
    pub ecn_capable_packets: u64,
    /// CE marks that this ACK reported for the first time.
    pub ce_packets: u64,
}

/// A sign of congestion: packets lost, or marked on the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LossSample<'a> {
    /// When it was noticed.
    pub now: Time,
    /// Bytes lost; zero for marks.
    pub lost_bytes: u64,
    /// When the newest lost packet was sent; for marks, the largest newly acknowledged one.
    pub largest_lost_sent: Time,
    /// Persistent congestion is established, RFC 9002 §7.6.
    pub persistent: bool,
    /// The sign was a raised CE count.
    pub is_ecn: bool,
    /// Bytes in flight without the lost ones.
    pub bytes_in_flight: u64,
    /// The lost packets in the order of their numbers; none for marks.
    pub packets: &'a [LostPacket],
}

/// A packet that counts as lost, and what the path was like when it left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostPacket {
    /// Its number.
    pub number: u64,
    /// Its size.
    pub bytes: u64,
    /// When it was sent.
    pub sent: Time,
    /// Bytes in flight when it had just been sent, itself included.
    pub tx_in_flight: u64,
    /// Bytes lost on the path since it was sent, itself included.
    pub lost_since_sent: u64,
    /// It was sent while the application had less to send than the window allowed.
    pub is_app_limited: bool,
}

/// A packet that counted as lost has been acknowledged: it was only late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpuriousLoss {
    /// When the acknowledgement arrived.
    pub now: Time,
    /// Its size.
    pub bytes: u64,
    /// When it was sent.
    pub sent: Time,
    /// When it was declared lost.
    pub lost_at: Time,
}

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

/// The controllers that come with the crate, and a door for others.
#[derive(Debug)]
pub enum CongestionController {
    /// RFC 9002 appendix B.
    NewReno(NewReno),
    /// RFC 9438.
    Cubic(Cubic),
    /// draft-briscoe-iccrg-prague-congestion-control.
    Prague(Prague),
    /// draft-ietf-ccwg-bbr. Its model would make the others large.
    Bbr(Box<Bbr>),
    /// The user's own.
    Custom(Box<dyn Controller>),
}

impl CongestionController {
    /// A controller for a path with datagrams of `mtu` bytes. What it draws by lot comes from
    /// `seed`.
    pub fn new(algorithm: Algorithm, mtu: u16, seed: u64) -> Self {
        match algorithm {
            Algorithm::NewReno => Self::NewReno(NewReno::new(mtu)),
            Algorithm::Cubic => Self::Cubic(Cubic::new(mtu)),
            Algorithm::Prague => Self::Prague(Prague::new(mtu)),
            Algorithm::Bbr => Self::Bbr(Box::new(Bbr::new(mtu, seed))),
        }
    }

    /// Goes on with another algorithm, in the middle of a connection: with the window as it is,
    /// past slow start if that is over, and without a burst. BBR takes a window per round trip
    /// for the rate of the path until it has measured. Nothing changes if it is the same one.
    ///
    /// `rtt` is the path's estimator; `seed` as for [`new`](Self::new).
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
        let ssthresh = previous.ssthresh;
        *self = match algorithm {
            Algorithm::NewReno => Self::NewReno(NewReno::resume(mtu, window, ssthresh)),
            Algorithm::Cubic => Self::Cubic(Cubic::resume(mtu, window, ssthresh)),
            Algorithm::Prague => Self::Prague(Prague::resume(mtu, window, ssthresh)),
            Algorithm::Bbr => Self::Bbr(Box::new(Bbr::resume(&previous, seed))),
        };
    }

    /// Which of ours it is; `None` for the user's own.
    pub fn algorithm(&self) -> Option<Algorithm> {
        match self {
            Self::NewReno(_) => Some(Algorithm::NewReno),
            Self::Cubic(_) => Some(Algorithm::Cubic),
            Self::Prague(_) => Some(Algorithm::Prague),
            Self::Bbr(_) => Some(Algorithm::Bbr),
            Self::Custom(_) => None,
        }
    }

    /// Stays in congestion avoidance when the path turns out to be wider than at the last
    /// congestion event, as RFC 9438 and RFC 9002 §7 have it. Without this, NewReno and CUBIC go
    /// back to slow start then.
    pub fn ignore_capacity_rise(&mut self) {
        match self {
            Self::NewReno(controller) => controller.ignore_capacity_rise(),
            Self::Cubic(controller) => controller.ignore_capacity_rise(),
            Self::Prague(controller) => controller.ignore_capacity_rise(),
            Self::Bbr(_) | Self::Custom(_) => {}
        }
    }

    /// Says that packets are not paced, which bounds each step of slow start (RFC 9406 §4.3).
    pub fn set_unpaced(&mut self) {
        match self {
            Self::NewReno(controller) => controller.set_unpaced(),
            Self::Cubic(controller) => controller.set_unpaced(),
            Self::Prague(controller) => controller.set_unpaced(),
            // Without pacing there is no BBR: its bursts are as large as its window then.
            Self::Bbr(_) | Self::Custom(_) => {}
        }
    }
}

/// What a controller finds that takes over from another.
#[derive(Clone, Copy, Debug)]
struct Takeover<'a> {
    mtu: u16,
    window: u64,
    /// The window, unless the other was in slow start: that is to go on then.
    ssthresh: Option<u64>,
    rtt: &'a RttEstimator,
    now: Time,
}

/// Calls the same method of whichever controller it is, without a table of pointers for ours.
macro_rules! each {
    ($self:ident, $controller:ident => $call:expr) => {
        match $self {
            CongestionController::NewReno($controller) => $call,
            CongestionController::Cubic($controller) => $call,
            CongestionController::Prague($controller) => $call,
            CongestionController::Bbr($controller) => $call,
            CongestionController::Custom($controller) => $call,
        }
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

/// A controller by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Algorithm {
    /// RFC 9002 appendix B.
    NewReno,
    /// RFC 9438.
    #[default]
    Cubic,
    /// draft-briscoe-iccrg-prague-congestion-control, for paths with L4S queues.
    Prague,
    /// BBRv3, draft-ietf-ccwg-bbr.
    Bbr,
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        match name {
            "newreno" => Ok(Self::NewReno),
            "cubic" => Ok(Self::Cubic),
            "prague" => Ok(Self::Prague),
            "bbr" | "bbr3" | "bbrv3" => Ok(Self::Bbr),
            _ => Err(UnknownAlgorithm(name.to_owned())),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NewReno => "newreno",
            Self::Cubic => "cubic",
            Self::Prague => "prague",
            Self::Bbr => "bbr",
        })
    }
}

/// No controller has this name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownAlgorithm(pub String);

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown controller '{}', known are newreno, cubic, bbr, prague",
            self.0
        )
    }
}

impl std::error::Error for UnknownAlgorithm {}

/// Ten datagrams, but not more than the larger of 14720 bytes and two datagrams. RFC 9002 §7.2.
pub fn initial_window(mtu: u16) -> u64 {
    let mtu = u64::from(mtu);
    (10 * mtu).min((2 * mtu).max(14_720))
}

/// Two datagrams. RFC 9002 §7.2.
pub fn minimum_window(mtu: u16) -> u64 {
    2 * u64::from(mtu)
}

/// The rate of a window-based controller: somewhat more than a window per round trip, so that
/// the window and not the pacer is the limit (RFC 9002 §7.7); twice that in slow start, where
/// the window doubles.
pub(crate) fn window_rate(window: u64, rtt: &RttEstimator, in_slow_start: bool) -> Rate {
    let (numerator, denominator) = if in_slow_start { (2, 1) } else { (5, 4) };
    Rate::from_bytes_in(window, rtt.smoothed()).scaled(numerator, denominator)
}

/// No window grows beyond 64 GiB: more than the fastest paths hold, and far from overflow.
const MAX_WINDOW: u64 = 1 << 36;

#[cfg(test)]
mod tests;
