//! Release of the memory of a burst of clients after the burst.

use std::time::Duration;

use courser::server::ServerHandle;
use tokio::time::sleep;

/// Returns the memory of bursts of clients to the system while this future is polled.
///
/// Without it the allocator of glibc keeps the memory, so that a server holds its peak until it ends. A few
/// counters, and on Linux the resident memory, are read every five seconds. Other allocators are left alone.
///
/// # Cancel safety
/// The future can be dropped at any time. A release that has started continues.
pub async fn release_memory_of_bursts(handle: ServerHandle) {
    let (mut bursts, mut excess) = (Bursts::default(), Excess::default());
    loop {
        sleep(INTERVAL).await;
        let is_over = bursts.is_over(held(&handle));
        if excess.is_due(is_over, resident()) {
            // The release may delay threads that allocate, but it blocks no task.
            drop(tokio::task::spawn_blocking(
                courser_udp::release_unused_memory,
            ));
        }
    }
}

/// Estimates the memory that a server holds for its clients from counters, without examining each client.
fn held(handle: &ServerHandle) -> u64 {
    let endpoints = handle.endpoints();
    let filled: u64 = endpoints.iter().map(|it| it.stats().memory_used).sum();
    handle.open_connections() * CONNECTION + filled
}

/// Detects the end of a burst from the memory held.
#[derive(Debug, Default)]
struct Bursts {
    /// Largest value since the last release.
    peak: u64,
    last: u64,
    /// Number of observations since the value fell to half of the peak.
    waited: u32,
    /// Number of observations in which releases are repeated.
    to_repeat: u32,
}

impl Bursts {
    /// Records the memory held; call it once per [`INTERVAL`]. Returns true if the value has fallen to less than
    /// half of the peak and then either no longer changes quickly or has stayed there for a while. Up to half of
    /// the burst may still be held then, so it returns true again after half a minute and after a minute, unless
    /// the value rises before.
    fn is_over(&mut self, held: u64) -> bool {
        self.peak = self.peak.max(held);
        let was_falling = held + held / 8 < self.last;
        let is_rising = held > self.last + self.last / 8;
        self.last = held;
        if self.to_repeat > 0 {
            self.to_repeat -= 1;
            if self.to_repeat.is_multiple_of(REPEAT) && !is_rising {
                return true;
            }
        }
        if self.peak - held < WORTHWHILE || held > self.peak / 2 {
            self.waited = 0;
            return false;
        }
        self.waited += 1;
        if was_falling && self.waited < LONGEST_WAIT {
            return false;
        }
        *self = Self {
            peak: held,
            last: held,
            waited: 0,
            to_repeat: 2 * REPEAT,
        };
        true
    }
}

/// Returns the resident memory of this process without file-backed pages, or zero if it is unknown.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut pages = text.split(' ').skip(1).map_while(|word| word.parse().ok());
    let (all, of_files): (u64, u64) = (pages.next().unwrap_or(0), pages.next().unwrap_or(0));
    all.saturating_sub(of_files) * PAGE
}

/// Detects resident memory above that left by the last release. Requests use memory that no connection counter
/// includes, and clients that stay hold blocks between those of a burst.
#[derive(Debug)]
struct Excess {
    /// Resident memory after the last release.
    left: u64,
    last: u64,
    /// Number of observations since the last release, and the number required before the next one.
    waited: u32,
    pause: u32,
}

impl Default for Excess {
    fn default() -> Self {
        Self {
            left: u64::MAX,
            last: 0,
            waited: 0,
            pause: SHORTEST_PAUSE,
        }
    }
}

impl Excess {
    /// Records the resident memory, and whether memory is released in any case; call it once per [`INTERVAL`].
    /// Returns true if memory should be released. The pause between two releases doubles, up to an hour, while
    /// they have no effect, because then the memory is in use.
    fn is_due(&mut self, is_over: bool, resident: u64) -> bool {
        self.waited = self.waited.saturating_add(1);
        if self.waited == 1 {
            let has_helped = resident + resident / 8 <= self.last;
            self.pause = match has_helped || self.last == 0 {
                true => SHORTEST_PAUSE,
                false => (2 * self.pause).min(LONGEST_PAUSE),
            };
            self.left = resident;
        }
        let is_rising = resident > self.last + self.last / 16;
        self.last = resident;
        let is_excess = resident >= self.left.saturating_add(2 * WORTHWHILE);
        let is_due = is_over || self.waited >= self.pause && is_excess && !is_rising;
        if is_due {
            self.waited = 0;
        }
        is_due
    }
}

