//! Failed handshakes: each command reports in one line the error, the client's offer, and the flag to use.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{default_provider, kx_group};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};

use super::report;
use super::servers::{App, Server};
use crate::common::{Certificate, Folder, certificate, refusal};

/// Runs `load` and expects it to end with a line that has all of `expected`.
fn load(arguments: &[&str], expected: &[&str]) {
    expect(&[&["load", "--json"], arguments].concat(), expected);
}

/// Runs `get` in the same way; its line begins with curl's exit code.
fn get(code: &str, arguments: &[&str], expected: &[&str]) {
    let expected = [&[code], expected].concat();
    expect(&[&["get", "-s", "-S"], arguments].concat(), &expected);
}

fn expect(arguments: &[&str], expected: &[&str]) {
    let line = refusal(arguments);
    for part in expected {
        assert!(line.contains(part), "{arguments:?}: no '{part}': {line}");
    }
}

/// The TLS configuration of a server.
struct Settings<'a> {
    certificate: &'a Certificate,
    versions: &'static [&'static SupportedProtocolVersion],
    provider: CryptoProvider,
    protocols: &'a [&'a str],
    wants_certificate: bool,
}

impl<'a> Settings<'a> {
    fn of(certificate: &'a Certificate) -> Self {
        Self {
            certificate,
            versions: rustls::ALL_VERSIONS,
            provider: default_provider(),
            protocols: &["h2", "http/1.1"],
            wants_certificate: false,
        }
    }

    fn start(self) -> Server {
        let chain = CertificateDer::pem_file_iter(&self.certificate.cert).expect("PEM");
        let chain: Vec<_> = chain.map(|it| it.expect("PEM")).collect();
        let key = PrivateKeyDer::from_pem_file(&self.certificate.key).expect("PEM");
        let provider = Arc::new(self.provider);
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(self.versions)
            .expect("versions");
        let builder = match self.wants_certificate {
            false => builder.with_no_client_auth(),
            true => {
                let mut roots = RootCertStore::empty();
                roots.add(chain[0].clone()).expect("a certificate");
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
                builder.with_client_cert_verifier(verifier.build().expect("roots"))
            }
        };
        let mut config = builder.with_single_cert(chain, key).expect("its own key");
        let protocols = self.protocols.iter();
        config.alpn_protocols = protocols.map(|name| name.as_bytes().to_vec()).collect();
        Server::with_tls(App::default(), config)
    }
}

static OLD: [&SupportedProtocolVersion; 1] = [&TLS12];
static NEW: [&SupportedProtocolVersion; 1] = [&TLS13];

/// Sends these bytes to each client and closes the connection.
fn raw(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client");
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer);
        }
    });
    format!("https://{address}/")
}

#[test]
fn server_without_a_common_tls_version() {
    // The record that a server of TLS 1.1 answers with: a fatal alert, protocol_version.
    let url = raw(&[21, 3, 1, 0, 2, 2, 70]);
    let reason = "supports no version of TLS offered (TLS 1.3 and TLS 1.2): update the server";
    load(&["-k", &url], &[reason]);
    get("(35)", &["-k", &url], &[reason]);
}

#[test]
fn server_without_common_algorithms_is_reported_with_the_offer() {
    let certificate = certificate(2200);
    let mut provider = default_provider();
    provider.kx_groups = vec![kx_group::MLKEM768];
    let server = Settings {
        provider,
        ..Settings::of(&certificate)
    };
    let server = server.start();
    let url = server.https("/");
    let expected = [
        "supports no cipher suite, key exchange group or signature scheme of the offer",
        "TLS 1.3 and TLS 1.2 with ECDHE (X25519MLKEM768, X25519, secp256r1, secp384r1)",
        "AES-128-GCM",
    ];
    load(&["-k", &url], &expected);
    get("(35)", &["-k", &url], &expected);
}

#[test]
fn server_without_a_common_application_protocol() {
    let certificate = certificate(2200);
    let server = Settings {
        protocols: &["imap"],
        ..Settings::of(&certificate)
    };
    let server = server.start();
    let url = server.https("/");
    let remedy = "choose another with --http-version 1.1, 2 or 3";
    load(&["-k", "--h2", &url], &["does not speak h2 (ALPN)", remedy]);
    let remedy = "choose another with --http1.1, --http2 or --http3";
    get(
        "(35)",
        &["-k", &url],
        &["does not speak h2, http/1.1 (ALPN)", remedy],
    );
}

