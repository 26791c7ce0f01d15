//! The certificate status in an OCSP response. RFC 6960.

use std::fmt;

/// The status of a certificate in an OCSP response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OcspStatus {
    /// The certificate is not revoked.
    Good,
    /// The certificate is revoked.
    Revoked,
    /// The responder does not know the certificate, or has not answered.
    Unknown,
}

impl fmt::Display for OcspStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Good => "good",
            Self::Revoked => "revoked",
            Self::Unknown => "unknown",
        })
    }
}

/// Reads the status of the first certificate in an OCSP response in DER (RFC 6960 §4.2.1). Neither the
/// signature nor the time is checked. Returns `None` if it is not a response.
pub(crate) fn ocsp_status(response: &[u8]) -> Option<OcspStatus> {
    let (response, _) = element(response, SEQUENCE)?;
    let (status, rest) = element(response, ENUMERATED)?;
    if status != [0] {
        return Some(OcspStatus::Unknown);
    }
    let (bytes, _) = element(rest, CONTEXT_0)?;
    let (bytes, _) = element(bytes, SEQUENCE)?;
    let (_, rest) = element(bytes, OBJECT_IDENTIFIER)?;
    let (basic, _) = element(rest, OCTET_STRING)?;
    let (basic, _) = element(basic, SEQUENCE)?;
    let (data, _) = element(basic, SEQUENCE)?;
    // The version, which is left out if it is the default.
    let data = element(data, CONTEXT_0).map_or(data, |(_, rest)| rest);
    let (_responder, data) = any(data)?;
    let (_produced_at, data) = any(data)?;
    let (responses, _) = element(data, SEQUENCE)?;
    let (single, _) = element(responses, SEQUENCE)?;
    let (_certificate, single) = element(single, SEQUENCE)?;
    match single.first()? & TAG_NUMBER {
        0 => Some(OcspStatus::Good),
        1 => Some(OcspStatus::Revoked),
        2 => Some(OcspStatus::Unknown),
        _ => None,
    }
}

/// Returns the content of an element with this tag, and what follows it.
fn element(input: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    any(input).filter(|_| input.first() == Some(&tag))
}

/// Returns the content of an element, and what follows it.
fn any(input: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[_, first], rest) = input.split_first_chunk()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => {
            let (&[length], rest) = rest.split_first_chunk()?;
            (usize::from(length), rest)
        }
        0x82 => {
            let (&length, rest) = rest.split_first_chunk()?;
            (usize::from(u16::from_be_bytes(length)), rest)
        }
        // Longer than what a client keeps.
        _ => return None,
    };
    rest.split_at_checked(length)
}

const ENUMERATED: u8 = 0x0a;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
/// A constructed element with the number 0 of its context.
const CONTEXT_0: u8 = 0xa0;
/// The bits of a tag that hold its number.
const TAG_NUMBER: u8 = 0x1f;

#[cfg(test)]
mod tests {
    use super::*;

    fn wrap(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let length = u16::try_from(content.len()).expect("short");
        let header = match length {
            0..=0x7f => vec![tag, length.to_be_bytes()[1]],
            0x80..=0xff => vec![tag, 0x81, length.to_be_bytes()[1]],
            _ => [&[tag, 0x82][..], &length.to_be_bytes()].concat(),
        };
        [header, content].concat()
    }

    /// Returns a response with this status of the certificate, and padding that makes lengths longer.
    fn response(status: &[u8], padding: usize, has_version: bool) -> Vec<u8> {
        let version = match has_version {
            true => wrap(CONTEXT_0, &[&[2, 1, 0]]),
            false => Vec::new(),
        };
        let single = wrap(SEQUENCE, &[&wrap(SEQUENCE, &[&vec![5; padding]]), status]);
        let responder = wrap(0xa2, &[&[4, 1, 7]]);
        let time = wrap(0x18, &[b"20260101000000Z"]);
        let all = wrap(SEQUENCE, &[&single]);
        let data = wrap(SEQUENCE, &[&version, &responder, &time, &all]);
        let basic = wrap(SEQUENCE, &[&data, &[0x30, 0]]);
        let bytes = wrap(OCTET_STRING, &[&basic]);
        let bytes = wrap(SEQUENCE, &[&[6, 1, 9], &bytes]);
        let bytes = wrap(CONTEXT_0, &[&bytes]);
        wrap(SEQUENCE, &[&[ENUMERATED, 1, 0], &bytes])
    }

    #[test]
    fn status_is_found_behind_fields_of_any_length() {
        for padding in [0, 100, 200, 1000] {
            for has_version in [false, true] {
                let read = |status: &[u8]| ocsp_status(&response(status, padding, has_version));
                assert_eq!(read(&[0x80, 0]), Some(OcspStatus::Good), "{padding}");
                let revoked = wrap(0xa1, &[&wrap(0x18, &[b"20250101000000Z"])]);
                assert_eq!(read(&revoked), Some(OcspStatus::Revoked), "{padding}");
                assert_eq!(read(&[0x82, 0]), Some(OcspStatus::Unknown), "{padding}");
                assert_eq!(read(&[0x83, 0]), None, "{padding}");
            }
        }
        let try_later = wrap(SEQUENCE, &[&[ENUMERATED, 1, 3]]);
        assert_eq!(ocsp_status(&try_later), Some(OcspStatus::Unknown));
    }

    #[test]
    fn truncated_responses_have_no_status() {
        let whole = response(&[0x80, 0], 200, true);
        for length in 0..whole.len() {
            assert_eq!(ocsp_status(&whole[..length]), None, "{length} bytes");
        }
        assert_eq!(ocsp_status(b"not a response"), None);
        assert_eq!(ocsp_status(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
