//! Sockets for targets.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use courser_masque::{Policy, ProxyError};
use courser_quic::hooks::PeerSocket;

/// Returns the allowed ones of the addresses of a target, at least one.
pub(crate) fn judge(
    policy: &Policy,
    name: Option<&str>,
    addresses: &[SocketAddr],
) -> Result<Vec<SocketAddr>, (ProxyError, String)> {
    let mut failure = (ProxyError::DnsError, "the name has no address".to_owned());
    let mut allowed = Vec::new();
    for address in addresses {
        match judge_one(policy, name, *address) {
            Ok(judged) => allowed.push(judged),
            Err(error) => failure = error,
        }
    }
    if allowed.is_empty() {
        return Err(failure);
    }
    Ok(allowed)
}

fn judge_one(
    policy: &Policy,
    name: Option<&str>,
    address: SocketAddr,
) -> Result<SocketAddr, (ProxyError, String)> {
    let prohibited = |reason: String| (ProxyError::DestinationIpProhibited, reason);
    let judged = policy
        .judge_as(name, address)
        .map_err(|error| prohibited(error.to_string()))?;
    // A rule may name an address of this machine; whoever wrote it knows that.
    if !policy.is_named(judged) && is_own(judged) {
        return Err(prohibited(format!(
            "{} is an address of this machine",
            judged.ip()
        )));
    }
    Ok(judged)
}

/// Opens a socket for the first address that the system reaches.
///
/// The socket is connected to the very address that was judged: no name is looked up a second time.
pub(crate) fn connect(
    addresses: &[SocketAddr],
) -> Result<(SocketAddr, PeerSocket), (ProxyError, String)> {
    let mut failure = (ProxyError::DnsError, "the name has no address".to_owned());
    for address in addresses {
        match PeerSocket::connect(*address) {
            Ok(socket) => return Ok((*address, socket)),
            Err(error) => failure = failure_of(&error, *address),
        }
    }
    Err(failure)
}

/// Returns true for an address of this machine: the system sends to it from the same address, or binds it.
fn is_own(peer: SocketAddr) -> bool {
    let ip = peer.ip();
    source_for(peer) == Some(ip) || (can_bind(ip) && !can_bind(FOREIGN))
}

/// Returns the address from which the system sends to `peer`.
fn source_for(peer: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(peer).ok()?;
    Some(socket.local_addr().ok()?.ip().to_canonical())
}

fn can_bind(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

fn failure_of(error: &io::Error, address: SocketAddr) -> (ProxyError, String) {
    let kind = match error.kind() {
        io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::AddrNotAvailable => ProxyError::DestinationIpUnroutable,
        // No file descriptor or port is left.
        _ => ProxyError::ConnectionLimitReached,
    };
    (kind, format!("cannot open a socket for {address}: {error}"))
}

/// An address for documentation, which no machine has. Where it can be bound, all addresses can
/// (`net.ipv4.ip_nonlocal_bind`).
const FOREIGN: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
