//! Endpoints, which connect and accept.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;

use courser_base::{ScopedIp, Side};
use courser_transport::{AddressFilter, EndpointConfig, EndpointStats};
use courser_udp::{Capabilities, Counters};

use crate::api::connecting::Connecting;
use crate::api::handles::{ConnectionRef, EndpointRef};
use crate::api::incoming::Incoming;
use crate::config::{ClientConfig, ServerConfig};
use crate::error::{BindError, ConfigError, ConnectError};
use crate::runtime::Current;
use crate::shard::SocketEvent;
use crate::shard::lock::Locked;
use crate::shard::shard_sockets::ShardSockets;
use crate::shard::shards::{Shards, WaitAny};
use crate::shard::wait::Wait;
use crate::shard::wakers::List;
use courser_wire::VarInt;

/// One UDP socket with any number of connections on it, as client, server or both. With several
/// [shards](crate::EndpointBuilder::shards) it has several sockets of one address.
///
/// Clones are handles to the same endpoint. After the last one is dropped no more clients are accepted, while
/// connections continue until they end. Datagrams are sent and received by a task on the runtime of the caller:
/// tokio, or the [runtime](crate::runtime) that the thread has entered.
#[derive(Clone, Debug)]
pub struct Endpoint {
    inner: Arc<EndpointRef>,
    default_client: Option<Result<Arc<courser_transport::ClientConfig>, ConfigError>>,
}

impl Endpoint {
    /// Creates an endpoint with custom settings on `addr`.
    ///
    /// # Errors
    /// Returns the errors of [`Endpoint::server`].
    #[track_caller]
    pub fn bind(
        config: EndpointConfig,
        server: Option<ServerConfig>,
        addr: SocketAddr,
    ) -> Result<Self, BindError> {
        let runtime = Current::require()?;
        let socket = runtime.bind(addr)?;
        Self::start(&runtime, config, server, ShardSockets::one(socket, 1, ""))
    }

    /// Creates an endpoint with custom settings on a bound socket.
    ///
    /// # Errors
    /// Returns an error if the socket or the configuration cannot be used, if there is no runtime, or if the
    /// runtime has its own sockets, which [`Endpoint::bind`] opens.
    #[track_caller]
    pub fn new(
        config: EndpointConfig,
        server: Option<ServerConfig>,
        socket: std::net::UdpSocket,
    ) -> Result<Self, BindError> {
        let runtime = Current::require()?;
        let socket = runtime.adopt(socket)?;
        Self::start(&runtime, config, server, ShardSockets::one(socket, 1, ""))
    }

    #[track_caller]
    pub(crate) fn start(
        runtime: &Current,
        config: EndpointConfig,
        server: Option<ServerConfig>,
        sockets: ShardSockets,
    ) -> Result<Self, BindError> {
        config.validate().map_err(ConfigError::from)?;
        let server = server.map(ServerConfig::build).transpose()?;
        let (seed, count) = (runtime.random_seed()?, sockets.each.len());
        let endpoints = courser_transport::Endpoint::shards(config, server, seed, count);
        let shards = Shards::start(runtime, sockets, endpoints);
        Ok(Self {
            inner: Arc::new(EndpointRef { shards }),
            default_client: None,
        })
    }

    /// Sets the configuration that [`Endpoint::connect`] uses, for this handle and its later clones.
    ///
    /// `connect` reports an invalid one.
    pub fn set_default_client_config(&mut self, config: ClientConfig) {
        self.default_client = Some(config.build());
    }

    /// Changes how later connections are accepted; `None` refuses them.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = endpoints()?;
    /// // No more clients from now on.
    /// server.set_server_config(None)?;
    /// let refused = client.connect(server.local_addr()?, "localhost")?.await;
    /// assert!(refused.is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the configuration is invalid. Nothing changes then.
    pub fn set_server_config(&self, config: Option<ServerConfig>) -> Result<(), ConfigError> {
        let config = config.map(ServerConfig::build).transpose()?;
        let shards = self.shards();
        shards.each(|locked| locked.endpoint.set_server_config(config.clone()));
        Ok(())
    }

    /// Enables or disables generic segmentation offload (GSO), with which the system takes many datagrams for
    /// one peer in one call and splits them. On by default, where the system supports it.
    ///
    /// Applies to all connections and handles of the endpoint from now on. Without GSO each datagram is a system
    /// call of its own, which costs several times the CPU in bulk transfers. Disable it for measurements, and for
    /// interfaces that split incorrectly without an error. A reported error disables it automatically.
    ///
    /// [`Endpoint::capabilities`] still returns the capabilities of the socket, and
    /// [`Endpoint::socket_counters`] the numbers of datagrams and calls.
    pub fn set_segmentation_offload(&self, enabled: bool) {
        let shards = self.shards();
        shards.each(|locked| locked.outbox.set_segmentation_offload(enabled));
    }

