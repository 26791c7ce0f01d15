//! The part of an IP tunnel that both ends share: packets are judged on their way in and out.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::{BufMut as _, Bytes, BytesMut};
use courser_base::{Mutex, Time};
use courser_masque::Prefix;
use courser_masque::datagram::{self, PREFIX, PREFIX_LEN};
use courser_masque::ip::limits::SMALLEST_MTU;
use courser_masque::ip::{
    AddressRange, End, IcmpLimit, Reason, Rejected, icmp, packet::lower_hop_limit,
};
use courser_quic::runtime;
use tokio::sync::watch::Sender;

use super::stats::IpTunnelStats;
use crate::ended::Ended;
use crate::protocol::Probe;
use crate::tunnel::Tunnel;

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
    /// True once a request for addresses was answered.
    pub(super) answered: Sender<bool>,
    answers: Mutex<Answers>,
    begin: Instant,
    /// The number of the echo that the other end has not answered, or [`NO_ECHO`].
    echo: AtomicU32,
    /// The number of echoes that were requested.
    echoes: AtomicU32,
    counters: Counters,
}

/// The packets of a batch, by the way that they leave.
struct Encoded {
    datagrams: Vec<Bytes>,
    /// Those that do not fit DATAGRAM frames.
    capsules: Vec<Bytes>,
}

