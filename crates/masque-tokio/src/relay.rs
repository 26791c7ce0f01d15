//! The task of a tunnel on a proxy: packets between the tunnel and the socket of its target.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use courser_http3_tokio::Code;
use courser_masque::{Limits, datagram};
use courser_quic::hooks::{ErrorCause, PeerSocket};
use courser_quic::runtime::{self, Sleep};

use crate::clients::Permit;
use crate::ended::Ended;
use crate::record::{OnEnd, RecordedEnd, TunnelRecord};
use crate::silent::Unanswered;
use crate::tunnel::Tunnel;

/// Counters that the tunnels of a proxy share.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) open: AtomicU64,
    pub(crate) opened: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) to_targets: AtomicU64,
    pub(crate) from_targets: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) bytes_to_targets: AtomicU64,
    pub(crate) bytes_from_targets: AtomicU64,
}

/// Packets and their bytes in one direction of a tunnel.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    packets: u64,
    bytes: u64,
}

/// Both directions of a tunnel.
pub(crate) struct Relay {
    tunnel: Tunnel,
    target: PeerSocket,
    counters: Arc<Counters>,
    permit: Permit,
    begin: Instant,
    unanswered: Unanswered,
    /// UDP payloads from the client.
    payloads: Vec<Bytes>,
    /// Datagrams for the client.
    datagrams: Vec<Bytes>,
    idle: Pin<Box<Sleep>>,
    longest_idle: Duration,
    /// The time without a packet of the client that ends a tunnel while the proxy drains.
    draining: Option<Duration>,
    last: Instant,
    last_of_client: Instant,
    /// The first report since the last packet of the target that it cannot be reached.
    unreachable_since: Option<Instant>,
    to_target: Passed,
    from_target: Passed,
    dropped: u64,
}

impl Relay {
    pub(crate) fn new(
        tunnel: Tunnel,
        target: PeerSocket,
        (limits, permit): (Limits, Permit),
        unanswered: Unanswered,
        counters: Arc<Counters>,
    ) -> Self {
        let begin = runtime::now();
        Self {
            tunnel,
            target,
            counters,
            permit,
            begin,
            unanswered,
            payloads: Vec::new(),
            datagrams: Vec::new(),
            idle: Box::pin(runtime::sleep(limits.idle)),
            longest_idle: limits.idle,
            draining: None,
            last: begin,
            last_of_client: begin,
            unreachable_since: None,
            to_target: Passed::default(),
            from_target: Passed::default(),
            dropped: 0,
        }
    }

    /// Runs until the tunnel ends, its target cannot be reached, or it was idle for too long.
    pub(crate) async fn run(mut self, address: SocketAddr, on_end: Option<OnEnd>) {
        self.counters.opened.fetch_add(1, Relaxed);
        let end = poll_fn(|cx| self.poll(cx)).await;
        if let Some(on_end) = on_end {
            on_end.call(&self.record(address, end));
        }
    }