/// Size of a page in /proc/self/statm. If pages are larger, the excess is detected later.
const PAGE: u64 = 4096;
/// Number of observations between two releases because of excess: one minute, rising to one hour while releases
/// have no effect.
const SHORTEST_PAUSE: u32 = 12;
const LONGEST_PAUSE: u32 = 720;

/// Interval between two observations.
const INTERVAL: Duration = Duration::from_secs(5);
/// Approximate memory of an idle connection (docs/ROBUSTNESS.md).
const CONNECTION: u64 = 16 << 10;
/// Least amount of memory for which threads may be delayed.
const WORTHWHILE: u64 = 8 << 20;
/// Number of observations after which memory is released even though clients are still leaving.
const LONGEST_WAIT: u32 = 6;
/// Number of observations between a release and its repetition. Connections of clients that vanished have timed
/// out by then.
const REPEAT: u32 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Returns the indexes of the observations at which memory is released.
    fn released(held: &[u64]) -> Vec<usize> {
        let mut bursts = Bursts::default();
        let over = |(_, held): &(usize, &u64)| bursts.is_over(**held * MIB);
        held.iter()
            .enumerate()
            .filter(over)
            .map(|(index, _)| index)
            .collect()
    }

    #[test]
    fn memory_is_released_three_times_after_a_burst() {
        let one = [1, 100, 100, 60, 20].into_iter().chain([2; 40]);
        assert_eq!(released(&one.collect::<Vec<_>>()), [6, 12, 18]);
        let two = [1, 100, 2, 2, 2, 80].into_iter().chain([3; 40]);
        assert_eq!(released(&two.collect::<Vec<_>>()), [3, 7, 13, 19]);
    }

    #[test]
    fn memory_left_from_a_burst_is_released_later() {
        let load: Vec<u64> = [20, 100, 50, 50].into_iter().chain([44; 30]).collect();
        assert_eq!(released(&load), [3, 9, 15]);
    }

    #[test]
    fn repetitions_leave_a_new_burst_alone_while_it_rises() {
        let load = [20, 100, 50, 50, 44, 44, 44, 44, 44];
        let rise = [60, 80, 100, 120, 140, 160, 190];
        assert_eq!(released(&[&load[..], &rise].concat()), [3]);
        let even = [60; 7];
        assert_eq!(released(&[&load[..], &even].concat()), [3, 15]);
    }

    /// Returns the indexes of the observations at which resident memory is released; `effect` maps the memory
    /// before a release to that after.
    fn released_excess(grown: &[u64], effect: impl Fn(u64) -> u64) -> Vec<usize> {
        let (mut excess, mut resident) = (Excess::default(), 20 * MIB);
        let mut released = Vec::new();
        for (index, more) in grown.iter().enumerate() {
            resident += more * MIB;
            if excess.is_due(false, resident) {
                released.push(index);
                resident = effect(resident);
            }
        }
        released
    }

    #[test]
    fn excess_is_released_once_a_minute() {
        let mut grown = [0; 60];
        // Twice above the threshold, then once below it.
        (grown[3], grown[20], grown[40]) = (100, 30, 10);
        assert_eq!(released_excess(&grown, |_| 25 * MIB), [11, 23]);
    }

    #[test]
    fn pauses_double_while_releases_have_no_effect() {
        // A cache that grows by 8 MiB every five seconds for an hour.
        let grown = [8; 720];
        let released = released_excess(&grown, |resident| resident);
        assert!(released.len() <= 6, "{released:?}");
        let pauses: Vec<_> = released.windows(2).map(|two| two[1] - two[0]).collect();
        assert!(pauses.is_sorted(), "{released:?}");
    }

    #[test]
    fn resident_memory_is_read() {
        let is_known = cfg!(target_os = "linux");
        assert_eq!(resident() > 0, is_known);
    }

    #[test]
    fn even_or_growing_load_releases_no_memory() {
        assert!(released(&[10, 50, 100, 90, 80, 70, 60, 55, 60, 100]).is_empty());
        assert!(released(&[1, 7, 1, 1, 7, 1, 1]).is_empty());
    }

    #[test]
    fn release_does_not_wait_long_for_slow_clients() {
        let slow: Vec<u64> = (0..40).map(|n| 4000 >> (n / 2)).collect();
        assert!(!released(&slow).is_empty());
        let steep: Vec<u64> = (0..10).map(|n| 1_000_000 >> n).collect();
        assert_eq!(released(&steep), [6]);
    }
}
