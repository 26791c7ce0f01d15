//! Endpoints with custom settings, sockets and transports.

use std::io;
use std::net::SocketAddr;

use courser_transport::EndpointConfig;
use courser_udp::default_memory_budget;

use crate::api::endpoint::Endpoint;
use crate::config::ServerConfig;
use crate::error::BindError;
use crate::runtime::{Current, Socket, UdpSocket};
use crate::shard::shard_sockets::{self, ShardSockets};
use crate::shard::shards;

impl Endpoint {
    /// Creates an endpoint that accepts connections on `addr`. `[::]` accepts IPv4 as well.
    ///
    /// It can also connect once it has a
    /// [client configuration](Endpoint::set_default_client_config).
    ///
    /// ```
    /// # extern crate courser_quic as courser;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use courser::{Endpoint, Identity, ServerConfig};
    ///
    /// let config = ServerConfig::with_identity(&Identity::dev()?)?.alpn(["example"]);
    /// let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    /// println!("listening on {}", server.local_addr()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the address cannot be bound, the configuration is invalid, or there is no
    /// runtime.
    #[track_caller]
    pub fn server(config: ServerConfig, addr: SocketAddr) -> Result<Self, BindError> {
        Self::builder().server(config).bind(addr)
    }

    /// Creates an endpoint that connects from `addr`. Port 0 lets the system choose one.
    ///
    /// ```
    /// # extern crate courser_quic as courser;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use courser::{ClientConfig, Endpoint};
    ///
    /// let mut client = Endpoint::client("0.0.0.0:0".parse()?)?;
    /// client.set_default_client_config(ClientConfig::with_platform_verifier()?.alpn(["example"]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the address cannot be bound, or there is no runtime.
    #[track_caller]
    pub fn client(addr: SocketAddr) -> Result<Self, BindError> {
        Self::builder().bind(addr)
    }

    /// Returns a builder for an endpoint with custom settings, or a custom socket or transport.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::default()
    }
}

/// Builds an endpoint: first its settings, and last its socket.
///
/// ```no_run
/// # extern crate courser_quic as courser;
/// use courser::{Endpoint, ServerConfig};
/// # async fn example(config: ServerConfig, transport: impl courser::runtime::UdpSocket)
/// # -> Result<(), courser::BindError> {
/// // A port that another program has bound.
/// let socket = std::net::UdpSocket::bind("127.0.0.1:4433")?;
/// let server = Endpoint::builder().server(config).socket(socket)?;
/// // A relay, a tunnel, a channel: anything that carries datagrams.
/// let client = Endpoint::builder().transport(transport)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "there is no endpoint until `bind`, `socket` or `transport` is called"]
pub struct EndpointBuilder {
    config: Option<EndpointConfig>,
    server: Option<ServerConfig>,
    shards: Option<usize>,
    greases_quic_bit: bool,
}

impl EndpointBuilder {
    /// Sets keys, limits and connection IDs. By default, keys are random.
    pub fn config(mut self, config: EndpointConfig) -> Self {
        self.config = Some(config);
        self
    }

    /// Accepts connections. By default, an endpoint only connects.
    ///
    /// Settings of `server` that apply to the whole endpoint (reset key, memory budget and limits of replies)
    /// have no effect together with [`EndpointBuilder::config`].
    pub fn server(mut self, server: ServerConfig) -> Self {
        self.server = Some(server);
        self
    }

    /// Turns [`EndpointConfig::grease_quic_bit`] on (RFC 9287). Default off.
    pub fn grease_quic_bit(mut self, is_on: bool) -> Self {
        self.greases_quic_bit = is_on;
        self
    }

    /// Distributes the connections over `count` shards, 1 to 256, so that an endpoint can use as many cores.
    /// By default there is one.
    ///
    /// Each shard has its own socket, lock and task; the sockets share one address. The system delivers
    /// each datagram to the shard of its connection, whatever its source: a byte of the connection ID
    /// names the shard ([`ConnectionIdGenerator::shard_offset`](crate::ConnectionIdGenerator::shard_offset)),
    /// and addresses decide for new clients. Datagrams that still arrive at another shard are passed on.
    /// Limits, keys and budgets apply to all shards together, and calls of [`Endpoint`] act on all of them.
    /// A connection stays in its shard.
    ///
    /// Several shards are useful only on a runtime with several threads, and with tasks for connections
    /// (`tokio::spawn`). On one core each additional shard costs a little CPU.
    ///
    /// Shards need Linux, tokio and [`EndpointBuilder::bind`]. Otherwise there is one, and a warning in
    /// [`Endpoint::capabilities`]; [`Endpoint::shard_count`] returns the number. No privilege is needed.
    ///
    /// ```
    /// # extern crate courser_quic as courser;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use courser::{Endpoint, ServerConfig};
    ///
    /// let config = ServerConfig::dev()?.alpn(["example"]);
    /// let server = Endpoint::builder().server(config).shards(2).bind("127.0.0.1:0".parse()?)?;
    /// assert!(server.shard_count() <= 2);
    /// # Ok(()) }
    /// ```
    pub fn shards(mut self, count: usize) -> Self {
        self.shards = Some(count);
        self
    }

