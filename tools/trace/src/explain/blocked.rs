//! Measures how long streams are blocked on the dynamic table of QPACK.

use std::collections::BTreeMap;

use super::ledger::{Mark, Stretch};
use crate::qlog::{Event, EventKind};

/// The time during which at least one stream was blocked (RFC 9204 §2.1.2).
#[derive(Debug, Default)]
pub(super) struct Blocked {
    waiting: BTreeMap<u64, Mark>,
    /// The number of waits that have ended.
    pub(super) waits: u64,
    /// Seconds during which a stream was blocked.
    pub(super) seconds: f64,
    since: Option<Mark>,
    /// The longest time for which a single stream was blocked.
    pub(super) longest: Option<Stretch>,
}

impl Blocked {
    pub(super) fn on_event(&mut self, event: &Event, mark: Mark) {
        match event.kind {
            EventKind::QpackStream {
                stream,
                is_blocked: true,
            } if self.waiting.len() < MAX_WAITING => {
                self.since.get_or_insert(mark);
                self.waiting.entry(stream).or_insert(mark);
            }
            EventKind::QpackStream {
                stream,
                is_blocked: false,
            } => {
                if let Some(from) = self.waiting.remove(&stream) {
                    self.end_wait(from, mark);
                }
                if self.waiting.is_empty() {
                    self.end(mark);
                }
            }
            _ => {}
        }
    }

    /// Ends all waits, because the connection or the trace ends.
    pub(super) fn finish(&mut self, mark: Mark) {
        for (_, from) in std::mem::take(&mut self.waiting) {
            self.end_wait(from, mark);
        }
        self.end(mark);
    }

    fn end_wait(&mut self, from: Mark, to: Mark) {
        self.waits += 1;
        let is_longer =
            |stretch: &Stretch| to.time - from.time > stretch.to.time - stretch.from.time;
        if self.longest.as_ref().is_none_or(is_longer) {
            self.longest = Some(Stretch { from, to });
        }
    }

    fn end(&mut self, mark: Mark) {
        if let Some(since) = self.since.take() {
            self.seconds += mark.time - since.time;
        }
    }
}

/// The largest number of blocked streams that are followed at once (limit K254). Decoders allow some
/// hundred at most.
const MAX_WAITING: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn event(line: u64, time: f64, stream: u64, is_blocked: bool) -> (Event, Mark) {
        let kind = EventKind::QpackStream { stream, is_blocked };
        (Event { line, time, kind }, Mark { time, line })
    }

    #[test]
    fn time_of_concurrently_blocked_streams_counts_once() {
        let mut blocked = Blocked::default();
        for (event, mark) in [
            event(1, 1.0, 0, true),
            event(2, 1.5, 4, true),
            event(3, 2.0, 0, false),
            event(4, 3.0, 4, false),
            event(5, 3.5, 4, false),
            event(6, 4.0, 8, true),
        ] {
            blocked.on_event(&event, mark);
        }
        blocked.finish(Mark {
            time: 4.25,
            line: 7,
        });
        assert_eq!((blocked.waits, blocked.seconds), (3, 2.25));
        let longest = blocked.longest.expect("a wait");
        assert_eq!((longest.from.line, longest.to.line), (2, 4));
    }

    #[test]
    fn memory_is_bounded() {
        let mut blocked = Blocked::default();
        for stream in 0..100_000 {
            let (event, mark) = event(stream, 0.0, stream, true);
            blocked.on_event(&event, mark);
        }
        assert_eq!(blocked.waiting.len(), MAX_WAITING);
    }
}
