//! The settings of a client.

use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use courser_base::Side;
use courser_http3_tokio as h3;
use courser_masque::{Carrier, InvalidTemplate};
use courser_quic::{ClientConfig, Endpoint, TransportConfig};
use courser_tls::rustls::pki_types::CertificateDer;
use courser_tls::rustls::{self, RootCertStore};
use courser_tls::{ClientOptions, Trust};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use crate::link::Link;
use crate::open_error::OpenError;
use crate::tcp::TcpProxy;

/// The settings of a client of a proxy, from [`UdpClient::builder`](crate::UdpClient::builder) or
/// [`IpClient::builder`](crate::IpClient::builder).
#[derive(Debug)]
#[must_use = "no connection is made until `connect`"]
pub struct ClientBuilder<C> {
    client: PhantomData<fn() -> C>,
    /// The template as it was written, and a URI of it.
    template: String,
    uri: String,
    carrier: Carrier,
    roots: Vec<CertificateDer<'static>>,
    tls: Option<Arc<rustls::ClientConfig>>,
    transport: Arc<TransportConfig>,
    headers: HeaderMap,
    address: Option<SocketAddr>,
}

/// A client that a [`ClientBuilder`] makes.
pub(crate) trait FromLink: Sized {
    fn from_link(template: &str, headers: HeaderMap, link: Link) -> Result<Self, InvalidTemplate>;
}

impl<C> ClientBuilder<C> {
    /// `uri` is an expansion of the template.
    pub(crate) fn new(template: &str, uri: String) -> Self {
        Self {
            client: PhantomData,
            template: template.to_owned(),
            uri,
            carrier: Carrier::Http3,
            roots: Vec::new(),
            tls: None,
            transport: Arc::new(transport_config(TransportConfig::default())),
            headers: HeaderMap::new(),
            address: None,
        }
    }

    /// Sets the version of HTTP to the proxy. HTTP/3 by default; the others carry packets reliably and in order, which
    /// protocols over UDP tolerate rather than need.
    pub const fn carrier(mut self, carrier: Carrier) -> Self {
        self.carrier = carrier;
        self
    }

    /// Trusts these certificates, and not those of the system.
    pub fn roots(mut self, roots: impl IntoIterator<Item = CertificateDer<'static>>) -> Self {
        self.roots.extend(roots);
        self
    }

    /// Sets the configuration of TLS, for example with a certificate of the client. It must support TLS 1.3. Its
    /// application protocols are replaced by those of the version.
    pub fn tls(mut self, config: Arc<rustls::ClientConfig>) -> Self {
        self.tls = Some(config);
        self
    }

    /// Sets the transport parameters of the connection to the proxy, over HTTP/3.
    pub fn transport_config(mut self, config: impl Into<Arc<TransportConfig>>) -> Self {
        self.transport = config.into();
        self
    }

