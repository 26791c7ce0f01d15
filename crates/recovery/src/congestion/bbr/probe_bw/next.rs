//! What an acknowledgement makes of a phase of ProbeBW.

/// The phase after an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::congestion::bbr) enum Next {
    Stay,
    Cruise,
    Refill,
    Up,
    /// Stays in ProbeBW_UP, but looks anew for growth: the bound, not the path, is what keeps the
    /// rate from growing.
    LookAnew,
    Down {
        is_precautionary: bool,
    },
}
