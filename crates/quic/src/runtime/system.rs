//! The system's socket, with tokio's notifications of its readiness.

use std::io;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

pub(super) use self::readiness::{Socket, Writability};
use courser_udp::{Received, UdpSocket};

/// Returns an error if there is no runtime, rather than panic later.
pub(super) fn require() -> io::Result<()> {
    match tokio::runtime::Handle::try_current() {
        Ok(_) => Ok(()),
        Err(error) => Err(io::Error::other(format!(
            "an endpoint needs tokio, or a runtime that was entered: {error}"
        ))),
    }
}

/// Returns the time of day on the system's calendar, since the beginning of 1970 (UTC).
pub(super) fn unix_time() -> Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

/// Returns bytes from the system's source of random numbers.
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

    /// The socket, with the runtime's notifications of readability.
    ///
    /// Registered only for reading: with interest in writing, the kernel would wake the task for
    /// every buffer that was sent, although sending hardly ever has to wait.
    #[derive(Debug)]
    pub(crate) struct Socket(AsyncFd<UdpSocket>);

    impl Socket {
        pub(crate) fn new(socket: UdpSocket) -> io::Result<Self> {
            register(socket, RECEIVING).map(Self)
        }

        pub(crate) fn udp(&self) -> &UdpSocket {
            self.0.get_ref()
        }

        /// Returns true if there may be something to receive. Otherwise wakes the task later.
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

    /// Arriving datagrams and, on Linux, ICMP messages, which `courser_udp` reports as priority
    /// data.
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

    /// The runtime's notifications of writability, requested only while a batch waits.
    #[derive(Debug, Default)]
    pub(crate) struct Writability(Option<AsyncFd<OwnedFd>>);

    impl Writability {
        /// Returns `Ready` when another attempt makes sense.
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
            // The next attempt registers again and is notified of the present state. The runtime
            // reports only changes, and one between two attempts could be missed.
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

    /// The socket, with the runtime's notifications of readability and writability.
    #[derive(Debug)]
    pub(crate) struct Socket {
        udp: UdpSocket,
        // A duplicate that is registered with the runtime, only for its readiness.
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

        /// Returns true if there may be something to receive. Otherwise wakes the task later.
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

    /// The runtime's notifications of writability.
    #[derive(Debug, Default)]
    pub(crate) struct Writability;

    impl Writability {
        /// Returns `Ready` when another attempt makes sense.
        pub(crate) fn poll(
            &mut self,
            socket: &Socket,
            cx: &mut Context<'_>,
        ) -> Poll<io::Result<()>> {
            ready!(socket.watch.poll_send_ready(cx))?;
            // The attempt follows at once and shows whether it is true.
            let not_yet = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
            let _ = socket.watch.try_io(Interest::WRITABLE, not_yet);
            Poll::Ready(Ok(()))
        }
    }
}
