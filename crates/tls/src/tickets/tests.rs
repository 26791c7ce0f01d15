use courser_crypto::{ClientTls, ServerTls, TicketOrigin};
use courser_wire::{VERSION_1, VERSION_2};

use super::*;
use crate::testing::{CLIENT_PARAMETERS, End, SERVER_NAME, SERVER_PARAMETERS, drive, options, tls};
use crate::{TlsClient, TlsServer};

/// Performs a handshake that starts in one version and changes to another. Returns true if it
/// resumes a session.
fn resumes(client: &TlsClient, server: &TlsServer, first: u32, last: u32) -> bool {
    let origin = TicketOrigin {
        server: SERVER_NAME,
        version: Some(first),
    };
    let client = client.start_with_tickets_of(origin, SERVER_NAME, CLIENT_PARAMETERS.to_vec());
    let mut client = End::new(client.unwrap());
    let server = server.start_in_version(last, SERVER_PARAMETERS.to_vec());
    let mut server = End::new(server.unwrap());
    client.session.on_version(last);
    drive(&mut client, &mut server).unwrap();
    client.session.handshake_data().resumed
}

#[test]
fn sessions_are_resumed_in_their_own_version_only() {
    for (one, other) in [(VERSION_1, VERSION_2), (VERSION_2, VERSION_1)] {
        let (client, server) = tls(options());
        assert!(!resumes(&client, &server, one, one));
        assert!(!resumes(&client, &server, other, other), "{one:#x}");
        assert!(resumes(&client, &server, one, one), "{one:#x}");
        assert!(resumes(&client, &server, other, other), "{one:#x}");
    }
}

#[test]
fn tickets_belong_to_the_negotiated_version() {
    let (client, server) = tls(options());
    assert!(!resumes(&client, &server, VERSION_1, VERSION_2));
    assert!(!resumes(&client, &server, VERSION_1, VERSION_2));
    assert!(resumes(&client, &server, VERSION_2, VERSION_2));
}

#[test]
fn servers_refuse_tickets_of_another_version() {
    // This client ignores the rule: `start` has one store for all versions.
    for (one, other) in [(VERSION_1, VERSION_2), (VERSION_2, VERSION_1)] {
        let (client, server) = tls(options());
        let connect = |version| {
            let client = client.start(SERVER_NAME, CLIENT_PARAMETERS.to_vec());
            let mut client = End::new(client.unwrap());
            let server = server.start_in_version(version, SERVER_PARAMETERS.to_vec());
            let mut server = End::new(server.unwrap());
            drive(&mut client, &mut server).unwrap();
            client.session.handshake_data().resumed
        };
        assert!(!connect(one));
        assert!(connect(one), "{one:#x}");
        assert!(!connect(other), "{one:#x}");
    }
}

/// Does not encrypt, so that a test sees the content of tickets.
#[derive(Debug)]
struct Plain;

impl ProducesTickets for Plain {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        60
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        Some(plain.to_vec())
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        Some(cipher.to_vec())
    }
}

#[test]
fn tickets_are_decrypted_in_their_own_version_only() {
    let [one, two] = Version::ALL.map(|version| MarkedTickets {
        inner: Arc::new(Plain),
        version,
    });
    for (issuer, other) in [(&one, &two), (&two, &one)] {
        let ticket = issuer.encrypt(b"\x01state").unwrap();
        assert_eq!(issuer.decrypt(&ticket).as_deref(), Some(&b"\x01state"[..]));
        assert_eq!(other.decrypt(&ticket), None, "{:?}", issuer.version);
    }
    assert!(two.enabled() && two.lifetime() == 60);
}

#[test]
fn sessions_of_a_store_are_found_in_their_own_version_only() {
    let inner = rustls::server::ServerSessionMemoryCache::new(8);
    let two = MarkedSessions(inner.clone());
    assert!(two.put(b"key".to_vec(), b"two".to_vec()) && two.can_cache());
    assert_eq!(inner.get(b"key"), None);
    assert_eq!(two.get(b"key").as_deref(), Some(&b"two"[..]));
    assert_eq!(two.take(b"key").as_deref(), Some(&b"two"[..]));
    assert_eq!(two.take(b"key"), None);
}
