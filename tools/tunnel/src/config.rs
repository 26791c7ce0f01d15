//! The settings of a tunnel.

use std::net::IpAddr;
use std::time::Duration;

use courser::masque::Prefix;
use courser_measure::tls::Trust;

use crate::failure::Failure;

/// The settings of a tunnel.
#[derive(Clone, Debug)]
pub struct Config {
    /// The URI template of the proxy, from [`template`].
    pub template: String,
    /// The certificates that are trusted.
    pub trust: Trust,
    /// Fields of the request, such as `proxy-authorization`.
    pub headers: Vec<(String, String)>,
    /// The name of the interface. The system chooses one if it is `None`.
    pub name: Option<String>,
    /// What goes through the tunnel.
    pub wishes: Wishes,
    /// Time limit for connecting.
    pub timeout: Duration,
}

/// What goes through a tunnel.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// Destinations. With none, those that the proxy offers, except for everything.
    pub routes: Vec<Prefix>,
    /// All destinations that have no other route.
    pub default_route: bool,
    /// Name servers, which replace those of the system.
    pub dns: Vec<IpAddr>,
    /// The MTU of the interface in bytes, instead of what the tunnel carries.
    pub mtu: Option<u16>,
}

/// Returns the URI template of a proxy: a template, a URL to its well-known path, or its host and port.
///
/// # Errors
/// Returns an error if the text is none of them.
///
/// ```
/// let all = "/.well-known/masque/ip/{target}/{ipproto}/";
/// for text in ["proxy.example:4433", "https://proxy.example:4433", "https://proxy.example:4433/"] {
///     let found = courser_tunnel::template(text)?;
///     assert_eq!(found, format!("https://proxy.example:4433{all}"));
/// }
/// let own = "https://proxy.example/vpn{?target,ipproto}";
/// assert_eq!(courser_tunnel::template(own)?, own);
/// # Ok::<(), courser_tunnel::Failure>(())
/// ```
pub fn template(text: &str) -> Result<String, Failure> {
    let authority = text.strip_prefix("https://").unwrap_or(text);
    if authority.contains("://") {
        let text = format!("'{text}' is no https URL: tunnels are encrypted always");
        return Err(Failure::Setting(text));
    }
    let authority = authority.strip_suffix('/').unwrap_or(authority);
    if authority.is_empty() {
        let text = "the proxy is empty: use HOST[:PORT], such as proxy.example:443".to_owned();
        return Err(Failure::Setting(text));
    }
    match authority.contains('/') || authority.contains('{') {
        true if text.starts_with("https://") => Ok(text.to_owned()),
        true => Err(Failure::Setting(format!(
            "'{text}' is no proxy: use HOST[:PORT], or a template that begins with https://"
        ))),
        false => Ok(format!("https://{authority}{WELL_KNOWN}")),
    }
}

/// The path of proxies without another one (RFC 9484 §3).
const WELL_KNOWN: &str = "/.well-known/masque/ip/{target}/{ipproto}/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_no_proxies_are_refused() {
        for text in [
            "",
            "https://",
            "http://proxy.example",
            "masque://a",
            "a/b",
            "a{target}",
        ] {
            let error = template(text).expect_err(text);
            assert!(error.is_final(), "{error}");
        }
    }
}
