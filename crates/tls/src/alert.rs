//! rustls errors → alerts → CRYPTO_ERROR codes. RFC 9001 §4.8.

use courser_crypto::TlsError;
use rustls::{AlertDescription, Error, HandshakeType, PeerMisbehaved};

/// Turns an error of rustls into ours. `alert` is the one that rustls would send.
pub(crate) fn tls_error(
    error: &Error,
    alert: Option<AlertDescription>,
    is_handshaking: bool,
) -> TlsError {
    let message = error.to_string();
    match error {
        // Bytes left over at a level whose successor's keys exist: RFC 9001 §4.1.3. A ticket for
        // early data of the wrong size: RFC 9001 §4.6.1.
        Error::PeerMisbehaved(
            PeerMisbehaved::KeyEpochWithPendingFragment | PeerMisbehaved::InvalidMaxEarlyDataSize,
        ) => TlsError::protocol_violation(message),
        // Post-handshake client authentication: RFC 9001 §4.4.
        Error::InappropriateHandshakeMessage {
            got_type: HandshakeType::CertificateRequest,
            ..
        } if !is_handshaking => TlsError::protocol_violation(message),
        // RFC 9001 §8.1 has one alert for everything that goes wrong with ALPN.
        Error::PeerMisbehaved(PeerMisbehaved::SelectedUnofferedApplicationProtocol) => {
            TlsError::alert(u8::from(AlertDescription::NoApplicationProtocol), message)
        }
        _ => TlsError::alert(
            u8::from(alert.unwrap_or_else(|| generic_alert(error))),
            message,
        ),
    }
}

/// The alert for errors that rustls returns without choosing one.
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
