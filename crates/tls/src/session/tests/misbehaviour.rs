//! Handshakes that must fail, and their error codes.

use courser_wire::TransportErrorCode;

use super::*;
use crate::testing::messages::*;

fn hello_of(client: &mut End) -> Vec<u8> {
    client.flight().remove(0).1
}

/// Returns a server's result for a changed ClientHello.
fn server_answer(change: impl FnOnce(&[u8]) -> Vec<u8>) -> Result<(), TlsError> {
    let (client, server) = tls(options());
    let (mut client, mut server) = start(&client, &server);
    let hello = change(&hello_of(&mut client));
    server.session.read(EncryptionLevel::Initial, &hello)
}

/// Returns a client's error for the first flight of a server in which one message was changed.
fn client_answer(kind: u8, change: impl Fn(&[u8]) -> Vec<u8>) -> TlsError {
    let (client, server) = tls(options());
    let (mut client, mut server) = start(&client, &server);
    server.read(&client.flight()).unwrap();
    let flight: Flight = server
        .flight()
        .into_iter()
        .map(|(level, bytes)| {
            let changed = split(&bytes).into_iter().map(|message| {
                if message[0] == kind {
                    change(&message)
                } else {
                    message
                }
            });
            (level, changed.collect::<Vec<_>>().concat())
        })
        .collect();
    client.read(&flight).unwrap_err()
}

/// Returns the result of one end for a message after the handshake.
fn late_answer(side: Side, message: &[u8]) -> Result<(), TlsError> {
    let (client, server) = tls(options());
    let (mut client, mut server) = connect(&client, &server);
    let end = if side.is_client() {
        &mut client
    } else {
        &mut server
    };
    end.session.read(EncryptionLevel::OneRtt, message)
}

fn is_violation(result: Result<(), TlsError>) -> bool {
    result.is_err_and(|error| error.code() == TransportErrorCode::PROTOCOL_VIOLATION)
}

#[test]
fn no_common_protocol_is_alert_120() {
    let mut options = options();
    options.1.alpn = vec![b"other".to_vec()];
    let error = refused(options);
    assert_eq!(error.alert, Some(120));
    assert_eq!(error.code().value(), 0x178);
}

#[test]
fn client_without_alpn_is_alert_120() {
    let error = server_answer(|hello| with_extension(hello, ALPN, None)).unwrap_err();
    assert_eq!(error.code().value(), 0x178);
}

#[test]
fn server_without_alpn_is_alert_120() {
    let error = client_answer(ENCRYPTED_EXTENSIONS, |m| with_extension(m, ALPN, None));
    assert_eq!(error.code().value(), 0x178);
}

#[test]
fn protocol_that_was_not_offered_is_alert_120() {
    let error = client_answer(ENCRYPTED_EXTENSIONS, |m| {
        with_extension(m, ALPN, Some(b"\x00\x03\x02no"))
    });
    assert_eq!(error.code().value(), 0x178);
}

#[test]
fn client_without_transport_parameters_is_alert_109() {
    let error =
        server_answer(|hello| with_extension(hello, TRANSPORT_PARAMETERS, None)).unwrap_err();
    assert_eq!(error.code().value(), 0x16d);
}

#[test]
fn server_without_transport_parameters_is_alert_109() {
    let error = client_answer(ENCRYPTED_EXTENSIONS, |m| {
        with_extension(m, TRANSPORT_PARAMETERS, None)
    });
    assert_eq!(error.code().value(), 0x16d);
}

#[test]
fn bad_certificates_cause_the_matching_alerts() {
    let authority = Authority::new("root");
    let (client, mut server) = options_of(&authority);
    server.identity = authority.expired_identity(SERVER_NAME);
    assert_eq!(
        refused((client, server)).alert,
        Some(45),
        "certificate_expired"
    );

    let (client, mut server) = options_of(&authority);
    server.identity = authority.identity("elsewhere.example");
    assert_eq!(refused((client, server)).alert, Some(42), "bad_certificate");

    let (client, mut server) = options_of(&authority);
    server.identity = Authority::new("another root").identity(SERVER_NAME);
    assert_eq!(refused((client, server)).alert, Some(48), "unknown_ca");
}

#[test]
fn older_tls_is_alert_70() {
    let error =
        server_answer(|hello| with_extension(hello, SUPPORTED_VERSIONS, Some(b"\x02\x03\x03")))
            .unwrap_err();
    assert_eq!(error.code().value(), 0x146);
    let error = server_answer(|hello| with_extension(hello, SUPPORTED_VERSIONS, None)).unwrap_err();
    assert_eq!(error.code().value(), 0x146);
    let error = client_answer(SERVER_HELLO, |m| {
        with_extension(m, SUPPORTED_VERSIONS, None)
    });
    assert_eq!(error.code().value(), 0x146);
}

#[test]
fn unknown_suites_in_a_client_hello_are_ignored() {
    server_answer(|hello| with_suites(hello, &[0x1a1a, 0x1305, 0xfefe, 0x1301])).unwrap();
}

#[test]
fn suite_without_header_protection_is_refused() {
    const TLS_AES_128_CCM_8_SHA256: u16 = 0x1305;
    let error = server_answer(|hello| with_suites(hello, &[TLS_AES_128_CCM_8_SHA256])).unwrap_err();
    assert_eq!(error.code().value(), 0x128);
}

#[test]
fn compatibility_mode_is_a_violation() {
    assert!(is_violation(server_answer(|hello| with_session_id(
        hello, &[7; 32]
    ))));
    server_answer(|hello| with_session_id(hello, &[])).unwrap();
}

