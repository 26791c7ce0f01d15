//! Conversion of rustls errors to alerts and CRYPTO_ERROR codes. RFC 9001 §4.8.

use courser_crypto::TlsError;
use rustls::{AlertDescription, Error, HandshakeType, PeerMisbehaved};

/// Converts an error of rustls. `alert` is the one that rustls would send.
pub(crate) fn tls_error(
    error: &Error,
    alert: Option<AlertDescription>,
    is_handshaking: bool,
) -> TlsError {
    let message = error.to_string();
    match error {
        // Unread bytes remain at a level although the keys of the next level exist (RFC 9001
        // §4.1.3), or a ticket permits early data of the wrong size (RFC 9001 §4.6.1).
        Error::PeerMisbehaved(
            PeerMisbehaved::KeyEpochWithPendingFragment | PeerMisbehaved::InvalidMaxEarlyDataSize,
        ) => TlsError::protocol_violation(message),
        // Post-handshake client authentication: RFC 9001 §4.4.
        Error::InappropriateHandshakeMessage {
            got_type: HandshakeType::CertificateRequest,
            ..
        } if !is_handshaking => TlsError::protocol_violation(message),
        // RFC 9001 §8.1 assigns a single alert to all ALPN failures.
        Error::PeerMisbehaved(PeerMisbehaved::SelectedUnofferedApplicationProtocol) => {
            TlsError::alert(u8::from(AlertDescription::NoApplicationProtocol), message)
        }
        _ => TlsError::alert(
            u8::from(alert.unwrap_or_else(|| generic_alert(error))),
            message,
        ),
    }
}

/// Returns the alert for errors that rustls returns without an alert.
fn generic_alert(error: &Error) -> AlertDescription {
    match error {
        Error::InvalidMessage(_) => AlertDescription::DecodeError,
        Error::InvalidCertificate(reason) => AlertDescription::from(reason.clone()),
        Error::PeerMisbehaved(_) => AlertDescription::IllegalParameter,
        Error::PeerIncompatible(_) => AlertDescription::HandshakeFailure,
        Error::DecryptError => AlertDescription::DecryptError,
        Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => {
            AlertDescription::UnexpectedMessage
        }
        _ => AlertDescription::InternalError,
    }
}