#[test]
fn invalid_certificates_are_reported_with_the_reason() {
    let (expired, good) = (certificate(2001), certificate(2200));
    let server = Settings::of(&expired).start();
    let url = server.https("/");
    let expected = ["the certificate has expired", "--insecure"];
    load(&["--ca", &expired.cert, &url], &expected);
    get("(60)", &["--cacert", &expired.cert, &url], &expected);
    let server = Settings::of(&good).start();
    let (url, port) = (server.https("/"), server.address.port());
    load(&[&url], &["is not trusted: pass --ca FILE or --insecure"]);
    get(
        "(60)",
        &[&url],
        &["is not trusted: pass --cacert FILE or --insecure"],
    );
    load(
        &["--ca", &good.cert, "--sni", "example.org", &url],
        &[
            "is not for example.org: pass --sni NAME or --insecure",
            "localhost",
        ],
    );
    let other = format!("https://example.org:{port}/");
    let flags = ["--cacert", &good.cert, "--connect-to", "::127.0.0.1:"];
    get(
        "(60)",
        &[&flags[..], &[&other]].concat(),
        &["is not for example.org", "--resolve", "--insecure"],
    );
}

/// A certificate as `openssl req -x509` makes it.
#[test]
fn authority_certificate_is_rejected_for_a_server() {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let mut params = rcgen::CertificateParams::new(names).expect("names");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().expect("random numbers");
    let cert = params.self_signed(&key).expect("signable");
    let folder = Folder::new();
    let path = folder.file("cert.pem", &cert.pem());
    let provider = Arc::new(default_provider());
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).expect("PEM");
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(rustls::ALL_VERSIONS)
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("its own key");
    let server = Server::with_tls(App::default(), config);
    let url = server.https("/");
    let expected = [
        "that of a certificate authority (CA:TRUE)",
        "CA:FALSE or pass --insecure",
    ];
    load(&["--ca", &path, &url], &expected);
    get("(60)", &["--cacert", &path, &url], &expected);
}

#[test]
fn server_without_tls() {
    let server = Server::clear(App::default());
    let url = server.https("/");
    let expected = ["does not speak TLS on this port", "write http://"];
    load(&["-k", &url], &expected);
    get("(35)", &["-k", &url], &expected);
    let url = raw(b"");
    let expected = [
        "closed the connection during the handshake",
        "TLS 1.3 and TLS 1.2 offered",
    ];
    load(&["-k", &url], &expected);
    get("(35)", &["-k", &url], &expected);
}

#[test]
fn server_that_requires_a_client_certificate() {
    let certificate = certificate(2200);
    let start = |versions: &'static [&'static SupportedProtocolVersion]| {
        let settings = Settings {
            versions,
            wants_certificate: true,
            ..Settings::of(&certificate)
        };
        settings.start()
    };
    let reason = "the server requires a client certificate, and none was sent";
    let remedy = "pass --cert FILE and --key FILE";
    let server = start(&OLD);
    let url = server.https("/");
    load(&["-k", &url], &[reason, "courser load has none to send"]);
    get("(35)", &["-k", &url], &[reason, remedy]);
    // In TLS 1.3 the alert comes after the handshake of the client.
    let server = start(&NEW);
    let url = server.https("/");
    let report = report(&["-n", "1", "-k", &url]);
    assert_eq!(report["requests"]["succeeded"], 0, "{report:#}");
    let errors = report["errorDistribution"].as_object().expect("an object");
    assert!(errors.contains_key(reason), "{report:#}");
    get("(56)", &["-k", "--http1.1", &url], &[reason, remedy]);
    let (cert, key) = (&certificate.cert, &certificate.key);
    let flags = ["get", "-s", "-k", "--cert", cert, "--key", key];
    let output = crate::common::run(&[&flags[..], &[&url]].concat());
    assert!(output.status.success(), "{output:?}");
}

/// TLS over TCP must do the same work as QUIC.
#[test]
fn perf_requires_tls_1_3() {
    let certificate = certificate(2200);
    let server = Settings {
        versions: &OLD,
        ..Settings::of(&certificate)
    };
    let server = server.start();
    let address = server.address.to_string();
    let reason = "supports no version of TLS offered (TLS 1.3): update the server";
    let arguments = ["perf", "client", "--json", "--tcp", "--insecure", &address];
    expect(&arguments, &[reason]);
}
