//! A UDP socket that reads and writes many datagrams at once.

use std::array;
use std::cell::Cell;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use peers_common::sockets;
use quinn_udp::{RecvMeta, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tquic::{PacketInfo, PacketSendHandler};

/// A packet of tquic and its addresses.
type Packet = (Vec<u8>, PacketInfo);

/// A socket with the buffers of the other peers.
pub struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    is_full: Cell<bool>,
    largest: Cell<usize>,
}

impl Socket {
    /// Binds one.
    ///
    /// # Errors
    /// When the address is taken or not of this machine.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = sockets::udp(address)?;
        let state = UdpSocketState::new((&socket).into())?;
        let local = socket.local_addr()?;
        Ok(Self {
            socket: UdpSocket::from_std(socket)?,
            state,
            local,
            is_full: Cell::new(false),
            largest: Cell::new(0),
        })
    }

    /// Returns the address of the socket.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Returns the length of the largest packet that was sent.
    pub fn largest_packet(&self) -> usize {
        self.largest.get()
    }

    /// Waits for datagrams.
    ///
    /// # Errors
    /// When the socket fails.
    pub async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await
    }

    /// Returns true if the kernel had no room for packets.
    pub fn is_full(&self) -> bool {
        self.is_full.get()
    }

    /// Waits until there may be room again.
    ///
    /// # Errors
    /// When the socket fails.
    pub async fn has_room(&self) -> io::Result<()> {
        self.socket.writable().await?;
        self.is_full.set(false);
        Ok(())
    }

    /// Receives datagrams and passes each to `each`. Returns false if no more are pending.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn receive(
        &self,
        buffer: &mut [u8],
        each: impl FnMut(&mut [u8], &PacketInfo),
    ) -> io::Result<bool> {
        let receive = || match self.receive_rounds(buffer, each)? {
            true => Ok(()),
            // The next call would block, and tokio is to wait for the next datagram.
            false => Err(io::ErrorKind::WouldBlock.into()),
        };
        match self.socket.try_io(Interest::READABLE, receive) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn receive_rounds(
        &self,
        buffer: &mut [u8],
        mut each: impl FnMut(&mut [u8], &PacketInfo),
    ) -> io::Result<bool> {
        for _ in 0..ROUNDS {
            let mut meta = [RecvMeta::default(); MESSAGES];
            let mut messages = buffer.chunks_exact_mut(MESSAGE_SIZE);
            let mut buffers: [_; MESSAGES] =
                array::from_fn(|_| IoSliceMut::new(messages.next().unwrap_or_default()));
            let count = match self
                .state
                .recv((&self.socket).into(), &mut buffers, &mut meta)
            {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                // An ICMP error for an earlier packet, caused by a client that has exited.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(error) => return Err(error),
            };
            let time = Instant::now();
            for (buffer, meta) in buffers.iter_mut().zip(&meta[..count]) {
                let info = PacketInfo {
                    src: meta.addr,
                    dst: self.local,
                    time,
                };
                // An empty datagram has no stride.
                for datagram in buffer[..meta.len].chunks_mut(meta.stride.max(1)) {
                    each(datagram, &info);
                }
            }
            if count < MESSAGES {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sends a batch with one system call.
    fn send(&self, batch: &[Packet]) -> nix::Result<()> {
        let Some((first, info)) = batch.first() else {
            return Ok(());
        };
        let mut slices = [IoSlice::new(&[]); MAX_SEGMENTS];
        for (slice, (packet, _)) in slices.iter_mut().zip(batch) {
            *slice = IoSlice::new(packet);
        }
        let size = u16::try_from(first.len()).map_err(|_| Errno::EMSGSIZE)?;
        let segments = [ControlMessage::UdpGsoSegments(&size)];
        let control = match batch.len() {
            1 => &[],
            _ => segments.as_slice(),
        };
        let (descriptor, to) = (self.socket.as_raw_fd(), SockaddrStorage::from(info.dst));
        let flags = MsgFlags::empty();
        sendmsg(
            descriptor,
            &slices[..batch.len()],
            control,
            flags,
            Some(&to),
        )?;
        self.largest.set(self.largest.get().max(first.len()));
        Ok(())
    }
}

impl PacketSendHandler for Socket {
    fn on_packets_send(&self, packets: &[Packet]) -> tquic::Result<usize> {
        let most = self.state.max_gso_segments().min(MAX_SEGMENTS);
        let mut sent = 0;
        while sent < packets.len() {
            let length = batch_length(&packets[sent..], most);
            let batch = &packets[sent..sent + length];
            let send = || self.send(batch).map_err(io::Error::from);
            match self.socket.try_io(Interest::WRITABLE, send) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_full.set(true);
                    break;
                }
                // A packet that the kernel refuses, such as a probe that is too large, counts as lost.
                Ok(()) | Err(_) => sent += length,
            }
        }
        Ok(sent)
    }
}

/// Returns the number of leading packets that fit into one GSO send. They have one size and one destination; the last
/// may be shorter.
fn batch_length(packets: &[Packet], most: usize) -> usize {
    let Some((first, way)) = packets.first() else {
        return 0;
    };
    let mut bytes = first.len();
    let mut length = 1;
    for (packet, next_way) in &packets[1..] {
        bytes += packet.len();
        let fits = length < most && bytes <= MAX_BATCH && next_way.dst == way.dst;
        if !fits || packet.len() > first.len() {
            break;
        }
        length += 1;
        if packet.len() < first.len() {
            break;
        }
    }
    length
}

/// The length of the buffer for received datagrams.
pub const BUFFER_SIZE: usize = MESSAGES * MESSAGE_SIZE;

/// The largest number of bytes in one sendmsg(2) over IPv4.
pub const MAX_BATCH: usize = 65_507;

/// The largest number of packets in it.
const MAX_SEGMENTS: usize = 64;

/// Messages of one recvmmsg(2). With GRO each is up to 64 packets of one sender.
const MESSAGES: usize = 4;

/// The longest that GRO makes.
const MESSAGE_SIZE: usize = 1 << 16;

/// Calls of it in a row: 1 MiB, less than the kernel's own buffer.
const ROUNDS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(sizes: &[usize], port: u16) -> Vec<Packet> {
        let info = PacketInfo {
            src: SocketAddr::from(([127, 0, 0, 1], 1)),
            dst: SocketAddr::from(([127, 0, 0, 1], port)),
            time: Instant::now(),
        };
        let mut fill = 0;
        let packet = |&size| {
            fill += 1;
            (vec![fill; size], info)
        };
        sizes.iter().map(packet).collect()
    }

    #[test]
    fn packets_of_one_size_go_together() {
        for (sizes, length) in [
            (&[][..], 0),
            (&[100, 100, 100], 3),
            (&[100, 101, 100], 1),
            (&[100, 100, 60, 60], 3),
            (&[100; 70], 64),
            (&[1452; 64], 45),
        ] {
            assert_eq!(batch_length(&packets(sizes, 2), 64), length, "{sizes:?}");
        }
        assert_eq!(batch_length(&packets(&[100; 4], 2), 1), 1, "without GSO");
        let mut to_two = packets(&[100, 100], 2);
        to_two.extend(packets(&[100], 3));
        assert_eq!(batch_length(&to_two, 64), 2);
    }

    #[tokio::test]
    async fn packets_come_as_they_were_sent() {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let (sender, receiver) = (Socket::bind(local).unwrap(), Socket::bind(local).unwrap());
        let sizes = [1200, 1452, 1452, 1452, 30, 1452, 40];
        let sent = packets(&sizes, receiver.local_address().port());
        // tokio has not seen yet that the socket is writable.
        assert_eq!(sender.on_packets_send(&sent), Ok(0));
        assert!(sender.is_full());
        sender.has_room().await.unwrap();
        assert_eq!(sender.on_packets_send(&sent), Ok(sizes.len()));
        assert!(!sender.is_full());
        assert_eq!(sender.largest_packet(), 1452);
        let mut buffer = vec![0; BUFFER_SIZE];
        let mut received = Vec::new();
        while received.len() < sizes.len() {
            receiver.readable().await.unwrap();
            let take = |packet: &mut [u8], info: &PacketInfo| {
                assert_eq!(info.src, sender.local_address());
                received.push(packet.to_vec());
            };
            assert!(!receiver.receive(&mut buffer, take).unwrap(), "it was all");
        }
        let sent: Vec<_> = sent.into_iter().map(|(packet, _)| packet).collect();
        assert_eq!(received, sent);
    }
}
