//! One end of a tunnel: UDP payloads in datagrams of HTTP/3 or in capsules.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use courser_base::{Mutex, Side};
use courser_http3_tokio::{Code, DatagramError, Datagrams};
use courser_masque::Contexts;
use courser_masque::datagram::{self, Decoded};
use courser_quic::runtime;

use crate::stats::TunnelStats;
use crate::stream::{Lost, Stream};

/// One end of a tunnel. Clones share it; it ends when it is closed.
#[derive(Clone, Debug)]
pub(crate) struct Tunnel(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The datagrams of a request over HTTP/3, if it has them.
    datagrams: Option<Datagrams>,
    state: Mutex<State>,
    received: AtomicU64,
    sent: AtomicU64,
    dropped: AtomicU64,
    /// Payloads of capsules for which there was no room.
    overflowed: AtomicU64,
}

#[derive(Debug)]
struct State {
    contexts: Contexts,
    /// UDP payloads from capsules.
    incoming: Queue,
    /// Datagrams for capsules.
    outgoing: Queue,
    end: Option<Ended>,
    /// True if this end wants to end the tunnel.
    is_closing: bool,
    /// The code with which the stream is reset instead of finished.
    reset: Option<Code>,
    receiver: Option<Waker>,
    sender: Option<Waker>,
    driver: Option<Waker>,
    watchers: Vec<Waker>,
}

/// Datagrams with a bound on their number and bytes.
#[derive(Debug, Default)]
struct Queue {
    datagrams: VecDeque<Bytes>,
    bytes: usize,
}

/// The reason why a tunnel has ended.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Ended {
    /// This end has closed the tunnel.
    #[error("this end has closed the tunnel")]
    Closed,
    /// The other end has closed the tunnel: a proxy does that if no packet has passed for too long.
    #[error("the other end has closed the tunnel")]
    ByPeer,
    /// The other end has sent a malformed datagram.
    #[error("the other end has sent {0}")]
    Malformed(datagram::Malformed),
    /// The stream or its connection was lost. A proxy resets the stream if the target cannot be reached.
    #[error("the stream of the tunnel was lost: {0}")]
    Lost(String),
}

impl Queue {
    fn has_room(&self) -> bool {
        self.datagrams.len() < QUEUED && self.bytes < QUEUED_BYTES
    }

    fn push(&mut self, datagram: Bytes) {
        self.bytes += datagram.len();
        self.datagrams.push_back(datagram);
    }

    fn pop(&mut self) -> Option<Bytes> {
        let datagram = self.datagrams.pop_front()?;
        self.bytes -= datagram.len();
        Some(datagram)
    }
}

impl Tunnel {
    /// Starts the tunnel of a request, with a task that reads and writes its stream.
    pub(crate) fn start(side: Side, stream: Stream, datagrams: Option<Datagrams>) -> Self {
        if let Some(datagrams) = &datagrams {
            datagrams.set_receive_limits(QUEUED, QUEUED_BYTES);
        }
        let shared = Arc::new(Shared {
            datagrams,
            state: Mutex::new(State {
                contexts: Contexts::new(side),
                incoming: Queue::default(),
                outgoing: Queue::default(),
                end: None,
                is_closing: false,
                reset: None,
                receiver: None,
                sender: None,
                driver: None,
                watchers: Vec::new(),
            }),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            overflowed: AtomicU64::new(0),
        });
        let driver = Driver {
            tunnel: Self(shared.clone()),
            stream,
            side,
        };
        runtime::spawn(driver.run());
        Self(shared)
    }

