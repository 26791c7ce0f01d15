//! Where a further path of a connection begins.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use crate::runtime::{Current, Socket};

/// Where a further path of a connection begins: at a network interface, or at an address of this machine.
///
/// It is parsed from either; what is no IP address is the name of an interface.
///
/// ```
/// # extern crate courser_quic as courser;
/// use courser::Via;
///
/// assert_eq!("wwan0".parse(), Ok(Via::Interface("wwan0".to_owned())));
/// assert_eq!("192.0.2.7".parse(), Ok(Via::Address([192, 0, 2, 7].into())));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Via {
    /// Packets leave and arrive through the interface with this name, whatever the routes of the system prefer. The
    /// interface needs a route to the server. Linux and Android.
    Interface(String),
    /// Packets have this source address. Whether they leave through the interface that has it depends on the routes of
    /// the system: most need a rule for the source address, such as `ip rule add from ADDRESS table NUMBER`.
    Address(IpAddr),
}

impl Via {
    /// Opens a socket that sends to `peer` from there.
    pub(crate) fn open(&self, runtime: &Current, peer: SocketAddr) -> io::Result<Socket> {
        let any: IpAddr = match peer {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        match self {
            Self::Interface(name) => {
                runtime.adopt(courser_udp::bind_to_interface((any, 0).into(), name)?)
            }
            Self::Address(ip) if ip.is_ipv4() != any.is_ipv4() => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("the address of the server is {}", peer.ip()),
            )),
            Self::Address(ip) => runtime.bind((*ip, 0).into()),
        }
    }
}

impl FromStr for Via {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.parse() {
            Ok(ip) => Self::Address(ip),
            Err(_) => Self::Interface(text.to_owned()),
        })
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(name) => f.write_str(name),
            Self::Address(ip) => ip.fmt(f),
        }
    }
}
