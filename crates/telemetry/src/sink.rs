//! Sinks: receivers of records.

use std::fmt;

use courser_base::{Side, Time};
use courser_wire::ConnectionId;

use crate::Record;

/// Receives the records of one connection.
///
/// A sink is called while packets are processed, under the lock of the endpoint: while it runs,
/// **no connection of the endpoint sends or receives**. It must not wait for a disk, for the
/// network, or for a lock that is held during either. A sink that writes files passes its bytes to
/// an [`Output`](crate::Output) of a [`BackgroundWriter`](crate::BackgroundWriter), which queues
/// them for a thread; `courser_qlog::QlogDirectory` does so. A sink is dropped under the lock too.
pub trait Sink: Send {
    /// Receives an event that happened at `now`. Must not block.
    fn record(&mut self, now: Time, record: &Record);
}

/// Creates the sinks of connections, early enough to record their first packets.
///
/// The factory is called under the lock of the endpoint and must not block, see [`Sink`].
pub trait SinkFactory: Send + Sync + fmt::Debug {
    /// Returns the sink of a new connection, or `None` to leave it unrecorded.
    ///
    /// `original_destination` is the Destination Connection ID of the client's first packet. It is
    /// the only identifier of a connection that both ends share (RFC 9000 §7.3). `side` is our end
    /// of the connection.
    fn sink(&self, original_destination: &ConnectionId, side: Side) -> Option<Box<dyn Sink>>;
}

/// A sink that discards all records.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl Sink for NoSink {
    fn record(&mut self, _now: Time, _record: &Record) {}
}

/// A sink that passes each record to two sinks.
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

/// The point in a connection where a sink can be attached.
#[derive(Default)]
pub struct Tap(Option<Box<dyn Sink>>);

impl Tap {
    /// Attaches a sink, or detaches it with `None`.
    pub fn set(&mut self, sink: Option<Box<dyn Sink>>) {
        self.0 = sink;
    }

    /// Returns true while a sink is attached.
    #[inline]
    pub fn is_plugged(&self) -> bool {
        self.0.is_some()
    }

    /// Records the event that `make` builds. Without a sink, `make` never runs.
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
        tap.record(Time::ZERO, || unreachable!("no sink is attached"));
    }

    #[test]
    fn tee_passes_each_record_to_both_sinks() {
        let (first, second) = (Arc::default(), Arc::default());
        let mut tap = Tap::default();
        tap.set(Some(Box::new(Tee(counting(&first), counting(&second)))));
        tap.record(Time::ZERO, || {
            Record::StateChanged(StateChanged {
                old: None,
                state: "closing",
            })
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
