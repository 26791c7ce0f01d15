//! Rules of RFC 10069 for frames, connection IDs and statuses.

use super::super::frames::raw;
use super::*;

/// Returns a PATH_NEW_CONNECTION_ID frame.
fn new_id(path: u64, sequence: u64, retire_prior_to: u64, byte: u8) -> Vec<u8> {
    let header = raw(&[0x3e78, path, sequence, retire_prior_to, 8]);
    [&header[..], &[byte; 24]].concat()
}

fn error_of(frames: &[Vec<u8>]) -> Option<u64> {
    let mut pair = with_two_paths();
    for frame in frames {
        pair.forge_to_server(SpaceId::Application, frame);
    }
    pair.server_error()
}

#[test]
fn server_that_forbids_migration_gets_no_further_path() {
    let mut server = ServerConfig::new(server_tls(&[b"test"]));
    server.transport = Arc::new(several());
    server.migration = false;
    let mut pair = Pair::with(Setup {
        client: several(),
        server,
        ..Setup::default()
    });
    pair.client.sockets = vec![second_socket()];
    pair.connect();
    assert_eq!(open(&mut pair), Err(OpenPathError::Forbidden));
}

#[test]
fn client_sends_only_challenges_on_a_path_that_is_not_validated() {
    let mut pair = pair();
    let transfer = Transfer::up(&mut pair, 1_000_000);
    assert_eq!(open(&mut pair), Ok(ONE));
    let before = pair.client.sent.len();
    pair.run_for(RTT - Duration::from_millis(1));
    assert_eq!(
        sent_by_client(&pair, before)[1],
        1200,
        "one challenge in a round trip"
    );
    assert!(transfer.finish(&mut pair, Duration::from_secs(5)).is_some());
}

#[test]
fn limit_of_connection_ids_counts_for_each_path() {
    let of_path: Vec<_> = (4..6).map(|at| new_id(1, at, 0, 0x40 + at as u8)).collect();
    assert_eq!(error_of(&of_path), Some(0x09));
    let of_two: Vec<_> = (0..3)
        .flat_map(|at| {
            [
                new_id(1, 4 + at, 4 + at, 0x50 + at as u8),
                new_id(2, 1 + at, 0, 0x60 + at as u8),
            ]
        })
        .collect();
    assert_eq!(error_of(&of_two), None);
    // NEW_CONNECTION_ID belongs to path 0.
    let of_first = |at: u64| [&raw(&[0x18, at, 0, 8])[..], &[0x70 + at as u8; 24]].concat();
    let of_first: Vec<_> = (4..10).map(of_first).collect();
    assert_eq!(error_of(&of_first), Some(0x09));
}

#[test]
fn id_that_was_issued_for_another_path_ends_the_connection() {
    assert_eq!(
        error_of(&[new_id(1, 4, 4, 9), new_id(2, 1, 0, 9)]),
        Some(0x0a)
    );
}

#[test]
fn retire_prior_to_above_the_sequence_number_ends_the_connection() {
    assert_eq!(error_of(&[new_id(1, 4, 5, 9)]), Some(0x07));
}

#[test]
fn limit_on_path_ids_that_does_not_rise_is_ignored() {
    assert_eq!(
        error_of(&[raw(&[0x3e7a, 2]), raw(&[0x3e7a, 5]), raw(&[0x3e7a, 3])]),
        None
    );
}

#[test]
fn plain_acknowledgement_is_for_the_first_path() {
    let mut pair = with_two_paths();
    let connection = pair.server.connection();
    assert!(
        connection
            .parts
            .go_to(ONE, &mut connection.packets.recovery)
    );
    let of_second = connection.packets.recovery.first_unused_number();
    connection
        .parts
        .go_to(PathId::ZERO, &mut connection.packets.recovery);
    let of_first = connection.packets.recovery.first_unused_number();
    assert!(of_second < of_first, "{of_second} and {of_first}");
    pair.forge_to_server(SpaceId::Application, &raw(&[0x02, of_second, 0, 0, 0]));
    assert_eq!(pair.server_error(), None, "below the numbers of path 0");
    pair.forge_to_server(SpaceId::Application, &raw(&[0x02, of_first, 0, 0, 0]));
    assert_eq!(pair.server_error(), Some(0x0a));
}

#[test]
fn retired_id_of_a_path_is_replaced() {
    let mut pair = with_two_paths();
    let next = |pair: &mut Pair| {
        let multipath = pair.server.connection().parts.multipath.as_ref();
        multipath.expect("negotiated").lanes()[0]
            .ids
            .next_sequence()
    };
    let before = next(&mut pair);
    // The ID with the number 0 is in use.
    pair.forge_to_server(SpaceId::Application, &raw(&[0x3e79, 1, 1]));
    assert_eq!(next(&mut pair), before + 1);
    assert_eq!(pair.server_error(), None);
}

#[test]
fn newest_status_arrives_although_earlier_ones_are_lost() {
    for last in [PathPreference::Available, PathPreference::Backup] {
        let mut pair = with_two_paths();
        pair.link.filter = Some(Box::new(|_, datagram| datagram.to.port() != 4433));
        for status in [PathPreference::Backup, PathPreference::Available, last] {
            let mut paths = pair.client.connection().several_paths();
            assert!(paths.set_status(ONE, status));
            pair.client.touch();
            pair.run_for(Duration::from_millis(5));
        }
        pair.link.filter = None;
        pair.run_for(Duration::from_secs(2));
        let list = pair.server.connection().several_paths().list();
        assert_eq!(list[1].peer_status, last);
    }
}

