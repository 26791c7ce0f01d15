//! Checks the limits on memory and CPU time of the control group, in both versions of control groups.

use std::collections::BTreeMap;

use courser_units::{binary_size, three_digits, to_f64};

use crate::doctor::machine::{Machine, Unseen};
use crate::finding::Finding;

/// Compares the quotas of the control group of this process, and of its parent groups, with the usage.
pub(crate) fn check(machine: &Machine) -> Vec<Finding> {
    let groups = match machine.read("/proc/self/cgroup") {
        Ok(groups) => groups,
        Err(reason) => {
            return vec![reason.finding(MEMORY), reason.finding(CPU)];
        }
    };
    vec![memory(machine, &groups), cpu(machine, &groups)]
}

fn memory(machine: &Machine, groups: &str) -> Finding {
    let machine_memory = machine_memory(machine);
    let files = [
        ("", "memory.max", "memory.current", "inactive_file"),
        (
            "memory",
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            "total_inactive_file",
        ),
    ];
    let mut lowest: Option<(u64, Option<u64>)> = None;
    for (controller, limit, usage, cache) in files {
        for folder in folders(groups, controller) {
            let Ok(bytes) = machine.number(&format!("{folder}/{limit}")) else {
                continue;
            };
            // In version 1, a huge number means no limit.
            let is_limit = machine_memory.is_none_or(|all| bytes < all);
            if is_limit && lowest.is_none_or(|(least, _)| bytes < least) {
                // The kernel frees the cache of inactive files before it kills a process.
                let stat = machine.read(&format!("{folder}/memory.stat"));
                let cache = stat.map_or(0, |text| counter(&text, cache));
                let used = machine.number(&format!("{folder}/{usage}")).ok();
                lowest = Some((bytes, used.map(|used| used.saturating_sub(cache))));
            }
        }
    }
    let Some((limit, used)) = lowest else {
        return match machine_memory {
            Some(bytes) => Finding::good(
                MEMORY,
                format!("no quota, {} in the machine", binary_size(bytes)),
            ),
            None => Unseen::Absent("/proc/meminfo".to_owned()).finding(MEMORY),
        };
    };
    let saw = match used {
        Some(used) => format!("{} of {} in use", binary_size(used), binary_size(limit)),
        None => format!("quota of {}", binary_size(limit)),
    };
    let fix = "raise MemoryMax= of the systemd unit, or the memory limit of the container";
    if used.is_some_and(|used| used >= limit / 10 * 9) {
        let why = "the kernel kills a process in the group when the quota is used up";
        return Finding::weak(MEMORY, saw, why).fix(fix);
    }
    if limit < MIN_MEMORY {
        let why = "the memory budget of the server is a quarter of the quota, which suffices for few clients only";
        return Finding::weak(MEMORY, saw, why).fix(fix);
    }
    Finding::good(MEMORY, saw)
}

fn cpu(machine: &Machine, groups: &str) -> Finding {
    let cores = to_f64(u64::try_from(machine.cores()).unwrap_or(1));
    let quotas = folders(groups, "")
        .into_iter()
        .filter_map(|folder| Some((quota(machine, &folder)?, folder)))
        .chain(folders(groups, "cpu").into_iter().filter_map(|folder| {
            let period = machine
                .number(&format!("{folder}/cpu.cfs_period_us"))
                .ok()?;
            // The value -1, which does not parse here, means no quota.
            let quota = machine.number(&format!("{folder}/cpu.cfs_quota_us")).ok()?;
            Some((to_f64(quota) / to_f64(period.max(1)), folder))
        }));
    let Some((quota, folder)) = quotas.min_by(|a, b| a.0.total_cmp(&b.0)) else {
        return Finding::good(CPU, format!("no quota, {cores} cores"));
    };
    let throttled = machine.read(&format!("{folder}/cpu.stat")).ok();
    let count = throttled
        .as_deref()
        .map_or(0, |text| counter(text, "nr_throttled"));
    let saw = format!(
        "{} of {cores} cores, throttled {count} times",
        three_digits(quota)
    );
    let fix = "raise CPUQuota= of the systemd unit, or the CPU limit of the container";
    let why = "a process that has used its share is stopped for up to 100 ms, during which packets are lost and timers are late";
    match count > 0 || quota < 1.0 {
        true => Finding::weak(CPU, saw, why).fix(fix),
        false => Finding::good(CPU, saw),
    }
}

/// Reads `cpu.max` of version 2: a quota or `max`, and a period, both in microseconds.
fn quota(machine: &Machine, folder: &str) -> Option<f64> {
    let text = machine.read(&format!("{folder}/cpu.max")).ok()?;
    let mut numbers = text.split_whitespace();
    let quota: u64 = numbers.next()?.parse().ok()?;
    let period: u64 = numbers.next()?.parse().ok()?;
    Some(to_f64(quota) / to_f64(period.max(1)))
}

