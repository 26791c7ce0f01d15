//! What can go wrong with time itself.

use std::fmt;

use courser_base::Time;

/// Time stands still: somebody has always more to do at one point in time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stall {
    /// Since when.
    pub at: Time,
    /// The machine or link that never comes to rest.
    pub who: String,
    /// How often it was called at this point in time.
    pub steps: u32,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = crate::report::seconds(self.at);
        write!(
            f,
            "time stands still at {seconds:.9} s: '{}' was called {} times and has more to do",
            self.who, self.steps
        )
    }
}

impl std::error::Error for Stall {}
