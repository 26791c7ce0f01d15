//! Sockets of programs, for courser.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use courser_quic::Capabilities;
use courser_quic::runtime::{Ecn, Received, Transmit, UdpSocket};
use udp::{EcnCodepoint, RecvMeta};

use super::traits::{AsyncUdpSocket, UdpPoller};

/// A socket of a program.
#[derive(Debug)]
pub(crate) struct SocketAdapter {
    socket: Arc<dyn AsyncUdpSocket>,
    writable: Mutex<Pin<Box<dyn UdpPoller>>>,
}

impl SocketAdapter {
    pub(crate) fn new(socket: Arc<dyn AsyncUdpSocket>) -> Self {
        Self {
            writable: Mutex::new(socket.clone().create_io_poller()),
            socket,
        }
    }
}

impl UdpSocket for SocketAdapter {
    fn poll_receive(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<Received>> {
        let mut meta = [RecvMeta::default()];
        let buffers = &mut [IoSliceMut::new(buffer)];
        loop {
            if ready!(self.socket.poll_recv(cx, buffers, &mut meta))? > 0 {
                break;
            }
        }
        let [meta] = meta;
        Poll::Ready(Ok(Received {
            len: meta.len,
            // A stride of 0 stands for one datagram.
            segment_size: if meta.stride == 0 {
                meta.len.max(1)
            } else {
                meta.stride
            },
            peer: SocketAddr::new(meta.addr.ip().to_canonical(), meta.addr.port()),
            local: meta.dst_ip.map(|ip| ip.to_canonical()),
            ecn: match meta.ecn {
                None => Ecn::NotEct,
                Some(EcnCodepoint::Ect0) => Ecn::Ect0,
                Some(EcnCodepoint::Ect1) => Ecn::Ect1,
                Some(EcnCodepoint::Ce) => Ecn::Ce,
            },
            truncated: false,
        }))
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<usize> {
        self.socket.try_send(&udp::Transmit {
            destination: transmit.destination,
            ecn: match transmit.ecn {
                Ecn::NotEct => None,
                Ecn::Ect0 => Some(EcnCodepoint::Ect0),
                Ecn::Ect1 => Some(EcnCodepoint::Ect1),
                Ecn::Ce => Some(EcnCodepoint::Ce),
            },
            contents: transmit.contents,
            segment_size: transmit.segment_size,
            src_ip: transmit.source,
        })?;
        Ok(transmit.contents.len())
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut writable = self.writable.lock().unwrap_or_else(PoisonError::into_inner);
        writable.as_mut().poll_writable(cx)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.gso_segments = self.socket.max_transmit_segments();
        capabilities.gro = self.socket.max_receive_segments() > 1;
        capabilities.ecn = true;
        capabilities
    }
}
