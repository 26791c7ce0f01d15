//! Tests clients that migrate, and servers that forbid it. RFC 9000 §9, §18.2.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use courser_wire::frame::{Frame, PathChallenge};
use courser_wire::packet;

use super::*;
use crate::build::transmit::SocketId;
use crate::config::ServerConfig;
use crate::path::{MigrationState, NewPath};
use crate::testing::identity::server_tls;
use crate::testing::traffic::Transfer;
use crate::testing::{Setup, client_address, steady};

mod failures;
mod forbidden;
mod preferred;

/// The second address of the client's host.
fn second_ip() -> IpAddr {
    IpAddr::from([10, 0, 0, 7])
}

/// The address of the client's second socket.
fn second_socket() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 50_777))
}

/// Creates a confirmed connection whose client is informed of the local addresses of datagrams.
fn pair() -> Pair {
    with_server(|_| {})
}

fn with_server(change: impl FnOnce(&mut ServerConfig)) -> Pair {
    let mut pair = unconnected(setup(change));
    pair.connect();
    pair
}

fn setup(change: impl FnOnce(&mut ServerConfig)) -> Setup {
    let mut server = ServerConfig::new(server_tls(&[b"test"]));
    server.transport = std::sync::Arc::new(steady());
    change(&mut server);
    Setup {
        server,
        ..Setup::default()
    }
}

fn unconnected(setup: Setup) -> Pair {
    let mut pair = Pair::with(setup);
    pair.client.reports_local = true;
    pair.client.other_addresses = vec![SocketAddr::from((second_ip(), client_address().port()))];
    pair.client.sockets = vec![second_socket()];
    pair
}

/// Another local address of the same socket, used when it is validated.
fn to_second_ip() -> NewPath {
    NewPath {
        local: Some(second_ip()),
        socket: SocketId(0),
        is_same_address: false,
        is_at_once: false,
    }
}

/// Another socket of the same host, used at once.
fn to_second_socket() -> NewPath {
    NewPath {
        local: None,
        socket: SocketId(1),
        is_same_address: true,
        is_at_once: true,
    }
}

fn begin(pair: &mut Pair, path: &NewPath) -> Result<(), MigrateError> {
    let now = pair.now;
    let begun = pair.client.connection().migrations().begin(now, path);
    pair.client.touch();
    begun
}

fn state(pair: &mut Pair) -> MigrationState {
    pair.client.connection().migrations().latest().1
}

fn server_peer(pair: &mut Pair) -> SocketAddr {
    pair.server.connection().path().peer
}

fn ping(pair: &mut Pair) {
    pair.client.connection().pings().request();
    pair.client.touch();
}

/// Panics if a connection ID was used from two local addresses, or towards two addresses
/// (RFC 9000 §9.5).
fn assert_unlinkable(pair: &Pair) {
    for (sent, from_server) in [(&pair.client.sent, false), (&pair.server.sent, true)] {
        let mut seen = HashMap::new();
        for datagram in sent {
            let packet = packet::decode(&datagram.bytes, 0, 8).expect("a packet");
            if packet.kind != packet::PacketKind::OneRtt {
                continue;
            }
            let way = (datagram.from, datagram.to);
            let first = *seen.entry(packet.destination).or_insert(way);
            assert_eq!(
                first, way,
                "{} from server: {from_server}",
                packet.destination
            );
        }
    }
}

fn moved_at_once() -> [NewPath; 2] {
    let second_ip = NewPath {
        is_at_once: true,
        ..to_second_ip()
    };
    [second_ip, to_second_socket()]
}

#[test]
fn client_stays_on_its_path_until_the_new_one_is_validated() {
    let mut pair = pair();
    let from = pair.client.sent.len();
    begin(&mut pair, &to_second_ip()).expect("allowed");
    pair.drive();
    ping(&mut pair);
    pair.drive();
    assert_eq!(state(&mut pair), MigrationState::Validating);
    let sent: Vec<_> = pair.client.sent[from..].iter().collect();
    let probe = sent.iter().find(|sent| sent.from.ip() == second_ip());
    assert_eq!(
        probe.map(|probe| probe.bytes.len()),
        Some(1200),
        "RFC 9000 §8.2.1"
    );
    assert!(sent.iter().any(|sent| sent.from == client_address()));
    assert_eq!(server_peer(&mut pair), client_address());
    pair.run_for(RTT);
    assert_eq!(state(&mut pair), MigrationState::Done);
    assert!(pair.client.has(&Event::Migrated));
    pair.run_for(RTT * 3);
    let new = SocketAddr::from((second_ip(), client_address().port()));
    assert_eq!(server_peer(&mut pair), new);
    assert!(pair.server.connection().parts.paths.active().is_validated());
    let local = pair.client.connection().path().local;
    assert_eq!(local, Some(second_ip()));
    let ends = [&mut pair.client, &mut pair.server];
    let changes = ends.map(|end| end.connection().stats().path_changes);
    assert_eq!(changes, [1, 1]);
    pair.download(100_000);
    pair.upload(100_000);
    assert_unlinkable(&pair);
}

#[test]
fn client_moves_at_once_when_its_path_fails() {
    for path in moved_at_once() {
        let mut pair = pair();
        let old = client_address();
        pair.link.filter = Some(Box::new(move |_, it| it.from != old && it.to != old));
        begin(&mut pair, &path).expect("allowed");
        let transfer = Transfer::up(&mut pair, 100_000);
        let time = transfer.finish(&mut pair, Duration::from_secs(5));
        assert!(
            time.is_some_and(|time| time < RTT * 12),
            "{path:?}: {time:?}"
        );
        assert_eq!(state(&mut pair), MigrationState::Done);
        assert_ne!(server_peer(&mut pair), old);
        pair.download(100_000);
        assert_unlinkable(&pair);
    }
}

