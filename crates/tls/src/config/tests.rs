use std::process::Command;

use rcgen::generate_simple_self_signed;
use rustls::crypto::aws_lc_rs::{self, cipher_suite};

use rustls::RootCertStore;

use super::*;
use crate::testing::{Authority, SERVER_NAME, connect, lines, options, options_of, tls};
use crate::trust::{AnyServer, ReviewedVerifier};
use crate::{TlsClient, TlsServer};

#[test]
fn configuration_without_protocols_is_refused_with_a_hint() {
    let (mut client, mut server) = options();
    client.alpn.clear();
    server.alpn.clear();
    let error = client_config(client).unwrap_err();
    assert_eq!(error, TlsConfigError::NoApplicationProtocol);
    assert!(error.to_string().contains("alpn_protocols"), "{error}");
    assert_eq!(
        server_config(server).unwrap_err(),
        TlsConfigError::NoApplicationProtocol
    );
}

#[test]
fn users_configuration_without_protocols_is_refused() {
    let (client, server) = options();
    let mut client = ClientConfig::clone(&client_config(client).unwrap());
    let mut server = ServerConfig::clone(&server_config(server).unwrap());
    client.alpn_protocols.clear();
    server.alpn_protocols.clear();
    let error = TlsClient::new(Arc::new(client)).unwrap_err();
    assert_eq!(error, TlsConfigError::NoApplicationProtocol);
    let error = TlsServer::new(Arc::new(server)).unwrap_err();
    assert_eq!(error, TlsConfigError::NoApplicationProtocol);
}

#[test]
fn configurations_without_protocols_connect_where_alpn_is_optional() {
    let (client, server) = options();
    let mut client = ClientConfig::clone(&client_config(client).unwrap());
    let mut server = ServerConfig::clone(&server_config(server).unwrap());
    client.alpn_protocols = vec![vec![]];
    let invalid = TlsClient::with_optional_alpn(Arc::new(client.clone()), false);
    let expected = TlsConfigError::InvalidApplicationProtocol;
    assert_eq!(invalid.unwrap_err(), expected);
    client.alpn_protocols.clear();
    server.alpn_protocols.clear();
    let client = TlsClient::with_optional_alpn(Arc::new(client), false).unwrap();
    let server = TlsServer::with_optional_alpn(Arc::new(server), None).unwrap();
    let (client, server) = connect(&client, &server);
    assert_eq!(client.session.handshake_data().protocol, None);
    assert_eq!(server.session.handshake_data().protocol, None);
}

#[test]
fn invalid_protocol_names_are_refused() {
    for name in [vec![], vec![b'x'; 256]] {
        let (mut client, _) = options();
        client.alpn.push(name);
        let error = client_config(client).unwrap_err();
        assert_eq!(error, TlsConfigError::InvalidApplicationProtocol);
    }
}

#[test]
fn configuration_without_a_suite_for_quic_is_refused() {
    let (client, server) = options();
    let known = cipher_suite::TLS13_AES_128_GCM_SHA256.tls13().unwrap();
    let suite = rustls::Tls13CipherSuite {
        common: rustls::crypto::CipherSuiteCommon {
            suite: known.common.suite,
            hash_provider: known.common.hash_provider,
            confidentiality_limit: known.common.confidentiality_limit,
        },
        hkdf_provider: known.hkdf_provider,
        aead_alg: known.aead_alg,
        quic: None,
    };
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites = vec![(&*Box::leak(Box::new(suite))).into()];
    let provider = Arc::new(provider);
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    config.alpn_protocols = client.alpn;
    let error = TlsClient::new(Arc::new(config)).unwrap_err();
    assert!(matches!(&error, TlsConfigError::Unusable(_)), "{error:?}");
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(server.identity.chain, server.identity.key)
        .unwrap();
    config.alpn_protocols = server.alpn;
    let error = TlsServer::new(Arc::new(config)).unwrap_err();
    assert!(matches!(&error, TlsConfigError::Unusable(_)), "{error:?}");
}

#[test]
fn key_of_another_certificate_is_refused() {
    let (_, mut server) = options();
    server.identity.key = Authority::new("root").identity(SERVER_NAME).key;
    let error = server_config(server).unwrap_err();
    assert!(
        matches!(&error, TlsConfigError::Credentials(_)),
        "{error:?}"
    );
}

#[test]
fn empty_root_store_is_refused() {
    let (mut client, _) = options();
    client.trust = Trust::Roots(RootCertStore::empty());
    let error = client_config(client).unwrap_err();
    assert!(
        matches!(&error, TlsConfigError::Credentials(_)),
        "{error:?}"
    );
}

