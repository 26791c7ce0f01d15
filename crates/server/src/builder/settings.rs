//! What the methods of a server set.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use courser_http3_tokio as h3;

use crate::alt_svc::AltSvc;
use crate::exchange::early_data::TooEarly;
use crate::handover::ListeningSockets;
use crate::limits::Limits;
use crate::own_response::OwnListener;
use crate::requests::MoreExtensions;

/// Where a server listens.
pub(crate) struct SocketSettings {
    pub(crate) addresses: io::Result<Vec<SocketAddr>>,
    pub(crate) inherited: Vec<ListeningSockets>,
    /// The addresses of plain HTTP.
    pub(crate) redirects: io::Result<Vec<SocketAddr>>,
    pub(crate) with_tcp: bool,
    pub(crate) with_quic: bool,
    /// What responses over TCP announce.
    pub(crate) alt_svc: Option<AltSvc>,
}

impl SocketSettings {
    pub(super) fn new(address: impl ToSocketAddrs) -> Self {
        Self {
            addresses: resolve(address),
            inherited: Vec::new(),
            redirects: Ok(Vec::new()),
            with_tcp: true,
            with_quic: true,
            alt_svc: Some(AltSvc::default()),
        }
    }
}

/// How a server treats requests.
pub(crate) struct HttpSettings {
    pub(crate) limits: Limits,
    pub(crate) http3: h3::Config,
    pub(crate) announces_names: bool,
    pub(crate) only_names: bool,
    pub(crate) early_requests: TooEarly,
    pub(crate) sends_interim: bool,
    /// True if HTTP/2 clients may send extended CONNECT.
    pub(crate) http2_connect: bool,
    pub(crate) extensions: MoreExtensions,
    pub(crate) own_listener: OwnListener,
    /// What is announced about sessions of WebTransport.
    #[cfg(feature = "webtransport")]
    pub(crate) sessions: Option<courser_webtransport_tokio::Config>,
    /// The counts of sessions, once they are announced.
    #[cfg(feature = "webtransport")]
    pub(crate) monitor: Option<courser_webtransport_tokio::Monitor>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            http3: h3::Config::new(courser_quic::Side::Server),
            announces_names: false,
            only_names: false,
            early_requests: TooEarly::unless_safe(),
            sends_interim: false,
            http2_connect: false,
            extensions: MoreExtensions::default(),
            own_listener: OwnListener::default(),
            #[cfg(feature = "webtransport")]
            sessions: None,
            #[cfg(feature = "webtransport")]
            monitor: None,
        }
    }
}

/// Returns the addresses of a name.
pub(super) fn resolve(address: impl ToSocketAddrs) -> io::Result<Vec<SocketAddr>> {
    let addresses: Vec<_> = address.to_socket_addrs()?.collect();
    if addresses.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the name has no address",
        ));
    }
    Ok(addresses)
}
