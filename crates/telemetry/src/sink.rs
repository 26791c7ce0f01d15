//! Where records go.

use std::fmt;

use courser_base::{Side, Time};
use courser_wire::ConnectionId;

use crate::Record;

/// Takes records of one connection.
///
/// A sink is called while packets move, under the lock of the endpoint: while it runs, **no
/// connection of the endpoint sends or receives**. It must not wait for a disk, the network or a
/// lock that is held during either. A sink that writes gives its bytes to an
/// [`Output`](crate::Output) of a [`BackgroundWriter`](crate::BackgroundWriter), which queues them
/// for a thread; `courser_qlog::QlogDirectory` does so. A sink is dropped under the lock too.
pub trait Sink: Send {
    /// Takes what happened at `now`. Must not block.
    fn record(&mut self, now: Time, record: &Record);
}

/// Makes the sinks of connections, so that their first packets are recorded too.
///
/// It is called under the lock of the endpoint and must not block, see [`Sink`].
pub trait SinkFactory: Send + Sync + fmt::Debug {
    /// A connection begins; `None` leaves it unrecorded.
    ///
    /// `original_destination` is the destination ID of the client's very first packet, the one
    /// thing that both ends know a connection by (RFC 9000 §7.3), and `side` is our end of it.
    fn sink(&self, original_destination: &ConnectionId, side: Side) -> Option<Box<dyn Sink>>;
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

    /// True while somebody listens.
    #[inline]
    pub fn is_plugged(&self) -> bool {
        self.0.is_some()
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
