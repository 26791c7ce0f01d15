//! Counts and reports datagrams that were dropped, acknowledged or lost.

use super::Datagrams;
use super::event::{DatagramEvent, DatagramFate, DatagramId};
use super::queue::Outgoing;

impl Datagrams {
    pub(super) fn give_up(&mut self, datagram: &Outgoing, fate: DatagramFate) {
        match fate {
            DatagramFate::Expired => self.counters.expired += 1,
            _ => self.counters.unsent_dropped += 1,
        }
        if let Some(id) = datagram.id {
            self.events.push_back(DatagramEvent::Fate { id, fate });
        }
    }

    /// Counts datagrams whose packets were acknowledged.
    pub(crate) fn on_acked(&mut self, count: u8) {
        self.counters.acked += u64::from(count);
    }

    /// Reports that the packet with this datagram was acknowledged.
    pub(crate) fn on_tracked_acked(&mut self, id: DatagramId) {
        self.counters.acked += 1;
        let fate = DatagramFate::Acked;
        self.events.push_back(DatagramEvent::Fate { id, fate });
    }

    /// Counts datagrams whose packets were lost.
    pub(crate) fn on_lost(&mut self, count: u8) {
        self.counters.lost += u64::from(count);
    }

    /// Reports that the packet with this datagram was lost.
    pub(crate) fn on_tracked_lost(&mut self, id: DatagramId) {
        self.counters.lost += 1;
        let fate = DatagramFate::Lost;
        self.events.push_back(DatagramEvent::Fate { id, fate });
    }
}
