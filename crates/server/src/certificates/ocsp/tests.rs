use courser_quic::Identity;
use yasna::models::GeneralizedTime;
use yasna::{DERWriter, construct_der};

use super::*;
use crate::certificates::tests::Folder;

/// The fields of a response that tests modify.
struct ResponseFields {
    status: i64,
    kind: u64,
    serial: Vec<u8>,
    this_update: SystemTime,
    next_update: Option<SystemTime>,
}

impl ResponseFields {
    fn for_certificate(certificate: &CertificateDer<'_>) -> Self {
        Self {
            status: 0,
            kind: 0,
            serial: yasna::parse_der(certificate, read_serial).expect("a certificate"),
            this_update: SystemTime::now() - HOUR,
            next_update: Some(SystemTime::now() + HOUR),
        }
    }

    fn der(&self) -> Vec<u8> {
        let basic = construct_der(|writer| self.write_basic(writer));
        construct_der(|writer| {
            writer.write_sequence(|response| {
                response.next().write_enum(self.status);
                if self.status != 0 {
                    return;
                }
                response.next().write_tagged(Tag::context(0), |bytes| {
                    bytes.write_sequence(|bytes| {
                        let basic_oid = ObjectIdentifier::from_slice(BASIC);
                        bytes.next().write_oid(&basic_oid);
                        bytes.next().write_bytes(&basic);
                    });
                });
            });
        })
    }

    fn write_basic(&self, writer: DERWriter<'_>) {
        writer.write_sequence(|basic| {
            basic.next().write_sequence(|data| {
                let responder = |it: DERWriter<'_>| it.write_bytes(&[1; 20]);
                data.next().write_tagged(Tag::context(2), responder);
                write_time(data.next(), self.this_update);
                data.next().write_sequence(|all| {
                    all.next()
                        .write_sequence(|status| self.write_status(status));
                });
            });
            basic.next().write_sequence(|_algorithm| {});
            basic.next().write_bytes(&[0; 64]);
        });
    }

    fn write_status(&self, status: &mut yasna::DERWriterSeq<'_>) {
        status.next().write_sequence(|id| {
            id.next().write_sequence(|_algorithm| {});
            id.next().write_bytes(&[2; 20]);
            id.next().write_bytes(&[3; 20]);
            id.next().write_der(&self.serial);
        });
        let kind = Tag::context(self.kind);
        status
            .next()
            .write_tagged_implicit(kind, |it| it.write_null());
        write_time(status.next(), self.this_update);
        if let Some(next) = self.next_update {
            let next = |it: DERWriter<'_>| write_time(it, next);
            status.next().write_tagged(Tag::context(0), next);
        }
    }
}

fn write_time(writer: DERWriter<'_>, time: SystemTime) {
    let epoch = GeneralizedTime::parse(b"19700101000000Z").expect("a time");
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    let since = Duration::from_secs(since.expect("after 1970").as_secs());
    let time = GeneralizedTime::from_datetime(*epoch.datetime() + since);
    writer.write_generalized_time(&time);
}

const HOUR: Duration = Duration::from_secs(3600);

fn certificate() -> CertificateDer<'static> {
    Identity::self_signed(["a.test"])
        .expect("random numbers")
        .certificate()
}

#[test]
fn response_for_the_certificate_is_used_until_its_end() {
    let certificate = certificate();
    let fields = ResponseFields::for_certificate(&certificate);
    let until = check(&fields.der(), &certificate, SystemTime::now()).expect("a usable response");
    let left = until.expect("an end").duration_since(SystemTime::now());
    assert!(left.expect("in the future") > HOUR - Duration::from_secs(10));
    let endless = ResponseFields {
        next_update: None,
        ..fields
    };
    assert_eq!(
        check(&endless.der(), &certificate, SystemTime::now()),
        Ok(None)
    );
}

