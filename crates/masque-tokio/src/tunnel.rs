//! One end of a tunnel: UDP payloads or IP packets in datagrams of HTTP/3 or in capsules.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use courser_base::{Mutex, Side};
use courser_http3_tokio::{Code, DatagramError, Datagrams};
use courser_masque::{Contexts, datagram};

use crate::ended::Ended;
use crate::stats::TunnelStats;

/// One end of a tunnel. Clones share it; it ends when it is closed.
#[derive(Clone, Debug)]
pub(crate) struct Tunnel(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The datagrams of a request over HTTP/3, if it has them.
    datagrams: Option<Datagrams>,
    /// The longest payload of the protocol.
    longest: usize,
    state: Mutex<State>,
    received: AtomicU64,
    sent: AtomicU64,
    dropped: AtomicU64,
    /// Payloads of capsules for which there was no room.
    overflowed: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct State {
    contexts: Contexts,
    /// Payloads from capsules.
    pub(crate) incoming: Queue,
    /// Datagrams for capsules.
    pub(crate) outgoing: Queue,
    /// Other capsules to be sent, with their types.
    pub(crate) control: VecDeque<(u64, Vec<u8>)>,
    life: Life,
    pub(crate) receiver: Option<Waker>,
    pub(crate) sender: Option<Waker>,
    pub(crate) driver: Option<Waker>,
    watchers: Vec<Waker>,
}

/// Whether a tunnel is open. The first end is the one that counts.
///
/// ```text
///         close, end of the stream            task of the stream
///  Open ----------------------------> Finishing ------------> (dropped)
///    |  abort, a fault of the peer
///    +------------------------------> Resetting ------------> (dropped)
/// ```
#[derive(Clone, Debug)]
pub(crate) enum Life {
    Open,
    /// The stream is finished.
    Finishing(Ended),
    /// The stream is reset with a code.
    Resetting(Ended, Code),
}

impl Life {
    const fn end(&self) -> Option<&Ended> {
        match self {
            Self::Open => None,
            Self::Finishing(end) | Self::Resetting(end, _) => Some(end),
        }
    }
}

impl State {
    /// Returns true once the tunnel has ended.
    pub(crate) const fn has_ended(&self) -> bool {
        self.life.end().is_some()
    }

    /// Returns the code with which the stream has to be reset.
    pub(crate) const fn reset_code(&self) -> Option<Code> {
        match &self.life {
            Life::Resetting(_, code) => Some(*code),
            Life::Open | Life::Finishing(_) => None,
        }
    }
}

/// Datagrams with a bound on their number and bytes.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    datagrams: VecDeque<Bytes>,
    bytes: usize,
}

impl Queue {
    pub(crate) fn has_room(&self) -> bool {
        self.datagrams.len() < QUEUED && self.bytes < QUEUED_BYTES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    pub(crate) fn push(&mut self, datagram: Bytes) {
        self.bytes += datagram.len();
        self.datagrams.push_back(datagram);
    }

    pub(crate) fn pop(&mut self) -> Option<Bytes> {
        let datagram = self.datagrams.pop_front()?;
        self.bytes -= datagram.len();
        Some(datagram)
    }
}

impl Tunnel {
    /// Creates the tunnel of a request, without the task that reads and writes its stream. `control` are the first
    /// capsules of this end, and `longest` is the longest payload.
    pub(crate) fn new(
        side: Side,
        datagrams: Option<Datagrams>,
        control: Vec<(u64, Vec<u8>)>,
        longest: usize,
    ) -> Self {
        if let Some(datagrams) = &datagrams {
            datagrams.set_receive_limits(QUEUED, QUEUED_BYTES);
        }
        Self(Arc::new(Shared {
            datagrams,
            longest,
            state: Mutex::new(State {
                contexts: Contexts::new(side),
                incoming: Queue::default(),
                outgoing: Queue::default(),
                control: control.into(),
                life: Life::Open,
                receiver: None,
                sender: None,
                driver: None,
                watchers: Vec::new(),
            }),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            overflowed: AtomicU64::new(0),
        }))
    }

    /// Bounds the payloads in DATAGRAM frames that wait to be received, in number and bytes.
    pub(crate) fn set_receive_limits(&self, (datagrams, bytes): (usize, usize)) {
        if let Some(frames) = &self.0.datagrams {
            frames.set_receive_limits(datagrams, bytes);
        }
    }

