//! Notifications of tasks that become ready while their machine rests.
//!
//! A world runs a machine when a packet arrives or a timer is due. Tasks of two machines may also
//! share a channel, as tests do to synchronise. Then a task of one machine makes a task of another
//! one ready, and the world has to be notified.

use std::sync::Arc;

use courser_base::Mutex;

use crate::world::NodeId;

/// The bells of a world: the machines that have rung.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bells(Arc<Mutex<Vec<NodeId>>>);

impl Bells {
    /// Returns the bell of one machine.
    pub(crate) fn bell(&self, id: NodeId) -> Bell {
        Bell {
            id,
            bells: self.clone(),
        }
    }

    /// Takes the machines that have rung, in order. A machine may be listed more than once, or
    /// although its tasks have been polled since.
    pub(crate) fn take(&self) -> Vec<NodeId> {
        std::mem::take(&mut self.0.lock())
    }

    fn ring(&self, id: NodeId) {
        let mut rung = self.0.lock();
        rung.push(id);
    }
}

/// The bell of one machine.
#[derive(Clone, Debug)]
pub(crate) struct Bell {
    id: NodeId,
    bells: Bells,
}

impl Bell {
    pub(crate) fn ring(&self) {
        self.bells.ring(self.id);
    }
}
