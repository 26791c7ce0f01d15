//! Sinks: receivers of records.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use courser_base::foreign::Foreign;
use courser_base::{Side, Time};
use courser_wire::ConnectionId;

use crate::Record;

/// Receives the records of one connection.
///
/// A sink is called while packets are processed, under the lock of the endpoint: while it runs,
/// **no connection of the endpoint sends or receives**. It must not wait for a disk, for the
/// network, or for a lock that is held during either. A sink that writes files passes its bytes to
/// an [`Output`](crate::Output) of a [`BackgroundWriter`](crate::BackgroundWriter), which queues
/// them for a thread; `courser_qlog::QlogDirectory` does so.
///
/// A sink must not use the endpoint or its connections in its methods: that panics, which ends the
/// connection of the sink. It may drop handles. No lock is held when the sink is dropped.
pub trait Sink: Send {
    /// Receives an event that happened at `now`. Must not block.
    fn record(&mut self, now: Time, record: &Record);

    /// Returns the detail that this sink needs, by default the highest. It is called once, when the
    /// sink is attached. Records of a higher detail are not passed to the sink. If no sink needs
    /// them, they are not built and cost one branch each.
    fn detail(&self) -> Detail {
        Detail::Messages
    }
}

/// The records that a sink receives. Each value includes those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// All records except those of the other values: a few for each connection, and one for each
    /// loss, each expired timer and each time that a limit stops the connection from sending.
    #[default]
    Events,
    /// [`Record::MetricsUpdated`] also: up to one for each batch of datagrams that is sent or received.
    Metrics,
    /// [`Record::PacketSent`] and [`Record::PacketReceived`] also, with the frames of each packet.
    Packets,
    /// [`Record::Http3`] and [`Record::Qpack`] also, with the field lines of each message. Values
    /// of credentials are omitted: see [`Field`](crate::Field).
    Messages,
}

/// Creates the sinks of connections, early enough to record their first packets.
///
/// The factory is called under the lock of the endpoint and must not block, see [`Sink`].
pub trait SinkFactory: Send + Sync + fmt::Debug {
    /// Returns the sink of a new connection, or `None` to record nothing of it.
    ///
    /// `original_destination` is the Destination Connection ID of the client's first packet. It is
    /// the only identifier of a connection that both ends share (RFC 9000 §7.3). `side` is the role
    /// of this end.
    fn sink(&self, original_destination: &ConnectionId, side: Side) -> Option<Box<dyn Sink>>;
}

/// A sink that discards all records.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl Sink for NoSink {
    fn record(&mut self, _now: Time, _record: &Record) {}

    fn detail(&self) -> Detail {
        Detail::Events
    }
}

/// Passes each record to two sinks, or creates sinks with two factories.
///
/// Each sink receives the records of the higher of the two details.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tee<A, B>(pub A, pub B);

impl<A: Sink, B: Sink> Sink for Tee<A, B> {
    fn record(&mut self, now: Time, record: &Record) {
        self.0.record(now, record);
        self.1.record(now, record);
    }

    fn detail(&self) -> Detail {
        self.0.detail().max(self.1.detail())
    }
}

impl Sink for Box<dyn Sink> {
    fn record(&mut self, now: Time, record: &Record) {
        (**self).record(now, record);
    }

    fn detail(&self) -> Detail {
        (**self).detail()
    }
}

impl<A: SinkFactory, B: SinkFactory> SinkFactory for Tee<A, B> {
    fn sink(&self, original_destination: &ConnectionId, side: Side) -> Option<Box<dyn Sink>> {
        let first = self.0.sink(original_destination, side);
        let second = self.1.sink(original_destination, side);
        match (first, second) {
            (Some(first), Some(second)) => Some(Box::new(Tee(first, second))),
            (first, second) => first.or(second),
        }
    }
}

impl<F: SinkFactory + ?Sized> SinkFactory for Arc<F> {
    fn sink(&self, original_destination: &ConnectionId, side: Side) -> Option<Box<dyn Sink>> {
        (**self).sink(original_destination, side)
    }
}

impl<F: FnMut(Time, &Record) + Send> Sink for F {
    fn record(&mut self, now: Time, record: &Record) {
        self(now, record);
    }
}

