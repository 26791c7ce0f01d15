//! A queue of packets with a limit.

use std::collections::VecDeque;

use courser_base::Time;

use crate::packet::Packet;

/// A packet inside a hop, with its number in this hop.
#[derive(Clone, Debug)]
pub(super) struct Numbered {
    pub(super) index: u64,
    pub(super) packet: Packet,
}

/// The limit of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Limit {
    Bytes(u64),
    Packets(u64),
}

/// A FIFO queue of packets.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: u64,
    limit: Limit,
}

/// A packet in the queue with the time of its arrival.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) since: Time,
    pub(super) size: u64,
    pub(super) numbered: Numbered,
}

impl Queue {
    pub(super) fn new(limit: Limit) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            limit,
        }
    }

    pub(super) fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    /// Returns true if the queue has room for a packet of `size` bytes.
    pub(super) fn has_room(&self, size: u64) -> bool {
        match self.limit {
            Limit::Bytes(limit) => self.bytes + size <= limit,
            Limit::Packets(limit) => self.packets() < limit,
        }
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        self.bytes += waiting.size;
        self.waiting.push_back(waiting);
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let head = self.waiting.pop_front()?;
        self.bytes -= head.size;
        Some(head)
    }

    /// Returns the time at which the head entered the queue.
    pub(super) fn head_since(&self) -> Option<Time> {
        self.waiting.front().map(|head| head.since)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn packets(&self) -> u64 {
        self.waiting.len() as u64
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}
