//! TUN devices for IP tunnels, on Linux.

use std::cell::RefCell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use courser_base::Mutex;
use courser_masque::Prefix;
use courser_masque::ip::AddressRange;
use courser_tun::network::{Destination, Network, NetworkError, Route};
use courser_tun::{Device, OpenError, ReadBuffer, WriteBuffer};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::ended::Ended;
use crate::ip::{self, IpTunnel};

pub use courser_tun::Offloads;

/// A TUN device: a network interface of the system whose packets a program reads and writes. It is the
/// [network](crate::Device) of an IP proxy, and the end of an IP tunnel on a client.
///
/// The interface, its addresses and its routes are removed when it is dropped. Linux only; creating one needs the capability
/// CAP_NET_ADMIN.
///
/// A VPN, which carries packets until the tunnel ends:
///
/// ```no_run
/// # mod courser { pub use courser_masque_tokio as masque; }
/// use courser::masque::{IpTunnel, Tun};
///
/// # async fn vpn(tunnel: IpTunnel) -> Result<(), Box<dyn std::error::Error>> {
/// let device = Tun::open(Some("courser0"))?;
/// let ended = device.run(&tunnel).await?;
/// println!("the tunnel has ended: {ended}");
/// # Ok(()) }
/// ```
pub struct Tun {
    io: AsyncFd<Device>,
    read: Mutex<ReadBuffer>,
    interface: Mutex<Interface>,
    index: u32,
    mtu: AtomicUsize,
    counters: Counters,
}

