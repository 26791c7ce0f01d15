//! Origins of requests.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use http::Uri;

use super::error::{Error, ErrorKind};

/// Scheme, host and port of a URL (RFC 9110 §4.3.1), to which connections, alternatives and credentials belong.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Origin {
    is_secure: bool,
    host: Box<str>,
    port: u16,
}

impl Origin {
    /// Returns the origin of a URI with the scheme `https` or `http`.
    ///
    /// # Errors
    /// [`ErrorKind::Url`] if a part is missing, [`ErrorKind::Unsupported`] for any other scheme.
    pub fn of(uri: &Uri) -> Result<Self, Error> {
        let is_secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(other) => {
                let text = format!("scheme '{other}' is not supported: use https:// or http://");
                return Err(Error::new(ErrorKind::Unsupported, text));
            }
            None => {
                let text = format!("'{uri}' has no scheme: write https:// before it");
                return Err(Error::new(ErrorKind::Url, text));
            }
        };
        let host = uri.host().unwrap_or_default();
        let address = host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let is_valid = match address {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => !host.contains(['[', ']', ':']),
        };
        // The `http` crate ignores text between the bracket and the port.
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let after = authority
            .rsplit('@')
            .next()
            .and_then(|it| it.strip_prefix(host));
        if !is_valid || !after.is_some_and(|it| it.is_empty() || it.starts_with(':')) {
            let text = format!("'{uri}': brackets may only enclose an IPv6 address");
            return Err(Error::new(ErrorKind::Url, text));
        }
        let host = address.unwrap_or(host);
        if host.is_empty() {
            let text = format!("'{uri}' has no host");
            return Err(Error::new(ErrorKind::Url, text));
        }
        let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        Ok(Self {
            is_secure,
            host: host.to_ascii_lowercase().into(),
            port,
        })
    }

    /// Returns true if the scheme is `https`.
    pub const fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Returns the host in lower case. An IPv6 address has no brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port, including the default port of the scheme.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns the host as an IP address, if it is one.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// Returns `host:port`, in the form of CONNECT.
    pub(super) fn authority(&self) -> String {
        authority(&self.host, self.port)
    }

    #[cfg(test)]
    pub(super) fn https(host: &str, port: u16) -> Self {
        Self {
            is_secure: true,
            host: host.into(),
            port,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority())
    }
}

/// Returns `host:port`, with brackets around an IPv6 address.
pub(super) fn authority(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(uri: &'static str) -> Result<Origin, Error> {
        Origin::of(&Uri::from_static(uri))
    }

    #[test]
    fn ports_of_schemes_are_filled_in() {
        assert_eq!(
            origin("https://Example.org/a").expect("https").to_string(),
            "https://example.org:443"
        );
        assert_eq!(origin("http://a").expect("http").port(), 80);
    }

    #[test]
    fn brackets_of_addresses_are_removed_and_restored() {
        let origin = origin("https://[::1]:4433/").expect("an address");
        assert_eq!(origin.host(), "::1");
        assert_eq!(origin.ip(), Some(IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])));
        assert_eq!(origin.to_string(), "https://[::1]:4433");
    }

    /// The `http` crate accepts such a URI with the host `o[`.
    #[test]
    fn brackets_around_other_text_are_refused() {
        for uri in ["https://o[::1]/", "https://[o]/", "https://[::1]o/"] {
            let Ok(uri) = uri.parse::<Uri>() else {
                continue;
            };
            let error = Origin::of(&uri).expect_err("no address");
            assert_eq!(error.kind(), ErrorKind::Url, "{uri}");
        }
        assert!("https://o[::1]/".parse::<Uri>().is_ok());
    }

    #[test]
    fn error_gives_the_reason_why_a_uri_is_refused() {
        let error = origin("ftp://a/").expect_err("no FTP");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let error = origin("/path").expect_err("no host");
        assert!(error.to_string().contains("https://"), "{error}");
    }
}
