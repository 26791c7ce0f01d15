//! CPU clocks of threads and processes, and the cores that they run on.

/// A clock of CPU time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CpuClock {
    /// Counts all threads of this process.
    Process,
    /// Counts the calling thread.
    Thread,
}

impl CpuClock {
    /// Returns the seconds of CPU time used so far, in user space and in the kernel. Returns 0 on systems
    /// without such a clock.
    #[cfg(unix)]
    pub fn seconds(self) -> f64 {
        use rustix::time::{ClockId, clock_gettime};
        let clock = match self {
            Self::Process => ClockId::ProcessCPUTime,
            Self::Thread => ClockId::ThreadCPUTime,
        };
        let time = clock_gettime(clock);
        #[expect(
            clippy::cast_precision_loss,
            reason = "seconds since the start of a program"
        )]
        let seconds = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
        seconds
    }

    /// Returns 0, because this system has no such clock.
    #[cfg(not(unix))]
    pub fn seconds(self) -> f64 {
        0.0
    }
}

/// Returns the cores that this thread may run on. Empty if the system does not report them.
#[cfg(target_os = "linux")]
pub fn allowed_cores() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    let Ok(set) = sched_getaffinity(None) else {
        return Vec::new();
    };
    (0..CpuSet::MAX_CPU)
        .filter(|core| set.is_set(*core))
        .collect()
}

/// Returns an empty list, because this system does not report the cores of a thread.
#[cfg(not(target_os = "linux"))]
pub fn allowed_cores() -> Vec<usize> {
    Vec::new()
}

/// Pins this thread, and the threads that it starts later, to one core.
///
/// # Errors
/// Returns a message for the user if the thread may not run on this core.
#[cfg(target_os = "linux")]
pub fn pin_to(core: usize) -> Result<(), String> {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let allowed = allowed_cores();
    if !allowed.contains(&core) {
        return Err(format!(
            "core {core} is not among the allowed cores: {allowed:?}"
        ));
    }
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).map_err(|error| format!("cannot run on core {core}: {error}"))
}

/// Fails, because this system does not allow a program to choose its core.
///
/// # Errors
/// Always returns an error, with a message for the user.
#[cfg(not(target_os = "linux"))]
pub fn pin_to(_: usize) -> Result<(), String> {
    Err("this system does not allow a program to choose its core".to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn thread_clock_counts_the_work_of_the_thread() {
        let before = CpuClock::Thread.seconds();
        let mut sum = 0_u64;
        while CpuClock::Thread.seconds() - before < 0.002 {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(CpuClock::Process.seconds() >= CpuClock::Thread.seconds() - before);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn core_that_does_not_exist_is_refused() {
        assert!(
            pin_to(100_000)
                .expect_err("no such core")
                .contains("is not among")
        );
    }
}
