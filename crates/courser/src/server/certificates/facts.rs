//! What there is to say about a certificate.

use std::time::{Duration, SystemTime};

use courser_tls::rustls::pki_types::CertificateDer;
use courser_tls::rustls::sign::CertifiedKey;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// What clients can be told about a certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CertificateFacts {
    /// SHA-256 of the public key (SPKI): what Chromium's
    /// `--ignore-certificate-errors-spki-list` wants in base64.
    pub spki_sha256: [u8; 32],
    /// SHA-256 of the certificate: what `serverCertificateHashes` of WebTransport wants.
    pub sha256: [u8; 32],
    /// From when on it is valid.
    pub not_before: SystemTime,
    /// Until when it is valid.
    pub not_after: SystemTime,
    /// The DNS names and IP addresses that it is for.
    pub names: Vec<String>,
}

impl CertificateFacts {
    pub(super) fn of(key: &CertifiedKey) -> Option<Self> {
        Self::of_certificate(key.cert.first()?)
    }

    /// `None` when it cannot be understood.
    pub(super) fn of_certificate(der: &CertificateDer<'_>) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let validity = certificate.validity();
        let names = certificate.subject_alternative_name().ok().flatten();
        let names = names.map_or(&[][..], |extension| &extension.value.general_names);
        Some(Self {
            spki_sha256: sha256(certificate.public_key().raw),
            sha256: sha256(der),
            not_before: time(validity.not_before.timestamp()),
            not_after: time(validity.not_after.timestamp()),
            names: names.iter().filter_map(name).collect(),
        })
    }
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes)
                .ok()
                .map(|ip| std::net::IpAddr::from(ip).to_string()),
            _ => <[u8; 16]>::try_from(*bytes)
                .ok()
                .map(|ip| std::net::IpAddr::from(ip).to_string()),
        },
        _ => None,
    }
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    let mut hash = [0; 32];
    hash.copy_from_slice(digest.as_ref());
    hash
}

fn time(unix: i64) -> SystemTime {
    let distance = Duration::from_secs(unix.unsigned_abs());
    let time = if unix < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(distance)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(distance)
    };
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}
