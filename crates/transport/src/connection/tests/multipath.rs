//! Tests connections with several paths. RFC 10069.

mod counters;
mod hostile;
mod opening;
mod outages;
mod random;
mod rules;

use std::net::SocketAddr;
use std::sync::Arc;

use courser_wire::{Frame, PathId, TransportErrorCode};

use super::*;
use crate::build::transmit::SocketId;
use crate::config::{ServerConfig, TransportConfig};
use crate::multipath::{OpenPathError, PathPreference};
use crate::path::NewPath;
use crate::testing::identity::server_tls;
use crate::testing::traffic::Transfer;
use crate::testing::{End, Setup, client_address, steady};

const ONE: PathId = PathId::new(1);

/// The address of the client's second socket.
fn second_socket() -> SocketAddr {
    SocketAddr::from(([10, 0, 1, 1], 50_777))
}

fn several() -> TransportConfig {
    TransportConfig {
        max_paths: 3,
        ..steady()
    }
}

fn with(client: TransportConfig, server_transport: TransportConfig) -> Pair {
    let mut server = ServerConfig::new(server_tls(&[b"test"]));
    server.transport = Arc::new(server_transport);
    let mut pair = Pair::with(Setup {
        client,
        server,
        ..Setup::default()
    });
    pair.client.sockets = vec![second_socket()];
    pair.connect();
    pair
}

fn pair() -> Pair {
    with(several(), several())
}

/// A path from the client's second socket.
fn second() -> NewPath {
    NewPath {
        local: None,
        socket: SocketId(1),
        is_same_address: false,
        is_at_once: false,
    }
}

fn open(pair: &mut Pair) -> Result<PathId, OpenPathError> {
    let now = pair.now;
    let opened = pair
        .client
        .connection()
        .several_paths()
        .open(now, &second());
    pair.client.touch();
    opened
}

/// Creates a connection with two open paths.
fn with_two_paths() -> Pair {
    let mut pair = pair();
    assert_eq!(open(&mut pair), Ok(ONE));
    pair.run_for(RTT * 3);
    assert!(pair.client.has(&Event::PathOpened(ONE)));
    assert!(pair.server.has(&Event::PathOpened(ONE)));
    pair
}

/// Returns the bytes that the client has sent from its first and its second socket since `from`.
fn sent_by_client(pair: &Pair, from: usize) -> [usize; 2] {
    let sent = &pair.client.sent[from..];
    [client_address(), second_socket()].map(|address| {
        let of_address = sent.iter().filter(|datagram| datagram.from == address);
        of_address.map(|datagram| datagram.bytes.len()).sum()
    })
}

/// Drops what the client sends from and receives at a socket.
fn cut(pair: &mut Pair, address: SocketAddr) {
    pair.link.filter = Some(Box::new(move |_, datagram| {
        datagram.from != address && datagram.to != address
    }));
}

#[test]
fn path_is_opened_by_the_client_and_validated_by_both_ends() {
    let mut pair = with_two_paths();
    for end in [&mut pair.client, &mut pair.server] {
        let paths = end.connection().several_paths().list();
        let ids: Vec<_> = paths.iter().map(|path| path.id).collect();
        assert_eq!(ids, [PathId::ZERO, ONE]);
        assert!(paths.iter().all(|path| path.is_validated));
    }
    assert_eq!(
        pair.server.connection().path().peer,
        client_address(),
        "the first path has not moved"
    );
}

#[test]
fn both_paths_carry_a_transfer() {
    let mut pair = with_two_paths();
    let before = pair.client.sent.len();
    pair.upload(2_000_000);
    let sent = sent_by_client(&pair, before);
    assert!(sent.iter().all(|bytes| *bytes > 200_000), "{sent:?}");
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
    pair.download(2_000_000);
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
}

#[test]
fn connection_without_the_extension_at_either_end_has_one_path() {
    for (client, server) in [(several(), steady()), (steady(), several())] {
        let mut pair = with(client, server);
        assert_eq!(open(&mut pair), Err(OpenPathError::NotNegotiated));
        pair.upload(100_000);
        assert_eq!((pair.client_error(), pair.server_error()), (None, None));
    }
}