#[test]
fn lost_abandonment_is_repeated() {
    let mut pair = with_two_paths();
    let (now, code) = (pair.now, TransportErrorCode::APPLICATION_ABANDON_PATH);
    let mut paths = pair.client.connection().several_paths();
    assert!(paths.close(now, ONE, code));
    pair.client.touch();
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to.port() != 4433));
    pair.run_for(RTT / 2);
    pair.link.filter = None;
    pair.run_for(Duration::from_secs(1));
    assert!(pair.server.has(&Event::PathClosed { path: ONE, code }));
}

#[test]
fn path_that_the_peer_does_not_give_up_is_freed_and_the_connection_goes_on() {
    let mut pair = with_two_paths();
    let (now, code) = (pair.now, TransportErrorCode::APPLICATION_ABANDON_PATH);
    let mut paths = pair.client.connection().several_paths();
    assert!(paths.close(now, ONE, code));
    pair.client.touch();
    pair.link.filter = Some(Box::new(|_, datagram| datagram.from.port() != 4433));
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.client.connection().several_paths().list().len(), 1);
    pair.link.filter = None;
    pair.upload(100_000);
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
}

#[test]
fn loss_on_one_path_leaves_the_window_of_another_unchanged() {
    let mut pair = with_two_paths();
    let mut count = 0;
    pair.link.filter = Some(Box::new(move |_, datagram| {
        count += u32::from(datagram.from == second_socket());
        datagram.from != second_socket() || count % 20 != 0
    }));
    pair.upload(3_000_000);
    let list = pair.client.connection().several_paths().list();
    assert_eq!(list[0].stats.ssthresh, None, "{list:?}");
    assert!(list[1].stats.ssthresh.is_some(), "{list:?}");
}

/// The client's NAT gives the second path another port.
#[test]
fn path_moves_without_the_other_one() {
    let mut pair = with_two_paths();
    let moved = SocketAddr::from(([10, 0, 1, 1], 60_000));
    pair.client.sockets[0] = moved;
    pair.upload(300_000);
    pair.run_for(Duration::from_secs(1));
    let list = pair.server.connection().several_paths().list();
    let peers: Vec<_> = list.iter().map(|path| path.addresses.peer).collect();
    assert_eq!(peers, [client_address(), moved]);
    assert!(list.iter().all(|path| path.is_validated));
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
}

#[test]
fn packets_on_any_path_keep_the_connection() {
    let mut pair = with_two_paths();
    cut(&mut pair, client_address());
    for _ in 0..45 {
        pair.upload(1000);
        pair.run_for(Duration::from_secs(1));
    }
    assert!(pair.client.has(&Event::PathClosed {
        path: PathId::ZERO,
        code: TransportErrorCode::PATH_UNSTABLE_OR_POOR
    }));
    let is_lost = |event: &Event| matches!(event, Event::Lost(_));
    assert!(!pair.client.events.iter().any(is_lost));
}

#[test]
fn spin_bits_of_paths_are_apart() {
    let mut config = several();
    config.spin_bit = true;
    for seed in 0..4 {
        let mut server = ServerConfig::new(server_tls(&[b"test"]));
        server.transport = Arc::new(config.clone());
        let mut pair = Pair::with(Setup {
            seed,
            client: config.clone(),
            server,
            ..Setup::default()
        });
        pair.client.sockets = vec![second_socket()];
        pair.connect();
        assert_eq!(open(&mut pair), Ok(ONE));
        pair.run_for(RTT * 3);
        let before = pair.client.sent.len();
        pair.upload(2_000_000);
        // Packets of one round trip have the same bit, so that it changes rarely on each path.
        for address in [client_address(), second_socket()] {
            let sent = pair.client.sent[before..].iter();
            let of_path = sent.filter(|datagram| datagram.from == address);
            let bits: Vec<bool> = of_path
                .map(|datagram| datagram.bytes[0] & 0x20 != 0)
                .collect();
            let changes = bits.windows(2).filter(|pair| pair[0] != pair[1]).count();
            let is_random = changes > bits.len() / 4;
            assert!(is_random || changes < 100, "{changes} of {}", bits.len());
        }
        assert_eq!((pair.client_error(), pair.server_error()), (None, None));
    }
}

#[test]
fn both_ends_know_the_round_trip_of_a_new_path_before_they_use_it() {
    let mut pair = with_two_paths();
    pair.run_for(RTT * 3);
    for end in [&mut pair.client, &mut pair.server] {
        let list = end.connection().several_paths().list();
        assert_eq!(list[1].stats.bytes_in_flight, 0, "{list:?}");
        assert!(list[1].stats.rtt < RTT * 2, "{list:?}");
    }
}

/// The second path has a round trip ten times as long (limit K279).
#[test]
fn copies_of_slow_data_are_a_small_part_of_all_data() {
    let mut pair = with_two_paths();
    for end in [&mut pair.client, &mut pair.server] {
        let connection = end.connection();
        connection
            .parts
            .go_to(ONE, &mut connection.packets.recovery);
        let rtt = connection.packets.recovery.path_mut().rtt_mut();
        *rtt = courser_recovery::RttEstimator::new(RTT * 10);
        connection
            .parts
            .go_to(PathId::ZERO, &mut connection.packets.recovery);
    }
    pair.upload(3_000_000);
    let stats = pair.client.connection().stats();
    let copied = stats.data_retransmitted;
    assert!(copied <= 3_000_000 / 20 + 65_536, "{copied}");
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
}
