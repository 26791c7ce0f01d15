//! The machine: cores, their time, and who else took it.

use std::fs;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use peers::Failure;
use serde::Serialize;

/// Runs `start` on one core and comes back; a process started meanwhile stays there.
pub(crate) fn on_core<T>(core: usize, start: impl FnOnce() -> T) -> Result<T, Failure> {
    let this_thread = Pid::from_raw(0);
    let before = sched_getaffinity(this_thread)?;
    let mut only = CpuSet::new();
    only.set(core)?;
    sched_setaffinity(this_thread, &only).map_err(|error| format!("core {core}: {error}"))?;
    let result = start();
    sched_setaffinity(this_thread, &before)?;
    Ok(result)
}

/// The times of cores at a moment.
#[derive(Clone, Debug)]
pub(crate) struct CoreTimes {
    at: Instant,
    ticks: Ticks,
    cores: usize,
}

/// The shares of the measured cores that other work took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Disturbance {
    /// Time that the hypervisor gave to other machines.
    pub(crate) steal: f64,
    /// Time of other processes of this machine.
    pub(crate) foreign: f64,
}

impl Disturbance {
    /// True when the measurement is to be made again.
    pub(crate) fn is_too_much(&self) -> bool {
        self.steal > MAX_STEAL || self.foreign > MAX_FOREIGN
    }
}

impl CoreTimes {
    /// Reads the counters of `cores`.
    pub(crate) fn now(cores: &[usize]) -> Result<Self, Failure> {
        let mut cores = cores.to_vec();
        cores.sort_unstable();
        cores.dedup();
        let ticks = parse_ticks(&fs::read_to_string("/proc/stat")?, &cores);
        Ok(Self {
            at: Instant::now(),
            ticks,
            cores: cores.len(),
        })
    }

    /// Returns the disturbance since an earlier moment, without the `own` CPU time of the children.
    pub(crate) fn disturbance_since(&self, earlier: &Self, own: f64) -> Disturbance {
        disturbance(
            self.ticks.since(earlier.ticks),
            own,
            self.at.duration_since(earlier.at) * u32::try_from(self.cores).unwrap_or(1),
        )
    }
}

fn disturbance(ticks: Ticks, own: f64, available: Duration) -> Disturbance {
    let available = available.as_secs_f64();
    let share = |seconds: f64| {
        if available > 0.0 {
            seconds.max(0.0) / available
        } else {
            0.0
        }
    };
    Disturbance {
        steal: share(ticks.steal as f64 * TICK),
        foreign: share(ticks.busy as f64 * TICK - own),
    }
}

/// Counters of /proc/stat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    steal: u64,
}

impl Ticks {
    fn since(self, earlier: Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(earlier.busy),
            steal: self.steal.saturating_sub(earlier.steal),
        }
    }
}

/// Sums the lines `cpuN user nice system idle iowait irq softirq steal …` of `cores`.
fn parse_ticks(stat: &str, cores: &[usize]) -> Ticks {
    let mut sum = Ticks::default();
    for line in stat.lines() {
        let mut words = line.split_whitespace();
        let core = words
            .next()
            .and_then(|name| name.strip_prefix("cpu")?.parse::<usize>().ok());
        if !core.is_some_and(|core| cores.contains(&core)) {
            continue;
        }
        let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = numbers[..] else {
            continue;
        };
        sum.busy += user + nice + system + irq + softirq;
        sum.steal += steal;
    }
    sum
}

/// Processor and kernel, for the head of the report.
pub(crate) fn describe() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, model)| model);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{model}, Linux {}", kernel.trim())
}

/// Seconds of a tick of /proc/stat: USER_HZ is 100 on every architecture in use.
const TICK: f64 = 0.01;

/// A burst of the hypervisor is well above, its everyday share below.
const MAX_STEAL: f64 = 0.04;

/// Ticks are coarse: a run of one second is off by some hundredths.
const MAX_FOREIGN: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  9 9 9 9 9 9 9 9 0 0\n\
                        cpu0 10 1 20 500 3 2 5 7 0 0\n\
                        cpu1 100 0 0 500 0 0 0 1 0 0\n\
                        cpu10 9 9 9 9 9 9 9 9 0 0\n\
                        intr 1 2 3\n";

    #[test]
    fn ticks_of_the_chosen_cores_are_summed() {
        assert_eq!(parse_ticks(STAT, &[0]), Ticks { busy: 38, steal: 7 });
        assert_eq!(
            parse_ticks(STAT, &[0, 1]),
            Ticks {
                busy: 138,
                steal: 8
            }
        );
        assert_eq!(parse_ticks("", &[0]), Ticks::default());
    }

    #[test]
    fn own_time_is_no_disturbance() {
        let ticks = Ticks {
            busy: 150,
            steal: 10,
        };
        let found = disturbance(ticks, 1.4, Duration::from_secs(2));
        assert!((found.steal - 0.05).abs() < 1e-9, "{found:?}");
        assert!((found.foreign - 0.05).abs() < 1e-9, "{found:?}");
        assert!(found.is_too_much());
        let found = disturbance(ticks, 1.6, Duration::from_secs(20));
        assert_eq!(found.foreign.to_bits(), 0.0_f64.to_bits());
        assert!(!found.is_too_much());
    }
}
