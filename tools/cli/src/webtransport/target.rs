//! The URL of a session, and the addresses of its server.

use courser_measure::target::{resolve, split_target, split_zone, without_zone};
use http::Uri;
use url::Url;

use crate::get::exit::{Failed, NO_NAME, UNSUPPORTED_PROTOCOL, URL_MALFORMED};

/// The resource of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Target {
    pub(super) uri: Uri,
    /// The host without brackets and zone, which the certificate must have.
    pub(super) name: String,
    pub(super) addresses: Vec<std::net::SocketAddr>,
}

impl Target {
    /// Parses a URL, whose scheme may be missing, and resolves its host.
    pub(super) fn find(text: &str) -> Result<Self, Failed> {
        let (uri, host, port) = parse(text)?;
        let no_name = |error: courser_measure::Failure| Failed::new(NO_NAME, error.to_string());
        let addresses = resolve(&host, port).map_err(no_name)?;
        Ok(Self {
            uri,
            name: without_zone(&host).to_owned(),
            addresses,
        })
    }
}

/// Returns the URI, the host with its zone, and the port.
fn parse(text: &str) -> Result<(Uri, String, u16), Failed> {
    let wrong = |why: &dyn std::fmt::Display| {
        Failed::new(URL_MALFORMED, format!("'{text}' is not a URL: {why}"))
    };
    let whole = match text.contains("://") {
        true => text.to_owned(),
        false => format!("https://{text}"),
    };
    // A zone has a meaning on this machine only.
    let (plain, zoned) = match split_zone(&whole) {
        Some((plain, host)) => (plain, Some(host)),
        None => (whole, None),
    };
    let url = Url::parse(&plain).map_err(|error| wrong(&error))?;
    if url.scheme() != "https" {
        let scheme = url.scheme();
        let text = format!("scheme '{scheme}' has no sessions of WebTransport: use https://");
        return Err(Failed::new(UNSUPPORTED_PROTOCOL, text));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong(
            &"credentials are not sent: use --header 'authorization: ...'",
        ));
    }
    if url.fragment().is_some() {
        return Err(wrong(&"sessions have no fragment: remove '#' and the rest"));
    }
    let authority = url.authority().to_owned();
    let (host, port) = split_target(&authority, 443).map_err(|error| wrong(&error))?;
    let host = zoned.unwrap_or_else(|| host.to_owned());
    let uri = url.as_str().parse().map_err(|error| wrong(&error))?;
    Ok((uri, host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed_with_defaults() {
        for (text, uri, host, port) in [
            ("a.test", "https://a.test/", "a.test", 443),
            (
                "https://a.test:8443/x?y",
                "https://a.test:8443/x?y",
                "a.test",
                8443,
            ),
            ("[::1]:4433/a b", "https://[::1]:4433/a%20b", "::1", 4433),
        ] {
            let expected = (uri.parse().expect("a URI"), host.to_owned(), port);
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_schemes_credentials_and_fragments_are_refused() {
        for (text, code, part) in [
            ("http://a.test", UNSUPPORTED_PROTOCOL, "use https://"),
            ("wss://a.test", UNSUPPORTED_PROTOCOL, "use https://"),
            ("https://u:p@a.test", URL_MALFORMED, "--header"),
            ("https://a.test/#x", URL_MALFORMED, "fragment"),
            ("https://", URL_MALFORMED, "not a URL"),
        ] {
            let failed = parse(text).expect_err(text);
            assert_eq!(failed.code, code, "{text}");
            assert!(failed.text.contains(part), "{}", failed.text);
        }
    }
}
