use std::sync::Arc;

use courser_crypto::{ClientTls, KeyPair, ServerTls};
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::{self, kx_group};

use super::*;
use crate::testing::*;
use crate::{ClientAuthentication, KeyLogging, TlsClient, TlsServer, Trust, client_config};

mod misbehaviour;
mod resumption;

const SUITES: [CipherSuite; 3] = [
    CipherSuite::Aes128Gcm,
    CipherSuite::Aes256Gcm,
    CipherSuite::ChaCha20Poly1305,
];

/// Asserts that each end opens payloads and headers that the other end protected.
fn assert_keys_match(a: &KeyPair, b: &KeyPair) {
    for (seals, opens) in [(&a.local, &b.peer), (&b.local, &a.peer)] {
        let mut packet = *b"headertext................";
        seals.packet.seal_packet(7, &mut packet, 6);
        let (header, payload) = packet.split_at_mut(6);
        assert_eq!(opens.packet.open(7, header, payload), Ok(4));
        assert_eq!(&payload[..4], b"text");
        assert_eq!(seals.header.mask(&[9; 16]), opens.header.mask(&[9; 16]));
    }
}

#[test]
fn handshake_completes_with_every_suite() {
    for suite in SUITES {
        let mut options = options();
        options.1.suites = vec![suite];
        let (client, server) = tls(options);
        let (client, server) = connect(&client, &server);
        for end in [&client, &server] {
            let data = end.session.handshake_data();
            assert_eq!(data.suite, Some(suite));
            assert_eq!(data.protocol.as_deref(), Some(&b"test"[..]), "{suite}");
            assert_eq!(data.server_name.as_deref(), Some(SERVER_NAME), "{suite}");
            assert_eq!(
                data.key_exchange.as_deref(),
                Some("X25519MLKEM768"),
                "{suite}"
            );
            assert!(!data.resumed, "{suite}");
            assert_eq!(end.one_rtt.as_ref().unwrap().local.packet.suite(), suite);
        }
        assert_keys_match(
            client.handshake.as_ref().unwrap(),
            server.handshake.as_ref().unwrap(),
        );
        assert_keys_match(
            client.one_rtt.as_ref().unwrap(),
            server.one_rtt.as_ref().unwrap(),
        );
    }
}

#[test]
fn first_suite_and_protocol_of_the_server_are_preferred() {
    let mut options = options();
    options.1.suites = vec![CipherSuite::ChaCha20Poly1305, CipherSuite::Aes128Gcm];
    options.0.alpn = vec![b"one".to_vec(), b"two".to_vec()];
    options.1.alpn = vec![b"two".to_vec(), b"one".to_vec()];
    let (client, server) = tls(options);
    let (client, _) = connect(&client, &server);
    assert_eq!(
        client.session.handshake_data().suite,
        Some(CipherSuite::ChaCha20Poly1305)
    );
    assert_eq!(
        client.session.handshake_data().protocol.as_deref(),
        Some(&b"two"[..])
    );
}

#[test]
fn first_suite_of_the_client_is_used_if_the_server_has_no_preference() {
    let (client, server) = tls(options());
    let (client, _) = connect(&client, &server);
    assert_eq!(
        client.session.handshake_data().suite,
        Some(CipherSuite::Aes128Gcm)
    );
    let mut options = options();
    options.0.suites = vec![CipherSuite::ChaCha20Poly1305, CipherSuite::Aes128Gcm];
    let (client, server) = tls(options);
    let (client, _) = connect(&client, &server);
    assert_eq!(
        client.session.handshake_data().suite,
        Some(CipherSuite::ChaCha20Poly1305)
    );
}

#[test]
fn client_hello_with_post_quantum_share_needs_two_packets() {
    let (client, server) = tls(options());
    let flight = start(&client, &server).0.flight();
    assert_eq!(flight.len(), 1);
    assert_eq!(flight[0].0, EncryptionLevel::Initial);
    assert!(flight[0].1.len() > 1200, "{}", flight[0].1.len());
}

#[test]
fn client_hello_offers_tls_1_3_only_and_no_compatibility_mode() {
    let (client, server) = tls(options());
    let hello = start(&client, &server).0.flight().remove(0).1;
    let versions = messages::extension(&hello, messages::SUPPORTED_VERSIONS).unwrap();
    assert_eq!(versions, [2, 3, 4]);
    assert_eq!(messages::session_id(&hello), b"");
    assert_eq!(messages::extension(&hello, messages::EARLY_DATA), None);
}