    fn record(&self, address: SocketAddr, end: RecordedEnd) -> TunnelRecord {
        let tunnel = self.tunnel.stats();
        TunnelRecord {
            address,
            took: runtime::now() - self.begin,
            packets_to_target: self.to_target.packets,
            bytes_to_target: self.to_target.bytes,
            packets_from_target: self.from_target.packets,
            bytes_from_target: self.from_target.bytes,
            dropped_to_target: self.dropped + tunnel.dropped_receiving,
            dropped_from_target: tunnel.dropped_sending,
            end,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<RecordedEnd> {
        for _ in 0..TURNS {
            let from_client = match self.poll_client(cx) {
                // Nobody else here closes it.
                Poll::Ready(Err(Ended::Closed)) => return Poll::Ready(RecordedEnd::Cut),
                Poll::Ready(Err(_)) => return Poll::Ready(RecordedEnd::Client),
                poll => poll.is_ready(),
            };
            let from_target = match self.poll_target(cx) {
                Poll::Ready(Err(())) => {
                    // RFC 9298 §3.1: the request ends with its socket.
                    self.tunnel.abort(Ended::Closed, Code::CONNECT_ERROR);
                    return Poll::Ready(RecordedEnd::Target);
                }
                poll => poll.is_ready(),
            };
            if !from_client && !from_target {
                return self.poll_idle(cx);
            }
            self.last = runtime::now();
            if from_client {
                self.last_of_client = self.last;
            }
        }
        // Other tasks have their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<RecordedEnd> {
        let draining = self.permit.draining();
        if draining != self.draining {
            self.draining = draining;
            self.idle = Box::pin(runtime::sleep_until(self.due()));
        }
        while self.idle.as_mut().poll(cx).is_ready() {
            let due = self.due();
            if due <= runtime::now() {
                self.tunnel.close();
                return Poll::Ready(RecordedEnd::Idle);
            }
            self.idle = Box::pin(runtime::sleep_until(due));
        }
        Poll::Pending
    }

    /// Returns when the tunnel ends if no packet passes. A target may go on to send to a client that has vanished.
    fn due(&self) -> Instant {
        let due = self.last + self.longest_idle;
        match self.draining {
            Some(idle) => due.min(self.last_of_client + idle),
            None => due,
        }
    }

    /// Sends packets of the client to the target.
    fn poll_client(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        match self.tunnel.poll_receive(cx, &mut self.payloads, BATCH) {
            Poll::Ready(Ok(())) => {}
            poll => return poll,
        }
        let (target, all) = (&self.target, &self.payloads);
        let count = all.len();
        let sent = SENDING.with_borrow_mut(|batch| match self.unanswered.lock() {
            Some(mut left) => {
                let allowed = all.iter().filter(|payload| left.take(payload.len()));
                send_all(target, allowed, batch)
            }
            None => send_all(target, all.iter(), batch),
        });
        let Passed { packets, bytes } = sent;
        self.payloads.clear();
        let dropped = count as u64 - packets;
        self.to_target.packets += packets;
        self.to_target.bytes += bytes;
        self.dropped += dropped;
        self.counters.to_targets.fetch_add(packets, Relaxed);
        self.counters.bytes_to_targets.fetch_add(bytes, Relaxed);
        self.counters.dropped.fetch_add(dropped, Relaxed);
        Poll::Ready(Ok(()))
    }

    /// Sends packets of the target to the client. An error means that the target cannot be reached.
    fn poll_target(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        // Packets wait in the socket while a stream has no room, and the system drops what is too much.
        if self.tunnel.poll_ready(cx).is_pending() {
            return Poll::Pending;
        }
        let (target, datagrams) = (&self.target, &mut self.datagrams);
        let polled = RECEIVING.with_borrow_mut(|buffer| {
            let received = ready!(target.poll_receive(cx, buffer))?;
            let contents = &buffer[..received.len];
            datagram::encode_batch(contents, received.segment_size, datagrams);
            Poll::Ready(io::Result::Ok(received.len))
        });
        let mut is_over = false;
        while self.target.take_unreachable().is_some() {
            is_over = self.on_unreachable();
        }
        if is_over {
            return Poll::Ready(Err(()));
        }
        match polled {
            Poll::Ready(Ok(len)) => {
                self.on_received(len as u64);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => match error.kind() {
                io::ErrorKind::ConnectionRefused if self.on_unreachable() => Poll::Ready(Err(())),
                _ if courser_quic::hooks::is_transient(&error) => Poll::Ready(Ok(())),
                _ => Poll::Ready(Err(())),
            },
            Poll::Pending => Poll::Pending,
        }
    }

    /// Notes a report that the target cannot be reached. Returns true if it ends the tunnel (RFC 9298 §3.1).
    ///
    /// Before the first answer it does so at once. Later it may be forged by anybody who knows the addresses, or have a
    /// cause that passes, so that the target has to be silent for a while (RFC 8085 §5.2).
    fn on_unreachable(&mut self) -> bool {
        let now = runtime::now();
        let first = *self.unreachable_since.get_or_insert(now);
        !self.unanswered.has_answer() || now - first >= UNREACHABLE
    }

    fn on_received(&mut self, bytes: u64) {
        self.unanswered.on_answer();
        self.unreachable_since = None;
        let count = self.datagrams.len() as u64;
        self.from_target.packets += count;
        self.from_target.bytes += bytes;
        self.counters.from_targets.fetch_add(count, Relaxed);
        self.counters.bytes_from_targets.fetch_add(bytes, Relaxed);
        // The end is noticed by the other direction.
        let _ = self.tunnel.send(&mut self.datagrams);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.tunnel.close();
    }
}

thread_local! {
    /// Buffers of the tasks of a thread, since an idle tunnel should need no more memory than its tables.
    static SENDING: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static RECEIVING: RefCell<Box<[u8]>> = RefCell::new(vec![0; BUFFER].into_boxed_slice());
}

/// Sends payloads in batches, and returns those that the system has accepted.
///
/// A run of payloads of one length is one call of the system; a shorter payload may end it.
fn send_all<'a>(
    target: &PeerSocket,
    payloads: impl Iterator<Item = &'a Bytes>,
    batch: &mut Vec<u8>,
) -> Passed {
    let most = target.max_segments();
    let mut payloads = payloads.peekable();
    let mut sent = Passed::default();
    while let Some(first) = payloads.next() {
        let segment = first.len();
        batch.clear();
        batch.extend_from_slice(first);
        let (mut packets, mut is_open) = (1, segment > 0);
        while let Some(next) = payloads.next_if(|next| {
            let fits = batch.len() + next.len() <= LONGEST_BATCH;
            is_open && fits && packets < most && (1..=segment).contains(&next.len())
        }) {
            batch.extend_from_slice(next);
            packets += 1;
            is_open = next.len() == segment;
        }
        send(
            |rest| target.try_send(rest, segment),
            batch,
            segment,
            &mut sent,
        );
    }
    sent
}

/// Sends a batch, and counts what the system has accepted. The others are dropped, like in a router: those that are too
/// large for the path must not be fragmented (RFC 9298 §3.1), and those for which the socket has no room must not wait.
fn send(
    try_send: impl Fn(&[u8]) -> io::Result<usize>,
    mut batch: &[u8],
    segment: usize,
    sent: &mut Passed,
) {
    loop {
        let taken = match try_send(batch) {
            Ok(taken) => taken,
            // All have one length, except that the last one may be shorter.
            Err(error) if ErrorCause::of(&error) == ErrorCause::TooLarge => {
                let last = batch.len().checked_rem(segment).unwrap_or(0);
                let before = batch.len() - last;
                if before == 0 || last == 0 {
                    return;
                }
                batch = &batch[before..];
                continue;
            }
            Err(_) => return,
        };
        sent.packets += taken.div_ceil(segment.max(1)).max(1) as u64;
        sent.bytes += taken as u64;
        batch = &batch[taken.min(batch.len())..];
        if batch.is_empty() {
            return;
        }
    }
}

/// Counts a tunnel as open until it is dropped.
pub(crate) struct Counted(Arc<Counters>);

impl Counted {
    pub(crate) fn begin(counters: &Arc<Counters>) -> Self {
        counters.open.fetch_add(1, Relaxed);
        Self(counters.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

/// Time without a packet of the target, and with reports that it cannot be reached, after which it is not: long enough
/// for a service to start again, and for a route to be found.
const UNREACHABLE: Duration = Duration::from_secs(3);

/// Payloads of a client that are sent at a time.
const BATCH: usize = 64;

/// Longest batch that is sent at a time, in bytes.
const LONGEST_BATCH: usize = 65_507;

/// Bytes of a batch that is received.
const BUFFER: usize = 65_536;

/// Batches of both directions before other tasks have their turn.
const TURNS: usize = 16;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The search for the path MTU sends a packet that is too large, and others right after it.
    #[test]
    fn a_packet_behind_one_that_is_too_large_is_sent() {
        for (len, segment, expected) in [
            (2 * 1452 + 40, 1452, (1, 40)),
            (1452 + 40, 1452, (1, 40)),
            (2 * 1452, 1452, (0, 0)),
            (1452, 1452, (0, 0)),
            (3 * 1200 + 40, 1200, (4, 3640)),
            (0, 0, (1, 0)),
        ] {
            let mut sent = Passed::default();
            let narrow = |rest: &[u8]| match rest.len().min(segment) {
                ..=1300 => Ok(rest.len()),
                _ => Err(io::Error::from_raw_os_error(90)), // EMSGSIZE
            };
            send(narrow, &vec![7; len], segment, &mut sent);
            assert_eq!((sent.packets, sent.bytes), expected, "{len} {segment}");
        }
    }
}
