//! Fields of certificates (RFC 5280 §4.1) for diagnostics. Nothing is verified here.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use courser_tls::rustls::pki_types::CertificateDer;
use yasna::models::ObjectIdentifier;
use yasna::tags::{TAG_GENERALIZEDTIME, TAG_UTCTIME};
use yasna::{ASN1Error, ASN1ErrorKind, ASN1Result, BERReader, Tag};

/// The fields of one certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Certificate {
    /// The subject in DER, as it appears as the issuer in certificates that it signs.
    pub subject: Vec<u8>,
    /// The issuer in DER.
    pub issuer: Vec<u8>,
    /// The common name of the subject, if present.
    pub common_name: Option<String>,
    /// The common name of the issuer, if present.
    pub issuer_name: Option<String>,
    /// Start of the validity period.
    pub not_before: SystemTime,
    /// End of the validity period.
    pub not_after: SystemTime,
    /// The DNS names and IP addresses for which the certificate is valid.
    pub names: Vec<String>,
    /// The public key in DER (SubjectPublicKeyInfo).
    pub public_key: Vec<u8>,
    /// The kind of the public key, such as `ECDSA` or `RSA`.
    pub key: &'static str,
    /// The size of the certificate in DER.
    pub bytes: usize,
}

impl Certificate {
    /// Parses a certificate. Returns `None` if it is malformed.
    pub fn parse(der: &CertificateDer<'_>) -> Option<Self> {
        let read = yasna::parse_der(der, read_certificate).ok()?;
        Some(Self {
            bytes: der.len(),
            ..read
        })
    }

    /// Returns true if subject and issuer are equal.
    pub fn is_self_signed(&self) -> bool {
        self.subject == self.issuer
    }

    /// Returns true if the certificate is valid for a host, including by a wildcard (RFC 6125 §6.4.3).
    pub fn covers(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.names.iter().any(|name| {
            let name = name.to_ascii_lowercase();
            let is_wild = name.strip_prefix("*.").is_some_and(|domain| {
                host.split_once('.')
                    .is_some_and(|(label, rest)| !label.is_empty() && rest == domain)
            });
            name == host || is_wild
        })
    }
}

/// Returns how many certificates at the beginning of a chain were each issued by the next one: all of them if
/// the chain is in order.
pub fn length_in_order(chain: &[Certificate]) -> usize {
    let links = chain
        .windows(2)
        .take_while(|pair| pair[0].issuer == pair[1].subject);
    links.count() + usize::from(!chain.is_empty())
}

fn read_certificate(reader: BERReader<'_, '_>) -> ASN1Result<Certificate> {
    reader.read_sequence(|certificate| {
        let fields = certificate.next().read_sequence(|fields| {
            // The version is absent in certificates of version 1.
            fields.read_optional(|version| skip_tagged(version, 0))?;
            for _serial_signature in 0..2 {
                fields.next().read_der()?;
            }
            let issuer = fields.next().read_der()?;
            let (not_before, not_after) = fields
                .next()
                .read_sequence(|times| Ok((read_time(times.next())?, read_time(times.next())?)))?;
            let subject = fields.next().read_der()?;
            let public_key = fields.next().read_der()?;
            for unique_id in [1, 2] {
                fields.read_optional(|id| skip_tagged(id, unique_id))?;
            }
            let names = fields.read_optional(read_extensions)?.unwrap_or_default();
            Ok(Certificate {
                common_name: common_name(&subject),
                issuer_name: common_name(&issuer),
                subject,
                issuer,
                not_before: time(not_before),
                not_after: time(not_after),
                names,
                key: yasna::parse_der(&public_key, read_kind).unwrap_or(UNKNOWN),
                public_key,
                bytes: 0,
            })
        })?;
        for _algorithm_signature in 0..2 {
            certificate.next().read_der()?;
        }
        Ok(fields)
    })
}

/// Parses the kind of a public key.
fn read_kind(reader: BERReader<'_, '_>) -> ASN1Result<&'static str> {
    reader.read_sequence(|key| {
        let kind = key.next().read_sequence(|algorithm| {
            let id = algorithm.next().read_oid()?;
            algorithm.read_optional(|parameters| parameters.read_der())?;
            Ok(kind(&id))
        });
        key.next().read_der()?;
        kind
    })
}

fn kind(id: &ObjectIdentifier) -> &'static str {
    match id.components().as_slice() {
        [1, 2, 840, 113_549, 1, 1, ..] => "RSA",
        [1, 2, 840, 10_045, 2, 1] => "ECDSA",
        [1, 3, 101, 112] => "Ed25519",
        [2, 16, 840, 1, 101, 3, 4, 3, ..] => "ML-DSA",
        _ => UNKNOWN,
    }
}

/// Skips a field if it has this tag.
pub(super) fn skip_tagged(reader: BERReader<'_, '_>, number: u64) -> ASN1Result<()> {
    if reader.lookahead_tag()? != Tag::context(number) {
        return Err(ASN1Error::new(ASN1ErrorKind::Invalid));
    }
    reader.read_der().map(drop)
}

