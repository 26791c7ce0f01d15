//! HTTPS records (RFC 9460).

use std::net::IpAddr;

#[cfg(feature = "dns")]
use hickory_resolver::proto::rr::rdata::SVCB;
#[cfg(feature = "dns")]
use hickory_resolver::proto::rr::rdata::svcb::{SvcParamKey, SvcParamValue};

/// An HTTPS record of an origin in service mode.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ServiceRecord {
    /// The priority; lower values are preferred.
    pub priority: u16,
    /// The host to connect to, or `None` for the host of the origin.
    pub target: Option<String>,
    /// The port to connect to, or `None` for the port of the origin.
    pub port: Option<u16>,
    /// The ALPN names of the supported protocols; HTTP/1.1 is implied.
    pub alpn: Vec<String>,
    /// Addresses to use until those of the target are resolved.
    pub hints: Vec<IpAddr>,
}

impl ServiceRecord {
    /// Returns true if the server offers HTTP/3 (ALPN `h3`).
    pub fn offers_http3(&self) -> bool {
        self.alpn.iter().any(|name| name == "h3")
    }

    /// Converts a record. Returns `None` if it must be ignored because it requires an unsupported parameter (RFC
    /// 9460 §8).
    #[cfg(feature = "dns")]
    pub(super) fn read(record: &SVCB) -> Option<Self> {
        let target = record.target_name.to_ascii();
        let target = target.trim_end_matches('.').to_ascii_lowercase();
        let mut read = Self {
            priority: record.svc_priority,
            target: (!target.is_empty()).then_some(target),
            ..Self::default()
        };
        for (_, value) in &record.svc_params {
            match value {
                SvcParamValue::Mandatory(keys) if !keys.0.iter().all(is_supported) => return None,
                SvcParamValue::Alpn(names) => read.alpn.clone_from(&names.0),
                SvcParamValue::Port(port) => read.port = Some(*port),
                SvcParamValue::Ipv4Hint(hints) => {
                    read.hints
                        .extend(hints.0.iter().map(|hint| IpAddr::V4(hint.0)));
                }
                SvcParamValue::Ipv6Hint(hints) => {
                    // IPv6 is preferred.
                    let hints = hints.0.iter().map(|hint| IpAddr::V6(hint.0));
                    read.hints.splice(0..0, hints);
                }
                _ => {}
            }
        }
        read.hints.truncate(MAX_HINTS);
        Some(read)
    }
}

#[cfg(feature = "dns")]
const fn is_supported(key: &SvcParamKey) -> bool {
    matches!(
        key,
        SvcParamKey::Alpn
            | SvcParamKey::NoDefaultAlpn
            | SvcParamKey::Port
            | SvcParamKey::Ipv4Hint
            | SvcParamKey::Ipv6Hint
    )
}

/// Largest number of address hints; the race tries fewer addresses.
#[cfg(feature = "dns")]
const MAX_HINTS: usize = 16;

#[cfg(all(test, feature = "dns"))]
mod tests {
    use hickory_resolver::proto::rr::Name;
    use hickory_resolver::proto::rr::rdata::svcb::{Alpn, IpHint, Mandatory};

    use super::*;

    fn record(target: &str, params: Vec<(SvcParamKey, SvcParamValue)>) -> SVCB {
        SVCB::new(1, Name::from_ascii(target).expect("a name"), params)
    }

    #[test]
    fn all_parameters_are_read() {
        let names = vec!["h2".to_owned(), "h3".to_owned()];
        let read = ServiceRecord::read(&record(
            "Svc.Example.",
            vec![
                (SvcParamKey::Alpn, SvcParamValue::Alpn(Alpn(names.clone()))),
                (SvcParamKey::Port, SvcParamValue::Port(8443)),
                (
                    SvcParamKey::Ipv4Hint,
                    SvcParamValue::Ipv4Hint(IpHint(vec![
                        std::net::Ipv4Addr::new(192, 0, 2, 1).into(),
                    ])),
                ),
                (
                    SvcParamKey::Ipv6Hint,
                    SvcParamValue::Ipv6Hint(IpHint(vec![std::net::Ipv6Addr::LOCALHOST.into()])),
                ),
            ],
        ))
        .expect("a valid record");
        assert_eq!(read.target.as_deref(), Some("svc.example"));
        assert_eq!((read.priority, read.port), (1, Some(8443)));
        assert_eq!(read.alpn, names);
        assert!(read.offers_http3());
        let hints: [IpAddr; 2] = ["::1", "192.0.2.1"].map(|hint| hint.parse().expect("an address"));
        assert_eq!(read.hints, hints);
    }

    #[test]
    fn root_as_target_is_the_origin_itself() {
        let read = ServiceRecord::read(&record(".", Vec::new())).expect("a valid record");
        assert_eq!(read.target, None);
        assert!(!read.offers_http3());
    }

    #[test]
    fn record_with_an_unknown_mandatory_parameter_is_ignored() {
        let mandatory = |key| {
            let value = SvcParamValue::Mandatory(Mandatory(vec![key]));
            ServiceRecord::read(&record(".", vec![(SvcParamKey::Mandatory, value)]))
        };
        assert!(mandatory(SvcParamKey::Port).is_some());
        assert!(mandatory(SvcParamKey::EchConfigList).is_none());
        assert!(mandatory(SvcParamKey::Unknown(9)).is_none());
    }
}
