//! Prefixes of addresses on the command line.

use courser::masque::{InvalidPrefix, Policy, Prefix};

/// Returns a prefix.
pub(super) fn parse_prefix(text: &str) -> Result<Prefix, String> {
    text.parse()
        .map_err(|error: InvalidPrefix| error.to_string())
}

/// Returns the prefix of a translator.
pub(super) fn parse_nat64(text: &str) -> Result<Prefix, String> {
    let prefix = parse_prefix(text)?;
    match Policy::nothing().nat64(prefix) {
        Ok(_) => Ok(prefix),
        Err(error) => Err(error.to_string()),
    }
}
