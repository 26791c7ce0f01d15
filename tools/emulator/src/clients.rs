//! The clients of an emulator, each with a socket towards the server.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use courser_base::Time;
use courser_udp::UdpSocket;

/// A client and its socket towards the server.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    /// The local address that it sends to.
    pub(crate) local: Option<IpAddr>,
    pub(crate) upstream: UdpSocket,
    last_seen: Time,
    /// Bytes of this client that the server has received.
    received_by_server: u64,
    sent_by_server: u64,
}

/// All clients. A client keeps its index until it is forgotten.
#[derive(Debug)]
pub(crate) struct Clients {
    server: SocketAddr,
    max: usize,
    idle: Duration,
    /// The number of bytes of a client up to which its amplification counts.
    watched_bytes: u64,
    entries: Vec<Option<Client>>,
    index_of: HashMap<SocketAddr, usize>,
    /// The last client found: successive datagrams often belong to the same one.
    last: Option<(SocketAddr, usize)>,
    /// Sockets from before a rebinding. They remain open so that late replies are dropped silently, as a NAT
    /// does, instead of being answered by the kernel.
    pub(crate) retired: VecDeque<UdpSocket>,
    pub(crate) counts: ClientCounts,
}

/// Counters of all clients.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientCounts {
    pub(crate) clients: u64,
    pub(crate) refused_datagrams: u64,
    pub(crate) rebindings: u64,
    pub(crate) kernel_drops: u64,
    /// The largest number of bytes that the server sent per byte received while a client was watched, in
    /// thousandths.
    pub(crate) worst_amplification: Option<u64>,
}

impl Clients {
    pub(crate) fn new(server: SocketAddr, max: usize, idle: Duration, watched_bytes: u64) -> Self {
        Self {
            server,
            max,
            idle,
            watched_bytes,
            entries: Vec::new(),
            index_of: HashMap::new(),
            last: None,
            retired: VecDeque::new(),
            counts: ClientCounts::default(),
        }
    }

    /// Returns the client with this address, or a new one. Returns `None` at the limit of clients.
    ///
    /// # Errors
    /// Returns an error if no socket can be opened for the first client, because the server cannot be reached.
    /// Later clients are refused instead, so that they do not end the connections of others.
    pub(crate) fn find_or_add(
        &mut self,
        now: Time,
        address: SocketAddr,
        local: Option<IpAddr>,
    ) -> io::Result<Option<usize>> {
        if let Some(index) = self.find(address) {
            if let Some(client) = &mut self.entries[index] {
                client.last_seen = now;
            }
            return Ok(Some(index));
        }
        if self.index_of.len() >= self.max {
            return Ok(None);
        }
        let upstream = match self.open(None) {
            Ok(upstream) => upstream,
            Err(error) if self.counts.clients == 0 => return Err(error),
            Err(_) => return Ok(None),
        };
        let client = Client {
            address,
            local,
            upstream,
            last_seen: now,
            received_by_server: 0,
            sent_by_server: 0,
        };
        let free = self.entries.iter().position(Option::is_none);
        let index = free.unwrap_or(self.entries.len());
        if index == self.entries.len() {
            self.entries.push(None);
        }
        self.entries[index] = Some(client);
        self.index_of.insert(address, index);
        self.last = Some((address, index));
        self.counts.clients += 1;
        Ok(Some(index))
    }

    /// Returns the client with this address, if there is one.
    pub(crate) fn find(&mut self, address: SocketAddr) -> Option<usize> {
        if let Some((last, index)) = self.last
            && last == address
        {
            return Some(index);
        }
        let index = *self.index_of.get(&address)?;
        self.last = Some((address, index));
        Some(index)
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Client> {
        self.entries.get(index)?.as_ref()
    }

    pub(crate) fn indexes(&self) -> impl Iterator<Item = usize> + '_ {
        let filled = |(index, entry): (usize, &Option<Client>)| entry.as_ref().map(|_| index);
        self.entries.iter().enumerate().filter_map(filled)
    }

