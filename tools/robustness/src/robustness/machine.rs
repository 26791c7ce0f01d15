//! The machine on which figures are measured.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::thread::{CpuSet, sched_setaffinity};

/// Restricts this thread to these cores from now on. Child processes with a core of their own are
/// not affected.
pub(super) fn pin(cores: &[usize]) -> Result<(), String> {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core);
    }
    sched_setaffinity(None, &set).map_err(|error| format!("cannot choose a core: {error}"))
}

/// Returns the build profile of this program, which is the name of its folder.
pub(super) fn profile() -> String {
    let program = std::env::current_exe().unwrap_or_default();
    let folder = program.parent().and_then(|folder| folder.file_name());
    folder.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Describes processor, cores, memory and kernel in one line.
pub(super) fn describe() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processor
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = memory.lines().find_map(|line| {
        let kib = line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?;
        kib.parse::<u64>().ok()
    });
    format!(
        "{}, {} cores, {:.0} GiB, Linux {}",
        model.unwrap_or("unknown processor").trim(),
        courser_measure::allowed_cores().len(),
        kib.unwrap_or(0) as f64 / f64::from(1 << 20),
        kernel.trim()
    )
}

/// Returns the current date in UTC as YYYY-MM-DD.
pub(super) fn date() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let days = since.map_or(0, |since| since.as_secs() / SECONDS_PER_DAY);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}")
}

const SECONDS_PER_DAY: u64 = 86_400;

/// Converts a number of days since 1970 to year, month and day.
fn civil(days: u64) -> (u64, u64, u64) {
    let mut left = days;
    let mut year = 1970;
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if left < length {
            break;
        }
        left -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_convert_to_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(59), (1970, 3, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_819), (2027, 1, 1));
    }
}
