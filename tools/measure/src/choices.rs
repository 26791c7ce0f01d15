//! TLS flags of the command line: algorithms and client certificates.

use std::path::Path;

use courser::{CipherSuite, ClientAuthentication, Cryptography, KeyExchange};

use crate::{Failure, tls};

/// Reads the lists of `--curves` and `--tls13-ciphers`, if they are given.
///
/// # Errors
/// Returns an error if a list contains an unknown name, or in a FIPS build an algorithm that is not
/// approved.
pub fn cryptography(groups: Option<&str>, suites: Option<&str>) -> Result<Cryptography, Failure> {
    let is_allowed: IsAllowed = match Cryptography::default().is_fips() {
        true => Cryptography::is_fips,
        false => |_| true,
    };
    choose(groups, suites, is_allowed)
}

type IsAllowed = fn(&Cryptography) -> bool;

fn choose(
    groups: Option<&str>,
    suites: Option<&str>,
    is_allowed: IsAllowed,
) -> Result<Cryptography, Failure> {
    let mut chosen = Cryptography::default();
    if let Some(names) = groups {
        chosen = chosen
            .groups_by_name(names)
            .map_err(|error| Failure::new(format!("cannot use --curves: {error}")))?;
        let all = KeyExchange::ALL.map(KeyExchange::name);
        let alone = |name: &str| Cryptography::default().groups_by_name(name);
        refuse_unapproved(names, &all, |name| {
            alone(name).is_ok_and(|it| is_allowed(&it))
        })
        .map_err(|error| Failure::new(format!("cannot use --curves: {error}")))?;
    }
    if let Some(names) = suites {
        chosen = chosen
            .suites_by_name(names)
            .map_err(|error| Failure::new(format!("cannot use --tls13-ciphers: {error}")))?;
        let all = SUITES.map(CipherSuite::name);
        let alone = |name: &str| Cryptography::default().suites_by_name(name);
        refuse_unapproved(names, &all, |name| {
            alone(name).is_ok_and(|it| is_allowed(&it))
        })
        .map_err(|error| Failure::new(format!("cannot use --tls13-ciphers: {error}")))?;
    }
    Ok(chosen)
}

/// Returns an error if a name is not allowed. It states the first one, and the names of `all` that are.
fn refuse_unapproved(
    names: &str,
    all: &[&str],
    is_allowed: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let mut each = names.split([':', ',']).map(str::trim);
    let Some(name) = each.find(|name| !is_allowed(name)) else {
        return Ok(());
    };
    let allowed: Vec<&str> = all.iter().copied().filter(|it| is_allowed(it)).collect();
    let allowed = allowed.join(", ");
    Err(format!(
        "{name} is not approved for FIPS mode: allowed are {allowed}"
    ))
}

/// Returns the policy for client certificates, which must lead to an authority in the file (PEM). Without a
/// file, clients are not asked for certificates.
///
/// # Errors
/// Returns an error if the file cannot be read or contains no certificate.
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

const SUITES: [CipherSuite; 3] = [
    CipherSuite::Aes128Gcm,
    CipherSuite::Aes256Gcm,
    CipherSuite::ChaCha20Poly1305,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns false as `Cryptography::is_fips` does in a FIPS build.
    fn is_approved(choice: &Cryptography) -> bool {
        let alone = Cryptography::default();
        let refused = [
            alone.clone().groups([KeyExchange::X25519]),
            alone.suites([CipherSuite::ChaCha20Poly1305]),
        ];
        !refused.contains(choice)
    }

    #[test]
    fn unapproved_names_are_refused_with_the_approved_ones() {
        let refusal = |groups, suites| {
            let error = choose(groups, suites, is_approved).expect_err("not approved");
            error.to_string()
        };
        assert_eq!(
            refusal(Some("P-256:X25519"), None),
            "cannot use --curves: X25519 is not approved for FIPS mode: allowed are X25519MLKEM768, \
             SecP256r1MLKEM768, MLKEM768, MLKEM1024, secp256r1, secp384r1"
        );
        assert_eq!(
            refusal(None, Some("TLS_CHACHA20_POLY1305_SHA256")),
            "cannot use --tls13-ciphers: TLS_CHACHA20_POLY1305_SHA256 is not approved for FIPS mode: \
             allowed are TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384"
        );
    }

    #[test]
    fn approved_names_are_used_in_the_given_order() {
        let chosen = choose(Some("P-384, X25519MLKEM768"), None, is_approved).expect("approved");
        let groups = [KeyExchange::Secp384r1, KeyExchange::X25519MlKem768];
        assert_eq!(chosen, Cryptography::default().groups(groups));
    }

    #[test]
    fn builds_without_fips_mode_accept_all_names() {
        let taken = choose(Some("x25519"), Some("TLS_CHACHA20_POLY1305_SHA256"), |_| {
            true
        });
        assert!(taken.is_ok());
        let is_refused = cryptography(Some("x25519"), None).is_err();
        assert_eq!(is_refused, Cryptography::default().is_fips());
    }

    #[test]
    fn unknown_name_is_reported_before_an_unapproved_one() {
        let error = choose(Some("x25519:P-257"), None, is_approved).expect_err("unknown");
        let text = error.to_string();
        assert!(
            text.contains("unknown key exchange group 'P-257'"),
            "{text}"
        );
    }
}
