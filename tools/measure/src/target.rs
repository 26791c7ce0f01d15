//! Resolves the address of a server, and configures connections to it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use courser::{Algorithm, TransportConfig};

pub use courser_udp::{parse_ip, parse_socket_addr, split_zone};

use crate::failure::Failure;

/// Splits `HOST[:PORT]`. The host of `[::1]:4433` is `::1`, and that of `[fe80::1%eth0]:4433` is
/// `fe80::1%eth0`.
///
/// # Errors
/// Returns an error if the text is not a host, or the port is not a number from 1 to 65535.
pub fn split_target(target: &str, default_port: u16) -> Result<(&str, u16), Failure> {
    let wrong = |what: &str| Failure::new(format!("'{target}' is not HOST:PORT: {what}"));
    let port = |text: &str| match text.parse() {
        Ok(0) | Err(_) => Err(wrong("a port is a number from 1 to 65535")),
        Ok(port) => Ok(port),
    };
    if let Some(rest) = target.strip_prefix('[') {
        let (host, behind) = rest
            .split_once(']')
            .ok_or_else(|| wrong("']' is missing"))?;
        return match behind.strip_prefix(':') {
            Some(text) => Ok((host, port(text)?)),
            None if behind.is_empty() => Ok((host, default_port)),
            None => Err(wrong("':' is missing after ']'")),
        };
    }
    let (host, port) = match target.split_once(':') {
        None => (target, default_port),
        // An IPv6 address without brackets has no port.
        Some((_, rest)) if rest.contains(':') => (target, default_port),
        Some((host, text)) => (host, port(text)?),
    };
    if host.is_empty() {
        Err(wrong("the host is missing"))
    } else {
        Ok((host, port))
    }
}

/// Returns the addresses of a host, at least one, in the system's order of preference.
///
/// # Errors
/// Returns an error if the name cannot be resolved.
pub fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
    if host.contains('%') {
        let ip = parse_ip(host).map_err(|error| Failure::new(error.to_string()))?;
        return Ok(vec![ip.with_port(port)]);
    }
    let addresses: Vec<_> = match (host, port).to_socket_addrs() {
        Ok(addresses) => addresses.collect(),
        // Names below localhost resolve to this machine (RFC 6761 §6.3), even in a container without
        // `/etc/hosts`.
        Err(_) if is_local(host) => {
            let loopback: [IpAddr; 2] = [Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()];
            loopback.map(|ip| SocketAddr::from((ip, port))).to_vec()
        }
        Err(error) => {
            return Err(Failure::new(format!("cannot resolve '{host}': {error}")));
        }
    };
    if addresses.is_empty() {
        return Err(Failure::new(format!(
            "cannot resolve '{host}': it has no address"
        )));
    }
    Ok(addresses)
}

/// Returns the host without the zone of a link-local address, as certificates and requests contain it: a
/// zone has no meaning on another machine (RFC 6874 §1).
pub fn without_zone(host: &str) -> &str {
    match host.split_once('%') {
        Some((ip, _)) if ip.parse::<Ipv6Addr>().is_ok() => ip,
        _ => host,
    }
}

fn is_local(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

/// Returns the transport settings of both ends of a measurement.
pub fn transport(congestion: Algorithm, mtu: Option<u16>) -> TransportConfig {
    let default = TransportConfig::default();
    TransportConfig {
        congestion,
        mtu: mtu.unwrap_or(default.mtu),
        // A requested size is kept, so that figures can be compared.
        mtu_discovery: mtu.is_none(),
        // The connection for the server's counters is idle during a measurement.
        keep_alive_interval: Some(Duration::from_secs(10)),
        ..default
    }
}

/// Returns true if the error reports a closed port. On Windows it is that of an earlier datagram that was
/// reset.
fn refused(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionRefused | ConnectionReset)
}

/// Waits until the system reports that a UDP port is closed, for which it probes the port from a connected
/// socket. Without such a report it never resolves.
pub async fn port_closed(address: SocketAddr) {
    tokio::time::sleep(BEFORE_PROBE).await;
    let probe = || -> std::io::Result<UdpSocket> {
        let socket = UdpSocket::bind((local_ip_for(address.ip()), 0))?;
        socket.set_nonblocking(true)?;
        socket.connect(address)?;
        Ok(socket)
    };
    if let Ok(socket) = probe() {
        let mut answer = [0; 16];
        for _ in 0..PROBES {
            // One byte is not a packet of any version, so servers drop it silently.
            let _ = socket.send(&[0]);
            tokio::time::sleep(BETWEEN_PROBES).await;
            if socket.recv(&mut answer).is_err_and(|error| refused(&error)) {
                return;
            }
        }
    }
    std::future::pending().await
}

/// Returns the local address for packets to a server. For a wildcard address, the system would look the
/// source up for each batch.
pub fn local_ip_for(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(ip) if ip.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_loopback() => Ipv6Addr::LOCALHOST.into(),
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// The time that a handshake has before the first probe is sent.
const BEFORE_PROBE: Duration = Duration::from_millis(200);
const BETWEEN_PROBES: Duration = Duration::from_millis(100);
const PROBES: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_of_a_target_is_optional() {
        assert_eq!(split_target("example.org", 4433), Ok(("example.org", 4433)));
        assert_eq!(split_target("example.org:1", 4433), Ok(("example.org", 1)));
        assert_eq!(split_target("[::1]:443", 4433), Ok(("::1", 443)));
        assert_eq!(split_target("[::1]", 4433), Ok(("::1", 4433)));
        assert_eq!(split_target("::1", 4433), Ok(("::1", 4433)));
    }

    #[test]
    fn zones_are_kept_for_sockets_and_left_out_for_certificates() {
        assert_eq!(without_zone("fe80::1%eth0"), "fe80::1");
        for host in ["fe80::1", "example.org", "a%b"] {
            assert_eq!(without_zone(host), host);
        }
        let found = resolve("fe80::1%7", 1).expect("no name");
        assert_eq!(found, ["[fe80::1%7]:1".parse().expect("an address")]);
        let error = resolve("fe80::1%nowhere", 1).expect_err("no interface");
        assert!(
            error.to_string().contains("no interface 'nowhere'"),
            "{error}"
        );
    }

    #[test]
    fn names_below_localhost_are_this_machine() {
        for host in ["localhost", "app.localhost", "App.LocalHost"] {
            let found = resolve(host, 1).expect(host);
            assert!(!found.is_empty(), "{host}");
            assert!(found.iter().all(|address| address.ip().is_loopback()));
        }
        assert!(!is_local("localhost.example") && !is_local("notlocalhost"));
    }

    #[test]
    fn invalid_target_is_refused_with_the_reason() {
        for wrong in [
            "host:0",
            "host:x",
            "host:70000",
            ":443",
            "[::1",
            "[::1]443",
            "host:",
            "",
        ] {
            let error = split_target(wrong, 4433).expect_err(wrong);
            assert!(
                error.to_string().contains("is not HOST:PORT"),
                "{wrong}: {error}"
            );
        }
    }
}
