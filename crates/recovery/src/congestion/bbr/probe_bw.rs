//! ProbeBW, draft-ietf-ccwg-bbr §5.3.3: drains the queue, holds the rate, fills the pipe, probes
//! for bandwidth.

mod cruise;
mod down;
mod next;
mod refill;
mod up;
mod wait;

use courser_base::Time;

use self::cruise::Cruise;
use self::down::Down;
pub(super) use self::next::Next;
use self::refill::Refill;
use self::up::Up;
use self::wait::Wait;
use super::random::Random;
use super::sample::Sample;
use super::view::View;

/// The phases of a ProbeBW cycle, in order.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProbeBw {
    Down(Down),
    Cruise(Cruise),
    Refill(Refill),
    Up(Up),
}

impl ProbeBw {
    /// Starts ProbeBW_DOWN, and picks the time until the next probe.
    pub(super) fn down(now: Time, random: &mut Random) -> Self {
        Self::Down(Down::new(Wait::pick(now, random)))
    }

    pub(super) fn refill() -> Self {
        Self::Refill(Refill)
    }

    pub(super) fn up(view: View<'_>) -> Self {
        Self::Up(Up::new(view))
    }

    /// Moves from ProbeBW_DOWN to ProbeBW_CRUISE. The time of the next probe stays the same.
    pub(super) fn start_cruise(&mut self) {
        if let Self::Down(down) = self {
            *self = Self::Cruise(down.cruise());
        }
    }

    /// Records the start of a round.
    pub(super) fn on_round_start(&mut self) {
        match self {
            Self::Down(down) => down.on_round_start(),
            Self::Cruise(cruise) => cruise.on_round_start(),
            Self::Refill(_) | Self::Up(_) => {}
        }
    }

    /// Returns the next phase, as in `UpdateProbeBWCyclePhase()`. `is_bound` is true if the
    /// long-term bound limits the flight.
    pub(super) fn next(&self, rs: &Sample, is_bound: bool, view: View<'_>) -> Next {
        match self {
            Self::Down(down) => down.next(rs.now, view),
            Self::Cruise(cruise) => cruise.next(rs.now, view),
            Self::Refill(refill) => refill.next(view),
            Self::Up(up) => up.next(rs, is_bound, view),
        }
    }

    /// `ProbeInflightLongtermUpward()`. Returns the bound that replaces `long_term`.
    pub(super) fn raise(&mut self, rs: &Sample, long_term: u64, view: View<'_>) -> u64 {
        match self {
            Self::Up(up) => up.raise(rs, long_term, view),
            Self::Down(_) | Self::Cruise(_) | Self::Refill(_) => long_term,
        }
    }

    /// `BBR.pacing_gain` in percent, §5.6.1.
    pub(super) fn pacing_gain(&self) -> u32 {
        match self {
            Self::Down(_) => Down::PACING_GAIN,
            Self::Cruise(_) => Cruise::PACING_GAIN,
            Self::Refill(_) => Refill::PACING_GAIN,
            Self::Up(_) => Up::PACING_GAIN,
        }
    }
}

#[cfg(test)]
mod tests;