#[test]
fn compatibility_mode_is_detected_in_any_fragmentation() {
    let (client, server) = tls(options());
    let hello = with_session_id(&hello_of(&mut start(&client, &server).0), &[7; 32]);
    for split in [1, 38, 39] {
        let mut session = server.start(Vec::new()).unwrap();
        let first = session.read(EncryptionLevel::Initial, &hello[..split]);
        assert_eq!(first.is_err(), split == 39, "{split}");
        assert!(
            is_violation(session.read(EncryptionLevel::Initial, &hello[split..])),
            "{split}"
        );
    }
}

#[test]
fn leftover_bytes_at_a_level_are_a_violation() {
    assert!(is_violation(server_answer(|hello| [hello, &[8]].concat())));
    let error = client_answer(SERVER_HELLO, |message| [message, &[8]].concat());
    assert_eq!(error.code(), TransportErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn data_at_another_level_is_a_violation() {
    let (client, server) = tls(options());
    let hello = hello_of(&mut start(&client, &server).0);
    for level in [
        EncryptionLevel::ZeroRtt,
        EncryptionLevel::Handshake,
        EncryptionLevel::OneRtt,
    ] {
        let mut session = server.start(Vec::new()).unwrap();
        assert!(is_violation(session.read(level, &hello)), "{level:?}");
    }
    let (mut client, mut server) = connect(&client, &server);
    for level in [EncryptionLevel::Initial, EncryptionLevel::Handshake] {
        assert!(client.session.read(level, &[]).is_ok(), "{level:?}");
    }
    assert!(is_violation(
        client.session.read(EncryptionLevel::Initial, &[2])
    ));
    assert!(is_violation(
        server.session.read(EncryptionLevel::Handshake, &[20])
    ));
}

#[test]
fn tls_key_update_is_alert_10() {
    for side in [Side::Client, Side::Server] {
        let error = late_answer(side, &message(24, &[0])).unwrap_err();
        assert_eq!(error.code().value(), 0x10a, "{side:?}");
    }
}

#[test]
fn end_of_early_data_is_alert_10() {
    let (client, server) = tls(options());
    let (mut client, mut server) = start(&client, &server);
    server.read(&client.flight()).unwrap();
    let error = server
        .session
        .read(EncryptionLevel::Handshake, &message(5, &[]))
        .unwrap_err();
    assert_eq!(error.code().value(), 0x10a);
}

#[test]
fn post_handshake_client_authentication_is_a_violation() {
    let signature_algorithms = [0, 13, 0, 4, 0, 2, 4, 3];
    let request = [&[0, 0, 8][..], &signature_algorithms].concat();
    assert!(is_violation(late_answer(
        Side::Client,
        &message(13, &request)
    )));
}

#[test]
fn ticket_for_a_limited_amount_of_early_data_is_a_violation() {
    let ticket = |early_data: u32| {
        let head = [
            0, 0, 14, 16, 1, 2, 3, 4, 1, 9, 0, 2, 7, 7, 0, 8, 0, 42, 0, 4,
        ];
        message(4, &[&head[..], &early_data.to_be_bytes()].concat())
    };
    assert!(is_violation(late_answer(Side::Client, &ticket(1000))));
    late_answer(Side::Client, &ticket(u32::MAX)).unwrap();
}

#[test]
fn message_after_the_handshake_is_alert_10_on_a_server() {
    let error = late_answer(Side::Server, &message(4, &[0; 20])).unwrap_err();
    assert!(matches!(error.alert, Some(10 | 50)), "{error}");
}

#[test]
fn changed_finished_is_alert_51() {
    let error = client_answer(20, |finished| {
        let mut finished = finished.to_vec();
        finished[9] ^= 1;
        finished
    });
    assert_eq!(error.alert, Some(51), "decrypt_error");
}

#[test]
fn oversized_message_is_refused_before_it_is_buffered() {
    let (_, server) = tls(options());
    let mut session = server.start(Vec::new()).unwrap();
    let error = session
        .read(EncryptionLevel::Initial, &[1, 0xff, 0xff, 0xff])
        .unwrap_err();
    assert_eq!(error.alert, Some(50), "decode_error");
}

#[test]
fn failed_session_repeats_its_error_and_writes_nothing() {
    let (_, server) = tls(options());
    let mut session = server.start(Vec::new()).unwrap();
    let first = session
        .read(EncryptionLevel::Initial, &message(1, &[0; 100]))
        .unwrap_err();
    let again = session
        .read(EncryptionLevel::Initial, &message(1, &[0; 100]))
        .unwrap_err();
    assert_eq!(first, again);
    let mut out = Vec::new();
    assert!(session.write(&mut out).is_none());
    assert!(out.is_empty() && !session.can_be_dropped());
}

/// Changes bytes throughout the ClientHello, one per handshake. No handshake may panic or complete
/// on both ends.
#[test]
fn changed_client_hello_never_completes() {
    let (client, server) = tls(options());
    let len = hello_of(&mut start(&client, &server).0).len();
    for position in (0..len).step_by(7) {
        let (mut client, mut server) = start(&client, &server);
        let mut hello = hello_of(&mut client);
        let position = position.min(hello.len() - 1);
        hello[position] ^= 0x20;
        let result = server
            .session
            .read(EncryptionLevel::Initial, &hello)
            .and_then(|()| client.read(&server.flight()))
            .and_then(|()| drive(&mut client, &mut server));
        assert!(result.is_err(), "byte {position}");
    }
}
