//! The time at which a certificate is renewed.

use std::time::{Duration, SystemTime};

use courser_tls::rustls::pki_types::{CertificateDer, Der};
use instant_acme::{CertificateIdentifier, RenewalInfo};
use yasna::{ASN1Result, BERReader, Tag};

use crate::certificates::fields::skip_tagged;

/// Returns the time after two thirds of the lifetime of a certificate.
pub(super) fn by_lifetime(not_before: SystemTime, not_after: SystemTime) -> SystemTime {
    let lifetime = not_after.duration_since(not_before).unwrap_or_default();
    not_after.checked_sub(lifetime / 3).unwrap_or(not_after)
}

/// Returns a point in the period that the ACME server suggests (RFC 9773 §4.2), or `otherwise` if the suggestion
/// makes no sense. `fraction` is a random number below 1.
pub(super) fn suggested(
    info: &RenewalInfo,
    not_after: SystemTime,
    otherwise: SystemTime,
    fraction: f64,
) -> SystemTime {
    let window = &info.suggested_window;
    let (start, end) = (SystemTime::from(window.start), SystemTime::from(window.end));
    match end.duration_since(start) {
        // A period after the expiry would leave the server without a certificate.
        Ok(length) if end < not_after => start + length.mul_f64(fraction),
        _ => otherwise,
    }
}

/// Returns the pause before the next question for a suggestion, if the ACME server asks for this one.
pub(super) fn pause(asked: Duration) -> Duration {
    asked.clamp(MIN_ASK, MAX_ASK)
}