    /// Polls for payloads, and appends up to `most` of them. Returns the end of the tunnel when nothing is left.
    pub(crate) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        payloads: &mut Vec<Bytes>,
        most: usize,
    ) -> Poll<Result<(), Ended>> {
        let before = payloads.len();
        loop {
            let end = self.take_incoming(cx, payloads, before.saturating_add(most));
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
        state.life.end().cloned()
    }

    /// Returns the payload of a datagram. `None` for one of another context, which is counted.
    pub(crate) fn payload(&self, datagram: Bytes) -> Result<Option<Bytes>, datagram::Malformed> {
        match datagram::split(datagram)? {
            (0, payload) if payload.len() > self.0.longest => {
                Err(datagram::Malformed::TooLong(payload.len()))
            }
            (0, payload) => Ok(Some(payload)),
            (context, _) => {
                self.0.state.lock().contexts.on_datagram(context);
                Ok(None)
            }
        }
    }

    /// Replaces datagrams behind `begin` by their payloads, without those of other contexts.
    fn decode(&self, datagrams: &mut Vec<Bytes>, begin: usize) {
        let mut fault = None;
        let mut kept = begin;
        for index in begin..datagrams.len() {
            match self.payload(std::mem::take(&mut datagrams[index])) {
                Ok(Some(payload)) => {
                    datagrams[kept] = payload;
                    kept += 1;
                }
                Ok(None) => {}
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
        if state.outgoing.has_room() || state.has_ended() {
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

    /// Waits until [`max_size`](Self::max_size) differs from a size. Over TCP it never does, nor when the connection is
    /// over.
    pub(crate) async fn size_changed(&self, known: usize) -> usize {
        if let Some(datagrams) = &self.0.datagrams {
            let mut watch = datagrams.watch_size();
            loop {
                let size = self.max_size();
                if size != known {
                    return size;
                }
                if watch.changed().await.is_err() {
                    break;
                }
            }
        }
        std::future::pending().await
    }

    /// Wakes the task that receives, because there is something for it elsewhere.
    pub(crate) fn wake_receiver(&self) {
        let receiver = self.0.state.lock().receiver.take();
        if let Some(receiver) = receiver {
            receiver.wake();
        }
    }

    /// Returns the longest payload that can be sent now.
    pub(crate) fn max_size(&self) -> usize {
        let frames = self.0.datagrams.as_ref().and_then(Datagrams::max_size);
        match frames {
            Some(size) => size
                .saturating_sub(datagram::PREFIX_LEN)
                .min(self.0.longest),
            None => self.0.longest,
        }
    }

    /// Sends datagrams with their context, and empties the list. Those for which there is no room, or which are too
    /// large for a QUIC DATAGRAM frame, are dropped and counted. Returns the number of the others.
    ///
    /// # Errors
    /// Returns the end of the tunnel.
    pub(crate) fn send(&self, datagrams: &mut Vec<Bytes>) -> Result<usize, Ended> {
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
        Ok(count - dropped)
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

    /// Sends datagrams with their context in capsules, even if the path has DATAGRAM frames. Returns the number of those for
    /// which there was room; the others are dropped and counted.
    pub(crate) fn send_in_capsules(&self, datagrams: &[Bytes]) -> usize {
        let dropped = self.send_capsules(datagrams);
        let sent = datagrams.len() - dropped;
        self.0.dropped.fetch_add(dropped as u64, Relaxed);
        self.0.sent.fetch_add(sent as u64, Relaxed);
        sent
    }

    fn send_capsules(&self, datagrams: &[Bytes]) -> usize {
        let mut state = self.0.state.lock();
        let mut dropped = 0;
        for datagram in datagrams {
            match state.outgoing.has_room() && !state.has_ended() {
                true => state.outgoing.push(datagram.clone()),
                false => dropped += 1,
            }
        }
        if let Some(driver) = state.driver.take() {
            driver.wake();
        }
        dropped
    }

    /// Returns the state, for the task of the stream.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    /// Returns the end of the tunnel, if it has ended.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.0.state.lock().life.end().cloned()
    }

    /// Waits for the end of the tunnel.
    pub(crate) async fn closed(&self) -> Ended {
        poll_fn(|cx| {
            let mut state = self.0.state.lock();
            match state.life.end() {
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
        self.finish(Ended::Closed);
    }

    /// Ends the tunnel for a reason, and finishes its stream.
    pub(crate) fn finish(&self, end: Ended) {
        self.end(Life::Finishing(end));
    }

    /// Ends the tunnel and resets its stream.
    pub(crate) fn abort(&self, end: Ended, code: Code) {
        self.end(Life::Resetting(end, code));
    }

    fn end(&self, life: Life) {
        let mut state = self.0.state.lock();
        if !state.has_ended() {
            state.life = life;
        }
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

    /// Counts a payload for which there was no room.
    pub(crate) fn on_overflow(&self) {
        self.0.overflowed.fetch_add(1, Relaxed);
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

/// Datagrams of a tunnel that wait in either direction (limit K626).
const QUEUED: usize = 1024;
/// Their bytes (limit K626).
const QUEUED_BYTES: usize = 1024 * 1024;
