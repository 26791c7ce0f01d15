//! The task of a tunnel: it reads and writes the stream.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use courser_base::Side;
use courser_http3::Capsule;
use courser_http3_tokio::{Code, Datagrams, Received};
use courser_quic::runtime;

use crate::ended::{Ended, LostStream};
use crate::narrow;
use crate::protocol::{Fault, Protocol};
use crate::stream::{Failed, Stream};
use crate::tunnel::{Queue, Tunnel};

/// Starts the tunnel of a request, with a task that reads and writes its stream.
pub(crate) fn start(
    side: Side,
    stream: Stream,
    datagrams: Option<Datagrams>,
    mut protocol: Protocol,
) -> Tunnel {
    let first = protocol.take_first();
    let tunnel = Tunnel::new(side, datagrams, first, protocol.longest_payload());
    if let Some(limits) = protocol.receive_limits() {
        tunnel.set_receive_limits(limits);
    }
    let driver = Driver {
        tunnel: tunnel.clone(),
        stream,
        side,
        protocol,
        guard: None,
    };
    runtime::spawn(driver.run());
    tunnel
}

/// Reads and writes the stream of a tunnel.
struct Driver {
    tunnel: Tunnel,
    stream: Stream,
    side: Side,
    protocol: Protocol,
    /// Ends with the size of a path that is too narrow. `None` while any size is enough.
    guard: Option<Pin<Box<dyn Future<Output = usize> + Send>>>,
}

impl Driver {
    async fn run(mut self) {
        poll_fn(|cx| self.poll(cx)).await;
        // Whatever happens to the stream, nobody waits for it.
        self.tunnel.close();
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let tunnel = self.tunnel.clone();
        let mut state = tunnel.state();
        state.driver = Some(cx.waker().clone());
        let has_ended = state.has_ended();
        drop(state);
        if has_ended {
            return self.poll_close(cx);
        }
        let read = self.poll_read(cx);
        if let Poll::Ready(end) = read {
            self.tunnel.finish(end);
            return self.poll_close(cx);
        }
        // Behind the reader, because capsules decide what there is to wait for.
        if let Poll::Ready(size) = self.poll_guard(cx) {
            self.tunnel.abort(Ended::Narrow(size), Code::CONNECT_ERROR);
            return self.poll_close(cx);
        }
        if let Poll::Ready(Err(lost)) = self.poll_write(cx) {
            self.tunnel.finish(Ended::Lost(lost));
            return Poll::Ready(());
        }
        // The end may have been requested while this task ran.
        let has_ended = tunnel.state().has_ended();
        match has_ended {
            true => self.poll_close(cx),
            false => Poll::Pending,
        }
    }

    /// Polls for the size of a path that is too narrow for the protocol.
    fn poll_guard(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        let smallest = self.protocol.smallest_payload();
        if smallest == 0 {
            self.guard = None;
            return Poll::Pending;
        }
        if self.guard.is_none()
            && let Some(probe) = self.protocol.probe()
        {
            let guard = narrow::size(self.tunnel.clone(), smallest, probe);
            self.guard = Some(Box::pin(guard));
        }
        match &mut self.guard {
            Some(guard) => guard.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }

    /// Ends the stream: by a reset with a code, or after what is written in part. What waits is lost, as UDP may lose
    /// it, so that a peer that does not read keeps no task.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.tunnel.state();
        state.outgoing = Queue::default();
        let reset = state.reset_code();
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
            let state = self.tunnel.state();
            let is_full = self.side == Side::Server && !state.incoming.has_room();
            if is_full || state.control.len() >= MAX_CONTROL {
                return Poll::Pending; // The receiver wakes this task, or the writer goes on.
            }
            drop(state);
            let fault = match ready!(self.stream.poll_next(cx)) {
                Ok(Some(Received::Datagram(datagram))) => self.on_datagram(datagram),
                Ok(Some(Received::Capsule(Capsule { kind, value }))) => {
                    let answer = self.protocol.on_capsule(kind, &value);
                    answer.map(|answer| self.tunnel.state().control.extend(answer))
                }
                Ok(None) => return Poll::Ready(Ended::ByPeer),
                Err(Failed::Lost(lost)) => return Poll::Ready(Ended::Lost(lost)),
                Err(Failed::Malformed { code, reason }) => {
                    Err(Fault(Ended::Stream { code, reason }, code))
                }
            };
            if let Err(Fault(end, code)) = fault {
                self.tunnel.abort(end, code);
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Keeps the payload of a datagram in a capsule for the receiver.
    fn on_datagram(&self, datagram: Bytes) -> Result<(), Fault> {
        let payload = self.tunnel.payload(datagram);
        let payload = payload.map_err(|error| Fault(Ended::Malformed(error), error.code()))?;
        if let Some(payload) = payload {
            let mut state = self.tunnel.state();
            if !state.incoming.has_room() {
                drop(state);
                self.tunnel.on_overflow();
                return Ok(());
            }
            state.incoming.push(payload);
            if let Some(receiver) = state.receiver.take() {
                receiver.wake();
            }
        }
        Ok(())
    }

    /// Writes capsules: those of control first.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LostStream>> {
        loop {
            ready!(self.stream.poll_room(cx))?;
            let mut state = self.tunnel.state();
            if state.outgoing.is_empty() && state.control.is_empty() {
                return Poll::Ready(Ok(()));
            }
            if state.control.len() >= MAX_CONTROL {
                cx.waker().wake_by_ref(); // Reading goes on.
            }
            while self.stream.has_room()
                && let Some((kind, value)) = state.control.pop_front()
            {
                self.stream.put(kind, &value);
            }
            while self.stream.has_room()
                && let Some(datagram) = state.outgoing.pop()
            {
                self.stream.put(Capsule::DATAGRAM, &datagram);
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
        self.tunnel.finish(Ended::Lost(LostStream::Runtime));
    }
}

/// Capsules of control that wait to be sent before no more are read (limit K632).
const MAX_CONTROL: usize = 8;

/// Capsules that are read in a turn.
const TURN: usize = 64;
