//! The phases of a server: it runs, drains, and aborts the rest.

use std::pin::Pin;

use tokio::sync::watch;

/// The phase of a server's life. Phases only advance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Phase {
    /// All clients are served.
    Running,
    /// As before, but the server reports that it is not ready.
    NotReady,
    /// No new connections are accepted; open ones end with their requests.
    Draining,
    /// The remaining connections are aborted.
    Cut,
}

/// Announces phases to all parts of a server, and detects when no part is left.
#[derive(Clone, Debug)]
pub(super) struct Conductor {
    phase: watch::Sender<Phase>,
    /// Carries no values: its receivers show whether any part is left.
    parts: watch::Sender<()>,
}

impl Conductor {
    pub(super) fn new() -> Self {
        Self {
            phase: watch::Sender::new(Phase::Running),
            parts: watch::Sender::new(()),
        }
    }

    /// Advances to a later phase; an earlier one has no effect.
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

    /// Returns a part of the server, for which [`Conductor::all_gone`] waits.
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

    /// Waits for a phase without counting as a part.
    pub(super) async fn reached(&self, wanted: Phase) {
        // The sender exists.
        let _ = self.phase.subscribe().wait_for(|now| *now >= wanted).await;
    }
}

/// A part that must end before the server has ended: a listener, a connection, or its socket.
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
        // Without a sender the server is gone.
        let _ = self.phase.wait_for(|now| *now >= phase).await;
    }

    /// Waits for a phase like [`reached`](Self::reached), boxed and without the borrow.
    pub(super) fn will_reach(mut self, phase: Phase) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { self.reached(phase).await })
    }

    pub(super) fn is_draining(&self) -> bool {
        *self.phase.borrow() >= Phase::Draining
    }
}
