//! A server's life: it runs, drains, and cuts off what is left.

use std::pin::Pin;

use tokio::sync::watch;

/// Where a server is in its life. There is no way back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Phase {
    /// Everybody is served.
    Running,
    /// As before, but whoever asks is told to send nobody any more.
    NotReady,
    /// No new connections; those that are there end with their requests.
    Draining,
    /// What is left is cut.
    Cut,
}

/// Tells everybody. Knows when nobody is left.
#[derive(Clone, Debug)]
pub(super) struct Conductor {
    phase: watch::Sender<Phase>,
    /// Nothing is ever said here: it tells whether anybody listens.
    parts: watch::Sender<()>,
}

impl Conductor {
    pub(super) fn new() -> Self {
        Self {
            phase: watch::Sender::new(Phase::Running),
            parts: watch::Sender::new(()),
        }
    }

    /// Moves on to a later phase; to an earlier one it does nothing.
    pub(super) fn enter(&self, phase: Phase) {
        self.phase.send_if_modified(|now| {
            let is_later = phase > *now;
            *now = phase.max(*now);
            is_later
        });
    }

    pub(super) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// A part of the server: [`Conductor::all_gone`] waits for it.
    pub(super) fn part(&self) -> Part {
        Part {
            phase: self.phase.subscribe(),
            _here: self.parts.subscribe(),
        }
    }

    /// Waits until all parts are dropped.
    pub(super) async fn all_gone(&self) {
        self.parts.closed().await;
    }

    /// Waits for a phase without being a part.
    pub(super) async fn reached(&self, wanted: Phase) {
        // The sender is here.
        let _ = self.phase.subscribe().wait_for(|now| *now >= wanted).await;
    }
}

/// Whatever has to end before the server has: a listener, a connection, its socket.
#[derive(Clone, Debug)]
pub(super) struct Part {
    phase: watch::Receiver<Phase>,
    _here: watch::Receiver<()>,
}

impl Part {
    /// Waits for a phase.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn reached(&mut self, phase: Phase) {
        // Without a sender the server is gone altogether.
        let _ = self.phase.wait_for(|now| *now >= phase).await;
    }

    /// The same in a box, and without the borrow.
    pub(super) fn will_reach(mut self, phase: Phase) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { self.reached(phase).await })
    }

    pub(super) fn is_draining(&self) -> bool {
        *self.phase.borrow() >= Phase::Draining
    }
}
