//! The virtual socket as endpoints use it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use courser::runtime::{PacketTooBig, Received, Transmit, UdpSocket};
use courser::{Capabilities, Counters};

use super::core::Core;
use super::network::{DEFAULT_BUFFER, GSO_SEGMENTS, SocketId};

/// A socket of a machine, closed when it is dropped.
#[derive(Debug)]
pub(super) struct VirtualSocket {
    core: Arc<Core>,
    id: SocketId,
}

impl VirtualSocket {
    pub(super) fn new(core: Arc<Core>, id: SocketId) -> Self {
        Self { core, id }
    }
}

impl UdpSocket for VirtualSocket {
    fn poll_receive(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<Received>> {
        let mut state = self.core.lock();
        let now = state.now;
        let is_readable = state.network.socket(self.id)?.is_readable();
        if is_readable && let Some(error) = state.network.faults.on_receive(now) {
            return Poll::Ready(Err(error));
        }
        let socket = state.network.socket(self.id)?;
        if let Some(received) = socket.read(buffer) {
            return Poll::Ready(Ok(received));
        }
        let before = socket.receiver.replace(cx.waker().clone());
        drop(state);
        drop(before);
        Poll::Pending
    }

    fn is_readable(&self, cx: &mut Context<'_>) -> bool {
        let mut state = self.core.lock();
        // A call on a closed socket returns the error.
        let Ok(socket) = state.network.socket(self.id) else {
            return true;
        };
        if socket.is_readable() {
            return true;
        }
        let before = socket.receiver.replace(cx.waker().clone());
        drop(state);
        drop(before);
        false
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<usize> {
        let mut state = self.core.lock();
        let now = state.now;
        state.network.send(self.id, now, transmit)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.core.lock();
        let now = state.now;
        if state.network.is_writable(now) {
            return Poll::Ready(Ok(()));
        }
        let socket = state.network.socket(self.id)?;
        let before = socket.sender.replace(cx.waker().clone());
        drop(state);
        drop(before);
        Poll::Pending
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        let mut state = self.core.lock();
        state.network.socket(self.id).map(|socket| socket.local)
    }

    fn take_packet_too_big(&self) -> Option<PacketTooBig> {
        let mut state = self.core.lock();
        state.network.socket(self.id).ok()?.take_report()
    }

    fn capabilities(&self) -> Capabilities {
        let receive_buffer = self.core.lock().network.receive_buffer;
        let mut capabilities = Capabilities::default();
        capabilities.gso_segments = GSO_SEGMENTS;
        capabilities.gro = true;
        capabilities.ecn = true;
        capabilities.pktinfo = true;
        capabilities.receive_buffer = receive_buffer;
        capabilities.receive_buffer_wanted = receive_buffer;
        capabilities.send_buffer = DEFAULT_BUFFER;
        capabilities.send_buffer_wanted = DEFAULT_BUFFER;
        capabilities
    }

    fn counters(&self) -> Counters {
        let mut state = self.core.lock();
        let socket = state.network.socket(self.id);
        socket.map(|socket| socket.counters).unwrap_or_default()
    }
}

impl Drop for VirtualSocket {
    fn drop(&mut self) {
        let closed = self.core.lock().network.close(self.id);
        drop(closed);
    }
}