#[test]
fn server_opens_no_path() {
    let mut pair = pair();
    let now = pair.now;
    let opened = pair
        .server
        .connection()
        .several_paths()
        .open(now, &second());
    assert_eq!(opened, Err(OpenPathError::NotClient));
}

#[test]
fn transfer_survives_the_death_of_either_path() {
    for dead in [client_address(), second_socket()] {
        let mut pair = with_two_paths();
        let mut transfer = Transfer::up(&mut pair, 3_000_000);
        for _ in 0..10 {
            transfer.step(&mut pair);
            pair.run_for(RTT / 4);
        }
        cut(&mut pair, dead);
        let took = transfer.finish(&mut pair, Duration::from_secs(20));
        assert!(took.is_some(), "{dead} is silent");
        assert_eq!((pair.client_error(), pair.server_error()), (None, None));
    }
}

#[test]
fn closed_path_carries_nothing_and_its_data_takes_another() {
    let mut pair = with_two_paths();
    let transfer = Transfer::up(&mut pair, 1_000_000);
    pair.run_for(RTT);
    let now = pair.now;
    let code = TransportErrorCode::APPLICATION_ABANDON_PATH;
    let connection = pair.client.connection();
    assert!(connection.several_paths().close(now, ONE, code));
    assert!(!connection.several_paths().close(now, ONE, code), "once");
    assert!(
        !connection.several_paths().close(now, PathId::ZERO, code),
        "the last one"
    );
    pair.client.touch();
    let before = pair.client.sent.len();
    assert!(transfer.finish(&mut pair, Duration::from_secs(5)).is_some());
    assert_eq!(sent_by_client(&pair, before)[1], 0);
    let closed = Event::PathClosed { path: ONE, code };
    assert!(pair.client.has(&closed) && pair.server.has(&closed));
    // The ID is used up, and the server permits another one.
    pair.run_for(Duration::from_secs(2));
    assert_eq!(open(&mut pair), Ok(PathId::new(2)));
    pair.run_for(RTT * 3);
    assert!(pair.server.has(&Event::PathOpened(PathId::new(2))));
    for end in [&mut pair.client, &mut pair.server] {
        assert_eq!(end.connection().several_paths().list().len(), 2);
    }
}

#[test]
fn first_path_can_be_closed() {
    let mut pair = with_two_paths();
    let now = pair.now;
    let code = TransportErrorCode::PATH_UNSTABLE_OR_POOR;
    let mut paths = pair.client.connection().several_paths();
    assert!(paths.close(now, PathId::ZERO, code));
    pair.client.touch();
    pair.run_for(Duration::from_secs(2));
    let before = pair.client.sent.len();
    pair.upload(200_000);
    pair.download(200_000);
    assert_eq!(sent_by_client(&pair, before)[0], 0);
    assert_eq!(pair.server.connection().path().peer, second_socket());
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
}

#[test]
fn backup_path_carries_data_only_while_no_other_works() {
    let mut pair = with_two_paths();
    let mut paths = pair.client.connection().several_paths();
    assert!(paths.set_status(ONE, PathPreference::Backup));
    pair.client.touch();
    pair.run_for(RTT);
    let list = pair.server.connection().several_paths().list();
    assert_eq!(list[1].peer_status, PathPreference::Backup);
    let before = pair.client.sent.len();
    pair.upload(500_000);
    let sent = sent_by_client(&pair, before);
    assert!(sent[1] < 5_000, "{sent:?}");
    cut(&mut pair, client_address());
    pair.upload(500_000);
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
}

#[test]
fn keys_are_updated_on_all_paths() {
    let mut pair = with_two_paths();
    for _ in 0..3 {
        let now = pair.now;
        pair.client
            .connection()
            .initiate_key_update(now)
            .expect("allowed");
        pair.client.touch();
        pair.upload(300_000);
        pair.download(300_000);
        pair.run_for(Duration::from_secs(2));
    }
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
    assert_eq!(pair.server.connection().stats().key_updates, 3);
}

#[test]
fn paths_use_different_connection_ids() {
    let mut pair = with_two_paths();
    pair.upload(200_000);
    let mut seen = std::collections::HashMap::new();
    for datagram in &pair.client.sent {
        let packet = courser_wire::packet::decode(&datagram.bytes, 0, 8).expect("a packet");
        if packet.kind == courser_wire::packet::PacketKind::OneRtt {
            let from = *seen.entry(packet.destination).or_insert(datagram.from);
            assert_eq!(from, datagram.from, "RFC 9000 §9.5");
        }
    }
}

