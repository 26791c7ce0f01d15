//! One virtual socket: what it has received, and who waits for it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::task::Waker;

use courser::Counters;
use courser::runtime::{PacketTooBig, Received};

use crate::packet::Packet;

/// Bytes that a waiting datagram counts on top of its payload, much as kernels do: a flood of
/// empty ones is bounded too.
pub(super) const UPKEEP: usize = 256;

/// Most datagrams that are handed out as one batch, as Linux does.
const MAX_BATCH: usize = 64;

/// Words of routers that a socket keeps, as on Linux.
const MAX_NEWS: usize = 64;

/// A bound socket.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) local: SocketAddr,
    pub(super) counters: Counters,
    queue: VecDeque<Packet>,
    held: usize,
    capacity: usize,
    news: VecDeque<PacketTooBig>,
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
            news: VecDeque::new(),
            receiver: None,
            sender: None,
        }
    }

    pub(super) fn is_readable(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Keeps what a router said; the newest push out the oldest.
    pub(super) fn hear(&mut self, news: PacketTooBig) {
        if self.news.len() >= MAX_NEWS {
            self.news.pop_front();
        }
        self.news.push_back(news);
    }

    pub(super) fn take_news(&mut self) -> Option<PacketTooBig> {
        self.news.pop_front()
    }

    /// Keeps a datagram until it is read. False when there is no room for it.
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

    /// Moves the next batch into `buffer`: datagrams that arrived one after the other, alike in
    /// addresses, mark and length, the last one shorter perhaps. That is how kernels merge them.
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

    /// The next datagram, if it continues a batch that began with `first`.
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
