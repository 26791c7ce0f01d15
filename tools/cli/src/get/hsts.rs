//! `--hsts`: hosts that require https (RFC 6797), in a file in curl's format.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use courser_base::Mutex;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Uri, header};

use super::date;
use super::exit::{Failed, READ_ERROR, WRITE_ERROR};

/// The known hosts, and the file that stores them.
#[derive(Debug)]
pub(super) struct Hsts {
    path: PathBuf,
    hosts: Mutex<Hosts>,
}

#[derive(Clone, Default, Debug, PartialEq, Eq)]
struct Hosts(BTreeMap<String, Policy>);

/// The policy of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Policy {
    /// The end in seconds since 1970.
    expires: i64,
    includes_below: bool,
}

impl Hsts {
    /// Reads a file, which need not exist.
    pub(super) fn load(path: &Path) -> Result<Self, Failed> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => {
                let text = format!("cannot read {}: {error}", path.display());
                return Err(Failed::new(READ_ERROR, text));
            }
        };
        Ok(Self {
            path: path.to_owned(),
            hosts: Mutex::new(Hosts::read(&text, now())),
        })
    }

    /// Changes an http URI of a known host to https. Returns true if it did.
    pub(super) fn upgrade(&self, uri: &mut Uri) -> bool {
        let is_known = uri.scheme() == Some(&Scheme::HTTP)
            && uri
                .host()
                .is_some_and(|host| self.hosts.lock().is_known(host, now()));
        match secure(uri).filter(|_| is_known) {
            Some(upgraded) => {
                *uri = upgraded;
                true
            }
            None => false,
        }
    }

    /// Stores the policy in a response over https whose certificate was verified.
    pub(super) fn on_response(&self, uri: &Uri, headers: &HeaderMap) {
        let is_secure = uri.scheme() == Some(&Scheme::HTTPS);
        // RFC 6797 §8.1: only the first field counts.
        let field = headers.get(header::STRICT_TRANSPORT_SECURITY);
        if let (true, Some(field), Some(host)) = (is_secure, field, uri.host())
            && let Ok(field) = field.to_str()
        {
            self.hosts.lock().on_field(host, field, now());
        }
    }

    /// Writes the file.
    pub(super) fn save(&self) -> Result<(), Failed> {
        let text = self.hosts.lock().write(now());
        courser_base::replace_file(&self.path, text.as_bytes()).map_err(|error| {
            let text = format!("cannot write {}: {error}", self.path.display());
            Failed::new(WRITE_ERROR, text)
        })
    }
}

impl Hosts {
    /// Parses lines such as `.example.org "20300131 10:00:00"`. A dot at the start includes names below.
    fn read(text: &str, now: i64) -> Self {
        let mut hosts = Self::default();
        for line in text.lines().map(str::trim) {
            let Some((host, rest)) = line.split_once(' ') else {
                continue;
            };
            let expires = match rest.trim().trim_matches('"') {
                "unlimited" => Some(i64::MAX),
                time => date::of_user(time),
            };
            let Some(expires) = expires.filter(|expires| *expires > now && !line.starts_with('#'))
            else {
                continue;
            };
            let policy = Policy {
                expires,
                includes_below: host.starts_with('.'),
            };
            hosts.insert(host.trim_start_matches('.'), policy);
        }
        hosts
    }

    fn write(&self, now: i64) -> String {
        let mut text = String::from(HEADER);
        for (host, policy) in self.0.iter().filter(|(_, policy)| policy.expires > now) {
            let dot = if policy.includes_below { "." } else { "" };
            let time = match policy.expires {
                i64::MAX => "unlimited".to_owned(),
                expires => date::compact(expires),
            };
            let _ = writeln!(text, "{dot}{host} \"{time}\"");
        }
        text
    }

    fn insert(&mut self, host: &str, policy: Policy) {
        let is_new = !self.0.contains_key(host);
        if is_new && self.0.len() >= MAX_HOSTS {
            // A server with many names must not displace the others for long.
            let soonest = self.0.iter().min_by_key(|(_, policy)| policy.expires);
            if let Some(host) = soonest.map(|(host, _)| host.clone()) {
                self.0.remove(&host);
            }
        }
        self.0.insert(host.to_ascii_lowercase(), policy);
    }

    /// Returns true for a known host, and for a name below one that includes them (RFC 6797 §8.2).
    fn is_known(&self, host: &str, now: i64) -> bool {
        if is_address(host) {
            return false;
        }
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let mut name = host.as_str();
        loop {
            let policy = self.0.get(name).filter(|policy| policy.expires > now);
            if policy.is_some_and(|policy| policy.includes_below || name == host) {
                return true;
            }
            match name.split_once('.') {
                Some((_, above)) => name = above,
                None => return false,
            }
        }
    }

    /// Processes a Strict-Transport-Security field (RFC 6797 §6.1).
    fn on_field(&mut self, host: &str, field: &str, now: i64) {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        // RFC 6797 §8.1.1: an address is not a known host.
        if is_address(&host) {
            return;
        }
        let Some((max_age, includes_below)) = directives(field) else {
            return;
        };
        if max_age == 0 {
            self.0.remove(&host);
            return;
        }
        let expires = now.saturating_add(max_age.min(MAX_AGE));
        let policy = Policy {
            expires,
            includes_below,
        };
        self.insert(&host, policy);
    }
}

