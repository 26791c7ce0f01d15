use courser_crypto::TlsError;

use super::*;
use crate::parts::ClientParts;
use crate::testing::messages::{CLIENT_HELLO, extension, split};
use crate::testing::{Authority, SERVER_NAME, connect, drive, options_of, start};
use crate::{TlsClient, TlsServer, Trust, client_config, server_config};

/// The type of the extension encrypted_client_hello. RFC 9849 §5.
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
const PUBLIC_NAME: &str = "public.example";

/// Returns an encoded ECHConfigList with one configuration (RFC 9849 §4).
fn config_list(version: u16, public_name: &str) -> Vec<u8> {
    let (key, _) = provider::hpke_grease_suite().generate_key_pair().unwrap();
    let key = &key.0[..];
    let key_len = u16::try_from(key.len()).unwrap().to_be_bytes();
    let name_len = [u8::try_from(public_name.len()).unwrap()];
    let contents = [
        &[7][..],   // config_id
        &[0, 0x20], // DHKEM(X25519, HKDF-SHA256)
        &key_len,
        key,
        &[0, 4, 0, 1, 0, 1], // HKDF-SHA256, AES-128-GCM
        &[0],                // maximum_name_length
        &name_len,
        public_name.as_bytes(),
        &[0, 0], // extensions
    ]
    .concat();
    let len = u16::try_from(contents.len()).unwrap().to_be_bytes();
    let config = [&version.to_be_bytes()[..], &len, &contents].concat();
    let len = u16::try_from(config.len()).unwrap().to_be_bytes();
    [&len[..], &config].concat()
}

/// Returns a client with this encryption, and a server with a certificate for both names.
fn ends(ech: &Ech) -> (TlsClient, TlsServer) {
    let authority = Authority::new("root");
    let mut options = options_of(&authority);
    options.1.identity = authority.identity_of(&[SERVER_NAME, PUBLIC_NAME]);
    let mut parts = ClientParts::new(Trust::Roots(authority.roots())).unwrap();
    parts.set_ech(Some(ech.clone()));
    let client = parts.build(&client_config(options.0).unwrap()).unwrap();
    let client = TlsClient::new(client)
        .unwrap()
        .with_ech_reports(Some(ech.clone()));
    let server = TlsServer::new(server_config(options.1).unwrap()).unwrap();
    (client, server)
}

/// Returns the ClientHello of a client.
fn hello(client: &TlsClient, server: &TlsServer) -> Vec<u8> {
    let (mut client, _) = start(client, server);
    let bytes: Vec<u8> = client.flight().into_iter().flat_map(|it| it.1).collect();
    let messages = split(&bytes);
    assert_eq!((messages.len(), messages[0][0]), (1, CLIENT_HELLO));
    messages.into_iter().next().unwrap()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

/// Completes a handshake with a server that does not support ECH. Returns the error of the client.
fn rejected(ech: &Ech) -> TlsError {
    let (client, server) = ends(ech);
    let (mut client, mut server) = start(&client, &server);
    drive(&mut client, &mut server).unwrap_err()
}

#[test]
fn name_of_the_server_is_encrypted_and_the_public_name_is_not() {
    let ech = Ech::from_config_list(&config_list(0xfe0d, PUBLIC_NAME)).unwrap();
    let (client, server) = ends(&ech);
    let hello = hello(&client, &server);
    assert!(extension(&hello, ENCRYPTED_CLIENT_HELLO).is_some());
    assert!(contains(&hello, PUBLIC_NAME) && !contains(&hello, SERVER_NAME));
}

#[test]
fn server_without_ech_ends_in_a_rejection_without_configurations() {
    let ech = Ech::from_config_list(&config_list(0xfe0d, PUBLIC_NAME)).unwrap();
    assert_eq!(ech.rejection(), None);
    let error = rejected(&ech);
    assert_eq!(error.alert, Some(121), "ech_required: {error:?}");
    assert_eq!(ech.rejection(), Some(EchRejection::Disabled));
}

/// RFC 9849 §6.1.7: only the owner of the public name may decide that ECH is not used.
#[test]
fn rejection_by_a_server_without_the_public_name_is_ignored() {
    let ech = Ech::from_config_list(&config_list(0xfe0d, "other.example")).unwrap();
    let error = rejected(&ech);
    assert_ne!(error.alert, Some(121), "{error:?}");
    assert_eq!(ech.rejection(), None);
}

#[test]
fn grease_works_with_a_server_without_ech() {
    let ech = Ech::grease().unwrap();
    let (client, server) = ends(&ech);
    let sent = extension(&hello(&client, &server), ENCRYPTED_CLIENT_HELLO).unwrap();
    assert!(sent.len() > 100, "{} bytes", sent.len());
    let (client, _) = connect(&client, &server);
    assert!(!client.session.handshake_data().encrypted_hello);
    assert_eq!(ech.rejection(), None);
}

#[test]
fn no_extension_is_sent_without_ech() {
    let (client, server) = crate::testing::tls(crate::testing::options());
    assert!(extension(&hello(&client, &server), ENCRYPTED_CLIENT_HELLO).is_none());
}

#[test]
fn rejections_are_recorded_with_their_configurations() {
    let ech = Ech::from_config_list(&config_list(0xfe0d, PUBLIC_NAME)).unwrap();
    let list = config_list(0xfe0d, "new.example");
    let mut reader = rustls::internal::msgs::codec::Reader::init(&list);
    let configs = Vec::read(&mut reader).unwrap();
    let rejection = PeerIncompatible::ServerRejectedEncryptedClientHello(Some(configs));
    ech.clone().on_error(&rejection.into());
    assert_eq!(ech.rejection(), Some(EchRejection::Retry(list.clone())));
    assert!(Ech::from_config_list(&list).is_ok());
    ech.on_error(&Error::HandshakeNotComplete);
    assert_eq!(
        ech.rejection(),
        Some(EchRejection::Retry(list)),
        "other errors leave the rejection"
    );
}

#[test]
fn unusable_lists_are_refused() {
    let good = config_list(0xfe0d, PUBLIC_NAME);
    for len in 0..good.len() {
        assert!(Ech::from_config_list(&good[..len]).is_err(), "{len} bytes");
    }
    let cases = [
        ("an older version", config_list(0xfe0c, PUBLIC_NAME)),
        ("an empty list", vec![0, 0]),
    ];
    for (case, list) in cases {
        let error = Ech::from_config_list(&list).unwrap_err();
        assert!(matches!(error, TlsConfigError::Ech(_)), "{case}: {error:?}");
    }
}
