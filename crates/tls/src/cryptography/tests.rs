use super::*;
use crate::parts::{ClientParts, ServerParts};
use crate::testing::{Authority, connect, options_of};
use crate::{ClientAuthentication, TlsClient, TlsServer, Trust, client_config, server_config};

fn handshake(client: Cryptography, server: Cryptography) -> courser_crypto::HandshakeData {
    let authority = Authority::new("root");
    let options = options_of(&authority);
    let mut client_parts = ClientParts::new(Trust::Roots(authority.roots())).unwrap();
    client_parts.set_cryptography(client);
    let mut server_parts = ServerParts::new(ClientAuthentication::Off).unwrap();
    server_parts.set_cryptography(server);
    let client = client_parts.build(&client_config(options.0).unwrap());
    let server = server_parts.build(&server_config(options.1).unwrap());
    let client = TlsClient::new(client.unwrap()).unwrap();
    let server = TlsServer::new(server.unwrap()).unwrap();
    let (client, server) = connect(&client, &server);
    let data = client.session.handshake_data();
    assert_eq!(data.suite, server.session.handshake_data().suite);
    assert_eq!(
        data.key_exchange,
        server.session.handshake_data().key_exchange
    );
    data
}

#[test]
fn post_quantum_group_is_the_default() {
    let data = handshake(Cryptography::default(), Cryptography::default());
    assert_eq!(data.key_exchange.as_deref(), Some("X25519MLKEM768"));
    assert_eq!(data.suite, Some(CipherSuite::Aes128Gcm));
}

#[test]
fn each_group_can_be_the_only_one() {
    for group in KeyExchange::ALL {
        let only = Cryptography::default().groups([group]);
        let data = handshake(only.clone(), only);
        let name = data.key_exchange.unwrap();
        assert!(name.eq_ignore_ascii_case(group.name()), "{name}, {group}");
    }
}

#[test]
fn each_end_can_restrict_groups_and_suites() {
    let classical = Cryptography::default().groups([KeyExchange::Secp384r1]);
    let data = handshake(Cryptography::default(), classical.clone());
    assert_eq!(data.key_exchange.as_deref(), Some("secp384r1"));
    let data = handshake(classical, Cryptography::default());
    assert_eq!(data.key_exchange.as_deref(), Some("secp384r1"));
    let chacha = Cryptography::default().suites([CipherSuite::ChaCha20Poly1305]);
    let data = handshake(Cryptography::default(), chacha.clone());
    assert_eq!(data.suite, Some(CipherSuite::ChaCha20Poly1305));
    let data = handshake(chacha, Cryptography::default());
    assert_eq!(data.suite, Some(CipherSuite::ChaCha20Poly1305));
}

#[test]
fn names_are_read_in_any_case_with_both_separators() {
    let named = Cryptography::default()
        .groups_by_name("x25519mlkem768:P-256,X25519, secp384r1:p-384")
        .unwrap()
        .suites_by_name("TLS_CHACHA20_POLY1305_SHA256:tls_aes_128_gcm_sha256")
        .unwrap();
    let expected = Cryptography::default()
        .groups([
            KeyExchange::X25519MlKem768,
            KeyExchange::Secp256r1,
            KeyExchange::X25519,
            KeyExchange::Secp384r1,
        ])
        .suites([CipherSuite::ChaCha20Poly1305, CipherSuite::Aes128Gcm]);
    assert_eq!(named, expected);
}

#[test]
fn unknown_names_are_errors_that_list_the_known_ones() {
    let error = Cryptography::default().groups_by_name("X25519:brainpool");
    let text = error.unwrap_err().to_string();
    assert!(
        text.contains("group 'brainpool'") && text.contains("X25519MLKEM768, "),
        "{text}"
    );
    let error = Cryptography::default().suites_by_name("TLS_AES_128_CCM_SHA256");
    let text = error.unwrap_err().to_string();
    assert!(text.contains("suite 'TLS_AES_128_CCM_SHA256'"), "{text}");
    for empty in ["", ":", "X25519:"] {
        assert!(
            Cryptography::default().groups_by_name(empty).is_err(),
            "{empty}"
        );
    }
    let long = "x".repeat(10_000);
    let error = Cryptography::default().groups_by_name(&long).unwrap_err();
    assert!(error.to_string().len() < 300);
}

#[test]
fn suites_of_tls_1_2_follow_those_of_tls_1_3() {
    let provider = Cryptography::default()
        .suites([CipherSuite::Aes256Gcm])
        .provider_with_tls12();
    let tls13 = provider
        .cipher_suites
        .iter()
        .filter(|it| it.tls13().is_some());
    assert_eq!(tls13.count(), 1);
    assert!(provider.cipher_suites[0].tls13().is_some());
    let others = &provider.cipher_suites[1..];
    assert!(
        others.iter().all(|suite| suite.tls13().is_none()),
        "{others:?}"
    );
}

#[test]
fn only_builds_with_the_fips_module_are_in_fips_mode() {
    let is_built_in = cfg!(feature = "fips");
    assert_eq!(Cryptography::default().is_fips(), is_built_in);
    let chacha = Cryptography::default().suites([CipherSuite::ChaCha20Poly1305]);
    assert!(!chacha.is_fips(), "ChaCha20 is not approved");
}
