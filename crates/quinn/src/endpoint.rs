//! Endpoints.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use courser_quic::{self as quic, runtime};

use crate::futures::named;
use crate::runtime::{AsyncUdpSocket, Runtime, SocketAdapter, default_runtime, entered};
use crate::unsupported::warn;
use crate::{
    ClientConfig, ConnectError, Connecting, EndpointConfig, EndpointStats, Incoming, ServerConfig,
    VarInt,
};

/// A UDP socket with connections on it, as client, server or both. Clones are handles to the same one.
#[derive(Clone, Debug)]
pub struct Endpoint {
    inner: quic::Endpoint,
    config: Arc<EndpointConfig>,
    runtime: Arc<dyn Runtime>,
    /// The reason why the default settings of clients cannot be used.
    client_error: Option<ConnectError>,
}

impl Endpoint {
    /// Creates an endpoint that connects from `addr`; port 0 lets the system choose one. `[::]` accepts IPv4 too.
    ///
    /// # Errors
    /// Returns an error if the address cannot be bound, or there is no runtime.
    pub fn client(addr: SocketAddr) -> io::Result<Self> {
        Self::bind(None, addr)
    }

    /// Creates an endpoint that accepts connections on `addr`.
    ///
    /// # Errors
    /// Returns the errors of [`Endpoint::client`], and an error if the configuration is invalid.
    pub fn server(config: ServerConfig, addr: SocketAddr) -> io::Result<Self> {
        Self::bind(Some(config), addr)
    }

    fn bind(server: Option<ServerConfig>, addr: SocketAddr) -> io::Result<Self> {
        let runtime = default_runtime().ok_or_else(no_runtime)?;
        Self::start(EndpointConfig::default(), server, runtime, |builder| {
            builder.bind(addr)
        })
    }

    /// Creates an endpoint with custom settings, socket and runtime.
    ///
    /// # Errors
    /// Returns an error if the socket or the configuration cannot be used, or the runtime is tokio and the thread
    /// is not inside it.
    pub fn new(
        config: EndpointConfig,
        server_config: Option<ServerConfig>,
        socket: UdpSocket,
        runtime: Arc<dyn Runtime>,
    ) -> io::Result<Self> {
        Self::start(config, server_config, runtime, |builder| {
            builder.socket(socket)
        })
    }

    /// Creates an endpoint with a socket that a program implements.
    ///
    /// # Errors
    /// Returns the errors of [`Endpoint::new`].
    pub fn new_with_abstract_socket(
        config: EndpointConfig,
        server_config: Option<ServerConfig>,
        socket: Arc<dyn AsyncUdpSocket>,
        runtime: Arc<dyn Runtime>,
    ) -> io::Result<Self> {
        Self::start(config, server_config, runtime, |builder| {
            builder.transport(SocketAdapter::new(socket))
        })
    }

    fn start(
        config: EndpointConfig,
        server: Option<ServerConfig>,
        runtime: Arc<dyn Runtime>,
        bind: impl FnOnce(quic::EndpointBuilder) -> Result<quic::Endpoint, quic::BindError>,
    ) -> io::Result<Self> {
        let is_split = server
            .as_ref()
            .is_none_or(|server| server.transport.has_segmentation_offload());
        let inner = entered(&runtime, || {
            let keys = config.build(runtime::random_seed()?, runtime::unix_time());
            let mut builder = quic::Endpoint::builder().config(keys);
            if let Some(server) = &server {
                builder = builder.server(server.build(&config));
            }
            bind(builder).map_err(io_error)
        })?;
        if !is_split {
            inner.set_segmentation_offload(false);
        }
        Ok(Self {
            inner,
            config: Arc::new(config),
            runtime,
            client_error: None,
        })
    }

    /// Returns the endpoint of courser, which offers more.
    pub fn as_courser(&self) -> &quic::Endpoint {
        &self.inner
    }

    /// Sets the settings that [`Endpoint::connect`] uses, for this handle and later clones of it.
    pub fn set_default_client_config(&mut self, config: ClientConfig) {
        if !config.has_segmentation_offload() {
            self.inner.set_segmentation_offload(false);
        }
        match config.build() {
            Ok(config) => {
                self.inner.set_default_client_config(config);
                self.client_error = None;
            }
            Err(error) => self.client_error = Some(error),
        }
    }