#[test]
fn transport_parameters_are_exchanged() {
    let (client, server) = tls(options());
    let (mut client, mut server) = start(&client, &server);
    assert_eq!(server.session.peer_transport_parameters(), None);
    server.read(&client.flight()).unwrap();
    assert_eq!(
        server.session.peer_transport_parameters(),
        Some(CLIENT_PARAMETERS)
    );
    assert_eq!(client.session.peer_transport_parameters(), None);
    client.read(&server.flight()).unwrap();
    assert_eq!(
        client.session.peer_transport_parameters(),
        Some(SERVER_PARAMETERS)
    );
}

#[test]
fn handshake_works_byte_by_byte() {
    let (client, server) = tls(options());
    let (mut client, mut server) = start(&client, &server);
    let in_bytes = |flight: Flight| -> Flight {
        flight
            .into_iter()
            .flat_map(|(level, bytes)| bytes.into_iter().map(move |byte| (level, vec![byte])))
            .collect()
    };
    server.read(&in_bytes(client.flight())).unwrap();
    client.read(&in_bytes(server.flight())).unwrap();
    server.read(&in_bytes(client.flight())).unwrap();
    client.read(&in_bytes(server.flight())).unwrap();
    assert!(!client.session.is_handshaking() && !server.session.is_handshaking());
}

#[test]
fn handshake_is_complete_with_the_finished_of_the_peer() {
    let (client, server) = tls(options());
    let (mut client, mut server) = start(&client, &server);
    server.read(&client.flight()).unwrap();
    let flight = server.flight();
    assert!(server.one_rtt.is_some() && server.session.is_handshaking());
    client.read(&flight).unwrap();
    let flight = client.flight();
    assert!(!client.session.is_handshaking() && server.session.is_handshaking());
    server.read(&flight).unwrap();
    assert!(!server.session.is_handshaking());
}

#[test]
fn keys_change_in_order_with_the_bytes_of_each_level() {
    let (client, server) = tls(options());
    let (mut client, mut server) = start(&client, &server);
    server.read(&client.flight()).unwrap();
    let levels: Vec<_> = server.flight().iter().map(|(level, _)| *level).collect();
    assert_eq!(
        levels,
        [EncryptionLevel::Initial, EncryptionLevel::Handshake]
    );
}

#[test]
fn second_connection_resumes() {
    for suite in SUITES {
        let mut options = options();
        options.1.suites = vec![suite];
        let (client, server) = tls(options);
        connect(&client, &server);
        let (mut client, mut server) = start(&client, &server);
        assert_eq!(
            client.session.peer_transport_parameters(),
            None,
            "remembered, not received"
        );
        drive(&mut client, &mut server).unwrap();
        for end in [&client, &server] {
            assert!(end.session.handshake_data().resumed, "{suite}");
        }
        assert!(client.session.peer_certificates().is_some(), "{suite}");
        assert_keys_match(
            client.one_rtt.as_ref().unwrap(),
            server.one_rtt.as_ref().unwrap(),
        );
    }
}

#[test]
fn tickets_are_used_once() {
    let (client, server) = tls(options());
    let (_, first_server) = connect(&client, &server);
    assert!(first_server.session.can_be_dropped());
    // The first connection received two tickets. The following ones do not wait for theirs.
    let resumed: Vec<_> = (0..3)
        .map(|_| {
            let (mut client, mut server) = start(&client, &server);
            server.read(&client.flight()).unwrap();
            client.read(&server.flight()).unwrap();
            client.session.handshake_data().resumed
        })
        .collect();
    assert_eq!(resumed, [true, true, false]);
}

#[test]
fn resumption_can_be_disabled() {
    let mut options = options();
    options.0.resumption = Resumption::disabled();
    let (client, server) = tls(options);
    connect(&client, &server);
    assert!(!connect(&client, &server).0.session.handshake_data().resumed);
}

