//! File descriptors for TCP connections (limit K373).

/// Returns the number of TCP connections for which the process has descriptors, if the system reports its limit.
/// A part is reserved for files, connections to upstream servers, and the administration of the server.
pub(crate) fn max_connections() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let open = std::fs::read_dir("/proc/self/fd").ok()?.count();
    Some(part(soft_limit(&limits)?, open))
}

/// Returns the part of the free descriptors that connections may use.
fn part(limit: usize, open: usize) -> usize {
    (limit.saturating_sub(open) / PARTS * CONNECTION_PARTS).max(1)
}

/// Returns the soft limit on open files in /proc/self/limits. `None` if it is unlimited.
fn soft_limit(limits: &str) -> Option<usize> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Parts of the free descriptors, and those that TCP connections may use (limit K373).
const PARTS: usize = 4;
const CONNECTION_PARTS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_use_three_quarters_of_the_free_descriptors() {
        assert_eq!(part(1024, 24), 750);
        assert_eq!(part(20, 30), 1);
    }

    #[test]
    fn soft_limit_is_read() {
        let text = "Limit            Soft Limit  Hard Limit  Units\nMax open files   1024   524288   files\n";
        assert_eq!(soft_limit(text), Some(1024));
        assert_eq!(
            soft_limit("Max open files   unlimited   unlimited   files"),
            None
        );
    }
}
