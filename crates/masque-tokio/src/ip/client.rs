//! Clients of IP proxies.

use std::sync::Arc;

use courser_base::Side;
use courser_http3_tokio as h3;
use courser_masque::InvalidTemplate;
use courser_masque::ip::limits::{REQUESTS, SMALLEST_MTU};
use courser_masque::ip::{self, End, Routes, Scope, Template};
use courser_quic::TransportConfig;
use http::HeaderMap;

use super::control::{Configuration, NoAddresses};
use super::core::{Core, Shared};
use super::request::IpRequest;
use super::transport::ip_transport_config;
use super::tunnel::IpTunnel;
use crate::builder::{ClientBuilder, FromLink};
use crate::link::Link;
use crate::open_error::OpenError;

/// A client of an IP proxy, which opens tunnels. Clones share the connection to the proxy.
///
/// ```no_run
/// # mod courser { pub use courser_masque_tokio as masque; }
/// use courser::masque::{IpClient, IpRequest};
///
/// # async fn open() -> Result<(), Box<dyn std::error::Error>> {
/// let client = IpClient::of_proxy("proxy.example")?
///     .header("proxy-authorization", "Bearer 6b1f")?
///     .connect()
///     .await?;
/// let tunnel = client.open(IpRequest::default()).await?;
/// tunnel.configured().await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct IpClient {
    template: Template,
    headers: HeaderMap,
    link: Link,
}

/// The settings of an [`IpClient`], from [`IpClient::builder`].
pub type IpClientBuilder = ClientBuilder<IpClient>;

impl IpClient {
    /// Connects to a proxy over HTTP/3, whose certificate the system trusts.
    ///
    /// # Errors
    /// Returns an error if the template is invalid, or the proxy is not reached.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready closes the connection.
    pub async fn connect(template: &str) -> Result<Self, OpenError> {
        Self::builder(template)?.connect().await
    }

    /// Begins a client with settings of its own, whose connection over HTTP/3 stays open without packets. `template` is a URI template such as
    /// `https://proxy.example/.well-known/masque/ip/{target}/{ipproto}/`, whose variables are optional.
    ///
    /// # Errors
    /// Returns an error if the template is invalid.
    pub fn builder(template: &str) -> Result<IpClientBuilder, InvalidTemplate> {
        let uri = Template::new(template)?.expand(&Scope::default());
        let transport = ip_transport_config(TransportConfig::default());
        Ok(IpClientBuilder::new(template, uri).transport_config(transport))
    }

    /// Begins a client of a proxy that is known by its host and port only, such as `proxy.example:4433`, like
    /// [`builder`](Self::builder) with its well-known template (RFC 9484 §3).
    ///
    /// # Errors
    /// Returns an error if `authority` is no host with or without a port.
    pub fn of_proxy(authority: &str) -> Result<IpClientBuilder, InvalidTemplate> {
        Self::builder(Template::of_proxy(authority)?.as_str())
    }

    /// Uses a connection of HTTP/3 that exists, whose settings have [`enable`](crate::enable)d datagrams, and whose parameters
    /// are those of [`ip_transport_config`](crate::ip_transport_config).
    pub fn over(client: h3::Client, template: Template) -> Self {
        Self {
            template,
            headers: HeaderMap::new(),
            link: Link::over(client),
        }
    }

    /// Opens a tunnel. The proxy assigns addresses and advertises routes right after;
    /// [`IpTunnel::configured`] waits for them.
    ///
    /// Over HTTP/3, waits for up to a second until the path carries packets of 1280 bytes, which IPv6 needs.
    ///
    /// # Errors
    /// Returns an error if the template has no variable for a part of the request, the proxy refuses the tunnel, or the
    /// connection is lost.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready cancels the request.
    pub async fn open(&self, request: IpRequest) -> Result<IpTunnel, OpenError> {
        let routes = self.check(&request)?;
        let carrier = self.link.carrier();
        let message = ip::request::connect_ip(&self.template, &request.scope, carrier)?;
        let mut end = End::new(Side::Client).forwarding(request.is_router);
        let mut capsules = Vec::new();
        if !request.addresses.is_empty() {
            capsules.push(end.request(&request.addresses));
        }
        if !request.routes.is_empty() {
            capsules.push(end.advertise(routes));
        }
        let shared = Shared::new(end);
        let protocol = Configuration::protocol(shared.clone(), Arc::new(NoAddresses), &capsules);
        let tunnel = self.link.open(message, &self.headers, protocol).await?;
        self.link.wait_for_size(&tunnel, SMALLEST_MTU).await;
        let core = Core { tunnel, shared };
        Ok(IpTunnel::new(core, carrier, self.link.http3().cloned()))
    }

    /// Checks that a request can be made, and returns its routes.
    fn check(&self, request: &IpRequest) -> Result<Routes, OpenError> {
        if !self.template.can_express(&request.scope) {
            return Err(OpenError::Config(format!(
                "the template {} has no variable for the target {} and protocol {}",
                self.template.as_str(),
                request.scope.target(),
                request.scope.ipproto(),
            )));
        }
        if request.addresses.len() > REQUESTS {
            let count = request.addresses.len();
            let text = format!("{count} addresses are requested, allowed are {REQUESTS}");
            return Err(OpenError::Config(text));
        }
        let routes = Routes::new(request.routes.iter().copied());
        routes.map_err(|error| OpenError::Config(format!("the routes are invalid: {error}")))
    }

    /// Returns the connection to the proxy, over HTTP/3.
    pub const fn http3(&self) -> Option<&h3::Client> {
        self.link.http3()
    }
}

impl FromLink for IpClient {
    fn from_link(template: &str, headers: HeaderMap, link: Link) -> Result<Self, InvalidTemplate> {
        Ok(Self {
            template: Template::new(template)?,
            headers,
            link,
        })
    }
}
