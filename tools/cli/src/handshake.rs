//! Suggests flags that help after a failed TLS handshake.

use courser::{HandshakeFailure, HandshakeFailureKind};

/// The command whose flags appear in errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tool {
    Get,
    Load,
    Perf,
    WebTransport,
}

/// Returns one line with the error, the offer of the client, and the flag that helps.
pub(crate) fn explain(failure: &HandshakeFailure, tool: Tool) -> String {
    failure.with_remedy(remedy(failure.kind(), tool))
}

/// Like [`explain`], for a failure of the TLS between `courser get` and its proxy.
pub(crate) fn explain_proxy(failure: &HandshakeFailure) -> String {
    let text = failure.with_remedy(proxy_remedy(failure.kind()));
    format!("the proxy {text}")
}

/// Returns the remedy for a server that does not support the protocol.
pub(crate) fn protocol_remedy(tool: Tool) -> &'static str {
    remedy(HandshakeFailureKind::Protocol, tool)
}

fn remedy(kind: HandshakeFailureKind, tool: Tool) -> &'static str {
    use HandshakeFailureKind as Kind;
    match (kind, tool) {
        (Kind::CertificateExpired, _) => "the server needs a new one, --insecure accepts it",
        (Kind::CertificateNotValidYet, _) => {
            "check the clocks of both machines, --insecure accepts it"
        }
        (Kind::CertificateForOtherName, Tool::Get) => {
            "use a name of the certificate (--resolve, --connect-to) or pass --insecure"
        }
        (Kind::CertificateForOtherName, Tool::Load) => "pass --sni NAME or --insecure",
        (Kind::CertificateForOtherName, Tool::WebTransport) => {
            "use a name of the certificate, or pass --cert-hash HASH or --insecure"
        }
        (Kind::CertificateForOtherName, Tool::Perf) => "pass --server-name NAME or --insecure",
        (Kind::CertificateUntrusted, Tool::Get) => "pass --cacert FILE or --insecure",
        (Kind::CertificateUntrusted, Tool::WebTransport) => {
            "pass --cacert FILE, --cert-hash HASH or --insecure"
        }
        (Kind::CertificateUntrusted, _) => "pass --ca FILE or --insecure",
        (Kind::CertificateOfAuthority, _) => "make one with CA:FALSE or pass --insecure",
        (Kind::CertificateUnusable, _) => "the server needs another one, --insecure accepts it",
        (Kind::Version, _) => "update the server: older versions are not offered",
        (Kind::Parameters, _) => "allow one of these in the configuration of the server",
        (Kind::Protocol, Tool::Get) => "choose another with --http1.1, --http2 or --http3",
        (Kind::Protocol, Tool::Load) => "choose another with --http-version 1.1, 2 or 3",
        (Kind::Protocol, Tool::WebTransport) => "sessions need HTTP/3",
        (Kind::Protocol, Tool::Perf) => "is it a perf server?",
        (Kind::ServerName, Tool::Get) => "use a name that the server has (--connect-to)",
        (Kind::ServerName, Tool::Load) => "pass --sni NAME",
        (Kind::ServerName, Tool::WebTransport) => "use a name that the server has",
        (Kind::ServerName, Tool::Perf) => "pass --server-name NAME",
        (Kind::ClientCertificateRequired, Tool::Get) => "pass --cert FILE and --key FILE",
        (Kind::ClientCertificateRequired, Tool::Load) => {
            "courser load has none to send: configure the server to require none"
        }
        (Kind::ClientCertificateRequired, Tool::Perf) => {
            "courser perf has none to send: configure the server to require none"
        }
        (Kind::ClientCertificateRequired, Tool::WebTransport) => {
            "courser webtransport has none to send: configure the server to require none"
        }
        (Kind::ClientCertificateRefused, Tool::Get) => {
            "pass one whose issuer the server trusts with --cert FILE and --key FILE"
        }
        (Kind::EchRejected, _) => "get its current ECHConfigList, or connect without --ech",
        (Kind::NotTls, Tool::Perf) => "is it a perf server with --tcp?",
        (Kind::NotTls, _) => "write http:// if it serves plain HTTP",
        (Kind::Closed, _) => "check that it serves TLS on this port",
        _ => "",
    }
}

/// The flags for the TLS of servers do not concern that of proxies.
fn proxy_remedy(kind: HandshakeFailureKind) -> &'static str {
    use HandshakeFailureKind as Kind;
    match kind {
        Kind::CertificateExpired => "it needs a new one, --proxy-insecure accepts it",
        Kind::CertificateNotValidYet => {
            "check the clocks of both machines, --proxy-insecure accepts it"
        }
        Kind::CertificateForOtherName => {
            "use a name of the certificate in --proxy or pass --proxy-insecure"
        }
        Kind::CertificateUntrusted => "pass --proxy-cacert FILE or --proxy-insecure",
        Kind::CertificateOfAuthority => "make one with CA:FALSE or pass --proxy-insecure",
        Kind::CertificateUnusable => "it needs another one, --proxy-insecure accepts it",
        Kind::Version => "update it: older versions are not offered",
        Kind::Protocol => "choose another scheme of --proxy: masque, https or http",
        Kind::ServerName => "use a name that it has",
        Kind::ClientCertificateRequired => "pass --proxy-cert FILE and --proxy-key FILE",
        Kind::ClientCertificateRefused => {
            "pass one whose issuer it trusts with --proxy-cert FILE and --proxy-key FILE"
        }
        Kind::NotTls => "write --proxy http:// if it has no TLS",
        Kind::Closed => "check that it serves TLS on this port",
        _ => "",
    }
}
