//! The default memory budget of an endpoint.

use std::path::{Path, PathBuf};

/// Returns the default memory budget of an endpoint: a quarter of the memory of the machine, of the
/// control group of this process, or of its limits (`ulimit -v` and `ulimit -d`), whichever is
/// least. It is at least 16 MiB, and 1 GiB if none of them is known.
///
/// Applications can derive the size of their own caches from it.
pub fn default_memory_budget() -> u64 {
    let machine = std::fs::read_to_string("/proc/meminfo");
    let machine = machine.ok().as_deref().and_then(total);
    let group = std::fs::read_to_string("/proc/self/cgroup");
    let group = group
        .ok()
        .and_then(|text| group_limit(&text, Path::new(CGROUP_ROOT)));
    let process = std::fs::read_to_string("/proc/self/limits");
    let process = process.ok().as_deref().and_then(process_limit);
    let available = machine.into_iter().chain(group).chain(process).min();
    available.map_or(DEFAULT_BUDGET, |bytes| {
        (bytes / BUDGET_DIVISOR).max(MIN_BUDGET)
    })
}

/// Returns `MemTotal` of /proc/meminfo in bytes.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Returns the lowest soft limit of memory in /proc/self/limits.
fn process_limit(limits: &str) -> Option<u64> {
    let limits = limits.lines().filter_map(|line| {
        let mut names = PROCESS_LIMITS.iter();
        let numbers = names.find_map(|name| line.strip_prefix(name))?;
        // "unlimited" is no number.
        numbers.split_whitespace().next()?.parse().ok()
    });
    limits.min()
}

/// Returns the lowest limit of the group named in /proc/self/cgroup and of its ancestors, for both
/// versions of control groups.
fn group_limit(groups: &str, root: &Path) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let (folder, file) = match controllers {
            "" => (root.to_path_buf(), "memory.max"),
            "memory" => (root.join("memory"), "memory.limit_in_bytes"),
            _ => return None,
        };
        lowest(&folder, path.trim_start_matches('/'), file)
    });
    limits.min()
}

/// Returns the lowest number in `file` of the folders from `root` down to `path`.
fn lowest(root: &Path, path: &str, file: &str) -> Option<u64> {
    let mut folder = PathBuf::from(root);
    let down = std::iter::once("").chain(path.split('/'));
    let limits = down.filter_map(|part| {
        folder.push(part);
        let text = std::fs::read_to_string(folder.join(file)).ok()?;
        // "max" means no limit.
        text.trim().parse().ok()
    });
    limits.min()
}

/// Limits of a process, each followed by its soft and its hard limit in bytes.
const PROCESS_LIMITS: [&str; 2] = ["Max address space", "Max data size"];

/// The mount point of control groups.
const CGROUP_ROOT: &str = "/sys/fs/cgroup";

/// Divisor of the memory that yields the budget. The rest is for application, caches and sockets.
const BUDGET_DIVISOR: u64 = 4;

/// The smallest budget derived from a machine.
const MIN_BUDGET: u64 = 16 << 20;

/// The budget if the memory is unknown.
const DEFAULT_BUDGET: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_the_machine_is_read() {
        let text = "MemTotal:       24617212 kB\nMemFree:        1 kB\n";
        assert_eq!(total(text), Some(24_617_212 * 1024));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        assert_eq!(total("MemTotal: many kB\n"), None);
    }

    /// A folder of its own for a test, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("courser-groups-{}-{name}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn lowest_limit_of_nested_groups_counts() {
        let root = Folder::new("nested");
        let inner = root.0.join("a/b");
        std::fs::create_dir_all(&inner).expect("the folders are created");
        let write = |folder: &Path, text: &str| {
            std::fs::write(folder.join("memory.max"), text).expect("the file is written");
        };
        let limit = || group_limit("0::/a/b\n", &root.0);
        assert_eq!(limit(), None);
        write(&inner, "max\n");
        assert_eq!(limit(), None);
        write(&root.0.join("a"), "1000000\n");
        assert_eq!(limit(), Some(1_000_000));
        write(&inner, "500000\n");
        assert_eq!(limit(), Some(500_000));
    }

    #[test]
    fn limits_of_cgroup_v1_count_too() {
        let root = Folder::new("first-version");
        let folder = root.0.join("memory/x");
        std::fs::create_dir_all(&folder).expect("the folders are created");
        std::fs::write(folder.join("memory.limit_in_bytes"), "7000000\n")
            .expect("the file is written");
        let groups = "5:cpu,cpuacct:/x\n4:memory:/x\n";
        assert_eq!(group_limit(groups, &root.0), Some(7_000_000));
    }

    #[test]
    fn lowest_limit_of_the_process_counts() {
        let limits = |data: &str, space: &str| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max data size             {data}            unlimited            bytes     \n\
                 Max stack size            8388608              unlimited            bytes     \n\
                 Max address space         {space}            unlimited            bytes     \n"
            )
        };
        let limit = |data, space| process_limit(&limits(data, space));
        assert_eq!(limit("unlimited", "unlimited"), None);
        assert_eq!(limit("134217728", "unlimited"), Some(128 << 20));
        assert_eq!(limit("134217728", "100000000"), Some(100_000_000));
        assert_eq!(process_limit(""), None);
    }

    #[test]
    fn there_is_always_a_budget() {
        assert!(default_memory_budget() >= MIN_BUDGET);
    }
}
