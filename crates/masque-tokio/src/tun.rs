//! TUN devices for IP tunnels, on Linux.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use courser_base::Mutex;
use courser_masque::Prefix;
use courser_masque::ip::AddressRange;
use courser_tun::network::{Changes, Destination, LOCAL, MAIN, Network, NetworkError, Route};
use courser_tun::{Device, OpenError, ReadBuffer, WriteBuffer};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::ended::Ended;
use crate::ip::{self, IpTunnel};

pub use courser_tun::Offloads;

/// A TUN device: a network interface of the system whose packets a program reads and writes. It is the
/// [network](crate::Device) of an IP proxy, and the end of an IP tunnel on a client.
///
/// The interface, its addresses and its routes are removed when it is dropped; an interface that was there before, made by
/// `ip tuntap`, remains without them. Linux only; creating one needs the capability
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
    changes: AsyncFd<Changes>,
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
    /// The other end offers more networks than fit into a table of routes.
    #[error("the other end offers more than {MAX_ROUTES} networks")]
    Routes,
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
            changes: register(Changes::open()?)?,
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
            let added = interface.network.add_address(self.index, address, length);
            match added {
                // The interface has it already.
                Err(error) if error.is_present() => {}
                added => added?,
            }
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

    /// Waits until interfaces, addresses or rules of the system have changed. It also returns after changes by this device.
    ///
    /// # Errors
    /// Returns an error if the system does not report changes any more.
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    pub async fn changed(&self) -> io::Result<()> {
        loop {
            let mut guard = self.changes.readable().await?;
            match self.changes.get_ref().take() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => guard.clear_ready(),
                taken => return taken,
            }
        }
    }

    /// Sets again what the interface has lost: it is activated if another program has deactivated it, by which it loses its
    /// routes and its addresses of IPv6. Returns true if something was missing. What the system does not list is not
    /// known to be missing.
    ///
    /// # Errors
    /// Returns an error if the system refuses an address or a route.
    pub fn restore(&self) -> Result<bool, TunError> {
        let (addresses, routes) = {
            let interface = &mut *self.interface.lock();
            let was_whole = (interface.addresses.clone(), interface.routes.clone());
            let was_up = match interface.forget_lost(self.name(), self.index) {
                Ok(was_up) => was_up,
                Err(_) => return Ok(false),
            };
            if was_up && (&interface.addresses, &interface.routes) == (&was_whole.0, &was_whole.1) {
                return Ok(false);
            }
            if !was_up {
                interface.network.set_up(self.index)?;
            }
            was_whole
        };
        self.set_addresses(&addresses)?;
        self.set_routes(&routes)?;
        Ok(true)
    }

    /// Sets up the interface for a tunnel: its addresses, its size, and its routes except for those to all destinations,
    /// which would capture the connection to the proxy too. The tunnel accepts packets to these addresses only.
    ///
    /// # Errors
    /// Returns an error if the system refuses it, or the other end offers more than 1024 networks.
    pub fn configure(&self, tunnel: &IpTunnel) -> Result<(), TunError> {
        let assigned = tunnel.assigned().get();
        let routes = prefixes(&tunnel.routes().get()).ok_or(TunError::Routes)?;
        self.set_addresses(&assigned)?;
        let hosts: Vec<_> = assigned.iter().map(Prefix::host).collect();
        tunnel.use_addresses(&hosts);
        self.set_mtu(tunnel.max_packet_size())?;
        self.set_up()?;
        self.set_routes(&routes)
    }

    /// [Configures](Self::configure) the interface, carries packets, and follows changes of addresses, routes and sizes,
    /// until the tunnel ends. What other programs take from the interface is [restored](Self::restore).
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
            let is_of_tunnel = {
                let mut assigned = pin!(assigned.changed());
                let mut routes = pin!(routes.changed());
                let mut size = pin!(tunnel.max_packet_size_changed(known));
                let mut system = pin!(self.changed());
                poll_fn(|cx| {
                    if let Poll::Ready(changed) = assigned.as_mut().poll(cx) {
                        return Poll::Ready(Ok(changed.map(|_| true)));
                    }
                    if let Poll::Ready(changed) = routes.as_mut().poll(cx) {
                        return Poll::Ready(Ok(changed.map(|_| true)));
                    }
                    if let Poll::Ready(changed) = size.as_mut().poll(cx) {
                        return Poll::Ready(Ok(changed.map(|_| true)));
                    }
                    system.as_mut().poll(cx).map_ok(|()| Ok(false))
                })
                .await?
            };
            match is_of_tunnel {
                Err(ended) => return Ok(ended),
                Ok(true) => {
                    known = tunnel.max_packet_size();
                    self.configure(tunnel)?;
                }
                // Settings that are the same would be changes again.
                Ok(false) => drop(self.restore()?),
            }
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
                    if read.is_drained() {
                        // The next call waits at once. Packets that arrived meanwhile have made it ready again.
                        guard.clear_ready();
                    }
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

