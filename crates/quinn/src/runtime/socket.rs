//! Sockets of programs, for courser.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use courser_base::canonical;
use courser_quic::Capabilities;
use courser_quic::runtime::{Ecn, Received, Transmit, UdpSocket};
use udp::{EcnCodepoint, RecvMeta};

use super::traits::{AsyncUdpSocket, UdpPoller};

/// A socket of a program.
#[derive(Debug)]
pub(crate) struct SocketAdapter {
    socket: Arc<dyn AsyncUdpSocket>,
    writable: Mutex<Pin<Box<dyn UdpPoller>>>,
    is_ipv6: bool,
}

/// The minimum MTU of IPv6.
const IPV6_MIN_MTU: u32 = 1280;

impl SocketAdapter {
    pub(crate) fn new(socket: Arc<dyn AsyncUdpSocket>) -> Self {
        Self {
            writable: Mutex::new(socket.clone().create_io_poller()),
            is_ipv6: socket.local_addr().is_ok_and(|address| address.is_ipv6()),
            socket,
        }
    }

    /// Sends some of the datagrams of a batch in one call.
    fn send(&self, transmit: &Transmit<'_>, contents: &[u8], size: usize) -> io::Result<()> {
        self.socket.try_send(&udp::Transmit {
            destination: match transmit.destination {
                // A link-local address has a zone, without which nothing can be sent to it.
                SocketAddr::V6(_) => transmit.destination,
                SocketAddr::V4(v4) => (self.in_family((*v4.ip()).into()), v4.port()).into(),
            },
            ecn: match transmit.ecn {
                Ecn::NotEct => None,
                Ecn::Ect0 => Some(EcnCodepoint::Ect0),
                Ecn::Ect1 => Some(EcnCodepoint::Ect1),
                Ecn::Ce => Some(EcnCodepoint::Ce),
            },
            contents,
            segment_size: (contents.len() > size).then_some(size),
            src_ip: transmit.source.map(|ip| self.in_family(ip)),
        })
    }

    /// Returns the address as the socket writes it: one of IPv6 sends to IPv4 by mapped addresses
    /// (RFC 4291 §2.5.5.2).
    fn in_family(&self, ip: IpAddr) -> IpAddr {
        match ip {
            IpAddr::V4(v4) if self.is_ipv6 => v4.to_ipv6_mapped().into(),
            other => other,
        }
    }
}

impl UdpSocket for SocketAdapter {
    fn poll_receive(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<Received>> {
        let mut meta = [RecvMeta::default()];
        let buffers = &mut [IoSliceMut::new(buffer)];
        let count = ready!(self.socket.poll_recv(cx, buffers, &mut meta))?;
        let [mut meta] = meta;
        if count == 0 {
            // The endpoint counts batches that are empty.
            meta.len = 0;
        }
        Poll::Ready(Ok(Received {
            len: meta.len,
            // A stride of 0 stands for one datagram.
            segment_size: if meta.stride == 0 {
                meta.len.max(1)
            } else {
                meta.stride
            },
            peer: canonical(meta.addr),
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
        let contents = transmit.contents;
        let size = transmit.segment_size.unwrap_or(contents.len()).max(1);
        // A socket lowers the number when the device turns out not to segment. Longer batches would be lost.
        let segments = self.socket.max_transmit_segments().max(1);
        let mut sent = 0;
        for piece in contents.chunks(size.saturating_mul(segments)) {
            match self.send(transmit, piece, size) {
                Ok(()) => sent += piece.len(),
                Err(error) if sent == 0 => return Err(error),
                // The rest follows, and its error with it.
                Err(_) => break,
            }
        }
        Ok(sent)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut writable = self.writable.lock().unwrap_or_else(PoisonError::into_inner);
        writable.as_mut().poll_writable(cx)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn interface_mtu(&self, _peer: SocketAddr) -> Option<u32> {
        // Fragments would arrive, so the search for the path MTU would find too much (RFC 9000 §14).
        self.socket.may_fragment().then_some(IPV6_MIN_MTU)
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.gso_segments = self.socket.max_transmit_segments();
        capabilities.gro = self.socket.max_receive_segments() > 1;
        capabilities.ecn = true;
        capabilities
    }
}
