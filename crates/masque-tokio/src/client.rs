//! Clients of UDP proxies.

use std::net::SocketAddr;

use courser_http3_tokio as h3;
use courser_masque::{InvalidTemplate, Target, Template, request};
use http::HeaderMap;

use crate::builder::{ClientBuilder, FromLink};
use crate::link::Link;
use crate::open_error::OpenError;
use crate::protocol::Protocol;
use crate::socket::Socket;

/// A client of a UDP proxy, which opens tunnels to targets. Clones share the connection to the proxy.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
/// use courser::masque::{Carrier, UdpClient};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result {
/// # let Started { template, root, echo } = start().await?;
/// // `UdpClient::connect(template)` trusts the certificates of the system; this proxy has one of its own.
/// let client = UdpClient::builder(&template)?.roots([root]).connect().await?;
/// let socket = client.open(&echo.to_string()).await?;
/// assert_eq!(socket.carrier(), Carrier::Http3);
/// socket.send(b"through the proxy")?;
/// assert_eq!(socket.recv().await?, "through the proxy");
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct UdpClient {
    template: Template,
    headers: HeaderMap,
    link: Link,
}

/// The settings of a [`UdpClient`], from [`UdpClient::builder`].
pub type UdpClientBuilder = ClientBuilder<UdpClient>;

impl UdpClient {
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

    /// Begins a client with settings of its own. `template` is a URI template such as
    /// `https://proxy.example/.well-known/masque/udp/{target_host}/{target_port}/`;
    /// [`Template::of_proxy`] makes this one of a host.
    ///
    /// # Errors
    /// Returns an error if the template is invalid.
    pub fn builder(template: &str) -> Result<UdpClientBuilder, InvalidTemplate> {
        let valid = Template::new(template)?;
        let target = Target::try_from(SocketAddr::from(([192, 0, 2, 1], 1)));
        let uri = target.map_or_else(|_| template.to_owned(), |target| valid.expand(&target));
        Ok(UdpClientBuilder::new(template, uri))
    }

    /// Adds fields to each request, such as `proxy-authorization`. They replace those that were set before.
    #[must_use]
    pub fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.headers = headers;
        self
    }

    /// Uses a connection of HTTP/3 that exists, whose settings have [`enable`](crate::enable)d datagrams.
    pub fn over(client: h3::Client, template: Template) -> Self {
        Self {
            template,
            headers: HeaderMap::new(),
            link: Link::over(client),
        }
    }

    /// Opens a tunnel to a host and port, such as `example.org:443` or `[2001:db8::1]:443`. The proxy resolves names.
    ///
    /// Over HTTP/3, waits for up to a second until the path carries payloads of 1200 bytes, which QUIC inside of the
    /// tunnel needs.
    ///
    /// # Errors
    /// Returns an error if the target is invalid, the proxy refuses it, or the connection is lost.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready cancels the request.
    pub async fn open(&self, target: &str) -> Result<Socket, OpenError> {
        self.open_target(target.parse()?).await
    }

    /// Opens a tunnel to a target, like [`open`](Self::open).
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    ///
    /// # Cancel safety
    /// The same as for [`open`](Self::open).
    pub async fn open_target(&self, target: Target) -> Result<Socket, OpenError> {
        let request = request::connect_udp(&self.template, &target, self.link.carrier())?;
        let tunnel = self
            .link
            .open(request, &self.headers, Protocol::Udp)
            .await?;
        self.link.wait_for_size(&tunnel, SMALLEST_QUIC).await;
        let connection = self.link.http3().cloned();
        Ok(Socket::new(tunnel, target, self.link.carrier(), connection))
    }

    /// Returns the connection to the proxy, over HTTP/3.
    pub const fn http3(&self) -> Option<&h3::Client> {
        self.link.http3()
    }
}

impl FromLink for UdpClient {
    fn from_link(template: &str, headers: HeaderMap, link: Link) -> Result<Self, InvalidTemplate> {
        Ok(Self {
            template: Template::new(template)?,
            headers,
            link,
        })
    }
}

/// Payload of the smallest packets of QUIC, which every path has to carry (RFC 9000 §14).
const SMALLEST_QUIC: usize = 1200;
