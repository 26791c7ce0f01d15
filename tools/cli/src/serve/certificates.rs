//! Opens the certificates of the server that the flags name.

use courser::Identity;
use courser::server::Certificates;
use courser_measure::Failure;

use super::acme::AcmeArguments;
use super::args::CertificateArguments;

impl CertificateArguments {
    /// Returns true if clients trust the certificate by default.
    pub(super) fn is_public(&self) -> bool {
        !self.cert.is_empty() || self.acme.is_on
    }
}

/// Opens the certificates of the server.
pub(super) fn open(
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
    let always = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let names = domains
        .iter()
        .filter(|name| !always.contains(name))
        .cloned();
    let identity = Identity::self_signed(always.iter().cloned().chain(names))?;
    Ok(Certificates::try_from(identity)?)
}

#[cfg(not(feature = "acme"))]
fn acme(_: &AcmeArguments, _: &[String]) -> Result<Certificates, Failure> {
    Err(Failure::new(crate::features::missing("ACME", "acme")))
}

#[cfg(feature = "acme")]
fn acme(arguments: &AcmeArguments, domains: &[String]) -> Result<Certificates, Failure> {
    Ok(Certificates::acme(super::acme::acme(arguments, domains)?)?)
}
