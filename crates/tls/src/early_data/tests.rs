//! Early data between two sessions. RFC 9001 §4.6, RFC 8446 §8, attacks A61 and A62.

use std::sync::atomic::{AtomicBool, Ordering};

use courser_crypto::{ClientTls, Secret, ServerTls};
use courser_wire::TransportParameters;
use rustls::server::ServerSessionMemoryCache;

use super::*;
use crate::testing::*;
use crate::{TlsClient, TlsServer, client_config, server_config};

/// Returns a client and a server with early data, in this configuration of the server.
fn ends(early_data: EarlyDataOptions) -> (TlsClient, TlsServer) {
    let (client, server) = options();
    (
        TlsClient::with_early_data(client_config(client).unwrap()).unwrap(),
        TlsServer::with_early_data(server_config(server).unwrap(), early_data).unwrap(),
    )
}

fn parameters(initial_max_data: u64) -> Vec<u8> {
    let parameters = TransportParameters {
        initial_max_data,
        ..TransportParameters::default()
    };
    let mut bytes = Vec::new();
    parameters.encode(&mut bytes, None);
    bytes
}

/// Starts two ends whose server grants `data` bytes on the connection.
fn begin(client: &TlsClient, server: &TlsServer, data: u64) -> (End, End) {
    let client = client
        .start(SERVER_NAME, CLIENT_PARAMETERS.to_vec())
        .unwrap();
    let server = server.start(parameters(data)).unwrap();
    (End::new(client), End::new(server))
}

/// Performs a handshake that leaves the client with tickets.
fn issue_tickets(client: &TlsClient, server: &TlsServer, data: u64) {
    let (mut client, mut server) = begin(client, server, data);
    drive(&mut client, &mut server).unwrap();
    assert!(!server.session.is_early_data_accepted());
}

fn assert_match(client: &Secret, server: &Secret) {
    let mut packet = *b"headertext................";
    client.packet_key().seal_packet(7, &mut packet, 6);
    let (header, payload) = packet.split_at_mut(6);
    assert_eq!(server.packet_key().open(7, header, payload), Ok(4));
}

/// Drives the ends and returns whether both agree that the early data is accepted.
fn is_accepted(client: &mut End, server: &mut End) -> bool {
    drive(client, server).unwrap();
    let is_accepted = client.session.is_early_data_accepted();
    assert!(!client.session.is_handshaking() && !server.session.is_handshaking());
    is_accepted
}

#[test]
fn both_ends_derive_the_early_secret_before_the_handshake_is_complete() {
    let (client, server) = ends(EarlyDataOptions::default());
    issue_tickets(&client, &server, 7);
    let (mut client, mut server) = begin(&client, &server, 7);
    let ours = client
        .session
        .take_early_secret()
        .expect("the client has a ticket for early data");
    assert!(
        client.session.take_early_secret().is_none(),
        "the secret is returned once"
    );
    let remembered = client.session.remembered_parameters().map(<[u8]>::to_vec);
    assert_eq!(remembered, Some(parameters(7)));
    assert_eq!(client.session.peer_transport_parameters(), None);
    server.read(&client.flight()).unwrap();
    assert!(server.session.is_handshaking() && server.session.is_early_data_accepted());
    let theirs = server
        .session
        .take_early_secret()
        .expect("the server accepts early data");
    assert_match(&ours, &theirs);
    assert!(is_accepted(&mut client, &mut server));
    assert_eq!(client.session.remembered_parameters(), None);
    assert!(client.session.handshake_data().resumed);
}

/// RFC 9001 §8.3: packets of the application space mark the end of early data.
#[test]
fn a_client_sends_no_end_of_early_data() {
    let (client, server) = ends(EarlyDataOptions::default());
    issue_tickets(&client, &server, 7);
    let (mut client, mut server) = begin(&client, &server, 7);
    let mut types = Vec::new();
    loop {
        let flight = client.flight();
        for (_, bytes) in &flight {
            let mut rest = &bytes[..];
            // Type and length of a message of the handshake (RFC 8446 §4).
            while let [message_type, a, b, c, ..] = *rest {
                types.push(message_type);
                rest = &rest[4 + u32::from_be_bytes([0, a, b, c]) as usize..];
            }
        }
        server.read(&flight).unwrap();
        let back = server.flight();
        client.read(&back).unwrap();
        if flight.is_empty() && back.is_empty() {
            break;
        }
    }
    assert!(client.session.is_early_data_accepted());
    const CLIENT_HELLO: u8 = 1;
    const FINISHED: u8 = 20;
    assert_eq!(types, [CLIENT_HELLO, FINISHED]);
}

