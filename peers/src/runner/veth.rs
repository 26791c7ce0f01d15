//! Two network namespaces with a veth pair between them, which the kernel removes with them.

use std::net::{Ipv4Addr, SocketAddr};

use peers::Failure;
use peers::namespace::{Namespace, run};

/// An end of the pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Server,
    Client,
}

impl End {
    /// Its address: one of those for benchmarks of networks (RFC 2544, RFC 6890).
    const fn address(self) -> Ipv4Addr {
        match self {
            Self::Server => Ipv4Addr::new(198, 18, 0, 1),
            Self::Client => Ipv4Addr::new(198, 18, 0, 2),
        }
    }

    const fn interface(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}

/// The pair and its namespaces.
#[derive(Debug)]
pub(crate) struct Veth {
    server: Namespace,
    client: Namespace,
}

impl Veth {
    /// Makes both namespaces and the pair.
    ///
    /// # Errors
    /// When the process may not, or the program `ip` is missing.
    pub(crate) fn new() -> Result<Self, Failure> {
        let veth = Self {
            server: namespace()?,
            client: namespace()?,
        };
        let other = veth.client.path();
        let (server, client) = (End::Server.interface(), End::Client.interface());
        veth.inside(End::Server, || {
            ip(&format!(
                "link add {server} type veth peer name {client} netns {other}"
            ))
        })??;
        for end in [End::Server, End::Client] {
            veth.inside(end, || {
                let (address, interface) = (end.address(), end.interface());
                ip(&format!("address add {address}/30 dev {interface}"))?;
                ip(&format!("link set {interface} up"))?;
                ip("link set lo up")
            })??;
        }
        Ok(veth)
    }

    /// Returns the address that the server is to listen on, with any port.
    pub(crate) fn listen() -> SocketAddr {
        SocketAddr::from((End::Server.address(), 0))
    }

    /// Runs `start` in the namespace of an end and comes back; a process started meanwhile stays
    /// there.
    pub(crate) fn inside<T>(&self, end: End, start: impl FnOnce() -> T) -> Result<T, Failure> {
        match end {
            End::Server => self.server.inside(start),
            End::Client => self.client.inside(start),
        }
    }
}

fn namespace() -> Result<Namespace, Failure> {
    Namespace::new().map_err(|error| format!("--veth needs namespaces: {error}").into())
}

/// Runs `ip` of iproute2.
fn ip(arguments: &str) -> Result<(), Failure> {
    run("ip", arguments).map_err(|error| format!("--veth needs a pair: {error}").into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::UdpSocket;

    use peers::namespace::OWN;

    use super::*;

    /// Only root can make namespaces; others have the message that says so.
    #[test]
    fn datagrams_cross_the_pair() {
        let veth = match Veth::new() {
            Ok(veth) => veth,
            Err(failure) => {
                assert!(failure.to_string().contains("needs"), "{failure}");
                return;
            }
        };
        let own = fs::read_link(OWN).unwrap();
        let bind = |end: End| veth.inside(end, || UdpSocket::bind((end.address(), 0)));
        let (server, client) = (bind(End::Server), bind(End::Client));
        let (server, client) = (server.unwrap().unwrap(), client.unwrap().unwrap());
        client.send_to(b"x", server.local_addr().unwrap()).unwrap();
        let mut buffer = [0; 2];
        let (length, from) = server.recv_from(&mut buffer).unwrap();
        assert_eq!((length, from), (1, client.local_addr().unwrap()));
        assert_eq!(fs::read_link(OWN).unwrap(), own, "the thread came back");
    }
}
