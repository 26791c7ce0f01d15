//! The part of an IP tunnel that both ends share: packets are judged on their way in and out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::{BufMut as _, Bytes, BytesMut};
use courser_base::{Mutex, Time};
use courser_masque::Prefix;
use courser_masque::datagram::{self, PREFIX, PREFIX_LEN};
use courser_masque::ip::{
    AddressRange, End, Header, IcmpLimit, Reason, Rejected, icmp, packet::lower_hop_limit,
};
use courser_quic::runtime;
use tokio::sync::watch::Sender;

use super::stats::IpTunnelStats;
use crate::tunnel::{Ended, Tunnel};

/// One end of an IP tunnel. Clones share it.
#[derive(Clone)]
pub(crate) struct Core {
    pub(crate) tunnel: Tunnel,
    pub(crate) shared: Arc<Shared>,
}

/// The state of an end, which exists before its tunnel.
pub(crate) struct Shared {
    pub(super) end: Mutex<End>,
    pub(super) assigned: Sender<Vec<Prefix>>,
    pub(super) routes: Sender<Vec<AddressRange>>,
    answers: Mutex<Answers>,
    begin: Instant,
    counters: Counters,
}

/// ICMP messages of this end.
#[derive(Debug, Default)]
struct Answers {
    limit: IcmpLimit,
    /// Those about packets that were to be sent, for the receiver at this end.
    local: VecDeque<Bytes>,
}

#[derive(Debug, Default)]
struct Counters {
    received: AtomicU64,
    malformed: AtomicU64,
    source: AtomicU64,
    destination: AtomicU64,
    hop_limit: AtomicU64,
    too_big: AtomicU64,
    scope: AtomicU64,
    icmp: AtomicU64,
}

impl Shared {
    pub(crate) fn new(end: End) -> Arc<Self> {
        Arc::new(Self {
            end: Mutex::new(end),
            assigned: Sender::new(Vec::new()),
            routes: Sender::new(Vec::new()),
            answers: Mutex::default(),
            begin: runtime::now(),
            counters: Counters::default(),
        })
    }

