use std::net::SocketAddr;

use courser_wire::transport_parameters::TransportParameters;
use courser_wire::{ConnectionId, NewConnectionId};

use super::*;
use crate::path::paths::{PathsOutcome, PeerMoves};

const PTO: Duration = Duration::from_millis(100);

fn server(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 443))
}

fn id(byte: u8) -> ConnectionId {
    ConnectionId::new(&[byte; 8]).expect("eight bytes")
}

/// Creates a client's path, and four IDs of its server.
fn parts() -> (Paths, ConnectionIds) {
    let mut path = Path::new(FourTuple::to(server(1)), 0);
    path.on_validated();
    let mut paths = Paths::new(path, Duration::ZERO);
    paths.set_peer_moves(PeerMoves::Nowhere);
    let mut ids = ConnectionIds::new(id(1), id(100));
    ids.on_peer_parameters(&TransportParameters::default())
        .expect("no address");
    for sequence in 1..4u8 {
        ids.on_new_connection_id_frame(&NewConnectionId {
            sequence: sequence.into(),
            retire_prior_to: 0,
            id: id(100 + sequence),
            reset_token: [sequence; 16],
        })
        .expect("within the limit");
    }
    (paths, ids)
}

fn to(peer: SocketAddr, socket: u32, is_at_once: bool) -> OwnPath {
    let place = Place {
        tuple: FourTuple::to(peer),
        socket: SocketId(socket),
    };
    OwnPath {
        place,
        keeps_recovery: false,
        is_at_once,
    }
}

fn begin(paths: &mut Paths, ids: &mut ConnectionIds, own: OwnPath, key: u32) -> bool {
    paths.begin_own(Time::ZERO, own, PTO, || key, ids)
}

/// Answers the challenge of the path at `index`.
fn answer(paths: &mut Paths, index: PathIndex) {
    let path = paths.get_mut(index).expect("a path");
    path.validation.on_challenge_sent(Time::ZERO, [9; 8], true);
    assert_eq!(
        paths
            .on_path_response(Time::ZERO, [9; 8], PTO)
            .map(|it| it.path),
        Some(index)
    );
}

#[test]
fn unvalidated_address_gets_three_full_datagrams() {
    let (mut paths, mut ids) = parts();
    assert!(begin(&mut paths, &mut ids, to(server(2), 0, false), 1));
    let path = paths.get_mut(1).expect("it was added");
    assert_eq!(path.budget(), 3 * 1200, "limit K160");
    let (mut paths, mut ids) = parts();
    assert!(begin(&mut paths, &mut ids, to(server(1), 1, false), 1));
    let path = paths.get_mut(1).expect("it was added");
    assert_eq!(path.budget(), u64::MAX, "this address is validated");
    assert!(!path.is_validated());
}

#[test]
fn move_that_replaces_another_removes_its_path() {
    let (mut paths, mut ids) = parts();
    assert!(begin(&mut paths, &mut ids, to(server(1), 1, false), 1));
    assert!(begin(&mut paths, &mut ids, to(server(1), 2, false), 2));
    assert_eq!(paths.release_removed_id(&mut ids), Some(1));
    assert_eq!((paths.len(), paths.active_index()), (2, 0));
    assert!(
        !paths.take_failed_move(),
        "it was replaced, and has not failed"
    );
    answer(&mut paths, 1);
    assert_eq!(paths.finish_own(Time::ZERO, PTO, &mut ids), Some(true));
    assert_eq!(paths.active().place().socket, SocketId(2));
    assert_eq!(paths.own_move(), (2, MigrationState::Done));
}

#[test]
fn failed_immediate_move_returns_to_the_validated_path() {
    let (mut paths, mut ids) = parts();
    for socket in 1..=2 {
        let own = to(server(1), socket, true);
        assert!(begin(&mut paths, &mut ids, own, socket));
        while paths.release_removed_id(&mut ids).is_some() {}
    }
    assert_eq!(paths.active().place().socket, SocketId(2));
    assert_eq!(ids.destination(), id(102));
    let outcome = paths.on_timeout(Time::ZERO + PTO * 3, &mut ids);
    assert_eq!(outcome, PathsOutcome::Reverted);
    assert_eq!(paths.active().place().socket, SocketId(0));
    assert_eq!(ids.destination(), id(100), "each path has its own ID");
    assert!(paths.take_failed_move() && !paths.take_failed_move());
    assert_eq!(paths.own_move(), (2, MigrationState::Failed));
}

#[test]
fn path_that_two_moves_have_left_is_removed() {
    let (mut paths, mut ids) = parts();
    assert!(begin(&mut paths, &mut ids, to(server(1), 1, true), 1));
    assert!(begin(&mut paths, &mut ids, to(server(1), 2, false), 2));
    answer(&mut paths, 1);
    assert_eq!(paths.finish_own(Time::ZERO, PTO, &mut ids), None);
    // The second one fails.
    while paths.len() > 1 {
        let now = paths.next_timeout().expect("a timer runs");
        paths.on_timeout(now, &mut ids);
        if let Some(path) = paths.next_to_probe().and_then(|at| paths.get_mut(at)) {
            path.validation.on_challenge_sent(now, [1; 8], true);
        }
    }
    assert_eq!(paths.active().place().socket, SocketId(1));
    assert_eq!(paths.next_timeout(), None);
    assert_eq!(paths.own_move(), (2, MigrationState::Failed));
}

#[test]
fn retired_id_of_a_path_is_replaced_or_the_path_is_not_used() {
    for has_spare in [true, false] {
        let (mut paths, mut ids) = parts();
        assert!(begin(&mut paths, &mut ids, to(server(1), 1, false), 1));
        while !has_spare && ids.reserve().is_some() {}
        ids.give_up(1);
        answer(&mut paths, 1);
        let finished = paths.finish_own(Time::ZERO, PTO, &mut ids);
        assert_eq!(finished.is_some(), has_spare);
        let expected = if has_spare { id(102) } else { id(100) };
        assert_eq!(ids.destination(), expected, "RFC 9000 §9.5");
    }
}
