//! Time by cause, with the lines of the trace that show it.

use serde::Serialize;

use super::cause::Cause;

/// A place in the trace.
#[derive(Serialize, Clone, Copy, PartialEq, Debug, Default)]
pub struct Mark {
    /// Seconds since the first event.
    pub time: f64,
    /// The line; in a plain file, the number of the event.
    pub line: u64,
}

/// A stretch of the trace.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct Stretch {
    /// The event at which it begins.
    pub from: Mark,
    /// The event at which it ends.
    pub to: Mark,
}

impl Stretch {
    fn duration(&self) -> f64 {
        self.to.time - self.from.time
    }
}

/// The time of one cause.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    /// Seconds attributed to the cause.
    pub(super) total: f64,
    /// The longest stretches, in the order of time.
    pub(super) longest: Vec<Stretch>,
    /// The latest stretch, which the next addition may extend.
    open: Option<Stretch>,
    /// The number of stretches.
    pub(super) count: u64,
}

/// Time by cause. Each moment is attributed to exactly one cause.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    entries: Vec<Entry>,
    /// The longest pause inside a stretch.
    pause: f64,
}

/// The totals at a moment, from which time can be reassigned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Snapshot {
    totals: [f64; Cause::ALL.len()],
    pub(super) at: Mark,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            entries: vec![Entry::default(); Cause::ALL.len()],
            pause: 0.0,
        }
    }
}

impl Ledger {
    /// Sets the longest pause inside a stretch.
    pub(super) fn set_pause(&mut self, pause: f64) {
        self.pause = pause;
    }

    pub(super) fn entry(&self, cause: Cause) -> &Entry {
        &self.entries[cause as usize]
    }

    /// Adds a stretch of time.
    pub(super) fn add(&mut self, cause: Cause, from: Mark, to: Mark) {
        if to.time <= from.time {
            return;
        }
        let pause = self.pause;
        let entry = &mut self.entries[cause as usize];
        entry.total += to.time - from.time;
        entry.extend(Stretch { from, to }, pause);
    }

    pub(super) fn snapshot(&self, at: Mark) -> Snapshot {
        let mut totals = [0.0; Cause::ALL.len()];
        for (total, entry) in totals.iter_mut().zip(&self.entries) {
            *total = entry.total;
        }
        Snapshot { totals, at }
    }

    /// Attributes the time since the snapshot to `to`, if `which` selects the cause that had it.
    pub(super) fn reassign(
        &mut self,
        since: &Snapshot,
        until: Mark,
        to: Cause,
        which: impl Fn(Cause) -> bool,
    ) {
        let mut moved = 0.0;
        for cause in Cause::ALL {
            if cause == to || !which(cause) {
                continue;
            }
            let index = cause as usize;
            let time = self.entries[index].total - since.totals[index];
            if time > 0.0 {
                moved += time;
                self.entries[index].total -= time;
                self.entries[index].cut(since.at);
            }
        }
        if moved > 0.0 {
            let pause = self.pause;
            let entry = &mut self.entries[to as usize];
            entry.total += moved;
            entry.extend(
                Stretch {
                    from: since.at,
                    to: until,
                },
                pause,
            );
        }
    }

    /// Attributes up to `most` seconds since the snapshot to `to` instead of `from`.
    pub(super) fn shift(&mut self, since: &Snapshot, from: Cause, to: Cause, most: f64) {
        let index = from as usize;
        let time = (self.entries[index].total - since.totals[index]).min(most);
        if time > 0.0 {
            self.entries[index].total -= time;
            let until = Mark {
                time: since.at.time + time,
                line: since.at.line + 1,
            };
            let entry = &mut self.entries[to as usize];
            entry.total += time;
            entry.extend(
                Stretch {
                    from: since.at,
                    to: until,
                },
                self.pause,
            );
        }
    }

    /// Attributes a share of the whole time of `from` to `to`.
    pub(super) fn give(&mut self, from: Cause, to: Cause, share: f64) {
        let time = self.entries[from as usize].total * share;
        if time <= 0.0 {
            return;
        }
        let given = self.entries[from as usize].clone();
        self.entries[from as usize].total -= time;
        let entry = &mut self.entries[to as usize];
        entry.total += time;
        entry.count += given.count;
        for stretch in given.stretches() {
            entry.insert_longest(stretch);
        }
    }

