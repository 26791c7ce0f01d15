//! Memory, CPU time and metrics of another process.

use std::collections::BTreeMap;
use std::time::Duration;

/// The memory of a process in KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProcessMemory {
    /// The current resident memory (VmRSS).
    pub resident: u64,
    /// The peak of resident memory (VmHWM).
    pub peak: u64,
}

/// Returns the memory of the process with this ID, or zero if it has ended. Linux only.
pub fn memory_of(process: u32) -> ProcessMemory {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let field = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        let first = value.and_then(|value| value.split_whitespace().next());
        first.and_then(|first| first.parse().ok()).unwrap_or(0)
    };
    ProcessMemory {
        resident: field("VmRSS:"),
        peak: field("VmHWM:"),
    }
}

/// Returns the CPU time of all threads of a process so far, or zero if it has ended. Linux only.
pub fn cpu_time_of(process: u32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name in parentheses may contain spaces. User and system time are fields 14 and 15.
    let fields = text.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * TICK_MS)
}

/// The unit of CPU times in milliseconds. Linux reports hundredths of a second on every architecture.
const TICK_MS: u64 = 10;

/// Returns the number of datagrams for a local UDP port on IPv4 that the kernel dropped because the receiver
/// did not read them in time. Linux only.
pub fn kernel_drops_at(port: u16) -> u64 {
    let text = std::fs::read_to_string("/proc/net/udp").unwrap_or_default();
    let of_port = format!(":{port:04X}");
    text.lines()
        .skip(1)
        .filter(|line| {
            let local = line.split_whitespace().nth(1);
            local.is_some_and(|local| local.ends_with(&of_port))
        })
        .filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok())
        .sum()
}

/// The values of a metrics page of courser by name. Values that differ only in labels are added up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricsPage(BTreeMap<String, f64>);

impl MetricsPage {
    /// Reads the text of a page in the OpenMetrics format. Skips lines without a value.
    pub fn parse(text: &str) -> Self {
        let mut values = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, value)) = line.rsplit_once(' ') else {
                continue;
            };
            let Ok(value) = value.parse::<f64>() else {
                continue;
            };
            let name = name.split('{').next().unwrap_or(name);
            *values.entry(name.to_owned()).or_default() += value;
        }
        Self(values)
    }

    /// Returns the value of `courser_NAME`, or zero if it is missing.
    pub fn get(&self, name: &str) -> f64 {
        let value = self.0.get(&format!("courser_{name}"));
        value.copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_name_are_added_up() {
        let text = "# HELP courser_requests Requests.\n\
                    courser_requests_total{protocol=\"h3\",code=\"200\"} 7\n\
                    courser_requests_total{protocol=\"h3\",code=\"404\"} 2\n\
                    courser_ready 1.0\n# EOF\n";
        let metrics = MetricsPage::parse(text);
        assert_eq!(metrics.get("requests_total"), 9.0);
        assert_eq!(metrics.get("ready"), 1.0);
        assert_eq!(metrics.get("missing"), 0.0);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn running_process_has_memory_and_ended_process_has_none() {
        let own = memory_of(std::process::id());
        assert!(own.resident > 0 && own.peak >= own.resident);
        assert_eq!(memory_of(u32::MAX), ProcessMemory::default());
        assert_eq!(cpu_time_of(u32::MAX), Duration::ZERO);
    }
}
