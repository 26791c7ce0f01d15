//! The fields of a certificate on which trust by hash depends (RFC 5280 §4.1), in DER.

/// The fields of one certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fields {
    /// Start and end of the validity in seconds since 1970. The end is not before the start.
    pub(super) not_before: u64,
    pub(super) not_after: u64,
    /// True for a key for ECDSA on P-256 (RFC 5480 §2.1.1).
    pub(super) has_p256_key: bool,
}

impl Fields {
    /// Parses a certificate. Returns `None` if it is malformed, or ends before 1970.
    pub(super) fn parse(certificate: &[u8]) -> Option<Self> {
        let mut outer = Der(certificate);
        let mut certificate = Der(outer.value(SEQUENCE)?);
        if !outer.0.is_empty() {
            return None;
        }
        let mut fields = Der(certificate.value(SEQUENCE)?);
        if fields.0.first() == Some(&VERSION) {
            fields.value(VERSION)?;
        }
        fields.value(INTEGER)?; // serialNumber
        fields.value(SEQUENCE)?; // signature
        fields.value(SEQUENCE)?; // issuer
        let mut validity = Der(fields.value(SEQUENCE)?);
        let (not_before, not_after) = (validity.time()?, validity.time()?);
        fields.value(SEQUENCE)?; // subject
        let mut key = Der(fields.value(SEQUENCE)?);
        let algorithm = key.value(SEQUENCE)?;
        (not_before <= not_after).then_some(Self {
            not_before,
            not_after,
            has_p256_key: algorithm == EC_KEY_ON_P256,
        })
    }
}

/// Values in DER that are not read yet (X.690 §8.1).
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// Takes the next value, which has this tag.
    fn value(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (first, value) = self.next()?;
        (first == tag).then_some(value)
    }

    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            // Certificates of more than 64 KiB do not fit a handshake.
            0x81 | 0x82 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x0f))?;
                let length = bytes
                    .iter()
                    .fold(0, |sum, byte| (sum << 8) | usize::from(*byte));
                (length, rest)
            }
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, value))
    }

    /// Takes a time (RFC 5280 §4.1.2.5), in seconds since 1970.
    fn time(&mut self) -> Option<u64> {
        let (tag, text) = self.next()?;
        let (year, rest) = match tag {
            UTC_TIME => {
                let (year, rest) = digits(text, 2)?;
                (if year < 50 { 2000 + year } else { 1900 + year }, rest)
            }
            GENERALIZED_TIME => digits(text, 4)?,
            _ => return None,
        };
        let (month, rest) = digits(rest, 2)?;
        let (day, rest) = digits(rest, 2)?;
        let (hour, rest) = digits(rest, 2)?;
        let (minute, rest) = digits(rest, 2)?;
        let (second, rest) = digits(rest, 2)?;
        let is_valid = (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        if !is_valid || rest != b"Z" {
            return None;
        }
        let days = days_since_1970(year, month, day)?;
        Some(((days * 24 + hour) * 60 + minute) * 60 + second)
    }
}

fn digits(text: &[u8], count: usize) -> Option<(u64, &[u8])> {
    let (digits, rest) = text.split_at_checked(count)?;
    let is_number = digits.iter().all(u8::is_ascii_digit);
    let value = digits.iter().fold(0, |sum, digit| {
        sum * 10 + u64::from(digit - b'0' * u8::from(is_number))
    });
    is_number.then_some((value, rest))
}

/// Returns the number of days from 1970-01-01 to a date of the Gregorian calendar.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    // Years that begin in March have their leap day at the end.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year.checked_sub(1)?, month + 9)
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days = 365 * year + leap_days + (153 * month + 2) / 5 + day - 1;
    days.checked_sub(DAYS_BEFORE_1970)
}

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// The tag `[0]` of a version.
const VERSION: u8 = 0xa0;
/// The OIDs id-ecPublicKey and secp256r1 (RFC 5480 §2.1.1).
const EC_KEY_ON_P256: &[u8] = &[
    0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d,
    0x03, 0x01, 0x07,
];
/// Days from 0000-03-01 to 1970-01-01.
const DAYS_BEFORE_1970: u64 = 719_468;

#[cfg(test)]
mod tests {
    use super::*;

    fn time(tag: u8, text: &str) -> Option<u64> {
        let der = [
            &[tag, u8::try_from(text.len()).expect("short")],
            text.as_bytes(),
        ]
        .concat();
        Der(&der).time()
    }

    #[test]
    fn times_are_seconds_since_1970() {
        for (tag, text, expected) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "000229120000Z", Some(951_825_600)),
            (UTC_TIME, "261130123456Z", Some(1_796_042_096)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (GENERALIZED_TIME, "20500101000000Z", Some(2_524_608_000)),
            (GENERALIZED_TIME, "40960101000000Z", Some(67_090_118_400)),
            // Not DER, or no time.
            (UTC_TIME, "500101000000Z", None),
            (UTC_TIME, "261301000000Z", None),
            (UTC_TIME, "2611301234Z", None),
            (UTC_TIME, "261130123456+0100", None),
            (UTC_TIME, "26113012345aZ", None),
            (INTEGER, "261130123456Z", None),
        ] {
            assert_eq!(time(tag, text), expected, "{text}");
        }
    }

    /// Nothing that is cut or changed panics.
    #[test]
    fn malformed_certificates_are_refused() {
        let key = rcgen::KeyPair::generate().expect("a key");
        let certificate = rcgen::CertificateParams::new(["a.test".to_owned()])
            .and_then(|it| it.self_signed(&key))
            .expect("a certificate");
        let der = certificate.der();
        assert!(Fields::parse(der).is_some_and(|it| it.has_p256_key));
        for len in 0..der.len() {
            assert_eq!(Fields::parse(&der[..len]), None, "{len}");
        }
        for at in 0..der.len() {
            for bit in 0..8 {
                let mut changed = der.to_vec();
                changed[at] ^= 1 << bit;
                let _ = Fields::parse(&changed);
            }
        }
    }
}