/// The reason why a device was not created, set up or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TunError {
    /// The device was not created.
    #[error("{0}")]
    Open(#[from] OpenError),
    /// The system has refused an address, a route or a size.
    #[error("{0}")]
    Network(#[from] NetworkError),
    /// The device has failed, for example because its interface was removed.
    #[error("the TUN device has failed: {0}")]
    Failed(#[from] io::Error),
}

/// The counters of a [`Tun`], in packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TunStats {
    /// Packets that the system has sent into the interface.
    pub read: u64,
    /// Packets that the system has accepted from the interface.
    pub written: u64,
    /// System calls for them, which carry runs of packets.
    pub write_calls: u64,
    /// Packets that the system has refused: without memory, or while the interface is down.
    pub dropped: u64,
}

#[derive(Default)]
struct Counters {
    read: AtomicU64,
    written: AtomicU64,
    write_calls: AtomicU64,
    dropped: AtomicU64,
}

thread_local! {
    static WRITE: RefCell<WriteBuffer> = RefCell::new(WriteBuffer::new());
}

/// What was set on the interface.
struct Interface {
    network: Network,
    addresses: Vec<Prefix>,
    routes: Vec<Prefix>,
}

impl fmt::Debug for Tun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tun")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

impl Tun {
    /// Creates a device. The system chooses the name if there is none. The interface is down, and has no address.
    ///
    /// # Errors
    /// Returns an error if the name is invalid or in use, this process lacks CAP_NET_ADMIN, or there is no `/dev/net/tun`.
    ///
    /// # Panics
    /// Panics outside of a runtime of tokio.
    pub fn open(name: Option<&str>) -> Result<Self, TunError> {
        let mut builder = Device::builder();
        if let Some(name) = name {
            builder = builder.name(name);
        }
        Self::new(builder.open()?)
    }

    /// Uses a device that exists.
    ///
    /// # Errors
    /// Returns an error if the system refuses to describe the interface.
    ///
    /// # Panics
    /// Panics outside of a runtime of tokio.
    pub fn new(device: Device) -> Result<Self, TunError> {
        let mut network = Network::open()?;
        let found = network.interface(device.name())?;
        let interface = Interface {
            network,
            addresses: Vec::new(),
            routes: Vec::new(),
        };
        Ok(Self {
            io: register(device)?,
            read: Mutex::default(),
            interface: Mutex::new(interface),
            index: found.index,
            mtu: AtomicUsize::new(found.mtu as usize),
            counters: Counters::default(),
        })
    }

    /// Returns the name of the interface.
    pub fn name(&self) -> &str {
        self.io.get_ref().name()
    }

    /// Returns the number of the interface.
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// Returns the offloads of the device.
    pub fn offloads(&self) -> Offloads {
        self.io.get_ref().offloads()
    }

    /// Returns the counters.
    pub fn stats(&self) -> TunStats {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TunStats {
            read: of(&self.counters.read),
            written: of(&self.counters.written),
            write_calls: of(&self.counters.write_calls),
            dropped: of(&self.counters.dropped),
        }
    }

    /// Lets the interface carry packets.
    ///
    /// # Errors
    /// Returns an error if the system refuses it.
    pub fn set_up(&self) -> Result<(), TunError> {
        Ok(self.interface.lock().network.set_up(self.index)?)
    }

    /// Sets the longest packet of the interface in bytes. An interface with an address of IPv6 has at least 1280
    /// (RFC 8200 §5); longer packets than a tunnel carries are answered with ICMP.
    ///
    /// # Errors
    /// Returns an error if the system refuses the size.
    pub fn set_mtu(&self, mtu: usize) -> Result<(), TunError> {
        let mut interface = self.interface.lock();
        let has_ipv6 = interface.addresses.iter().any(|it| !it.is_ipv4());
        let least = if has_ipv6 { LEAST_IPV6 } else { LEAST_IPV4 };
        let mtu = mtu.clamp(least, courser_tun::MAX_PACKET);
        if mtu != self.mtu.load(Ordering::Relaxed) {
            interface.network.set_mtu(self.index, mtu as u32)?;
            self.mtu.store(mtu, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Sets the addresses of the interface, and removes those that it had from an earlier call. Of a prefix, the second
    /// address is used, as the first one of a network stands for all of it.
    ///
    /// # Errors
    /// Returns an error if the system refuses an address.
    pub fn set_addresses(&self, addresses: &[Prefix]) -> Result<(), TunError> {
        if addresses.iter().any(|it| !it.is_ipv4()) && self.mtu.load(Ordering::Relaxed) < LEAST_IPV6
        {
            self.set_mtu(LEAST_IPV6)?;
        }
        let interface = &mut *self.interface.lock();
        // New ones first: without any address, the system would remove the routes too.
        for prefix in addresses {
            if interface.addresses.contains(prefix) {
                continue;
            }
            let (address, length) = host(prefix);
            interface.network.add_address(self.index, address, length)?;
            interface.addresses.push(*prefix);
        }
        let is_gone = |it: &mut Prefix| !addresses.contains(it);
        for prefix in interface.addresses.extract_if(.., is_gone) {
            let (address, length) = host(&prefix);
            interface
                .network
                .remove_address(self.index, address, length)?;
        }
        Ok(())
    }

    /// Sets the destinations that are routed into the interface, in the main table, and removes those of an earlier call. The
    /// interface has to be up.
    ///
    /// # Errors
    /// Returns an error if the system refuses a route, for example because there is another one to the same destination.
    pub fn set_routes(&self, routes: &[Prefix]) -> Result<(), TunError> {
        let interface = &mut *self.interface.lock();
        let (gone, kept): (Vec<_>, Vec<_>) = interface
            .routes
            .drain(..)
            .partition(|it| !routes.contains(it));
        interface.routes = kept;
        for prefix in gone {
            let route = Route::through(self.index, destination(&prefix));
            interface.network.remove_route(&route)?;
        }
        for prefix in routes {
            if interface.routes.contains(prefix) {
                continue;
            }
            let route = Route::through(self.index, destination(prefix));
            interface.network.add_route(&route)?;
            interface.routes.push(*prefix);
        }
        Ok(())
    }

    /// Sets up the interface for a tunnel: its addresses, its size, and its routes except for those to all destinations,
    /// which would capture the connection to the proxy too.
    ///
    /// # Errors
    /// Returns an error if the system refuses it.
    pub fn configure(&self, tunnel: &IpTunnel) -> Result<(), TunError> {
        self.set_addresses(&tunnel.assigned().get())?;
        self.set_mtu(tunnel.max_packet_size())?;
        self.set_up()?;
        self.set_routes(&prefixes(&tunnel.routes().get()))
    }

    /// [Configures](Self::configure) the interface, carries packets, and follows changes of addresses, routes and sizes,
    /// until the tunnel ends.
    ///
    /// # Errors
    /// Returns an error if the system refuses a setting or the device fails.
    ///
    /// # Cancel safety
    /// Dropping the future stops the packets, and leaves the interface as it is.
    pub async fn run(&self, tunnel: &IpTunnel) -> Result<Ended, TunError> {
        if let Err(ended) = tunnel.configured().await {
            return Ok(ended);
        }
        let known = tunnel.max_packet_size();
        self.configure(tunnel)?;
        let mut carry = pin!(self.carry(tunnel));
        let mut follow = pin!(self.follow(tunnel, known));
        poll_fn(|cx| match carry.as_mut().poll(cx) {
            Poll::Ready(ended) => Poll::Ready(ended),
            Poll::Pending => follow.as_mut().poll(cx),
        })
        .await
    }

    /// Follows changes of a tunnel, for whose size `known` the interface is configured.
    async fn follow(&self, tunnel: &IpTunnel, mut known: usize) -> Result<Ended, TunError> {
        let (mut assigned, mut routes) = (tunnel.assigned(), tunnel.routes());
        loop {
            let changed = {
                let mut assigned = pin!(assigned.changed());
                let mut routes = pin!(routes.changed());
                let mut size = pin!(tunnel.max_packet_size_changed(known));
                poll_fn(|cx| {
                    if let Poll::Ready(changed) = assigned.as_mut().poll(cx) {
                        return Poll::Ready(changed.map(|_| ()));
                    }
                    if let Poll::Ready(changed) = routes.as_mut().poll(cx) {
                        return Poll::Ready(changed.map(|_| ()));
                    }
                    size.as_mut().poll(cx).map_ok(|_| ())
                })
                .await
            };
            if let Err(ended) = changed {
                return Ok(ended);
            }
            known = tunnel.max_packet_size();
            self.configure(tunnel)?;
        }
    }

    /// Carries packets between the system and a tunnel, until the tunnel ends.
    ///
    /// # Errors
    /// Returns an error if the device fails.
    ///
    /// # Cancel safety
    /// Dropping the future stops the packets. Those on their way are lost, as in a network.
    pub async fn carry(&self, tunnel: &IpTunnel) -> Result<Ended, TunError> {
        let mut up = pin!(self.carry_up(tunnel));
        let mut down = pin!(self.carry_down(tunnel));
        poll_fn(|cx| match up.as_mut().poll(cx) {
            Poll::Ready(ended) => Poll::Ready(ended),
            Poll::Pending => down.as_mut().poll(cx),
        })
        .await
    }

    async fn carry_up(&self, tunnel: &IpTunnel) -> Result<Ended, TunError> {
        let mut packets = Vec::new();
        loop {
            self.recv_many(&mut packets, BATCH).await?;
            if let Err(ended) = tunnel.send_many(&mut packets) {
                return Ok(ended);
            }
        }
    }

    async fn carry_down(&self, tunnel: &IpTunnel) -> Result<Ended, TunError> {
        let mut packets = Vec::new();
        loop {
            if let Err(ended) = tunnel.recv_many(&mut packets, BATCH).await {
                return Ok(ended);
            }
            self.send_many(&mut packets)?;
        }
    }

    /// Waits for packets of the system, and appends about `limit` of those that are there. Returns their number.
    ///
    /// # Errors
    /// Returns an error if the device has failed.
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing.
    pub async fn recv_many(&self, packets: &mut Vec<Bytes>, limit: usize) -> io::Result<usize> {
        // An interface that is removed is an error of the descriptor, which is not readable then.
        let mut failed = pin!(self.io.ready(Interest::ERROR));
        poll_fn(|cx| {
            if let Poll::Ready(received) = self.poll_recv_many(cx, packets, limit) {
                return Poll::Ready(received);
            }
            let mut guard = ready!(failed.as_mut().poll(cx))?;
            let read = &mut *self.read.lock();
            let received = self.io.get_ref().read_many(read, packets, limit);
            if received
                .as_ref()
                .is_err_and(|it| it.kind() == io::ErrorKind::WouldBlock)
            {
                guard.clear_ready();
                failed.set(self.io.ready(Interest::ERROR));
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(received)
        })
        .await
    }

    fn poll_recv_many(
        &self,
        cx: &mut Context<'_>,
        packets: &mut Vec<Bytes>,
        limit: usize,
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.io.poll_read_ready(cx))?;
            let read = &mut *self.read.lock();
            match self
                .io
                .get_ref()
                .read_many(read, packets, packets.len() + limit)
            {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => guard.clear_ready(),
                // Packets that contradicted their headers.
                Ok(0) => {}
                Ok(count) => {
                    let counter = &self.counters.read;
                    counter.fetch_add(count as u64, Ordering::Relaxed);
                    return Poll::Ready(Ok(count));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Passes packets to the system without waiting, and empties the list. Returns the number of those that it has accepted.
    ///
    /// # Errors
    /// Returns an error if the device has failed.
    pub fn send_many(&self, packets: &mut Vec<Bytes>) -> io::Result<usize> {
        let device = self.io.get_ref();
        // The system takes packets of several threads at a time.
        let written = WRITE.with_borrow_mut(|buffer| device.write_many(buffer, packets));
        packets.clear();
        let written = written?;
        let count = |counter: &AtomicU64, number: usize| {
            counter.fetch_add(number as u64, Ordering::Relaxed);
        };
        count(&self.counters.written, written.packets);
        count(&self.counters.write_calls, written.calls);
        count(&self.counters.dropped, written.dropped);
        Ok(written.packets)
    }

    /// Returns the longest packet of the interface in bytes.
    pub fn mtu(&self) -> usize {
        self.mtu.load(Ordering::Relaxed)
    }
}

impl ip::Device for Tun {
    fn send_many(&self, packets: &mut Vec<Bytes>) -> io::Result<usize> {
        self.send_many(packets)
    }

    fn poll_receive_many(
        &self,
        cx: &mut Context<'_>,
        packets: &mut Vec<Bytes>,
        limit: usize,
    ) -> Poll<io::Result<usize>> {
        self.poll_recv_many(cx, packets, limit)
    }

    fn mtu(&self) -> usize {
        self.mtu()
    }
}

/// Waits for packets. Writes never wait.
///
/// The call that replaces this one is unsafe for types whose descriptor could change: a device keeps its own until it is
/// dropped.
#[expect(
    deprecated,
    reason = "the replacement is unsafe, which only crates for system calls may be"
)]
fn register(device: Device) -> io::Result<AsyncFd<Device>> {
    AsyncFd::with_interest(device, Interest::READABLE.add(Interest::ERROR))
}

/// Returns the prefixes of ranges, except for those of all destinations.
fn prefixes(ranges: &[AddressRange]) -> Vec<Prefix> {
    let mut found: Vec<Prefix> = Vec::new();
    for prefix in ranges.iter().flat_map(AddressRange::prefixes) {
        // Ranges of several protocols can have the same addresses.
        if prefix.bits() > 0 && !found.contains(&prefix) {
            found.push(prefix);
        }
    }
    found
}

fn destination(prefix: &Prefix) -> Destination {
    Destination::new(prefix.first(), prefix.bits())
}

/// Returns the address of a host in a prefix, and its length.
fn host(prefix: &Prefix) -> (IpAddr, u8) {
    match prefix.first() {
        IpAddr::V4(first) if prefix.bits() < 31 => {
            (Ipv4Addr::from_bits(first.to_bits() + 1).into(), 32)
        }
        IpAddr::V6(first) if prefix.bits() < 127 => {
            (Ipv6Addr::from_bits(first.to_bits() + 1).into(), 128)
        }
        first @ IpAddr::V4(_) => (first, 32),
        first @ IpAddr::V6(_) => (first, 128),
    }
}

/// Packets that are read at a time (K643).
const BATCH: usize = 512;

/// The smallest MTU of IPv4 that Linux accepts.
const LEAST_IPV4: usize = 68;

/// The smallest MTU of IPv6 (RFC 8200 §5). Linux disables IPv6 on interfaces with less.
const LEAST_IPV6: usize = 1280;

#[cfg(test)]
mod tests;
