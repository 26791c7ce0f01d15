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

/// Resident memory of process `id` now, in KiB; 0 where the kernel does not tell.
pub fn resident_kib(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    field_of(&status, "VmRSS:").unwrap_or(0)
}

/// Returns how many datagrams the kernel dropped at the UDP sockets that this process has open now;
/// `None` where the kernel does not tell.
pub fn socket_drops() -> Option<u64> {
    let sockets: Vec<String> = fs::read_dir("/proc/self/fd")
        .ok()?
        .filter_map(|file| fs::read_link(file.ok()?.path()).ok())
        .filter_map(|target| {
            let name = target.to_str()?.strip_prefix("socket:[")?;
            Some(name.strip_suffix(']')?.to_owned())
        })
        .collect();
    let tables = ["/proc/self/net/udp", "/proc/self/net/udp6"];
    let mut tables = tables
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok());
    let first = drops_of(&tables.next()?, &sockets);
    Some(first + tables.map(|table| drops_of(&table, &sockets)).sum::<u64>())
}

/// Sums the last column of a table of sockets over the sockets with these inodes.
fn drops_of(table: &str, inodes: &[String]) -> u64 {
    let mut sum = 0;
    for line in table.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (Some(inode), Some(drops)) = (words.get(INODE), words.last()) else {
            continue;
        };
        if inodes.iter().any(|own| own == inode) {
            sum += drops.parse::<u64>().unwrap_or(0);
        }
    }
    sum
}

/// Column of the inode in /proc/net/udp, from 0.
const INODE: usize = 9;

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
    field_of(&status, "VmHWM:").unwrap_or(0)
}

fn field_of(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn the_peak_is_read() {
        let status = "Name:\tx\nVmHWM:\t   12345 kB\nVmRSS:\t 1 kB\n";
        assert_eq!(field_of(status, "VmHWM:"), Some(12345));
        assert_eq!(field_of(status, "VmRSS:"), Some(1));
        assert_eq!(field_of("Name:\tx\n", "VmHWM:"), None);
        let own = resident_kib(std::process::id());
        assert!((1..=peak_rss_kib()).contains(&own), "{own}");
    }

    #[test]
    fn drops_of_own_sockets_are_counted() {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let address = receiver.local_addr().expect("it is bound");
        let before = socket_drops().expect("Linux tells");
        // Far more than any receive buffer of a socket that was not enlarged.
        for _ in 0..2000 {
            let _ = sender.send_to(&[0; 8000], address);
        }
        let after = socket_drops().expect("Linux tells");
        assert!(after > before, "{before} {after}");
    }

    #[test]
    fn drops_of_other_sockets_are_not() {
        let table = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  \
                     timeout inode ref pointer drops            \n    \
                     1: 0100007F:BA20 0100007F:9406 01 00000000:00000000 00:00000000 00000000     \
                     0        0 41 2 00000000b9e33c9e 5        \n    \
                     8: 0100007F:BA27 00000000:0000 07 00000000:00000000 00:00000000 00000000     \
                     0        0 42 2 0000000008c7778a 9        \n";
        assert_eq!(drops_of(table, &["41".to_owned()]), 5);
        assert_eq!(drops_of(table, &["43".to_owned()]), 0);
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
