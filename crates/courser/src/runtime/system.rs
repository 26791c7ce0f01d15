//! The system's socket with tokio's word on its readiness.

use std::io;
use std::task::{Context, Poll};

pub(super) use self::readiness::{Socket, Writability};
use courser_udp::{Received, UdpSocket};

/// Fails, rather than panics later, when there is no runtime.
pub(super) fn require() -> io::Result<()> {
    match tokio::runtime::Handle::try_current() {
        Ok(_) => Ok(()),
        Err(error) => Err(io::Error::other(format!(
            "an endpoint needs tokio, or a runtime that was entered: {error}"
        ))),
    }
}

/// What the system's source of random numbers gives.
pub(super) fn random_seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    aws_lc_rs::rand::fill(&mut seed).map_err(|_| io::Error::other("no random numbers"))?;
    Ok(seed)
}

#[cfg(unix)]
mod readiness {
    use std::os::fd::{AsFd, AsRawFd, OwnedFd};
    use std::task::ready;

    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    use super::*;

    /// The socket, with the runtime's word on when to read.
    ///
    /// Registered for reading only: with interest in writing, the kernel would wake the task for
    /// every buffer that the network has taken, though sending hardly ever has to wait.
    #[derive(Debug)]
    pub(crate) struct Socket(AsyncFd<UdpSocket>);

    impl Socket {
        pub(crate) fn new(socket: UdpSocket) -> io::Result<Self> {
            register(socket, RECEIVING).map(Self)
        }

        pub(crate) fn udp(&self) -> &UdpSocket {
            self.0.get_ref()
        }

        /// True if there may be something to receive; otherwise the task is woken when there is.
        pub(crate) fn is_readable(&self, cx: &mut Context<'_>) -> bool {
            self.0.poll_read_ready(cx).is_ready()
        }

        /// Receives one batch, or arranges to be woken when there is one.
        pub(crate) fn poll_receive(
            &self,
            cx: &mut Context<'_>,
            buffer: &mut [u8],
        ) -> Poll<io::Result<Received>> {
            loop {
                let mut guard = ready!(self.0.poll_read_ready(cx))?;
                match self.udp().try_receive(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => guard.clear_ready(),
                    result => return Poll::Ready(result),
                }
            }
        }
    }

    /// What arrives, and on Linux what routers say: `courser_udp` has that told as priority data.
    #[cfg(target_os = "linux")]
    const RECEIVING: Interest = Interest::READABLE.add(Interest::PRIORITY);
    #[cfg(not(target_os = "linux"))]
    const RECEIVING: Interest = Interest::READABLE;

    #[expect(
        deprecated,
        reason = "what it leaves to trust holds, both types own their descriptor for life; the \
                  other constructors are unsafe code, which belongs to courser-udp"
    )]
    fn register<T: AsRawFd>(inner: T, interest: Interest) -> io::Result<AsyncFd<T>> {
        AsyncFd::with_interest(inner, interest)
    }

    /// The runtime's word on when to write, asked for only while a batch waits.
    #[derive(Debug, Default)]
    pub(crate) struct Writability(Option<AsyncFd<OwnedFd>>);

    impl Writability {
        /// Ready when another attempt makes sense.
        pub(crate) fn poll(
            &mut self,
            socket: &Socket,
            cx: &mut Context<'_>,
        ) -> Poll<io::Result<()>> {
            let watch = match &self.0 {
                Some(watch) => watch,
                None => {
                    // epoll takes a descriptor once: a second interest needs a duplicate.
                    let copy = socket.udp().as_fd().try_clone_to_owned()?;
                    self.0.insert(register(copy, Interest::WRITABLE)?)
                }
            };
            let ready = ready!(watch.poll_write_ready(cx)).map(drop);
            // The next attempt registers anew and is told how things stand then. The runtime
            // tells of changes only, and one between two attempts could be missed.
            self.0 = None;
            Poll::Ready(ready)
        }
    }
}

#[cfg(windows)]
mod readiness {
    use std::os::windows::io::AsSocket;
    use std::task::ready;

    use tokio::io::Interest;

    use super::*;

    /// The socket, with the runtime's word on when to read and write.
    #[derive(Debug)]
    pub(crate) struct Socket {
        udp: UdpSocket,
        // A duplicate, known to the runtime: only its readiness is used.
        watch: tokio::net::UdpSocket,
    }

    impl Socket {
        pub(crate) fn new(udp: UdpSocket) -> io::Result<Self> {
            let copy = std::net::UdpSocket::from(udp.as_socket().try_clone_to_owned()?);
            let watch = tokio::net::UdpSocket::from_std(copy)?;
            Ok(Self { udp, watch })
        }

        pub(crate) fn udp(&self) -> &UdpSocket {
            &self.udp
        }

        /// True if there may be something to receive; otherwise the task is woken when there is.
        pub(crate) fn is_readable(&self, cx: &mut Context<'_>) -> bool {
            self.watch.poll_recv_ready(cx).is_ready()
        }

        /// Receives one batch, or arranges to be woken when there is one.
        pub(crate) fn poll_receive(
            &self,
            cx: &mut Context<'_>,
            buffer: &mut [u8],
        ) -> Poll<io::Result<Received>> {
            loop {
                ready!(self.watch.poll_recv_ready(cx))?;
                match self
                    .watch
                    .try_io(Interest::READABLE, || self.udp.try_receive(buffer))
                {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    result => return Poll::Ready(result),
                }
            }
        }
    }

    /// The runtime's word on when to write.
    #[derive(Debug, Default)]
    pub(crate) struct Writability;

    impl Writability {
        /// Ready when another attempt makes sense.
        pub(crate) fn poll(
            &mut self,
            socket: &Socket,
            cx: &mut Context<'_>,
        ) -> Poll<io::Result<()>> {
            ready!(socket.watch.poll_send_ready(cx))?;
            // The attempt follows at once and tells whether it is true.
            let not_yet = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
            let _ = socket.watch.try_io(Interest::WRITABLE, not_yet);
            Poll::Ready(Ok(()))
        }
    }
}
