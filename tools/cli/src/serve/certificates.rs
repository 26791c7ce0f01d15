//! Opens the certificates of the server that the flags name.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use courser::server::Certificates;
use courser_measure::certificate::{Certificate, length_in_order};
use courser_measure::{Failure, tls};
use courser_units::rfc3339;

use super::acme::AcmeArguments;
use super::args::CertificateArguments;

impl CertificateArguments {
    /// Returns true if clients trust the certificate by default.
    pub(crate) fn is_public(&self) -> bool {
        !self.cert.is_empty() || self.acme.is_on
    }
}

impl CertificateArguments {
    /// Returns true if only clients with a certificate are served.
    pub(crate) fn requires_client(&self) -> bool {
        self.client_ca.is_some() && !self.client_cert_optional
    }
}

/// Opens the certificates of the server.
pub(crate) fn open(
    arguments: &CertificateArguments,
    domains: &[String],
) -> Result<Certificates, Failure> {
    let (certs, keys) = (&arguments.cert, &arguments.key);
    if certs.len() != keys.len() {
        return Err(Failure::new(format!(
            "{} --cert and {} --key: each --cert needs its --key, in the same order",
            certs.len(),
            keys.len()
        )));
    }
    if arguments.ocsp.len() > certs.len() {
        return Err(Failure::new(format!(
            "{} --ocsp and {} --cert: each --ocsp belongs to the --cert at the same position",
            arguments.ocsp.len(),
            certs.len()
        )));
    }
    let mut pairs = certs.iter().zip(keys);
    if let Some((cert, key)) = pairs.next() {
        let mut responses = arguments.ocsp.iter();
        let mut staple = |certificates: Certificates| match responses.next() {
            Some(path) => certificates.with_ocsp_file(path),
            None => Ok(certificates),
        };
        let first = staple(Certificates::pem_files(cert, key)?)?;
        let all = pairs.try_fold(first, |all, (cert, key)| {
            staple(all.with_pem_files(cert, key)?)
        })?;
        return Ok(all);
    }
    if let Some(folder) = &arguments.tls_dev_dir {
        return Ok(Certificates::dev_in(folder, domains)?);
    }
    if arguments.acme.is_on {
        return acme(&arguments.acme, domains);
    }
    Ok(Certificates::dev(domains)?)
}

/// Returns warnings of certificates in these files that clients will refuse, or that many clients cannot verify.
pub(crate) fn warnings(files: &[PathBuf], now: SystemTime) -> Vec<String> {
    files
        .iter()
        .flat_map(|path| warnings_of(path, now))
        .collect()
}

fn warnings_of(path: &Path, now: SystemTime) -> Vec<String> {
    // The server has read the file already.
    let chain = tls::certificates(path).unwrap_or_default();
    let chain: Option<Vec<_>> = chain.iter().map(Certificate::parse).collect();
    let problems = chain.map(|chain| problems(&chain, now)).unwrap_or_default();
    let name = path.display();
    let hint = |problem| format!("{name}: {problem} (courser doctor --cert {name})");
    problems.into_iter().map(hint).collect()
}

/// Returns warnings of self-signed certificates in these files with which browsers open no sessions: they do not ask their
/// users, and accept hashes of short certificates only.
pub(crate) fn session_warnings(files: &[PathBuf]) -> Vec<String> {
    let warning = |path: &PathBuf| {
        let chain = tls::certificates(path).ok()?;
        let leaf = Certificate::parse(chain.first()?)?;
        let validity = leaf.not_after.duration_since(leaf.not_before).ok()?;
        let is_short = validity <= LONGEST_OF_HASH;
        let (name, days) = (path.display(), validity.as_secs() / (24 * 3600));
        (leaf.is_self_signed() && !is_short).then(|| {
            format!(
                "{name}: browsers open sessions of WebTransport with a self-signed certificate by its hash \
                 (serverCertificateHashes) if it is valid for at most 14 days, and this one has {days}: \
                 without --cert, a certificate for 13 days is made and renewed"
            )
        })
    };
    files.iter().filter_map(warning).collect()
}

/// Longest validity of a certificate that browsers accept by its hash (W3C WebTransport §6.10).
const LONGEST_OF_HASH: Duration = Duration::from_secs(14 * 24 * 3600);