#[test]
fn unusable_responses_are_reported() {
    let own = certificate();
    let fields = || ResponseFields::for_certificate(&own);
    let now = SystemTime::now();
    let cases = [
        (
            "revoked",
            ResponseFields {
                kind: 1,
                ..fields()
            },
        ),
        (
            "does not know",
            ResponseFields {
                kind: 2,
                ..fields()
            },
        ),
        (
            "error 3",
            ResponseFields {
                status: 3,
                ..fields()
            },
        ),
        (
            "another certificate",
            ResponseFields::for_certificate(&certificate()),
        ),
        (
            "expired 2 h ago",
            ResponseFields {
                next_update: Some(now - HOUR - HOUR / 2),
                ..fields()
            },
        ),
        (
            "not valid yet",
            ResponseFields {
                this_update: now + HOUR,
                next_update: None,
                ..fields()
            },
        ),
    ];
    for (reason, fields) in cases {
        let error = check(&fields.der(), &own, now).expect_err(reason);
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn status_is_read_without_the_certificate() {
    let certificate = certificate();
    let read = |status, kind| {
        let fields = ResponseFields {
            status,
            kind,
            ..ResponseFields::for_certificate(&certificate)
        };
        ocsp_status(&fields.der())
    };
    assert_eq!(read(0, 0), Some(OcspStatus::Good));
    assert_eq!(read(0, 1), Some(OcspStatus::Revoked));
    assert_eq!(read(0, 2), Some(OcspStatus::Unknown));
    assert_eq!(read(0, 3), None, "RFC 6960 defines three statuses");
    assert_eq!(read(3, 0), Some(OcspStatus::Unknown), "try later");
    assert_eq!(ocsp_status(b"not a response"), None);
}

#[test]
fn damaged_responses_are_refused() {
    let certificate = certificate();
    let der = ResponseFields::for_certificate(&certificate).der();
    for len in 0..der.len() {
        let error = check(&der[..len], &certificate, SystemTime::now()).expect_err("cut");
        assert!(
            error.contains("not a basic OCSP response"),
            "{len}: {error}"
        );
        assert_eq!(ocsp_status(&der[..len]), None, "{len}");
    }
    for index in 0..der.len() {
        let mut damaged = der.clone();
        damaged[index] ^= 0xff;
        // Must not panic. Names, hashes and the signature may have any value.
        let _ = (
            check(&damaged, &certificate, SystemTime::now()),
            ocsp_status(&damaged),
        );
    }
}

#[test]
fn file_is_read_again_when_it_changes_and_when_the_response_expires() {
    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let path = folder.0.join("a.ocsp");
    let certificate = certificate();
    let mut staple = Staple::new(&path);
    let now = SystemTime::now();
    assert_eq!(staple.read(&certificate, now), None);
    let problem = staple.take_problem().expect("no such file");
    assert!(problem.contains("a.ocsp"), "{problem}");
    assert_eq!(staple.take_problem(), None, "it is reported once");
    let der = ResponseFields::for_certificate(&certificate).der();
    std::fs::write(&path, &der).expect("written");
    assert!(staple.has_changed(now));
    assert_eq!(staple.read(&certificate, now), Some(der));
    assert!(!staple.has_changed(now));
    let later = now + 2 * HOUR;
    assert!(staple.has_changed(later));
    assert_eq!(staple.read(&certificate, later), None);
    let problem = staple.take_problem().expect("expired");
    assert!(problem.contains("expired"), "{problem}");
    assert!(!staple.has_changed(later), "it is read once");
}

#[test]
fn responses_beyond_the_limit_are_not_read() {
    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let path = folder.0.join("long.ocsp");
    std::fs::write(&path, vec![0x30; MAX_RESPONSE + 1]).expect("written");
    let error = read_file(&path).expect_err("too long");
    assert!(error.to_string().contains("16384"), "{error}");
    std::fs::write(&path, vec![0x30; MAX_RESPONSE]).expect("written");
    let longest = read_file(&path).expect("within the limit");
    assert_eq!(longest.len(), MAX_RESPONSE);
}
