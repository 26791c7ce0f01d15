//! The settings of QUIC.

use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::sync::Arc;

use courser_quic::telemetry::SinkFactory;
use courser_quic::{
    AddressFilter, ConnectionIdGenerator, EarlyDataOptions, QuicVersion, ReplyLimits, RetryPolicy,
    TransportConfig,
};

use super::Server;
#[cfg(doc)]
use crate::certificates::Certificates;
use crate::certificates::reset::ResetSecret;
#[cfg(doc)]
use crate::exchange::early_data::TooEarly;
use crate::quic::sinks::MakeSinks;

impl Server {
    /// Sets the transport settings of QUIC. Default: those of [`TransportConfig`], with 256 concurrent requests.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; pub use courser_http3_tokio as h3; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// let transport = courser::TransportConfig {
    ///     max_idle_timeout: Some(Duration::from_secs(10)),
    ///     congestion: courser::Algorithm::Bbr,
    ///     ..Default::default()
    /// };
    /// let server = courser::serve("[::]:4433", courser::Identity::dev()?).transport(transport);
    /// # drop(server);
    /// # Ok(()) }
    /// ```
    pub fn transport(mut self, transport: TransportConfig) -> Self {
        self.quic.transport = Some(transport);
        self
    }

    /// Sets the sinks of QUIC connections for each address of the server, for example to count the connections
    /// of each address separately. They replace the sinks of [`Server::transport`].
    ///
    /// `sinks` is called once for each address that the server listens on. For port 0, it receives the port that
    /// the system chose.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    ///
    /// use courser::telemetry::{Sink, SinkFactory};
    ///
    /// #[derive(Debug)]
    /// struct Log(std::net::SocketAddr);
    ///
    /// impl SinkFactory for Log {
    ///     fn sink(&self, _: &courser::ConnectionId, _: courser::Side) -> Option<Box<dyn Sink>> {
    ///         println!("a client arrived at {}", self.0);
    ///         None
    ///     }
    /// }
    ///
    /// let server = courser::serve("[::]:4433", courser::Identity::dev()?);
    /// let server = server.sinks(|address| Arc::new(Log(address)));
    /// # drop(server);
    /// # Ok(()) }
    /// ```
    pub fn sinks(
        mut self,
        sinks: impl Fn(SocketAddr) -> Arc<dyn SinkFactory> + Send + Sync + 'static,
    ) -> Self {
        self.quic.sinks = Some(MakeSinks(Arc::new(sinks)));
        self
    }