    /// Returns the time of all causes in seconds.
    pub(super) fn total(&self) -> f64 {
        self.entries.iter().map(|entry| entry.total).sum()
    }
}

impl Entry {
    /// Returns the longest stretches in the order of time.
    pub(super) fn stretches(&self) -> Vec<Stretch> {
        let mut all = self.clone();
        if let Some(open) = all.open.take() {
            all.insert_longest(open);
        }
        all.longest
    }

    fn extend(&mut self, stretch: Stretch, pause: f64) {
        match &mut self.open {
            Some(open) if stretch.from.time - open.to.time <= pause => {
                open.to = stretch.to;
                if stretch.from.time < open.from.time {
                    open.from = stretch.from;
                }
            }
            open => {
                let before = open.replace(stretch);
                self.count += 1;
                if let Some(before) = before {
                    self.insert_longest(before);
                }
            }
        }
    }

    fn insert_longest(&mut self, stretch: Stretch) {
        self.longest.push(stretch);
        if self.longest.len() > MAX_STRETCHES {
            let durations = self.longest.iter().map(Stretch::duration).enumerate();
            let shortest = durations.min_by(|left, right| left.1.total_cmp(&right.1));
            if let Some((index, _)) = shortest {
                self.longest.remove(index);
            }
        }
        self.longest
            .sort_by(|left, right| left.from.time.total_cmp(&right.from.time));
    }

    /// Removes the stretches, or their parts, after a mark.
    fn cut(&mut self, at: Mark) {
        if let Some(open) = &mut self.open
            && open.to.time > at.time
        {
            open.to = at;
            if open.from.time >= at.time {
                self.open = None;
                self.count = self.count.saturating_sub(1);
            }
        }
        self.longest.retain(|stretch| stretch.from.time < at.time);
    }
}

/// The number of stretches that are kept for each cause: the longest ones. K207.
pub(super) const MAX_STRETCHES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(time: u32) -> Mark {
        Mark {
            time: f64::from(time),
            line: u64::from(time) + 1,
        }
    }

    #[test]
    fn the_longest_stretches_are_kept_in_order() {
        let mut ledger = Ledger::default();
        for (from, to) in [(0, 1), (2, 6), (8, 9), (10, 13), (20, 22), (30, 31)] {
            ledger.add(Cause::Loss, mark(from), mark(to));
        }
        let entry = ledger.entry(Cause::Loss);
        assert_eq!((entry.total, entry.count), (12.0, 6));
        let kept: Vec<_> = entry.stretches().iter().map(|it| it.from.line).collect();
        assert_eq!(kept, [3, 11, 21]);
        assert_eq!(kept.len(), MAX_STRETCHES);
    }

    #[test]
    fn reassigned_time_leaves_the_other_causes() {
        let mut ledger = Ledger::default();
        ledger.add(Cause::Window, mark(0), mark(2));
        let snapshot = ledger.snapshot(mark(2));
        ledger.add(Cause::Window, mark(2), mark(3));
        ledger.add(Cause::Application, mark(3), mark(5));
        ledger.reassign(&snapshot, mark(5), Cause::Blackout, |_| true);
        assert_eq!(ledger.entry(Cause::Window).total, 2.0);
        assert_eq!(ledger.entry(Cause::Application).total, 0.0);
        assert_eq!(ledger.entry(Cause::Blackout).total, 3.0);
        assert_eq!(ledger.total(), 5.0);
        let window = ledger.entry(Cause::Window).stretches();
        assert_eq!((window[0].from, window[0].to), (mark(0), mark(2)));
        assert!(ledger.entry(Cause::Application).stretches().is_empty());
    }

    #[test]
    fn short_pauses_do_not_end_a_stretch() {
        let mut ledger = Ledger::default();
        ledger.set_pause(1.5);
        ledger.add(Cause::Pacing, mark(0), mark(1));
        ledger.add(Cause::Pacing, mark(2), mark(3));
        ledger.add(Cause::Pacing, mark(5), mark(6));
        let entry = ledger.entry(Cause::Pacing);
        assert_eq!((entry.count, entry.stretches().len()), (2, 2));
    }
}
