//! Clients of UDP proxies.

use std::sync::Arc;
use std::time::Duration;

use courser_base::Side;
use courser_http3_tokio as h3;
use courser_masque::request::{self, Carrier};
use courser_masque::{Target, Template};
use courser_quic::{Endpoint, runtime};
use http::{HeaderMap, Request};

use crate::open_error::OpenError;
use crate::socket::Socket;
use crate::stream::Stream;
use crate::tcp::TcpProxy;
use crate::tunnel::Tunnel;

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

#[derive(Clone, Debug)]
pub(crate) enum Link {
    Http3 {
        client: h3::Client,
        /// Keeps the endpoint of the connection.
        _endpoint: Option<Endpoint>,
    },
    Tcp(Arc<TcpProxy>),
}

impl UdpClient {
    /// Uses a connection of HTTP/3 that exists, whose settings have [`enable`](crate::enable)d datagrams.
    pub fn over(client: h3::Client, template: Template) -> Self {
        Self::new(
            template,
            HeaderMap::new(),
            Link::Http3 {
                client,
                _endpoint: None,
            },
        )
    }

    /// Adds fields to each request, such as `proxy-authorization`. They replace those that were set before.
    #[must_use]
    pub fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.headers = headers;
        self
    }

    pub(crate) const fn new(template: Template, headers: HeaderMap, link: Link) -> Self {
        Self {
            template,
            headers,
            link,
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
        match &self.link {
            Link::Http3 { client, .. } => {
                let response = client
                    .connect(self.request(&target, Carrier::Http3)?)
                    .await?;
                request::check_response(Carrier::Http3, &response)?;
                let (stream, datagrams) = Stream::of_http3(response.into_body());
                if let Some(datagrams) = &datagrams {
                    datagrams.negotiated().await;
                }
                let tunnel = Tunnel::start(Side::Client, stream, datagrams);
                let socket = Socket::new(tunnel, target, Carrier::Http3, Some(client.clone()));
                wait_for_size(&socket, client).await;
                Ok(socket)
            }
            Link::Tcp(proxy) => {
                let carrier = proxy.carrier();
                let stream = proxy.open(self.request(&target, carrier)?).await?;
                let tunnel = Tunnel::start(Side::Client, Stream::of_hyper(stream), None);
                Ok(Socket::new(tunnel, target, carrier, None))
            }
        }
    }

    fn request(&self, target: &Target, carrier: Carrier) -> Result<Request<()>, OpenError> {
        let mut request = request::connect_udp(&self.template, target, carrier)?;
        for (name, value) in &self.headers {
            request.headers_mut().append(name, value.clone());
        }
        Ok(request)
    }

    /// Returns the connection to the proxy, over HTTP/3.
    pub const fn http3(&self) -> Option<&h3::Client> {
        match &self.link {
            Link::Http3 { client, .. } => Some(client),
            Link::Tcp(_) => None,
        }
    }
}

/// Waits until the path to the proxy carries the smallest packets of QUIC (RFC 9000 §14). The search for its MTU takes a
/// few round trips after the handshake.
async fn wait_for_size(socket: &Socket, client: &h3::Client) {
    let wait = async {
        let mut size = client.quic().watch_datagram_size();
        while socket.max_size() < SMALLEST_QUIC && size.changed().await.is_ok() {}
    };
    // A path with a smaller MTU carries other protocols.
    let _ = runtime::timeout(LONGEST_WAIT, wait).await;
}

/// Payload of the smallest packets of QUIC that every path has to carry.
const SMALLEST_QUIC: usize = 1200;

/// Time for the search for the MTU of the path to the proxy.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