    /// Connects to `addr`. The certificate there must be for `server_name`.
    ///
    /// # Errors
    /// Returns an error if there are no default settings, or as [`Endpoint::connect_with`].
    pub fn connect(&self, addr: SocketAddr, server_name: &str) -> Result<Connecting, ConnectError> {
        match &self.client_error {
            Some(error) => Err(error.clone()),
            None => started(self.inner.connect(addr, server_name)),
        }
    }

    /// Connects with this configuration.
    ///
    /// # Errors
    /// Returns an error if the endpoint is closed, the address cannot be reached from this socket, the name is
    /// invalid, or the version of QUIC is not supported. Settings of TLS that cannot be used are reported as
    /// [`ConnectError::EndpointStopping`], and in the log.
    pub fn connect_with(
        &self,
        config: ClientConfig,
        addr: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        if !config.has_segmentation_offload() {
            self.inner.set_segmentation_offload(false);
        }
        let config = config.build()?;
        started(self.inner.connect_with(config, addr, server_name))
    }

    /// Waits for the next client. The future returns `None` once the endpoint is closed. Dropped before it is
    /// ready, it has accepted no client.
    pub fn accept(&self) -> Accept<'_> {
        Accept::new(async {
            let incoming = self.inner.accept().await?;
            Some(Incoming::new(incoming, self.config.clone()))
        })
    }

    /// Replaces the socket, and moves the connections that this endpoint has started to it. Those that it has
    /// accepted stay on the socket before, which is closed when none needs it.
    ///
    /// # Errors
    /// Returns an error if the socket cannot be used; nothing changes then.
    pub fn rebind(&self, socket: UdpSocket) -> io::Result<()> {
        let rebound = entered(&self.runtime, || self.inner.rebind(socket));
        rebound.map_err(io_error)
    }

    /// Moves to a socket that a program implements, like [`Endpoint::rebind`].
    ///
    /// # Errors
    /// Returns the errors of [`Endpoint::rebind`].
    pub fn rebind_abstract(&self, socket: Arc<dyn AsyncUdpSocket>) -> io::Result<()> {
        let socket = SocketAdapter::new(socket);
        let rebound = entered(&self.runtime, || self.inner.rebind_transport(socket));
        rebound.map_err(io_error)
    }

    /// Changes how later connections are accepted; `None` refuses them. Settings of TLS that cannot be used change
    /// nothing, and are reported in the log.
    pub fn set_server_config(&self, server_config: Option<ServerConfig>) {
        let config = server_config.map(|server| server.build(&self.config));
        if let Err(error) = self.inner.set_server_config(config) {
            warn(&format!(
                "Endpoint::set_server_config changes nothing: {error}"
            ));
        }
    }

    /// Returns the address of the socket, with the port that the system chose.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    /// Returns the number of connections, those included that are closing.
    pub fn open_connections(&self) -> usize {
        self.inner.open_connections()
    }

    /// Returns the counters of the endpoint.
    pub fn stats(&self) -> EndpointStats {
        self.inner.stats().into()
    }

    /// Closes all connections at once, and refuses later ones.
    pub fn close(&self, error_code: VarInt, reason: &[u8]) {
        self.inner.close(error_code.into(), reason);
    }

    /// Waits until all connections are over and their peers have been informed, or have had time to learn of it.
    pub async fn wait_idle(&self) {
        self.inner.wait_idle().await;
    }
}

named! {
    /// The future of [`Endpoint::accept`].
    Accept -> Option<Incoming>;
}

fn started(
    connecting: Result<quic::Connecting, quic::ConnectError>,
) -> Result<Connecting, ConnectError> {
    let connecting = connecting.inspect_err(|error| {
        if let quic::ConnectError::Config(error) = error {
            warn(&format!("cannot connect: {error}"));
        }
    });
    Ok(Connecting::new(connecting?, quic::Side::Client))
}

fn io_error(error: quic::BindError) -> io::Error {
    match error {
        quic::BindError::Io(error) => error,
        error => io::Error::new(io::ErrorKind::InvalidInput, error),
    }
}

fn no_runtime() -> io::Error {
    io::Error::other("no runtime: call this inside tokio")
}
