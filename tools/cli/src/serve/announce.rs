//! The messages at the start and the end of a server.

use std::fmt::Write as _;
use std::net::{Ipv6Addr, SocketAddr};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use courser::server::{CertificateFacts, Drained, ServerHandle, ServerStats};
use courser_measure::printable;
use courser_services::SessionProxy;
use courser_services::admin::early_data_counts;
use courser_services::webtransport::Echo;
use courser_units::rfc3339;
use serde_json::json;

use super::messages;
use super::plan::Protocols;

/// The contents of the first message.
#[derive(Debug)]
pub(crate) struct Announcement<'a> {
    pub(crate) handle: &'a ServerHandle,
    pub(crate) protocols: &'a Protocols,
    pub(crate) what: &'a str,
    /// The addresses of plain HTTP.
    pub(crate) redirects: Vec<SocketAddr>,
    pub(crate) admin: Option<SocketAddr>,
    pub(crate) echo: Option<&'a Echo>,
    /// The proxy of sessions of WebTransport.
    pub(crate) sessions: Option<&'a SessionProxy>,
    /// What a forward proxy adds.
    pub(crate) forward: Option<ForwardRows>,
}

/// The rows of a forward proxy in the first message, and its part of the event in JSON.
#[derive(Debug)]
pub(crate) struct ForwardRows {
    pub(crate) rows: Vec<(&'static str, String)>,
    pub(crate) json: serde_json::Value,
}

impl<'a> Announcement<'a> {
    /// Returns the message of a server that has no other parts.
    pub(crate) const fn of(
        handle: &'a ServerHandle,
        protocols: &'a Protocols,
        what: &'a str,
    ) -> Self {
        Self {
            handle,
            protocols,
            what,
            redirects: Vec::new(),
            admin: None,
            echo: None,
            sessions: None,
            forward: None,
        }
    }
}

impl Announcement<'_> {
    pub(crate) fn print(&self, as_json: bool) {
        if as_json {
            messages::line(self.json().to_string());
        } else {
            messages::line(self.text());
        }
    }