    fn count(&self, reason: Reason) {
        let counters = &self.counters;
        let counter = match reason {
            Reason::Malformed(_) => &counters.malformed,
            Reason::Source(_) | Reason::Quote => &counters.source,
            Reason::Destination(_) | Reason::Prohibited(_) => &counters.destination,
            Reason::HopLimit => &counters.hop_limit,
            Reason::TooBig { .. } => &counters.too_big,
            _ => &counters.scope,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// Returns the ICMP error about a packet that was rejected, if one may be sent now.
    fn error(&self, rejected: &Rejected, packet: &[u8]) -> Option<Bytes> {
        let kind = rejected.icmp?;
        let is_ipv4 = packet.first()? >> 4 == 4;
        let router = self.end.lock().router(is_ipv4)?;
        let error = icmp::error(kind, router, packet)?;
        self.may_answer().then(|| error.into())
    }

    fn may_answer(&self) -> bool {
        let now = Time::ZERO + (runtime::now() - self.begin);
        let is_allowed = self.answers.lock().limit.take(now);
        if is_allowed {
            self.counters.icmp.fetch_add(1, Relaxed);
        }
        is_allowed
    }
}

impl Core {
    /// Sends packets, and empties the list. Returns the number of those that were sent.
    pub(crate) fn send(&self, packets: &mut Vec<Bytes>) -> Result<usize, Ended> {
        if let Some(end) = self.tunnel.ended() {
            packets.clear();
            return Err(end);
        }
        let mut rejections = Vec::new();
        let mut datagrams = self.encode(packets, &mut rejections);
        let sent = self.tunnel.send(&mut datagrams);
        for (index, rejected) in &rejections {
            self.shared.count(rejected.reason);
            if let Some(answer) = self.shared.error(rejected, &packets[*index]) {
                self.answer_here(answer);
            }
        }
        packets.clear();
        sent
    }

    /// Sends a packet.
    ///
    /// # Errors
    /// Returns the reason why it was dropped.
    pub(crate) fn send_one(&self, packet: Bytes) -> Result<Result<usize, Ended>, Reason> {
        if let Some(end) = self.tunnel.ended() {
            return Ok(Err(end));
        }
        let mut packets = vec![packet];
        let mut rejections = Vec::new();
        let mut datagrams = self.encode(&packets, &mut rejections);
        let Some((_, rejected)) = rejections.pop() else {
            return Ok(self.tunnel.send(&mut datagrams));
        };
        self.shared.count(rejected.reason);
        if let Some(answer) = self.shared.error(&rejected, &packets.remove(0)) {
            self.answer_here(answer);
        }
        Err(rejected.reason)
    }

    /// Returns the datagrams of packets that may pass, as parts of one allocation.
    fn encode(&self, packets: &[Bytes], rejections: &mut Vec<(usize, Rejected)>) -> Vec<Bytes> {
        let max = self.tunnel.max_size();
        let end = self.shared.end.lock();
        let mut lens = Vec::with_capacity(packets.len());
        let room = packets.iter().map(|packet| packet.len() + PREFIX_LEN).sum();
        let mut all = BytesMut::with_capacity(room);
        for (index, packet) in packets.iter().enumerate() {
            match judge_outgoing(&end, packet, max) {
                Ok(_) => {
                    all.put_u8(PREFIX);
                    let begin = all.len();
                    all.extend_from_slice(packet);
                    if end.lowers_hop_limit() {
                        lower_hop_limit(&mut all[begin..]);
                    }
                    lens.push(packet.len() + PREFIX_LEN);
                }
                Err(rejected) => rejections.push((index, rejected)),
            }
        }
        drop(end);
        let mut all = all.freeze();
        lens.into_iter().map(|len| all.split_to(len)).collect()
    }

    /// Keeps an ICMP message for the receiver at this end.
    fn answer_here(&self, message: Bytes) {
        let mut answers = self.shared.answers.lock();
        if answers.local.len() < ANSWERS {
            answers.local.push_back(message);
        }
        drop(answers);
        self.tunnel.wake_receiver();
    }

    /// Sends the ICMP error about a received packet, if there is one, and counts the packet.
    pub(crate) fn reject(&self, rejected: &Rejected, packet: &[u8]) {
        self.shared.count(rejected.reason);
        if let Some(error) = self.shared.error(rejected, packet) {
            self.answer_there(&error);
        }
    }

    /// Sends a message of this end itself. The end of the tunnel is noticed elsewhere.
    fn answer_there(&self, message: &[u8]) {
        let _ = self.tunnel.send(&mut vec![datagram::encode(message)]);
    }

    /// Polls for packets that may pass, and appends up to `limit` of them. Messages of this end go to `answers`. At least
    /// one of both has more then.
    pub(crate) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        packets: &mut Vec<Bytes>,
        answers: &mut Vec<Bytes>,
        limit: usize,
    ) -> Poll<Result<(), Ended>> {
        let begin = packets.len();
        for _ in 0..TURN {
            if self.take_answers(answers, limit) {
                return Poll::Ready(Ok(()));
            }
            let polled = self.tunnel.poll_receive(cx, packets, limit);
            if polled.is_pending() && self.take_answers(answers, limit) {
                return Poll::Ready(Ok(())); // They came before the waker was known.
            }
            ready!(polled)?;
            self.judge_received(packets, begin);
            if packets.len() > begin {
                return Poll::Ready(Ok(()));
            }
        }
        // Nothing but packets that may not pass: other tasks have their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn take_answers(&self, out: &mut Vec<Bytes>, limit: usize) -> bool {
        let mut answers = self.shared.answers.lock();
        let count = answers.local.len().min(limit);
        out.extend(answers.local.drain(..count));
        count > 0
    }

    /// Removes received packets that may not pass, and answers them.
    fn judge_received(&self, packets: &mut Vec<Bytes>, begin: usize) {
        let mut rejections = Vec::new();
        let end = self.shared.end.lock();
        let mut kept = begin;
        for index in begin..packets.len() {
            let packet = std::mem::take(&mut packets[index]);
            match end.judge_incoming(&packet) {
                Ok(_) => {
                    packets[kept] = packet;
                    kept += 1;
                }
                Err(rejected) => {
                    let echo = end.echo_of_link(&packet);
                    rejections.push((packet, rejected, echo));
                }
            }
        }
        drop(end);
        packets.truncate(kept);
        let received = (kept - begin) as u64;
        self.shared.counters.received.fetch_add(received, Relaxed);
        for (packet, rejected, echo) in rejections {
            match echo {
                Some(echo) if self.shared.may_answer() => self.answer_there(&echo),
                Some(_) => {}
                None => self.reject(&rejected, &packet),
            }
        }
    }

    pub(crate) fn stats(&self) -> IpTunnelStats {
        let counters = &self.shared.counters;
        let tunnel = self.tunnel.stats();
        IpTunnelStats {
            received: counters.received.load(Relaxed),
            sent: tunnel.sent,
            dropped_sending: tunnel.dropped_sending,
            dropped_receiving: tunnel.dropped_receiving,
            dropped_contexts: tunnel.dropped_contexts,
            malformed: counters.malformed.load(Relaxed),
            wrong_source: counters.source.load(Relaxed),
            wrong_destination: counters.destination.load(Relaxed),
            hop_limit: counters.hop_limit.load(Relaxed),
            too_big: counters.too_big.load(Relaxed),
            link_local: counters.scope.load(Relaxed),
            icmp: counters.icmp.load(Relaxed),
        }
    }
}

fn judge_outgoing(end: &End, packet: &[u8], max: usize) -> Result<Header, Rejected> {
    let header = end.judge_outgoing(packet)?;
    match packet.len() <= max {
        true => Ok(header),
        false => Err(Rejected::new(Reason::TooBig {
            size: packet.len(),
            max,
        })),
    }
}

/// ICMP messages that wait for the receiver at this end (limit K632).
const ANSWERS: usize = 64;

/// Batches without a packet that may pass before other tasks have their turn.
const TURN: usize = 16;