/// The way of a packet to the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Datagram,
    Capsule,
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
    bytes_received: AtomicU64,
    bytes_sent: AtomicU64,
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
        let is_answered = end.is_answered();
        Arc::new(Self {
            end: Mutex::new(end),
            assigned: Sender::new(Vec::new()),
            routes: Sender::new(Vec::new()),
            answered: Sender::new(is_answered),
            answers: Mutex::default(),
            begin: runtime::now(),
            echo: AtomicU32::new(NO_ECHO),
            echoes: AtomicU32::new(NO_ECHO),
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

    /// Returns the ICMP error about a packet of the other end that was rejected, if one may be sent now.
    fn error(&self, rejected: &Rejected, packet: &[u8]) -> Option<Bytes> {
        let is_ipv4 = packet.first()? >> 4 == 4;
        let router = self.end.lock().router(is_ipv4);
        self.error_from(router, rejected, packet)
    }

    /// Returns the ICMP error about a packet of the host at this end that was rejected, if one may be sent now.
    fn error_here(&self, rejected: &Rejected, packet: &[u8]) -> Option<Bytes> {
        let router = self.end.lock().router_here(packet);
        self.error_from(router, rejected, packet)
    }

    fn error_from(
        &self,
        router: Option<IpAddr>,
        rejected: &Rejected,
        packet: &[u8],
    ) -> Option<Bytes> {
        let error = icmp::error(rejected.icmp?, router?, packet)?;
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
        let mut encoded = self.encode(packets, &mut rejections);
        let sent = self.send_encoded(&mut encoded);
        for (index, rejected) in &rejections {
            self.shared.count(rejected.reason);
            if let Some(answer) = self.shared.error_here(rejected, &packets[*index]) {
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
        let mut encoded = self.encode(&packets, &mut rejections);
        let Some((_, rejected)) = rejections.pop() else {
            return Ok(self.send_encoded(&mut encoded));
        };
        self.shared.count(rejected.reason);
        if let Some(answer) = self.shared.error_here(&rejected, &packets.remove(0)) {
            self.answer_here(answer);
        }
        Err(rejected.reason)
    }

    fn send_encoded(&self, encoded: &mut Encoded) -> Result<usize, Ended> {
        let sent = self.tunnel.send(&mut encoded.datagrams)?;
        match encoded.capsules.is_empty() {
            true => Ok(sent),
            false => Ok(sent + self.tunnel.send_in_capsules(&encoded.capsules)),
        }
    }

    /// Returns the datagrams of packets that may pass, as parts of one allocation.
    fn encode(&self, packets: &[Bytes], rejections: &mut Vec<(usize, Rejected)>) -> Encoded {
        let max = self.tunnel.max_size();
        let end = self.shared.end.lock();
        let mut ways = Vec::with_capacity(packets.len());
        let room = packets.iter().map(|packet| packet.len() + PREFIX_LEN).sum();
        let mut all = BytesMut::with_capacity(room);
        for (index, packet) in packets.iter().enumerate() {
            match judge_outgoing(&end, packet, max) {
                Ok(way) => {
                    all.put_u8(PREFIX);
                    let begin = all.len();
                    all.extend_from_slice(packet);
                    if end.lowers_hop_limit() {
                        lower_hop_limit(&mut all[begin..]);
                    }
                    ways.push((packet.len() + PREFIX_LEN, way));
                }
                Err(rejected) => rejections.push((index, rejected)),
            }
        }
        drop(end);
        let bytes = (all.len() - ways.len() * PREFIX_LEN) as u64;
        self.shared.counters.bytes_sent.fetch_add(bytes, Relaxed);
        let mut all = all.freeze();
        let mut encoded = Encoded {
            datagrams: Vec::with_capacity(ways.len()),
            capsules: Vec::new(),
        };
        for (len, way) in ways {
            let datagram = all.split_to(len);
            match way {
                Way::Datagram => encoded.datagrams.push(datagram),
                Way::Capsule => encoded.capsules.push(datagram),
            }
        }
        encoded
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
        let datagram = datagram::encode(message);
        if message.len() <= self.tunnel.max_size() {
            let _ = self.tunnel.send(&mut vec![datagram]);
        } else {
            self.tunnel.send_in_capsules(&[datagram]);
        }
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
        let echo = self.shared.echo.load(Relaxed);
        let (mut kept, mut bytes) = (begin, 0);
        for index in begin..packets.len() {
            let packet = std::mem::take(&mut packets[index]);
            if echo != NO_ECHO && end.answers_echo_of_link(&packet, echo) {
                self.shared.echo.store(NO_ECHO, Relaxed);
                continue;
            }
            match end.judge_incoming(&packet) {
                Ok(_) => {
                    bytes += packet.len() as u64;
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
        self.shared
            .counters
            .bytes_received
            .fetch_add(bytes, Relaxed);
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
            bytes_received: counters.bytes_received.load(Relaxed),
            bytes_sent: counters.bytes_sent.load(Relaxed),
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

impl Probe for Shared {
    fn request(&self) -> Option<Bytes> {
        // Skips the number that stands for none.
        let number = self.echoes.fetch_add(1, Relaxed).wrapping_add(1).max(1);
        let packet = self.end.lock().request_echo_of_link(number)?;
        self.echo.store(number, Relaxed);
        Some(datagram::encode(&packet))
    }

    fn is_answered(&self) -> bool {
        self.echo.load(Relaxed) == NO_ECHO && self.echoes.load(Relaxed) != NO_ECHO
    }
}

/// Judges a packet, and decides how it is sent.
///
/// `Deviates:` RFC 9484 §10.1 ends a tunnel with IPv6 as soon as DATAGRAM frames carry less than 1280 bytes. A path that
/// loses packets looks like that for a while, so that IPv6 packets up to this size leave in capsules then. No sender can
/// make them smaller, and no search for a path MTU is led astray.
fn judge_outgoing(end: &End, packet: &[u8], max: usize) -> Result<Way, Rejected> {
    end.judge_outgoing(packet)?;
    let size = packet.len();
    if size <= max {
        return Ok(Way::Datagram);
    }
    // What capsules carry is what senders are told.
    let max = match can_be_smaller(packet) {
        true => max,
        false => max.max(SMALLEST_MTU),
    };
    match size <= max {
        true => Ok(Way::Capsule),
        false => Err(Rejected::new(Reason::TooBig { size, max })),
    }
}

/// Returns true for a packet whose sender reduces its size below 1280 bytes after an ICMP error: of IPv4 with the flag DF.
fn can_be_smaller(packet: &[u8]) -> bool {
    let is_ipv4 = packet.first().is_some_and(|first| first >> 4 == 4);
    is_ipv4 && packet.get(6).is_some_and(|flags| flags & 0x40 != 0)
}

/// Stands for no echo.
const NO_ECHO: u32 = 0;

/// ICMP messages that wait for the receiver at this end (limit K632).
const ANSWERS: usize = 64;

/// Batches without a packet that may pass before other tasks have their turn.
const TURN: usize = 16;
