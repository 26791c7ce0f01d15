//! Kinds of failed handshakes, and the errors that belong to them.

use rustls::{AlertDescription, CertificateError, PeerIncompatible};

use super::offer::HandshakeOffer;

/// Classifies failed handshakes by remedy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum HandshakeFailureKind {
    /// The server's certificate has expired.
    CertificateExpired,
    /// The server's certificate is not valid yet.
    CertificateNotValidYet,
    /// The server's certificate is for other names.
    CertificateForOtherName,
    /// The server's certificate has no trusted issuer.
    CertificateUntrusted,
    /// The server's certificate is that of a certificate authority.
    CertificateOfAuthority,
    /// The server's certificate is revoked, damaged or made for another purpose.
    CertificateUnusable,
    /// The server supports none of the versions of TLS offered.
    Version,
    /// The server supports none of the cipher suites, key exchange groups or signature schemes
    /// offered.
    Parameters,
    /// The server supports none of the application protocols offered (ALPN).
    Protocol,
    /// The server has no certificate for the requested name.
    ServerName,
    /// The server requires a client certificate, and none was sent.
    ClientCertificateRequired,
    /// The server refuses the client certificate.
    ClientCertificateRefused,
    /// The server rejects Encrypted Client Hello (ECH).
    EchRejected,
    /// The server answers with a protocol other than TLS.
    NotTls,
    /// The server closed the connection during the handshake.
    Closed,
    /// Another failure of the handshake.
    Other,
}

impl HandshakeFailureKind {
    /// Describes a failed handshake with `server_name`, in terms of what the client observed.
    pub fn seen(self, server_name: &str, offer: &HandshakeOffer) -> String {
        use HandshakeFailureKind as Kind;
        let versions = offer.versions();
        match self {
            Kind::CertificateExpired => "the certificate has expired".to_owned(),
            Kind::CertificateNotValidYet => "the certificate is not valid yet".to_owned(),
            Kind::CertificateForOtherName => format!("the certificate is not for {server_name}"),
            Kind::CertificateUntrusted => "the certificate is not trusted".to_owned(),
            Kind::CertificateOfAuthority => {
                "the certificate is that of a certificate authority (CA:TRUE), not of a server"
                    .to_owned()
            }
            Kind::CertificateUnusable => "the certificate cannot be used".to_owned(),
            Kind::Version => format!("the server supports no version of TLS offered ({versions})"),
            Kind::Parameters => format!(
                "the server supports no cipher suite, key exchange group or signature scheme of \
                 the offer: {versions} with ECDHE ({}) and AES-128-GCM, AES-256-GCM or \
                 ChaCha20-Poly1305",
                offer.groups()
            ),
            Kind::Protocol => format!("the server does not speak {} (ALPN)", offer.protocols()),
            Kind::ServerName => format!("the server has no certificate for {server_name}"),
            Kind::ClientCertificateRequired | Kind::ClientCertificateRefused => {
                self.seen_of_client_certificate().to_owned()
            }
            Kind::EchRejected => format!(
                "the server rejected Encrypted Client Hello, and proved that it may ({versions} offered)"
            ),
            Kind::NotTls => "the server does not speak TLS on this port".to_owned(),
            Kind::Closed => {
                format!(
                    "the server closed the connection during the handshake ({versions} offered)"
                )
            }
            Kind::Other => format!("the TLS handshake failed ({versions} offered)"),
        }
    }

    /// Describes a failure that concerns the certificate of the client.
    pub const fn seen_of_client_certificate(self) -> &'static str {
        match self {
            HandshakeFailureKind::ClientCertificateRequired => {
                "the server requires a client certificate, and none was sent"
            }
            _ => "the server refuses the client certificate",
        }
    }
}

/// Classifies errors of rustls.
pub fn kind_of_tls(error: &rustls::Error, offer: &HandshakeOffer) -> HandshakeFailureKind {
    use HandshakeFailureKind as Kind;
    match error {
        rustls::Error::AlertReceived(alert) => kind_of_alert(*alert, offer),
        rustls::Error::InvalidCertificate(reason) => kind_of_certificate(reason),
        rustls::Error::NoCertificatesPresented => Kind::CertificateUnusable,
        rustls::Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        ) => Kind::Version,
        rustls::Error::PeerIncompatible(
            PeerIncompatible::NoCipherSuitesInCommon
            | PeerIncompatible::NoKxGroupsInCommon
            | PeerIncompatible::NoSignatureSchemesInCommon
            | PeerIncompatible::NoEcPointFormatsInCommon,
        ) => Kind::Parameters,
        rustls::Error::PeerIncompatible(PeerIncompatible::ServerRejectedEncryptedClientHello(
            _,
        )) => Kind::EchRejected,
        rustls::Error::NoApplicationProtocol => Kind::Protocol,
        // The first bytes are not a TLS record: usually they are "HTTP/1.1 400".
        rustls::Error::InvalidMessage(_) => Kind::NotTls,
        _ => Kind::Other,
    }
}

