//! Which server is loaded, and what it is asked for.

use std::path::Path;

use courser_load::{Pattern, Target};
use courser_measure::Failure;
use courser_measure::target::{resolve, split_target};
use http::Uri;
use rustls::pki_types::ServerName;

use super::args::Flags;

/// The server of a run and its URLs, as the flags name them.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) target: Target,
    pub(super) urls: Vec<Uri>,
    /// True for https.
    pub(super) is_secure: bool,
}

impl Site {
    /// Reads the URLs and finds their server.
    pub(super) fn read(flags: &Flags, pattern: Option<&Pattern>) -> Result<Self, Failure> {
        let texts = match (pattern, &flags.input_file) {
            (Some(pattern), _) => vec![pattern.origin()],
            (None, Some(path)) => lines(path)?,
            (None, None) => flags.urls.clone(),
        };
        let urls: Vec<Uri> = texts
            .iter()
            .map(|text| parse(text))
            .collect::<Result<_, _>>()?;
        let first = urls
            .first()
            .ok_or_else(|| Failure::new("the file contains no URL: write one per line"))?;
        if let Some(other) = urls.iter().find(|url| origin(url) != origin(first)) {
            return Err(Failure::new(format!(
                "'{other}' and '{first}' are on different servers: load one server at a time"
            )));
        }
        let (host, port) = host_and_port(first);
        let (to_host, to_port) = match &flags.connect_to {
            Some(text) => connect_to(text, &host, port)?,
            None => (host.clone(), port),
        };
        let server_name = match &flags.sni {
            Some(name) => checked_name(name)?,
            None => host,
        };
        let target = Target {
            url: first.to_string(),
            addresses: resolve(&to_host, to_port)?,
            server_name,
        };
        let is_secure = is_secure(first);
        Ok(Self {
            target,
            urls,
            is_secure,
        })
    }
}

/// Checks what --sni names.
fn checked_name(name: &str) -> Result<String, Failure> {
    match ServerName::try_from(name) {
        Ok(_) => Ok(name.to_owned()),
        Err(_) => Err(Failure::new(format!(
            "--sni '{name}' is not a name that a certificate can be for: use a DNS name or an IP \
             address"
        ))),
    }
}

/// Reads a URL: whole, with a scheme that can be loaded.
fn parse(text: &str) -> Result<Uri, Failure> {
    let wrong = |what: &str| {
        Failure::new(format!(
            "'{text}' is not a valid URL: {what}; use one such as https://example.org/path"
        ))
    };
    // What is behind '#' stays with the client (RFC 9110 §4.2.5).
    let sent = text.split('#').next().unwrap_or(text);
    let url: Uri = sent.parse().map_err(|error| wrong(&format!("{error}")))?;
    match url.scheme_str() {
        Some("http" | "https") => {}
        Some(other) => return Err(wrong(&format!("'{other}' is neither http nor https"))),
        None => return Err(wrong("'https://' is missing")),
    }
    let Some(authority) = url.authority() else {
        return Err(wrong("the host is missing"));
    };
    if authority.host().is_empty() {
        return Err(wrong("the host is missing"));
    }
    if authority.as_str().contains('@') {
        return Err(wrong(
            "it contains a user name, use --header for credentials",
        ));
    }
    Ok(url)
}

fn is_secure(url: &Uri) -> bool {
    url.scheme_str() == Some("https")
}

fn host_and_port(url: &Uri) -> (String, u16) {
    let host = url.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let default = if is_secure(url) { 443 } else { 80 };
    (host.to_owned(), url.port_u16().unwrap_or(default))
}

fn origin(url: &Uri) -> (bool, String, u16) {
    let (host, port) = host_and_port(url);
    (is_secure(url), host.to_ascii_lowercase(), port)
}

/// Reads `HOST[:PORT]` as h2load does, or oha's `host:port:to-host:to-port`. Without a port it is that
/// of the URL.
fn connect_to(text: &str, host: &str, port: u16) -> Result<(String, u16), Failure> {
    let prefix = format!("{host}:{port}:");
    let bracketed = format!("[{host}]:{port}:");
    let rest = text
        .strip_prefix(&prefix)
        .or_else(|| text.strip_prefix(&bracketed))
        .unwrap_or(text);
    let (to_host, to_port) = split_target(rest, port)?;
    Ok((to_host.to_owned(), to_port))
}

/// The URLs in a file, empty lines apart.
fn lines(path: &Path) -> Result<Vec<String>, Failure> {
    let text = if path == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.map_err(|error| {
        Failure::new(format!("cannot read URLs from {}: {error}", path.display()))
    })?;
    let lines = text.lines().map(str::trim);
    Ok(lines
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect())
}

#[cfg(test)]
mod tests;
