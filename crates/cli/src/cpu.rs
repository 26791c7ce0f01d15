//! What an end costs: CPU clocks, and which core it runs on.

/// Whose CPU time is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CpuClock {
    /// All threads of this process.
    Process,
    /// The thread that asks.
    Thread,
}

impl CpuClock {
    /// Seconds of CPU time so far, in user space and in the kernel; 0 where the system has no
    /// such clock.
    #[cfg(unix)]
    pub(crate) fn seconds(self) -> f64 {
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

    #[cfg(not(unix))]
    pub(crate) fn seconds(self) -> f64 {
        0.0
    }
}

/// The cores that this thread may run on; empty where the system does not tell.
#[cfg(target_os = "linux")]
pub(crate) fn allowed_cores() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    let Ok(set) = sched_getaffinity(None) else {
        return Vec::new();
    };
    (0..CpuSet::MAX_CPU)
        .filter(|core| set.is_set(*core))
        .collect()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn allowed_cores() -> Vec<usize> {
    Vec::new()
}

/// Keeps this thread, and those that it starts later, on one core.
#[cfg(target_os = "linux")]
pub(crate) fn pin_to(core: usize) -> Result<(), String> {
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

#[cfg(not(target_os = "linux"))]
pub(crate) fn pin_to(_: usize) -> Result<(), String> {
    Err("this system does not let a program choose its core".to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn clock_of_a_thread_counts_what_that_thread_does() {
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