#[test]
fn early_data_is_disabled_even_if_configured() {
    let options = options();
    let mut client = rustls::ClientConfig::clone(&client_config(options.0).unwrap());
    client.enable_early_data = true;
    let mut server = rustls::ServerConfig::clone(&crate::server_config(options.1).unwrap());
    server.max_early_data_size = u32::MAX;
    let client = TlsClient::new(Arc::new(client)).unwrap();
    let server = TlsServer::new(Arc::new(server)).unwrap();
    let (mut first, mut first_server) = start(&client, &server);
    first_server.read(&first.flight()).unwrap();
    first.read(&first_server.flight()).unwrap();
    first_server.read(&first.flight()).unwrap();
    let (level, tickets) = first_server.flight().remove(0);
    assert_eq!(level, EncryptionLevel::OneRtt);
    for ticket in messages::split(&tickets) {
        assert_eq!(ticket[0], 4, "NewSessionTicket");
        assert_eq!(ticket[ticket.len() - 2..], [0, 0], "no extension");
    }
    first.session.read(level, &tickets).unwrap();
    let hello = start(&client, &server).0.flight().remove(0).1;
    assert_eq!(messages::extension(&hello, messages::EARLY_DATA), None);
}

#[test]
fn handshake_completes_after_a_hello_retry_request() {
    let authority = Authority::new("root");
    let (client, server) = options_of(&authority);
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = vec![kx_group::SECP256R1];
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(server.identity.chain, server.identity.key)
        .unwrap();
    config.alpn_protocols = server.alpn;
    let client = TlsClient::new(client_config(client).unwrap()).unwrap();
    let (client, server) = connect(&client, &TlsServer::new(Arc::new(config)).unwrap());
    assert_eq!(
        client.session.handshake_data().key_exchange.as_deref(),
        Some("secp256r1")
    );
    assert_keys_match(
        client.one_rtt.as_ref().unwrap(),
        server.one_rtt.as_ref().unwrap(),
    );
}

#[test]
fn client_certificate_is_passed_to_the_server() {
    let authority = Authority::new("clients");
    let mut options = options();
    let identity = authority.identity("client");
    let chain: Vec<_> = identity.chain.iter().map(|der| der.to_vec()).collect();
    options.0.identity = Some(identity);
    options.1.client_authentication = ClientAuthentication::Required(authority.roots());
    let (client, server) = tls(options);
    let (_, end) = connect(&client, &server);
    assert_eq!(end.session.peer_certificates(), Some(chain.clone()));
    let (_, end) = connect(&client, &server);
    assert!(end.session.handshake_data().resumed);
    assert_eq!(end.session.peer_certificates(), Some(chain));
}

#[test]
fn missing_client_certificate_is_refused_only_if_required() {
    let authority = Authority::new("clients");
    let mut lenient = options();
    lenient.1.client_authentication = ClientAuthentication::Optional(authority.roots());
    let (client, server) = tls(lenient);
    assert_eq!(
        connect(&client, &server).1.session.peer_certificates(),
        None
    );
    let mut strict = options();
    strict.1.client_authentication = ClientAuthentication::Required(authority.roots());
    assert_eq!(refused(strict).alert, Some(116), "certificate_required");
}

/// RFC 9001 §4.4.
#[test]
fn no_certificate_is_requested_after_the_handshake() {
    let authority = Authority::new("clients");
    let mut lenient = options();
    lenient.1.client_authentication = ClientAuthentication::Optional(authority.roots());
    let (client, server) = tls(lenient);
    let (mut client, mut server) = start(&client, &server);
    server.read(&client.flight()).unwrap();
    client.read(&server.flight()).unwrap();
    server.read(&client.flight()).unwrap();
    assert!(!server.session.is_handshaking());
    assert_eq!(
        server.session.peer_certificates(),
        None,
        "the client sent no certificate"
    );
    let flights = server.flight();
    assert!(!flights.is_empty());
    for (level, bytes) in flights {
        assert_eq!(level, EncryptionLevel::OneRtt);
        for message in messages::split(&bytes) {
            assert_eq!(message[0], 4, "NewSessionTicket");
        }
    }
}

#[test]
fn client_certificate_of_another_authority_is_refused() {
    let mut options = options();
    options.0.identity = Some(Authority::new("other clients").identity("client"));
    options.1.client_authentication =
        ClientAuthentication::Required(Authority::new("clients").roots());
    assert_eq!(refused(options).alert, Some(48), "unknown_ca");
}

#[test]
fn client_receives_the_certificate_of_the_server() {
    let (client, server) = tls(options());
    let (client, server) = connect(&client, &server);
    assert_eq!(client.session.peer_certificates().unwrap().len(), 1);
    assert_eq!(server.session.peer_certificates(), None);
}

#[test]
fn server_may_be_named_by_address() {
    let authority = Authority::new("root");
    let (client, mut server) = options_of(&authority);
    server.identity = authority.identity("192.0.2.1");
    let (client, server) = tls((client, server));
    let mut client = End::new(client.start("192.0.2.1", Vec::new()).unwrap());
    let mut server = End::new(server.start(Vec::new()).unwrap());
    drive(&mut client, &mut server).unwrap();
    assert_eq!(
        client.session.handshake_data().server_name.as_deref(),
        Some("192.0.2.1")
    );
    assert_eq!(server.session.handshake_data().server_name, None);
}