#[test]
fn paths_beyond_the_limit_are_refused() {
    let mut pair = pair();
    assert_eq!(open(&mut pair), Ok(ONE));
    pair.run_for(RTT * 3);
    assert_eq!(open(&mut pair), Ok(PathId::new(2)));
    pair.run_for(RTT * 3);
    assert_eq!(open(&mut pair), Err(OpenPathError::LimitReached));
    pair.run_for(RTT * 3);
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
}

#[test]
fn frames_that_name_a_path_beyond_the_limit_end_the_connection() {
    use super::frames::raw;
    let new_id = [&raw(&[0x3e78, 3, 0, 0, 8])[..], &[0xc1; 24]].concat();
    for bytes in [
        raw(&[0x3e, 3, 0, 0, 0, 0]),
        raw(&[0x3e75, 3, 0]),
        raw(&[0x3e76, 1 << 40, 1]),
        raw(&[0x3e77, 3, 1]),
        new_id,
        raw(&[0x3e79, 3, 0]),
        raw(&[0x3e7b, 3]),
        raw(&[0x3e7c, 3, 0]),
    ] {
        let mut pair = with_two_paths();
        pair.forge_to_server(SpaceId::Application, &bytes);
        assert_eq!(pair.server_error(), Some(0x0a), "{bytes:x?}");
    }
}

#[test]
fn invalid_frames_of_paths_end_the_connection() {
    use super::frames::raw;
    for bytes in [
        // Packets that were never sent, on the second path and on one that is not open.
        raw(&[0x3e, 1, 1 << 20, 0, 0, 0]),
        raw(&[0x3e, 2, 0, 0, 0, 0]),
        // Below initial_max_path_id, and above 2^32 - 1.
        raw(&[0x3e7a, 1]),
        raw(&[0x3e7a, 1 << 32]),
        // An ID that was not issued, and one that nobody expects.
        raw(&[0x3e79, 1, 60]),
        raw(&[0x3e7c, 1, 60]),
    ] {
        let mut pair = with_two_paths();
        pair.forge_to_server(SpaceId::Application, &bytes);
        assert_eq!(pair.server_error(), Some(0x0a), "{bytes:x?}");
    }
}

#[test]
fn frames_of_a_path_that_is_gone_are_ignored() {
    use super::frames::raw;
    let mut pair = with_two_paths();
    let (now, code) = (pair.now, TransportErrorCode::APPLICATION_ABANDON_PATH);
    let mut paths = pair.client.connection().several_paths();
    assert!(paths.close(now, ONE, code));
    pair.client.touch();
    pair.run_for(Duration::from_secs(2));
    for bytes in [
        raw(&[0x3e, 1, 0, 0, 0, 0]),
        raw(&[0x3e75, 1, 0]),
        raw(&[0x3e76, 1, 9]),
        raw(&[0x3e79, 1, 0]),
    ] {
        pair.forge_to_server(SpaceId::Application, &bytes);
        assert_eq!(pair.server_error(), None, "{bytes:x?}");
    }
}

#[test]
fn status_with_a_smaller_number_than_another_is_ignored() {
    use super::frames::raw;
    let mut pair = with_two_paths();
    pair.forge_to_server(SpaceId::Application, &raw(&[0x3e76, 1, 7]));
    pair.forge_to_server(SpaceId::Application, &raw(&[0x3e77, 1, 6]));
    let list = pair.server.connection().several_paths().list();
    assert_eq!(list[1].peer_status, PathPreference::Backup);
    pair.forge_to_server(SpaceId::Application, &raw(&[0x3e77, 1, 8]));
    let list = pair.server.connection().several_paths().list();
    assert_eq!(list[1].peer_status, PathPreference::Available);
}

#[test]
fn peer_that_gives_up_the_only_path_ends_the_connection() {
    use super::frames::raw;
    let mut pair = pair();
    pair.forge_to_server(SpaceId::Application, &raw(&[0x3e75, 0, 0]));
    assert_eq!(pair.server_error(), Some(0));
}