impl Drop for Tun {
    fn drop(&mut self) {
        // The system removes them with the interface, unless that was there before and remains.
        let _ = self.set_routes(&[]);
        let _ = self.set_addresses(&[]);
    }
}

impl Interface {
    /// Forgets addresses and routes that the system does not have. Returns true if the interface is up.
    fn forget_lost(&mut self, name: &str, index: u32) -> Result<bool, NetworkError> {
        let is_up = self.network.interface(name)?.is_up;
        let mut found = [HashSet::new(), HashSet::new()];
        for is_ipv6 in [false, true] {
            for (table, found) in [LOCAL, MAIN].into_iter().zip(&mut found) {
                let routes = self.network.routes(table, is_ipv6)?;
                // Old kernels list addresses of IPv6 as those of the loopback interface.
                let is_own = |it: &&Route| it.interface == index || table == LOCAL;
                let own = routes.iter().filter(is_own);
                found.extend(own.map(|it| (it.destination.address, it.destination.length)));
            }
        }
        let [local, main] = found;
        let of = |it: &Prefix| (it.first(), it.bits());
        self.addresses.retain(|it| local.contains(&of(&it.host())));
        self.routes.retain(|it| main.contains(&of(it)));
        Ok(is_up)
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

/// Waits for packets or reports. Writes never wait.
///
/// The call that replaces this one is unsafe for types whose descriptor could change: devices and sockets keep theirs until
/// they are dropped.
#[expect(
    deprecated,
    reason = "the replacement is unsafe, which only crates for system calls may be"
)]
fn register<T: AsRawFd>(inner: T) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(inner, Interest::READABLE.add(Interest::ERROR))
}

/// Returns the prefixes of ranges, except for those of all destinations. `None` if there are too many.
fn prefixes(ranges: &[AddressRange]) -> Option<Vec<Prefix>> {
    // Ranges of several protocols can have the same addresses.
    let mut known = HashSet::new();
    let prefixes = ranges.iter().flat_map(AddressRange::prefixes);
    let new = prefixes.filter(|prefix| prefix.bits() > 0 && known.insert(*prefix));
    let found: Vec<_> = new.take(MAX_ROUTES + 1).collect();
    (found.len() <= MAX_ROUTES).then_some(found)
}

fn destination(prefix: &Prefix) -> Destination {
    Destination::new(prefix.first(), prefix.bits())
}

/// Returns the address of a host in a prefix, and its length.
fn host(prefix: &Prefix) -> (IpAddr, u8) {
    let host = prefix.host();
    (host.first(), host.bits())
}

/// Networks that are routed into an interface because the other end offers them (K662). 256 ranges can make up 65 024.
const MAX_ROUTES: usize = 1024;

/// Packets that are read at a time (K643).
const BATCH: usize = 512;

/// The smallest MTU of IPv4 that Linux accepts.
const LEAST_IPV4: usize = 68;

/// The smallest MTU of IPv6 (RFC 8200 §5). Linux disables IPv6 on interfaces with less.
const LEAST_IPV6: usize = 1280;

#[cfg(test)]
mod tests;
