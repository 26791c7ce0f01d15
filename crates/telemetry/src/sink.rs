//! Where records go.

use std::fmt;

use courser_base::Time;

use crate::Record;

/// Takes records of one connection. Called from the packet path: it must not block.
pub trait Sink: Send {
    /// Something happened at `now`.
    fn record(&mut self, now: Time, record: &Record);
}

/// Drops everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl Sink for NoSink {
    fn record(&mut self, _now: Time, _record: &Record) {}
}

/// Hands every record to two sinks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tee<A, B>(pub A, pub B);

impl<A: Sink, B: Sink> Sink for Tee<A, B> {
    fn record(&mut self, now: Time, record: &Record) {
        self.0.record(now, record);
        self.1.record(now, record);
    }
}

impl<F: FnMut(Time, &Record) + Send> Sink for F {
    fn record(&mut self, now: Time, record: &Record) {
        self(now, record);
    }
}

/// The place in a connection where a sink may be plugged in.
#[derive(Default)]
pub struct Tap(Option<Box<dyn Sink>>);

impl Tap {
    /// Plugs a sink in, or takes it out.
    pub fn set(&mut self, sink: Option<Box<dyn Sink>>) {
        self.0 = sink;
    }

    /// Records what `make` builds; without a sink `make` never runs.
    #[inline]
    pub fn record(&mut self, now: Time, make: impl FnOnce() -> Record) {
        if let Some(sink) = &mut self.0 {
            sink.record(now, &make());
        }
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tap").field(&self.0.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StateChanged;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn counting(count: &Arc<AtomicUsize>) -> impl FnMut(Time, &Record) + Send + 'static {
        let count = Arc::clone(count);
        move |_, _| {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn empty_tap_builds_no_record() {
        let mut tap = Tap::default();
        tap.record(Time::ZERO, || unreachable!("nobody listens"));
    }

    #[test]
    fn tee_feeds_both() {
        let (first, second) = (Arc::default(), Arc::default());
        let mut tap = Tap::default();
        tap.set(Some(Box::new(Tee(counting(&first), counting(&second)))));
        tap.record(Time::ZERO, || {
            Record::StateChanged(StateChanged { state: "closing" })
        });
        assert_eq!(
            (
                first.load(Ordering::Relaxed),
                second.load(Ordering::Relaxed)
            ),
            (1, 1)
        );
    }
}
