//! The memory of a burst of clients, which returns to the system when the burst is over.

use std::time::Duration;

use courser::server::ServerHandle;
use tokio::time::sleep;

/// Gives the memory of bursts of clients back to the system, for as long as this future is polled.
///
/// The allocator of glibc keeps it otherwise: a server holds what its worst minute took until it ends. A few
/// counters, and on Linux the resident memory, are read every five seconds. Other allocators are not asked.
///
/// # Cancel safety
/// It can be dropped at any time. A release that has begun continues.
pub async fn release_memory_of_bursts(handle: ServerHandle) {
    let (mut bursts, mut excess) = (Bursts::default(), Excess::default());
    loop {
        sleep(INTERVAL).await;
        let is_over = bursts.is_over(held(&handle));
        if excess.is_due(is_over, resident()) {
            // Threads that allocate may wait for it, but no task does.
            drop(tokio::task::spawn_blocking(
                courser_udp::release_unused_memory,
            ));
        }
    }
}

/// Estimates the memory that a server holds for its clients, without a look at each of them.
fn held(handle: &ServerHandle) -> u64 {
    let endpoints = handle.endpoints();
    let filled: u64 = endpoints.iter().map(|it| it.stats().memory_used).sum();
    handle.open_connections() * CONNECTION + filled
}

/// Notices when a burst has ended.
#[derive(Debug, Default)]
struct Bursts {
    /// The most that was held since memory was released last.
    peak: u64,
    last: u64,
    /// Observations since the memory held was half of the peak.
    waited: u32,
    /// Observations left in which memory is released again.
    to_repeat: u32,
}

impl Bursts {
    /// Takes the memory held now, once in each [`INTERVAL`]. Returns true if much less is held than before, and
    /// if that does not change quickly any more or has lasted. Up to half of the burst may be left then, so it
    /// returns true twice more, after half a minute and after a minute, unless more is held again by then.
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

/// Returns the resident memory of this process without the pages of files, or zero where it is unknown.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut pages = text.split(' ').skip(1).map_while(|word| word.parse().ok());
    let (all, of_files): (u64, u64) = (pages.next().unwrap_or(0), pages.next().unwrap_or(0));
    all.saturating_sub(of_files) * PAGE
}

/// Notices resident memory above what was left after the last release. Requests take memory that no counter
/// of connections shows, and clients that stay keep blocks between those of a burst.
#[derive(Debug)]
struct Excess {
    /// The resident memory after the last release.
    left: u64,
    last: u64,
    /// Observations since the last release, and those that pass before the next one.
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
    /// Takes the resident memory now, once in each [`INTERVAL`], and whether memory is to be released in any
    /// case. Returns true if it is to be released. The pause between two releases doubles, up to an hour,
    /// while they have no effect: then the memory is in use.
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

/// Bytes of a page in /proc/self/statm. Where pages are larger, the excess is noticed later.
const PAGE: u64 = 4096;
/// Observations between two releases because of excess: a minute, and an hour after many without effect.
const SHORTEST_PAUSE: u32 = 12;
const LONGEST_PAUSE: u32 = 720;

/// The time between two looks at the memory held.
const INTERVAL: Duration = Duration::from_secs(5);
/// About the memory of an idle connection (docs/ROBUSTNESS.md).
const CONNECTION: u64 = 16 << 10;
/// Less memory is not worth the time for which threads may wait.
const WORTHWHILE: u64 = 8 << 20;
/// Observations after which memory is released although clients still go.
const LONGEST_WAIT: u32 = 6;
/// Observations between a release and its repetition: connections without a sign of life have ended then.
const REPEAT: u32 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Returns the observations at which memory is released.
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
    fn a_burst_that_is_over_is_released_three_times() {
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

    /// Returns the observations at which resident memory is released, which `effect` changes.
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
        // Twice more than is worthwhile, then too little.
        (grown[3], grown[20], grown[40]) = (100, 30, 10);
        assert_eq!(released_excess(&grown, |_| 25 * MIB), [11, 23]);
    }

    #[test]
    fn memory_in_use_is_asked_for_ever_less_often() {
        // A cache that grows for an hour by 8 MiB each five seconds.
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
    fn an_even_or_growing_load_releases_nothing() {
        assert!(released(&[10, 50, 100, 90, 80, 70, 60, 55, 60, 100]).is_empty());
        assert!(released(&[1, 7, 1, 1, 7, 1, 1]).is_empty());
    }

    #[test]
    fn clients_that_go_slowly_do_not_delay_it_for_ever() {
        let slow: Vec<u64> = (0..40).map(|n| 4000 >> (n / 2)).collect();
        assert!(!released(&slow).is_empty());
        let steep: Vec<u64> = (0..10).map(|n| 1_000_000 >> n).collect();
        assert_eq!(released(&steep), [6]);
    }
}
