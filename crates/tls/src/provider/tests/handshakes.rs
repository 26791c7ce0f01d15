//! Whole connections over records, with ends whose cryptography is that of rustls.

use std::io::{Read as _, Write as _};

use rcgen::CertificateParams;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, Connection, HandshakeKind, NamedGroup, RootCertStore,
    ServerConfig, ServerConnection, SupportedProtocolVersion,
};

use super::keys::key_pairs;
use super::*;

/// Returns configurations of both ends, with a certificate for this key.
fn configs(
    client: CryptoProvider,
    server: CryptoProvider,
    key: &rcgen::KeyPair,
    version: &'static SupportedProtocolVersion,
) -> (Arc<ClientConfig>, Arc<ServerConfig>) {
    let certificate = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = certificate.self_signed(key).unwrap().der().clone();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let client = ClientConfig::builder_with_provider(Arc::new(client))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut server = ServerConfig::builder_with_provider(Arc::new(server))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate],
            PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        )
        .unwrap();
    server.ticketer = ticketer().unwrap();
    (Arc::new(client), Arc::new(server))
}

fn pair(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> (Connection, Connection) {
    let name = "localhost".try_into().unwrap();
    let client = ClientConnection::new(client.clone(), name).unwrap();
    let server = ServerConnection::new(server.clone()).unwrap();
    (client.into(), server.into())
}

/// Moves all records of one end to the other, which processes them. Returns how many bytes there were.
fn deliver(from: &mut Connection, to: &mut Connection) -> Result<usize, Error> {
    let mut records = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut records).unwrap();
    }
    let mut rest = &records[..];
    while !rest.is_empty() {
        to.read_tls(&mut rest).unwrap();
        to.process_new_packets()?;
    }
    Ok(records.len())
}

fn complete(client: &mut Connection, server: &mut Connection) -> Result<(), Error> {
    while deliver(client, server)? + deliver(server, client)? > 0 {}
    assert!(!client.is_handshaking() && !server.is_handshaking());
    Ok(())
}

/// Sends messages in both directions: one that fits a record, one of many records, an empty one.
fn exchange(client: &mut Connection, server: &mut Connection) {
    let large: Vec<u8> = (0..100_000_u32)
        .map(|number| number.to_le_bytes()[0])
        .collect();
    for message in [&b"a message"[..], &large, b""] {
        for is_from_client in [true, false] {
            let (from, to) = match is_from_client {
                true => (&mut *client, &mut *server),
                false => (&mut *server, &mut *client),
            };
            let mut received = Vec::new();
            for part in message.chunks(16_384) {
                from.writer().write_all(part).unwrap();
                deliver(from, to).unwrap();
                let mut bytes = vec![0; part.len()];
                to.reader().read_exact(&mut bytes).unwrap();
                received.append(&mut bytes);
            }
            assert!(received == message, "{} bytes", message.len());
        }
    }
}

/// Returns the providers of client and server: ours with itself, and with that of rustls in both roles.
fn providers() -> [(CryptoProvider, CryptoProvider); 3] {
    [
        (default_provider(), default_provider()),
        (default_provider(), reference::default_provider()),
        (reference::default_provider(), default_provider()),
    ]
}

#[test]
fn all_suites_of_both_versions_connect_and_resume() {
    let keys = key_pairs();
    let (ecdsa, rsa) = (&keys[0], keys.last().unwrap());
    for suite in default_provider().cipher_suites {
        let name = suite.suite();
        let version = match suite.tls13() {
            Some(_) => &TLS13,
            None => &TLS12,
        };
        let key = match format!("{name:?}").contains("_RSA_") {
            true => rsa,
            false => ecdsa,
        };
        for (mut client, server) in providers() {
            client.cipher_suites.retain(|suite| suite.suite() == name);
            let (client, server) = configs(client, server, key, version);
            for kind in [HandshakeKind::Full, HandshakeKind::Resumed] {
                let (mut client, mut server) = pair(&client, &server);
                complete(&mut client, &mut server).unwrap();
                assert_eq!(client.handshake_kind(), Some(kind), "{name:?}");
                let negotiated = client.negotiated_cipher_suite().unwrap();
                assert_eq!(negotiated.suite(), name);
                exchange(&mut client, &mut server);
            }
        }
    }
}

#[test]
fn all_groups_connect() {
    let key = &key_pairs()[0];
    for group in ALL_GROUPS {
        for (mut client, mut server) in providers() {
            for provider in [&mut client, &mut server] {
                let is_ours = format!("{:?}", provider.key_provider) == "AwsLc";
                let groups = if is_ours {
                    &ALL_GROUPS[..]
                } else {
                    ALL_KX_GROUPS
                };
                let of_name = |it: &&&dyn SupportedKxGroup| it.name() == group.name();
                provider.kx_groups = groups.iter().filter(of_name).copied().collect();
            }
            let (client, server) = configs(client, server, key, &TLS13);
            let (mut client, mut server) = pair(&client, &server);
            complete(&mut client, &mut server).unwrap();
            let negotiated = client.negotiated_key_exchange_group().unwrap();
            assert_eq!(negotiated.name(), group.name());
            exchange(&mut client, &mut server);
        }
    }
}

#[test]
fn servers_that_want_another_group_are_asked_again() {
    let key = &key_pairs()[0];
    for group in [NamedGroup::secp384r1, NamedGroup::X25519] {
        let mut server = reference::default_provider();
        server.kx_groups.retain(|it| it.name() == group);
        let (client, server) = configs(default_provider(), server, key, &TLS13);
        let (mut client, mut server) = pair(&client, &server);
        complete(&mut client, &mut server).unwrap();
        let negotiated = client.negotiated_key_exchange_group().unwrap();
        assert_eq!(negotiated.name(), group);
    }
}

#[test]
fn certificates_of_all_kinds_of_keys_are_accepted() {
    for key in key_pairs() {
        for version in [&TLS13, &TLS12] {
            for (client, server) in providers() {
                let (client, server) = configs(client, server, &key, version);
                let (mut client, mut server) = pair(&client, &server);
                complete(&mut client, &mut server).unwrap();
            }
        }
    }
}

#[test]
fn changed_records_are_refused() {
    let keys = key_pairs();
    for suite in default_provider().cipher_suites {
        let name = suite.suite();
        let version = if suite.tls13().is_some() {
            &TLS13
        } else {
            &TLS12
        };
        let key = if format!("{name:?}").contains("_RSA_") {
            keys.last().unwrap()
        } else {
            &keys[0]
        };
        let mut client = default_provider();
        client.cipher_suites.retain(|suite| suite.suite() == name);
        let (client, server) = configs(client, default_provider(), key, version);
        for position in [5, 12, 20] {
            let (mut client, mut server) = pair(&client, &server);
            complete(&mut client, &mut server).unwrap();
            client.writer().write_all(b"some bytes").unwrap();
            let mut record = Vec::new();
            client.write_tls(&mut record).unwrap();
            record[position] ^= 1;
            server.read_tls(&mut &record[..]).unwrap();
            let error = server.process_new_packets().unwrap_err();
            assert_eq!(error, Error::DecryptError, "{name:?}");
        }
        // A record without room for a tag.
        let (mut client, mut server) = pair(&client, &server);
        complete(&mut client, &mut server).unwrap();
        server
            .read_tls(&mut &[23, 3, 3, 0, 3, 1, 2, 3][..])
            .unwrap();
        assert_eq!(
            server.process_new_packets().unwrap_err(),
            Error::DecryptError,
            "{name:?}"
        );
    }
}
