//! Resolution through the system, and through DNS servers for HTTPS records.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
#[cfg(feature = "dns")]
use std::sync::OnceLock;

use courser_base::ScopedIp;

#[cfg(feature = "dns")]
use super::{DnsResolver, ServiceRecord};
use super::{Resolve, Resolving};

/// Resolves addresses through the system, which respects `/etc/hosts`, VPNs and local names. With the feature
/// `dns` it also queries the system's DNS servers for HTTPS records.
#[derive(Debug, Default)]
pub struct SystemResolver {
    /// Created on first use; `None` if the system has no DNS configuration.
    #[cfg(feature = "dns")]
    dns: OnceLock<Option<DnsResolver>>,
}

impl SystemResolver {
    /// Creates the default resolver of clients.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Resolve for SystemResolver {
    fn addresses(&self, host: &str) -> Resolving<Vec<ScopedIp>> {
        let host = host.to_owned();
        Box::pin(async move {
            let found = match tokio::net::lookup_host((host.as_str(), 0)).await {
                // RFC 6761 §6.3: `localhost` and names below it are loopback. Containers may lack `/etc/hosts`,
                // and few systems resolve the names below it.
                Err(_) if is_local(&host) => return Ok(loopback()),
                found => found?,
            };
            let mut addresses: Vec<ScopedIp> = Vec::new();
            for address in found.map(ScopedIp::of) {
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
            if addresses.is_empty() {
                let text = format!("{host} has no address");
                return Err(io::Error::new(io::ErrorKind::NotFound, text));
            }
            Ok(addresses)
        })
    }

    #[cfg(feature = "dns")]
    fn services(&self, host: &str, port: u16) -> Resolving<Vec<ServiceRecord>> {
        let dns = self.dns.get_or_init(|| DnsResolver::system().ok());
        match dns {
            // RFC 6761 §6.3: DNS servers have no records for `localhost`.
            Some(dns) if !is_local(host) => dns.services(host, port),
            _ => Box::pin(async { Ok(Vec::new()) }),
        }
    }
}

fn loopback() -> Vec<ScopedIp> {
    vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()]
}

fn is_local(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_below_localhost_are_this_machine() {
        for host in ["localhost", "app.localhost", "App.LocalHost."] {
            let found = SystemResolver::new().addresses(host).await;
            let addresses = found.expect(host);
            assert!(
                !addresses.is_empty() && addresses.iter().all(|it| it.ip().is_loopback()),
                "{host}: {addresses:?}"
            );
        }
        assert!(!is_local("localhost.example") && !is_local("notlocalhost"));
    }
}