/// Parses a time as seconds since 1970. Years from 2050 have another format (RFC 5280 §4.1.2.5).
fn read_time(reader: BERReader<'_, '_>) -> ASN1Result<i64> {
    match reader.lookahead_tag()? {
        TAG_UTCTIME => Ok(reader.read_utctime()?.datetime().unix_timestamp()),
        TAG_GENERALIZEDTIME => Ok(reader.read_generalized_time()?.datetime().unix_timestamp()),
        _ => Err(ASN1Error::new(ASN1ErrorKind::Invalid)),
    }
}

/// Returns the common name in a DER-encoded distinguished name.
fn common_name(name: &[u8]) -> Option<String> {
    let attribute = |reader: BERReader<'_, '_>| {
        reader.read_sequence(|pair| {
            let id = pair.next().read_oid()?;
            let value = pair.next().read_tagged_der()?;
            let text = String::from_utf8_lossy(value.value()).into_owned();
            Ok((id.components().as_slice() == COMMON_NAME).then_some(text))
        })
    };
    let read = yasna::parse_der(name, |name| {
        name.collect_sequence_of(|set| set.collect_set_of(attribute))
    });
    read.ok()?.into_iter().flatten().flatten().next()
}

/// Parses the subject alternative names in the extensions.
fn read_extensions(reader: BERReader<'_, '_>) -> ASN1Result<Vec<String>> {
    reader.read_tagged(Tag::context(3), |extensions| {
        let mut names = Vec::new();
        extensions.read_sequence_of(|extension| {
            extension.read_sequence(|extension| {
                let id = extension.next().read_oid()?;
                let _critical = extension.read_default(false, |critical| critical.read_bool())?;
                let value = extension.next().read_bytes()?;
                if id.components().as_slice() == SUBJECT_ALTERNATIVE_NAME {
                    let read =
                        yasna::parse_der(&value, |names| names.collect_sequence_of(read_name))?;
                    names = read.into_iter().flatten().collect();
                }
                Ok(())
            })
        })?;
        Ok(names)
    })
}

/// Parses a DNS name or an IP address (RFC 5280 §4.2.1.6). Returns `None` for other kinds of names.
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

pub(super) fn time(unix: i64) -> SystemTime {
    let distance = Duration::from_secs(unix.unsigned_abs());
    let time = match unix < 0 {
        true => SystemTime::UNIX_EPOCH.checked_sub(distance),
        false => SystemTime::UNIX_EPOCH.checked_add(distance),
    };
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// The kind of all other public keys.
const UNKNOWN: &str = "of an unknown kind";

/// id-at-commonName (RFC 5280 appendix A.1).
const COMMON_NAME: &[u64] = &[2, 5, 4, 3];
/// id-ce-subjectAltName (RFC 5280 §4.2.1.6).
const SUBJECT_ALTERNATIVE_NAME: &[u64] = &[2, 5, 29, 17];

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

    use super::*;

    fn params(name: &str, names: &[&str]) -> CertificateParams {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        params
    }

    #[test]
    fn chain_in_order_is_recognised() {
        let mut root = params("a root", &[]);
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root_key = KeyPair::generate().expect("a key");
        let root_certificate = root.self_signed(&root_key).expect("a certificate");
        let issuer = Issuer::new(root, root_key);
        let key = KeyPair::generate().expect("a key");
        let leaf = params("a leaf", &["a.test", "*.b.test", "192.0.2.1"]);
        let leaf = leaf.signed_by(&key, &issuer).expect("a certificate");
        let [leaf, root] = [leaf.der(), root_certificate.der()]
            .map(|it| Certificate::parse(it).expect("a valid certificate"));
        assert_eq!(leaf.common_name.as_deref(), Some("a leaf"));
        assert_eq!(leaf.issuer_name.as_deref(), Some("a root"));
        assert_eq!(
            (leaf.key, leaf.is_self_signed(), root.is_self_signed()),
            ("ECDSA", false, true)
        );
        assert_eq!(leaf.names, ["a.test", "*.b.test", "192.0.2.1"]);
        assert_eq!(length_in_order(&[leaf.clone(), root.clone()]), 2);
        assert_eq!(length_in_order(&[root, leaf]), 1);
        assert_eq!(length_in_order(&[]), 0);
    }

    #[test]
    fn wildcards_cover_one_label() {
        let made =
            params("x", &["A.test", "*.b.test"]).self_signed(&KeyPair::generate().expect("a key"));
        let leaf =
            Certificate::parse(made.expect("a certificate").der()).expect("a valid certificate");
        for (host, expected) in [
            ("a.test", true),
            ("A.TEST.", true),
            ("x.b.test", true),
            ("b.test", false),
            (".b.test", false),
            ("x.y.b.test", false),
            ("c.test", false),
        ] {
            assert_eq!(leaf.covers(host), expected, "{host}");
        }
    }

    #[test]
    fn damaged_certificates_are_refused() {
        let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]);
        let der = made.expect("random numbers").cert.der().to_vec();
        for len in 0..der.len() {
            let cut = CertificateDer::from(&der[..len]);
            assert_eq!(Certificate::parse(&cut), None, "{len} bytes");
        }
    }
}