    fn names(&self) -> Vec<&'static str> {
        let quic: &[_] = if self.protocols.has_quic {
            &["h3"]
        } else {
            &[]
        };
        let tcp: &[_] = if self.protocols.has_tcp {
            &["h2", "http/1.1"]
        } else {
            &[]
        };
        [quic, tcp].concat()
    }

    fn json(&self) -> serde_json::Value {
        let certificates = self.handle.certificates();
        let certificate = certificates.first();
        json!({
            "event": "listening",
            "url": self.url(),
            "addresses": self.handle.local_addrs(),
            "protocols": self.names(),
            "early_data": self.protocols.has_early_data,
            "serves": self.what,
            "redirects": self.redirects,
            "admin": self.admin.map(|address| format!("http://{address}/")),
            "certificate": certificate.map(in_json),
            "certificates": certificates.iter().map(in_json).collect::<Vec<_>>(),
            "chrome": certificate.map(|it| self.chrome(it)),
            "proxy": self.forward.as_ref().map(|it| &it.json),
            "webtransport_upstream": self.sessions.map(|it| it.backend().to_string()),
            "webtransport": self.echo.map(|echo| json!({
                "url": self.url_of(echo.path()),
                "page": self.url_of(Echo::PAGE),
                "certificate_sha256": certificate
                    .filter(|_| self.protocols.is_dev)
                    .map(|it| BASE64_STANDARD.encode(it.sha256)),
            })),
        })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut row = |name: &str, value: &str| {
            // Names come from the file of a certificate. Writing to a string does not fail.
            let _ = writeln!(text, "{name:<12} {}", printable(value));
        };
        row(
            if self.forward.is_some() {
                "proxying"
            } else {
                "serving"
            },
            self.what,
        );
        row(
            "url",
            &format!("{}  ({})", self.url(), self.names().join(", ")),
        );
        for address in self.handle.local_addrs() {
            row("listening", &format!("{address}  ({})", self.transports()));
        }
        for address in &self.redirects {
            row(
                "listening",
                &format!("{address}  (TCP, plain HTTP that leads to https)"),
            );
        }
        if self.protocols.has_early_data {
            row(
                "early data",
                "safe requests in 0-RTT, others get 425 Too Early",
            );
        }
        for (name, value) in self.forward.iter().flat_map(|it| &it.rows) {
            row(name, value);
        }
        if let Some(echo) = self.echo {
            let (sessions, page) = (self.url_of(echo.path()), self.url_of(Echo::PAGE));
            row("webtransport", &format!("{sessions}  (test page: {page})"));
        }
        if let Some(sessions) = self.sessions {
            row(
                "webtransport",
                &format!("forwarded to {}", sessions.backend()),
            );
        }
        self.certificate_rows(&mut row);
        if let Some(domain) = self.protocols.domains.first() {
            let port = self.handle.local_addr().port();
            let at_port = if port == 443 {
                String::new()
            } else {
                format!(" port={port}")
            };
            let alpn = if self.protocols.has_tcp {
                "h3,h2"
            } else {
                "h3"
            };
            let record = format!("{domain}. HTTPS 1 . alpn=\"{alpn}\"{at_port}");
            row("dns", &record);
        }
        if let Some(admin) = self.admin {
            row(
                "admin",
                &format!("http://{admin}/  (live page; also /metrics /status /health /ready)"),
            );
        }
        text.trim_end().to_owned()
    }

    fn certificate_rows(&self, row: &mut impl FnMut(&str, &str)) {
        let certificates = self.handle.certificates();
        if certificates.is_empty() {
            row(
                "certificate",
                "none yet: clients are refused until one is obtained",
            );
        }
        for certificate in certificates {
            let until = rfc3339(certificate.not_after);
            let names = certificate.names.join(", ");
            let kind = if self.protocols.is_dev {
                "for development: "
            } else {
                ""
            };
            row(
                "certificate",
                &format!("{kind}{names}, valid until {until}"),
            );
            row(
                "spki sha256",
                &BASE64_STANDARD.encode(certificate.spki_sha256),
            );
            if self.protocols.is_dev && (self.echo.is_some() || self.sessions.is_some()) {
                let hash = BASE64_STANDARD.encode(certificate.sha256);
                row("cert sha256", &format!("{hash}  (serverCertificateHashes)"));
            }
            if self.protocols.is_dev && self.protocols.has_quic && self.forward.is_none() {
                row("chrome", &self.chrome(&certificate));
            }
        }
    }

    fn transports(&self) -> &'static str {
        match (self.protocols.has_quic, self.protocols.has_tcp) {
            (true, true) => "UDP and TCP",
            (true, false) => "UDP",
            _ => "TCP",
        }
    }

    /// Returns host and port for clients on this machine. Browsers resolve `localhost` to ::1 first,
    /// and do not try 127.0.0.1 over QUIC if no server answers there.
    pub(crate) fn authority(&self) -> String {
        let addresses = self.handle.local_addrs();
        let is_everywhere = addresses
            .iter()
            .any(|address| address.ip().is_unspecified());
        let has_v6 = addresses.contains(&(Ipv6Addr::LOCALHOST, addresses[0].port()).into());
        let named = self.protocols.domains.first().cloned();
        let host = match (named.or_else(|| self.public_name()), addresses.as_slice()) {
            (Some(domain), _) => domain,
            (None, [SocketAddr::V4(address)]) if !is_everywhere => address.ip().to_string(),
            (None, [SocketAddr::V6(address)]) if !is_everywhere && !has_v6 => {
                // Clients of this machine need the zone, which URLs write with %25 (RFC 6874 §2).
                match address.scope_id() {
                    0 => format!("[{}]", address.ip()),
                    zone => format!("[{}%25{zone}]", address.ip()),
                }
            }
            _ => "localhost".to_owned(),
        };
        format!("{host}:{}", addresses[0].port())
    }

    /// Returns a host name of the certificate that clients trust, for which they verify it.
    fn public_name(&self) -> Option<String> {
        if self.protocols.is_dev {
            return None;
        }
        let names = self
            .handle
            .certificates()
            .into_iter()
            .flat_map(|it| it.names);
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        // Wildcards are no hosts.
        let names = names.filter_map(|name| match name.parse::<Ipv6Addr>() {
            Ok(address) => Some(format!("[{address}]")),
            Err(_) => name.bytes().all(is_host).then_some(name),
        });
        let mut names = names.peekable();
        let first = names.peek().cloned();
        names.find(|name| name == "localhost").or(first)
    }

    fn url(&self) -> String {
        let authority = self.authority();
        format!(
            "https://{}/",
            authority.strip_suffix(":443").unwrap_or(&authority)
        )
    }

    /// Returns the URL of a path of the server.
    fn url_of(&self, path: &str) -> String {
        format!("{}{path}", self.url().trim_end_matches('/'))
    }

    fn chrome(&self, certificate: &CertificateFacts) -> String {
        format!(
            "google-chrome --origin-to-force-quic-on={} --ignore-certificate-errors-spki-list={} {}",
            self.authority(),
            BASE64_STANDARD.encode(certificate.spki_sha256),
            self.url()
        )
    }
}