    /// Binds a socket of the current runtime. `[::]` accepts IPv4 as well; port 0 lets the system choose.
    ///
    /// ```
    /// # extern crate courser_quic as courser;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use courser::{Endpoint, EndpointConfig};
    ///
    /// // The keys of tokens and resets are derived from this secret.
    /// let config = EndpointConfig::from_seed([7; 32]);
    /// let client = Endpoint::builder().config(config).bind("127.0.0.1:0".parse()?)?;
    /// assert_ne!(client.local_addr()?.port(), 0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the address cannot be bound, the configuration is invalid, or there is no runtime.
    #[track_caller]
    pub fn bind(self, addr: SocketAddr) -> Result<Endpoint, BindError> {
        self.start(|runtime, count, config| {
            let rule = (count > 1)
                .then(|| shard_sockets::rule_of(config))
                .flatten();
            ShardSockets::bind(runtime, addr, count, rule)
        })
    }

    /// Takes over the sockets that another process has bound to `addr`, one for each shard.
    pub(crate) fn inherit(
        self,
        addr: SocketAddr,
        sockets: Vec<std::net::UdpSocket>,
    ) -> Result<Endpoint, BindError> {
        self.shards(sockets.len()).start(|runtime, count, config| {
            let rule = shard_sockets::rule_of(config).filter(|_| count > 1);
            ShardSockets::inherit(runtime, addr, sockets, rule)
        })
    }

    /// Adopts a bound socket of the operating system.
    ///
    /// ```
    /// # extern crate courser_quic as courser;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
    /// let address = socket.local_addr()?;
    /// let client = courser::Endpoint::builder().socket(socket)?;
    /// assert_eq!(client.local_addr()?, address);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the socket or the configuration cannot be used, there is no runtime, or the runtime
    /// cannot adopt sockets.
    #[track_caller]
    pub fn socket(self, socket: std::net::UdpSocket) -> Result<Endpoint, BindError> {
        self.start(|runtime, count, _| {
            let socket = runtime.adopt(socket)?;
            Ok(ShardSockets::one(socket, count, "a socket was given"))
        })
    }

    /// Sends and receives through `transport` instead of a socket. [`UdpSocket`] states what is
    /// expected of it.
    ///
    /// The endpoint runs on tokio like any other one, or on the runtime that was entered. Handshakes,
    /// encryption and congestion control are those of QUIC: a transport may lose, delay and reorder
    /// datagrams.
    ///
    /// # Errors
    /// Returns an error if the configuration is invalid, or there is no runtime.
    #[track_caller]
    pub fn transport(self, transport: impl UdpSocket) -> Result<Endpoint, BindError> {
        self.start(|_, count, _| {
            let socket = Socket::of_runtime(Box::new(transport));
            Ok(ShardSockets::one(socket, count, "a transport was given"))
        })
    }

    #[track_caller]
    fn start(
        self,
        sockets: impl FnOnce(&Current, usize, &EndpointConfig) -> io::Result<ShardSockets>,
    ) -> Result<Endpoint, BindError> {
        let (runtime, count) = (Current::require()?, self.shards.unwrap_or(1));
        shards::check(count)?;
        let mut config = match self.config {
            Some(config) => config,
            None => random_config(&runtime, self.server.as_ref())?,
        };
        config.grease_quic_bit |= self.greases_quic_bit;
        let sockets = sockets(&runtime, count, &config)?;
        Endpoint::start(&runtime, config, self.server, sockets)
    }
}

/// Returns settings with random keys, and those settings of `server` that apply to the whole endpoint. Resets and
/// tokens that must survive a restart need configured keys.
fn random_config(runtime: &Current, server: Option<&ServerConfig>) -> io::Result<EndpointConfig> {
    let mut config = EndpointConfig::from_seed(runtime.random_seed()?);
    config.unix_seconds_at_epoch = runtime.unix_time().as_secs();
    config.memory_budget = default_memory_budget();
    if let Some(server) = server {
        if let Some(key) = &server.reset_key {
            config.reset_key = key.0;
        }
        config.connection_ids = server.connection_ids.clone();
        config.memory_budget = server.memory_budget.unwrap_or(config.memory_budget);
        config.reply_limits = server.reply_limits.unwrap_or(config.reply_limits);
        config.reset_limits = server.reset_limits.unwrap_or(config.reset_limits);
    }
    // Receive windows may not grow beyond the memory budget. A connection gets an eighth of the receive budget, which
    // is at least half of the memory budget, so that it does not slow down connections of a machine with much memory.
    let half = config.memory_budget / 2;
    config.receive_budget = config.receive_budget.min(config.memory_budget).max(half);
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn windows_do_not_grow_beyond_the_memory_budget_of_the_server() {
        let runtime = Current::require().expect("tokio is running");
        let config = |server: Option<&ServerConfig>| {
            let config =
                random_config(&runtime, server).expect("the system provides random numbers");
            (config.memory_budget, config.receive_budget)
        };
        let server = ServerConfig::dev().expect("the certificate is created");
        let server = server.memory_budget(32 << 20);
        assert_eq!(config(Some(&server)), (32 << 20, 32 << 20));
        let large = ServerConfig::dev().expect("the certificate is created");
        let large = large.memory_budget(1 << 40);
        assert_eq!(config(Some(&large)), (1 << 40, 1 << 39));
        let (memory, windows) = config(None);
        assert_eq!(
            windows,
            memory.min((1 << 30).max(memory / 2)),
            "the defaults"
        );
    }
}