    /// Adds a field to each request, such as `proxy-authorization`.
    ///
    /// # Errors
    /// Returns an error if the name or the value is invalid.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, OpenError> {
        let name = HeaderName::try_from(name).map_err(http::Error::from)?;
        let mut value = HeaderValue::try_from(value).map_err(http::Error::from)?;
        // It is never kept in a table of QPACK or HPACK, where other requests could be compared with it.
        value.set_sensitive(true);
        self.headers.append(name, value);
        Ok(self)
    }

    /// Sets the address of the proxy, instead of resolving its name.
    pub const fn address(mut self, address: SocketAddr) -> Self {
        self.address = Some(address);
        self
    }

    /// Connects to the proxy. Its addresses are tried one after the other. Over HTTP/1.1, each tunnel makes a connection
    /// of its own.
    ///
    /// # Errors
    /// Returns an error if the proxy is not reached, or the handshake fails.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready closes the connection.
    #[expect(private_bounds, reason = "the clients of this crate alone are made")]
    pub async fn connect(self) -> Result<C, OpenError>
    where
        C: FromLink,
    {
        let uri: Uri = self.uri.parse().map_err(http::Error::from)?;
        let host = uri.host().unwrap_or_default().to_owned();
        let port = uri.port_u16().unwrap_or(443);
        let addresses = match self.address {
            Some(address) => vec![address],
            None => resolve(&host, port).await?,
        };
        let host = host.trim_matches(['[', ']']).to_owned();
        let tls = self.tls_config()?;
        let link = match self.carrier {
            Carrier::Http3 => self.connect_quic(tls, &host, &addresses).await?,
            carrier => Link::Tcp(Arc::new(
                TcpProxy::connect(carrier, tls, &host, addresses).await?,
            )),
        };
        Ok(C::from_link(&self.template, self.headers, link)?)
    }

    fn tls_config(&self) -> Result<rustls::ClientConfig, OpenError> {
        let config = |error: &dyn std::fmt::Display| OpenError::Config(error.to_string());
        let protocol = match self.carrier {
            Carrier::Http3 => h3::ALPN,
            Carrier::Http2 => "h2",
            Carrier::Http1 => "http/1.1",
        };
        let protocols = vec![protocol.as_bytes().to_vec()];
        if let Some(tls) = &self.tls {
            let mut tls = rustls::ClientConfig::clone(tls);
            tls.alpn_protocols = protocols;
            return Ok(tls);
        }
        let trust = match self.roots.as_slice() {
            [] => Trust::Platform,
            roots => {
                let mut store = RootCertStore::empty();
                for root in roots {
                    store.add(root.clone()).map_err(|error| config(&error))?;
                }
                Trust::Roots(store)
            }
        };
        let options = ClientOptions::new(trust, protocols);
        let tls = courser_tls::client_config(options).map_err(|error| config(&error))?;
        Ok(rustls::ClientConfig::clone(&tls))
    }

    async fn connect_quic(
        &self,
        tls: rustls::ClientConfig,
        host: &str,
        addresses: &[SocketAddr],
    ) -> Result<Link, OpenError> {
        let config =
            ClientConfig::with_rustls(Arc::new(tls)).transport_config(self.transport.clone());
        let mut last = OpenError::Config("the proxy has no address".to_owned());
        for address in addresses {
            match dial(config.clone(), *address, host).await {
                Ok((endpoint, connection)) => {
                    let mut settings = h3::Config::new(Side::Client);
                    crate::enable(&mut settings, Side::Client);
                    return Ok(Link::Http3 {
                        client: h3::Client::with_config(connection, settings),
                        _endpoint: Some(endpoint),
                    });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// Returns transport parameters that suit a connection with tunnels, of a client or a proxy: queues of datagrams for the
/// batches of connections inside, and first packets of 1232 bytes, which fit the smallest path of IPv6 (RFC 8200 §5) and
/// carry the 1200 bytes of first packets inside (RFC 9000 §14). Otherwise these would be lost until a larger size is found.
///
/// [`UdpClient::connect`](crate::UdpClient::connect) uses them. A connection for [`UdpClient::over`](crate::UdpClient::over) has to be made with them, and a server with a
/// [`UdpProxy`](crate::UdpProxy) should be.
pub fn transport_config(base: TransportConfig) -> TransportConfig {
    TransportConfig {
        mtu: base.mtu.max(FIRST_PACKETS),
        datagram_send_queue: QUEUE,
        datagram_receive_queue: QUEUE,
        datagram_send_buffer_size: QUEUE_BYTES,
        datagram_receive_buffer_size: Some(QUEUE_BYTES),
        ..base
    }
}

/// Returns the addresses of a host, and an error with the name of the proxy.
async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, OpenError> {
    let bare = host.trim_matches(['[', ']']);
    let found = tokio::net::lookup_host((bare, port)).await;
    let unreachable = |reason: String| OpenError::Unreachable {
        proxy: format!("{host}:{port}"),
        reason,
    };
    let addresses: Vec<_> = found
        .map_err(|error| unreachable(error.to_string()))?
        .collect();
    match addresses.is_empty() {
        true => Err(unreachable("the name has no address".to_owned())),
        false => Ok(addresses),
    }
}

async fn dial(
    config: ClientConfig,
    address: SocketAddr,
    host: &str,
) -> Result<(Endpoint, courser_quic::Connection), OpenError> {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let unreachable = |error: &dyn std::fmt::Display| OpenError::Unreachable {
        proxy: format!("{host} at {address}"),
        reason: error.to_string(),
    };
    let endpoint = Endpoint::client((any, 0).into()).map_err(|error| unreachable(&error))?;
    let connecting = endpoint.connect_with(config, address, host);
    let connection = connecting.map_err(|error| unreachable(&error))?.await?;
    Ok((endpoint, connection))
}

/// UDP payload of the smallest packets of IPv6 that all paths carry.
const FIRST_PACKETS: u16 = 1232;

/// Datagrams that wait to be sent to the proxy, and to be read from it.
const QUEUE: usize = 1024;

/// Bytes of these datagrams, in either direction.
const QUEUE_BYTES: usize = 2 * 1024 * 1024;
