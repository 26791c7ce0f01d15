use std::sync::{Arc, Mutex};

use courser_crypto::{ClientTls, ServerTls};
use courser_wire::VERSION_2;

use super::*;
use crate::testing::{CLIENT_PARAMETERS, End, SERVER_NAME, SERVER_PARAMETERS, drive, options, tls};
use crate::{TlsClient, TlsServer};

/// The transport parameters that were passed to the answer; the outer `None` until it is called.
type AnswerCall = Arc<Mutex<Option<Option<Vec<u8>>>>>;

fn deferred(server: &TlsServer) -> (End, AnswerCall) {
    let called = AnswerCall::default();
    let seen = Arc::clone(&called);
    let answer: Answer = Box::new(move |parameters| {
        let parameters = parameters.map(<[u8]>::to_vec);
        let before = seen.lock().unwrap().replace(parameters);
        assert_eq!(before, None, "the answer is called once");
        (VERSION_2, SERVER_PARAMETERS.to_vec())
    });
    let session = server.start_after_hello(answer).unwrap();
    (End::new(session), called)
}

fn client_of(client: &TlsClient) -> End {
    End::new(
        client
            .start(SERVER_NAME, CLIENT_PARAMETERS.to_vec())
            .unwrap(),
    )
}

#[test]
fn parameters_are_chosen_once_the_client_hello_is_complete() {
    let (client, server) = tls(options());
    let mut client = client_of(&client);
    let (mut server, called) = deferred(&server);
    let flight = client.flight();
    let [(level, hello)] = &flight[..] else {
        panic!("the flight is one message")
    };
    let (last, start) = hello.split_last().unwrap();
    for byte in start {
        server.session.read(*level, &[*byte]).unwrap();
        assert!(server.session.is_handshaking());
        assert_eq!(server.session.peer_transport_parameters(), None);
    }
    assert_eq!(*called.lock().unwrap(), None);
    assert!(server.flight().is_empty());
    server.session.read(*level, &[*last]).unwrap();
    let expected = Some(Some(CLIENT_PARAMETERS.to_vec()));
    assert_eq!(*called.lock().unwrap(), expected);
    client.read(&server.flight()).unwrap();
    drive(&mut client, &mut server).unwrap();
    assert!(!client.session.is_handshaking() && !server.session.is_handshaking());
    let seen = client.session.peer_transport_parameters();
    assert_eq!(seen, Some(SERVER_PARAMETERS));
    let seen = server.session.peer_transport_parameters();
    assert_eq!(seen, Some(CLIENT_PARAMETERS));
    assert!(server.session.exporter().is_some());
}

#[test]
fn messages_other_than_a_client_hello_cause_the_usual_error() {
    let (_, server) = tls(options());
    let mut plain = server.start(SERVER_PARAMETERS.to_vec()).unwrap();
    let (mut waiting, called) = deferred(&server);
    let message = [2, 0, 0, 1, 0];
    let expected = plain.read(EncryptionLevel::Initial, &message).unwrap_err();
    let error = waiting.session.read(EncryptionLevel::Initial, &message);
    assert_eq!(error, Err(expected));
    assert_eq!(*called.lock().unwrap(), Some(None));
    let error = deferred(&server)
        .0
        .session
        .read(EncryptionLevel::Handshake, &[1]);
    assert_eq!(error.unwrap_err().alert, None);
}

#[test]
fn an_endless_client_hello_is_refused_at_the_limit() {
    let (_, server) = tls(options());
    let (mut waiting, called) = deferred(&server);
    let mut read = waiting
        .session
        .read(EncryptionLevel::Initial, &[1, 0xff, 0xff, 0xff]);
    let mut kept = 4;
    while read.is_ok() && kept <= 2 * MAX_CLIENT_HELLO {
        assert!(kept <= MAX_CLIENT_HELLO, "limit K170");
        kept += 1000;
        read = waiting.session.read(EncryptionLevel::Initial, &[0; 1000]);
    }
    assert!(read.is_err());
    assert!(called.lock().unwrap().is_some());
}

#[test]
fn a_malformed_client_hello_has_no_parameters() {
    let (client, _) = tls(options());
    let hello = client_of(&client).flight().remove(0).1;
    let found = client_hello::transport_parameters(&hello);
    assert_eq!(found, Some(CLIENT_PARAMETERS));
    // The extension is complete somewhere before the end.
    for end in 0..hello.len() {
        assert!(client_hello::is_incomplete(&hello[..end]), "cut at {end}");
        assert_eq!(client_hello::transport_parameters(&hello[..end]), None);
    }
    assert!(!client_hello::is_incomplete(&hello));
}
