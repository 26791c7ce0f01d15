//! Errors of virtual time.

use std::fmt;

use courser_base::Time;

/// Time stands still, because a machine or link never stops at one point in time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stall {
    /// The virtual time that does not advance.
    pub at: Time,
    /// The name of the machine or link that never stops.
    pub name: String,
    /// The number of calls at this point in time.
    pub steps: u32,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = crate::report::seconds(self.at);
        write!(
            f,
            "time stands still at {seconds:.9} s: '{}' was called {} times and has more to do",
            self.name, self.steps
        )
    }
}

impl std::error::Error for Stall {}
