//! Moves of connections to other sockets during a measurement, and the stalls that they cause.

use std::time::{Duration, Instant};

use courser_base::Mutex;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::latency::{Latency, histogram_of_times};

/// The moves of a measurement.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct MovesReport {
    /// Moves to another socket.
    pub count: u64,
    /// Moves that failed because no socket could be opened.
    pub failed: u64,
    /// The longest time without bytes in a direction, for each move: from one move to the next.
    pub stall: Option<Latency>,
}

/// Counts moves, and watches the bytes after each of them.
#[derive(Debug)]
pub(crate) struct Moves(Mutex<State>);

#[derive(Debug)]
struct State {
    count: u64,
    failed: u64,
    /// The time since the last move; `None` before the first one.
    window: Option<Window>,
    stalls: Histogram<u64>,
}

/// The direction of bytes, seen from the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Sent,
    Received,
}

/// The time since a move.
#[derive(Clone, Copy, Debug)]
struct Window {
    began: Instant,
    /// The times of the last bytes in each direction, or of the move.
    last: [Instant; 2],
    longest: Duration,
    has_moved_bytes: bool,
}

impl Window {
    fn new(now: Instant) -> Self {
        Self {
            began: now,
            last: [now; 2],
            longest: Duration::ZERO,
            has_moved_bytes: false,
        }
    }

    fn on_bytes(&mut self, way: Way, now: Instant) {
        let last = &mut self.last[way as usize];
        self.longest = self.longest.max(now.saturating_duration_since(*last));
        *last = now;
        self.has_moved_bytes = true;
    }

    /// Returns the longest time without bytes, or all of it if there were none.
    fn stall(&self, now: Instant) -> Duration {
        if self.has_moved_bytes {
            self.longest
        } else {
            now.saturating_duration_since(self.began)
        }
    }
}

impl Moves {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State {
            count: 0,
            failed: 0,
            window: None,
            stalls: histogram_of_times(),
        }))
    }

    /// Counts a move.
    pub(crate) fn on_move(&self, now: Instant) {
        let mut state = self.0.lock();
        state.end_window(now);
        state.count += 1;
        state.window = Some(Window::new(now));
    }

    /// Counts a move that failed.
    pub(crate) fn on_failure(&self) {
        self.0.lock().failed += 1;
    }

    /// Notes bytes of a direction.
    pub(crate) fn on_bytes(&self, way: Way, now: Instant) {
        if let Some(window) = &mut self.0.lock().window {
            window.on_bytes(way, now);
        }
    }

    /// Forgets the moves so far, because the measurement begins.
    pub(crate) fn begin(&self) {
        *self.0.lock() = Self::new().0.into_inner();
    }

    /// Returns the moves since the beginning.
    pub(crate) fn report(&self, now: Instant) -> MovesReport {
        let mut state = self.0.lock();
        state.end_window(now);
        MovesReport {
            count: state.count,
            failed: state.failed,
            stall: (!state.stalls.is_empty()).then(|| Latency::from(&state.stalls)),
        }
    }
}

impl State {
    fn end_window(&mut self, now: Instant) {
        if let Some(window) = self.window.take() {
            let nanos = u64::try_from(window.stall(now).as_nanos()).unwrap_or(u64::MAX);
            self.stalls.saturating_record(nanos);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stall_is_the_longest_time_without_bytes_in_a_direction() {
        let (moves, began) = (Moves::new(), Instant::now());
        let at = |millis| began + Duration::from_millis(millis);
        // Before the first move nothing counts.
        moves.on_bytes(Way::Sent, at(0));
        moves.on_bytes(Way::Sent, at(500));
        moves.on_move(at(1000));
        moves.on_bytes(Way::Received, at(1010));
        moves.on_bytes(Way::Sent, at(1070));
        moves.on_bytes(Way::Received, at(1040));
        let report = moves.report(at(1500));
        assert_eq!((report.count, report.failed), (1, 0));
        let stall = report.stall.expect("one move");
        assert!((stall.max_us - 70_000.0).abs() < 100.0, "{stall:?}");
    }

    #[test]
    fn connection_that_never_goes_on_stalls_until_the_end() {
        let (moves, began) = (Moves::new(), Instant::now());
        moves.on_move(began);
        moves.on_failure();
        let report = moves.report(began + Duration::from_secs(2));
        let stall = report.stall.expect("one move");
        assert!((stall.max_us - 2e6).abs() < 2000.0, "{stall:?}");
        assert_eq!(report.failed, 1);
    }

    #[test]
    fn moves_before_the_measurement_do_not_count() {
        let moves = Moves::new();
        moves.on_move(Instant::now());
        moves.begin();
        let report = moves.report(Instant::now());
        assert_eq!((report.count, report.stall), (0, None));
    }
}
