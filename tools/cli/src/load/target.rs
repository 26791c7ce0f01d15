//! Finds the server and the URLs of a run.

use std::collections::BTreeSet;
use std::path::Path;

use courser_load::{Pattern, Target};
use courser_measure::Failure;
use courser_measure::target::split_zone;
use http::Uri;
use rustls::pki_types::ServerName;

use super::args::Flags;

/// Parses the URLs, and finds their server.
pub(super) fn read(
    flags: &Flags,
    pattern: Option<&Pattern>,
) -> Result<(Target, Vec<Uri>), Failure> {
    let texts = match (pattern, &flags.input_file) {
        (Some(pattern), _) => vec![pattern.origin()],
        (None, Some(path)) => lines(path)?,
        (None, None) => flags.urls.clone(),
    };
    let mut zones = BTreeSet::new();
    let mut urls: Vec<Uri> = Vec::with_capacity(texts.len());
    for text in &texts {
        let (url, host) = match split_zone(text) {
            Some((plain, host)) => (parse(&plain)?, Some(host)),
            None => (parse(text)?, None),
        };
        urls.push(url);
        zones.insert(host);
    }
    if urls.is_empty() {
        return Err(Failure::new("the file contains no URL: write one per line"));
    }
    let in_zone = address_with_zone(zones)?;
    let connect_to = flags.connect_to.as_deref().or(in_zone.as_deref());
    let mut target = Target::of(&urls, connect_to)?;
    if let Some(name) = &flags.sni {
        check_name(name)?;
        target.server_name = name.clone();
    }
    Ok((target, urls))
}

/// Returns the address of the server with its zone. If one URL has a zone, all must have the same
/// (RFC 6874).
fn address_with_zone(zones: BTreeSet<Option<String>>) -> Result<Option<String>, Failure> {
    if zones.len() > 1 {
        return Err(Failure::new(
            "the URLs are in different zones: load one server at a time",
        ));
    }
    let host = zones.into_iter().flatten().next();
    Ok(host.map(|host| format!("[{host}]")))
}

/// Checks the name of --sni.
fn check_name(name: &str) -> Result<(), Failure> {
    match ServerName::try_from(name) {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::new(format!(
            "--sni '{name}' is not a valid server name: use a DNS name or an IP \
             address"
        ))),
    }
}

/// Parses an absolute URL with the scheme http or https.
fn parse(text: &str) -> Result<Uri, Failure> {
    let wrong = |what: &str| {
        Failure::new(format!(
            "'{text}' is not a valid URL: {what}; use one such as https://example.org/path"
        ))
    };
    // A fragment is not sent (RFC 9110 §4.2.5).
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

/// Returns the lines of a file that are not empty.
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
