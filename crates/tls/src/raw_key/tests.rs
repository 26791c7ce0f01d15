use rustls::client::AlwaysResolvesClientRawPublicKeys;
use rustls::server::AlwaysResolvesServerRawPublicKeys;

use super::*;
use crate::parts::{ClientParts, ServerParts};
use crate::testing::{Authority, End, connect, drive, options, start};
use crate::{
    ClientAuthentication, TlsClient, TlsServer, Trust, client_config, server_config,
    server_config_with_resolver,
};

fn new_key() -> PrivateKeyDer<'static> {
    let key = rcgen::KeyPair::generate().unwrap();
    PrivateKeyDer::try_from(key.serialize_der()).unwrap()
}

fn public(key: &PrivateKeyDer<'static>) -> SubjectPublicKeyInfoDer<'static> {
    let key = raw_key(key.clone_key()).unwrap();
    SubjectPublicKeyInfoDer::from(key.cert[0].to_vec())
}

/// Returns a server with a raw key that has this policy for clients.
fn server(key: &PrivateKeyDer<'static>, clients: ClientAuthentication) -> TlsServer {
    let resolver = AlwaysResolvesServerRawPublicKeys::new(raw_key(key.clone_key()).unwrap());
    let mut config = server_config_with_resolver(Arc::new(resolver)).unwrap();
    Arc::make_mut(&mut config).alpn_protocols = vec![b"test".to_vec()];
    let parts = ServerParts::new(clients).unwrap();
    TlsServer::new(parts.build(&config).unwrap()).unwrap()
}

/// Returns a client that accepts `keys`, and presents `identity`.
fn client(
    keys: &[SubjectPublicKeyInfoDer<'static>],
    identity: Option<&PrivateKeyDer<'static>>,
) -> TlsClient {
    let verifier = RawKeyVerifier::new(keys.iter().cloned()).unwrap();
    let parts = ClientParts::new(Trust::Verifier(Arc::new(verifier))).unwrap();
    let mut config = client_config(options().0).unwrap();
    if let Some(key) = identity {
        let key = raw_key(key.clone_key()).unwrap();
        Arc::make_mut(&mut config).client_auth_cert_resolver =
            Arc::new(AlwaysResolvesClientRawPublicKeys::new(key));
    }
    TlsClient::new(parts.build(&config).unwrap()).unwrap()
}

fn failure(client: &TlsClient, server: &TlsServer) -> Option<u8> {
    let (mut client, mut server): (End, End) = start(client, server);
    drive(&mut client, &mut server).unwrap_err().alert
}

#[test]
fn each_end_receives_the_key_of_the_other() {
    let (key, of_client) = (new_key(), new_key());
    let clients = RawKeyVerifier::new([public(&of_client)]).unwrap();
    let server = server(&key, ClientAuthentication::Verifier(Arc::new(clients)));
    let client = client(&[public(&new_key()), public(&key)], Some(&of_client));
    for resumed in [false, true] {
        let (client, server) = connect(&client, &server);
        assert_eq!(client.session.handshake_data().resumed, resumed);
        let seen = client.session.peer_certificates();
        assert_eq!(
            seen,
            Some(vec![public(&key).to_vec()]),
            "resumed: {resumed}"
        );
        let seen = server.session.peer_certificates();
        assert_eq!(
            seen,
            Some(vec![public(&of_client).to_vec()]),
            "resumed: {resumed}"
        );
    }
}

#[test]
fn keys_that_are_not_listed_are_refused() {
    let (key, of_client) = (new_key(), new_key());
    let off = server(&key, ClientAuthentication::Off);
    let unknown = client(&[public(&new_key())], None);
    assert_eq!(failure(&unknown, &off), Some(48), "unknown_ca");
    let clients = RawKeyVerifier::new([public(&of_client)]).unwrap();
    let strict = server(&key, ClientAuthentication::Verifier(Arc::new(clients)));
    let other = client(&[public(&key)], Some(&new_key()));
    assert_eq!(failure(&other, &strict), Some(48), "unknown_ca");
    let without = client(&[public(&key)], None);
    assert_eq!(
        failure(&without, &strict),
        Some(40),
        "the client offers no key"
    );
}

/// rustls sends handshake_failure, where RFC 7250 §4.2 has unsupported_certificate.
#[test]
fn ends_with_certificates_and_ends_with_keys_fail_to_connect() {
    let key = new_key();
    let with_certificate = TlsServer::new(server_config(options().1).unwrap()).unwrap();
    assert_eq!(
        failure(&client(&[public(&key)], None), &with_certificate),
        Some(40)
    );
    let of_certificates = TlsClient::new(client_config(options().0).unwrap()).unwrap();
    let with_key = server(&key, ClientAuthentication::Off);
    assert_eq!(failure(&of_certificates, &with_key), Some(40));
}

#[test]
fn a_verifier_needs_keys_and_a_key_must_be_able_to_sign() {
    assert!(RawKeyVerifier::new([]).is_err());
    let nonsense = rustls::pki_types::PrivatePkcs8KeyDer::from(vec![1, 2, 3]);
    assert!(raw_key(nonsense.into()).is_err());
    // A certificate is not accepted as a key.
    let identity = Authority::new("root").identity("a");
    let key = SubjectPublicKeyInfoDer::from(identity.chain[0].to_vec());
    let client = client(&[key], None);
    assert!(failure(&client, &server(&new_key(), ClientAuthentication::Off)).is_some());
}
