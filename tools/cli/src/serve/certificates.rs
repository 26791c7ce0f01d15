//! Opens the certificates of the server that the flags name.

use courser::Identity;
use courser::server::Certificates;
use courser_measure::Failure;

use super::args::CertificateArguments;

impl CertificateArguments {
    /// Returns true if clients trust the certificate by default.
    pub(super) fn is_public(&self) -> bool {
        !self.cert.is_empty() || self.acme
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
    if arguments.acme {
        return acme(arguments, domains);
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
fn acme(_: &CertificateArguments, _: &[String]) -> Result<Certificates, Failure> {
    Err(Failure::new(crate::features::missing("ACME", "acme")))
}

#[cfg(feature = "acme")]
fn acme(arguments: &CertificateArguments, domains: &[String]) -> Result<Certificates, Failure> {
    use courser::server::Acme;
    use courser_measure::tls;
    let mut acme = Acme::new(domains, &arguments.acme_dir);
    if let Some(email) = &arguments.email {
        acme = acme.contact(email);
    }
    if let Some(url) = &arguments.acme_server {
        acme = acme.directory(url);
    }
    if let Some(path) = &arguments.acme_ca {
        acme = acme.roots(tls::roots(tls::certificates(path)?, path)?);
    }
    Ok(Certificates::acme(acme)?)
}
