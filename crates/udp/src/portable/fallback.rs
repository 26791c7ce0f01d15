//! Every platform but Linux, by way of `quinn-udp`.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::OnceLock;

use courser_base::Ecn;
use quinn_udp::{EcnCodepoint, RecvMeta, UdpSocketState};

use super::address::{canonical, for_socket, usable_source};
use super::offload::{Offload, uninterrupted};
use crate::Capabilities;
use crate::batch::{Received, Transmit};
use crate::capabilities::BUFFER_WANTED;
use crate::counters::Tally;

/// A socket with the system's own way of batches.
#[derive(Debug)]
pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    is_ipv6: bool,
    is_wildcard: bool,
    peer: OnceLock<SocketAddr>,
    offload: Offload,
}

impl Socket {
    pub(crate) fn new(io: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&io).into())?;
        // Best effort: the effective size is reported and warned about.
        let _ = state.set_recv_buffer_size((&io).into(), BUFFER_WANTED);
        let _ = state.set_send_buffer_size((&io).into(), BUFFER_WANTED);
        let local = io.local_addr()?;
        let offload = Offload::new(state.max_gso_segments());
        Ok(Self {
            state,
            is_ipv6: local.is_ipv6(),
            is_wildcard: local.ip().is_unspecified(),
            peer: OnceLock::new(),
            offload,
            io,
        })
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
                let batch = quinn_udp::Transmit {
                    destination: for_socket(destination, self.is_ipv6),
                    ecn: EcnCodepoint::from_bits(transmit.ecn.to_bits()),
                    contents,
                    segment_size,
                    src_ip: source,
                };
                self.state
                    .try_send((&self.io).into(), &batch)
                    .map(|()| contents.len())
            })
    }

    pub(crate) fn receive(&self, buffer: &mut [u8], _tally: &Tally) -> io::Result<Received> {
        let mut meta = [RecvMeta::default()];
        uninterrupted(|| {
            let mut slices = [IoSliceMut::new(buffer)];
            self.state.recv((&self.io).into(), &mut slices, &mut meta)
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
        // Best effort, as at the beginning.
        let _ = self.state.set_recv_buffer_size((&self.io).into(), bytes);
        let _ = self.state.set_send_buffer_size((&self.io).into(), bytes);
    }

    /// Nobody tells.
    pub(crate) fn interface_mtu(&self, _peer: SocketAddr) -> Option<u32> {
        None
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        let size = |size: io::Result<usize>| size.unwrap_or(0);
        Capabilities {
            gso_segments: self.gso_segments(),
            gro: self.state.gro_segments() > 1,
            ecn: true,
            pktinfo: cfg!(any(unix, windows)),
            receive_buffer: size(self.state.recv_buffer_size((&self.io).into())),
            receive_buffer_wanted: BUFFER_WANTED,
            send_buffer: size(self.state.send_buffer_size((&self.io).into())),
            send_buffer_wanted: BUFFER_WANTED,
            warnings: Vec::new(),
        }
    }
}