/// Returns the ID of a certificate, by which an ACME server recognizes it (RFC 9773 §4.1). `None` if it has no
/// key identifier of its issuer.
pub(super) fn id(der: &CertificateDer<'_>) -> Option<CertificateIdentifier<'static>> {
    let (serial, issuer) = yasna::parse_der(der, |certificate| {
        certificate.read_sequence(|parts| {
            let ids = parts.next().read_sequence(read_ids)?;
            for _algorithm_signature in 0..2 {
                parts.next().read_der()?;
            }
            Ok(ids)
        })
    })
    .ok()?;
    let id = CertificateIdentifier::new(Der::from_slice(&issuer?), Der::from_slice(&serial));
    Some(id.into_owned())
}

/// Reads the serial number and the key identifier of the issuer (RFC 5280 §4.1.2.2, §4.2.1.1).
fn read_ids(fields: &mut yasna::BERReaderSeq<'_, '_>) -> ASN1Result<(Vec<u8>, Option<Vec<u8>>)> {
    fields.read_optional(|version| skip_tagged(version, 0))?;
    let serial = fields.next().read_tagged_der()?.value().to_vec();
    for _signature_issuer_validity_subject_key in 0..5 {
        fields.next().read_der()?;
    }
    for unique_id in [1, 2] {
        fields.read_optional(|id| skip_tagged(id, unique_id))?;
    }
    let issuer = fields.read_optional(read_issuer)?.flatten();
    Ok((serial, issuer))
}

fn read_issuer(reader: BERReader<'_, '_>) -> ASN1Result<Option<Vec<u8>>> {
    reader.read_tagged(Tag::context(3), |extensions| {
        let mut issuer = None;
        extensions.read_sequence_of(|extension| {
            extension.read_sequence(|extension| {
                let id = extension.next().read_oid()?;
                let _critical = extension.read_default(false, |critical| critical.read_bool())?;
                let value = extension.next().read_bytes()?;
                if id.components().as_slice() == AUTHORITY_KEY_IDENTIFIER {
                    issuer = yasna::parse_der(&value, read_key_identifier)?;
                }
                Ok(())
            })
        })?;
        Ok(issuer)
    })
}

fn read_key_identifier(reader: BERReader<'_, '_>) -> ASN1Result<Option<Vec<u8>>> {
    reader.read_sequence(|fields| {
        let key = fields.read_optional(|key| {
            key.read_tagged_implicit(Tag::context(0), |bytes| bytes.read_bytes())
        })?;
        for other in [1, 2] {
            fields.read_optional(|it| skip_tagged(it, other))?;
        }
        Ok(key)
    })
}

/// id-ce-authorityKeyIdentifier (RFC 5280 §4.2.1.1).
const AUTHORITY_KEY_IDENTIFIER: &[u64] = &[2, 5, 29, 35];

/// Bounds on the pause between two questions for a suggestion, as RFC 9773 §4.3.3 recommends (limit K405).
const MIN_ASK: Duration = Duration::from_secs(60);
const MAX_ASK: Duration = Duration::from_secs(24 * 3600);

/// The pause after a question that was not answered.
pub(super) const ASK_AGAIN: Duration = Duration::from_secs(6 * 3600);

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SerialNumber};

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn at(days: u32) -> SystemTime {
        SystemTime::UNIX_EPOCH + 20_000 * DAY + days * DAY
    }

    fn info(start: SystemTime, end: SystemTime) -> RenewalInfo {
        let text = |time: SystemTime| {
            let seconds = time.duration_since(at(0)).expect("later").as_secs();
            // 20 000 days after 1970.
            let (day, hour) = (seconds / 86_400, seconds / 3600 % 24);
            format!("2024-10-{:02}T{hour:02}:00:00Z", 4 + day)
        };
        let json = format!(
            r#"{{"suggestedWindow": {{"start": "{}", "end": "{}"}}}}"#,
            text(start),
            text(end)
        );
        serde_json::from_str(&json).expect("a suggestion")
    }

    #[test]
    fn certificate_is_renewed_after_two_thirds_of_its_lifetime() {
        assert_eq!(by_lifetime(at(0), at(90)), at(60));
        assert_eq!(by_lifetime(at(0), at(6)), at(4));
    }

    #[test]
    fn suggestion_of_the_server_is_followed_unless_it_is_too_late() {
        let window = info(at(10), at(12));
        assert_eq!(suggested(&window, at(20), at(14), 0.0), at(10));
        assert_eq!(suggested(&window, at(20), at(14), 0.5), at(11));
        assert_eq!(suggested(&window, at(12), at(8), 0.5), at(8));
        let reversed = info(at(12), at(10));
        assert_eq!(suggested(&reversed, at(20), at(14), 0.5), at(14));
    }

    #[test]
    fn pauses_of_the_server_are_bounded() {
        for (asked, expected) in [(0, 60), (60, 60), (3600, 3600), (1 << 30, 24 * 3600)] {
            assert_eq!(
                pause(Duration::from_secs(asked)),
                Duration::from_secs(expected)
            );
        }
    }

    /// The encoding of RFC 9773 §4.1: key identifier and serial number in base64url, joined by a dot.
    #[test]
    fn id_has_the_key_of_the_issuer_and_the_serial_number() {
        let mut root = CertificateParams::default();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = Issuer::new(root, KeyPair::generate().expect("a key"));
        let mut leaf = CertificateParams::new(["a.test".to_owned()]).expect("a name");
        leaf.serial_number = Some(SerialNumber::from(vec![0x87, 0x65, 0x43, 0x21]));
        leaf.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().expect("a key");
        let leaf = leaf.signed_by(&key, &issuer).expect("a certificate");
        let id = id(leaf.der()).expect("an ID");
        // The leading zero keeps the number positive.
        assert_eq!(id.serial, "AIdlQyE");
        assert_eq!(id.authority_key_identifier.len(), 27);
        let (key, serial) = (id.authority_key_identifier.clone(), id.serial.clone());
        assert_eq!(id.to_string(), format!("{key}.{serial}"));
    }

    #[test]
    fn damaged_certificates_have_no_id() {
        let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]);
        let der = made.expect("random numbers").cert.der().to_vec();
        for len in 0..=der.len() {
            assert_eq!(id(&CertificateDer::from(&der[..len])), None, "{len} bytes");
        }
    }
}
