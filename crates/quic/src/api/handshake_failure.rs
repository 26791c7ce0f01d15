//! Failures of TLS handshakes, with descriptions that name the client's offer.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use courser_tls::rustls::{self, AlertDescription};
use courser_tls::{
    HandshakeFailureKind, HandshakeOffer, alert_in_text, is_about_certificates, kind_of_alert,
    kind_of_own_alert, kind_of_tls,
};

use courser_transport::ConnectionError;

/// The reason why a TLS handshake with a server failed.
///
/// [`Display`](fmt::Display) writes one line: the observation, the client's offer, and a remedy.
/// Programs with command-line flags name these through
/// [`with_remedy`](HandshakeFailure::with_remedy).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandshakeFailure {
    place: String,
    kind: HandshakeFailureKind,
    seen: String,
    detail: String,
}

impl HandshakeFailure {
    /// Describes an error of a TLS stream over TCP. Returns `None` if TLS is not the cause.
    ///
    /// `place` names the server in messages; its certificate must be valid for `server_name`.
    pub fn of_io(
        error: &io::Error,
        place: &str,
        server_name: &str,
        offer: &HandshakeOffer,
    ) -> Option<Self> {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        let tls = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<rustls::Error>());
        let (kind, detail) = match (tls, error.kind()) {
            (Some(tls), _) => (kind_of_tls(tls, offer), tls.to_string()),
            (None, UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe) => {
                let kind = match offer.lacks_certificate() {
                    true => HandshakeFailureKind::ClientCertificateRequired,
                    false => HandshakeFailureKind::Closed,
                };
                (kind, error.to_string())
            }
            (None, _) => return None,
        };
        Some(Self::new(kind, place, server_name, offer, detail))
    }

    /// Describes why there is no QUIC connection. Returns `None` if TLS is not the cause.
    pub fn of_quic(
        error: &ConnectionError,
        place: &str,
        server_name: &str,
        offer: &HandshakeOffer,
    ) -> Option<Self> {
        let (kind, detail) = match error {
            ConnectionError::TransportError(own) => {
                let alert = AlertDescription::from(own.code.alert()?);
                (
                    kind_of_own_alert(alert, &own.reason),
                    own.reason.to_string(),
                )
            }
            ConnectionError::ConnectionClosed(close) => {
                let alert = AlertDescription::from(close.code.alert()?);
                (kind_of_alert(alert, offer), error.to_string())
            }
            _ => return None,
        };
        Some(Self::new(kind, place, server_name, offer, detail))
    }

    /// Describes an alert that ended a connection after its handshake: servers with TLS 1.3 refuse
    /// clients without a certificate only then. Returns `None` for other errors.
    pub fn after_handshake(error: &(dyn StdError + 'static), place: &str) -> Option<Self> {
        let mut causes = std::iter::successors(Some(error), |error| (*error).source());
        let alert = causes.find_map(|cause| {
            let io = cause.downcast_ref::<io::Error>();
            let inside = io.and_then(io::Error::get_ref);
            let tls = match inside {
                Some(inside) => inside.downcast_ref::<rustls::Error>(),
                None => cause.downcast_ref::<rustls::Error>(),
            };
            match (tls, cause.downcast_ref::<ConnectionError>()) {
                (Some(rustls::Error::AlertReceived(alert)), _) => Some(*alert),
                (_, Some(ConnectionError::ConnectionClosed(close))) => {
                    close.code.alert().map(AlertDescription::from)
                }
                // HTTP/2 keeps the text only.
                _ => alert_in_text(&cause.to_string()),
            }
        })?;
        let kind = match alert {
            AlertDescription::CertificateRequired => {
                HandshakeFailureKind::ClientCertificateRequired
            }
            alert if is_about_certificates(alert) => HandshakeFailureKind::ClientCertificateRefused,
            _ => return None,
        };
        Some(Self {
            place: place.to_owned(),
            kind,
            seen: kind.seen_of_client_certificate().to_owned(),
            detail: format!("TLS alert {alert:?}"),
        })
    }

    fn new(
        kind: HandshakeFailureKind,
        place: &str,
        server_name: &str,
        offer: &HandshakeOffer,
        detail: String,
    ) -> Self {
        Self {
            place: place.to_owned(),
            kind,
            seen: kind.seen(server_name, offer),
            detail,
        }
    }

    /// Returns the kind of the failure.
    pub fn kind(&self) -> HandshakeFailureKind {
        self.kind
    }

    /// Returns true if the server's certificate is the reason.
    pub fn is_certificate(&self) -> bool {
        use HandshakeFailureKind as Kind;
        matches!(
            self.kind,
            Kind::CertificateExpired
                | Kind::CertificateNotValidYet
                | Kind::CertificateForOtherName
                | Kind::CertificateUntrusted
                | Kind::CertificateOfAuthority
                | Kind::CertificateUnusable
        )
    }

    /// Returns the observation, without place, remedy and detail.
    pub fn seen(&self) -> &str {
        &self.seen
    }

    /// Returns the line with another remedy, for example one that names flags.
    pub fn with_remedy(&self, remedy: &str) -> String {
        let Self {
            place,
            seen,
            detail,
            ..
        } = self;
        match remedy {
            "" => format!("{place}: {seen} ({detail})"),
            remedy => format!("{place}: {seen}: {remedy} ({detail})"),
        }
    }
}

impl fmt::Display for HandshakeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use HandshakeFailureKind as Kind;
        let remedy = match self.kind {
            Kind::CertificateExpired => "the server needs a new one",
            Kind::CertificateNotValidYet => "check the clocks",
            Kind::CertificateForOtherName | Kind::ServerName => {
                "connect by a name of the certificate"
            }
            Kind::CertificateUntrusted => "add its root, or accept any certificate",
            Kind::CertificateOfAuthority => "make one with CA:FALSE",
            Kind::Version | Kind::Parameters => "update or reconfigure the TLS of the server",
            Kind::Protocol => "allow another version of HTTP",
            Kind::ClientCertificateRequired => "set a client certificate",
            Kind::ClientCertificateRefused => "set one whose issuer the server trusts",
            Kind::EchRejected => "get its present ECHConfigList, or connect without",
            Kind::NotTls => "use http:// if it serves plain HTTP",
            Kind::Closed => "check that it speaks TLS on this port",
            _ => "",
        };
        f.write_str(&self.with_remedy(remedy))
    }
}

impl StdError for HandshakeFailure {}