/// Prints the message at the end, with the counts of early data if it was accepted.
pub(crate) fn print_drained(drained: &Drained, early_data: Option<&ServerStats>, as_json: bool) {
    if !as_json {
        messages::line(drained.to_string());
        if let Some(stats) = early_data {
            messages::line(format!(
                "early data: {} requests processed, {} too early, refused on {} connections, \
                 waited for the handshake on {} without a token",
                stats.early_requests,
                stats.requests_too_early,
                stats.quic.early_data_refused,
                stats.early_data_without_token
            ));
        }
        return;
    }
    let mut event = json!({
        "event": "drained",
        "requests_finished": drained.finished,
        "requests_cut": drained.cut,
        "connections": drained.connections,
        "connections_cut": drained.connections_cut,
        "seconds": drained.took.as_secs_f64(),
    });
    if let Some(stats) = early_data {
        event["early_data"] = early_data_counts(stats);
    }
    messages::line(event.to_string());
}

/// Prints the hashes of a development certificate that was renewed.
pub(crate) fn print_hashes(facts: &CertificateFacts, as_json: bool) {
    let until = rfc3339(facts.not_after);
    let hash = BASE64_STANDARD.encode(facts.sha256);
    if as_json {
        let event = json!({
            "event": "certificate",
            "certificate": in_json(facts),
            "certificate_sha256": hash,
        });
        messages::line(event.to_string());
    } else {
        messages::note(format!(
            "the new certificate is valid until {until}, sha256 {hash} (serverCertificateHashes), spki sha256 {}",
            BASE64_STANDARD.encode(facts.spki_sha256)
        ));
    }
}

fn in_json(facts: &CertificateFacts) -> serde_json::Value {
    json!({
        "names": facts.names,
        "not_after": rfc3339(facts.not_after),
        "spki_sha256": BASE64_STANDARD.encode(facts.spki_sha256),
        "sha256": hex(&facts.sha256),
    })
}

/// Returns a warning if a chain is too long for the first flight of a server over QUIC.
pub(crate) fn advice(facts: &CertificateFacts) -> Option<String> {
    let (bytes, most) = (facts.chain_bytes, CertificateFacts::FITS_FIRST_FLIGHT);
    if bytes <= most {
        return None;
    }
    let compressed = match facts.compressed_chain_bytes {
        Some(left) if left <= most => format!(
            "for clients that do not support certificate compression, with which it has {left} bytes"
        ),
        Some(left) => format!("even with certificate compression, which leaves {left} bytes"),
        None => "in this build without certificate compression".to_owned(),
    };
    Some(format!(
        "the certificate chain for {} has {bytes} bytes: above {most}, a handshake over QUIC can take \
         another round trip, {compressed}. An ECDSA certificate is shorter, and the root is not needed \
         in the file",
        facts.names.join(", ")
    ))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
