//! Parses values of flags that several commands share.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};

use courser::{Algorithm, QuicVersion};
use courser_measure::target::{parse_ip, parse_socket_addr};
use courser_perf::Figure;
use courser_units::parse_quantity;

/// Parses an origin to announce: the scheme https, a host, and an optional port.
pub(crate) fn parse_origin(text: &str) -> Result<String, String> {
    if text.contains('*') {
        return Err("a wildcard is not an origin: give each name (RFC 6454 §6.2)".to_owned());
    }
    let uri = text.parse::<http::Uri>().ok();
    let authority = uri.as_ref().and_then(http::Uri::authority);
    let is_bare = authority.is_some_and(|authority| text == format!("https://{authority}"));
    match is_bare && !text.contains('@') {
        true => Ok(text.to_ascii_lowercase()),
        false => Err("an origin is https:// and a host, such as https://example.org".to_owned()),
    }
}

/// Parses the name of a congestion control algorithm.
pub(crate) fn parse_controller(name: &str) -> Result<Algorithm, String> {
    name.parse().map_err(|error| format!("{error}"))
}

/// Returns the help text of `--cc`, which lists the congestion control algorithms.
pub(crate) fn controller_help() -> String {
    let names: Vec<_> = Algorithm::ALL.iter().map(Algorithm::to_string).collect();
    let (last, others) = names.split_last().expect("there is a default algorithm");
    let others = others.join(", ");
    format!("Congestion control algorithm: {others} or {last}")
}

/// Returns the help text of `--cc` with advice about the choice.
pub(crate) fn controller_long_help() -> String {
    let summary = controller_help();
    format!(
        "{summary}\n\nUse prague only on networks with L4S queues (RFC 9330). Elsewhere it behaves like cubic."
    )
}

/// Parses a version of QUIC: `1` or `2`, also `v1` or `v2`.
pub(crate) fn parse_quic_version(text: &str) -> Result<QuicVersion, String> {
    match text.strip_prefix(['v', 'V']).unwrap_or(text) {
        "1" => Ok(QuicVersion::V1),
        "2" => Ok(QuicVersion::V2),
        _ => Err(format!(
            "'{text}' is not a version of QUIC: use 1, 2, or 1,2"
        )),
    }
}

/// Returns the versions of QUIC that a client offers, given those of its flag.
pub(crate) fn quic_versions(given: &[QuicVersion]) -> Vec<QuicVersion> {
    match given {
        [] => vec![QuicVersion::V1],
        given => given.to_vec(),
    }
}

/// Parses the size of a UDP payload, from 1200 to 65507 bytes.
pub(crate) fn parse_mtu(text: &str) -> Result<u16, String> {
    let size = parse_quantity(text)?;
    let range = || format!("{size} is not between 1200 and 65507");
    u16::try_from(size)
        .ok()
        .filter(|mtu| (1200..=65_507).contains(mtu))
        .ok_or_else(range)
}

/// Parses an address to listen on: `1.2.3.4:5`, `[::1]:5`, `[fe80::1%eth0]:5`, or one of them without the port.
pub(crate) fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = parse_socket_addr(text) {
        return Ok(address);
    }
    if let Some((address, port)) = without_brackets(text) {
        return Err(format!(
            "'{text}' may be an address or one with a port: use [{address}]:{port} or [{text}]:{DEFAULT_PORT}"
        ));
    }
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    match parse_ip(bare) {
        Ok(ip) => return Ok(ip.with_port(DEFAULT_PORT)),
        // There is no interface of that name, or the address does not take one.
        Err(error) if text.contains('%') => return Err(zone_error(text, &error)),
        Err(_) => {}
    }
    let port = text.strip_prefix("*:").or_else(|| text.strip_prefix(':'));
    if let Ok(port) = port.unwrap_or(text).parse::<u16>() {
        return Err(format!(
            "'{text}' is not an address: use [::]:{port} for all interfaces or 127.0.0.1:{port} for this machine only"
        ));
    }
    Err(format!(
        "'{text}' is not an address: use an IP address such as 127.0.0.1:4433 or [::]:0"
    ))
}

/// Returns the message for an address whose zone is unusable.
fn zone_error(text: &str, error: &io::Error) -> String {
    let bracketed = text
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
        .and_then(|(ip, _)| parse_ip(ip).err());
    bracketed.as_ref().unwrap_or(error).to_string()
}

