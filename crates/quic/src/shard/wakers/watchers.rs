//! Tasks that watch streams on which other tasks may write.

use std::collections::BTreeMap;
use std::task::Waker;

use courser_base::foreign::ForeignWaker;
use courser_wire::StreamId;

use crate::error::WriteError;

/// Identifies a task among those that watch one stream.
pub(crate) type Watch = (StreamId, u64);

/// The tasks that watch the streams of one connection.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    /// Numbers of bytes whose acknowledgement tasks wait for, and the results.
    acks: BTreeMap<Watch, (u64, Ack)>,
    /// Tasks that wait until the writer of a stream waits.
    blocked: BTreeMap<Watch, ForeignWaker>,
    /// Streams with a deadline whose handles exist, and whether it passed.
    deadlines: BTreeMap<StreamId, bool>,
    next: u64,
}

#[derive(Debug)]
enum Ack {
    Awaited(Option<ForeignWaker>),
    Known(Result<(), WriteError>),
}

impl Watchers {
    fn watch(&mut self, id: StreamId) -> Watch {
        self.next += 1;
        (id, self.next)
    }

    pub(super) fn await_acked(&mut self, id: StreamId, len: u64) -> Watch {
        let watch = self.watch(id);
        self.acks.insert(watch, (len, Ack::Awaited(None)));
        watch
    }

    pub(super) fn acked(
        &mut self,
        watch: Watch,
        waker: ForeignWaker,
    ) -> Option<Result<(), WriteError>> {
        match &mut self.acks.get_mut(&watch)?.1 {
            Ack::Known(result) => Some(result.clone()),
            Ack::Awaited(known) => {
                *known = Some(waker);
                None
            }
        }
    }

    pub(super) fn next_awaited(&self, id: StreamId) -> Option<u64> {
        let acks = self.acks.range((id, 0)..=(id, u64::MAX));
        let awaited = acks.filter(|(_, (_, ack))| matches!(ack, Ack::Awaited(_)));
        awaited.map(|(_, (len, _))| *len).min()
    }

    /// Sets the result of all watches of a stream for which `applies` accepts the number of bytes.
    pub(super) fn settle_if(
        &mut self,
        id: StreamId,
        applies: impl Fn(u64) -> bool,
        result: &Result<(), WriteError>,
        woken: &mut Vec<Waker>,
    ) {
        for (_, (len, ack)) in self.acks.range_mut((id, 0)..=(id, u64::MAX)) {
            if applies(*len)
                && let Ack::Awaited(waker) = ack
            {
                woken.extend(waker.take().map(ForeignWaker::into_inner));
                *ack = Ack::Known(result.clone());
            }
        }
    }

    pub(super) fn wait_for_blocked(
        &mut self,
        id: StreamId,
        watch: Option<Watch>,
        waker: ForeignWaker,
    ) -> Watch {
        let watch = watch.unwrap_or_else(|| self.watch(id));
        self.blocked.insert(watch, waker);
        watch
    }

    pub(super) fn wake_blocked(&mut self, id: StreamId, woken: &mut Vec<Waker>) {
        while let Some(watch) = self.blocked.range((id, 0)..=(id, u64::MAX)).next() {
            let watch = *watch.0;
            woken.extend(self.blocked.remove(&watch).map(ForeignWaker::into_inner));
        }
    }

    pub(super) fn await_deadline(&mut self, id: StreamId) {
        self.deadlines.insert(id, false);
    }

    pub(super) fn on_expired(&mut self, id: StreamId) {
        if let Some(has_passed) = self.deadlines.get_mut(&id) {
            *has_passed = true;
        }
    }

    pub(super) fn has_expired(&self, id: StreamId) -> bool {
        self.deadlines.get(&id) == Some(&true)
    }

    pub(super) fn forget_deadline(&mut self, id: StreamId) {
        self.deadlines.remove(&id);
    }

    pub(super) fn forget(&mut self, watch: Watch) {
        self.acks.remove(&watch);
        self.blocked.remove(&watch);
    }

    pub(super) fn wake_all(&mut self, woken: &mut Vec<Waker>) {
        let blocked = std::mem::take(&mut self.blocked).into_values();
        woken.extend(blocked.map(ForeignWaker::into_inner));
        for (_, ack) in self.acks.values_mut() {
            if let Ack::Awaited(waker) = ack {
                woken.extend(waker.take().map(ForeignWaker::into_inner));
            }
        }
    }
}
