//! The origins of a certificate, which ORIGIN frames announce (RFC 9412).

use std::net::IpAddr;

/// Returns the origins of the names of a certificate at this port. Returns none if the only name is the one that
/// the client `requested`, which is always in the set (RFC 8336 §2.3).
pub(crate) fn of_names(names: &[String], requested: Option<&str>, port: u16) -> Vec<String> {
    let mut origins: Vec<String> = Vec::new();
    let mut bytes = 0;
    let requested = requested.map(str::to_ascii_lowercase);
    let mut has_others = false;
    for name in names {
        let name = name.to_ascii_lowercase();
        // A wildcard is not an origin, and clients do not request addresses by name (RFC 6066 §3).
        if name.contains('*') || name.parse::<IpAddr>().is_ok() {
            continue;
        }
        let origin = match port {
            443 => format!("https://{name}"),
            port => format!("https://{name}:{port}"),
        };
        bytes += origin.len() + 2;
        if bytes > MAX_BYTES {
            break;
        }
        has_others |= requested.as_deref() != Some(&*name);
        if !origins.contains(&origin) {
            origins.push(origin);
        }
    }
    match has_others {
        true => origins,
        false => Vec::new(),
    }
}

/// Largest payload of the ORIGIN frame in bytes (limit K205), which is what courser's client accepts.
const MAX_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(names: &[&str], requested: Option<&str>, port: u16) -> Vec<String> {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        of_names(&names, requested, port)
    }

    #[test]
    fn names_become_origins_and_wildcards_and_addresses_do_not() {
        let names = ["A.test", "*.a.test", "b.test", "127.0.0.1", "::1", "b.TEST"];
        let at_443 = ["https://a.test", "https://b.test"];
        assert_eq!(origins(&names, Some("a.test"), 443), at_443);
        let at_8443 = ["https://a.test:8443", "https://b.test:8443"];
        assert_eq!(origins(&names, None, 8443), at_8443);
    }

    #[test]
    fn name_that_the_client_requested_is_not_announced() {
        assert!(origins(&["a.test", "*.a.test"], Some("A.test"), 443).is_empty());
        assert!(origins(&["*.a.test"], Some("x.a.test"), 443).is_empty());
        assert!(origins(&[], None, 443).is_empty());
    }

    /// Limit K205.
    #[test]
    fn names_beyond_the_limit_are_not_announced() {
        let names: Vec<_> = (0..1000).map(|number| format!("{number}.test")).collect();
        let origins = of_names(&names, None, 443);
        let bytes: usize = origins.iter().map(|origin| origin.len() + 2).sum();
        assert!(bytes <= MAX_BYTES && bytes > MAX_BYTES - 40, "{bytes}");
        // Each origin takes ten bytes more than its name. The last of 41 fills the frame exactly, or exceeds it
        // by one byte.
        for (last, announced) in [(86, 41), (87, 40)] {
            let mut names: Vec<_> = (100..140)
                .map(|number| format!("{number}{:087}", 0))
                .collect();
            names.push("x".repeat(last));
            assert_eq!(of_names(&names, None, 443).len(), announced, "{last} bytes");
        }
    }
}