    /// Sets when QUIC clients must validate their address. Default [`RetryPolicy::Auto`]: if many handshakes are
    /// in progress, or if the address or network has used its share of the connections. The default is
    /// [`RetryPolicy::Always`] if the choice of certificates is [asynchronous](Certificates::asynchronous).
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.quic.retry = Some(policy);
        self
    }

    /// Sets the versions of QUIC in order of preference, and upgrades clients to the first one that they
    /// support, like [`ServerConfig::versions`](courser_quic::ServerConfig::versions). By default all versions
    /// are accepted, and a client keeps the version with which it starts.
    pub fn quic_versions(mut self, versions: impl IntoIterator<Item = QuicVersion>) -> Self {
        self.quic.versions = Some(versions.into_iter().collect());
        self
    }

    /// Sets the generator of connection IDs for all addresses of the server, like
    /// [`ServerConfig::connection_ids`](courser_quic::ServerConfig::connection_ids). By default IDs are 8 random
    /// bytes. With a [`ServerIdGenerator`](courser_quic::ServerIdGenerator), load balancers can derive the
    /// server from an ID.
    pub fn connection_ids(mut self, generator: Arc<dyn ConnectionIdGenerator>) -> Self {
        self.quic.connection_ids = Some(generator);
        self
    }

    /// Allows HTTP/3 clients to change their address, like
    /// [`ServerConfig::migration`](courser_quic::ServerConfig::migration). On by default.
    ///
    /// If it is off, clients are asked not to migrate (RFC 9000 §18.2), and packets from another IP address are
    /// dropped. Another port of the same address is accepted, because NATs rebind.
    pub fn migration(mut self, is_allowed: bool) -> Self {
        self.quic.path_settings.forbids_migration = !is_allowed;
        self
    }

    /// Asks HTTP/3 clients to migrate to another address of the server once the handshake is confirmed: to `v4`
    /// over IPv4, and to `v6` over IPv6 (RFC 9000 §9.6). None by default.
    ///
    /// This is useful for servers behind a shared address, such as anycast, that also have an address of their
    /// own. Only listeners on a wildcard address offer it, because only their sockets receive there: `0.0.0.0`
    /// for `v4`, and `[::]` for both. Ports are not compared, because a router may translate them. Clients that
    /// get no answer there, or do not support it, stay at the first address. It can be combined with
    /// [`migration(false)`](Self::migration), which then applies only to the first address.
    ///
    /// [`bind`](Self::bind) returns [`Error::PreferredAddress`](crate::Error::PreferredAddress) for a wildcard or multicast address, for
    /// port 0, for the address and port of another listener, and without a listener that can receive there.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::net::{Ipv4Addr, SocketAddrV4};
    ///
    /// let own = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 7), 4433);
    /// let server = courser::serve("[::]:4433", courser::Identity::dev()?).preferred_address(own, None);
    /// # drop(server);
    /// # Ok(()) }
    /// ```
    pub fn preferred_address(
        mut self,
        v4: impl Into<Option<SocketAddrV4>>,
        v6: impl Into<Option<SocketAddrV6>>,
    ) -> Self {
        self.quic.path_settings.preferred_v4 = v4.into();
        self.quic.path_settings.preferred_v6 = v6.into();
        self
    }

    /// Accepts QUIC packets whose QUIC bit is 0, and clears the bit in half of the packets, at random, to
    /// clients that accept it, so that networks do not rely on it (RFC 9287). Off by default.
    pub fn grease_quic_bit(mut self, is_on: bool) -> Self {
        self.quic.path_settings.greases_quic_bit = is_on;
        self
    }

    /// Accepts HTTP/3 requests in early data (0-RTT), which save returning clients a round trip. Off by default.
    /// Such a request has the extension [`EarlyData`](crate::EarlyData) until the handshake completes.
    ///
    /// Early requests of clients without a token that validates their address are delayed until the handshake
    /// completes, and then are ordinary requests.
    ///
    /// The server prevents the replay of early data to itself; see [`EarlyDataOptions`] for servers that share
    /// an address. The settings of [`Server::config`] replace [`EarlyDataOptions::application`].
    pub fn early_data(mut self, options: EarlyDataOptions) -> Self {
        self.quic.early_data = Some(options);
        self
    }

    /// Distributes the QUIC connections of each address over `count` shards, 1 to 256, so that they can use as
    /// many cores. Default 1.
    ///
    /// Limits apply to all shards together. See
    /// [`EndpointBuilder::shards`](courser_quic::EndpointBuilder::shards) for the requirements; if the system
    /// does not meet them, there is one shard, and a warning in the capabilities of
    /// [`ServerHandle::endpoints`](crate::ServerHandle::endpoints).
    pub fn shards(mut self, count: usize) -> Self {
        self.quic.shards = count;
        self
    }

    /// Sets how many bytes the connections of each address may hold for clients, at least 1 MiB.
    ///
    /// Over QUIC, the budget includes bytes sent but not acknowledged, bytes received but not read, datagrams and
    /// handshakes. Half of it is shared by the connections over TCP of all addresses, with what they have received
    /// and not processed, and by all requests in progress. Request content over HTTP/2 that the service has not read has
    /// a further quarter. The default is a quarter of the memory of the machine or control group, and at least 16 MiB.
    /// Near the limit, connections accept less data from the service, windows stop growing and clients are
    /// refused. As the last resort, the server closes the connection that holds the most memory for the least
    /// progress.
    pub fn memory_budget(mut self, bytes: u64) -> Self {
        self.quic.memory_budget = Some(bytes);
        self
    }

    /// Sets the rates of Retry, Version Negotiation and refusals over QUIC for each address of the server.
    /// Default: 10 000 per second to one network and 40 000 to all.
    pub fn reply_limits(mut self, limits: ReplyLimits) -> Self {
        self.quic.reply_limits = Some(limits);
        self
    }

    /// Sets the rates of stateless resets over QUIC for each address of the server. Default: 200 per second to
    /// one network and 2000 to all.
    pub fn reset_limits(mut self, limits: ReplyLimits) -> Self {
        self.quic.reset_limits = Some(limits);
        self
    }

    /// Sets which addresses are blocked. None by default.
    /// [`ServerHandle::set_address_filter`](crate::ServerHandle::set_address_filter) replaces the filter while
    /// the server runs.
    pub fn address_filter(mut self, filter: impl Into<Arc<AddressFilter>>) -> Self {
        self.address_filter = filter.into();
        self
    }

    /// Sets the secret from which the keys of stateless resets are derived for each address.
    ///
    /// After a crash, a server with the same secret resets connections of former clients at once. Otherwise
    /// clients wait for their idle timeout (RFC 9000 §10.3). By default the secret is derived from the private
    /// key of the certificate, or read from the folder of the certificate. It is random for port 0, for a custom
    /// resolver, and for private keys on systems other than Linux, where machines with the same key cannot be
    /// distinguished.
    ///
    /// Servers that run at the same time on the same address and port, such as machines behind a load balancer,
    /// must have different secrets (RFC 9000 §21.11).
    pub fn reset_secret(mut self, secret: [u8; 32]) -> Self {
        self.reset = Some(ResetSecret::from_user(secret));
        self
    }
}
