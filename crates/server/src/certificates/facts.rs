//! Public facts about a certificate.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use courser_tls::rustls::pki_types::CertificateDer;
use courser_tls::rustls::sign::CertifiedKey;
use yasna::models::ObjectIdentifier;
use yasna::tags::{TAG_GENERALIZEDTIME, TAG_UTCTIME};
use yasna::{ASN1Error, ASN1ErrorKind, ASN1Result, BERReader, Tag};

/// The public facts about a certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CertificateFacts {
    /// SHA-256 of the public key (SPKI), used in base64 by Chromium's
    /// `--ignore-certificate-errors-spki-list`.
    pub spki_sha256: [u8; 32],
    /// SHA-256 of the certificate, used by `serverCertificateHashes` of WebTransport.
    pub sha256: [u8; 32],
    /// Start of its validity.
    pub not_before: SystemTime,
    /// End of its validity.
    pub not_after: SystemTime,
    /// The DNS names and IP addresses that it is valid for.
    pub names: Vec<String>,
    /// The bytes of the certificate and of the others in its chain, in DER.
    ///
    /// A server may send three times what it has received before the client's address is validated
    /// (RFC 9000 §8.1). A first flight of one datagram leaves room for chains of about
    /// [3000 bytes](Self::FITS_FIRST_FLIGHT). A longer chain costs such clients a round trip.
    pub chain_bytes: usize,
    /// The bytes of a chain above that length for clients that support certificate compression (RFC
    /// 8879), with the weakest algorithm. `None` for shorter chains, and if this build has no algorithm.
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

    /// Compresses a chain that is too long for the first flight of a server.
    pub(super) fn with_compression(self, key: &CertifiedKey) -> Self {
        let is_long = self.chain_bytes > Self::FITS_FIRST_FLIGHT;
        Self {
            compressed_chain_bytes: is_long
                .then(|| courser_tls::compressed_chain_bytes(&key.cert))
                .flatten(),
            ..self
        }
    }

    /// The length of a chain in bytes that fits into the first flight of a server, beside the rest
    /// of the handshake: 3600 bytes less ServerHello, signature and headers.
    pub const FITS_FIRST_FLIGHT: usize = 3000;

    /// Returns `None` if the certificate cannot be parsed.
    pub(super) fn of_certificate(der: &CertificateDer<'_>) -> Option<Self> {
        let read = yasna::parse_der(der, read_certificate).ok()?;
        Some(Self {
            spki_sha256: sha256(&read.spki),
            sha256: sha256(der),
            not_before: time(read.not_before),
            not_after: time(read.not_after),
            names: read.names,
            chain_bytes: der.len(),
            compressed_chain_bytes: None,
        })
    }
}

/// The fields of a certificate that the facts are derived from (RFC 5280 §4.1).
struct Fields {
    not_before: i64,
    not_after: i64,
    spki: Vec<u8>,
    names: Vec<String>,
}

fn read_certificate(reader: BERReader<'_, '_>) -> ASN1Result<Fields> {
    reader.read_sequence(|certificate| {
        let fields = certificate.next().read_sequence(|fields| {
            // Absent in certificates of version 1.
            fields.read_optional(|version| skip_tagged(version, 0))?;
            for _serial_signature_issuer in 0..3 {
                fields.next().read_der()?;
            }
            let (not_before, not_after) = fields
                .next()
                .read_sequence(|times| Ok((read_time(times.next())?, read_time(times.next())?)))?;
            let _subject = fields.next().read_der()?;
            let spki = fields.next().read_der()?;
            for unique_id in [1, 2] {
                fields.read_optional(|id| skip_tagged(id, unique_id))?;
            }
            let names = fields.read_optional(read_extensions)?.unwrap_or_default();
            Ok(Fields {
                not_before,
                not_after,
                spki,
                names,
            })
        })?;
        for _algorithm_signature in 0..2 {
            certificate.next().read_der()?;
        }
        Ok(fields)
    })
}

