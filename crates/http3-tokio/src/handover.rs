//! Passing the stream of a CONNECT from its response to its upgrade.

use std::sync::Arc;
use std::task::{Context, Poll};

use courser_base::foreign::ForeignWaker;
use courser_base::{Held, Mutex};

use super::incoming::Incoming;
use super::outgoing::Outgoing;

/// The two directions of a stream, which an upgrade takes once the response is sent.
#[derive(Debug, Default)]
pub(super) struct Handover(Mutex<Halves>);

#[derive(Debug, Default)]
pub(super) struct Halves {
    pub(super) incoming: Option<Box<Incoming>>,
    pub(super) outgoing: Option<Outgoing>,
    /// True while a task waits for both directions.
    pub(super) is_requested: bool,
    /// True if the stream will have no owner, or has none any longer.
    pub(super) has_ended: bool,
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

    /// Returns the receiving direction, for a reader of the request body.
    pub(super) fn take_incoming(&self) -> Option<Box<Incoming>> {
        let mut halves = self.lock();
        if halves.is_requested {
            None
        } else {
            halves.incoming.take()
        }
    }

    pub(super) fn is_requested(&self) -> bool {
        self.lock().is_requested
    }

    /// Provides the stream to the upgrade, because the response is sent.
    pub(super) fn fulfil(&self, outgoing: Outgoing) {
        let mut halves = self.lock();
        if !halves.is_requested {
            halves.has_ended = true;
            drop(halves);
            return drop(outgoing);
        }
        halves.outgoing = Some(outgoing);
        let taker = halves.taker.take();
        drop(halves);
        taker.into_iter().for_each(ForeignWaker::wake);
    }

    /// Ends the upgrade, because the stream has no owner.
    pub(super) fn end(&self) {
        let mut halves = self.lock();
        halves.has_ended = true;
        let woken = [halves.taker.take(), halves.watcher.take()];
        drop(halves);
        woken.into_iter().flatten().for_each(ForeignWaker::wake);
    }

    pub(super) fn poll_end(&self, cx: &Context<'_>) -> Poll<()> {
        let waker = ForeignWaker::of(cx);
        let mut halves = self.lock();
        if halves.has_ended {
            return Poll::Ready(());
        }
        halves.watcher = Some(waker);
        Poll::Pending
    }

    pub(super) fn lock(&self) -> Held<'_, Halves> {
        self.0.hold()
    }
}
