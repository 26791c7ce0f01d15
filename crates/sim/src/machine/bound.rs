//! A virtual socket: the datagrams it has received, and the tasks that wait for it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::task::Waker;

use courser::Counters;
use courser::runtime::{PacketTooBig, Received};

use crate::packet::Packet;

/// The bytes that a queued datagram counts in addition to its payload, as in kernels, so that the
/// number of empty datagrams is bounded too.
pub(super) const DATAGRAM_OVERHEAD: usize = 256;

/// Maximum number of datagrams in one batch, as on Linux.
const MAX_BATCH: usize = 64;

/// Maximum number of ICMP reports in the error queue of a socket, as on Linux.
const MAX_REPORTS: usize = 64;

/// A bound socket, with its receive queue and the wakers of its tasks.
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

    /// Queues a datagram. Returns false if the receive buffer is full.
    #[must_use]
    pub(super) fn enqueue(&mut self, packet: Packet) -> bool {
        let cost = packet.payload.len() + DATAGRAM_OVERHEAD;
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
            let Some(next) = self.pop_matching(&first, segment_size.min(room)) else {
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

    /// Removes and returns the next datagram if it continues a batch that starts with `first`.
    fn pop_matching(&mut self, first: &Packet, max_len: usize) -> Option<Packet> {
        let next = self.queue.front()?;
        let matches = next.source == first.source
            && next.destination == first.destination
            && next.ecn == first.ecn
            && (1..=max_len).contains(&next.payload.len());
        if matches { self.pop() } else { None }
    }

    fn pop(&mut self) -> Option<Packet> {
        let packet = self.queue.pop_front()?;
        self.held -= packet.payload.len() + DATAGRAM_OVERHEAD;
        Some(packet)
    }
}