#[test]
fn a_client_without_a_ticket_has_no_early_secret() {
    let (client, server) = ends(EarlyDataOptions::default());
    let (mut client, _) = begin(&client, &server, 7);
    assert!(client.session.take_early_secret().is_none());
    assert_eq!(client.session.remembered_parameters(), None);
}

#[test]
fn early_data_of_a_replayed_client_hello_is_refused() {
    let (client, server) = ends(EarlyDataOptions::default());
    issue_tickets(&client, &server, 7);
    let (mut client, mut first) = begin(&client, &server, 7);
    let hello = client.flight();
    first.read(&hello).unwrap();
    assert!(first.session.take_early_secret().is_some());
    let mut second = End::new(server.start(parameters(7)).unwrap());
    second.read(&hello).unwrap();
    assert!(second.session.take_early_secret().is_none());
    assert!(!second.session.is_early_data_accepted());
}

/// A store that returns a session at each call, as a store without an atomic take may.
#[derive(Debug)]
struct RepeatingStore(courser_base::Mutex<std::collections::HashMap<Vec<u8>, Vec<u8>>>);

impl StoresServerSessions for RepeatingStore {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.0.lock().insert(key, value);
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.0.lock().get(key).cloned()
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.get(key)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[test]
fn the_filter_refuses_a_replay_that_the_store_permits() {
    let sessions: Arc<dyn StoresServerSessions> =
        Arc::new(RepeatingStore(courser_base::Mutex::default()));
    let early_data = EarlyDataOptions {
        sessions,
        ..EarlyDataOptions::default()
    };
    let (client, server) = ends(early_data);
    issue_tickets(&client, &server, 7);
    let (mut client, mut first) = begin(&client, &server, 7);
    let hello = client.flight();
    first.read(&hello).unwrap();
    assert!(first.session.is_early_data_accepted());
    let mut second = End::new(server.start(parameters(7)).unwrap());
    second.read(&hello).unwrap();
    assert!(!second.session.is_early_data_accepted());
}

/// A filter of an application, whose answer the test sets.
#[derive(Debug, Default)]
struct ManualFilter(AtomicBool);

impl ReplayFilter for ManualFilter {
    fn is_first_use(&self, _ticket: &[u8], _now: std::time::Duration) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn a_filter_that_is_not_certain_leads_to_a_full_handshake() {
    for (is_certain, message) in [(false, "refused"), (true, "accepted")] {
        let filter = Arc::new(ManualFilter::default());
        filter.0.store(is_certain, Ordering::Relaxed);
        let early_data = EarlyDataOptions {
            filter,
            ..EarlyDataOptions::default()
        };
        let (client, server) = ends(early_data);
        issue_tickets(&client, &server, 7);
        let (mut client, mut server) = begin(&client, &server, 7);
        assert!(client.session.take_early_secret().is_some(), "{message}");
        assert_eq!(
            is_accepted(&mut client, &mut server),
            is_certain,
            "{message}"
        );
        assert_eq!(client.session.handshake_data().resumed, is_certain);
    }
}

#[test]
fn early_data_is_refused_when_a_limit_is_below_the_remembered_one() {
    for (data, expected) in [(8, true), (7, true), (6, false)] {
        let (client, server) = ends(EarlyDataOptions::default());
        issue_tickets(&client, &server, 7);
        let (mut client, mut server) = begin(&client, &server, data);
        assert!(client.session.take_early_secret().is_some(), "{data}");
        assert_eq!(is_accepted(&mut client, &mut server), expected, "{data}");
        let received = client.session.peer_transport_parameters();
        assert_eq!(
            received,
            Some(&parameters(data)[..]),
            "the parameters of this connection"
        );
    }
}

#[test]
fn early_data_is_refused_when_the_settings_of_the_application_differ() {
    let of = |application: &[u8]| EarlyDataOptions {
        application: application.to_vec(),
        ..EarlyDataOptions::default()
    };
    let first = of(b"some settings");
    for (application, expected) in [(&b"some settings"[..], true), (b"some", false)] {
        let later = EarlyDataOptions {
            application: application.to_vec(),
            ..first.clone()
        };
        let (client, server) = options();
        let client = TlsClient::with_early_data(client_config(client).unwrap()).unwrap();
        let config = server_config(server).unwrap();
        let server = |options| TlsServer::with_early_data(config.clone(), options).unwrap();
        issue_tickets(&client, &server(first.clone()), 7);
        let (mut client, mut server) = begin(&client, &server(later), 7);
        assert_eq!(is_accepted(&mut client, &mut server), expected);
    }
}

#[test]
fn a_server_without_its_sessions_refuses_early_data() {
    let (client, server) = options();
    let client = TlsClient::with_early_data(client_config(client).unwrap()).unwrap();
    let config = server_config(server).unwrap();
    let server =
        || TlsServer::with_early_data(config.clone(), EarlyDataOptions::default()).unwrap();
    issue_tickets(&client, &server(), 7);
    let (mut client, mut server) = begin(&client, &server(), 7);
    assert!(client.session.take_early_secret().is_some());
    assert!(!is_accepted(&mut client, &mut server));
}

#[test]
fn a_server_without_early_data_stores_no_session() {
    let (client, server) = options();
    let client = TlsClient::with_early_data(client_config(client).unwrap()).unwrap();
    let server = TlsServer::new(server_config(server).unwrap()).unwrap();
    issue_tickets(&client, &server, 7);
    let (mut client, mut server) = begin(&client, &server, 7);
    assert!(
        client.session.take_early_secret().is_none(),
        "the ticket does not permit early data"
    );
    assert!(!is_accepted(&mut client, &mut server));
    assert!(client.session.handshake_data().resumed);
}

#[test]
fn the_oldest_sessions_are_removed() {
    let (_, server) = options();
    let mut config = rustls::ServerConfig::clone(&server_config(server).unwrap());
    EarlyDataOptions::default().apply(&mut config);
    let limits = EarlyLimits::of(&parameters(7));
    let mut secrets = crate::secrets::Secrets::with_limits(Some(limits));
    let key = |number: usize| [number.to_be_bytes(); 4].concat();
    secrets.capture(|| {
        let store = &config.session_storage;
        let put = |number| assert!(store.put(key(number), vec![1]));
        (0..MAX_SESSIONS).for_each(put);
        assert_eq!(store.take(&key(0)), Some(vec![1]), "at limit K150");
        put(MAX_SESSIONS);
        put(MAX_SESSIONS + 1);
        assert_eq!(store.take(&key(1)), None, "one above limit K150");
        for kept in [2, MAX_SESSIONS, MAX_SESSIONS + 1] {
            assert_eq!(store.take(&key(kept)), Some(vec![1]), "{kept}");
        }
    });
}

#[test]
fn sessions_of_another_format_and_large_ones_are_not_used() {
    let store = ServerSessionMemoryCache::new(10);
    let clock = Arc::new(rustls::time_provider::DefaultTimeProvider);
    let filter = Arc::new(MemoryReplayFilter::default());
    let sessions = Sessions::new(store.clone(), filter, clock, b"settings");
    store.put(vec![1; 32], vec![0xff; 100]);
    let limits = EarlyLimits::of(&parameters(7));
    let mut secrets = crate::secrets::Secrets::with_limits(Some(limits));
    secrets.capture(|| {
        assert_eq!(sessions.take(&[1; 32]), None, "another format");
        assert!(!sessions.put(vec![2; 32], vec![0; 8193]), "limit K151");
        assert!(sessions.put(vec![3; 32], vec![0; 8192]));
        assert_eq!(sessions.take(&[3; 32]), Some(vec![0; 8192]));
        assert_eq!(sessions.take(&[3; 32]), None, "taken before");
    });
    assert!(
        !sessions.put(vec![4; 32], Vec::new()),
        "outside a handshake"
    );
}
