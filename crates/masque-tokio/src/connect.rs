//! Sockets for targets.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use courser_masque::{Policy, ProxyError};
use courser_quic::hooks::PeerSocket;

/// Opens a socket for the first address that the policy allows and the system reaches.
///
/// The socket is connected to the very address that was judged: no name is looked up a second time.
pub(crate) fn connect(
    policy: &Policy,
    addresses: &[SocketAddr],
) -> Result<PeerSocket, (ProxyError, String)> {
    let mut failure = (ProxyError::DnsError, "the name has no address".to_owned());
    for address in addresses {
        match connect_to(policy, *address) {
            Ok(socket) => return Ok(socket),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn connect_to(policy: &Policy, address: SocketAddr) -> Result<PeerSocket, (ProxyError, String)> {
    let prohibited = |reason: String| (ProxyError::DestinationIpProhibited, reason);
    let judged = policy
        .judge(address)
        .map_err(|error| prohibited(error.to_string()))?;
    let socket = PeerSocket::connect(judged).map_err(|error| failure_of(&error, judged))?;
    // A rule may name an address of this machine; whoever wrote it knows that.
    if !policy.is_named(judged) && is_own(&socket, judged.ip()) {
        return Err(prohibited(format!(
            "{} is an address of this machine",
            judged.ip()
        )));
    }
    Ok(socket)
}

/// Returns true for an address of this machine: the system sends to it from the same address, or binds it.
fn is_own(socket: &PeerSocket, peer: IpAddr) -> bool {
    let is_source = socket
        .local_addr()
        .is_ok_and(|local| local.ip().to_canonical() == peer);
    is_source || is_own_address(peer)
}

/// Returns true for an address that the system can bind: one of this machine.
pub(crate) fn is_own_address(address: IpAddr) -> bool {
    can_bind(address) && !can_bind(FOREIGN)
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
