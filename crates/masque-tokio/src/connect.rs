//! Sockets for targets.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use courser_masque::{Policy, ProxyError};
use courser_quic::hooks::{ErrorCause, PeerSocket};

/// Returns an address of a target, if it is allowed.
pub(crate) fn judge(
    policy: &Policy,
    name: Option<&str>,
    address: SocketAddr,
) -> Result<SocketAddr, (ProxyError, String)> {
    let prohibited = |reason: String| (ProxyError::DestinationIpProhibited, reason);
    let judged = policy
        .judge_as(name, address)
        .map_err(|error| prohibited(error.to_string()))?;
    // A rule may name an address of this machine; whoever wrote it knows that.
    if policy.is_named(judged) {
        return Ok(judged);
    }
    match is_own(judged) {
        Ok(false) => Ok(judged),
        Ok(true) => Err(prohibited(format!(
            "{} is an address of this machine",
            judged.ip()
        ))),
        Err(error) => Err(failure_of(&error, judged)),
    }
}

/// Opens a socket for the first of these addresses that the system reaches.
///
/// The socket is connected to the very address that was judged: no name is looked up a second time.
///
/// # Errors
/// Returns the error of the last address, and its reason for logs, or `None` if there was no address.
pub(crate) fn connect(
    addresses: impl Iterator<Item = SocketAddr>,
) -> Result<(SocketAddr, PeerSocket), Option<(ProxyError, String)>> {
    let mut failure = None;
    for address in addresses {
        match PeerSocket::connect(address) {
            Ok(socket) => return Ok((address, socket)),
            Err(error) => failure = Some(failure_of(&error, address)),
        }
    }
    Err(failure)
}

/// Returns true for an address of this machine: the system sends to it from the same address, or binds it.
///
/// # Errors
/// Returns an error if neither is known, such as without file descriptors: whoever uses them all must not get past this.
fn is_own(peer: SocketAddr) -> io::Result<bool> {
    let ip = peer.ip();
    Ok(source_for(peer)? == Some(ip) || can_be_own(ip)?)
}

/// Returns true for an address of this machine, or one that may be: if the system does not tell, nobody gets past this.
pub(crate) fn is_own_address(address: IpAddr) -> bool {
    can_be_own(address).unwrap_or(true)
}

fn can_be_own(address: IpAddr) -> io::Result<bool> {
    let foreign = match address {
        IpAddr::V4(_) => FOREIGN_IPV4,
        IpAddr::V6(_) => FOREIGN_IPV6,
    };
    Ok(can_bind(address)? && !can_bind(foreign)?)
}

/// Returns the address from which the system sends to `peer`, or `None` if it does not.
fn source_for(peer: SocketAddr) -> io::Result<Option<IpAddr>> {
    let any: IpAddr = match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(peer)?;
        socket.local_addr()
    });
    Ok(unless_address(source)?.map(|address| address.ip().to_canonical()))
}

fn can_bind(address: IpAddr) -> io::Result<bool> {
    Ok(unless_address(UdpSocket::bind((address, 0)))?.is_some())
}

/// Returns `None` for an error that has its reason in the address, and not in what the process lacks.
fn unless_address<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) => match ErrorCause::of(&error) {
            ErrorCause::Unreachable
            | ErrorCause::NoAddress
            | ErrorCause::Invalid
            | ErrorCause::Refused
            | ErrorCause::NotPermitted => Ok(None),
            _ => Err(error),
        },
    }
}

fn failure_of(error: &io::Error, address: SocketAddr) -> (ProxyError, String) {
    let kind = match ErrorCause::of(error) {
        // Invalid is a version of IP that the machine lacks.
        ErrorCause::Unreachable | ErrorCause::NoAddress | ErrorCause::Invalid => {
            ProxyError::DestinationIpUnroutable
        }
        // A broadcast address, or a rule of a firewall.
        ErrorCause::NotPermitted => ProxyError::DestinationIpProhibited,
        // No file descriptor or port is left.
        _ => ProxyError::ConnectionLimitReached,
    };
    (kind, format!("cannot open a socket for {address}: {error}"))
}

/// Addresses for documentation, which no machine has. Where they can be bound, all addresses can
/// (`net.ipv4.ip_nonlocal_bind`, `net.ipv6.ip_nonlocal_bind`).
const FOREIGN_IPV4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const FOREIGN_IPV6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn failed(code: i32) -> io::Error {
        io::Error::from_raw_os_error(code)
    }

    /// EMFILE, ENFILE, ENOBUFS and EADDRINUSE: nothing is known about the address.
    #[test]
    fn a_process_without_descriptors_does_not_take_addresses_for_foreign_ones() {
        for code in [24, 23, 105, 98] {
            assert!(unless_address::<()>(Err(failed(code))).is_err(), "{code}");
        }
        // ENETUNREACH, EHOSTUNREACH, EADDRNOTAVAIL, EAFNOSUPPORT, EINVAL, EACCES.
        for code in [101, 113, 99, 97, 22, 13] {
            let found = unless_address::<()>(Err(failed(code)));
            assert_eq!(found.expect("known"), None, "{code}");
        }
    }

    #[test]
    fn only_a_lack_of_room_is_reported_as_one() {
        let address = ([192, 0, 2, 1], 9).into();
        for (code, expected) in [
            (24, ProxyError::ConnectionLimitReached),
            (98, ProxyError::ConnectionLimitReached),
            (97, ProxyError::DestinationIpUnroutable),
            (99, ProxyError::DestinationIpUnroutable),
            (101, ProxyError::DestinationIpUnroutable),
            (113, ProxyError::DestinationIpUnroutable),
            (13, ProxyError::DestinationIpProhibited),
            (1, ProxyError::DestinationIpProhibited),
        ] {
            assert_eq!(failure_of(&failed(code), address).0, expected, "{code}");
        }
    }
}
