//! Connection IDs that peers have retired lately.

use std::collections::VecDeque;

use courser_wire::ConnectionId;

/// The connection IDs that peers retired last.
///
/// The packets of a client that changes its port can be in two queues of the kernel, and RETIRE_CONNECTION_ID may be
/// read before older packets with that ID. They are late. Their connection is not lost, so a stateless reset would be
/// wrong.
#[derive(Debug, Default)]
pub struct LateIds(VecDeque<ConnectionId>);

impl LateIds {
    /// Takes an ID that a peer has retired.
    pub fn insert(&mut self, id: ConnectionId) {
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(id);
    }

    /// Returns true if a packet with the ID is late.
    pub fn contains(&self, id: &ConnectionId) -> bool {
        self.0.contains(id)
    }
}

/// Retired IDs that are remembered (limit K321).
const MOST: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_remembered() {
        let id = |number: usize| {
            let bytes = number.to_be_bytes();
            ConnectionId::new(&bytes).expect("8 bytes")
        };
        let mut late = LateIds::default();
        (0..=MOST).for_each(|number| late.insert(id(number)));
        assert!(!late.contains(&id(0)));
        assert!((1..=MOST).all(|number| late.contains(&id(number))));
        assert_eq!(late.0.len(), MOST);
    }
}
