use rustls::pki_types::{ServerName, UnixTime};
use rustls::{ClientConfig, OtherError, RootCertStore};

use super::*;

fn offer() -> HandshakeOffer {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let config = ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .expect("the provider supports the versions")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    HandshakeOffer::over_tcp(&config)
}

/// QUIC passes on the text of an error and its alert, TCP the error: both must be classified alike.
#[test]
fn errors_of_certificates_are_classified_alike_over_quic() {
    use CertificateError as Error;
    use HandshakeFailureKind as Kind;
    let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_000_000));
    #[derive(Debug)]
    struct CaUsedAsEndEntity;
    impl std::fmt::Display for CaUsedAsEndEntity {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("CaUsedAsEndEntity")
        }
    }
    impl std::error::Error for CaUsedAsEndEntity {}
    let expected = ServerName::try_from("a.test").expect("the name is valid");
    for (error, kind) in [
        (Error::Expired, Kind::CertificateExpired),
        (
            Error::ExpiredContext {
                time,
                not_after: time,
            },
            Kind::CertificateExpired,
        ),
        (Error::NotValidYet, Kind::CertificateNotValidYet),
        (
            Error::NotValidYetContext {
                time,
                not_before: time,
            },
            Kind::CertificateNotValidYet,
        ),
        (Error::NotValidForName, Kind::CertificateForOtherName),
        (
            Error::NotValidForNameContext {
                expected,
                presented: vec!["b.test".to_owned()],
            },
            Kind::CertificateForOtherName,
        ),
        (Error::UnknownIssuer, Kind::CertificateUntrusted),
        (Error::BadSignature, Kind::CertificateUntrusted),
        (
            Error::Other(OtherError(std::sync::Arc::new(CaUsedAsEndEntity))),
            Kind::CertificateOfAuthority,
        ),
        (Error::Revoked, Kind::CertificateUnusable),
        (Error::BadEncoding, Kind::CertificateUnusable),
    ] {
        let alert = AlertDescription::from(error.clone());
        let error = rustls::Error::InvalidCertificate(error);
        assert_eq!(kind_of_tls(&error, &offer()), kind, "{error}");
        assert_eq!(
            kind_of_own_alert(alert, &error.to_string()),
            kind,
            "{error}"
        );
    }
}

#[test]
fn alerts_of_the_server_are_classified() {
    use AlertDescription as Alert;
    use HandshakeFailureKind as Kind;
    let without_requested_certificate = || offer().certificate_requested(true);
    for (alert, offer, kind) in [
        (Alert::ProtocolVersion, offer(), Kind::Version),
        (Alert::HandshakeFailure, offer(), Kind::Parameters),
        (Alert::InsufficientSecurity, offer(), Kind::Parameters),
        (Alert::NoApplicationProtocol, offer(), Kind::Protocol),
        (Alert::UnrecognisedName, offer(), Kind::ServerName),
        (
            Alert::CertificateRequired,
            offer(),
            Kind::ClientCertificateRequired,
        ),
        (
            Alert::HandshakeFailure,
            without_requested_certificate(),
            Kind::ClientCertificateRequired,
        ),
        (Alert::UnknownCA, offer(), Kind::Other),
        (
            Alert::InternalError,
            without_requested_certificate(),
            Kind::Other,
        ),
    ] {
        assert_eq!(kind_of_alert(alert, &offer), kind, "{alert:?}");
    }
}

#[test]
fn alerts_about_certificates_are_found_in_texts() {
    let received = rustls::Error::AlertReceived(AlertDescription::UnknownCA);
    let text = format!("connection error: {received}");
    assert_eq!(alert_in_text(&text), Some(AlertDescription::UnknownCA));
    let received = rustls::Error::AlertReceived(AlertDescription::DecodeError);
    assert_eq!(alert_in_text(&received.to_string()), None);
    assert_eq!(alert_in_text("UnknownCA"), None);
}