/// Returns the lifetime and whether names below are included; `None` for an invalid field.
fn directives(field: &str) -> Option<(i64, bool)> {
    let (mut max_age, mut includes_below) = (None, false);
    let mut seen: Vec<String> = Vec::new();
    for directive in field.split(';').map(str::trim) {
        if directive.is_empty() {
            continue;
        }
        let (name, value) = match directive.split_once('=') {
            Some((name, value)) => (name.trim_end(), Some(value.trim_start())),
            None => (directive, None),
        };
        let name = name.to_ascii_lowercase();
        if seen.contains(&name) {
            return None;
        }
        match name.as_str() {
            "max-age" => {
                let value = value?;
                let quoted = value.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
                let digits = quoted.unwrap_or(value);
                if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return None;
                }
                max_age = Some(digits.parse().unwrap_or(MAX_AGE));
            }
            "includesubdomains" => {
                if value.is_some() {
                    return None;
                }
                includes_below = true;
            }
            _ => {}
        }
        seen.push(name);
    }
    Some((max_age?, includes_below))
}

/// Returns the https form of a URI. Port 80 becomes the default port, and others stay (RFC 6797 §8.3).
fn secure(uri: &Uri) -> Option<Uri> {
    let host = uri.host()?;
    let authority = match uri.port_u16() {
        None | Some(80) => host.to_owned(),
        Some(port) => format!("{host}:{port}"),
    };
    let mut parts = uri.clone().into_parts();
    parts.scheme = Some(Scheme::HTTPS);
    parts.authority = Some(authority.parse::<Authority>().ok()?);
    let root = || PathAndQuery::from_static("/");
    parts.path_and_query.get_or_insert_with(root);
    Uri::from_parts(parts).ok()
}

fn is_address(host: &str) -> bool {
    host.starts_with('[') || host.parse::<IpAddr>().is_ok()
}

fn now() -> i64 {
    date::seconds(SystemTime::now())
}

/// The longest lifetime that is stored: a hundred years.
const MAX_AGE: i64 = 100 * 365 * 86_400;
/// The largest number of hosts (limit K380).
const MAX_HOSTS: usize = 5000;
const HEADER: &str = "\
# Your HSTS cache. https://curl.se/docs/hsts.html
# This file was generated by courser! Edit at your own risk.
";

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000;

    fn with(host: &str, field: &str) -> Hosts {
        let mut hosts = Hosts::default();
        hosts.on_field(host, field, NOW);
        hosts
    }

    #[test]
    fn valid_fields_are_noted() {
        for field in [
            "max-age=100",
            "Max-Age = \"100\" ; unknown=x;",
            ";;max-age=100; includeSubDomains",
            "preload; MAX-AGE=100",
            "max-age=99999999999999999999999",
        ] {
            assert!(with("a.test", field).is_known("A.test.", NOW), "{field}");
        }
        for field in [
            "",
            "max-age",
            "max-age=",
            "max-age=-1",
            "max-age=1; max-age=1",
            "includeSubDomains",
            "max-age=1; includeSubDomains=x",
        ] {
            assert_eq!(with("a.test", field), Hosts::default(), "{field}");
        }
    }

    #[test]
    fn names_below_are_included_on_request() {
        let hosts = with("a.test", "max-age=100; includeSubDomains");
        assert!(hosts.is_known("x.y.a.test", NOW) && !hosts.is_known("ba.test", NOW));
        let hosts = with("a.test", "max-age=100");
        assert!(!hosts.is_known("x.a.test", NOW));
        assert!(!hosts.is_known("a.test", NOW + 100));
    }

    #[test]
    fn hosts_are_forgotten_and_addresses_never_known() {
        let mut hosts = with("a.test", "max-age=100");
        hosts.on_field("a.test", "max-age=0", NOW);
        assert_eq!(hosts, Hosts::default());
        for address in ["127.0.0.1", "[::1]"] {
            assert_eq!(with(address, "max-age=100"), Hosts::default());
        }
        // A file may contain anything.
        let file = Hosts::read("127.0.0.1 \"unlimited\"", NOW);
        assert!(!file.is_known("127.0.0.1", NOW));
    }

    #[test]
    fn uris_keep_ports_other_than_80() {
        for (uri, expected) in [
            ("http://a.test/x?y", "https://a.test/x?y"),
            ("http://a.test:80/", "https://a.test/"),
            ("http://a.test:8080/", "https://a.test:8080/"),
        ] {
            let uri: Uri = uri.parse().expect("a URI");
            assert_eq!(secure(&uri).expect("a URI"), expected);
        }
    }

    #[test]
    fn files_have_the_format_of_curl() {
        let text = "# comment\n.a.test \"20300131 10:00:00\"\nb.test \"unlimited\"\n\
                    old.test \"20000101 00:00:00\"\nbroken\n";
        let hosts = Hosts::read(text, NOW);
        assert!(hosts.is_known("x.a.test", NOW) && hosts.is_known("b.test", NOW));
        assert!(!hosts.is_known("old.test", NOW));
        let written = hosts.write(NOW);
        assert_eq!(
            written.strip_prefix(HEADER),
            Some(".a.test \"20300131 10:00:00\"\nb.test \"unlimited\"\n")
        );
        assert_eq!(Hosts::read(&written, NOW), hosts);
    }

    #[test]
    fn number_of_hosts_is_bounded() {
        let mut hosts = Hosts::default();
        for number in 0..MAX_HOSTS + 10 {
            hosts.on_field(
                &format!("{number}.test"),
                &format!("max-age={}", number + 1),
                NOW,
            );
        }
        assert_eq!(hosts.0.len(), MAX_HOSTS);
        assert!(!hosts.is_known("9.test", NOW) && hosts.is_known("10.test", NOW));
    }
}
