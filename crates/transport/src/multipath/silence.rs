//! What is recorded of a path that does not answer.

use std::time::Duration;

use courser_base::Time;
use courser_wire::PathId;

/// A path since it has not answered in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    /// The time of the next probe.
    pub(super) probe_at: Time,
    /// The time at which the path is given up, if another one answers.
    pub(super) give_up_at: Time,
}

/// A change of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HealthChange {
    /// A packet was not acknowledged in time.
    Suspect,
    /// A packet was acknowledged again.
    Answers,
}

/// The state of a path that decides whether it answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Health {
    pub(crate) id: PathId,
    /// True if a probe timeout has passed since a packet was acknowledged.
    pub(crate) is_silent: bool,
    /// The probe timeout without backoff.
    pub(crate) pto: Duration,
}
