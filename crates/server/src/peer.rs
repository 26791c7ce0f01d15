//! The client that sent a request.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use courser_base::canonical;
use courser_quic::hooks::ConnectionHooks as _;
use courser_quic::telemetry::Sink;
use courser_quic::{Connection, ConnectionId, WeakConnection};
use courser_tls::rustls::pki_types::CertificateDer;

/// The protocol of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Protocol {
    /// HTTP/1.1 or 1.0 over TLS (RFC 9112).
    Http1,
    /// HTTP/2 over TLS (RFC 9113).
    Http2,
    /// HTTP/3 over QUIC (RFC 9114).
    Http3,
}

impl Protocol {
    /// All protocols, oldest first.
    pub const ALL: [Self; 3] = [Self::Http1, Self::Http2, Self::Http3];

    /// Returns the ALPN name: `http/1.1`, `h2` or `h3`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http/1.1",
            Self::Http2 => "h2",
            Self::Http3 => "h3",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The parameters negotiated in the TLS handshake of a connection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TlsFacts {
    /// The version: `TLSv1.2` or `TLSv1.3`.
    pub version: Option<&'static str>,
    /// The name that the client requested (SNI).
    pub server_name: Option<String>,
    /// The cipher suite, such as `TLS13_AES_128_GCM_SHA256`.
    pub cipher_suite: Option<String>,
    /// The key exchange group, such as `X25519MLKEM768`.
    pub key_exchange: Option<String>,
    /// True if an earlier session was resumed.
    pub is_resumed: bool,
    /// The certificate chain of the client, its own certificate first. Empty if it presented none; see
    /// [`Server::client_authentication`](super::Server::client_authentication).
    pub client_certificates: Vec<CertificateDer<'static>>,
}

/// The client that sent a request, in the extensions of each request. Cloning is cheap.
///
/// A layer can convert it to axum's `ConnectInfo` or to a custom type:
///
/// ```
/// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; }
/// use axum::extract::ConnectInfo;
/// use courser::server::{Body, Peer};
///
/// fn connect_info(mut request: http::Request<Body>) -> http::Request<Body> {
///     if let Some(peer) = request.extensions().get::<Peer>() {
///         let info = ConnectInfo(peer.address());
///         request.extensions_mut().insert(info);
///     }
///     request
/// }
/// # let service = tower::service_fn(|_: http::Request<Body>| async {
/// #     Ok::<_, std::convert::Infallible>(()) });
/// let service = tower::ServiceBuilder::new().map_request(connect_info).service(service);
/// ```
#[derive(Clone, Debug)]
pub struct Peer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    address: SocketAddr,
    local: Option<SocketAddr>,
    /// Weak, so that keeping a peer does not keep its connection open.
    quic: Option<WeakConnection>,
    original_destination: Option<ConnectionId>,
    protocol: Protocol,
    connection: u64,
    tls: TlsFacts,
}

/// Both addresses of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    pub(super) peer: SocketAddr,
    pub(super) local: Option<SocketAddr>,
}

impl Peer {
    pub(super) fn new(
        addresses: Addresses,
        protocol: Protocol,
        connection: u64,
        tls: TlsFacts,
    ) -> Self {
        Self(Arc::new(Inner {
            address: canonical(addresses.peer),
            local: addresses.local.map(canonical),
            quic: None,
            original_destination: None,
            protocol,
            connection,
            tls,
        }))
    }

    pub(super) fn over_quic(
        connection: &Connection,
        original_destination: ConnectionId,
        addresses: Addresses,
        id: u64,
        tls: TlsFacts,
    ) -> Self {
        Self(Arc::new(Inner {
            address: canonical(addresses.peer),
            local: addresses.local.map(canonical),
            quic: Some(connection.downgrade()),
            original_destination: Some(original_destination),
            protocol: Protocol::Http3,
            connection: id,
            tls,
        }))
    }

    /// Returns the client's address at the start of the connection, with IPv4-mapped addresses converted to
    /// IPv4. A QUIC client may have migrated since; see [`current_address`](Self::current_address).
    ///
    /// The address is validated by the handshake. A request in early data arrives before the end of the
    /// handshake, and reaches the service only if a token validates the address (RFC 9000 §8.1.3). Such a token
    /// validates the IP address but not the port, and was issued in the last 24 hours.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// Returns the client's current address. A new address counts once it is validated (RFC 9000 §8.2). After
    /// the end of the connection this is the last address, or the first one once all handles are dropped. See
    /// [`address`](Self::address) for the validation of the first one.
    ///
    /// Takes a lock. Two successive calls may return different addresses.
    pub fn current_address(&self) -> SocketAddr {
        let quic = self.0.quic.as_ref().and_then(WeakConnection::upgrade);
        quic.map_or(self.0.address, |quic| canonical(quic.remote_address()))
    }

    /// Returns the local address to which the client connected, if the system reports it.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.0.local
    }

    /// Returns the version of HTTP that the connection uses.
    pub fn protocol(&self) -> Protocol {
        self.0.protocol
    }

    /// Returns a number that is unique among the connections of this server.
    pub fn connection_id(&self) -> u64 {
        self.0.connection
    }

    /// Returns the Destination Connection ID of the client's first packet, or `None` over TCP.
    ///
    /// It identifies the connection at both ends and in traces (RFC 9000 §7.3): it is passed to
    /// [`SinkFactory`](courser_quic::telemetry::SinkFactory) and is in qlog files. The client chooses it, so two
    /// connections may have the same one.
    pub fn original_destination(&self) -> Option<ConnectionId> {
        self.0.original_destination
    }

    /// Attaches a second sink to the QUIC connection, in addition to that of the configuration. Returns false if
    /// the connection is closed or does not use QUIC, or if it already has a second sink.
    ///
    /// The sink is called under the lock of the endpoint and must not block; see
    /// [`Sink`](courser_quic::telemetry::Sink). It is dropped with the connection.
    pub fn attach_sink(&self, sink: Box<dyn Sink>) -> bool {
        let Some(quic) = self.0.quic.as_ref().and_then(WeakConnection::upgrade) else {
            return false;
        };
        let is_open = quic.close_reason().is_none();
        let attached = quic.with_tap(|tap, _| {
            let has_room = is_open && !tap.has_guest();
            if has_room {
                tap.set_guest(Some(sink));
            }
            has_room
        });
        attached.unwrap_or(false)
    }

    /// Detaches the sink of [`attach_sink`](Self::attach_sink).
    pub fn detach_sink(&self) {
        if let Some(quic) = self.0.quic.as_ref().and_then(WeakConnection::upgrade) {
            quic.with_tap(|tap, _| tap.set_guest(None));
        }
    }

    /// Returns the parameters negotiated in the handshake.
    pub fn tls(&self) -> &TlsFacts {
        &self.0.tls
    }
}
