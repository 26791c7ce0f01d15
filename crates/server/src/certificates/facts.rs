//! Public facts about a certificate.

use std::time::{Duration, SystemTime};

use courser_tls::rustls::pki_types::CertificateDer;
use courser_tls::rustls::sign::CertifiedKey;

use super::fields::Certificate;

/// The public facts about a certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CertificateFacts {
    /// SHA-256 of the public key (SPKI), which Chromium accepts in base64 in
    /// `--ignore-certificate-errors-spki-list`.
    pub spki_sha256: [u8; 32],
    /// SHA-256 of the certificate, for `serverCertificateHashes` of WebTransport.
    pub sha256: [u8; 32],
    /// Start of the validity period.
    pub not_before: SystemTime,
    /// End of the validity period.
    pub not_after: SystemTime,
    /// The DNS names and IP addresses for which it is valid.
    pub names: Vec<String>,
    /// The size of the certificate chain in bytes, DER-encoded.
    ///
    /// A server may send three times what it has received before the client's address is validated (RFC 9000
    /// §8.1). After a first flight of one datagram, that suffices for chains of about [3000
    /// bytes](Self::FITS_FIRST_FLIGHT). A longer chain costs such clients a round trip.
    pub chain_bytes: usize,
    /// The size of a chain longer than that for clients that support certificate compression (RFC 8879), with
    /// the least effective algorithm. `None` for shorter chains, and if this build supports no algorithm.
    pub compressed_chain_bytes: Option<usize>,
}

impl CertificateFacts {
    pub(super) fn of(key: &CertifiedKey) -> Option<Self> {
        let facts = Self::of_certificate(key.cert.first()?)?;
        Some(Self {
            chain_bytes: key.cert.iter().map(|it| it.len()).sum(),
            ..facts
        })
    }

    /// Computes the compressed size of a chain that is too long for the first flight of a server.
    pub(super) fn with_compression(self, key: &CertifiedKey) -> Self {
        let is_long = self.chain_bytes > Self::FITS_FIRST_FLIGHT;
        Self {
            compressed_chain_bytes: is_long
                .then(|| courser_tls::compressed_chain_bytes(&key.cert))
                .flatten(),
            ..self
        }
    }

    /// Returns true if the certificate has expired at this time, or is in the last fifth of its validity period and expires
    /// within 14 days. Certificates should be renewed earlier.
    pub fn expires_soon(&self, now: SystemTime) -> bool {
        let lifetime = self.not_after.duration_since(self.not_before);
        let notice = (lifetime.unwrap_or_default() / 5).min(LONGEST_NOTICE);
        let left = self.not_after.duration_since(now);
        left.is_ok_and(|left| left <= notice) || self.not_after < now
    }

    /// The longest chain in bytes that fits into the first flight of a server with the rest of the handshake:
    /// 3600 bytes minus ServerHello, signature and headers.
    pub const FITS_FIRST_FLIGHT: usize = 3000;

    /// Reads a certificate alone, such as that of a peer. Returns `None` if it cannot be parsed.
    pub fn of_certificate(der: &CertificateDer<'_>) -> Option<Self> {
        let read = Certificate::parse(der)?;
        Some(Self {
            spki_sha256: sha256(&read.public_key),
            sha256: sha256(der),
            not_before: read.not_before,
            not_after: read.not_after,
            names: read.names,
            chain_bytes: read.bytes,
            compressed_chain_bytes: None,
        })
    }
}

/// Longest time before its expiry at which a certificate should have been renewed (limit K435).
const LONGEST_NOTICE: Duration = Duration::from_secs(14 * 24 * 60 * 60);

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    let mut hash = [0; 32];
    hash.copy_from_slice(digest.as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, PublicKeyData as _, SanType, date_time_ymd};

    use super::*;
    use crate::certificates::fields::time;

    fn facts(params: &CertificateParams) -> (CertificateFacts, KeyPair) {
        let key = KeyPair::generate().expect("random numbers");
        let certificate = params.self_signed(&key).expect("a certificate");
        let facts = CertificateFacts::of_certificate(certificate.der());
        (facts.expect("a parsed certificate"), key)
    }

    #[test]
    fn dns_names_and_addresses_are_read_and_others_are_skipped() {
        let names = ["a.test", "192.0.2.1", "2001:db8::1"].map(str::to_owned);
        let mut params = CertificateParams::new(names).expect("names");
        let email = "somebody@a.test".try_into().expect("ASCII");
        params.subject_alt_names.push(SanType::Rfc822Name(email));
        let (facts, key) = facts(&params);
        assert_eq!(facts.names, ["a.test", "192.0.2.1", "2001:db8::1"]);
        assert_eq!(facts.spki_sha256, sha256(&key.subject_public_key_info()));
    }

    /// Limit K435.
    #[test]
    fn certificates_expire_soon_in_the_last_fifth_of_their_lifetime() {
        let hours = |hours: u64| Duration::from_secs(hours * 60 * 60);
        let facts = facts(&CertificateParams::default()).0;
        let begin = time(1_700_000_000);
        for (lifetime, notice) in [(6 * 24, 28), (90 * 24, 14 * 24), (398 * 24, 14 * 24)] {
            let facts = CertificateFacts {
                not_before: begin,
                not_after: begin + hours(lifetime),
                ..facts.clone()
            };
            for (left, expected) in [(notice + 1, false), (notice, true), (0, true)] {
                let now = facts.not_after - hours(left);
                assert_eq!(facts.expires_soon(now), expected, "{lifetime} h, {left} h");
            }
            assert!(facts.expires_soon(facts.not_after + hours(1)));
        }
    }

    #[test]
    fn times_of_both_forms_are_read() {
        let mut params = CertificateParams::default();
        params.not_before = date_time_ymd(2024, 2, 29);
        params.not_after = date_time_ymd(2060, 1, 1);
        let (facts, _) = facts(&params);
        assert_eq!(facts.not_before, time(1_709_164_800));
        assert_eq!(facts.not_after, time(2_840_140_800));
        assert!(facts.names.is_empty());
    }

    #[test]
    fn damaged_certificates_have_no_facts() {
        let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]);
        let der = made.expect("random numbers").cert.der().to_vec();
        for len in 0..der.len() {
            let cut = CertificateDer::from(&der[..len]);
            assert_eq!(CertificateFacts::of_certificate(&cut), None, "{len} bytes");
        }
    }
}
