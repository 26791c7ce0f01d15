//! Counts received datagrams, and those reordered and duplicated.

use std::time::Duration;

use super::header::Header;
use super::message::Counted;

/// Counts received datagrams in bounded memory: remembers which of the last [`WINDOW`] numbers arrived.
#[derive(Debug)]
pub(crate) struct Arrivals {
    /// One bit for each of the last numbers, at index number modulo `WINDOW`.
    seen: Vec<u64>,
    /// The number after the highest one that has arrived.
    next: u64,
    counted: Counted,
    first_at: Option<Duration>,
    /// Transit time of the last datagram in nanoseconds, plus the difference of the clocks.
    transit: Option<i128>,
    /// The jitter in nanoseconds, times 16.
    jitter: i128,
}

impl Arrivals {
    pub(crate) fn new() -> Self {
        let words = usize::try_from(WINDOW / WORD).unwrap_or(usize::MAX);
        Self {
            seen: vec![0; words],
            next: 0,
            counted: Counted::default(),
            first_at: None,
            transit: None,
            jitter: 0,
        }
    }

    /// Counts a datagram of `size` bytes that arrived at `now`, by this end's clock.
    pub(crate) fn on_datagram(&mut self, header: Header, size: usize, now: Duration) {
        if !self.record(header.number) {
            self.counted.duplicated += 1;
            return;
        }
        self.counted.received += 1;
        self.counted.bytes += size as u64;
        let first_at = *self.first_at.get_or_insert(now);
        let span = now.saturating_sub(first_at);
        self.counted.micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        self.time(header.sent_at, now);
    }

    /// Returns the number of datagrams that have arrived.
    pub(crate) fn received(&self) -> u64 {
        self.counted.received
    }

    pub(crate) fn counted(&self) -> Counted {
        Counted {
            jitter_ns: u64::try_from(self.jitter / JITTER_GAIN).unwrap_or(u64::MAX),
            ..self.counted
        }
    }

    /// Records a number. Returns false if it has arrived before. Numbers that are older than the window count
    /// as new.
    fn record(&mut self, number: u64) -> bool {
        // The number comes from the peer, and the one after it must exist.
        if number >= self.next && number < u64::MAX {
            self.clear(self.next, number);
            self.next = number + 1;
            self.mark(number);
            return true;
        }
        let is_in_window = self.next - number.min(self.next) <= WINDOW;
        let is_new = !is_in_window || self.mark(number);
        self.counted.reordered += u64::from(is_new);
        is_new
    }

    /// Sets the bit of a number. Returns false if it was set.
    fn mark(&mut self, number: u64) -> bool {
        let (word, bit) = position(number);
        let is_new = self.seen[word] & bit == 0;
        self.seen[word] |= bit;
        is_new
    }

    /// Clears the bits for the numbers from `start` to `last`.
    fn clear(&mut self, start: u64, last: u64) {
        if last - start >= WINDOW {
            self.seen.fill(0);
            return;
        }
        for number in start..=last {
            let (word, bit) = position(number);
            self.seen[word] &= !bit;
        }
    }

    /// Adds the difference between two transit times to the jitter: RFC 3550 §6.4.1.
    fn time(&mut self, sent_at: Duration, now: Duration) {
        let nanos = |time: Duration| i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
        let transit = nanos(now) - nanos(sent_at);
        if let Some(before) = self.transit.replace(transit) {
            self.jitter += (transit - before).abs() - self.jitter / JITTER_GAIN;
        }
    }
}

/// Returns the word and the bit of a number.
fn position(number: u64) -> (usize, u64) {
    let index = number % WINDOW;
    let word = usize::try_from(index / WORD).unwrap_or(0);
    (word, 1 << (index % WORD))
}

/// The number of datagrams whose arrival is remembered: K196.
const WINDOW: u64 = 65_536;

/// Bits of a word.
const WORD: u64 = 64;

/// The divisor of RFC 3550 §6.4.1.
const JITTER_GAIN: i128 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(arrivals: &mut Arrivals, numbers: &[u64]) {
        for number in numbers {
            let header = Header {
                number: *number,
                sent_at: Duration::ZERO,
            };
            arrivals.on_datagram(header, 100, Duration::ZERO);
        }
    }

    #[test]
    fn late_datagrams_are_reordered_and_repeated_ones_duplicated() {
        let mut arrivals = Arrivals::new();
        arrive(&mut arrivals, &[0, 1, 4, 2, 3, 3, 5, 0]);
        let counted = arrivals.counted();
        assert_eq!((counted.received, counted.bytes), (6, 600));
        assert_eq!((counted.reordered, counted.duplicated), (2, 2));
    }

    #[test]
    fn numbers_within_the_window_are_remembered() {
        let mut arrivals = Arrivals::new();
        arrive(&mut arrivals, &[0, 1, WINDOW, 1]);
        assert_eq!(arrivals.counted().duplicated, 1, "1 is in the window");
        // A number that was forgotten counts as late.
        arrive(&mut arrivals, &[0]);
        assert_eq!(arrivals.counted().duplicated, 1);
        assert_eq!(arrivals.counted().reordered, 1);
        // A jump past the window leaves no marks behind.
        arrive(
            &mut arrivals,
            &[10 * WINDOW, 10 * WINDOW - 1, 9 * WINDOW + 1],
        );
        assert_eq!(arrivals.counted().duplicated, 1);
        assert_eq!(arrivals.seen.len(), 1024);
    }

    #[test]
    fn largest_numbers_cause_no_overflow() {
        let mut arrivals = Arrivals::new();
        arrive(&mut arrivals, &[u64::MAX, u64::MAX - 1, u64::MAX, 0]);
        assert_eq!(arrivals.received(), 4 - arrivals.counted().duplicated);
    }

    #[test]
    fn jitter_is_that_of_rfc_3550() {
        let mut arrivals = Arrivals::new();
        let millis = Duration::from_millis;
        // Transit times of 10, 26 and 10 ms by clocks that differ.
        for (number, (sent_at, now)) in [(0, 510), (20, 546), (40, 550)].into_iter().enumerate() {
            let header = Header {
                number: number as u64,
                sent_at: millis(sent_at),
            };
            arrivals.on_datagram(header, 16, millis(now));
        }
        // 0 + (16 - 0) / 16 = 1 ms, 1 + (16 - 1) / 16 = 1.9375 ms.
        assert_eq!(arrivals.counted().jitter_ns, 1_937_500);
        assert_eq!(arrivals.counted().micros, 40_000);
    }

    #[test]
    fn even_transit_has_no_jitter() {
        let mut arrivals = Arrivals::new();
        for number in 0..100 {
            let sent_at = Duration::from_millis(number);
            let header = Header { number, sent_at };
            arrivals.on_datagram(header, 16, sent_at + Duration::from_secs(5));
        }
        assert_eq!(arrivals.counted().jitter_ns, 0);
    }
}