    /// Sets the filter of source addresses. Datagrams of blocked addresses are dropped before any other
    /// processing, and connections with such peers are closed with CONNECTION_REFUSED.
    ///
    /// Applies to all connections of the endpoint, including those that it has started. The default
    /// blocks no address. [`EndpointStats::datagrams_blocked`] counts the dropped datagrams.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = endpoints()?;
    /// use courser::{AddressFilter, AddressPrefix};
    ///
    /// let blocked = AddressPrefix::parse_list("192.0.2.0/24\n2001:db8::/32")?;
    /// let filter = AddressFilter::new(&blocked, &[]);
    /// server.set_address_filter(filter);
    /// # Ok(()) }
    /// ```
    pub fn set_address_filter(&self, filter: impl Into<Arc<AddressFilter>>) {
        let filter = filter.into();
        self.shards().each(|locked| {
            let filter = filter.clone();
            locked.change(|state, now| state.endpoint.set_address_filter(now, filter));
        });
    }

    /// Sets whether new clients are refused with CONNECTION_REFUSED, including those that wait to be accepted.
    /// Connections and handshakes in progress continue.
    pub fn set_busy(&self, is_busy: bool) {
        self.refuse_new(is_busy.then_some("the server is busy"));
    }

    /// Refuses new clients with this reason, or admits them.
    pub(crate) fn refuse_new(&self, reason: Option<&'static str>) {
        self.shards().each(|locked| {
            locked.change(|state, now| {
                state.endpoint.set_refusal(reason);
                if reason.is_some() {
                    state.refuse_all(now);
                }
            });
        });
    }

    /// Connects to `addr`; the certificate there must be for `server_name`, a DNS name or an IP
    /// address.
    ///
    /// Awaiting the result completes the handshake.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = endpoints()?;
    /// # let address = server.local_addr()?;
    /// # tokio::spawn(async move { server.accept().await.expect("the endpoint is open").await });
    /// let connection = client.connect(address, "localhost")?.await?;
    /// assert_eq!(connection.remote_address(), address);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if there is no client configuration, and the errors of [`Endpoint::connect_with`].
    pub fn connect(&self, addr: SocketAddr, server_name: &str) -> Result<Connecting, ConnectError> {
        let config = self
            .default_client
            .as_ref()
            .ok_or(ConnectError::NoDefaultClientConfig)?;
        self.begin(config.as_ref().map_err(Clone::clone)?, addr, server_name)
    }

    /// Connects like [`Endpoint::connect`], with this configuration.
    ///
    /// ```no_run
    /// # extern crate courser_quic as courser;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use courser::{ClientConfig, Endpoint};
    ///
    /// let client = Endpoint::client("0.0.0.0:0".parse()?)?;
    /// let config = ClientConfig::with_platform_verifier()?.alpn(["example"]);
    /// let connection = client.connect_with(config, "192.0.2.1:4433".parse()?, "example.org")?.await?;
    /// println!("connected after {:?}", connection.stats().handshake_time);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the endpoint is closed, the address cannot be reached from this socket, or the name or
    /// the configuration is invalid. Errors of the network come from the returned future.
    pub fn connect_with(
        &self,
        config: ClientConfig,
        addr: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        let config = config.build()?;
        self.begin(&config, addr, server_name)
    }

    fn begin(
        &self,
        config: &courser_transport::ClientConfig,
        addr: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        let shard = self.shards().next();
        let local = shard
            .socket()
            .local_addr()
            .map_err(|_| ConnectError::EndpointStopping)?;
        let ip = reachable_in_zone(ScopedIp::of(addr), local);
        let peer = ip.with_port(addr.port());
        let has_zone = !ip.lacks_zone() || !shard.socket().needs_zones();
        let is_reachable = has_zone && (!local.is_ipv4() || peer.is_ipv4());
        if peer.port() == 0 || peer.ip().is_unspecified() || !is_reachable {
            return Err(ConnectError::InvalidRemoteAddress(addr));
        }
        let interface_mtu = shard.interface_mtu(&config.transport, peer);
        let mut locked = shard.lock();
        if locked.is_closed || locked.stopped.is_some() {
            return Err(ConnectError::EndpointStopping);
        }
        let (handle, silence) = locked.change(|state, now| {
            let handle = state.endpoint.connect(now, config, peer, server_name)?;
            let silence = state.insert(handle);
            state.set_interface_mtu(handle, interface_mtu);
            Ok::<_, ConnectError>((handle, silence))
        })?;
        drop(locked);
        Ok(Connecting::new(ConnectionRef::new(
            shard.clone(),
            handle,
            silence,
            Side::Client,
        )))
    }

