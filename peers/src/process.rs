//! What a program knows about itself.

/// Peak resident memory in KiB; 0 where the kernel does not tell.
///
/// From `VmHWM` and not from `getrusage`: the latter begins with the memory of the process that
/// did the fork, which is the runner.
pub fn peak_rss_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
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
}
