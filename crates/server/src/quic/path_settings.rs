//! Settings of the paths of QUIC connections: migration, preferred addresses and the QUIC bit.

use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};

use courser_quic::ServerConfig;

use crate::error::Error;

/// The path settings of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathSettings {
    pub(crate) forbids_migration: bool,
    pub(crate) preferred_v4: Option<SocketAddrV4>,
    pub(crate) preferred_v6: Option<SocketAddrV6>,
    /// True if the QUIC bit of packets is cleared at random (RFC 9287).
    pub(crate) greases_quic_bit: bool,
}

impl PathSettings {
    pub(crate) const DEFAULT: Self = Self {
        forbids_migration: false,
        preferred_v4: None,
        preferred_v6: None,
        greases_quic_bit: false,
    };

    /// Applies the settings to the configuration of the listener on `address`.
    pub(crate) fn apply(&self, config: ServerConfig, address: SocketAddr) -> ServerConfig {
        let v4 = self.preferred_v4.filter(|_| receives_v4(address));
        let v6 = self.preferred_v6.filter(|_| receives_v6(address));
        config
            .migration(!self.forbids_migration)
            .preferred_address(v4, v6)
    }

    /// Checks that datagrams to the preferred addresses arrive at a socket that offers them.
    ///
    /// # Errors
    /// Returns the first address that clients cannot use, with the reason.
    pub(crate) fn check(&self, listeners: &[SocketAddr]) -> Result<(), Error> {
        let v4 = self.preferred_v4.map(SocketAddr::from);
        let v6 = self.preferred_v6.map(SocketAddr::from);
        let is_received_v4 = listeners.iter().any(|it| receives_v4(*it));
        let is_received_v6 = listeners.iter().any(|it| receives_v6(*it));
        for (address, is_received) in [(v4, is_received_v4), (v6, is_received_v6)] {
            let Some(address) = address else { continue };
            let reason = match unreachable_reason(address) {
                Some(unreachable_reason) => unreachable_reason,
                None if is_bound(address, listeners) => {
                    "another listener receives there: remove that listener, or prefer another address"
                }
                None if is_received => continue,
                None if address.is_ipv4() => "no socket receives there: listen on 0.0.0.0 or [::]",
                None => "no socket receives there: listen on [::]",
            };
            return Err(Error::PreferredAddress { address, reason });
        }
        Ok(())
    }
}

/// Returns the reason why no client can send to this address.
fn unreachable_reason(address: SocketAddr) -> Option<&'static str> {
    match address.ip() {
        ip if ip.is_unspecified() => Some("it is a wildcard: use an address of this server"),
        ip if ip.is_multicast() => Some("it is a multicast address: use an address of this server"),
        _ if address.port() == 0 => {
            Some("port 0 is not a valid port: use the port that clients can reach")
        }
        _ => None,
    }
}

/// Returns true if a listener is bound to exactly this address and port. Its endpoint would receive the packets
/// of connections that started at the wildcard address.
fn is_bound(address: SocketAddr, listeners: &[SocketAddr]) -> bool {
    // Listeners with port 0 get the port of the first one if it is free.
    let first = listeners.first().map_or(0, SocketAddr::port);
    listeners.iter().any(|listener| {
        let port = match listener.port() {
            0 => first,
            port => port,
        };
        port == address.port() && listener.ip().to_canonical() == address.ip()
    })
}

/// Returns true if a socket on `address` receives datagrams to every IPv4 address of the machine.
fn receives_v4(address: SocketAddr) -> bool {
    address.ip().is_unspecified()
}

/// Returns true if a socket on `address` receives datagrams to every IPv6 address of the machine.
fn receives_v6(address: SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V6(ip) if ip.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(v4: Option<&str>, v6: Option<&str>, listeners: &[&str]) -> Option<String> {
        let settings = PathSettings {
            preferred_v4: v4.map(|text| text.parse().expect("an address")),
            preferred_v6: v6.map(|text| text.parse().expect("an address")),
            ..PathSettings::DEFAULT
        };
        let listeners = listeners
            .iter()
            .map(|text| text.parse().expect("an address"));
        let result = settings.check(&listeners.collect::<Vec<_>>());
        result.err().map(|error| error.to_string())
    }

    #[test]
    fn preferred_addresses_need_a_wildcard_socket_of_their_family() {
        let (v4, v6) = (Some("192.0.2.7:443"), Some("[2001:db8::7]:443"));
        assert_eq!(check(None, None, &["127.0.0.1:443"]), None);
        assert_eq!(check(v4, v6, &["[::]:443"]), None);
        assert_eq!(check(v4, None, &["127.0.0.1:443", "0.0.0.0:443"]), None);
        let error = check(v4, None, &["127.0.0.1:443", "[::1]:443"]).expect("no wildcard");
        assert!(
            error.contains("192.0.2.7:443") && error.contains("0.0.0.0 or [::]"),
            "{error}"
        );
        let error = check(v4, v6, &["0.0.0.0:443"]).expect("IPv4 only");
        assert!(
            error.contains("[2001:db8::7]:443") && error.contains("listen on [::]"),
            "{error}"
        );
    }

    #[test]
    fn addresses_of_another_listener_are_refused() {
        let (v4, v6) = (Some("192.0.2.7:443"), Some("[2001:db8::7]:443"));
        for other in ["192.0.2.7:443", "[::ffff:192.0.2.7]:443", "192.0.2.7:0"] {
            let error = check(v4, None, &["0.0.0.0:443", other]).expect(other);
            assert!(error.contains("another listener"), "{error}");
        }
        let error = check(None, v6, &["[::]:443", "[2001:db8::7]:443"]).expect("bound");
        assert!(error.contains("another listener"), "{error}");
        for other in ["192.0.2.7:444", "192.0.2.8:443"] {
            assert_eq!(check(v4, None, &["0.0.0.0:443", other]), None);
        }
    }

    #[test]
    fn addresses_that_no_client_can_send_to_are_refused() {
        for (v4, v6, reason) in [
            (Some("0.0.0.0:443"), None, "wildcard"),
            (Some("192.0.2.7:0"), None, "port 0"),
            (Some("224.0.0.1:443"), None, "multicast"),
            (None, Some("[::]:443"), "wildcard"),
            (None, Some("[2001:db8::7]:0"), "port 0"),
        ] {
            let error = check(v4, v6, &["[::]:443"]).expect(reason);
            assert!(error.contains(reason), "{error}");
        }
    }
}
