//! The phase of ProbeBW after an acknowledgement.

/// The transition that an acknowledgement causes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::congestion::bbr) enum Next {
    /// Stays in the phase.
    Stay,
    /// Moves to ProbeBW_CRUISE: the queue is empty.
    Cruise,
    /// Moves to ProbeBW_REFILL: the next probe is due.
    Refill,
    /// Moves to ProbeBW_UP: the pipe was full for a round.
    Up,
    /// Stays in ProbeBW_UP and starts a new search for a full pipe, because the bound and not the
    /// path limits the rate.
    ResetFullPipe,
    /// Moves to ProbeBW_DOWN: the probe is over.
    Down {
        /// True if the probe ended at the bound of the last probe.
        is_precautionary: bool,
    },
}
