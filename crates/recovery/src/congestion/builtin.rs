//! The operations that [`CongestionController`](super::CongestionController) needs of a controller in
//! the table, besides those of [`Controller`](super::Controller).

use super::algorithm::Algorithm;
use super::bbr::Bbr;
use super::careful_resume::{CarefulResume, SavedPath};
use super::classic::Classic;
use super::law::WindowLaw;
use super::takeover::Takeover;

/// A controller that the table of this crate lists.
pub(super) trait Builtin: Sized {
    /// Creates a controller for a path with datagrams of `mtu` bytes. It derives random numbers from
    /// `seed`.
    fn start(mtu: u16, seed: u64) -> Self;

    /// Creates a controller that continues from the window of another one.
    fn take_over(previous: &Takeover<'_>, seed: u64) -> Self;

    /// Starts from the properties of a path that an earlier connection has observed. Returns a
    /// controller that wraps this one, if one is needed.
    fn start_carefully(
        &mut self,
        algorithm: Algorithm,
        mtu: u16,
        saved: SavedPath,
    ) -> Option<CarefulResume>;

    /// Stays in congestion avoidance when the capacity of the path rises.
    fn ignore_capacity_rise(&mut self);
}

impl<L: WindowLaw + 'static> Builtin for Classic<L> {
    fn start(mtu: u16, _seed: u64) -> Self {
        Self::new(mtu)
    }

    fn take_over(previous: &Takeover<'_>, _seed: u64) -> Self {
        Self::resume(previous.mtu, previous.window, previous.ssthresh)
    }

    fn start_carefully(
        &mut self,
        algorithm: Algorithm,
        mtu: u16,
        saved: SavedPath,
    ) -> Option<CarefulResume> {
        let inner = Box::new(self.clone());
        Some(CarefulResume::new(inner, algorithm, mtu, saved))
    }

    fn ignore_capacity_rise(&mut self) {
        self.ignore_capacity_rise();
    }
}

impl Builtin for Box<Bbr> {
    fn start(mtu: u16, seed: u64) -> Self {
        Self::new(Bbr::new(mtu, seed))
    }

    fn take_over(previous: &Takeover<'_>, seed: u64) -> Self {
        Self::new(Bbr::resume(previous, seed))
    }

    fn start_carefully(
        &mut self,
        _algorithm: Algorithm,
        _mtu: u16,
        saved: SavedPath,
    ) -> Option<CarefulResume> {
        self.as_mut().start_carefully(saved);
        None
    }

    /// Does nothing, because BBR always measures the rate of the path.
    fn ignore_capacity_rise(&mut self) {}
}