#[test]
fn identity_is_read_from_pem() {
    let generated = generate_simple_self_signed([SERVER_NAME.to_owned()]).unwrap();
    let (chain, key) = (generated.cert.pem(), generated.signing_key.serialize_pem());
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    assert_eq!(identity.chain, [generated.cert.der().clone()]);
    assert_eq!(
        identity.key.secret_der(),
        generated.signing_key.serialized_der()
    );
    let both = Identity::from_pem((chain.clone() + &chain).as_bytes(), key.as_bytes()).unwrap();
    assert_eq!(both.chain.len(), 2);
}

#[test]
fn text_without_certificate_or_key_is_refused() {
    let generated = generate_simple_self_signed([SERVER_NAME.to_owned()]).unwrap();
    let (chain, key) = (generated.cert.pem(), generated.signing_key.serialize_pem());
    for (chain, key) in [("", &key[..]), (&key, &key), (&chain, ""), (&chain, &chain)] {
        let error = Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap_err();
        assert!(
            matches!(&error, TlsConfigError::Credentials(_)),
            "{error:?}"
        );
    }
}

#[test]
fn users_verifier_is_called() {
    // Accepts any server, after a complete nested handshake on the same thread.
    let any = Arc::new(AnyServer::new(provider(&[])));
    let nested = ReviewedVerifier::new(any, |_, _, verdict| {
        let (client, server) = tls(options());
        connect(&client, &server);
        verdict
    });

    let (mut client, mut server) = options();
    client.trust = Trust::Verifier(Arc::new(nested));
    server.identity = Authority::new("untrusted").identity("elsewhere.example");
    let (client, server) = tls((client, server));
    let (client, server) = connect(&client, &server);
    let (client, server) = (client.one_rtt.unwrap(), server.one_rtt.unwrap());
    assert_eq!(
        client.local.header.mask(&[1; 16]),
        server.peer.header.mask(&[1; 16])
    );
    assert_eq!(
        client.peer.header.mask(&[1; 16]),
        server.local.header.mask(&[1; 16])
    );
}

#[test]
fn key_log_file_is_written_if_configured() {
    // The environment can only be set for a separate process, so this test runs itself.
    if std::env::var_os("SSLKEYLOGFILE").is_some() {
        let (mut client, server) = options_of(&Authority::new("root"));
        client.key_log = KeyLogging::Environment;
        let (client, server) = tls((client, server));
        connect(&client, &server);
        assert!(QueuedKeyLog::environment().flush());
        return;
    }
    let name = format!("courser-key-log-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let status = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "config::tests::key_log_file_is_written_if_configured",
        ])
        .env("SSLKEYLOGFILE", &path)
        .status()
        .unwrap();
    assert!(status.success());
    let written = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(written.lines().count(), 5, "{written}");
    assert!(written.contains("SERVER_TRAFFIC_SECRET_0 "), "{written}");
}

#[test]
fn secrets_are_logged_only_if_configured() {
    let unused = lines();
    let (client, server) = tls(options());
    connect(&client, &server);
    assert_eq!(unused.labels(), [""; 0]);
    assert!(
        !KeyLogging::Off
            .into_key_log()
            .will_log("CLIENT_TRAFFIC_SECRET_0")
    );
}

#[test]
fn ocsp_response_of_the_server_is_passed_to_the_client() {
    let [response, longest] = [1000, 16 * 1024].map(|len| vec![7; len]);
    for (sent, seen) in [
        (Some(response.clone()), Some(response)),
        (None, None),
        (Some(longest.clone()), Some(longest)),
        (Some(vec![7; 16 * 1024 + 1]), None),
    ] {
        let (client, server) = options();
        let Identity { chain, key } = server.identity;
        let mut key = rustls::sign::CertifiedKey::from_der(chain, key, &provider(&[])).unwrap();
        key.ocsp = sent;
        let resolver = rustls::sign::SingleCertAndKey::from(key);
        let mut server = server_config_with_resolver(Arc::new(resolver)).unwrap();
        Arc::make_mut(&mut server).alpn_protocols = server_alpn();
        let client = TlsClient::new(client_config(client).unwrap()).unwrap();
        let (client, server) = connect(&client, &TlsServer::new(server).unwrap());
        assert_eq!(client.session.handshake_data().ocsp_response, seen);
        assert_eq!(server.session.handshake_data().ocsp_response, None);
    }
}

fn server_alpn() -> Vec<Vec<u8>> {
    vec![b"test".to_vec()]
}