    /// Waits for the next client. Returns `None` once the endpoint is closed, or all its shards have ended.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = endpoints()?;
    /// # let connecting = client.connect(server.local_addr()?, "localhost")?;
    /// # tokio::spawn(async move { connecting.await?.closed().await; Result::Ok(()) });
    /// # let closing = server.clone();
    /// while let Some(incoming) = server.accept().await {
    ///     # let closing = closing.clone();
    ///     tokio::spawn(async move {
    ///         let connection = incoming.await?;
    ///         println!("a client at {}", connection.remote_address());
    ///         # closing.close(0u32.into(), b"");
    ///         Ok::<(), courser::ConnectionError>(())
    ///     });
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready has accepted no client.
    pub async fn accept(&self) -> Option<Incoming> {
        let accept = |locked: &mut Locked<'_>| {
            if locked.is_accepting_held() && !locked.is_closed && locked.stopped.is_none() {
                // Its next turn wakes this task.
                locked.driver.call();
                return Poll::Pending;
            }
            match locked.endpoint.poll_incoming() {
                Some(incoming) => {
                    let left = &mut locked.driver.accepts_left;
                    *left = left.saturating_sub(1);
                    Poll::Ready(Some(incoming))
                }
                None if locked.is_closed || locked.is_over() => Poll::Ready(None),
                None => Poll::Pending,
            }
        };
        let shards = self.shards();
        let (shard, incoming) = match shards.all() {
            [only] => (only, Wait::new(only, List::Incoming, accept).await),
            _ => WaitAny::new(shards, List::Incoming, accept).await,
        };
        Some(Incoming::new(incoming?, shard.clone(), self.inner.clone()))
    }

    /// Waits for the next event of the sockets: errors, whose datagrams count as lost, and the reaction of the
    /// endpoint to errors that persist. Returns `None` once all shards have ended.
    ///
    /// Each kind of error causes one event a minute, which suits a log (limit K291). Each event is returned once.
    /// A later event of its kind replaces one that no task has taken.
    /// [`Endpoint::socket_counters`] counts all failed calls.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = endpoints()?;
    /// tokio::spawn(async move {
    ///     while let Some(event) = server.socket_event().await {
    ///         eprintln!("{event}");
    ///     }
    /// });
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready has taken no event.
    pub async fn socket_event(&self) -> Option<SocketEvent> {
        let next = |locked: &mut Locked<'_>| match locked.outbox.health.take_event() {
            Some(event) => Poll::Ready(Some(event)),
            None if locked.is_over() => Poll::Ready(None),
            None => Poll::Pending,
        };
        match self.shards().all() {
            [only] => Wait::new(only, List::SocketEvents, next).await,
            _ => {
                WaitAny::new(self.shards(), List::SocketEvents, next)
                    .await
                    .1
            }
        }
    }

    /// Closes all connections with this code and reason, and refuses later ones.
    ///
    /// See [`Connection::close`](crate::Connection::close) for the data that peers may lose, and
    /// [`Endpoint::wait_idle`] to wait before the process exits.
    pub fn close(&self, code: VarInt, reason: &[u8]) {
        self.shards().each(|locked| locked.close_all(code, reason));
    }

    /// Waits until all connections are over and their peers have been informed, or have had time to
    /// learn of it.
    ///
    /// This method closes nothing. A process that exits without it may leave peers waiting for
    /// their idle timeout. Takes a round trip after [`Endpoint::close`], or three probe timeouts
    /// where peers do not answer.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = endpoints()?;
    /// client.close(0u32.into(), b"done");
    /// client.wait_idle().await; // now the process may exit
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// Safe. The method can be called again.
    pub async fn wait_idle(&self) {
        let check = |locked: &mut Locked<'_>| match locked.is_idle() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        };
        loop {
            for shard in self.shards().all() {
                Wait::new(shard, List::Idle, check).await;
            }
            // A shard may have got a connection while this waited for the next one.
            let all = |one: &mut bool, other| *one &= other;
            if self.shards().sum(|locked| locked.is_idle(), all) {
                return;
            }
        }
    }

    /// Returns the local address with the port that the system chose; after [`Endpoint::rebind`], that of the
    /// last socket.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.shards().first().socket().local_addr()
    }

    /// Returns the number of connections, including those that are closing.
    pub fn open_connections(&self) -> usize {
        let count = |locked: &Locked<'_>| locked.endpoint.connections();
        self.shards().sum(count, |sum, more| *sum += more)
    }

    /// Returns the number of shards: the one requested with
    /// [`EndpointBuilder::shards`](crate::EndpointBuilder::shards), or 1 if several are not possible.
    pub fn shard_count(&self) -> usize {
        self.shards().all().len()
    }

    /// Returns the counters of each shard, whose sums [`Endpoint::stats`] returns.
    pub fn shard_stats(&self) -> Vec<EndpointStats> {
        let each = self.shards().all().iter();
        each.map(|shard| stats_of(&shard.lock())).collect()
    }

    /// Returns the counters of the endpoint. Makes a system call for each socket, see
    /// [`Endpoint::receive_overflow`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = endpoints()?;
    /// let before = server.stats();
    /// println!("{} connections, {:?}", server.open_connections(), before);
    /// # Ok(()) }
    /// ```
    pub fn stats(&self) -> EndpointStats {
        self.shards().sum(stats_of, |sum, more| *sum += more)
    }

    /// Returns the counters of the socket and of those that it has replaced, such as datagrams and system calls.
    pub fn socket_counters(&self) -> Counters {
        let counters = |locked: &Locked<'_>| locked.outbox.sockets.counters();
        self.shards().sum(counters, |sum, more| *sum += more)
    }

    /// Returns how many received datagrams the kernel has dropped because the socket's receive
    /// buffer was full, at the sockets that it has replaced too. `None` where the system does not
    /// report it.
    ///
    /// Datagrams that the kernel merged (GRO) count once. Costs a system call for each socket. If the number
    /// grows, compare [`Capabilities::receive_buffer`] with the size that was requested: a small buffer is
    /// a limit of the system (`net.core.rmem_max` on Linux), and otherwise the process needs more CPU
    /// time.
    pub fn receive_overflow(&self) -> Option<u64> {
        let overflow = |locked: &Locked<'_>| locked.outbox.sockets.receive_overflow();
        let add = |sum: &mut Option<u64>, more| *sum = Option::zip(*sum, more).map(|(a, b)| a + b);
        self.shards().sum(overflow, add)
    }

    /// Returns the capabilities of the socket on this machine, with warnings about costly settings and about
    /// shards that were not possible.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = endpoints()?;
    /// for warning in server.capabilities().warnings {
    ///     eprintln!("{warning}");
    /// }
    /// # Ok(()) }
    /// ```
    pub fn capabilities(&self) -> Capabilities {
        let shards = self.shards();
        let mut capabilities = shards.first().socket().capabilities();
        let note = shards.note().map(str::to_owned);
        capabilities.warnings.extend(note);
        capabilities
    }

    pub(crate) fn shards(&self) -> &Shards {
        &self.inner.shards
    }

    /// Ends the shards as if the last handle were gone.
    pub(crate) fn end_shards(&self) {
        self.inner.end();
    }
}