/// Returns the address and the port that `::1:4433` may mean; it is an IPv6 address as well.
fn without_brackets(text: &str) -> Option<(Ipv6Addr, u16)> {
    let (address, port) = text.rsplit_once(':')?;
    text.parse::<Ipv6Addr>().ok()?;
    Some((address.parse().ok()?, port.parse().ok()?))
}

/// The port that perf servers listen on by convention.
pub(crate) const DEFAULT_PORT: u16 = 4433;

/// Returns the parser for `--shards`: 1 to 256.
pub(crate) fn parse_shards() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..=256)
}

/// Parses the name of a figure: `seconds`, or a JSON pointer.
pub(crate) fn parse_figure(text: &str) -> Result<Figure, String> {
    match text {
        "seconds" => Ok(Figure::Seconds),
        _ if text.starts_with('/') => Ok(Figure::Json {
            pointer: text.to_owned(),
            less_is_better: false,
        }),
        _ => Err(format!(
            "'{text}' is neither 'seconds' nor a JSON pointer such as /end/per_second"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_of_a_listening_address_is_optional() {
        assert_eq!(parse_listen("127.0.0.1"), Ok(([127, 0, 0, 1], 4433).into()));
        assert_eq!(parse_listen("[::]:0").map(|address| address.port()), Ok(0));
        assert_eq!(parse_listen("::1").map(|address| address.port()), Ok(4433));
        assert!(parse_listen("here").is_err());
        for text in ["fe80::1%7", "[fe80::1%7]", "[fe80::1%7]:4433"] {
            let found = parse_listen(text).map(|address| address.to_string());
            assert_eq!(found.as_deref(), Ok("[fe80::1%7]:4433"), "{text}");
        }
        // Unambiguous: a port would need brackets.
        let full = parse_listen("2001:db8:0:0:0:0:0:80");
        assert_eq!(full.map(|address| address.port()), Ok(4433));
    }

    #[test]
    fn origins_are_a_scheme_a_host_and_an_optional_port() {
        for text in ["https://a.test", "https://a.test:8443", "https://[::1]"] {
            assert_eq!(parse_origin(text).as_deref(), Ok(text));
        }
        assert_eq!(
            parse_origin("https://A.test").as_deref(),
            Ok("https://a.test")
        );
        for text in [
            "a.test",
            "http://a.test",
            "https://a.test/",
            "https://x@a.test",
            "https://",
        ] {
            let error = parse_origin(text).expect_err(text);
            assert!(error.contains("https://example.org"), "{text}: {error}");
        }
        let error = parse_origin("https://*.a.test").expect_err("a wildcard");
        assert!(error.contains("wildcard"), "{error}");
    }

    #[test]
    fn incomplete_addresses_are_rejected_with_advice() {
        for (text, hint) in [
            ("::1:8443", "use [::1]:8443 or [::1:8443]:4433"),
            ("fe80::5:80", "use [fe80::5]:80 or [fe80::5:80]:4433"),
            (":8443", "use [::]:8443 for all interfaces"),
            ("8443", "127.0.0.1:8443 for this machine only"),
            ("*:8443", "use [::]:8443 for all interfaces"),
            ("localhost:8443", "use an IP address"),
            ("127.0.0.1:99999", "use an IP address"),
        ] {
            let error = parse_listen(text).expect_err(text);
            assert!(error.contains(text) && error.contains(hint), "{error}");
        }
    }

    #[test]
    fn unusable_zones_are_rejected_with_the_reason() {
        for (text, reason) in [
            ("[fe80::1%nowhere]:4433", "no interface 'nowhere'"),
            ("fe80::1%nowhere", "no interface 'nowhere'"),
            ("[2001:db8::1%lo]:4433", "use 2001:db8::1"),
        ] {
            let error = parse_listen(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn versions_of_quic_are_1_and_2() {
        assert_eq!(parse_quic_version("1"), Ok(QuicVersion::V1));
        assert_eq!(parse_quic_version("v2"), Ok(QuicVersion::V2));
        for text in ["", "3", "0x6b3343cf", "v"] {
            let error = parse_quic_version(text).expect_err(text);
            assert!(error.contains("use 1, 2, or 1,2"), "{error}");
        }
    }

    #[test]
    fn packet_sizes_out_of_range_are_rejected() {
        let error = parse_mtu("1199").expect_err("too small");
        assert!(error.contains("1200 and 65507"), "{error}");
        assert!(parse_mtu("70000").is_err());
        assert_eq!(parse_mtu("1452"), Ok(1452));
    }
}
