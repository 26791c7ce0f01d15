//! Settings of names, addresses, sockets and proxies.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use courser_base::ScopedIp;
use http::{HeaderName, HeaderValue};

use super::super::core::ConnectTo;
use super::super::error::{Error, ErrorKind};
use super::super::family::Family;
use super::super::proxy::Proxy;
use super::super::resolve::Resolve;
use super::ClientBuilder;

impl ClientBuilder {
    /// Replaces the [`SystemResolver`](crate::SystemResolver), which resolves all names by default.
    pub fn resolver(mut self, resolver: impl Resolve) -> Self {
        self.resolver = Some(Arc::new(resolver));
        self
    }

    /// Uses these addresses for a host and port. The host `*` matches all hosts, and port 0 all ports.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_client::{self as client, Client}; }
    /// use std::net::Ipv4Addr;
    ///
    /// // The port remains that of the URL.
    /// let client = courser::Client::builder().resolve("example.org", 0, [Ipv4Addr::LOCALHOST]);
    /// ```
    ///
    /// Link-local addresses need a zone, which [`http::Uri`] cannot have. Write the address without its zone in
    /// the URL, and pass it with its zone here (RFC 6874).
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_client::{self as client, Client}; }
    /// use std::net::SocketAddr;
    ///
    /// use courser::Client;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // For URLs such as https://[fe80::1]:4433/, on the interface with the index 2.
    /// let server: SocketAddr = "[fe80::1%2]:4433".parse()?;
    /// let client = Client::builder().resolve("fe80::1", 0, [server]);
    /// # Ok(()) }
    /// ```
    pub fn resolve(
        mut self,
        host: &str,
        port: u16,
        addresses: impl IntoIterator<Item = impl Into<ScopedIp>>,
    ) -> Self {
        let key = (host.to_ascii_lowercase(), port);
        let addresses = addresses.into_iter().map(Into::into).collect();
        self.settings.overrides.insert(key, addresses);
        self
    }

    /// Connects to another host and port than those of the URL. The certificate must still be valid for the URL.
    /// `None` in `from` matches all values, and in `to` keeps the value. The first matching rule applies.
    pub fn connect_to(
        mut self,
        from: (Option<&str>, Option<u16>),
        to: (Option<&str>, Option<u16>),
    ) -> Self {
        let owned = |(host, port): (Option<&str>, _)| (host.map(str::to_ascii_lowercase), port);
        let rule = ConnectTo {
            from: owned(from),
            to: owned(to),
        };
        self.settings.connect_to.push(rule);
        self
    }

    /// Restricts the client to one address family.
    pub fn family(mut self, family: Family) -> Self {
        self.settings.family = Some(family);
        self
    }

    /// Binds connections to this local address. A link-local address without a zone gets the zone of the server.
    pub fn local_address(mut self, address: impl Into<ScopedIp>) -> Self {
        self.settings.local_address = Some(address.into());
        self
    }

    /// Binds connections to this interface, such as `eth0`. Supported only on Linux.
    pub fn interface(mut self, name: impl Into<String>) -> Self {
        self.settings.interface = Some(name.into());
        self
    }

    /// Selects the proxies. Default [`Proxy::Environment`].
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.settings.proxy = proxy;
        self
    }

    /// Adds a field to the CONNECT requests to proxies, and to requests that a proxy reads, for example
    /// `proxy-authorization` with a token. It is marked as sensitive.
    ///
    /// ```
    /// # mod courser { pub use courser_client::{self as client, Client}; }
    /// let client = courser::Client::builder().proxy_header("proxy-authorization", "Bearer 6b1f");
    /// # drop(client);
    /// ```
    ///
    /// An invalid name or value is an error of [`build`](ClientBuilder::build).
    pub fn proxy_header(mut self, name: &str, value: &str) -> Self {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                self.settings.proxy_headers.append(name, value);
            }
            _ => {
                let text = format!("the field '{name}' for proxies has an invalid name or value");
                self.wrong = self
                    .wrong
                    .or_else(|| Some(Error::new(ErrorKind::Config, text)));
            }
        }
        self
    }

    /// Connects to this Unix domain socket instead of the hosts of URLs, without HTTP/3. A path that begins with a
    /// NUL byte is the name of an abstract socket on Linux.
    pub fn unix_socket(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.tcp.unix_socket = Some(path.into());
        self
    }

    /// Probes TCP connections that were idle for this time, and at this interval. Off by default.
    pub fn tcp_keepalive(mut self, time: Duration) -> Self {
        self.settings.tcp.keepalive = Some(time);
        self
    }

    /// Opens TCP connections from one of these local ports. Default: the system chooses.
    pub fn local_ports(mut self, ports: RangeInclusive<u16>) -> Self {
        self.settings.tcp.local_ports = Some(ports);
        self
    }

    /// Begins each TCP connection with a header of the PROXY protocol (version 1), which names its addresses. Off
    /// by default.
    pub fn proxy_protocol(mut self, sends: bool) -> Self {
        self.settings.tcp.sends_proxy_header = sends;
        self
    }
}
