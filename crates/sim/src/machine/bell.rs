//! Word from a machine at rest that a task of it is ready.
//!
//! A world calls a machine when a packet has come or a timer is due. Tasks of two machines may
//! share a channel too, as tests do to agree on something: then one machine's task makes
//! another machine's task ready, and the world has to hear of it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::world::NodeId;

/// All bells of a world: which machines have rung.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bells(Arc<Mutex<Vec<NodeId>>>);

impl Bells {
    /// The bell of one machine.
    pub(crate) fn bell(&self, id: NodeId) -> Bell {
        Bell {
            id,
            bells: self.clone(),
        }
    }

    /// Takes those who have rung, in order. One may be there more than once, and one whose tasks
    /// were polled since.
    pub(crate) fn take(&self) -> Vec<NodeId> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn ring(&self, id: NodeId) {
        let mut rung = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
