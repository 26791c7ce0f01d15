//! `courser serve --webtransport-echo`: sessions of WebTransport beside the site.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use clap::Args;
use courser::ClientConfig;
use courser::server::{CertificateFacts, Server, ServerHandle};
use courser::webtransport::{Config, Origins};
use courser_measure::tls;
use courser_services::webtransport::Echo;
use courser_services::{ProxyTimes, SessionBackend, SessionProxy};

use crate::error::Failure;
use crate::webtransport::args::parse_hash;

#[derive(Args, Debug)]
#[command(next_help_heading = "WebTransport")]
#[group(skip)]
#[command(group = clap::ArgGroup::new("webtransport").args(["webtransport_echo", "proxy_webtransport"]).multiple(true))]
pub(crate) struct WebTransportArguments {
    /// Echo the streams and datagrams of WebTransport sessions [default path: /.well-known/courser/echo]
    ///
    /// The page /webtransport of the server tests this in the visitor's browser. All dialects are announced that
    /// browsers and libraries speak. A generated certificate is trusted by its hash, without a warning
    /// (serverCertificateHashes). ORIGIN is sent with --origin only, because clients of wtransport 0.7 do not know it.
    /// The query open=N asks the server for N streams, close=CODE&reason=TEXT for a close.
    #[arg(id = "webtransport_echo", long = "webtransport-echo", value_name = "PATH", num_args = 0..=1, require_equals = true,
          default_missing_value = Echo::PATH, value_parser = parse_path, conflicts_with = "no_quic")]
    pub(super) echo: Option<String>,

    /// Origin whose pages may open sessions too, such as https://app.example; repeatable
    ///
    /// Pages of the server itself always may, and programs that send no Origin field. '*' allows the pages of all
    /// sites.
    #[arg(id = "webtransport_origin", long = "webtransport-origin", value_name = "ORIGIN", value_parser = parse_origin,
          requires = "webtransport")]
    pub(super) origins: Vec<String>,

    /// Forward WebTransport sessions to this server, such as https://10.0.0.7:4433
    ///
    /// The server needs HTTP/3 and WebTransport. It gets the host, path, origin and protocols of the client, and decides
    /// about the session: also about the origin, unless --webtransport-origin is given, which is checked before. Each
    /// session has a connection of its own. Sessions at the path of --webtransport-echo stay here. Can be combined with
    /// --proxy, whose server gets the requests, and with a folder.
    #[arg(id = "proxy_webtransport", long = "proxy-webtransport", value_name = "URL", value_parser = SessionBackend::parse,
          conflicts_with = "no_quic", help_heading = "Proxy")]
    pub(super) upstream: Option<SessionBackend>,

    /// Trust the certificates in this file (PEM) for --proxy-webtransport, not the system's
    #[arg(
        id = "proxy_webtransport_ca",
        long = "proxy-webtransport-ca",
        value_name = "FILE",
        requires = "proxy_webtransport",
        conflicts_with = "proxy_webtransport_hash",
        help_heading = "Proxy"
    )]
    pub(super) authorities: Option<PathBuf>,

    /// Trust the certificate with this SHA-256 for --proxy-webtransport, in hexadecimal or base64; repeatable
    ///
    /// The rules are those of serverCertificateHashes in browsers: the certificate is valid for at most 14 days, and has an
    /// ECDSA key on P-256. `courser serve` prints the hash of a generated certificate.
    #[arg(id = "proxy_webtransport_hash", long = "proxy-webtransport-hash", value_name = "HASH", value_parser = parse_hash,
          requires = "proxy_webtransport", help_heading = "Proxy")]
    pub(super) hashes: Vec<[u8; 32]>,

    /// Maximum number of WebTransport sessions of all clients
    #[arg(id = "webtransport_sessions", long = "webtransport-sessions", value_name = "N", default_value = "65536",
          value_parser = clap::value_parser!(u64).range(1..), requires = "webtransport")]
    pub(super) sessions: u64,
}

impl WebTransportArguments {
    /// Returns true if there are sessions.
    pub(super) fn has_sessions(&self) -> bool {
        self.echo.is_some() || self.upstream.is_some()
    }

