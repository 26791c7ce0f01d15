//! The emulator: its plan, its errors, and the methods that run it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use courser_link::{DuplexSpec, LinkStats};
use courser_udp::UdpSocket;

use crate::clients::{self, Clients};
use crate::icmp::Router;
use crate::observer::Observer;
use crate::relay::Relay;
use crate::report::Report;

/// The settings of an [`Emulator`].
#[derive(Clone, Debug)]
pub struct Plan {
    /// The address that clients send to; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The server that datagrams are forwarded to.
    pub server: SocketAddr,
    /// The link in both directions, with an optional NAT in front of the server.
    pub link: DuplexSpec,
    /// The seed of all random decisions of the link.
    pub seed: u64,
    /// The largest number of concurrent clients. Datagrams of further clients are dropped and counted.
    pub max_clients: usize,
    /// The time without datagrams after which a client is forgotten.
    pub idle: Duration,
    /// The number of bytes of a client up to which amplification is watched.
    pub amplification_bytes: u64,
    /// The largest number of bytes on the link in each direction. Further datagrams are dropped and counted.
    pub hold: u64,
}

/// A link between clients and a server, in real time.
#[derive(Debug)]
pub struct Emulator {
    relay: Relay,
    plan: Plan,
    address: SocketAddr,
}

/// The state of an emulator while it runs.
#[derive(Clone, Copy, Debug)]
pub struct Status<'a>(&'a Relay);

/// The reason why an emulator cannot start.
#[derive(thiserror::Error, Debug)]
pub enum Error {
    /// The listening socket could not be bound.
    #[error("cannot listen on udp {address}: {source}")]
    Listen {
        /// The address of [`Plan::listen`].
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The listening socket has the address of the server.
    #[error("the server is the emulator itself at {0}: datagrams would loop")]
    Loop(SocketAddr),
    /// The NAT rebinds idle clients, which only simulations support.
    #[error("rebind=idle: works in simulations only: use a period such as rebind=30s")]
    RebindIdle,
    /// The NAT changes addresses, but the server is not in the loopback network.
    #[error(
        "rebind=addr: needs a server on 127.0.0.0/8, where all addresses are available, not {0}: rebind ports \
         instead"
    )]
    RebindAddress(SocketAddr),
    /// A link reports packets that are too large, and this process may not send ICMP.
    #[error(
        "mtu=N/icmp needs the right to send ICMP, which this process lacks (CAP_NET_RAW: {0}): run \
         it as root or grant the capability with 'setcap cap_net_raw+ep'; mtu=N without /icmp needs no \
         privileges"
    )]
    Icmp(io::Error),
    /// The address of the listening socket could not be read.
    #[error(transparent)]
    Socket(#[from] io::Error),
}

impl Emulator {
    /// Opens the listening socket and, if a link needs it, one for ICMP messages.
    ///
    /// # Errors
    /// Returns an error if the plan contradicts itself or a socket cannot be opened.
    pub fn bind(plan: Plan) -> Result<Self, Error> {
        check_rebinding(&plan.link, plan.server)?;
        let listener = UdpSocket::bind(plan.listen).map_err(|source| Error::Listen {
            address: plan.listen,
            source,
        })?;
        let address = listener.local_addr()?;
        if address == plan.server {
            return Err(Error::Loop(address));
        }
        listener.enlarge_buffers(clients::BUFFER);
        let router = Router::new(&plan.link, address, plan.server).map_err(Error::Icmp)?;
        let clients = Clients::new(
            plan.server,
            plan.max_clients,
            plan.idle,
            plan.amplification_bytes,
        );
        let (server, seed) = (plan.server, plan.seed);
        let mut relay = Relay::new(listener, server, clients, router, &plan.link, seed);
        relay.set_hold(plan.hold);
        Ok(Self {
            relay,
            plan,
            address,
        })
    }

    /// Returns the address that clients send to.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns the settings that the emulator was created with.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns a warning for each reason why the listening socket is slower than necessary.
    pub fn warnings(&self) -> Vec<String> {
        self.relay.listener().capabilities().warnings
    }

    /// Reports each datagram that enters or leaves the link to `observer`.
    pub fn set_observer(&mut self, observer: Box<dyn Observer>) {
        self.relay.set_observer(observer);
    }

    /// Waits for the first datagram of a client, or until `keep_running` returns false, which is called at
    /// least every 50 ms. All times of the link and of observers start then, so that the time that a program
    /// takes to start does not matter. Call it before [`run`](Self::run).
    pub fn wait_for_client(&mut self, keep_running: impl FnMut() -> bool) {
        self.relay.wait_for_client(keep_running);
    }

    /// Forwards datagrams until `keep_running` returns false. It is called at least every 50 ms.
    ///
    /// # Errors
    /// Returns an error if the listening socket fails, or no socket can be opened for a rebinding.
    pub fn run(&mut self, mut keep_running: impl FnMut(Status<'_>) -> bool) -> io::Result<()> {
        self.relay.run(|relay| keep_running(Status(relay)))
    }

    /// Returns all counters. Call it on the thread that called [`run`](Self::run), because it contains the
    /// CPU time of the calling thread.
    pub fn report(&self) -> Report {
        let plan = &self.plan;
        Report::new(&self.relay, &plan.link, plan.seed, plan.amplification_bytes)
    }
}

impl Status<'_> {
    /// Returns the time since the emulator was created, or since the end of
    /// [`wait_for_client`](Emulator::wait_for_client).
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// Returns the counters of the link towards the server.
    pub fn to_server(&self) -> LinkStats {
        self.0.to_server.link.stats()
    }

    /// Returns the counters of the link towards the clients.
    pub fn to_clients(&self) -> LinkStats {
        self.0.to_clients.link.stats()
    }
}

/// Checks that the addresses of a rebinding are available. Only those in 127.0.0.0/8 need no configuration
/// of an interface.
fn check_rebinding(spec: &DuplexSpec, server: SocketAddr) -> Result<(), Error> {
    if spec.nat.is_some_and(|nat| nat.idle.is_some()) {
        return Err(Error::RebindIdle);
    }
    let changes_address = spec.nat.is_some_and(|nat| nat.address);
    let is_local = matches!(server.ip(), IpAddr::V4(ip) if ip.is_loopback());
    if changes_address && !is_local {
        return Err(Error::RebindAddress(server));
    }
    Ok(())
}
