//! OCSP responses in files (RFC 6960), for stapling (RFC 6066 §8).
//!
//! A response is not stapled if clients would refuse the connection or ignore the response because of it: if it
//! is for another certificate, has another status than good, or is not valid at this time. Clients verify the
//! signature.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use courser_tls::rustls::pki_types::CertificateDer;
use yasna::models::ObjectIdentifier;
use yasna::{ASN1Error, ASN1ErrorKind, ASN1Result, BERReader, Tag};

use super::fields::{skip_tagged, time};
use super::file_stamp::FileStamp;

/// The file with the OCSP response of a certificate.
#[derive(Debug)]
pub(super) struct Staple {
    path: PathBuf,
    /// The stamp of the file when it was last read, successfully or not.
    seen: FileStamp,
    /// The end of validity of the response in use, if it has one.
    until: Option<SystemTime>,
    /// The reason for which no response is in use, until it is reported.
    problem: Option<String>,
}

impl Staple {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            seen: FileStamp::default(),
            until: None,
            problem: None,
        }
    }

    /// Returns true if the file was replaced, or the response in use has expired.
    pub(super) fn has_changed(&self, now: SystemTime) -> bool {
        FileStamp::at(&self.path) != self.seen || self.until.is_some_and(|until| until <= now)
    }

    /// Reads the response for a certificate. Returns `None` and remembers the reason if it cannot be used.
    pub(super) fn read(
        &mut self,
        certificate: &CertificateDer<'_>,
        now: SystemTime,
    ) -> Option<Vec<u8>> {
        // The stamp is taken before, so that changes during the read cause another read.
        self.seen = FileStamp::at(&self.path);
        (self.until, self.problem) = (None, None);
        let read = read_file(&self.path).map_err(|error| error.to_string());
        let checked = read.and_then(|bytes| {
            let until = check(&bytes, certificate, now)?;
            Ok((bytes, until))
        });
        match checked {
            Ok((bytes, until)) => {
                self.until = until;
                Some(bytes)
            }
            Err(reason) => {
                let path = self.path.display();
                self.problem = Some(format!("no OCSP response is stapled: {path}: {reason}"));
                None
            }
        }
    }

    /// Returns the reason for which no response is in use, and clears it.
    pub(super) fn take_problem(&mut self) -> Option<String> {
        self.problem.take()
    }
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = MAX_RESPONSE as u64 + 1;
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_RESPONSE {
        let text = format!("longer than {MAX_RESPONSE} bytes, the largest size allowed");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// Checks a response for a certificate. Returns the end of its validity, if it has one.
fn check(
    response: &[u8],
    certificate: &CertificateDer<'_>,
    now: SystemTime,
) -> Result<Option<SystemTime>, String> {
    let malformed = |_| "not a basic OCSP response (DER)".to_owned();
    let outer = yasna::parse_der(response, read_response).map_err(malformed)?;
    let basic = outer.map_err(|status| format!("the responder reports error {status}"))?;
    let statuses = yasna::parse_der(&basic, read_basic).map_err(malformed)?;
    let serial = yasna::parse_der(certificate, read_serial)
        .map_err(|_| "the certificate cannot be parsed".to_owned())?;
    let status = statuses.into_iter().find(|status| status.serial == serial);
    let status = status.ok_or("the response is for another certificate")?;
    match status.kind {
        OcspStatus::Good => {}
        OcspStatus::Revoked => return Err("the certificate is revoked".to_owned()),
        OcspStatus::Unknown => return Err("the responder does not know the certificate".to_owned()),
    }
    let until = status.next_update.map(time);
    if let Some(ago) = until.and_then(|until| now.duration_since(until).ok()) {
        let hours = ago.as_secs().div_ceil(3600);
        return Err(format!("the response expired {hours} h ago"));
    }
    if time(status.this_update) > now + CLOCK_SKEW {
        return Err("the response is not valid yet".to_owned());
    }
    Ok(until)
}

/// The status of a certificate in an OCSP response.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OcspStatus {
    /// The certificate is not revoked.
    Good,
    /// The certificate is revoked.
    Revoked,
    /// The responder does not know the certificate, or has sent an error status.
    Unknown,
}