/// Skips a field with this tag, and leaves any other alone.
pub(super) fn skip_tagged(reader: BERReader<'_, '_>, number: u64) -> ASN1Result<()> {
    if reader.lookahead_tag()? != Tag::context(number) {
        return Err(ASN1Error::new(ASN1ErrorKind::Invalid));
    }
    reader.read_der().map(drop)
}

/// Reads a time as seconds since 1970. Years from 2050 on have another format (RFC 5280 §4.1.2.5).
fn read_time(reader: BERReader<'_, '_>) -> ASN1Result<i64> {
    match reader.lookahead_tag()? {
        TAG_UTCTIME => Ok(reader.read_utctime()?.datetime().unix_timestamp()),
        TAG_GENERALIZEDTIME => Ok(reader.read_generalized_time()?.datetime().unix_timestamp()),
        _ => Err(ASN1Error::new(ASN1ErrorKind::Invalid)),
    }
}

/// Reads the subject alternative names among the extensions.
fn read_extensions(reader: BERReader<'_, '_>) -> ASN1Result<Vec<String>> {
    let alternative_names = ObjectIdentifier::from_slice(SUBJECT_ALTERNATIVE_NAME);
    reader.read_tagged(Tag::context(3), |extensions| {
        let mut names = Vec::new();
        extensions.read_sequence_of(|extension| {
            extension.read_sequence(|extension| {
                let id = extension.next().read_oid()?;
                let _critical = extension.read_default(false, |critical| critical.read_bool())?;
                let value = extension.next().read_bytes()?;
                if id == alternative_names {
                    names = yasna::parse_der(&value, |names| names.collect_sequence_of(read_name))?
                        .into_iter()
                        .flatten()
                        .collect();
                }
                Ok(())
            })
        })?;
        Ok(names)
    })
}

/// Reads a DNS name or an IP address (RFC 5280 §4.2.1.6). Returns `None` for other kinds of names.
fn read_name(reader: BERReader<'_, '_>) -> ASN1Result<Option<String>> {
    let (dns_name, ip_address) = (Tag::context(2), Tag::context(7));
    let tag = reader.lookahead_tag()?;
    if tag == dns_name {
        let name = reader.read_tagged_implicit(dns_name, |name| name.read_ia5_string())?;
        return Ok(Some(name));
    }
    if tag == ip_address {
        let bytes = reader.read_tagged_implicit(ip_address, |bytes| bytes.read_bytes())?;
        let v4 = <[u8; 4]>::try_from(&bytes[..]).map(IpAddr::from);
        let address = v4.or_else(|_| <[u8; 16]>::try_from(&bytes[..]).map(IpAddr::from));
        return Ok(address.ok().map(|address| address.to_string()));
    }
    reader.read_der().map(|_| None)
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    let mut hash = [0; 32];
    hash.copy_from_slice(digest.as_ref());
    hash
}

pub(super) fn time(unix: i64) -> SystemTime {
    let distance = Duration::from_secs(unix.unsigned_abs());
    let time = if unix < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(distance)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(distance)
    };
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// id-ce-subjectAltName, RFC 5280 §4.2.1.6.
const SUBJECT_ALTERNATIVE_NAME: &[u64] = &[2, 5, 29, 17];

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, PublicKeyData as _, SanType, date_time_ymd};

    use super::*;

    fn facts(params: &CertificateParams) -> (CertificateFacts, KeyPair) {
        let key = KeyPair::generate().expect("random numbers");
        let certificate = params.self_signed(&key).expect("a certificate");
        let facts = CertificateFacts::of_certificate(certificate.der());
        (facts.expect("understood"), key)
    }

    #[test]
    fn names_of_both_kinds_are_read_and_others_are_left_out() {
        let names = ["a.test", "192.0.2.1", "2001:db8::1"].map(str::to_owned);
        let mut params = CertificateParams::new(names).expect("names");
        let email = "somebody@a.test".try_into().expect("ASCII");
        params.subject_alt_names.push(SanType::Rfc822Name(email));
        let (facts, key) = facts(&params);
        assert_eq!(facts.names, ["a.test", "192.0.2.1", "2001:db8::1"]);
        assert_eq!(facts.spki_sha256, sha256(&key.subject_public_key_info()));
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