/// Returns the directories of the group of a controller and of its parent groups. In version 2, the
/// controller has no name.
fn folders(groups: &str, controller: &str) -> Vec<String> {
    let path = groups.lines().find_map(|line| {
        let (names, path) = line.split_once(':')?.1.split_once(':')?;
        let is_it = match controller {
            "" => names.is_empty(),
            _ => names.split(',').any(|name| name == controller),
        };
        is_it.then_some(path)
    });
    let Some(path) = path else {
        return Vec::new();
    };
    let mut folder = match controller {
        "" => ROOT.to_owned(),
        _ => format!("{ROOT}/{controller}"),
    };
    let mut all = vec![folder.clone()];
    for part in path.split('/').filter(|part| !part.is_empty()) {
        folder = format!("{folder}/{part}");
        all.push(folder.clone());
    }
    all
}

fn machine_memory(machine: &Machine) -> Option<u64> {
    let text = machine.read("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Returns a counter from a file with a name and a number in each line, or 0 if it is missing.
fn counter(text: &str, name: &str) -> u64 {
    let fields: BTreeMap<_, _> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    let number = fields.get(name).and_then(|text| text.trim().parse().ok());
    number.unwrap_or(0)
}

const ROOT: &str = "/sys/fs/cgroup";
const MEMORY: &str = "memory";
const CPU: &str = "CPU time";
const MIN_MEMORY: u64 = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::testing::Tree;
    use crate::finding::Verdict::{Good, Weak};

    fn tree(groups: &str, files: &[(&str, &str)]) -> Vec<Finding> {
        let tree = Tree::new();
        tree.write("/proc/meminfo", "MemTotal:       16777216 kB\n");
        tree.write("/proc/self/cgroup", groups);
        for (path, text) in files {
            tree.write(&format!("/sys/fs/cgroup/{path}"), text);
        }
        check(&tree.machine().with_cores(8))
    }

    #[test]
    fn group_without_quotas_is_good() {
        let found = tree(
            "0::/user.slice\n",
            &[
                ("user.slice/memory.max", "max\n"),
                ("user.slice/cpu.max", "max 100000\n"),
            ],
        );
        assert_eq!(found[0].saw, "no quota, 16.0 GiB in the machine");
        assert_eq!(found[1].saw, "no quota, 8 cores");
    }

    #[test]
    fn quotas_of_parent_groups_count_too() {
        let found = tree(
            "0::/a/b\n",
            &[
                ("a/memory.max", "2147483648\n"),
                ("a/memory.current", "1073741824\n"),
                ("a/b/memory.max", "max\n"),
                ("a/cpu.max", "200000 100000\n"),
                ("a/cpu.stat", "usage_usec 5\nnr_periods 7\nnr_throttled 3\n"),
            ],
        );
        assert_eq!(
            (found[0].verdict, &*found[0].saw),
            (Good, "1.0 GiB of 2.0 GiB in use")
        );
        assert_eq!(
            (found[1].verdict, &*found[1].saw),
            (Weak, "2.00 of 8 cores, throttled 3 times")
        );
    }

    #[test]
    fn nearly_exhausted_memory_is_reported() {
        let found = tree(
            "0::/\n",
            &[
                ("memory.max", "1000000000"),
                ("memory.current", "950000000"),
            ],
        );
        assert_eq!(found[0].verdict, Weak);
        let found = tree(
            "0::/\n",
            &[
                ("memory.max", "1000000000"),
                ("memory.current", "950000000"),
                ("memory.stat", "anon 5\ninactive_file 900000000\n"),
            ],
        );
        assert_eq!(found[0].verdict, Good, "the cache of files");
        let found = tree(
            "0::/\n",
            &[("memory.max", "134217728"), ("memory.current", "1")],
        );
        assert_eq!(found[0].verdict, Weak);
    }

    #[test]
    fn limits_of_version_1_are_read() {
        let groups = "5:cpu,cpuacct:/x\n4:memory:/x\n";
        let found = tree(
            groups,
            &[
                ("memory/x/memory.limit_in_bytes", "536870912"),
                ("memory/x/memory.usage_in_bytes", "104857600"),
                ("cpu/x/cpu.cfs_period_us", "100000"),
                ("cpu/x/cpu.cfs_quota_us", "50000"),
                ("cpu/x/cpu.stat", "nr_throttled 0\n"),
            ],
        );
        assert_eq!(
            (found[0].verdict, &*found[0].saw),
            (Good, "100.0 MiB of 512.0 MiB in use")
        );
        assert_eq!(
            (found[1].verdict, &*found[1].saw),
            (Weak, "0.50 of 8 cores, throttled 0 times")
        );
        let unlimited = [
            ("memory/x/memory.limit_in_bytes", "9223372036854771712"),
            ("cpu/x/cpu.cfs_quota_us", "-1"),
        ];
        let found = tree(groups, &unlimited);
        assert_eq!(found[0].saw, "no quota, 16.0 GiB in the machine");
        assert_eq!(found[1].saw, "no quota, 8 cores");
    }
}
