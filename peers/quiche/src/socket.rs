//! A UDP socket that reads and writes many datagrams at once.

use std::array;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use nix::poll::{PollFd, PollFlags};
use peers_common::sockets;
use quiche::RecvInfo;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};

use crate::body::Quic;

/// A socket with its buffers.
#[derive(Debug)]
pub(crate) struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    received: Box<[u8]>,
    outgoing: Box<[u8]>,
    /// Batches for which the kernel had no room, oldest first.
    unsent: Vec<Batch>,
}

/// The rest of what a connection has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing.
    Nothing,
    /// More than is sent in one go; others may have their turn first.
    More,
    /// Something that waits for the kernel.
    Blocked,
}

/// Packets that lie one behind the other: all of one size, but the last may be shorter.
#[derive(Clone, Copy, Debug)]
struct Batch {
    start: usize,
    end: usize,
    packets: usize,
    packet_size: usize,
    to: SocketAddr,
}

impl Batch {
    const fn new(start: usize, packet_size: usize, to: SocketAddr) -> Self {
        Self {
            start,
            end: start + packet_size,
            packets: 1,
            packet_size,
            to,
        }
    }

    /// Takes the packet behind it, if the kernel can send it with the others.
    fn take(&mut self, size: usize, to: SocketAddr, most: usize) -> bool {
        let fits = size <= self.packet_size
            && to == self.to
            && self.packets < most
            && self.end + size - self.start <= MAX_BATCH;
        if fits {
            self.end += size;
            self.packets += 1;
        }
        fits
    }

    /// True when no packet of this size can follow.
    const fn is_full(&self, most: usize) -> bool {
        let length = self.end - self.start;
        self.packets == most
            || !length.is_multiple_of(self.packet_size)
            || length + self.packet_size > MAX_BATCH
    }
}

