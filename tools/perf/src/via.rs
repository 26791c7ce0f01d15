//! Measurements through a UDP proxy (CONNECT-UDP, RFC 9298): QUIC inside of QUIC.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use courser::masque::{self, Socket, Target, Template, UdpClient};
use courser::{ClientConfig, Endpoint, Side, TransportConfig, h3};
use courser_base::Mutex;
use courser_measure::Failure;
use courser_measure::target::{resolve, split_target, without_zone};
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::OnceCell;

/// A UDP proxy, and the fields of requests to it.
#[derive(Clone, Debug)]
pub struct Via {
    template: Template,
    address: SocketAddr,
    name: String,
    headers: HeaderMap,
}

impl Via {
    /// Reads a proxy: a template such as `https://proxy.example/{target_host}/{target_port}/`, or `HOST[:PORT]`, whose
    /// template is the well-known one and whose default port is 443. Resolves its name. `fields` are such as
    /// `proxy-authorization: Bearer 6b1f`.
    ///
    /// # Errors
    /// The template or a field is invalid, or the name is not resolved.
    pub fn new(proxy: &str, fields: &[String]) -> Result<Self, Failure> {
        let wrong = |error: &dyn std::fmt::Display| {
            Failure::new(format!("'{proxy}' is not a UDP proxy: {error}"))
        };
        let place = proxy.strip_prefix("masque://").unwrap_or(proxy);
        let template = match place.contains("://") {
            true => Template::new(place),
            false => Template::of_proxy(place),
        };
        let template = template.map_err(|error| wrong(&error))?;
        let (_, rest) = template.as_str().split_once("://").unwrap_or_default();
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        let (host, port) = split_target(authority, HTTPS_PORT)?;
        let address = resolve(host, port)?.into_iter().next();
        let mut headers = HeaderMap::new();
        for field in fields {
            let (name, value) = field.split_once(':').unwrap_or((field, ""));
            let name = HeaderName::try_from(name.trim()).map_err(|error| wrong(&error))?;
            let mut value = HeaderValue::try_from(value.trim()).map_err(|error| wrong(&error))?;
            value.set_sensitive(true);
            headers.append(name, value);
        }
        Ok(Self {
            name: without_zone(host).to_owned(),
            address: address.ok_or_else(|| wrong(&"its name has no address"))?,
            template,
            headers,
        })
    }

    /// Returns the address of the proxy.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The tunnels of a measurement, on one connection to the proxy.
#[derive(Debug)]
pub(crate) struct Tunnels {
    via: Via,
    tls: Arc<rustls::ClientConfig>,
    /// The outer transport parameters, without the queues of datagrams.
    transport: TransportConfig,
    client: OnceCell<UdpClient>,
    /// The latest endpoints in tunnels, so that the ends of their connections arrive before the tunnels end.
    inner: Mutex<VecDeque<Endpoint>>,
}

impl Tunnels {
    pub(crate) fn new(via: Via, tls: &rustls::ClientConfig, transport: TransportConfig) -> Self {
        let mut tls = tls.clone();
        tls.alpn_protocols = vec![h3::ALPN.into()];
        Self {
            via,
            tls: Arc::new(tls),
            transport,
            client: OnceCell::new(),
            inner: Mutex::default(),
        }
    }

    /// Opens a tunnel to a server, and returns an endpoint in it. `outer` sends the packets to the proxy.
    pub(crate) async fn endpoint(
        &self,
        outer: &Endpoint,
        server: SocketAddr,
    ) -> Result<Endpoint, Failure> {
        let socket = self.open(outer, server).await?;
        let endpoint = Endpoint::builder().transport(socket.into_transport());
        let endpoint =
            endpoint.map_err(|error| Failure::new(format!("cannot use a tunnel: {error}")))?;
        let mut inner = self.inner.lock();
        if inner.len() >= MOST {
            inner.pop_front();
        }
        inner.push_back(endpoint.clone());
        Ok(endpoint)
    }

    async fn open(&self, outer: &Endpoint, server: SocketAddr) -> Result<Socket, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            let address = self.via.address;
            Failure::new(format!("cannot use the proxy at {address}: {error}"))
        };
        let client = self.client.get_or_try_init(|| async {
            let transport = masque::transport_config(self.transport.clone());
            let config = ClientConfig::with_rustls(self.tls.clone()).transport_config(transport);
            let connecting = outer.connect_with(config, self.via.address, &self.via.name);
            let connecting = connecting.map_err(|error| failed(&error))?;
            let connection = connecting.await.map_err(|error| failed(&error))?;
            let mut settings = h3::Config::new(Side::Client);
            masque::enable(&mut settings, Side::Client);
            let client = h3::Client::with_config(connection, settings);
            let client = UdpClient::over(client, self.via.template.clone());
            Ok::<_, Failure>(client.with_headers(self.via.headers.clone()))
        });
        let target = Target::try_from(server).map_err(|error| failed(&error))?;
        let opened = client.await?.open_target(target).await;
        opened.map_err(|error| failed(&error))
    }

    /// Closes the connection to the proxy once those inside are over.
    pub(crate) async fn close(&self) {
        let inner = std::mem::take(&mut *self.inner.lock());
        for endpoint in inner {
            endpoint.wait_idle().await;
        }
        if let Some(client) = self.client.get().and_then(UdpClient::http3) {
            client.quic().close(NO_ERROR.into(), b"done");
        }
    }
}

const HTTPS_PORT: u16 = 443;

/// Endpoints in tunnels that are kept until the end: as many as a proxy grants a client by default.
const MOST: usize = 256;

/// H3_NO_ERROR (RFC 9114 §8.1).
const NO_ERROR: u32 = 0x100;