fn problems(chain: &[Certificate], now: SystemTime) -> Vec<String> {
    let Some(leaf) = chain.first() else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    let (from, until) = (rfc3339(leaf.not_before), rfc3339(leaf.not_after));
    if leaf.not_after <= now {
        problems.push(format!(
            "the certificate expired at {until}, and clients refuse it"
        ));
    }
    if leaf.not_before > now {
        problems.push(format!(
            "the certificate is not valid before {from}, and clients refuse it until then, unless the \
             clock of this machine is wrong"
        ));
    }
    if leaf.names.is_empty() {
        problems.push(
            "the certificate has no subject alternative name, and clients refuse it: they do not compare \
             common names"
                .to_owned(),
        );
    }
    let in_order = length_in_order(chain);
    if in_order < chain.len() {
        problems.push(format!(
            "the chain is out of order after {in_order} of {}: the next certificate must be that of the \
             issuer, {}",
            chain.len(),
            chain[in_order - 1].issuer_name.as_deref().unwrap_or_default()
        ));
    } else if chain.len() == 1 && !leaf.is_self_signed() {
        problems.push(format!(
            "the certificate is alone, and clients that do not know its issuer ({}) refuse it: put the \
             intermediate certificate behind it (fullchain.pem of certbot)",
            leaf.issuer_name.as_deref().unwrap_or_default()
        ));
    }
    problems
}

#[cfg(not(feature = "acme"))]
fn acme(_: &AcmeArguments, _: &[String]) -> Result<Certificates, Failure> {
    Err(Failure::new(crate::features::missing("ACME", "acme")))
}

#[cfg(feature = "acme")]
fn acme(arguments: &AcmeArguments, domains: &[String]) -> Result<Certificates, Failure> {
    Ok(Certificates::acme(super::acme::acme(arguments, domains)?)?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use courser::rustls::pki_types::CertificateDer;
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

    use super::*;

    fn params(name: &str, names: &[&str]) -> CertificateParams {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        params
    }

    /// Returns the problems of a chain: certificates of this server and of its authority, in this order.
    fn seen(names: &[&str], order: &[usize], now: SystemTime) -> String {
        let authority_key = KeyPair::generate().expect("random numbers");
        let mut authority = params("the authority", &[]);
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = authority.self_signed(&authority_key).expect("signed");
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate().expect("random numbers");
        let mut leaf = params("the server", names);
        leaf.not_before = rcgen::date_time_ymd(2026, 1, 1);
        leaf.not_after = rcgen::date_time_ymd(2026, 4, 1);
        let leaf = leaf.signed_by(&key, &issuer).expect("signed");
        let all: [CertificateDer<'_>; 2] = [leaf.der().clone(), root.der().clone()];
        let chain = order.iter().map(|index| Certificate::parse(&all[*index]));
        let chain: Vec<_> = chain.map(|it| it.expect("valid")).collect();
        problems(&chain, now).join("\n")
    }

    fn day(of_2026: u64) -> SystemTime {
        let new_year = Duration::from_secs(1_767_225_600);
        SystemTime::UNIX_EPOCH + new_year + Duration::from_secs(of_2026 * 86_400)
    }

    #[test]
    fn certificates_that_clients_refuse_are_described() {
        let good = &["a.test"][..];
        for (names, order, now, expected) in [
            (good, &[0, 1][..], day(10), ""),
            (good, &[1], day(10), "no subject alternative name"),
            (good, &[0, 1], day(200), "expired at 2026-04-01T00:00:00Z"),
            (
                good,
                &[0, 1],
                day(0) - Duration::from_secs(60),
                "not valid before 2026-01-01T00:00:00Z",
            ),
            (&[], &[0, 1], day(10), "no subject alternative name"),
            (good, &[0], day(10), "does not know its issuer"),
            (good, &[1, 0], day(10), "out of order after 1 of 2"),
        ] {
            let seen = seen(names, order, now);
            let is_described = match expected {
                "" => seen.is_empty(),
                "does not know its issuer" => {
                    seen.contains("do not know its issuer (the authority)")
                }
                text => seen.contains(text),
            };
            assert!(is_described, "{expected}: {seen}");
        }
    }

    #[test]
    fn long_self_signed_certificates_have_a_warning_for_sessions() {
        let folder = std::env::temp_dir().join(format!("courser-sessions-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let seen = |days: u8| {
            let mut params = params("the server", &["localhost"]);
            params.not_before = rcgen::date_time_ymd(2026, 1, 1);
            params.not_after = rcgen::date_time_ymd(2026, 1, 1 + days);
            let key = KeyPair::generate().expect("random numbers");
            let path = folder.join(format!("{days}.pem"));
            let pem = params.self_signed(&key).expect("signed").pem();
            std::fs::write(&path, pem).expect("written");
            session_warnings(&[path]).join("")
        };
        assert_eq!(seen(14), "");
        let text = seen(15);
        assert!(
            text.contains("at most 14 days, and this one has 15"),
            "{text}"
        );
        std::fs::remove_dir_all(&folder).expect("our folder");
    }
}
