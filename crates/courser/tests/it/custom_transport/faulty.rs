//! A transport with impossible results, which counts its calls.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};

use courser::Capabilities;
use courser::runtime::{Ecn, Received, Transmit, UdpSocket};

use super::switch::Port;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// More bytes than the buffer has.
    TooLong,
    /// Segments without a length.
    NoSegments,
    /// Datagrams of 1200 bytes from an address that cannot send.
    From(&'static str),
    /// Garbage of 20 bytes from another port each time.
    FromAnywhere,
    EmptyDatagrams,
    ReceiveErrors(io::ErrorKind),
    /// A broken pipe in place of the first datagram.
    BreaksOnReceive,
    SendErrors(io::ErrorKind),
    /// The code of a closed descriptor in place of the first datagram.
    ClosedOnReceive,
    /// The code of a closed descriptor for each datagram.
    ClosedOnSend,
    /// Neither readable nor writable, ever.
    NeverReady,
    /// Writable, but full.
    WritableAndFull,
    /// Bytes sent: none.
    SendsNothing,
    /// Bytes sent: more than there were.
    SendsTooMuch,
    /// Bytes sent: half a datagram.
    SendsHalves,
    /// Batches of any length.
    EndlessBatches,
    Mtu(u32),
    /// The local address is known only at first.
    LosesAddress,
}

/// Returns false results of one kind, and otherwise behaves like a port.
#[derive(Debug)]
pub struct FaultyTransport {
    pub fault: Fault,
    pub port: Port,
    pub calls: Arc<AtomicU64>,
}

impl FaultyTransport {
    fn answer(
        &self,
        len: usize,
        segment_size: usize,
        peer: SocketAddr,
    ) -> Poll<io::Result<Received>> {
        let _ = self;
        Poll::Ready(Ok(Received {
            len,
            segment_size,
            peer,
            local: None,
            ecn: Ecn::Ce,
            truncated: false,
        }))
    }
}

/// Returns the error of a closed descriptor.
fn closed() -> io::Error {
    io::Error::from_raw_os_error(if cfg!(windows) { 6 } else { 9 })
}

impl UdpSocket for FaultyTransport {
    fn poll_receive(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<Received>> {
        let calls = self.calls.fetch_add(1, Relaxed);
        let peer = SocketAddr::from(([192, 0, 2, 2], 2));
        match self.fault {
            Fault::TooLong => self.answer(buffer.len() + 1, 1200, peer),
            Fault::NoSegments => match self.port.poll_receive(cx, buffer) {
                Poll::Ready(Ok(received)) => Poll::Ready(Ok(Received {
                    segment_size: 0,
                    ..received
                })),
                other => other,
            },
            Fault::From(address) => self.answer(1200, 1200, address.parse().expect("an address")),
            Fault::FromAnywhere if calls < 5000 => {
                let port = u16::try_from(calls + 1).expect("fits");
                self.answer(20, 20, SocketAddr::from(([192, 0, 2, 77], port)))
            }
            Fault::EmptyDatagrams => self.answer(0, 0, peer),
            Fault::ReceiveErrors(kind) => Poll::Ready(Err(kind.into())),
            Fault::BreaksOnReceive => {
                let received = self.port.poll_receive(cx, buffer);
                received.map(|_| Err(io::ErrorKind::BrokenPipe.into()))
            }
            Fault::ClosedOnReceive => {
                let received = self.port.poll_receive(cx, buffer);
                received.map(|_| Err(closed()))
            }
            Fault::NeverReady => Poll::Pending,
            _ => self.port.poll_receive(cx, buffer),
        }
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<usize> {
        self.calls.fetch_add(1, Relaxed);
        match self.fault {
            Fault::SendErrors(kind) => Err(kind.into()),
            Fault::ClosedOnSend => Err(closed()),
            Fault::NeverReady | Fault::WritableAndFull => Err(io::ErrorKind::WouldBlock.into()),
            Fault::SendsNothing => Ok(0),
            Fault::SendsTooMuch => self.port.try_send(transmit).map(|_| usize::MAX),
            Fault::SendsHalves => self.port.try_send(transmit).map(|taken| taken / 2),
            _ => self.port.try_send(transmit),
        }
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.calls.fetch_add(1, Relaxed);
        match self.fault {
            Fault::NeverReady => Poll::Pending,
            Fault::WritableAndFull | Fault::SendsNothing => Poll::Ready(Ok(())),
            _ => self.port.poll_writable(cx),
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        match self.fault {
            Fault::LosesAddress if self.calls.load(Relaxed) > 20 => {
                Err(io::ErrorKind::NotFound.into())
            }
            _ => self.port.local_addr(),
        }
    }

    fn interface_mtu(&self, peer: SocketAddr) -> Option<u32> {
        match self.fault {
            Fault::Mtu(mtu) => Some(mtu),
            _ => self.port.interface_mtu(peer),
        }
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.port.capabilities();
        match self.fault {
            Fault::EndlessBatches => capabilities.gso_segments = usize::MAX,
            // What the transport says of batches that it counts wrongly must stay below its room.
            Fault::SendsHalves | Fault::SendsTooMuch => capabilities.gso_segments = 1,
            _ => {}
        }
        capabilities
    }
}
