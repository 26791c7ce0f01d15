//! The server and the URLs of a run, from the flags.

use std::path::Path;

use courser_load::{Pattern, Target};
use courser_measure::Failure;
use http::Uri;
use rustls::pki_types::ServerName;

use super::args::Flags;

/// Reads the URLs, and finds their server.
pub(super) fn read(
    flags: &Flags,
    pattern: Option<&Pattern>,
) -> Result<(Target, Vec<Uri>), Failure> {
    let texts = match (pattern, &flags.input_file) {
        (Some(pattern), _) => vec![pattern.origin()],
        (None, Some(path)) => lines(path)?,
        (None, None) => flags.urls.clone(),
    };
    let urls: Vec<Uri> = texts
        .iter()
        .map(|text| parse(text))
        .collect::<Result<_, _>>()?;
    if urls.is_empty() {
        return Err(Failure::new("the file contains no URL: write one per line"));
    }
    let mut target = Target::of(&urls, flags.connect_to.as_deref())?;
    if let Some(name) = &flags.sni {
        check_name(name)?;
        target.server_name = name.clone();
    }
    Ok((target, urls))
}

/// Checks the name of --sni.
fn check_name(name: &str) -> Result<(), Failure> {
    match ServerName::try_from(name) {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::new(format!(
            "--sni '{name}' is not a name that a certificate can be for: use a DNS name or an IP \
             address"
        ))),
    }
}

/// Reads an absolute URL of http or https.
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
