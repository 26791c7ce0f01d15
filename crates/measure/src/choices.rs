//! Choices of TLS on the command line: algorithms, and certificates of clients.

use std::path::Path;

use courser::{ClientAuthentication, Cryptography};

use crate::{Failure, tls};

/// Reads the lists of `--curves` and `--tls13-ciphers`, if they are given.
///
/// # Errors
/// When a list has an unknown name.
pub fn cryptography(groups: Option<&str>, suites: Option<&str>) -> Result<Cryptography, Failure> {
    let wrong = |flag, error| Failure::new(format!("cannot use {flag}: {error}"));
    let mut chosen = Cryptography::default();
    if let Some(names) = groups {
        let named = chosen.groups_by_name(names);
        chosen = named.map_err(|error| wrong("--curves", error))?;
    }
    if let Some(names) = suites {
        let named = chosen.suites_by_name(names);
        chosen = named.map_err(|error| wrong("--tls13-ciphers", error))?;
    }
    Ok(chosen)
}

/// Returns the policy for client certificates with the authorities in a file (PEM), if one is given.
///
/// # Errors
/// When the file cannot be read, or has no certificate.
pub fn client_authentication(
    authorities: Option<&Path>,
    is_optional: bool,
) -> Result<ClientAuthentication, Failure> {
    let Some(path) = authorities else {
        return Ok(ClientAuthentication::Off);
    };
    let roots = tls::roots(tls::certificates(path)?, path)?;
    Ok(match is_optional {
        true => ClientAuthentication::Optional(roots),
        false => ClientAuthentication::Required(roots),
    })
}
