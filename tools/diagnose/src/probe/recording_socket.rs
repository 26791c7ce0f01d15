//! A socket that records its datagrams, and can change its port as a NAT does.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use courser::runtime::{Received, SystemSocket, Transmit, UdpSocket};
use courser::{Capabilities, Counters};
use tokio::io::Interest;

use crate::probe::wire::WireLog;

/// The socket of an endpoint, with a log of its datagrams. Clones share the socket and the log.
#[derive(Clone, Debug)]
pub(crate) struct RecordingSocket(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The local address that the endpoint sees, whatever port is in use.
    local: SocketAddr,
    current: Mutex<Current>,
    log: Mutex<WireLog>,
}

#[derive(Debug)]
struct Current {
    socket: Arc<Watched>,
    /// The task that receives, which is woken after a change of the socket.
    receiver: Option<Waker>,
}

/// A socket, and a duplicate that the runtime watches for readiness.
#[derive(Debug)]
struct Watched {
    udp: SystemSocket,
    watch: tokio::net::UdpSocket,
}

impl Watched {
    fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = std::net::UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        let watch = tokio::net::UdpSocket::from_std(socket.try_clone()?)?;
        let udp = SystemSocket::from_std(socket)?;
        Ok(Self { udp, watch })
    }
}

impl RecordingSocket {
    /// Binds a socket with an empty log.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = Watched::bind(address)?;
        let local = socket.udp.local_addr()?;
        let current = Current {
            socket: Arc::new(socket),
            receiver: None,
        };
        Ok(Self(Arc::new(Shared {
            local,
            current: Mutex::new(current),
            log: Mutex::default(),
        })))
    }

    /// Replaces the socket by one with another port, without notifying the endpoint. Datagrams to the earlier
    /// port are lost.
    pub(crate) fn rebind(&self) -> io::Result<()> {
        let socket = Watched::bind(rebound(self.0.local))?;
        let mut current = lock(&self.0.current);
        current.socket = Arc::new(socket);
        if let Some(receiver) = current.receiver.take() {
            receiver.wake();
        }
        Ok(())
    }

    /// Returns a copy of the log.
    pub(crate) fn log(&self) -> WireLog {
        lock(&self.0.log).clone()
    }

    fn socket(&self) -> Arc<Watched> {
        lock(&self.0.current).socket.clone()
    }
}

impl UdpSocket for RecordingSocket {
    fn poll_receive(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<Received>> {
        let socket = {
            let mut current = lock(&self.0.current);
            current.receiver = Some(cx.waker().clone());
            current.socket.clone()
        };
        loop {
            ready!(socket.watch.poll_recv_ready(cx))?;
            let received = socket
                .watch
                .try_io(Interest::READABLE, || socket.udp.try_receive(buffer));
            match received {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(received) => {
                    let mut log = lock(&self.0.log);
                    for datagram in received.datagrams(buffer) {
                        log.on_received(datagram, received.ecn);
                    }
                    return Poll::Ready(Ok(received));
                }
            }
        }
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<usize> {
        let taken = self.socket().udp.try_send_some(transmit)?;
        let size = transmit
            .segment_size
            .unwrap_or(transmit.contents.len())
            .max(1);
        let mut log = lock(&self.0.log);
        for datagram in transmit.contents[..taken].chunks(size) {
            log.on_sent(datagram);
        }
        Ok(taken)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = self.socket();
        ready!(socket.watch.poll_send_ready(cx))?;
        let not_yet = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
        let _ = socket.watch.try_io(Interest::WRITABLE, not_yet);
        Poll::Ready(Ok(()))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.0.local)
    }

    fn interface_mtu(&self, peer: SocketAddr) -> Option<u32> {
        self.socket().udp.interface_mtu(peer)
    }

    fn capabilities(&self) -> Capabilities {
        self.socket().udp.capabilities()
    }

    fn can_mark(&self) -> bool {
        self.socket().udp.can_mark()
    }

    fn counters(&self) -> Counters {
        self.socket().udp.counters()
    }
}

/// Returns the address with port 0, so that the system chooses one.
fn rebound(mut local: SocketAddr) -> SocketAddr {
    local.set_port(0);
    local
}

/// Locks a mutex, even if it is poisoned: its content is always valid.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
