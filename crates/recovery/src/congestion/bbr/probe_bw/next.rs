//! The phase of ProbeBW after an acknowledgement.

/// The transition that an acknowledgement causes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::congestion::bbr) enum Next {
    /// Stays in the phase.
    Stay,
    /// Moves to ProbeBW_CRUISE.
    Cruise,
    /// Moves to ProbeBW_REFILL.
    Refill,
    /// Moves to ProbeBW_UP.
    Up,
    /// Stays in ProbeBW_UP and starts a new search for a full pipe, because the bound and not the
    /// path limits the rate.
    ResetFullPipe,
    /// Moves to ProbeBW_DOWN.
    Down {
        /// True if the probe ended at the bound of the last probe.
        is_precautionary: bool,
    },
}
