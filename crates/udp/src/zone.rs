//! Addresses as people write them: with a zone, which may be the name of an interface (RFC 4007 §11).

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};

use courser_base::ScopedIp;

/// Reads an IP address that may have a zone: `192.0.2.1`, `::1`, `fe80::1%eth0` or `fe80::1%3`.
///
/// The system finds the index of an interface by its name. Sends nothing.
///
/// # Errors
/// Returns an error whose text has the reason: the text is not an address, the address needs no zone, or
/// this machine has no interface of that name.
pub fn parse_ip(text: &str) -> io::Result<ScopedIp> {
    let Some((address, zone)) = text.split_once('%') else {
        let ip = text.parse::<IpAddr>();
        return ip
            .map(ScopedIp::from)
            .map_err(|_| invalid(format!("'{text}' is not an IP address")));
    };
    let Ok(ip) = address.parse::<Ipv6Addr>() else {
        return Err(invalid(format!("'{text}' is not an IP address")));
    };
    if !ScopedIp::from(ip).lacks_zone() {
        return Err(invalid(format!(
            "'{text}' has a zone, which only link-local addresses have: use {ip}"
        )));
    }
    Ok(ScopedIp::new(ip, index_of(zone, text)?))
}

/// Reads an address and port, such as `192.0.2.1:443` or `[fe80::1%eth0]:443`.
///
/// # Errors
/// As [`parse_ip`], and if the port is missing.
pub fn parse_socket_addr(text: &str) -> io::Result<SocketAddr> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(courser_base::canonical(address));
    }
    let wrong = || invalid(format!("'{text}' is not an IP address with a port"));
    let (ip, port) = text
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]:"))
        .ok_or_else(wrong)?;
    let port = port.parse().map_err(|_| wrong())?;
    Ok(parse_ip(ip)?.with_port(port))
}

/// Returns the index of the zone in `text`. The resolver of the system knows the names of interfaces, and
/// does not ask servers about an address.
fn index_of(zone: &str, text: &str) -> io::Result<u32> {
    if let Ok(index) = zone.parse::<u32>()
        && index != 0
    {
        return Ok(index);
    }
    let found = (!zone.is_empty()).then(|| (text, 0).to_socket_addrs().ok());
    let index = found.flatten().and_then(|found| {
        let mut indices = found.map(|address| ScopedIp::of(address).scope_id());
        indices.find(|&index| index != 0)
    });
    index.ok_or_else(|| {
        let text = format!("this machine has no interface '{zone}', which '{text}' names");
        io::Error::new(io::ErrorKind::NotFound, text)
    })
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_indices_or_names_of_interfaces() {
        for (text, read) in [
            ("192.0.2.1", "192.0.2.1"),
            ("2001:db8::1", "2001:db8::1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("fe80::1", "fe80::1"),
            ("fe80::1%7", "fe80::1%7"),
            ("ff02::1%7", "ff02::1%7"),
        ] {
            assert_eq!(parse_ip(text).expect(text).to_string(), read);
        }
        // Every Linux system numbers its loopback interface first.
        #[cfg(target_os = "linux")]
        assert_eq!(
            parse_ip("fe80::1%lo").expect("its own").to_string(),
            "fe80::1%1"
        );
    }

    #[test]
    fn socket_addresses_have_zones_in_their_brackets() {
        for text in ["192.0.2.1:443", "[2001:db8::1]:443", "[fe80::1%7]:443"] {
            assert_eq!(parse_socket_addr(text).expect(text).to_string(), text);
        }
        #[cfg(target_os = "linux")]
        assert_eq!(
            parse_socket_addr("[fe80::1%lo]:443").expect("its own"),
            "[fe80::1%1]:443".parse().expect("an address")
        );
        for text in ["fe80::1%7", "[fe80::1%7]", "[fe80::1%7]:x", "192.0.2.1", ""] {
            assert!(parse_socket_addr(text).is_err(), "{text}");
        }
    }

    #[test]
    fn reasons_are_given() {
        for (text, reason) in [
            ("here", "'here' is not an IP address"),
            ("192.0.2.1%lo", "is not an IP address"),
            (
                "2001:db8::1%lo",
                "only link-local addresses have: use 2001:db8::1",
            ),
            ("::1%1", "only link-local addresses have: use ::1"),
            ("fe80::1%nowhere", "no interface 'nowhere'"),
            ("fe80::1%", "no interface ''"),
            ("fe80::1%0", "no interface '0'"),
            ("fe80::1%4294967296", "no interface '4294967296'"),
        ] {
            let error = parse_ip(text).expect_err(text).to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
