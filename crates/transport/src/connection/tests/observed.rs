//! Tests of address discovery on connections. draft-ietf-quic-address-discovery-00.

use std::net::SocketAddr;
use std::sync::Arc;

use courser_wire::transport_parameters::TransportParameters;
use courser_wire::{Frame, ObservedAddress, PathId};

use super::*;
use crate::config::ServerConfig;
use crate::observed::{AddressObservations, ObservedPath};
use crate::testing::identity::server_tls;
use crate::testing::{Setup, client_address, server_address, steady};

fn config(address_observations: AddressObservations) -> TransportConfig {
    TransportConfig {
        address_observations,
        ..steady()
    }
}

fn pair(client: AddressObservations, server: AddressObservations) -> Pair {
    let mut config_of_server = ServerConfig::new(server_tls(&[b"test"]));
    config_of_server.transport = Arc::new(config(server));
    let mut pair = Pair::with(Setup {
        client: config(client),
        server: config_of_server,
        ..Setup::default()
    });
    pair.connect();
    pair
}

fn observed(address: SocketAddr) -> ObservedPath {
    ObservedPath {
        path: PathId::ZERO,
        address,
    }
}

fn claim(sequence: u64, last: u8) -> Frame<'static> {
    Frame::ObservedAddress(ObservedAddress {
        sequence,
        address: SocketAddr::from(([192, 0, 2, last], 1)),
    })
}

#[test]
fn address_of_the_handshake_is_reported_within_its_round_trips() {
    let mut pair = pair(AddressObservations::Both, AddressObservations::Both);
    pair.run_for(RTT);
    let (client, server) = (observed(client_address()), observed(server_address()));
    assert!(pair.client.has(&Event::AddressObserved(client)));
    assert!(pair.server.has(&Event::AddressObserved(server)));
    let found: Vec<_> = pair.client.connection().observed_addresses().collect();
    assert_eq!(found, [client]);
}

#[test]
fn frame_that_was_not_asked_for_ends_the_connection() {
    use AddressObservations::{Both, None as Off, Provide};
    for (client, server) in [(Both, Off), (Off, Off), (Both, Provide)] {
        let mut pair = pair(client, server);
        pair.frame_to_server(&claim(1, 1));
        assert_eq!(pair.server_error(), Some(0x0a), "{client:?}, {server:?}");
    }
}

#[test]
fn frame_in_a_packet_of_the_handshake_ends_the_connection() {
    for (space, mut pair) in [
        (SpaceId::Initial, with_initial_keys()),
        (SpaceId::Handshake, with_handshake_keys()),
    ] {
        pair.forge_to_server(space, &crate::testing::forge::encode(&claim(1, 1)));
        assert_eq!(pair.server_error(), Some(0x0a), "{space:?}");
    }
}

#[test]
fn claims_of_the_peer_change_nothing_else() {
    let mut pair = pair(AddressObservations::Receive, AddressObservations::Both);
    let before = pair.server.connection().path();
    pair.frame_to_server(&claim(1, 66));
    assert_eq!(pair.server.connection().path(), before);
    assert_eq!(pair.server.connection().validated_path(), before);
    pair.upload(100_000);
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
}

#[test]
fn flood_of_claims_is_refused_and_keeps_little() {
    let mut pair = pair(AddressObservations::Receive, AddressObservations::Both);
    for sequence in 0..100_000 {
        pair.frame_to_server(&claim(
            sequence,
            u8::try_from(sequence % 250).expect("small"),
        ));
        if pair.server_error().is_some() {
            break;
        }
    }
    assert_eq!(pair.server_error(), Some(0x0a), "limit K17");
    let told = pair.server.events.iter();
    let told = told.filter(|event| matches!(event, Event::AddressObserved(_)));
    assert!(told.count() <= super::super::watchdog::suspicion::BURST as usize + 1);
}

/// A probe of another address that carries an observation beside its challenge.
#[test]
fn probe_with_an_observation_moves_nobody() {
    let mut pair = pair(AddressObservations::Receive, AddressObservations::Both);
    let before = pair.server.connection().path();
    let challenge = courser_wire::PathChallenge { data: [7; 8] };
    let mut payload = crate::testing::forge::encode(&claim(1, 1));
    payload.extend(crate::testing::forge::encode(&Frame::PathChallenge(
        challenge,
    )));
    payload.resize(1150, 0);
    let bytes = crate::testing::forge::forge(&mut pair.client, SpaceId::Application, &payload);
    pair.deliver(Datagram {
        from: SocketAddr::from(([203, 0, 113, 9], 6000)),
        to: server_address(),
        ecn: courser_base::Ecn::NotEct,
        bytes,
    });
    pair.run_for(RTT * 4);
    assert_eq!(pair.server.connection().path(), before);
    assert!(
        pair.server
            .connection()
            .observed_addresses()
            .next()
            .is_some()
    );
}

#[test]
fn lost_report_is_repeated() {
    let mut server = ServerConfig::new(server_tls(&[b"test"]));
    server.transport = Arc::new(config(AddressObservations::Provide));
    let (setup, eye) = Setup {
        client: config(AddressObservations::Receive),
        server,
        ..Setup::default()
    }
    .with_eye();
    let mut pair = Pair::with(setup);
    pair.start();
    pair.link.loss = 3;
    assert!(pair.run_until(Duration::from_secs(30), |pair| {
        let address = Event::AddressObserved(observed(client_address()));
        pair.client.has(&address)
    }));
    pair.link.loss = 0;
    pair.download(100_000);
    let sent = eye.server_sent(&pair);
    let reports = sent.iter().flat_map(|packet| packet.frames());
    let sequences: Vec<u64> = reports
        .filter_map(|frame| match frame {
            Frame::ObservedAddress(frame) => Some(frame.sequence),
            _ => None,
        })
        .collect();
    assert!(
        sequences.is_sorted_by(|one, other| one < other),
        "{sequences:?}"
    );
    assert!(!sequences.is_empty());
}

#[test]
fn connection_without_the_extension_sends_no_parameter_and_keeps_no_state() {
    let default = TransportParameters::default();
    assert_eq!(default.address_discovery, None);
    let mut pair = Pair::connected();
    assert!(pair.client.connection().parts.observed.is_none());
    assert!(pair.server.connection().parts.observed.is_none());
}