    /// Announces WebTransport if there are sessions.
    pub(super) fn apply(&self, server: Server) -> Result<Server, Failure> {
        if !self.has_sessions() {
            return Ok(server);
        }
        Ok(server.webtransport(Config {
            // The server behind decides, unless the user does.
            origins: match self.upstream.is_some() && self.origins.is_empty() {
                true => Origins::any(),
                false => self.origins()?,
            },
            max_all_sessions: self.sessions,
            ..Config::new()
        }))
    }

    /// Returns the origins that the user has listed, and those of the same host.
    fn origins(&self) -> Result<Origins, Failure> {
        let base = match self.origins.iter().any(|it| it == ANY) {
            true => Origins::any(),
            false => Origins::same_host(),
        };
        let mut listed = self.origins.iter().filter(|it| *it != ANY);
        let origins = listed.try_fold(base, |all, origin| all.and(origin));
        origins.map_err(|error| Failure::new(error.to_string()))
    }

    /// Returns the proxy of sessions, if there is one.
    pub(super) fn proxy(
        &self,
        times: ProxyTimes,
        keeps_underscores: bool,
        report: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Option<SessionProxy>, Failure> {
        let Some(backend) = &self.upstream else {
            return Ok(None);
        };
        let wrong = |error: &dyn std::fmt::Display| {
            Failure::new(format!(
                "cannot use --proxy-webtransport {backend}: {error}"
            ))
        };
        let client = match &self.authorities {
            Some(file) => {
                let certificates = tls::certificates(file)?;
                ClientConfig::with_roots(certificates)
            }
            None if self.hashes.is_empty() => ClientConfig::with_platform_verifier(),
            None => ClientConfig::with_certificate_hashes(self.hashes.iter().copied()),
        };
        let client = client.map_err(|error| wrong(&error))?;
        let limit = usize::try_from(self.sessions).unwrap_or(usize::MAX);
        let proxy = SessionProxy::new(backend.clone(), client, times, limit);
        let proxy = proxy.map_err(|error| wrong(&error))?;
        Ok(Some(
            proxy.with_underscores(keeps_underscores).on_failure(report),
        ))
    }

    /// Returns the echo, if there is one. `handle` is set when the server is bound.
    pub(super) fn echo(
        &self,
        is_dev: bool,
        handle: &Arc<OnceLock<ServerHandle>>,
    ) -> Result<Option<Echo>, Failure> {
        let Some(path) = &self.echo else {
            return Ok(None);
        };
        let handle = handle.clone();
        // Browsers refuse the hash of a certificate that they could trust otherwise: those are valid for too long.
        let hash = move || Some(certificate(&handle).filter(|_| is_dev)?.sha256);
        // A proxy of sessions may have opened the server to the pages of all sites.
        Ok(Some(Echo::new(path, hash).origins(self.origins()?)))
    }
}

/// Returns the first certificate of a server that is bound.
pub(super) fn certificate(handle: &OnceLock<ServerHandle>) -> Option<CertificateFacts> {
    handle.get()?.certificates().into_iter().next()
}

fn parse_path(text: &str) -> Result<String, String> {
    let path = text.parse::<http::uri::PathAndQuery>();
    let is_path = |path: http::uri::PathAndQuery| path.path() == text && text.starts_with('/');
    match path.is_ok_and(is_path) {
        true if text == Echo::PAGE => Err(format!("{text} is the test page: use another path")),
        true => Ok(text.to_owned()),
        false => Err(format!(
            "'{text}' is not a path: use one such as {}, without a query",
            Echo::PATH
        )),
    }
}

fn parse_origin(text: &str) -> Result<String, String> {
    if text != ANY {
        let parsed = Origins::listed().and(text);
        parsed.map_err(|error| format!("{error}, or * for the pages of all sites"))?;
    }
    Ok(text.to_owned())
}

/// Allows the pages of all sites.
const ANY: &str = "*";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_origins_are_checked() {
        for path in ["/", "/echo", Echo::PATH] {
            assert_eq!(parse_path(path).as_deref(), Ok(path));
        }
        for path in ["", "echo", "/echo?x", "/a b", "*", "/webtransport"] {
            assert!(parse_path(path).is_err(), "{path}");
        }
        for origin in ["*", "https://a.test", "http://localhost:8080", "null"] {
            assert_eq!(parse_origin(origin).as_deref(), Ok(origin));
        }
        for origin in ["a.test", "https://a.test/", "https://*.test/"] {
            let error = parse_origin(origin).expect_err(origin);
            assert!(
                error.contains("is not an origin") && error.contains("or *"),
                "{error}"
            );
        }
    }
}
