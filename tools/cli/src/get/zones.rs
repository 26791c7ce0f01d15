//! Zones of link-local addresses in URLs (RFC 6874).
//!
//! A zone has a meaning on this machine only, so that requests and certificates do not contain it. It is removed
//! from the URLs before they are parsed, and passed to the client separately.

use std::collections::BTreeMap;

use courser::client::{ClientBuilder, ScopedIp};
use courser_measure::target::{split_zone, without_zone};

use super::exit::{Failed, URL_MALFORMED};

/// The addresses with zones in URLs, by the host without its zone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Zones(BTreeMap<String, ScopedIp>);

impl Zones {
    /// Removes and stores the zone of a URL.
    pub(super) fn take_from(&mut self, url: String) -> Result<String, Failed> {
        let Some((plain, host)) = split_zone(&url) else {
            return Ok(url);
        };
        let failed = |reason: String| Failed::new(URL_MALFORMED, format!("'{url}': {reason}"));
        let ip =
            courser_measure::target::parse_ip(&host).map_err(|error| failed(error.to_string()))?;
        // As the URL is normalized later.
        let name = ip.ip().to_string();
        let known = self.0.insert(name, ip);
        if let Some(known) = known.filter(|known| *known != ip) {
            let host = without_zone(&host);
            return Err(failed(format!(
                "{host} is in another zone in an earlier URL ({known}): use a separate command for each zone"
            )));
        }
        Ok(plain)
    }

    /// Configures the client to connect in these zones on all ports, so that redirects stay in the zone.
    pub(super) fn apply(&self, builder: ClientBuilder) -> ClientBuilder {
        let all = self.0.iter();
        all.fold(builder, |builder, (host, ip)| {
            builder.resolve(host, 0, [*ip])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_removed_from_urls_and_passed_to_the_client() {
        let mut zones = Zones::default();
        let mut take = |url: &str| zones.take_from(url.to_owned());
        assert_eq!(
            take("https://[FE80::1%252]:1/a").as_deref(),
            Ok("https://[FE80::1]:1/a")
        );
        assert_eq!(take("[fe80::1%252]/b").as_deref(), Ok("[fe80::1]/b"));
        assert_eq!(
            take("http://a.test/%25").as_deref(),
            Ok("http://a.test/%25")
        );
        let ip = "[fe80::1%2]:0"
            .parse()
            .map(ScopedIp::of)
            .expect("an address");
        assert_eq!(zones.0, BTreeMap::from([("fe80::1".to_owned(), ip)]));
    }

    #[test]
    fn two_zones_of_an_address_are_refused() {
        let mut zones = Zones::default();
        let mut take = |url: &str| zones.take_from(url.to_owned());
        take("https://[fe80::1%252]/").expect("the first");
        let error = take("https://[fe80::1%253]/").expect_err("another");
        assert_eq!(error.code, URL_MALFORMED);
        assert!(error.to_string().contains("fe80::1%2"), "{error}");
        let error = take("https://[fe80::1%25nowhere]/").expect_err("no interface");
        assert!(
            error.to_string().contains("no interface 'nowhere'"),
            "{error}"
        );
    }
}
