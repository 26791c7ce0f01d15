//! Who sent a request, and how it came.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use crate::Connection;
use crate::connection::ConnectionRef;

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
    /// All of them, the oldest first.
    pub const ALL: [Self; 3] = [Self::Http1, Self::Http2, Self::Http3];

    /// `http/1.1`, `h2` or `h3`, as in ALPN.
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

/// What the handshake of a connection agreed on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TlsFacts {
    /// The name that the client asked for (SNI).
    pub server_name: Option<String>,
    /// The cipher suite, such as `TLS13_AES_128_GCM_SHA256`.
    pub cipher_suite: Option<String>,
    /// The key exchange, such as `X25519MLKEM768`.
    pub key_exchange: Option<String>,
    /// True when an earlier session was resumed.
    pub is_resumed: bool,
}

/// Who sent a request: among the extensions of each. Cloning is cheap.
///
/// For axum's `ConnectInfo`, or any other type of one's own, a layer copies it over:
///
/// ```
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
    /// Who keeps a peer for long does not keep its connection open with that.
    quic: Option<Weak<ConnectionRef>>,
    protocol: Protocol,
    connection: u64,
    tls: TlsFacts,
}

/// Both ends of a connection.
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
            protocol,
            connection,
            tls,
        }))
    }

    pub(super) fn over_quic(
        connection: &Connection,
        addresses: Addresses,
        id: u64,
        tls: TlsFacts,
    ) -> Self {
        Self(Arc::new(Inner {
            address: canonical(addresses.peer),
            local: addresses.local.map(canonical),
            quic: Some(Arc::downgrade(&connection.0)),
            protocol: Protocol::Http3,
            connection: id,
            tls,
        }))
    }

    /// The client's address when the connection began, IPv4 as such. A QUIC client may have moved
    /// since: see [`current_address`](Self::current_address).
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// The client's address now. Another one than at the beginning is believed once the client has
    /// answered from there (RFC 9000 §8.2), so that nobody passes for somebody else. When the
    /// connection is over it is the last one, and with all of its handles gone the first.
    ///
    /// Takes a lock; two calls in a row may differ.
    pub fn current_address(&self) -> SocketAddr {
        let quic = self.0.quic.as_ref().and_then(Weak::upgrade);
        quic.map_or(self.0.address, |quic| {
            canonical(Connection(quic).remote_address())
        })
    }

    /// Our address that the client connected to, where the system tells.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.0.local
    }

    /// The protocol.
    pub fn protocol(&self) -> Protocol {
        self.0.protocol
    }

    /// A number that no other connection of this server has.
    pub fn connection_id(&self) -> u64 {
        self.0.connection
    }

    /// What the handshake agreed on.
    pub fn tls(&self) -> &TlsFacts {
        &self.0.tls
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
