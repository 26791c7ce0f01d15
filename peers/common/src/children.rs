//! CPU time of child processes, and of this one.

use nix::sys::resource::{UsageWho, getrusage};

use crate::Failure;
use crate::process::CpuTime;

impl CpuTime {
    /// Returns the CPU time of all children waited for so far, and of the descendants they waited
    /// for. The difference around one wait is the time that `wait4` reports for that child.
    ///
    /// The kernel charges the processing of loopback packets to the sender, unless it accounts
    /// for interrupts separately (`CONFIG_IRQ_TIME_ACCOUNTING`).
    ///
    /// # Errors
    /// When the kernel does not report usage.
    pub fn of_children() -> Result<Self, Failure> {
        Self::of(UsageWho::RUSAGE_CHILDREN)
    }

    /// Returns the CPU time of this process so far.
    ///
    /// # Errors
    /// When the kernel does not report usage.
    pub fn of_self() -> Result<Self, Failure> {
        Self::of(UsageWho::RUSAGE_SELF)
    }

    fn of(who: UsageWho) -> Result<Self, Failure> {
        let usage = getrusage(who)?;
        let seconds = |time: nix::sys::time::TimeVal| {
            // Microseconds of any run fit into the 53 bits of a double.
            time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
        };
        Ok(Self {
            user: seconds(usage.user_time()),
            system: seconds(usage.system_time()),
        })
    }
}
