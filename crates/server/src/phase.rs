//! The phases of a server: running, not ready, draining, cut, ended.

use std::pin::Pin;

use tokio::sync::watch;

/// The phase of a server. Phases only advance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Phase {
    /// All clients are served.
    Running,
    /// All clients are served, but the server reports that it is not ready.
    NotReady,
    /// No new connections are accepted, because another process does or will; open ones continue.
    Retired,
    /// No new connections are accepted; open ones end after their requests.
    Draining,
    /// The remaining connections are aborted.
    Cut,
    /// All connections are over, and the sockets are closed or about to be.
    Ended,
}

/// Announces phases to all parts of a server, and detects when all parts have ended.
#[derive(Clone, Debug)]
pub(super) struct Phases {
    phase: watch::Sender<Phase>,
    /// Carries no values; its receivers show whether any part is left.
    parts: watch::Sender<()>,
}

impl Phases {
    pub(super) fn new() -> Self {
        Self {
            phase: watch::Sender::new(Phase::Running),
            parts: watch::Sender::new(()),
        }
    }

    /// Advances to a later phase. An earlier phase has no effect.
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

    /// Creates a part of the server, for which [`Phases::all_ended`] waits.
    pub(super) fn part(&self) -> Part {
        Part {
            phase: self.phase.subscribe(),
            _here: self.parts.subscribe(),
        }
    }

    /// Waits until all parts are dropped.
    pub(super) async fn all_ended(&self) {
        self.parts.closed().await;
    }

    /// Waits for a phase without counting as a part.
    pub(super) async fn reached(&self, target: Phase) {
        // Cannot fail, because `self` holds the sender.
        let _ = self.phase.subscribe().wait_for(|now| *now >= target).await;
    }
}

/// A part of the server that must end before the server has ended: a listener, a connection, or a socket.
#[derive(Clone, Debug)]
pub(super) struct Part {
    phase: watch::Receiver<Phase>,
    _here: watch::Receiver<()>,
}

impl Part {
    /// Waits for a phase or a later one.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn reached(&mut self, phase: Phase) {
        // Fails if the server is gone.
        let _ = self.phase.wait_for(|now| *now >= phase).await;
    }

    /// Like [`reached`](Self::reached), but boxed and owned.
    pub(super) fn will_reach(mut self, phase: Phase) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { self.reached(phase).await })
    }

    pub(super) fn is_draining(&self) -> bool {
        *self.phase.borrow() >= Phase::Draining
    }
}