    pub(crate) fn upstreams(&self) -> impl Iterator<Item = &UdpSocket> {
        self.entries.iter().flatten().map(|client| &client.upstream)
    }

    /// Counts bytes of a client that are forwarded to the server.
    pub(crate) fn on_reached_server(&mut self, index: usize, bytes: u64) {
        if let Some(Some(client)) = self.entries.get_mut(index) {
            client.received_by_server += bytes;
        }
    }

    /// Counts bytes that the server sends to a client.
    pub(crate) fn on_server_sent(&mut self, now: Time, index: usize, bytes: u64) {
        let Some(Some(client)) = self.entries.get_mut(index) else {
            return;
        };
        client.last_seen = now;
        // The first reply always counts: on a slow machine, a client may send more than the watched bytes before
        // the server replies.
        let is_first = client.sent_by_server == 0;
        client.sent_by_server += bytes;
        let received = client.received_by_server;
        if received > 0 && (is_first || received <= self.watched_bytes) {
            let ratio = client.sent_by_server.saturating_mul(1000) / received;
            self.counts.worst_amplification = self.counts.worst_amplification.max(Some(ratio));
        }
    }

    /// Changes the port, or the address, of every client towards the server.
    pub(crate) fn rebind(&mut self, host: Option<u8>) -> io::Result<()> {
        for index in 0..self.entries.len() {
            if self.entries[index].is_none() {
                continue;
            }
            let fresh = self.open(host)?;
            if let Some(client) = &mut self.entries[index] {
                let old = std::mem::replace(&mut client.upstream, fresh);
                self.counts.rebindings += 1;
                self.retired.push_back(old);
            }
            while self.retired.len() > MAX_RETIRED {
                let oldest = self.retired.pop_front();
                self.close(oldest.as_ref());
            }
        }
        Ok(())
    }

    /// Forgets clients without datagrams for [`Plan::idle`](crate::Plan::idle).
    pub(crate) fn expire(&mut self, now: Time) {
        for index in 0..self.entries.len() {
            let is_idle = |client: &mut Client| now - client.last_seen >= self.idle;
            if let Some(client) = self.entries[index].take_if(is_idle) {
                self.index_of.remove(&client.address);
                self.last = None;
                self.close(Some(&client.upstream));
            }
        }
    }

    /// Returns the number of datagrams that the kernel has dropped on sockets that are still open.
    pub(crate) fn open_kernel_drops(&self) -> u64 {
        let sockets = self.upstreams().chain(&self.retired);
        sockets.filter_map(UdpSocket::receive_overflow).sum()
    }

    fn close(&mut self, socket: Option<&UdpSocket>) {
        let dropped = socket.and_then(UdpSocket::receive_overflow);
        self.counts.kernel_drops += dropped.unwrap_or(0);
    }

    /// Opens a socket towards the server, from 127.0.0.`host` if that is given.
    fn open(&self, host: Option<u8>) -> io::Result<UdpSocket> {
        let ip: IpAddr = match (host, self.server) {
            (Some(host), _) => Ipv4Addr::new(127, 0, 0, host).into(),
            (None, SocketAddr::V4(_)) => Ipv4Addr::UNSPECIFIED.into(),
            (None, SocketAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind(SocketAddr::from((ip, 0)))?;
        socket.enlarge_buffers(BUFFER);
        socket.connect(self.server)?;
        Ok(socket)
    }
}

/// The socket buffer to request in bytes: 50 ms at 5 Gbit/s, the longest time for which other work may
/// delay reading.
pub(crate) const BUFFER: usize = 32 << 20;

/// The number of sockets from before rebindings that remain open. Each rebinding retires one per client.
/// Replies that arrive several rebindings late are answered by the kernel.
const MAX_RETIRED: usize = 64;

#[cfg(test)]
mod tests;