/// Returns the address with the zone of the local address if it lacks its own: a socket that is bound to a
/// link-local address reaches hosts of that link only.
fn reachable_in_zone(ip: ScopedIp, local: SocketAddr) -> ScopedIp {
    if ip.lacks_zone() {
        ScopedIp::in_zone_of(ip.ip(), local)
    } else {
        ip
    }
}

fn stats_of(locked: &Locked<'_>) -> EndpointStats {
    EndpointStats {
        receive_overflow: locked.outbox.sockets.receive_overflow(),
        ..locked.endpoint.stats()
    }
}

impl From<courser_transport::ConnectError> for ConnectError {
    fn from(error: courser_transport::ConnectError) -> Self {
        use courser_crypto::TlsStartError;
        use courser_transport::ConnectError as Cause;
        match error {
            Cause::InvalidAddress(peer) => Self::InvalidRemoteAddress(peer),
            Cause::Config(error) => Self::Config(error.into()),
            Cause::Tls(TlsStartError::InvalidServerName(name)) => Self::InvalidServerName(name),
            Cause::Tls(error) => Self::Config(ConfigError::Tls(error.to_string())),
            Cause::NoFreeConnectionId => Self::CidsExhausted,
            Cause::ConnectionIds(error) => Self::ConnectionIds(error),
        }
    }
}
