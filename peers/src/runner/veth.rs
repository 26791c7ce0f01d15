//! Two network namespaces with a veth pair between them.
//!
//! The namespaces have no name: they live as long as this value holds their files, or a program
//! runs in them, and the kernel removes the pair with them. So nothing is left behind, however the
//! runner ends.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};
use peers::Failure;

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
    server: File,
    client: File,
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
        let other = format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            veth.client.as_raw_fd()
        );
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
        let own = File::open(OWN)?;
        let there = match end {
            End::Server => &self.server,
            End::Client => &self.client,
        };
        setns(there, CloneFlags::CLONE_NEWNET)?;
        let result = start();
        setns(&own, CloneFlags::CLONE_NEWNET)
            .map_err(|error| format!("cannot leave a network namespace: {error}"))?;
        Ok(result)
    }
}

/// Makes a namespace on a thread that ends with it, so that this one stays where it is.
fn namespace() -> Result<File, Failure> {
    let made = thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET)
            .map_err(|error| format!("--veth needs root to make network namespaces: {error}"))?;
        File::open(OWN).map_err(|error| format!("{OWN}: {error}"))
    });
    let file = made
        .join()
        .map_err(|_| "the thread of a namespace failed")?;
    Ok(file?)
}

/// Runs `ip` of iproute2.
fn ip(arguments: &str) -> Result<(), Failure> {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .map_err(|error| format!("--veth needs the program ip of iproute2: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("ip {arguments}: {}", said.trim()).into())
}

/// The namespace of the thread that opens it.
const OWN: &str = "/proc/thread-self/ns/net";

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::UdpSocket;

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
