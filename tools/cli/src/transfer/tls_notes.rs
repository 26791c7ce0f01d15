//! Describes the parameters of a TLS handshake as text.

use courser::client::{Timing, TlsSummary};
use courser::server::certificate::{OcspStatus, ocsp_status};

/// Returns lines about the TLS handshake of a request's connection: cipher suite and key exchange, the
/// server's certificate, and the Encrypted ClientHello if `offers_ech`. Empty for a reused connection.
pub(crate) fn tls_notes(timing: &Timing, offers_ech: bool) -> Vec<String> {
    let Some(tls) = timing.tls.as_ref().filter(|_| !timing.is_reused) else {
        return Vec::new();
    };
    let is_quic = timing.protocol == Some(http::Version::HTTP_3);
    let mut lines = vec![parameters(tls)];
    // Resumed sessions have no certificate.
    if is_quic && !timing.is_resumed {
        lines.push(certificate(tls));
    }
    if offers_ech {
        lines.push(ech(tls).to_owned());
    }
    lines
}

fn parameters(tls: &TlsSummary) -> String {
    let or_unknown = |name: &Option<String>| name.clone().unwrap_or_else(|| "unknown".to_owned());
    format!(
        "TLS: cipher suite {}, key exchange {}",
        or_unknown(&tls.cipher_suite),
        or_unknown(&tls.key_exchange)
    )
}

fn certificate(tls: &TlsSummary) -> String {
    let compression = match tls.certificate_compression {
        Some(algorithm) => format!("compressed with {algorithm}"),
        None => "not compressed".to_owned(),
    };
    let ocsp = match tls.ocsp_response.as_deref().map(ocsp_status) {
        None => "no OCSP response stapled",
        Some(None) => "an unreadable OCSP response stapled",
        Some(Some(OcspStatus::Good)) => "OCSP response stapled: good (not verified)",
        Some(Some(OcspStatus::Revoked)) => "OCSP response stapled: revoked",
        Some(Some(OcspStatus::Unknown)) => "OCSP response stapled: unknown",
    };
    format!("Certificate: {compression}, {ocsp}")
}

fn ech(tls: &TlsSummary) -> &'static str {
    match tls.encrypted_hello {
        true => "ECH: accepted, the name of the server was encrypted",
        // A rejected ECH fails the handshake, so this was GREASE.
        false => "ECH: not used, the extension was GREASE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificate_has_compression_and_status() {
        let mut tls = TlsSummary::default();
        assert_eq!(
            certificate(&tls),
            "Certificate: not compressed, no OCSP response stapled"
        );
        tls.certificate_compression = Some("zlib");
        tls.ocsp_response = Some(b"?".to_vec());
        assert_eq!(
            certificate(&tls),
            "Certificate: compressed with zlib, an unreadable OCSP response stapled"
        );
    }

    #[test]
    fn parameters_and_ech_are_named() {
        let mut tls = TlsSummary::default();
        tls.key_exchange = Some("X25519".to_owned());
        assert_eq!(
            parameters(&tls),
            "TLS: cipher suite unknown, key exchange X25519"
        );
        assert!(ech(&tls).contains("GREASE"));
        tls.encrypted_hello = true;
        assert!(ech(&tls).contains("accepted"));
    }
}
