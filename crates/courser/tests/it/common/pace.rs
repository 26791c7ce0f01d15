//! Time limits that allow for other work on the machine.

use std::time::{Duration, Instant};

/// Returns the factor by which this thread is now slower than on an idle machine, at least 1.
///
/// The measurement takes some 20 ms of CPU time, so call it only when a test has run out of time.
pub fn slowdown() -> f64 {
    let begun = Instant::now();
    let Some(before) = cpu_time() else {
        return UNKNOWN;
    };
    while cpu_time().is_some_and(|now| now < before + SAMPLE) {
        std::hint::spin_loop();
    }
    (begun.elapsed().as_secs_f64() / SAMPLE.as_secs_f64()).max(1.0)
}

/// CPU time over which the machine is measured: longer than a turn of its scheduler.
const SAMPLE: Duration = Duration::from_millis(20);
/// The factor assumed on systems that do not report the CPU time of a thread.
const UNKNOWN: f64 = 4.0;

/// Returns the CPU time of this thread: the first number of its statistics in `/proc`, in nanoseconds.
fn cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let first = text.split_whitespace().next()?;
    Some(Duration::from_nanos(first.parse().ok()?))
}
