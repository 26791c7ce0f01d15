//! The task of a tunnel on a proxy: packets between the tunnel and the socket of its target.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use courser_base::Time;
use courser_http3_tokio::Code;
use courser_masque::{Allowance, Limits, datagram};
use courser_quic::hooks::PeerSocket;
use courser_quic::runtime::{self, Sleep};

use crate::ended::Ended;
use crate::tunnel::Tunnel;

/// Counters that the tunnels of a proxy share.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) opened: AtomicU64,
    pub(crate) to_targets: AtomicU64,
    pub(crate) from_targets: AtomicU64,
    pub(crate) dropped: AtomicU64,
}

/// Both directions of a tunnel.
pub(crate) struct Relay {
    tunnel: Tunnel,
    target: PeerSocket,
    counters: Arc<Counters>,
    limits: Limits,
    begin: Instant,
    allowance: Allowance,
    /// UDP payloads from the client.
    payloads: Vec<Bytes>,
    /// Datagrams for the client.
    datagrams: Vec<Bytes>,
    idle: Pin<Box<Sleep>>,
    last: Instant,
}

impl Relay {
    pub(crate) fn new(
        tunnel: Tunnel,
        target: PeerSocket,
        limits: Limits,
        counters: Arc<Counters>,
    ) -> Self {
        let begin = runtime::now();
        Self {
            tunnel,
            target,
            counters,
            limits,
            begin,
            allowance: Allowance::new(&limits, Time::ZERO),
            payloads: Vec::new(),
            datagrams: Vec::new(),
            idle: Box::pin(runtime::sleep(limits.idle)),
            last: begin,
        }
    }

    /// Runs until the tunnel ends, its target cannot be reached, or it was idle for too long.
    pub(crate) async fn run(mut self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..TURNS {
            let from_client = match self.poll_client(cx) {
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                poll => poll.is_ready(),
            };
            let from_target = match self.poll_target(cx) {
                Poll::Ready(Err(())) => {
                    // RFC 9298 §3.1: the request ends with its socket.
                    self.tunnel.abort(Ended::Closed, Code::CONNECT_ERROR);
                    return Poll::Ready(());
                }
                poll => poll.is_ready(),
            };
            match from_client || from_target {
                true => self.last = runtime::now(),
                false => return self.poll_idle(cx),
            }
        }
        // Other tasks have their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.idle.as_mut().poll(cx).is_ready() {
            let due = self.last + self.limits.idle;
            if due <= runtime::now() {
                self.tunnel.close();
                return Poll::Ready(());
            }
            self.idle = Box::pin(runtime::sleep_until(due));
        }
        Poll::Pending
    }

    /// Sends packets of the client to the target.
    fn poll_client(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        match self.tunnel.poll_receive(cx, &mut self.payloads, BATCH) {
            Poll::Ready(Ok(())) => {}
            poll => return poll,
        }
        let now = Time::ZERO + (runtime::now() - self.begin);
        let all = std::mem::take(&mut self.payloads);
        let count = all.len();
        let allowed = all
            .iter()
            .filter(|payload| self.allowance.take(now, payload.len()));
        let sent = SENDING.with_borrow_mut(|batch| send_all(&self.target, allowed, batch));
        self.payloads = all;
        self.payloads.clear();
        self.counters.to_targets.fetch_add(sent as u64, Relaxed);
        self.counters
            .dropped
            .fetch_add((count - sent) as u64, Relaxed);
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
            Poll::Ready(io::Result::Ok(()))
        });
        if self.target.take_unreachable().is_some() {
            return Poll::Ready(Err(()));
        }
        match polled {
            Poll::Ready(Ok(())) => {
                self.on_received();
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => match error.kind() {
                io::ErrorKind::ConnectionRefused => Poll::Ready(Err(())),
                _ if courser_quic::hooks::is_transient(&error) => Poll::Ready(Ok(())),
                _ => Poll::Ready(Err(())),
            },
            Poll::Pending => Poll::Pending,
        }
    }

    fn on_received(&mut self) {
        self.allowance.on_answer();
        let count = self.datagrams.len() as u64;
        self.counters.from_targets.fetch_add(count, Relaxed);
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

/// Sends payloads in batches, and returns the number of those that the system has accepted.
///
/// A run of payloads of one length is one call of the system; a shorter payload may end it.
fn send_all<'a>(
    target: &PeerSocket,
    payloads: impl Iterator<Item = &'a Bytes>,
    batch: &mut Vec<u8>,
) -> usize {
    let most = target.max_segments();
    let mut payloads = payloads.peekable();
    let mut sent = 0;
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
        sent += send(target, batch, segment);
    }
    sent
}

/// Sends a batch, and returns the number of packets that the system has accepted. The others are dropped, like in a
/// router: those that are too large for the path must not be fragmented (RFC 9298 §3.1), and those for which the socket
/// has no room must not wait.
fn send(target: &PeerSocket, mut batch: &[u8], segment: usize) -> usize {
    let mut sent = 0;
    loop {
        match target.try_send(batch, segment) {
            Ok(taken) => {
                sent += taken.div_ceil(segment.max(1)).max(1);
                batch = &batch[taken.min(batch.len())..];
                if batch.is_empty() {
                    return sent;
                }
            }
            Err(_) => return sent,
        }
    }
}

/// Payloads of a client that are sent at a time.
const BATCH: usize = 64;

/// Longest batch that is sent at a time, in bytes.
const LONGEST_BATCH: usize = 65_507;

/// Bytes of a batch that is received.
const BUFFER: usize = 65_536;

/// Batches of both directions before other tasks have their turn.
const TURNS: usize = 16;
