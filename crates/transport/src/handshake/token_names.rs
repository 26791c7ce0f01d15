//! The names of servers for whose next connection a client stores tokens and tickets. RFC 9000 §8.1.3,
//! RFC 9369 §5.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use courser_base::ScopedIp;
use courser_wire::Version;

/// Returns the name of the server at `peer`, whose name in TLS is `server_name`. The port is omitted if it is 443.
///
/// Different ports of one host are different servers (RFC 9110 §4.3.1), so tokens and tickets of one are not sent
/// to another: a token would disclose that the client has been at the other one (RFC 9000 §8.1.3). The same
/// holds for equal link-local addresses in different zones.
pub(crate) fn server_at(server_name: &str, peer: SocketAddr) -> String {
    let host = match server_name.parse::<IpAddr>() {
        Ok(ip) => ScopedIp::in_zone_of(ip, peer).to_string(),
        Err(_) => server_name.to_ascii_lowercase(),
    };
    match peer.port() {
        USUAL_PORT => host,
        port if host.contains(':') => format!("[{host}]:{port}"),
        port => format!("{host}:{port}"),
    }
}

/// Returns the name under which tokens of a server are stored: they belong to one version (RFC 9369 §5).
pub(super) fn token_key(server: &str, version: Version) -> Cow<'_, str> {
    match version {
        Version::V1 => Cow::Borrowed(server),
        other => Cow::Owned(format!("{server}#quic-v{other}")),
    }
}

/// The port of https, omitted in names.
const USUAL_PORT: u16 = 443;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_identified_by_name_port_and_zone() {
        for (name, peer, server) in [
            ("a.test", "192.0.2.1:443", "a.test"),
            ("a.test", "192.0.2.1:4433", "a.test:4433"),
            ("A.Test", "192.0.2.1:4433", "a.test:4433"),
            ("a.test", "[fe80::1%2]:4433", "a.test:4433"),
            ("192.0.2.1", "192.0.2.1:1", "192.0.2.1:1"),
            ("2001:db8::1", "[2001:db8::1]:443", "2001:db8::1"),
            ("2001:db8::1", "[2001:db8::1]:1", "[2001:db8::1]:1"),
            ("fe80::1", "[fe80::1%2]:443", "fe80::1%2"),
            ("fe80::1", "[fe80::1%3]:1", "[fe80::1%3]:1"),
        ] {
            assert_eq!(server_at(name, peer.parse().expect(peer)), server);
        }
        assert_eq!(token_key("a.test:1", Version::V1), "a.test:1");
        assert_eq!(token_key("a.test:1", Version::V2), "a.test:1#quic-v2");
    }
}
