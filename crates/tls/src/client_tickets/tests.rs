use courser_crypto::{ClientTls, ServerTls};

use super::*;
use crate::testing::{CLIENT_PARAMETERS, End, SERVER_NAME, SERVER_PARAMETERS, drive, options, tls};
use crate::{TlsClient, TlsServer};

/// Performs a handshake of version 1 with a server at this name and port. Returns true if it resumes a
/// session.
fn resumes(client: &TlsClient, server: &TlsServer, name_and_port: &str) -> bool {
    let origin = TicketOrigin {
        server: name_and_port,
        version: None,
    };
    let client = client.start_with_tickets_of(origin, SERVER_NAME, CLIENT_PARAMETERS.to_vec());
    let mut client = End::new(client.unwrap());
    let mut server = End::new(server.start(SERVER_PARAMETERS.to_vec()).unwrap());
    drive(&mut client, &mut server).unwrap();
    client.session.handshake_data().resumed
}

#[test]
fn tickets_of_one_port_are_not_offered_at_another() {
    let (client, server) = tls(options());
    let client = client.with_all_tickets(ClientTickets::default());
    for server_name in ["localhost:1", "localhost:2"] {
        assert!(!resumes(&client, &server, server_name), "{server_name}");
        assert!(resumes(&client, &server, server_name), "{server_name}");
    }
}

#[test]
fn configured_store_is_used_unless_it_is_replaced() {
    let (client, server) = tls(options());
    assert!(!resumes(&client, &server, "localhost:1"));
    assert!(
        resumes(&client, &server, "localhost:2"),
        "the configured store ignores the port"
    );
    let client = client.with_all_tickets(ClientTickets::default());
    assert!(!resumes(&client, &server, "localhost:2"));
}

#[test]
fn at_most_eight_of_many_tickets_are_kept() {
    let (client, server) = options();
    let mut server = rustls::ServerConfig::clone(&crate::server_config(server).unwrap());
    server.send_tls13_tickets = 1000;
    let server = TlsServer::new(Arc::new(server)).unwrap();
    let tickets = ClientTickets::default();
    let client = TlsClient::new(crate::client_config(client).unwrap()).unwrap();
    let client = client.with_all_tickets(tickets.clone());
    resumes(&client, &server, "localhost:1");
    let store = store_of(&tickets, "localhost:1");
    let kept = std::iter::from_fn(|| store.take_tls13_ticket(&name())).count();
    assert_eq!(kept, MAX_TICKETS);
}

fn store_of(tickets: &ClientTickets, server: &str) -> SessionTickets {
    let origin = TicketOrigin {
        server,
        version: None,
    };
    SessionTickets::new(tickets, origin)
}

fn name() -> ServerName<'static> {
    ServerName::try_from(SERVER_NAME).unwrap()
}

#[test]
fn key_exchange_groups_belong_to_a_port() {
    let tickets = ClientTickets::default();
    let (one, other) = (
        store_of(&tickets, "localhost:1"),
        store_of(&tickets, "localhost:2"),
    );
    one.set_kx_hint(name(), NamedGroup::X25519);
    assert_eq!(one.kx_hint(&name()), Some(NamedGroup::X25519));
    assert_eq!(other.kx_hint(&name()), None);
}

#[test]
fn the_oldest_of_257_servers_is_removed() {
    let tickets = ClientTickets::default();
    let at = |port: usize| store_of(&tickets, &format!("localhost:{port}"));
    for port in (0..=MAX_SERVERS).chain([1]) {
        at(port).set_kx_hint(name(), NamedGroup::X25519);
    }
    let known = |port: &usize| at(*port).kx_hint(&name()).is_some();
    let known: Vec<_> = (0..=MAX_SERVERS).filter(known).collect();
    assert_eq!(known, (1..=MAX_SERVERS).collect::<Vec<_>>());
    let table = tickets.0.lock();
    assert_eq!(table.servers.len(), table.order.len());
}