    /// Polls for UDP payloads, and appends up to `most` of them. Returns the end of the tunnel when nothing is left.
    pub(crate) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        payloads: &mut Vec<Bytes>,
        most: usize,
    ) -> Poll<Result<(), Ended>> {
        let before = payloads.len();
        loop {
            let end = self.take_incoming(cx, payloads, most);
            if payloads.len() > before {
                self.0
                    .received
                    .fetch_add((payloads.len() - before) as u64, Relaxed);
                return Poll::Ready(Ok(()));
            }
            // What arrived before the other end has closed the tunnel is still there.
            let datagrams = match &end {
                Some(Ended::Closed | Ended::Malformed(_)) => None,
                _ => self.0.datagrams.as_ref(),
            };
            let received = datagrams.map(|it| it.poll_receive_many(cx, payloads, most));
            match (received, end) {
                (Some(Poll::Ready(Some(_))), _) => self.decode(payloads, before),
                (_, Some(end)) => return Poll::Ready(Err(end)),
                // If no more can arrive, the stream tells why.
                (_, None) => return Poll::Pending,
            }
        }
    }

    /// Takes payloads of capsules, and returns the end of the tunnel. Otherwise the task is woken later.
    fn take_incoming(
        &self,
        cx: &Context<'_>,
        payloads: &mut Vec<Bytes>,
        most: usize,
    ) -> Option<Ended> {
        let mut state = self.0.state.lock();
        let had_room = state.incoming.has_room();
        while payloads.len() < most
            && let Some(payload) = state.incoming.pop()
        {
            payloads.push(payload);
        }
        if !had_room && let Some(driver) = state.driver.take() {
            driver.wake();
        }
        let is_known = state
            .receiver
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()));
        if !is_known {
            state.receiver = Some(cx.waker().clone());
        }
        state.end.clone()
    }

    /// Replaces datagrams behind `begin` by their UDP payloads, without those of other contexts.
    fn decode(&self, datagrams: &mut Vec<Bytes>, begin: usize) {
        let mut fault = None;
        let mut kept = begin;
        for index in begin..datagrams.len() {
            match datagram::decode(std::mem::take(&mut datagrams[index])) {
                Ok(Decoded::Udp(payload)) => {
                    datagrams[kept] = payload;
                    kept += 1;
                }
                Ok(Decoded::Other { context, .. }) => {
                    self.0.state.lock().contexts.on_datagram(context);
                }
                Err(error) => {
                    fault = Some(error);
                    break;
                }
            }
        }
        datagrams.truncate(kept);
        if let Some(error) = fault {
            self.abort(Ended::Malformed(error), error.code());
        }
    }

    /// Polls until datagrams may be sent without being dropped here.
    pub(crate) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.uses_frames() {
            return Poll::Ready(());
        }
        let mut state = self.0.state.lock();
        if state.outgoing.has_room() || state.end.is_some() {
            return Poll::Ready(());
        }
        state.sender = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Returns true if datagrams are sent in QUIC DATAGRAM frames.
    fn uses_frames(&self) -> bool {
        self.0
            .datagrams
            .as_ref()
            .is_some_and(Datagrams::is_negotiated)
    }

    /// Returns the longest UDP payload that can be sent now.
    pub(crate) fn max_size(&self) -> usize {
        let frames = self.0.datagrams.as_ref().and_then(Datagrams::max_size);
        match frames {
            Some(size) => size
                .saturating_sub(datagram::PREFIX_LEN)
                .min(datagram::MAX_PAYLOAD),
            None => datagram::MAX_PAYLOAD,
        }
    }

    /// Sends datagrams with their context, and empties the list. Those for which there is no room, or which are too
    /// large for a QUIC DATAGRAM frame, are dropped and counted.
    ///
    /// # Errors
    /// Returns the end of the tunnel.
    pub(crate) fn send(&self, datagrams: &mut Vec<Bytes>) -> Result<(), Ended> {
        if let Some(end) = self.ended() {
            datagrams.clear();
            return Err(end);
        }
        let count = datagrams.len();
        let dropped = match &self.0.datagrams {
            Some(frames) if self.uses_frames() => self.send_frames(frames, datagrams),
            _ => self.send_capsules(datagrams),
        };
        datagrams.clear();
        self.0.dropped.fetch_add(dropped as u64, Relaxed);
        self.0.sent.fetch_add((count - dropped) as u64, Relaxed);
        Ok(())
    }

    /// Returns the number of dropped datagrams.
    fn send_frames(&self, frames: &Datagrams, datagrams: &mut Vec<Bytes>) -> usize {
        let mut dropped = 0;
        while !datagrams.is_empty() {
            match frames.send_many(datagrams) {
                Ok(()) => return dropped,
                Err(DatagramError::TooLarge { max, .. }) => {
                    // All that are too large at once: such as a batch of probes of the path MTU.
                    let before = datagrams.len();
                    datagrams.retain(|datagram| datagram.len() <= max);
                    dropped += before - datagrams.len();
                    if before == datagrams.len() {
                        return dropped + before; // The size has changed meanwhile.
                    }
                }
                // The stream tells why.
                Err(_) => return dropped + datagrams.len(),
            }
        }
        dropped
    }

    fn send_capsules(&self, datagrams: &[Bytes]) -> usize {
        let mut state = self.0.state.lock();
        let mut dropped = 0;
        for datagram in datagrams {
            match state.outgoing.has_room() && state.end.is_none() {
                true => state.outgoing.push(datagram.clone()),
                false => dropped += 1,
            }
        }
        if let Some(driver) = state.driver.take() {
            driver.wake();
        }
        dropped
    }

    /// Returns the end of the tunnel, if it has ended.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.0.state.lock().end.clone()
    }

    /// Waits for the end of the tunnel.
    pub(crate) async fn closed(&self) -> Ended {
        poll_fn(|cx| {
            let mut state = self.0.state.lock();
            match &state.end {
                Some(end) => Poll::Ready(end.clone()),
                None => {
                    state.watchers.retain(|waker| !waker.will_wake(cx.waker()));
                    state.watchers.push(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Ends the tunnel and finishes its stream.
    pub(crate) fn close(&self) {
        self.end(Ended::Closed, None);
    }

    /// Ends the tunnel and resets its stream.
    pub(crate) fn abort(&self, end: Ended, code: Code) {
        self.end(end, Some(code));
    }

    fn end(&self, end: Ended, reset: Option<Code>) {
        let mut state = self.0.state.lock();
        if state.end.is_none() {
            state.end = Some(end);
            state.reset = reset;
        }
        state.is_closing = true;
        let wakers = [
            state.receiver.take(),
            state.sender.take(),
            state.driver.take(),
        ];
        let watchers = std::mem::take(&mut state.watchers);
        drop(state);
        wakers
            .into_iter()
            .flatten()
            .chain(watchers)
            .for_each(Waker::wake);
    }

    pub(crate) fn stats(&self) -> TunnelStats {
        let overflowed = self.0.datagrams.as_ref().map_or(0, Datagrams::dropped)
            + self.0.overflowed.load(Relaxed);
        TunnelStats {
            received: self.0.received.load(Relaxed),
            sent: self.0.sent.load(Relaxed),
            dropped_sending: self.0.dropped.load(Relaxed),
            dropped_receiving: overflowed,
            dropped_contexts: self.0.state.lock().contexts.dropped(),
        }
    }
}

/// Reads and writes the stream of a tunnel.
struct Driver {
    tunnel: Tunnel,
    stream: Stream,
    side: Side,
}

impl Driver {
    async fn run(mut self) {
        poll_fn(|cx| self.poll(cx)).await;
        // Whatever happens to the stream, nobody waits for it.
        self.tunnel.end(Ended::Closed, None);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let shared = self.tunnel.0.clone();
        let mut state = shared.state.lock();
        state.driver = Some(cx.waker().clone());
        let is_closing = state.is_closing;
        drop(state);
        if is_closing {
            return self.poll_close(cx);
        }
        let read = self.poll_read(cx);
        if let Poll::Ready(end) = read {
            self.tunnel.end(end, None);
            return self.poll_close(cx);
        }
        if let Poll::Ready(Err(Lost(reason))) = self.poll_write(cx) {
            self.tunnel.end(Ended::Lost(reason), None);
            return Poll::Ready(());
        }
        // The end may have been requested while this task ran.
        let is_closing = shared.state.lock().is_closing;
        match is_closing {
            true => self.poll_close(cx),
            false => Poll::Pending,
        }
    }

    /// Ends the stream: by a reset with a code, or after what is written in part. What waits is lost, as UDP may lose
    /// it, so that a peer that does not read keeps no task.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.tunnel.0.state.lock();
        state.outgoing = Queue::default();
        let reset = state.reset;
        drop(state);
        if let Some(code) = reset {
            self.stream.reset(code);
        }
        // A stream that cannot be finished now is reset when it is dropped.
        let _ = self.stream.poll_finish(cx);
        Poll::Ready(())
    }

    /// Reads capsules. `Ready` when the direction has ended.
    ///
    /// A proxy waits while there is no room: its relay makes some at once. A client drops what is too much, as a system
    /// does for a UDP socket: its program may never read, and the credit of a connection belongs to all of its tunnels.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        for _ in 0..TURN {
            if self.side == Side::Server && !self.tunnel.0.state.lock().incoming.has_room() {
                return Poll::Pending; // The receiver wakes this task.
            }
            let datagram = match ready!(self.stream.poll_next(cx)) {
                Ok(Some(datagram)) => datagram,
                Ok(None) => return Poll::Ready(Ended::ByPeer),
                Err(Lost(reason)) => return Poll::Ready(Ended::Lost(reason)),
            };
            let mut state = self.tunnel.0.state.lock();
            match datagram::decode(datagram) {
                Ok(Decoded::Udp(_)) if !state.incoming.has_room() => {
                    self.tunnel.0.overflowed.fetch_add(1, Relaxed);
                }
                Ok(Decoded::Udp(payload)) => {
                    state.incoming.push(payload);
                    if let Some(receiver) = state.receiver.take() {
                        receiver.wake();
                    }
                }
                Ok(Decoded::Other { context, .. }) => drop(state.contexts.on_datagram(context)),
                Err(error) => {
                    drop(state);
                    self.tunnel.abort(Ended::Malformed(error), error.code());
                    return Poll::Pending;
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Writes datagrams in capsules.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        loop {
            ready!(self.stream.poll_room(cx))?;
            let mut state = self.tunnel.0.state.lock();
            if state.outgoing.datagrams.is_empty() {
                return Poll::Ready(Ok(()));
            }
            while self.stream.has_room()
                && let Some(datagram) = state.outgoing.pop()
            {
                self.stream.put(&datagram);
            }
            if let Some(sender) = state.sender.take() {
                sender.wake();
            }
        }
    }
}

impl Drop for Driver {
    /// A runtime that ends drops the task, and nothing would tell the application.
    fn drop(&mut self) {
        self.tunnel
            .end(Ended::Lost("the runtime has ended".to_owned()), None);
    }
}

/// Datagrams of a tunnel that wait in either direction (limit K626).
const QUEUED: usize = 1024;
/// Their bytes (limit K626).
const QUEUED_BYTES: usize = 1024 * 1024;

/// Capsules that are read in a turn.
const TURN: usize = 64;