/// Returns the status of the first certificate in an OCSP response in DER, for diagnostics of clients. Neither
/// the signature nor the time is checked. Returns `None` if the response is malformed.
#[doc(hidden)]
pub fn ocsp_status(response: &[u8]) -> Option<OcspStatus> {
    let Ok(basic) = yasna::parse_der(response, read_response).ok()? else {
        return Some(OcspStatus::Unknown);
    };
    let statuses = yasna::parse_der(&basic, read_basic).ok()?;
    statuses.first().map(|status| status.kind)
}

/// The status of one certificate in a response. Times are in seconds since 1970.
struct Status {
    /// The serial number of the certificate in DER.
    serial: Vec<u8>,
    kind: OcspStatus,
    this_update: i64,
    next_update: Option<i64>,
}

/// Parses an OCSPResponse. Returns its BasicOCSPResponse, or the error status of the responder.
fn read_response(reader: BERReader<'_, '_>) -> ASN1Result<Result<Vec<u8>, i64>> {
    reader.read_sequence(|response| {
        let status = response.next().read_enum()?;
        if status != 0 {
            return Ok(Err(status));
        }
        let bytes = response.next().read_tagged(Tag::context(0), |bytes| {
            bytes.read_sequence(|bytes| {
                if bytes.next().read_oid()? != ObjectIdentifier::from_slice(BASIC) {
                    return Err(ASN1Error::new(ASN1ErrorKind::Invalid));
                }
                bytes.next().read_bytes()
            })
        })?;
        Ok(Ok(bytes))
    })
}

/// Parses the statuses in a BasicOCSPResponse.
fn read_basic(reader: BERReader<'_, '_>) -> ASN1Result<Vec<Status>> {
    reader.read_sequence(|basic| {
        let statuses = basic.next().read_sequence(|data| {
            data.read_optional(|version| skip_tagged(version, 0))?;
            let _responder = data.next().read_der()?;
            let _produced_at = data.next().read_der()?;
            let statuses = data.next().collect_sequence_of(read_status)?;
            data.read_optional(|extensions| skip_tagged(extensions, 1))?;
            Ok(statuses)
        })?;
        for _algorithm_signature in 0..2 {
            basic.next().read_der()?;
        }
        basic.read_optional(|certificates| skip_tagged(certificates, 0))?;
        Ok(statuses)
    })
}

/// Parses a SingleResponse (RFC 6960 §4.2.1).
fn read_status(reader: BERReader<'_, '_>) -> ASN1Result<Status> {
    reader.read_sequence(|status| {
        let serial = status.next().read_sequence(|id| {
            for _algorithm_name_key in 0..3 {
                id.next().read_der()?;
            }
            id.next().read_der()
        })?;
        let kind = status.next();
        let number = kind.lookahead_tag()?.tag_number;
        kind.read_der()?;
        let kind = match number {
            0 => OcspStatus::Good,
            1 => OcspStatus::Revoked,
            2 => OcspStatus::Unknown,
            _ => return Err(ASN1Error::new(ASN1ErrorKind::Invalid)),
        };
        let this_update = read_time(status.next())?;
        let next_update =
            status.read_optional(|next| next.read_tagged(Tag::context(0), read_time))?;
        status.read_optional(|extensions| skip_tagged(extensions, 1))?;
        Ok(Status {
            serial,
            kind,
            this_update,
            next_update,
        })
    })
}

fn read_time(reader: BERReader<'_, '_>) -> ASN1Result<i64> {
    Ok(reader.read_generalized_time()?.datetime().unix_timestamp())
}

/// Parses the serial number of a certificate as DER (RFC 5280 §4.1).
fn read_serial(reader: BERReader<'_, '_>) -> ASN1Result<Vec<u8>> {
    reader.read_sequence(|certificate| {
        let serial = certificate.next().read_sequence(|fields| {
            fields.read_optional(|version| skip_tagged(version, 0))?;
            let serial = fields.next().read_der()?;
            while fields.read_optional(|field| field.read_der())?.is_some() {}
            Ok(serial)
        })?;
        for _algorithm_signature in 0..2 {
            certificate.next().read_der()?;
        }
        Ok(serial)
    })
}

/// Longest response that is read (limit K188). Usual ones have 500 to 2500 bytes.
const MAX_RESPONSE: usize = 16 * 1024;

/// Tolerance for responders whose clocks are ahead.
const CLOCK_SKEW: Duration = Duration::from_secs(300);

/// id-pkix-ocsp-basic (RFC 6960 §4.2.1).
const BASIC: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 48, 1, 1];

#[cfg(test)]
mod tests;
