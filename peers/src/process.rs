//! Memory and CPU time of processes.

use std::fs;

use serde::{Deserialize, Serialize};

/// CPU time in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuTime {
    /// Time in the program.
    pub user: f64,
    /// Time in the kernel.
    pub system: f64,
}

impl CpuTime {
    /// Returns the time used after `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user - earlier.user,
            system: self.system - earlier.system,
        }
    }

    /// Returns the sum of user and system time.
    pub fn total(self) -> f64 {
        self.user + self.system
    }
}

/// Peak resident memory in KiB; 0 where the kernel does not tell.
///
/// From `VmHWM` and not from `getrusage`: the latter begins with the memory of the process that
/// did the fork, which is the runner.
pub fn peak_rss_kib() -> u64 {
    peak_of("self")
}

/// Returns the sum of the peaks of process `id` and of those of its descendants that run the same
/// program, in KiB.
///
/// Helpers of another program, such as a crash handler that waits for a crash, are left out.
pub fn peak_rss_kib_of_tree(id: u32) -> u64 {
    let program = |id: u32| fs::read_link(format!("/proc/{id}/exe")).ok();
    let own = program(id);
    let mut left = vec![id];
    let mut sum = 0;
    while let Some(next) = left.pop() {
        if program(next) == own {
            sum += peak_of(&next.to_string());
        }
        left.extend(children(next));
    }
    sum
}

fn children(id: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{id}/task")) else {
        return Vec::new();
    };
    let lists = threads
        .filter_map(Result::ok)
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let mut ids = Vec::new();
    for list in lists {
        ids.extend(
            list.split_whitespace()
                .filter_map(|id| id.parse::<u32>().ok()),
        );
    }
    ids
}

fn peak_of(process: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    parse_peak(&status).unwrap_or(0)
}

fn parse_peak(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read() {
        assert_eq!(
            parse_peak("Name:\tx\nVmHWM:\t   12345 kB\nVmRSS:\t 1 kB\n"),
            Some(12345)
        );
        assert_eq!(parse_peak("Name:\tx\n"), None);
    }

    #[test]
    fn children_of_another_program_are_not_counted() {
        let mut child = std::process::Command::new("sleep")
            .arg("10")
            .spawn()
            .expect("sleep is everywhere");
        let id = std::process::id();
        assert!(children(id).contains(&child.id()));
        // Between fork and exec the child still runs this program.
        let program = |id: u32| fs::read_link(format!("/proc/{id}/exe")).ok();
        for _ in 0..1000 {
            if program(child.id()) != program(id) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let sum = peak_rss_kib_of_tree(id);
        child.kill().expect("it runs");
        child.wait().expect("it is a child");
        assert!(sum > 0 && sum <= peak_rss_kib(), "{sum}");
    }
}
