//! Every platform but Linux, by way of `quinn-udp`.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::OnceLock;

use courser_base::Ecn;
use quinn_udp::{EcnCodepoint, RecvMeta, UdpSocketState};
use socket2::SockRef;

use super::address::{canonical, for_socket, usable_source};
use super::offload::{Offload, uninterrupted};
use crate::Capabilities;
use crate::batch::{Received, Transmit};
use crate::capabilities::BUFFER_WANTED;
use crate::counters::Tally;

/// A socket with the system's own way of batches, if it has one.
#[derive(Debug)]
pub(crate) struct Socket {
    io: UdpSocket,
    /// The error is why each datagram goes by itself, without marks. On Windows only: Wine does not
    /// answer all that is asked.
    batches: io::Result<UdpSocketState>,
    is_ipv6: bool,
    is_wildcard: bool,
    peer: OnceLock<SocketAddr>,
    offload: Offload,
}

impl Socket {
    pub(crate) fn new(io: UdpSocket) -> io::Result<Self> {
        let batches = match UdpSocketState::new((&io).into()) {
            Err(error) if cfg!(not(windows)) => return Err(error),
            batches => batches,
        };
        io.set_nonblocking(true)?;
        let local = io.local_addr()?;
        let segments = batches.as_ref().map_or(1, UdpSocketState::max_gso_segments);
        let this = Self {
            batches,
            is_ipv6: local.is_ipv6(),
            is_wildcard: local.ip().is_unspecified(),
            peer: OnceLock::new(),
            offload: Offload::new(segments),
            io,
        };
        this.enlarge_buffers(BUFFER_WANTED);
        Ok(this)
    }

    /// Remembers the peer. The system's own `connect` stays uncalled, because most systems but
    /// Linux refuse an address on each send afterwards, and `quinn-udp` always gives one.
    pub(crate) fn connect(&self, peer: SocketAddr) -> io::Result<()> {
        let peer = canonical(peer);
        if peer.is_ipv6() && !self.is_ipv6 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.peer
            .set(peer)
            .map_err(|_| io::ErrorKind::AlreadyExists.into())
    }

    pub(crate) fn io(&self) -> &UdpSocket {
        &self.io
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr().map(canonical)
    }

    pub(crate) fn peer_addr(&self) -> Option<SocketAddr> {
        self.peer.get().copied()
    }

    pub(crate) fn gso_segments(&self) -> usize {
        self.offload.segments()
    }

    pub(crate) fn send(&self, transmit: &Transmit<'_>, tally: &Tally) -> io::Result<usize> {
        let destination = canonical(transmit.destination);
        let source = transmit.source.filter(|_| self.is_wildcard);
        let source = usable_source(source, destination);
        self.offload
            .send(transmit, tally, |contents, segment_size| {
                let destination = for_socket(destination, self.is_ipv6);
                let Ok(batches) = &self.batches else {
                    return self.io.send_to(contents, destination);
                };
                let batch = quinn_udp::Transmit {
                    destination,
                    ecn: EcnCodepoint::from_bits(transmit.ecn.to_bits()),
                    contents,
                    segment_size,
                    src_ip: source,
                };
                batches
                    .try_send((&self.io).into(), &batch)
                    .map(|()| contents.len())
            })
    }

    pub(crate) fn receive(&self, buffer: &mut [u8], _tally: &Tally) -> io::Result<Received> {
        let Ok(batches) = &self.batches else {
            return self.receive_one(buffer);
        };
        let mut meta = [RecvMeta::default()];
        uninterrupted(|| {
            let mut slices = [IoSliceMut::new(buffer)];
            batches.recv((&self.io).into(), &mut slices, &mut meta)
        })?;
        let [meta] = meta;
        Ok(Received {
            len: meta.len,
            segment_size: meta.stride.max(1),
            peer: canonical(meta.addr),
            local: self.local_of(meta.dst_ip),
            ecn: meta
                .ecn
                .map_or(Ecn::NotEct, |mark| Ecn::from_bits(mark as u8)),
            // Not told. A buffer of RECEIVE_BUFFER_LEN holds anything.
            truncated: false,
        })
    }

    fn receive_one(&self, buffer: &mut [u8]) -> io::Result<Received> {
        let (len, peer) = uninterrupted(|| self.io.recv_from(buffer))?;
        Ok(Received {
            len,
            segment_size: len.max(1),
            peer: canonical(peer),
            local: self.local_of(None),
            ecn: Ecn::NotEct,
            truncated: false,
        })
    }

    fn local_of(&self, told: Option<IpAddr>) -> Option<IpAddr> {
        match told {
            Some(ip) => Some(ip.to_canonical()),
            None if self.is_wildcard => None,
            None => self.local_addr().ok().map(|address| address.ip()),
        }
    }

    /// What routers say is not heard of.
    pub(crate) fn has_news(&self) -> bool {
        false
    }

    pub(crate) fn take_packet_too_big(&self) -> Option<crate::PacketTooBig> {
        None
    }

    pub(crate) fn receive_overflow(&self) -> Option<u64> {
        None
    }

    pub(crate) fn enlarge_buffers(&self, bytes: usize) {
        // Best effort: the effective size is reported and warned about. Apple's systems have bounds
        // that `quinn-udp` keeps.
        let _ = match &self.batches {
            Ok(batches) => batches
                .set_recv_buffer_size((&self.io).into(), bytes)
                .and(batches.set_send_buffer_size((&self.io).into(), bytes)),
            Err(_) => SockRef::from(&self.io)
                .set_recv_buffer_size(bytes)
                .and(SockRef::from(&self.io).set_send_buffer_size(bytes)),
        };
    }

    /// Nobody tells. Where the system cannot be kept from fragmenting, no path takes more than any
    /// path has to: larger datagrams would arrive, in pieces (RFC 9000 §14).
    pub(crate) fn interface_mtu(&self, _peer: SocketAddr) -> Option<u32> {
        let may_fragment = match &self.batches {
            Ok(batches) => batches.may_fragment(),
            Err(_) => true,
        };
        may_fragment.then_some(IPV6_MIN_MTU)
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        let socket = SockRef::from(&self.io);
        let has_batches = self.batches.is_ok();
        let missing = self.batches.as_ref().err().map(|error| {
            format!(
                "the system refuses what batches need ({error}): each datagram costs a system \
                 call and has {IPV6_MIN_MTU} bytes at most, marks of congestion (ECN) are neither \
                 sent nor seen, and a socket for all addresses answers from any of them"
            )
        });
        // `quinn-udp` leaves it off on Windows.
        let merges = self
            .batches
            .as_ref()
            .map_or(1, UdpSocketState::gro_segments)
            > 1;
        let gro = merges && cfg!(not(windows));
        Capabilities {
            gso_segments: self.gso_segments(),
            gro,
            ecn: has_batches,
            pktinfo: has_batches && cfg!(any(unix, windows)),
            receive_buffer: socket.recv_buffer_size().unwrap_or(0),
            receive_buffer_wanted: BUFFER_WANTED,
            send_buffer: socket.send_buffer_size().unwrap_or(0),
            send_buffer_wanted: BUFFER_WANTED,
            warnings: missing.into_iter().collect(),
        }
    }
}

/// RFC 8200 §5.
const IPV6_MIN_MTU: u32 = 1280;
