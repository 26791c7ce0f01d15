//! Connections to proxies, on which clients open tunnels.

use std::sync::Arc;
use std::time::Duration;

use courser_base::Side;
use courser_http3_tokio as h3;
use courser_masque::Carrier;
use courser_quic::{Endpoint, runtime};
use http::{HeaderMap, Request};

use crate::driver;
use crate::open_error::OpenError;
use crate::protocol::Protocol;
use crate::reset::Reset;
use crate::stream::Stream;
use crate::tcp::TcpProxy;
use crate::tunnel::Tunnel;

/// A connection to a proxy, or the means to make some.
#[derive(Clone, Debug)]
pub(crate) enum Link {
    Http3 {
        client: h3::Client,
        /// Keeps the endpoint of the connection.
        _endpoint: Option<Endpoint>,
    },
    Tcp(Arc<TcpProxy>),
}

impl Link {
    /// Uses a connection of HTTP/3 that exists.
    pub(crate) const fn over(client: h3::Client) -> Self {
        Self::Http3 {
            client,
            _endpoint: None,
        }
    }

    /// Returns the connection to the proxy, over HTTP/3.
    pub(crate) const fn http3(&self) -> Option<&h3::Client> {
        match self {
            Self::Http3 { client, .. } => Some(client),
            Self::Tcp(_) => None,
        }
    }

    /// Returns the version of HTTP of the connection.
    pub(crate) fn carrier(&self) -> Carrier {
        match self {
            Self::Http3 { .. } => Carrier::Http3,
            Self::Tcp(proxy) => proxy.carrier(),
        }
    }

    /// Sends a request for a tunnel, and starts the tunnel when the proxy has accepted it.
    pub(crate) async fn open(
        &self,
        mut request: Request<()>,
        headers: &HeaderMap,
        protocol: Protocol,
    ) -> Result<Tunnel, OpenError> {
        for (name, value) in headers {
            request.headers_mut().append(name, value.clone());
        }
        match self {
            Self::Http3 { client, .. } => {
                let response = client.connect(request).await?;
                protocol.check_response(Carrier::Http3, &response)?;
                let (stream, datagrams) = Stream::of_http3(response.into_body(), &protocol);
                if let Some(datagrams) = &datagrams {
                    datagrams.negotiated().await;
                }
                Ok(driver::start(Side::Client, stream, datagrams, protocol))
            }
            Self::Tcp(proxy) => {
                let stream = proxy.open(request, &protocol).await?;
                let stream = Stream::of_hyper(stream, &protocol, Reset::default());
                Ok(driver::start(Side::Client, stream, None, protocol))
            }
        }
    }

    /// Waits until the path to the proxy carries payloads of a size. The search for its MTU takes a few round trips after
    /// the handshake.
    pub(crate) async fn wait_for_size(&self, tunnel: &Tunnel, size: usize) {
        let Self::Http3 { client, .. } = self else {
            return;
        };
        let wait = async {
            let mut watch = client.quic().watch_datagram_size();
            while tunnel.max_size() < size && watch.changed().await.is_ok() {}
        };
        // A path with a smaller MTU carries other protocols.
        let _ = runtime::timeout(LONGEST_WAIT, wait).await;
    }
}

/// Time for the search for the MTU of the path to the proxy.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
