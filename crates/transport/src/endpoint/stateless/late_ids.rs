//! Connection IDs that peers have retired recently.

use std::collections::VecDeque;

use courser_wire::ConnectionId;

/// The connection IDs that peers retired last.
///
/// The packets of a client that changes its port can be in two queues of the kernel, so that
/// RETIRE_CONNECTION_ID may be read before older packets with that ID. The connection still exists, so these
/// late packets must not get a stateless reset.
#[derive(Debug, Default)]
pub struct LateIds(VecDeque<ConnectionId>);

impl LateIds {
    /// Adds an ID that a peer has retired.
    pub fn insert(&mut self, id: ConnectionId) {
        if self.0.len() == MAX_IDS {
            self.0.pop_front();
        }
        self.0.push_back(id);
    }

    /// Returns true if a packet with the ID is late.
    pub fn contains(&self, id: &ConnectionId) -> bool {
        self.0.contains(id)
    }
}

/// Maximum number of stored IDs (limit K321).
const MAX_IDS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_retired_ids_are_remembered() {
        let id = |number: usize| {
            let bytes = number.to_be_bytes();
            ConnectionId::new(&bytes).expect("8 bytes")
        };
        let mut late = LateIds::default();
        (0..=MAX_IDS).for_each(|number| late.insert(id(number)));
        assert!(!late.contains(&id(0)));
        assert!((1..=MAX_IDS).all(|number| late.contains(&id(number))));
        assert_eq!(late.0.len(), MAX_IDS);
    }
}
