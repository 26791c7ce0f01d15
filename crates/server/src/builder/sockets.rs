//! The settings of where a server listens, and what it announces.

use std::net::ToSocketAddrs;

use super::Server;
use super::settings::resolve;
use crate::alt_svc::AltSvc;
use crate::handover::ListeningSockets;
#[cfg(doc)]
use crate::limits::Limits;

impl Server {
    /// Listens on further addresses. Port 0 selects the port of the first address, or another port if the server
    /// already listens on that address.
    pub fn also_on(mut self, address: impl ToSocketAddrs) -> Self {
        if let Ok(addresses) = &mut self.sockets.addresses {
            match resolve(address) {
                Ok(more) => addresses.extend(more),
                Err(error) => self.sockets.addresses = Err(error),
            }
        }
        self
    }

    /// Uses these listening sockets for the addresses that they are bound to, instead of opening others. They
    /// come from a server in another process ([`ServerHandle::hand_over`](crate::ServerHandle::hand_over)) or
    /// from a service manager ([`ListeningSockets::from_service_manager`]). The number of shards is that of the UDP
    /// sockets. A socket for no address of the server is an error, because its clients would wait for an answer.
    pub fn inherit(mut self, sockets: impl IntoIterator<Item = ListeningSockets>) -> Self {
        self.sockets.inherited.extend(sockets);
        self
    }

    /// Listens for plain HTTP on this address, usually port 80, and leads clients to https: to the port of
    /// [`alt_svc`](Self::alt_svc), or else the port of the first address. GET and HEAD get 301, other methods 308.
    /// Can be repeated.
    ///
    /// Each connection has one request and lasts at most 10 seconds, or
    /// [`Limits::header_read_timeout`] if that is shorter. With
    /// `Acme::http01`, challenges are answered here. The service does not see the requests.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; pub use courser_http3_tokio as h3; }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = courser::serve("127.0.0.1:0", courser::Identity::dev()?)
    ///     .redirect_http("127.0.0.1:0")
    ///     .bind()?;
    /// println!("http://{}/", server.redirect_addrs()[0]);
    /// # Ok(()) }
    /// ```
    pub fn redirect_http(mut self, address: impl ToSocketAddrs) -> Self {
        if let Ok(addresses) = &mut self.sockets.redirects {
            match resolve(address) {
                Ok(more) => addresses.extend(more),
                Err(error) => self.sockets.redirects = Err(error),
            }
        }
        self
    }

    /// Disables HTTP/2 and HTTP/1.1, so that no TCP socket is opened.
    pub fn without_tcp(mut self) -> Self {
        self.sockets.with_tcp = false;
        self
    }

    /// Disables HTTP/3, so that no UDP socket is opened.
    pub fn without_quic(mut self) -> Self {
        self.sockets.with_quic = false;
        self
    }

    /// Sets the announcement of HTTP/3 in responses over TCP; `None` announces nothing. A response of the service
    /// that has an `Alt-Svc` field keeps it. A service that forwards requests should therefore remove the field of its
    /// upstream server, which names another port (RFC 7838 §2.1).
    pub fn alt_svc(mut self, alt_svc: impl Into<Option<AltSvc>>) -> Self {
        self.sockets.alt_svc = alt_svc.into();
        self
    }
}