#[test]
fn measurements_are_kept_if_only_the_port_changes() {
    for (path, survives) in moved_at_once().into_iter().zip([false, true]) {
        let mut pair = pair();
        pair.upload(1_000_000);
        let before = pair.client.connection().stats().path;
        begin(&mut pair, &path).expect("allowed");
        let after = pair.client.connection().stats().path;
        let is_kept = after.congestion_window == before.congestion_window;
        assert_eq!(is_kept, survives, "RFC 9000 §9.4: {path:?}");
        assert_eq!(after.min_rtt == before.min_rtt, survives, "{path:?}");
    }
}

#[test]
fn ids_of_a_path_that_was_left_are_retired_and_replaced() {
    let mut pair = pair();
    for round in 0..12 {
        let local = if round % 2 == 0 {
            second_ip()
        } else {
            client_address().ip()
        };
        let path = NewPath {
            local: Some(local),
            ..to_second_ip()
        };
        begin(&mut pair, &path).expect("a spare ID in each round");
        pair.run_for(Duration::from_secs(8));
        assert_eq!(state(&mut pair), MigrationState::Done, "round {round}");
        assert_eq!(
            pair.client.connection().parts.paths.len(),
            1,
            "round {round}"
        );
        assert!(pair.server.connection().parts.paths.len() <= 4, "limit K07");
    }
    assert_eq!(pair.client.connection().ids_mut().peer().spare(), 3);
}

#[test]
fn transfers_continue_while_the_client_moves() {
    for down in [true, false] {
        for path in [to_second_ip(), to_second_socket()] {
            let mut pair = pair();
            pair.link.rate = Some(2_000_000);
            let mut transfer = match down {
                true => Transfer::down(&mut pair, 1_000_000),
                false => Transfer::up(&mut pair, 1_000_000),
            };
            while transfer.received() < 300_000 {
                pair.step();
                assert!(!transfer.step(&mut pair));
            }
            begin(&mut pair, &path).expect("allowed");
            let time = transfer.finish(&mut pair, Duration::from_secs(20));
            assert!(time.is_some(), "{path:?}, down {down}");
            assert_eq!(state(&mut pair), MigrationState::Done);
        }
    }
}

/// RFC 9000 §8.2.2, §9.3.3: the server challenges the old path to check that the move was genuine.
#[test]
fn challenge_on_the_previous_path_is_answered_for_a_while() {
    let mut pair = pair();
    begin(&mut pair, &to_second_ip()).expect("allowed");
    pair.run_for(RTT * 2);
    assert_eq!(state(&mut pair), MigrationState::Done);
    assert_eq!(pair.client.connection().parts.paths.len(), 2);
    let from = pair.client.sent.len();
    let data = [5; 8];
    pair.frame_to_client(&Frame::PathChallenge(PathChallenge { data }));
    pair.drive();
    let answered = pair.client.sent[from..].iter();
    let at: Vec<_> = answered.map(|sent| sent.from).collect();
    assert!(at.contains(&client_address()), "{at:?}");
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.client.connection().parts.paths.len(), 1, "forgotten");
    assert_unlinkable(&pair);
}

#[test]
fn second_move_replaces_the_first() {
    let mut pair = pair();
    begin(&mut pair, &to_second_ip()).expect("allowed");
    begin(&mut pair, &to_second_socket()).expect("allowed");
    pair.run_for(RTT * 3);
    let latest = pair.client.connection().migrations().latest();
    assert_eq!(latest, (2, MigrationState::Done));
    assert_eq!(server_peer(&mut pair), second_socket());
    assert!(!pair.client.has(&Event::MigrationFailed));
    pair.upload(100_000);
}

/// A program that moves as often as it can gets an error, and does not exceed a limit of its peer.
#[test]
fn endless_moves_leave_the_connection_open() {
    let mut pair = pair();
    let (mut begun, mut refused) = (0, 0);
    for _ in 0..2000 {
        match begin(&mut pair, &to_second_ip()) {
            Ok(()) => begun += 1,
            Err(MigrateError::TooSoon) => refused += 1,
            Err(MigrateError::NoSpareConnectionId) => {}
            Err(error) => panic!("{error}"),
        }
        pair.run_for(Duration::from_millis(1));
    }
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
    assert!((8..=24).contains(&begun), "{begun}");
    assert!(refused > 1000, "{refused}");
    // It may move again later.
    pair.run_for(Duration::from_secs(1));
    assert_eq!(begin(&mut pair, &to_second_ip()), Ok(()));
}

/// Changes of the network during the waiting time replace each other.
#[test]
fn last_of_many_changes_of_the_network_is_followed() {
    let mut pair = pair();
    let [second_ip, second_socket] = moved_at_once();
    for at in 0..5000 {
        let now = pair.now;
        let path = if at % 2 == 0 {
            second_socket
        } else {
            second_ip
        };
        let mut migrations = pair.client.connection().migrations();
        if migrations.begin_in_time(now, &path).is_err() {
            pair.client.connection().pings().request();
        }
        pair.client.touch();
        pair.run_for(Duration::from_micros(50));
    }
    pair.run_for(Duration::from_secs(3));
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
    let local = pair.client.connection().path().local;
    assert_eq!(local, Some(self::second_ip()), "the last change");
    ping(&mut pair);
    pair.run_for(RTT * 3);
    assert_eq!(server_peer(&mut pair).ip(), self::second_ip());
}