/// The point in a connection where one or two sinks can be attached.
#[derive(Default)]
pub struct Tap {
    sink: Option<Foreign<Box<dyn Sink>>>,
    guest: Option<Foreign<Box<dyn Sink>>>,
    of_sink: Attachment,
    of_guest: Attachment,
    /// The highest detail of the sinks.
    detail: Detail,
    watch: Option<Watch>,
}

/// The state of an attached sink. Storing it separately from the sink takes less memory.
#[derive(Clone, Copy, Debug, Default)]
struct Attachment {
    /// The detail that the sink returned when it was attached.
    detail: Detail,
    /// True until the sink has received the records of [`Tap::catch_up`].
    is_new: bool,
}

impl Attachment {
    fn of(sink: Option<&dyn Sink>) -> Self {
        Self {
            detail: sink.map(Sink::detail).unwrap_or_default(),
            is_new: sink.is_some(),
        }
    }
}

/// The detail that the sinks of a connection need, for parts that cannot reach its [`Tap`].
#[derive(Clone, Debug)]
pub struct Watch(Arc<AtomicU8>);

impl Watch {
    /// Returns true while a sink is attached that receives records of `detail`.
    #[inline]
    pub fn wants(&self, detail: Detail) -> bool {
        self.0.load(Ordering::Relaxed) > detail as u8
    }

    fn set(&self, detail: Option<Detail>) {
        let level = detail.map_or(0, |detail| detail as u8 + 1);
        self.0.store(level, Ordering::Relaxed);
    }
}

impl Tap {
    /// Attaches a sink, or detaches it with `None`.
    pub fn set(&mut self, sink: Option<Box<dyn Sink>>) {
        self.of_sink = Attachment::of(sink.as_deref());
        self.sink = sink.map(Foreign::new);
        self.on_changed();
    }

    /// Attaches a second sink, or detaches it with `None`. It is intended for temporary readers and
    /// does not affect the first sink. Each sink receives the records of its own detail.
    pub fn set_guest(&mut self, guest: Option<Box<dyn Sink>>) {
        self.of_guest = Attachment::of(guest.as_deref());
        self.guest = guest.map(Foreign::new);
        self.on_changed();
    }

    /// Returns true while a second sink is attached.
    pub fn has_guest(&self) -> bool {
        self.guest.is_some()
    }

    /// Returns true if no attached sink has [caught up](Self::catch_up) yet.
    pub fn are_all_new(&self) -> bool {
        let is_known =
            |is_attached: bool, attachment: Attachment| is_attached && !attachment.is_new;
        !is_known(self.sink.is_some(), self.of_sink)
            && !is_known(self.guest.is_some(), self.of_guest)
    }

    /// Passes the records that `make` builds, each with its detail, to the sinks that were attached
    /// since the last call. The records describe the results of earlier events. Without a new sink,
    /// `make` is not called.
    pub fn catch_up<const N: usize>(
        &mut self,
        now: Time,
        make: impl FnOnce() -> [(Detail, Record); N],
    ) {
        if !self.of_sink.is_new && !self.of_guest.is_new {
            return;
        }
        let records = make();
        for (sink, attachment) in self.attached() {
            if std::mem::take(&mut attachment.is_new) {
                let accepted = records
                    .iter()
                    .filter(|(detail, _)| *detail <= attachment.detail);
                accepted.for_each(|(_, record)| sink.record(now, record));
            }
        }
    }

    fn attached(&mut self) -> impl Iterator<Item = (&mut Foreign<Box<dyn Sink>>, &mut Attachment)> {
        let first = self.sink.as_mut().map(|sink| (sink, &mut self.of_sink));
        let second = self.guest.as_mut().map(|sink| (sink, &mut self.of_guest));
        first.into_iter().chain(second)
    }

    fn on_changed(&mut self) {
        self.detail = self.of_sink.detail.max(self.of_guest.detail);
        if let Some(watch) = &self.watch {
            watch.set(self.has_sink().then_some(self.detail));
        }
    }

