//! A virtual socket: the datagrams it has received, and the tasks that wait for it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::task::Waker;

use courser::Counters;
use courser::runtime::{PacketTooBig, Received};

use crate::packet::Packet;

/// The bytes that a waiting datagram counts on top of its payload, similar to kernels, so that a
/// flood of empty ones is bounded too.
pub(super) const UPKEEP: usize = 256;

/// The largest number of datagrams in one batch, as on Linux.
const MAX_BATCH: usize = 64;

/// The largest number of ICMP reports in the error queue of a socket, as on Linux.
const MAX_REPORTS: usize = 64;

/// A bound socket.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) local: SocketAddr,
    pub(super) counters: Counters,
    queue: VecDeque<Packet>,
    held: usize,
    capacity: usize,
    reports: VecDeque<PacketTooBig>,
    pub(super) receiver: Option<Waker>,
    pub(super) sender: Option<Waker>,
}

impl Bound {
    pub(super) fn new(local: SocketAddr, capacity: usize) -> Self {
        Self {
            local,
            counters: Counters::default(),
            queue: VecDeque::new(),
            held: 0,
            capacity,
            reports: VecDeque::new(),
            receiver: None,
            sender: None,
        }
    }

    pub(super) fn is_readable(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Stores an ICMP report. At the limit it replaces the oldest one.
    pub(super) fn store_report(&mut self, report: PacketTooBig) {
        if self.reports.len() >= MAX_REPORTS {
            self.reports.pop_front();
        }
        self.reports.push_back(report);
    }

    pub(super) fn take_report(&mut self) -> Option<PacketTooBig> {
        self.reports.pop_front()
    }

    /// Stores a datagram until it is read. Returns false if there is no room.
    #[must_use]
    pub(super) fn keep(&mut self, packet: Packet) -> bool {
        let cost = packet.payload.len() + UPKEEP;
        if self.held + cost > self.capacity {
            return false;
        }
        self.held += cost;
        self.queue.push_back(packet);
        true
    }

    /// Moves the next batch into `buffer`: consecutive datagrams with equal addresses, mark and
    /// length, of which the last one may be shorter. Kernels merge datagrams in the same way.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Option<Received> {
        let first = self.pop()?;
        let segment_size = first.payload.len();
        let fitting = segment_size.min(buffer.len());
        buffer[..fitting].copy_from_slice(&first.payload[..fitting]);
        let mut received = Received {
            len: fitting,
            segment_size: segment_size.max(1),
            peer: first.source,
            local: Some(first.destination.ip()),
            ecn: first.ecn,
            truncated: fitting < segment_size,
        };
        let mut last_len = segment_size;
        let mut count = 1;
        while count < MAX_BATCH && last_len == segment_size && segment_size > 0 {
            let room = buffer.len() - received.len;
            let Some(next) = self.pop_like(&first, segment_size.min(room)) else {
                break;
            };
            last_len = next.payload.len();
            buffer[received.len..][..last_len].copy_from_slice(&next.payload);
            received.len += last_len;
            count += 1;
        }
        self.counters.receive_calls += 1;
        self.counters.received_datagrams += count as u64;
        self.counters.received_bytes += received.len as u64;
        Some(received)
    }

    /// Returns the next datagram if it continues a batch that starts with `first`.
    fn pop_like(&mut self, first: &Packet, max_len: usize) -> Option<Packet> {
        let next = self.queue.front()?;
        let is_alike = next.source == first.source
            && next.destination == first.destination
            && next.ecn == first.ecn
            && (1..=max_len).contains(&next.payload.len());
        if is_alike { self.pop() } else { None }
    }

    fn pop(&mut self) -> Option<Packet> {
        let packet = self.queue.pop_front()?;
        self.held -= packet.payload.len() + UPKEEP;
        Some(packet)
    }
}
