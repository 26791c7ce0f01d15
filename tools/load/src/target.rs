//! Finds the server that a run loads.

use std::net::SocketAddr;

use courser_measure::target::{resolve, split_target};
use courser_measure::{Failure, Peer};
use http::Uri;

/// The server that a run loads.
#[derive(Clone, Debug)]
pub struct Target {
    /// The first URL, for messages.
    pub url: String,
    /// The addresses of the server in order of preference; at least one.
    pub addresses: Vec<SocketAddr>,
    /// The server name in the TLS handshake, which the certificate must contain.
    pub server_name: String,
}

impl Target {
    /// Finds the server of absolute URLs.
    ///
    /// `connect_to` names another host to connect to, as `HOST[:PORT]` like h2load, or as
    /// `host:port:to-host:to-port` like oha. Without a port, the port of the URL is used.
    ///
    /// # Errors
    /// Returns an error if no URL was given, the URLs have different servers, `connect_to` is not a host and port,
    /// or the name cannot be resolved.
    pub fn of(urls: &[Uri], connect_to: Option<&str>) -> Result<Self, Failure> {
        let first = urls
            .first()
            .ok_or_else(|| Failure::new("no URL was given"))?;
        if let Some(other) = urls.iter().find(|url| origin(url) != origin(first)) {
            return Err(Failure::new(format!(
                "'{other}' and '{first}' have different servers: load one server at a time"
            )));
        }
        let (host, port) = host_and_port(first);
        let (to_host, to_port) = match connect_to {
            Some(text) => parse_connect_to(text, &host, port)?,
            None => (host.as_str(), port),
        };
        Ok(Self {
            url: first.to_string(),
            addresses: resolve(to_host, to_port)?,
            server_name: host,
        })
    }

    /// Returns the server at one of its addresses, for messages.
    pub(crate) fn peer(&self, address: SocketAddr) -> Peer<'_> {
        Peer {
            address,
            name: &self.server_name,
        }
    }
}

/// Returns true for URLs of HTTP over TLS or QUIC.
fn is_secure(url: &Uri) -> bool {
    url.scheme_str() == Some("https")
}

fn host_and_port(url: &Uri) -> (String, u16) {
    let host = url.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let default = if is_secure(url) { 443 } else { 80 };
    (host.to_owned(), url.port_u16().unwrap_or(default))
}

fn origin(url: &Uri) -> (bool, String, u16) {
    let (host, port) = host_and_port(url);
    (is_secure(url), host.to_ascii_lowercase(), port)
}

/// Parses the host and port to connect to instead of those of the URL.
fn parse_connect_to<'a>(text: &'a str, host: &str, port: u16) -> Result<(&'a str, u16), Failure> {
    let prefix = format!("{host}:{port}:");
    let bracketed = format!("[{host}]:{port}:");
    let rest = text
        .strip_prefix(&prefix)
        .or_else(|| text.strip_prefix(&bracketed))
        .unwrap_or(text);
    split_target(rest, port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connect_to_is_parsed_in_the_formats_of_both_tools() {
        let read = |text: &'static str| parse_connect_to(text, "example.org", 443).expect(text);
        assert_eq!(read("127.0.0.1:8443"), ("127.0.0.1", 8443));
        assert_eq!(read("127.0.0.1"), ("127.0.0.1", 443));
        assert_eq!(read("[::1]"), ("::1", 443));
        assert_eq!(read("[::1]:1"), ("::1", 1));
        assert_eq!(read("::1"), ("::1", 443));
        assert_eq!(read("example.org:443:localhost:5000"), ("localhost", 5000));
        assert!(parse_connect_to("x:y", "example.org", 443).is_err());
    }

    #[test]
    fn urls_with_different_servers_are_refused() {
        let target = |urls: &[&'static str]| {
            let urls: Vec<Uri> = urls.iter().map(|url| Uri::from_static(url)).collect();
            Target::of(&urls, Some("127.0.0.1"))
        };
        let one = ["http://A.test/x", "http://a.test:80/y"];
        let found = target(&one).expect("the same server");
        assert_eq!(found.addresses, [([127, 0, 0, 1], 80).into()]);
        for other in ["http://b.test/", "http://a.test:81/", "https://a.test:80/"] {
            assert!(target(&["http://a.test/", other]).is_err(), "{other}");
        }
        assert!(target(&[]).is_err());
    }
}