#[test]
fn invalid_server_name_is_an_error() {
    let (client, _) = tls(options());
    let error = client.start("not a name", Vec::new()).err().unwrap();
    assert_eq!(
        error.to_string(),
        "server name 'not a name' is neither a DNS name nor an IP address"
    );
}

#[test]
fn any_server_is_trusted_if_configured() {
    let mut options = options();
    options.0.trust = Trust::AnyServer;
    options.1.identity = Authority::new("untrusted").expired_identity("elsewhere.example");
    let (client, server) = tls(options);
    connect(&client, &server);
}

#[test]
fn exporters_agree_with_each_other_and_with_rustls() {
    for suite in SUITES {
        let mut options = options();
        options.1.suites = vec![suite];
        let client = client_config(options.0).unwrap();
        let server = TlsServer::new(crate::server_config(options.1).unwrap()).unwrap();
        let mut config = rustls::ClientConfig::clone(&client);
        config.key_log = crate::secrets::Tap::new(config.key_log);
        let name = rustls::pki_types::ServerName::try_from(SERVER_NAME).unwrap();
        let connection =
            quic::ClientConnection::new(Arc::new(config), quic::Version::V1, name, Vec::new());
        let mut client = Session::new(
            Connection::Client(connection.unwrap()),
            None,
            Secrets::default(),
        );
        let mut server = End::new(server.start(Vec::new()).unwrap());
        let early = client.export_keying_material(&mut [0; 8], b"label", None);
        assert_eq!(early.unwrap_err().alert, Some(80), "{suite}");
        finish(&mut client, &mut server);
        for (label, context, len) in [
            ("label", None, 32),
            ("label", Some(&b"context"[..]), 100),
            ("other", None, 1),
        ] {
            let (mut ours, mut theirs) = (vec![0; len], vec![0; len]);
            client
                .export_keying_material(&mut ours, label.as_bytes(), context)
                .unwrap();
            let exporter = server.session.exporter().unwrap();
            exporter
                .export(&mut theirs, label.as_bytes(), context)
                .unwrap();
            let rustls = client
                .connection
                .export_keying_material(vec![0; len], label.as_bytes(), context)
                .unwrap();
            assert_eq!(ours, theirs, "{suite} {label}");
            assert_eq!(ours, rustls, "{suite} {label}");
        }
        let too_long = client.export_keying_material(&mut [0; 8], &[b'x'; 250], None);
        assert!(too_long.is_err(), "{suite}");
    }
}

/// Completes a handshake of a session whose fields the test inspects.
fn finish(client: &mut Session, server: &mut End) {
    let mut level = EncryptionLevel::Initial;
    while client.is_handshaking() || server.session.is_handshaking() {
        let mut bytes = Vec::new();
        let change = client.write(&mut bytes);
        server.session.read(level, &bytes).unwrap();
        if matches!(change, Some(KeyChange::Handshake(_))) {
            level = EncryptionLevel::Handshake;
        }
        for (level, bytes) in server.flight() {
            client.read(level, &bytes).unwrap();
        }
    }
}

#[test]
fn server_can_be_dropped_after_its_tickets() {
    let (client, server) = tls(options());
    let (mut client, mut server) = start(&client, &server);
    server.read(&client.flight()).unwrap();
    client.read(&server.flight()).unwrap();
    server.read(&client.flight()).unwrap();
    assert!(
        !server.session.can_be_dropped(),
        "tickets are not written yet"
    );
    assert!(!server.flight().is_empty());
    assert!(server.session.can_be_dropped());
    assert!(!client.session.can_be_dropped());
}

#[test]
fn key_log_of_the_user_receives_the_labels_that_it_accepts() {
    let (client_lines, server_lines) = (lines(), lines());
    let mut options = options();
    options.0.key_log = KeyLogging::To(client_lines.clone());
    options.1.key_log = KeyLogging::To(server_lines.clone());
    let (client, server) = tls(options);
    connect(&client, &server);
    let expected = [
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "CLIENT_TRAFFIC_SECRET_0",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "SERVER_TRAFFIC_SECRET_0",
    ];
    assert_eq!(client_lines.labels(), expected);
    assert_eq!(server_lines.labels(), expected);
}
