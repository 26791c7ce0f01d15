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

/// Removes the zone from a URL such as `https://[fe80::1%25eth0]:4433/` (RFC 6874 §2). Returns the URL
/// without it, and the address with the zone, here `fe80::1%eth0`. `None` if the URL has no zone.
///
/// A bare `%` is understood as well (RFC 6874 §3).
pub fn split_zone(url: &str) -> Option<(String, String)> {
    let authority = url.find("://").map_or(0, |colon| colon + 3);
    let end = url[authority..].find(['/', '?', '#']);
    let end = end.map_or(url.len(), |end| authority + end);
    // Behind the user name, which may contain brackets.
    let begin = url[authority..end]
        .rfind('@')
        .map_or(authority, |at| authority + at + 1);
    let literal = url[begin..end].strip_prefix('[')?;
    let literal = &literal[..literal.find(']')?];
    let (ip, zone) = literal.split_once('%')?;
    ip.parse::<Ipv6Addr>().ok()?;
    let is_encoded = zone.starts_with("25") && zone.len() > 2;
    let name = decoded(if is_encoded { &zone[2..] } else { zone })?;
    let percent = begin + 1 + ip.len();
    let plain = format!("{}{}", &url[..percent], &url[percent + 1 + zone.len()..]);
    Some((plain, format!("{ip}%{name}")))
}

/// Decodes `%` and two digits. Returns `None` for anything else behind a `%`.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
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
            parse_ip("fe80::1%lo")
                .expect("the loopback interface exists")
                .to_string(),
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
            parse_socket_addr("[fe80::1%lo]:443").expect("the loopback interface exists"),
            "[fe80::1%1]:443".parse().expect("the address is valid")
        );
        for text in ["fe80::1%7", "[fe80::1%7]", "[fe80::1%7]:x", "192.0.2.1", ""] {
            assert!(parse_socket_addr(text).is_err(), "{text}");
        }
    }

    #[test]
    fn errors_state_the_reason() {
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

    #[test]
    fn zones_are_removed_from_urls() {
        for (url, plain, host) in [
            (
                "https://[fe80::1%25eth0]:4433/a?b",
                "https://[fe80::1]:4433/a?b",
                "fe80::1%eth0",
            ),
            (
                "https://[fe80::1%eth0]",
                "https://[fe80::1]",
                "fe80::1%eth0",
            ),
            ("[fe80::1%252]/", "[fe80::1]/", "fe80::1%2"),
            (
                "http://u:[p@[fe80::1%25br%2d0]/",
                "http://u:[p@[fe80::1]/",
                "fe80::1%br-0",
            ),
            // A zone of a machine whose interfaces have numbers only.
            ("http://[fe80::1%25]/", "http://[fe80::1]/", "fe80::1%25"),
        ] {
            let split = split_zone(url).expect(url);
            assert_eq!(split, (plain.to_owned(), host.to_owned()), "{url}");
        }
        for url in [
            "https://[fe80::1]:4433/%25",
            "https://example.org/[fe80::1%25eth0]",
            "https://a?[fe80::1%25eth0]",
            "https://[here%25eth0]/",
            "https://[fe80::1%25a%zz]/",
            "https://[fe80::1%25eth0",
            "",
        ] {
            assert_eq!(split_zone(url), None, "{url}");
        }
    }
}
