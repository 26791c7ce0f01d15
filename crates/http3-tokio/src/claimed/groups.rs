//! The queues of all groups of extensions.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use courser_http3::{Extensions, Group};

use super::Queue;
use super::sessions::Sessions;

/// What the implementation of an extension keeps for a connection.
type State = OnceLock<Arc<dyn Any + Send + Sync>>;

/// The queues of a connection by group. Without extensions it needs no memory.
#[derive(Debug)]
pub(crate) struct Groups(Box<[Queues]>);

#[derive(Debug)]
struct Queues {
    queue: Queue,
    sessions: Option<Box<Sessions>>,
    state: State,
}

impl Groups {
    pub(crate) fn of(extensions: &Extensions) -> Self {
        let queues = extensions.groups().map(|group| Queues {
            queue: Queue::default(),
            sessions: extensions.session_codes(group).map(|_| Box::default()),
            state: OnceLock::new(),
        });
        Self(queues.collect())
    }

    /// Returns the queue of a group, or `None` on a connection without extensions.
    pub(crate) fn queue(&self, group: Group) -> Option<&Queue> {
        self.0.get(group.index()).map(|queues| &queues.queue)
    }

    /// Returns the sessions of a group whose streams are delivered by session.
    pub(crate) fn sessions(&self, group: Group) -> Option<&Sessions> {
        self.0.get(group.index())?.sessions.as_deref()
    }

    /// Returns the state that the implementation of a group keeps.
    pub(crate) fn state(&self, group: Group) -> Option<&State> {
        self.0.get(group.index()).map(|queues| &queues.state)
    }

    /// Drops the streams of a closed connection. Frames that have arrived can still be taken.
    pub(crate) fn on_end(&self) {
        for queues in &self.0 {
            queues.queue.on_end();
            queues
                .sessions
                .iter()
                .for_each(|sessions| sessions.on_end());
        }
    }
}
