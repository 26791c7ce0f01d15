//! Opens the tunnel of a configuration.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use courser::TransportConfig;
use courser::masque::{self, IpClient, IpRequest, IpTunnel, Prefix};
use courser_measure::tls;
use tokio::time::timeout;

use crate::config::Config;
use crate::failure::Failure;
use crate::system::MAX_PROXIES;

/// An open tunnel, with what it needs to stay open.
pub(crate) struct Link {
    pub(crate) tunnel: IpTunnel,
    /// The address of the proxy.
    pub(crate) proxy: SocketAddr,
    _client: IpClient,
}

impl Link {
    /// Opens a tunnel through the first address that answers, and waits until the proxy has configured it. `previous` are
    /// the addresses that connections of the system have.
    pub(crate) async fn open(
        config: &Config,
        addresses: &[SocketAddr],
        previous: &[Prefix],
    ) -> Result<Self, Failure> {
        let mut last = Failure::Setting("the name of the proxy has no address".to_owned());
        let count = addresses.len().max(1) as u32;
        for address in addresses {
            let limit = (config.timeout / count).max(LEAST_TIME);
            let late = || {
                let seconds = limit.as_secs_f64();
                Failure::Late(format!(
                    "no tunnel from the proxy at {address} within {seconds:.0} s: does a proxy run there, and does a \
                     firewall let UDP through?"
                ))
            };
            let opened = timeout(limit, Self::open_at(config, *address, previous)).await;
            match opened.unwrap_or_else(|_| Err(late())) {
                Ok(link) => return Ok(link),
                // Other addresses are those of the same proxy.
                Err(failure) if failure.is_final() => return Err(failure),
                Err(failure) => last = failure,
            }
        }
        Err(last)
    }

    async fn open_at(
        config: &Config,
        proxy: SocketAddr,
        previous: &[Prefix],
    ) -> Result<Self, Failure> {
        let setting = |error: &dyn std::fmt::Display| Failure::Setting(error.to_string());
        let tls = tls::client(&config.trust, b"h3").map_err(|error| setting(&error))?;
        let mut builder = IpClient::builder(&config.template)
            .map_err(|error| setting(&error))?
            .tls(Arc::new(tls))
            .transport_config(transport())
            .address(proxy);
        for (name, value) in &config.headers {
            builder = builder.header(name, value)?;
        }
        let client = builder.connect().await?;
        let tunnel = client.open(request(previous)).await?;
        tunnel.configured().await.map_err(Failure::Ended)?;
        Ok(Self {
            tunnel,
            proxy,
            _client: client,
        })
    }
}

/// Returns a request for the previous addresses, and for one of each version of IP that has none.
fn request(previous: &[Prefix]) -> IpRequest {
    let has = |is_ipv4| previous.iter().any(|it| it.is_ipv4() == is_ipv4);
    let new = [Prefix::NEW_IPV4, Prefix::NEW_IPV6];
    let new = new.into_iter().filter(|it| !has(it.is_ipv4()));
    IpRequest::default().addresses(previous.iter().copied().chain(new))
}

/// Returns the addresses of the proxy.
pub(crate) async fn resolve(config: &Config) -> Result<Vec<SocketAddr>, Failure> {
    let (host, port) = authority(&config.template)?;
    let unresolved = |reason: String| {
        Failure::Late(format!(
            "cannot find the proxy {host}: {reason}; is the name right, and does this machine reach a name server?"
        ))
    };
    let found = timeout(config.timeout, tokio::net::lookup_host((host, port))).await;
    let found = found.map_err(|_| unresolved("no answer in time".to_owned()))?;
    let found = found.map_err(|error| unresolved(error.to_string()))?;
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) && addresses.len() < MAX_PROXIES {
            addresses.push(address);
        }
    }
    match addresses.is_empty() {
        true => Err(unresolved("it has no address".to_owned())),
        false => Ok(addresses),
    }
}

/// Returns the host and port of a template.
fn authority(template: &str) -> Result<(&str, u16), Failure> {
    let rest = template.strip_prefix("https://").unwrap_or(template);
    let authority = rest.split(['/', '{', '?']).next().unwrap_or(rest);
    let wrong = || Failure::Setting(format!("'{authority}' is no HOST[:PORT]"));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().map_err(|_| wrong())?),
        _ => (authority, 443),
    };
    let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    match host.is_empty() || (bare.is_none() && host.contains(':')) {
        true => Err(wrong()),
        false => Ok((bare.unwrap_or(host), port)),
    }
}

/// Returns the parameters of the connection to the proxy, which lives as long as the tunnel. Both ends need the queues.
pub(crate) fn transport() -> TransportConfig {
    masque::ip_transport_config(TransportConfig::default())
}

/// Least time for an address of several.
const LEAST_TIME: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_have_hosts_and_ports() {
        for (template, host, port) in [
            ("https://proxy.example/x", "proxy.example", 443),
            ("https://proxy.example:4433/x", "proxy.example", 4433),
            ("https://[2001:db8::1]/x", "2001:db8::1", 443),
            ("https://[2001:db8::1]:8443{?target}", "2001:db8::1", 8443),
        ] {
            assert_eq!(authority(template).expect(template), (host, port));
        }
        for template in [
            "https:///x",
            "https://a:b/x",
            "https://2001:db8::1/x",
            "https://a:70000/",
        ] {
            assert!(authority(template).is_err(), "{template}");
        }
    }
}
