//! `courser serve --webtransport-echo`: sessions of WebTransport beside the site.

use std::sync::{Arc, OnceLock};

use clap::Args;
use courser::server::{CertificateFacts, ServerHandle};
use courser::webtransport::{self, Config, Origins};
use courser::{Side, h3};
use courser_services::webtransport::Echo;

use crate::error::Failure;

#[derive(Args, Debug)]
#[command(next_help_heading = "WebTransport")]
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
    #[arg(id = "webtransport_origin", long = "webtransport-origin", value_name = "ORIGIN", requires = "webtransport_echo",
          value_parser = parse_origin)]
    pub(super) origins: Vec<String>,
}

impl WebTransportArguments {
    /// Returns true if there is an echo.
    pub(super) fn has_echo(&self) -> bool {
        self.echo.is_some()
    }

    /// Announces WebTransport in the settings of HTTP/3 if there is an echo.
    pub(super) fn enable(&self, http3: &mut h3::Config) -> Result<(), Failure> {
        if self.echo.is_none() {
            return Ok(());
        }
        let wrong = |error: &dyn std::fmt::Display| Failure::new(error.to_string());
        let base = match self.origins.iter().any(|it| it == ANY) {
            true => Origins::any(),
            false => Origins::same_host(),
        };
        let mut listed = self.origins.iter().filter(|it| *it != ANY);
        let origins = listed
            .try_fold(base, |all, origin| all.and(origin))
            .map_err(|error| wrong(&error))?;
        let config = Config {
            origins,
            ..Config::new()
        };
        webtransport::enable(http3, Side::Server, config).map_err(|error| wrong(&error))
    }

    /// Returns the echo, if there is one. `handle` is set when the server is bound.
    pub(super) fn echo(&self, is_dev: bool, handle: &Arc<OnceLock<ServerHandle>>) -> Option<Echo> {
        let path = self.echo.as_ref()?;
        let handle = handle.clone();
        // Browsers refuse the hash of a certificate that they could trust otherwise: those are valid for too long.
        let hash = move || Some(certificate(&handle).filter(|_| is_dev)?.sha256);
        Some(Echo::new(path, hash))
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
