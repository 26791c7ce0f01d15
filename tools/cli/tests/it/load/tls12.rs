//! Servers without TLS 1.3.

use std::sync::Arc;

use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::version::TLS12;

use super::servers::{App, Server};
use super::{report, text};
use crate::common::number;

fn server() -> Server {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]);
    let made = made.expect("a name");
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS12])
        .expect("TLS 1.2")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.into()], key.into())
        .expect("its own key");
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Server::with_tls(App::default(), config)
}

#[test]
fn every_version_of_http_over_tcp_works() {
    let server = server();
    let url = server.https("/bytes/100");
    for (flag, protocol) in [("--h1", "http/1.1"), ("--h2", "h2")] {
        let report = report(&["-n", "100", "-c", "2", "-m", "4", "-k", flag, &url]);
        assert_eq!(report["protocol"], protocol, "{report:#}");
        assert_eq!(report["requests"]["succeeded"], 100, "{report:#}");
        assert!(number(&report, "traffic.data") > 9_999.0, "{report:#}");
        assert_eq!(report["tls"]["version"], "TLSv1.2", "{report:#}");
        let cipher = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
        assert_eq!(report["tls"]["cipher"], cipher, "{report:#}");
        assert_eq!(report["tls"]["group"], "X25519", "{report:#}");
    }
    let text = text(&["-n", "1", "-k", &url]);
    for line in [
        "TLS Protocol: TLSv1.2",
        "Cipher: TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "Negotiated Group: X25519",
        "Application protocol: h2",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
}

#[test]
fn tls_1_3_is_used_if_the_server_supports_it() {
    for (server, flag) in [
        (Server::tls(App::default()), "--h2"),
        (Server::http3(App::default()), "--h3"),
    ] {
        let report = report(&["-n", "1", "-k", flag, &server.https("/")]);
        assert_eq!(report["tls"]["version"], "TLSv1.3", "{report:#}");
        let cipher = report["tls"]["cipher"].as_str().expect("a name");
        assert!(cipher.contains("AES_128_GCM"), "{cipher}");
    }
}
