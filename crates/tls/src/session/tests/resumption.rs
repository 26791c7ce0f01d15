//! Tickets offered to servers that did not issue them. RFC 9846 §4.6.1, attacks A63 and A69, fault
//! F57.

use std::sync::Mutex;

use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::pki_types::ServerName;
use rustls::{NamedGroup, RootCertStore};

use super::*;
use crate::{ServerOptions, server_config};

/// A store that keeps the tickets of all servers together, which a correct client does not.
#[derive(Debug, Default)]
struct SharedStore(Mutex<Vec<Tls13ClientSessionValue>>);

impl ClientSessionStore for SharedStore {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.0.lock().unwrap().push(value);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.0.lock().unwrap().pop()
    }
}

/// Returns a client that trusts `authority` and offers any of its tickets to any server.
fn client_with_shared_store(authority: &Authority, identity: Option<crate::Identity>) -> TlsClient {
    let mut client = options_of(authority).0;
    client.identity = identity;
    client.resumption = Resumption::store(Arc::new(SharedStore::default()));
    TlsClient::new(client_config(client).unwrap()).unwrap()
}

/// Returns true if a handshake with this name resumed a session.
fn is_resumed(client: &TlsClient, server: &TlsServer, name: &str) -> bool {
    let session = client.start(name, CLIENT_PARAMETERS.to_vec()).unwrap();
    let mut client = End::new(session);
    let mut server = End::new(server.start(SERVER_PARAMETERS.to_vec()).unwrap());
    drive(&mut client, &mut server).unwrap();
    let resumed = client.session.handshake_data().resumed;
    assert_eq!(resumed, server.session.handshake_data().resumed);
    resumed
}

#[test]
fn tickets_resume_only_under_the_name_they_were_issued_for() {
    let authority = Authority::new("root");
    let identity = authority.identity_of(&["a.example", "b.example"]);
    let server = ServerOptions::new(identity, vec![b"test".to_vec()]);
    let server = TlsServer::new(server_config(server).unwrap()).unwrap();
    for (first, second) in [
        ("a.example", "a.example"),
        ("a.example", "b.example"),
        ("b.example", "a.example"),
        ("b.example", "b.example"),
    ] {
        let client = client_with_shared_store(&authority, None);
        assert!(!is_resumed(&client, &server, first));
        let resumed = is_resumed(&client, &server, second);
        assert_eq!(resumed, first == second, "{first}, then {second}");
    }
}

/// Returns three servers with the same certificate. The first requests no client certificate, the
/// second requests one, the third requires one.
fn servers(authority: &Authority, clients: &RootCertStore) -> [(&'static str, TlsServer); 3] {
    let identity = authority.identity(SERVER_NAME);
    let with = |authentication| {
        let identity = crate::Identity {
            chain: identity.chain.clone(),
            key: identity.key.clone_key(),
        };
        let mut options = ServerOptions::new(identity, vec![b"test".to_vec()]);
        options.client_authentication = authentication;
        TlsServer::new(server_config(options).unwrap()).unwrap()
    };
    [
        ("off", with(ClientAuthentication::Off)),
        (
            "optional",
            with(ClientAuthentication::Optional(clients.clone())),
        ),
        (
            "required",
            with(ClientAuthentication::Required(clients.clone())),
        ),
    ]
}

#[test]
fn tickets_do_not_bypass_client_authentication() {
    let (authority, clients) = (Authority::new("root"), Authority::new("clients"));
    let servers = servers(&authority, &clients.roots());
    for (from, issuer) in &servers[..2] {
        for (to, receiver) in &servers {
            let client = client_with_shared_store(&authority, None);
            assert!(!is_resumed(&client, issuer, SERVER_NAME));
            if *to == "required" {
                let (mut client, mut server) = start(&client, receiver);
                let error = drive(&mut client, &mut server).unwrap_err();
                assert_eq!(error.alert, Some(116), "{from}: certificate_required");
                continue;
            }
            let resumed = is_resumed(&client, receiver, SERVER_NAME);
            assert_eq!(resumed, from == to, "from {from} to {to}");
        }
    }
}

#[test]
fn client_certificate_is_presented_again_to_another_server() {
    let (authority, clients) = (Authority::new("root"), Authority::new("clients"));
    let identity = clients.identity("client");
    let chain: Vec<_> = identity.chain.iter().map(|der| der.to_vec()).collect();
    let servers = servers(&authority, &clients.roots());
    for (from, issuer) in &servers {
        for (to, receiver) in &servers {
            let identity = crate::Identity {
                chain: identity.chain.clone(),
                key: identity.key.clone_key(),
            };
            let client = client_with_shared_store(&authority, Some(identity));
            connect(&client, issuer);
            let (client, server) = connect(&client, receiver);
            let resumed = client.session.handshake_data().resumed;
            assert_eq!(resumed, from == to, "from {from} to {to}");
            let shown = (*to != "off").then(|| chain.clone());
            let seen = server.session.peer_certificates();
            assert_eq!(seen, shown, "from {from} to {to}");
        }
    }
}

/// F57: a server that restarts has new ticket keys, unless it is given the old ones.
#[test]
fn tickets_of_discarded_keys_lead_to_a_full_handshake() {
    let (authority, clients) = (Authority::new("root"), Authority::new("clients"));
    let [(_, before), ..] = servers(&authority, &clients.roots());
    let [(_, after), ..] = servers(&authority, &clients.roots());
    let client = client_with_shared_store(&authority, None);
    assert!(!is_resumed(&client, &before, SERVER_NAME));
    assert!(!is_resumed(&client, &after, SERVER_NAME));
    assert!(is_resumed(&client, &after, SERVER_NAME), "the new ticket");
}

/// A69: a server may send any number of tickets.
#[test]
fn at_most_eight_of_many_tickets_are_kept() {
    let authority = Authority::new("root");
    let (mut client, server) = options_of(&authority);
    let store = Arc::new(ClientSessionMemoryCache::new(256));
    client.resumption = Resumption::store(store.clone());
    let client = TlsClient::new(client_config(client).unwrap()).unwrap();
    let mut server = rustls::ServerConfig::clone(&server_config(server).unwrap());
    server.send_tls13_tickets = 1000;
    let server = TlsServer::new(Arc::new(server)).unwrap();
    connect(&client, &server);
    let name = ServerName::try_from(SERVER_NAME).unwrap();
    let kept = std::iter::from_fn(|| store.take_tls13_ticket(&name)).count();
    assert_eq!(kept, 8);
}
