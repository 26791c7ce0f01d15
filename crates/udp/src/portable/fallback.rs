//! All platforms except Linux, implemented with `quinn-udp`.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::OnceLock;

use courser_base::Ecn;
use quinn_udp::{EcnCodepoint, RecvMeta, UdpSocketState};
use socket2::SockRef;

use super::address::{canonical, for_socket, usable_source};
use super::offload::{Offload, uninterrupted};
use super::refusal::{Extras, Refusals, is_local};
use crate::Capabilities;
use crate::batch::{Received, Transmit};
use crate::capabilities::BUFFER_WANTED;
use crate::clock::ClockState;
use crate::counters::AtomicCounters;

/// Returns the state of the clock, or `None` if the system does not report it. Linux only so far.
pub fn clock_state() -> Option<ClockState> {
    None
}

/// Returns false: this system has no such call.
pub const fn release_unused_memory() -> bool {
    false
}

/// A socket that uses the batches of the system, if it has any.
#[derive(Debug)]
pub(crate) struct Socket {
    io: UdpSocket,
    /// The state for batches. An error is the reason why each datagram is sent on its own and
    /// without marks. It occurs only on Windows: Wine does not implement all of the requests.
    batches: io::Result<UdpSocketState>,
    is_ipv6: bool,
    is_wildcard: bool,
    peer: OnceLock<SocketAddr>,
    offload: Offload,
    refusals: Refusals,
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
            refusals: Refusals::default(),
            io,
        };
        this.enlarge_buffers(BUFFER_WANTED);
        Ok(this)
    }

    /// Stores the peer without connecting the system's socket. After a `connect`, most systems
    /// except Linux refuse an address in a send call, and `quinn-udp` always passes one.
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

    pub(crate) fn send(
        &self,
        transmit: &Transmit<'_>,
        counters: &AtomicCounters,
    ) -> io::Result<usize> {
        let destination = canonical(transmit.destination);
        let source = transmit.source.filter(|_| self.is_wildcard);
        let source = usable_source(source, destination);
        self.offload
            .send(transmit, counters, |contents, segment_size| {
                let destination = for_socket(destination, self.is_ipv6);
                let Ok(batches) = &self.batches else {
                    return self.io.send_to(contents, destination);
                };
                let extras = Extras {
                    mark: transmit.ecn != Ecn::NotEct,
                    source,
                };
                self.refusals.send(extras, counters, is_local, |extras| {
                    let batch = quinn_udp::Transmit {
                        destination,
                        ecn: EcnCodepoint::from_bits(transmit.ecn.to_bits())
                            .filter(|_| extras.mark),
                        contents,
                        segment_size,
                        src_ip: extras.source,
                    };
                    batches
                        .try_send((&self.io).into(), &batch)
                        .map(|()| contents.len())
                })
            })
    }

    pub(crate) fn can_mark(&self) -> bool {
        self.refusals.can_mark()
    }

    pub(crate) fn receive(
        &self,
        buffer: &mut [u8],
        _counters: &AtomicCounters,
    ) -> io::Result<Received> {
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
            // Not reported. A buffer of RECEIVE_BUFFER_LEN bytes holds any batch.
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

    fn local_of(&self, reported: Option<IpAddr>) -> Option<IpAddr> {
        match reported {
            Some(ip) => Some(ip.to_canonical()),
            None if self.is_wildcard => None,
            None => self.local_addr().ok().map(|address| address.ip()),
        }
    }

    /// Returns false: this platform does not read ICMP messages.
    pub(crate) fn has_icmp_messages(&self) -> bool {
        false
    }

    pub(crate) fn take_unreachable(&self) -> Option<crate::UnreachableReport> {
        None
    }

    pub(crate) fn take_packet_too_big(&self) -> Option<crate::PacketTooBig> {
        None
    }

    pub(crate) fn receive_overflow(&self) -> Option<u64> {
        None
    }

    pub(crate) fn enlarge_buffers(&self, bytes: usize) {
        // Best effort: the effective size is reported, and a small one causes a warning. Apple's
        // systems have bounds, which `quinn-udp` observes.
        let _ = match &self.batches {
            Ok(batches) => batches
                .set_recv_buffer_size((&self.io).into(), bytes)
                .and(batches.set_send_buffer_size((&self.io).into(), bytes)),
            Err(_) => SockRef::from(&self.io)
                .set_recv_buffer_size(bytes)
                .and(SockRef::from(&self.io).set_send_buffer_size(bytes)),
        };
    }

    pub(crate) fn limit_buffers(&self, bytes: usize) {
        let socket = SockRef::from(&self.io);
        if socket.recv_buffer_size().is_ok_and(|size| size > bytes) {
            let _ = socket.set_recv_buffer_size(bytes);
        }
        if socket.send_buffer_size().is_ok_and(|size| size > bytes) {
            let _ = socket.set_send_buffer_size(bytes);
        }
    }

    /// Returns the minimum MTU of IPv6 if the system may fragment datagrams, and `None` otherwise.
    /// The platform does not report the MTU. With fragmentation, datagrams that exceed the path MTU
    /// would still arrive, so only the size that every path supports is safe (RFC 9000 §14).
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
                "the system does not support batches ({error}): each datagram costs a system \
                 call and has at most {IPV6_MIN_MTU} bytes, ECN marks are neither sent nor \
                 received, and a socket bound to a wildcard address replies from any address"
            )
        });
        // `quinn-udp` does not enable receive coalescing on Windows.
        let merges = self
            .batches
            .as_ref()
            .map_or(1, UdpSocketState::gro_segments)
            > 1;
        let gro = merges && cfg!(not(windows));
        Capabilities {
            gso_segments: self.gso_segments(),
            gro,
            ecn: has_batches && self.can_mark(),
            pktinfo: has_batches && cfg!(any(unix, windows)) && self.refusals.can_choose_source(),
            receive_buffer: socket.recv_buffer_size().unwrap_or(0),
            receive_buffer_wanted: BUFFER_WANTED,
            send_buffer: socket.send_buffer_size().unwrap_or(0),
            send_buffer_wanted: BUFFER_WANTED,
            warnings: missing.into_iter().collect(),
        }
    }
}

/// Returns false: on other systems a socket cannot be connected beside others.
pub(crate) fn has_only_connected(_port: u16) -> bool {
    false
}

/// Fails: on other systems the option distributes datagrams in ways of their own, or is missing.
pub(crate) fn share_port<S>(_socket: &S) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Fails: see [`share_port`].
pub(crate) fn unshare_port<S>(_socket: &S) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Fails: see [`share_port`].
pub(crate) fn steer<S>(
    _socket: &S,
    _rule: crate::steering::Steering,
    _sockets: u16,
) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The minimum MTU of IPv6 links. RFC 8200 §5.
const IPV6_MIN_MTU: u32 = 1280;