    /// Returns a watch of the detail, which is updated when sinks are attached or detached.
    pub fn watch(&mut self) -> Watch {
        let detail = self.has_sink().then_some(self.detail);
        let watch = self.watch.get_or_insert_with(|| Watch(Arc::default()));
        watch.set(detail);
        watch.clone()
    }

    /// Returns true while a sink is attached.
    #[inline]
    pub fn has_sink(&self) -> bool {
        self.sink.is_some() || self.guest.is_some()
    }

    /// Returns true while a sink is attached that receives records of `detail`.
    #[inline]
    pub fn wants(&self, detail: Detail) -> bool {
        self.has_sink() && detail <= self.detail
    }

    /// Records the event that `make` builds. Without a sink, `make` is not called.
    #[inline]
    pub fn record(&mut self, now: Time, make: impl FnOnce() -> Record) {
        self.record_at(Detail::Events, now, make);
    }

    /// Records the event that `make` builds for the sinks that receive records of `detail`. If
    /// there are none, `make` is not called.
    #[inline]
    pub fn record_at(&mut self, detail: Detail, now: Time, make: impl FnOnce() -> Record) {
        if self.wants(detail) {
            self.pass(detail, now, &make());
        }
    }

    fn pass(&mut self, detail: Detail, now: Time, record: &Record) {
        for (sink, attachment) in self.attached() {
            if detail <= attachment.detail {
                sink.record(now, record);
            }
        }
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail = self.has_sink().then_some(self.detail);
        f.debug_tuple("Tap").field(&detail).finish()
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

    /// A sink that counts records of this detail.
    struct Counting(Arc<AtomicUsize>, Detail);

    impl Sink for Counting {
        fn record(&mut self, _now: Time, _record: &Record) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn detail(&self) -> Detail {
            self.1
        }
    }

    #[test]
    fn records_above_the_detail_of_the_sink_are_not_built() {
        let count = Arc::default();
        let mut tap = Tap::default();
        tap.set(Some(Box::new(Counting(
            Arc::clone(&count),
            Detail::Metrics,
        ))));
        tap.record_at(Detail::Packets, Time::ZERO, || {
            unreachable!("the sink receives no packets")
        });
        assert!(!tap.wants(Detail::Packets));
        tap.record_at(Detail::Metrics, Time::ZERO, state);
        tap.record(Time::ZERO, state);
        assert_eq!(count.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn guest_is_attached_and_detached_beside_the_sink() {
        let (first, second) = (Arc::default(), Arc::default());
        let mut tap = Tap::default();
        tap.set(Some(Box::new(Counting(Arc::clone(&first), Detail::Events))));
        let guest = Counting(Arc::clone(&second), Detail::Messages);
        tap.set_guest(Some(Box::new(guest)));
        assert!(tap.has_guest() && tap.wants(Detail::Messages));
        tap.record(Time::ZERO, state);
        tap.set_guest(None);
        assert!(!tap.has_guest() && !tap.wants(Detail::Metrics));
        tap.record(Time::ZERO, state);
        let counts = [&first, &second].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(counts, [2, 1]);
        // A second sink without a first one receives records too.
        tap.set(None);
        tap.set_guest(Some(Box::new(Counting(
            Arc::clone(&second),
            Detail::Events,
        ))));
        tap.record(Time::ZERO, state);
        assert_eq!(second.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn only_new_sinks_catch_up() {
        let (first, second) = (Arc::default(), Arc::default());
        let counts =
            || [&first, &second].map(|count: &Arc<AtomicUsize>| count.load(Ordering::Relaxed));
        let facts = || [(Detail::Events, state()), (Detail::Metrics, state())];
        let mut tap = Tap::default();
        tap.catch_up::<0>(Time::ZERO, || unreachable!("no sink is attached"));
        tap.set(Some(Box::new(Counting(Arc::clone(&first), Detail::Events))));
        assert!(tap.are_all_new());
        tap.catch_up(Time::ZERO, facts);
        assert_eq!(counts(), [1, 0]);
        tap.catch_up::<0>(Time::ZERO, || unreachable!("the sink has caught up"));
        let guest = Counting(Arc::clone(&second), Detail::Messages);
        tap.set_guest(Some(Box::new(guest)));
        assert!(!tap.are_all_new());
        tap.catch_up(Time::ZERO, facts);
        assert_eq!(counts(), [1, 2]);
        // A sink that is detached before it has caught up has no further effect.
        tap.set_guest(Some(Box::new(NoSink)));
        tap.set_guest(None);
        tap.catch_up::<0>(Time::ZERO, || unreachable!("there is no new sink"));
    }

    /// A sink whose detail changes after the first call.
    struct ChangingDetail(Arc<AtomicUsize>, AtomicUsize);

    impl Sink for ChangingDetail {
        fn record(&mut self, _now: Time, _record: &Record) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn detail(&self) -> Detail {
            match self.1.fetch_add(1, Ordering::Relaxed) {
                0 => Detail::Metrics,
                _ => Detail::Messages,
            }
        }
    }

    #[test]
    fn detail_of_each_sink_is_read_once() {
        let (first, second) = (Arc::default(), Arc::default());
        let mut tap = Tap::default();
        tap.set(Some(Box::new(ChangingDetail(
            Arc::clone(&first),
            AtomicUsize::new(0),
        ))));
        let guest = Counting(Arc::clone(&second), Detail::Packets);
        tap.set_guest(Some(Box::new(guest)));
        assert!(!tap.wants(Detail::Messages));
        tap.record(Time::ZERO, state);
        for detail in [Detail::Metrics, Detail::Packets, Detail::Messages] {
            tap.record_at(detail, Time::ZERO, state);
        }
        let counts = [&first, &second].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(counts, [2, 3]);
        tap.set_guest(None);
        assert!(tap.wants(Detail::Metrics) && !tap.wants(Detail::Packets));
    }

    #[test]
    fn watch_follows_the_sink() {
        let mut tap = Tap::default();
        let watch = tap.watch();
        assert!(!watch.wants(Detail::Events));
        let sink = |detail| Some(Box::new(Counting(Arc::default(), detail)) as Box<dyn Sink>);
        tap.set(sink(Detail::Metrics));
        let later = tap.watch();
        for watch in [&watch, &later] {
            assert!(watch.wants(Detail::Events) && watch.wants(Detail::Metrics));
            assert!(!watch.wants(Detail::Packets));
        }
        tap.set(sink(Detail::Messages));
        assert!(watch.wants(Detail::Messages));
        tap.set(None);
        assert!(!watch.wants(Detail::Events) && !later.wants(Detail::Events));
    }

    #[test]
    fn tee_has_the_higher_detail() {
        let events = Counting(Arc::default(), Detail::Events);
        let packets = Counting(Arc::default(), Detail::Packets);
        assert_eq!(Tee(events, packets).detail(), Detail::Packets);
        assert_eq!(Tee(NoSink, NoSink).detail(), Detail::Events);
    }

    /// Creates sinks for connections of one side.
    #[derive(Debug)]
    struct OneSide(Side, Arc<AtomicUsize>);

    impl SinkFactory for OneSide {
        fn sink(&self, _id: &ConnectionId, side: Side) -> Option<Box<dyn Sink>> {
            let accepted = side == self.0;
            accepted.then(|| Box::new(counting(&self.1)) as Box<dyn Sink>)
        }
    }

    #[test]
    fn tee_of_factories_omits_connections_that_neither_records() {
        let (first, second) = (Arc::default(), Arc::default());
        let id = ConnectionId::new(&[1; 8]).unwrap();
        let factory = Tee(
            OneSide(Side::Client, Arc::clone(&first)),
            Arc::new(OneSide(Side::Client, Arc::clone(&second))) as Arc<dyn SinkFactory>,
        );
        assert!(factory.sink(&id, Side::Server).is_none());
        let mut sink = factory.sink(&id, Side::Client).unwrap();
        sink.record(Time::ZERO, &state());
        let counts = [&first, &second].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(counts, [1, 1]);
        let one = Tee(
            OneSide(Side::Server, Arc::default()),
            OneSide(Side::Client, first),
        );
        assert!(one.sink(&id, Side::Server).is_some());
    }

    fn state() -> Record {
        Record::StateChanged(StateChanged {
            old: None,
            state: "closing",
        })
    }
}