/// Classifies alerts of the server.
pub fn kind_of_alert(alert: AlertDescription, offer: &HandshakeOffer) -> HandshakeFailureKind {
    use AlertDescription as Alert;
    use HandshakeFailureKind as Kind;
    match alert {
        Alert::ProtocolVersion => Kind::Version,
        Alert::CertificateRequired => Kind::ClientCertificateRequired,
        // TLS 1.2 has no alert for a missing certificate.
        Alert::HandshakeFailure | Alert::BadCertificate | Alert::AccessDenied
            if offer.lacks_certificate() =>
        {
            Kind::ClientCertificateRequired
        }
        Alert::HandshakeFailure | Alert::InsufficientSecurity => Kind::Parameters,
        Alert::NoApplicationProtocol => Kind::Protocol,
        Alert::UnrecognisedName => Kind::ServerName,
        alert if offer.has_certificate && is_about_certificates(alert) => {
            Kind::ClientCertificateRefused
        }
        _ => Kind::Other,
    }
}

/// Returns true for alerts about the certificate of the peer that receives them.
pub const fn is_about_certificates(alert: AlertDescription) -> bool {
    use AlertDescription as Alert;
    matches!(
        alert,
        Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied
    )
}

/// Returns the alert about a certificate at the end of an error text, which is that of rustls if a
/// library has converted its error.
pub fn alert_in_text(text: &str) -> Option<AlertDescription> {
    use AlertDescription as Alert;
    let alerts = [
        Alert::CertificateRequired,
        Alert::BadCertificate,
        Alert::UnsupportedCertificate,
        Alert::CertificateRevoked,
        Alert::CertificateExpired,
        Alert::CertificateUnknown,
        Alert::UnknownCA,
        Alert::AccessDenied,
    ];
    let is_it = |alert: &Alert| {
        let received = rustls::Error::AlertReceived(*alert).to_string();
        text.ends_with(&received)
    };
    alerts.into_iter().find(is_it)
}

fn kind_of_certificate(error: &CertificateError) -> HandshakeFailureKind {
    use CertificateError as Error;
    use HandshakeFailureKind as Kind;
    match error {
        Error::Expired | Error::ExpiredContext { .. } => Kind::CertificateExpired,
        Error::NotValidYet | Error::NotValidYetContext { .. } => Kind::CertificateNotValidYet,
        Error::NotValidForName | Error::NotValidForNameContext { .. } => {
            Kind::CertificateForOtherName
        }
        Error::UnknownIssuer | Error::BadSignature => Kind::CertificateUntrusted,
        Error::Other(other) if other.to_string().contains(OF_AUTHORITY) => {
            Kind::CertificateOfAuthority
        }
        _ => Kind::CertificateUnusable,
    }
}

/// The verifier's error for the certificate of an authority, for which rustls has no variant.
const OF_AUTHORITY: &str = "CaUsedAsEndEntity";

/// Classifies failures that this end detected over QUIC, where only the alert and the text of the
/// error are available.
pub fn kind_of_own_alert(alert: AlertDescription, reason: &str) -> HandshakeFailureKind {
    use AlertDescription as Alert;
    use HandshakeFailureKind as Kind;
    let has = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    if has(&["NotValidYet", "not valid yet"]) {
        Kind::CertificateNotValidYet
    } else if has(&["xpired"]) {
        Kind::CertificateExpired
    } else if has(&["NotValidForName", "not valid for name"]) {
        Kind::CertificateForOtherName
    } else if has(&[OF_AUTHORITY]) {
        Kind::CertificateOfAuthority
    } else if has(&["UnknownIssuer", "BadSignature"]) {
        Kind::CertificateUntrusted
    } else if has(&["nvalid peer cert"]) {
        Kind::CertificateUnusable
    } else {
        match alert {
            Alert::NoApplicationProtocol => Kind::Protocol,
            Alert::ProtocolVersion => Kind::Version,
            Alert::HandshakeFailure => Kind::Parameters,
            Alert::EncryptedClientHelloRequired => Kind::EchRejected,
            _ => Kind::Other,
        }
    }
}

#[cfg(test)]
mod tests;
