//! Settings of QUIC connections.

use std::sync::Arc;

use courser_quic::telemetry::SinkFactory;
use courser_quic::{Connection, QuicVersion, TokenStore, TransportConfig};

use super::ClientBuilder;
use crate::core::OnConnection;

impl ClientBuilder {
    /// Sets the transport settings of QUIC connections.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_client::{self as client, Client}; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let transport = courser::TransportConfig {
    ///     congestion: courser::Algorithm::Bbr,
    ///     ..Default::default()
    /// };
    /// let client = courser::Client::builder().transport_config(transport).build()?;
    /// # drop(client);
    /// # Ok(()) }
    /// ```
    pub fn transport_config(mut self, transport: TransportConfig) -> Self {
        self.transport = transport;
        self
    }

    /// Sets the versions of QUIC in order of preference, like
    /// [`ClientConfig::versions`](courser_quic::ClientConfig::versions). Default version 1.
    pub fn quic_versions(mut self, versions: impl IntoIterator<Item = QuicVersion>) -> Self {
        self.quic_versions = Some(versions.into_iter().collect());
        self
    }

    /// Migrates HTTP/3 connections to the preferred address of a server if it is reachable, like
    /// [`ClientConfig::follow_preferred_address`](courser_quic::ClientConfig::follow_preferred_address). On by
    /// default.
    pub fn follow_preferred_address(mut self, follows: bool) -> Self {
        self.follows_preferred = follows;
        self
    }

    /// Accepts QUIC packets whose QUIC bit is 0, and clears the bit in half of the packets, at random, to
    /// servers that accept it, so that networks do not rely on it (RFC 9287). Off by default.
    pub fn grease_quic_bit(mut self, is_on: bool) -> Self {
        self.settings.greases_quic_bit = is_on;
        self
    }

    /// Calls `function` with each new QUIC connection to a server, before the first request: for example to open further
    /// paths over other links of this machine. Both ends must permit these with
    /// [`TransportConfig::max_paths`](courser_quic::TransportConfig::max_paths).
    ///
    /// The handshake may be incomplete when early data is on. The function is called in the task that connects, so it must
    /// not block. Connections inside a UDP proxy are not passed.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_client::{self as client, Client}; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let transport = courser::TransportConfig {
    ///     max_paths: 2,
    ///     ..Default::default()
    /// };
    /// let mobile = courser::Via::Interface("wwan0".to_owned());
    /// let client = courser::Client::builder()
    ///     .transport_config(transport)
    ///     .on_quic_connection(move |connection| {
    ///         let mobile = mobile.clone();
    ///         tokio::spawn(async move {
    ///             if let Err(error) = connection.open_path_via(&mobile).await {
    ///                 eprintln!("one path, as before: {error}");
    ///             }
    ///         });
    ///     })
    ///     .build()?;
    /// # drop(client);
    /// # Ok(()) }
    /// ```
    pub fn on_quic_connection(
        mut self,
        function: impl Fn(Connection) + Send + Sync + 'static,
    ) -> Self {
        self.settings.on_quic = Some(OnConnection(Arc::new(function)));
        self
    }

    /// Sends requests with safe methods (GET, HEAD, OPTIONS, TRACE) in early data, which saves a round trip on
    /// connections that resume a session of this client. Other requests wait for the handshake. Off by default.
    ///
    /// Unless the server prevents it, an attacker can replay early requests (RFC 8470 §4). Requests are repeated
    /// if the server rejects early data or responds with `425 Too Early`.
    ///
    /// A request in early data is sent over QUIC without a race against TCP, because QUIC has worked with the
    /// server before. If the server does not answer within four [attempt delays](Self::attempt_delay), the
    /// request is repeated with a race. This setting has no effect with versions of HTTP over TCP alone.
    pub fn early_data(mut self, sends: bool) -> Self {
        self.settings.early_data = sends;
        self
    }

    /// Replaces the store of address validation tokens, which is in memory by default. See
    /// [`FileTokenStore`](crate::FileTokenStore).
    pub fn token_store(mut self, tokens: Arc<dyn TokenStore>) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Records all QUIC connections, like [`ClientConfig::sinks`](courser_quic::ClientConfig::sinks).
    pub fn sinks(mut self, sinks: Arc<dyn SinkFactory>) -> Self {
        self.sinks = Some(sinks);
        self
    }
}
