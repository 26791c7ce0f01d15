//! Notifications about tasks that become ready while their machine does not run.
//!
//! A world runs a machine when a packet arrives or a timer is due. Tasks of two machines may also
//! share a channel, as tests do to synchronise. Then a task of one machine makes a task of another
//! machine ready, and the world has to run that machine.

use std::sync::Arc;

use courser_base::Mutex;

use crate::world::NodeId;

/// The machines of a world that have reported ready tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notifiers(Arc<Mutex<Vec<NodeId>>>);

impl Notifiers {
    /// Returns the notifier of one machine.
    pub(crate) fn notifier(&self, id: NodeId) -> Notifier {
        Notifier {
            id,
            notifiers: self.clone(),
        }
    }

    /// Removes and returns the machines with ready tasks, in order. A machine may be listed more
    /// than once, or although its tasks have been polled since.
    pub(crate) fn take(&self) -> Vec<NodeId> {
        std::mem::take(&mut self.0.lock())
    }

    fn notify(&self, id: NodeId) {
        let mut notified = self.0.lock();
        notified.push(id);
    }
}

/// Reports to the world that a machine has ready tasks.
#[derive(Clone, Debug)]
pub(crate) struct Notifier {
    id: NodeId,
    notifiers: Notifiers,
}

impl Notifier {
    pub(crate) fn notify(&self) {
        self.notifiers.notify(self.id);
    }
}