impl Socket {
    /// Binds one with the buffers of the other peers.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = sockets::udp(address)?;
        let state = UdpSocketState::new((&socket).into())?;
        let local = socket.local_addr()?;
        Ok(Self {
            socket,
            state,
            local,
            received: vec![0; MESSAGES * MESSAGE_SIZE].into(),
            outgoing: vec![0; OUTGOING_SIZE].into(),
            unsent: Vec::new(),
        })
    }

    pub(crate) const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Returns the events to wait for.
    pub(crate) fn to_poll(&self) -> PollFd<'_> {
        let events = if self.unsent.is_empty() {
            PollFlags::POLLIN
        } else {
            PollFlags::POLLIN | PollFlags::POLLOUT
        };
        PollFd::new(self.as_fd(), events)
    }

    /// Hands over what has come, datagram by datagram; true when there may be more.
    pub(crate) fn receive(
        &mut self,
        mut each: impl FnMut(&mut [u8], RecvInfo),
    ) -> io::Result<bool> {
        for _ in 0..ROUNDS {
            let mut meta = [RecvMeta::default(); MESSAGES];
            let mut messages = self.received.chunks_exact_mut(MESSAGE_SIZE);
            let mut buffers: [_; MESSAGES] =
                array::from_fn(|_| IoSliceMut::new(messages.next().unwrap_or_default()));
            let count = match self
                .state
                .recv((&self.socket).into(), &mut buffers, &mut meta)
            {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                // An ICMP error for an earlier packet, caused by an end that has exited.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(error) => return Err(error),
            };
            for (buffer, meta) in buffers.iter_mut().zip(&meta[..count]) {
                let info = RecvInfo {
                    from: meta.addr,
                    to: self.local,
                };
                // An empty datagram has no stride.
                for datagram in buffer[..meta.len].chunks_mut(meta.stride.max(1)) {
                    each(datagram, info);
                }
            }
            if count < MESSAGES {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sends what `connection` has to send, many packets with each system call.
    pub(crate) fn send(&mut self, connection: &mut Quic) -> io::Result<Left> {
        if !self.flush()? {
            return Ok(Left::Blocked);
        }
        let most = self.state.max_gso_segments();
        let mut batch: Option<Batch> = None;
        let mut sent = 0;
        while sent < MAX_TURN {
            let mut end = batch.map_or(0, |batch| batch.end);
            if self.outgoing.len() - end < MAX_PACKET {
                if let Some(full) = batch.take()
                    && !self.transmit(full)?
                {
                    return Ok(Left::Blocked);
                }
                end = 0;
            }
            let (size, to) = match connection.send(&mut self.outgoing[end..]) {
                Ok((size, info)) => (size, info.to),
                Err(quiche::Error::Done) => break,
                Err(error) => {
                    // The peer is told if it can be; the connection is over in any case.
                    eprintln!("connection: {error}");
                    let _ = connection.close(false, INTERNAL_ERROR, b"");
                    break;
                }
            };
            sent += size;
            if !batch.as_mut().is_some_and(|it| it.take(size, to, most)) {
                let begun = Batch::new(end, size, to);
                if let Some(before) = batch.replace(begun)
                    && !self.transmit(before)?
                {
                    self.unsent.push(begun);
                    return Ok(Left::Blocked);
                }
            }
            if let Some(full) = batch.take_if(|batch| batch.is_full(most))
                && !self.transmit(full)?
            {
                return Ok(Left::Blocked);
            }
        }
        if let Some(last) = batch
            && !self.transmit(last)?
        {
            return Ok(Left::Blocked);
        }
        Ok(if sent < MAX_TURN {
            Left::Nothing
        } else {
            Left::More
        })
    }

    /// Sends a packet of no connection. Where the kernel has no room, the packet is lost.
    pub(crate) fn send_alone(&self, packet: &[u8], to: SocketAddr) {
        let _ = self.socket.send_to(packet, to);
    }

    /// Sends what is left of earlier turns; false when there is still no room.
    fn flush(&mut self) -> io::Result<bool> {
        for batch in std::mem::take(&mut self.unsent) {
            if self.unsent.is_empty() {
                self.transmit(batch)?;
            } else {
                self.unsent.push(batch);
            }
        }
        Ok(self.unsent.is_empty())
    }

    /// Sends a batch, or keeps it and says false when the kernel has no room.
    fn transmit(&mut self, batch: Batch) -> io::Result<bool> {
        let transmit = Transmit {
            destination: batch.to,
            ecn: None,
            contents: &self.outgoing[batch.start..batch.end],
            segment_size: Some(batch.packet_size),
            src_ip: None,
        };
        match self.state.try_send((&self.socket).into(), &transmit) {
            Ok(()) => Ok(true),
            // As above. The batch is lost.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.unsent.push(batch);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Messages of one recvmmsg(2). With GRO each is up to 64 packets of one sender.
const MESSAGES: usize = 16;

/// The longest that GRO makes.
const MESSAGE_SIZE: usize = 1 << 16;

/// Calls of it before what was read is processed: 4 MiB, less than the kernel's own buffer.
const ROUNDS: usize = 4;

/// The longest packet that the command line allows; a batch begins anew where this has no room.
const MAX_PACKET: usize = 9000;

/// The largest number of bytes in one sendmsg(2) over IPv4.
const MAX_BATCH: usize = 65_507;

/// Two batches, since a packet that is longer than those before it lies behind them.
const OUTGOING_SIZE: usize = 2 << 16;

/// Bytes that one connection sends before others have their turn and acknowledgements are read.
const MAX_TURN: usize = 1 << 20;

/// RFC 9000 §20.1.
const INTERNAL_ERROR: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn packets_of_one_size_go_together() {
        let mut batch = Batch::new(0, 100, address(1));
        assert!(batch.take(100, address(1), 4));
        assert!(!batch.is_full(4));
        assert!(!batch.take(101, address(1), 4), "longer than the first");
        assert!(!batch.take(100, address(2), 4), "to somebody else");
        assert!(batch.take(60, address(1), 4), "the last may be shorter");
        assert!(batch.is_full(4));
        assert_eq!((batch.start, batch.end, batch.packets), (0, 260, 3));
    }

    #[test]
    fn batches_end_where_the_kernel_does() {
        let mut batch = Batch::new(7, 1452, address(1));
        while batch.take(1452, address(1), 64) {}
        assert_eq!(batch.packets, 45);
        assert!(batch.is_full(64));
        let mut batch = Batch::new(0, 30, address(1));
        while batch.take(30, address(1), 64) {}
        assert_eq!(batch.packets, 64);
        assert!(batch.is_full(64));
    }
}
