//! Handing the stream of a CONNECT from its response to its upgrade.

use std::sync::Arc;
use std::task::{Context, Poll};

use courser_base::foreign::ForeignWaker;
use courser_base::{Held, Mutex};

use super::incoming::Incoming;
use super::outgoing::Outgoing;

/// The two halves of a stream, which an upgrade takes once the response was sent.
#[derive(Debug, Default)]
pub(super) struct Handover(Mutex<Halves>);

#[derive(Debug, Default)]
pub(super) struct Halves {
    pub(super) incoming: Option<Box<Incoming>>,
    pub(super) outgoing: Option<Outgoing>,
    /// True while a task waits for both halves.
    pub(super) is_wanted: bool,
    /// True if the owner of the halves is done, or there will be none.
    pub(super) is_over: bool,
    pub(super) taker: Option<ForeignWaker>,
    /// The task that waits for the end.
    watcher: Option<ForeignWaker>,
}

impl Handover {
    pub(super) fn new(incoming: Box<Incoming>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Halves {
            incoming: Some(incoming),
            ..Halves::default()
        })))
    }

    /// Returns the receiving half, for a reader of the request's body.
    pub(super) fn take_incoming(&self) -> Option<Box<Incoming>> {
        let mut halves = self.lock();
        if halves.is_wanted {
            None
        } else {
            halves.incoming.take()
        }
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.lock().is_wanted
    }

    /// Provides the stream to its taker, because the response was sent.
    pub(super) fn fulfil(&self, outgoing: Outgoing) {
        let mut halves = self.lock();
        if !halves.is_wanted {
            halves.is_over = true;
            drop(halves);
            return drop(outgoing);
        }
        halves.outgoing = Some(outgoing);
        let taker = halves.taker.take();
        drop(halves);
        taker.into_iter().for_each(ForeignWaker::wake);
    }

    /// Ends the upgrade: the stream will have no owner, or has none any more.
    pub(super) fn end(&self) {
        let mut halves = self.lock();
        halves.is_over = true;
        let woken = [halves.taker.take(), halves.watcher.take()];
        drop(halves);
        woken.into_iter().flatten().for_each(ForeignWaker::wake);
    }

    pub(super) fn poll_end(&self, cx: &Context<'_>) -> Poll<()> {
        let waker = ForeignWaker::of(cx);
        let mut halves = self.lock();
        if halves.is_over {
            return Poll::Ready(());
        }
        halves.watcher = Some(waker);
        Poll::Pending
    }

    pub(super) fn lock(&self) -> Held<'_, Halves> {
        self.0.hold()
    }
}
