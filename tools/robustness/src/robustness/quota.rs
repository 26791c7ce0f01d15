//! Limits on the CPU time of one process, so that clients on another core can overload it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::process::Process;

/// A control group with a limit of CPU time, which is removed on drop.
pub(super) struct Quota(PathBuf);

impl Quota {
    /// Limits a process with all its threads to this percentage of one core.
    pub(super) fn limit(process: &Process, percent: u64) -> Result<Self, String> {
        let name = format!("courser-robustness-{}", process.id());
        let quota = percent * PERIOD_US / 100;
        let attempts = [
            (Path::new("/sys/fs/cgroup/cpu"), Version::One),
            (Path::new("/sys/fs/cgroup"), Version::Two),
        ];
        let mut trouble = String::new();
        for (root, version) in attempts {
            let group = Self(root.join(&name));
            match group.fill(version, quota, process.id()) {
                Ok(()) => return Ok(group),
                Err(error) => trouble = error.to_string(),
            }
        }
        Err(format!(
            "cannot limit the CPU time of the server with a control group (cpu.max): {trouble}"
        ))
    }

    fn fill(&self, version: Version, quota: u64, process: u32) -> io::Result<()> {
        fs::create_dir(&self.0)?;
        let write = |file: &str, text: String| fs::write(self.0.join(file), text);
        match version {
            Version::One => {
                write("cpu.cfs_period_us", PERIOD_US.to_string())?;
                write("cpu.cfs_quota_us", quota.to_string())?;
                // A high weight guarantees the share beside other processes on the core.
                write("cpu.shares", "100000".to_owned())?;
            }
            Version::Two => {
                write("cpu.max", format!("{quota} {PERIOD_US}"))?;
                write("cpu.weight", "10000".to_owned())?;
            }
        }
        write("cgroup.procs", process.to_string())
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // The kernel refuses this while the group contains a process. The folder then remains until
        // a restart.
        let _ = fs::remove_dir(&self.0);
    }
}

#[derive(Clone, Copy)]
enum Version {
    One,
    Two,
}

/// The period in microseconds, so short that the server never pauses for more than a few
/// milliseconds.
const PERIOD_US: u64 = 5000;
