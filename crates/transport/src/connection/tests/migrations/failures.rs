//! Tests moves that fail or are not permitted.

use super::*;

/// Drops all datagrams from and to the new addresses.
fn cut_new_paths(pair: &mut Pair) {
    let old = client_address();
    pair.link.filter = Some(Box::new(move |_, it| it.from == old || it.to == old));
}

#[test]
fn path_that_does_not_respond_is_abandoned() {
    for is_at_once in [false, true] {
        let mut pair = pair();
        cut_new_paths(&mut pair);
        let path = NewPath {
            is_at_once,
            ..to_second_ip()
        };
        begin(&mut pair, &path).expect("allowed");
        ping(&mut pair);
        pair.run_for(Duration::from_secs(4));
        assert_eq!(state(&mut pair), MigrationState::Failed, "{is_at_once}");
        assert!(pair.client.has(&Event::MigrationFailed));
        assert!(!pair.client.has(&Event::Migrated));
        assert_eq!(pair.client.connection().path().local, None);
        assert_eq!(pair.client.connection().parts.paths.len(), 1);
        pair.upload(100_000);
        pair.download(100_000);
        assert_eq!(server_peer(&mut pair), client_address());
        assert_unlinkable(&pair);
        assert_eq!(pair.client.connection().ids_mut().peer().spare(), 3);
    }
}

/// The acknowledgement of the first batch arrives while the new path is in use, so that it does not count.
#[test]
fn batches_are_tried_again_after_a_return_to_the_previous_path() {
    let mut pair = pair();
    cut_new_paths(&mut pair);
    let streams = pair.client.connection().streams();
    let id = streams.open(Direction::Unidirectional).expect("room");
    assert_eq!(streams.write(id, &[0; 5_000]), Ok(5_000));
    pair.client.touch();
    pair.drive();
    assert!(pair.client.batches.iter().any(|batch| *batch > 1));
    let path = NewPath {
        is_at_once: true,
        ..to_second_ip()
    };
    begin(&mut pair, &path).expect("allowed");
    pair.run_for(Duration::from_secs(4));
    assert_eq!(state(&mut pair), MigrationState::Failed);
    let seen = pair.client.batches.len();
    let streams = pair.client.connection().streams();
    assert_eq!(streams.write(id, &[0; 5_000]), Ok(5_000));
    pair.client.touch();
    pair.run_for(Duration::from_secs(1));
    let largest = pair.client.batches[seen..].iter().max();
    assert!(largest.is_some_and(|largest| *largest > 1), "{largest:?}");
}

#[test]
fn lost_challenge_is_repeated() {
    let mut pair = pair();
    let mut lost = 0;
    pair.link.filter = Some(Box::new(move |_, it| {
        let is_probe = it.from.ip() == second_ip();
        lost += usize::from(is_probe);
        !is_probe || lost > 1
    }));
    begin(&mut pair, &to_second_ip()).expect("allowed");
    pair.run_for(Duration::from_secs(2));
    assert_eq!(state(&mut pair), MigrationState::Done);
}

#[test]
fn server_does_not_move() {
    let mut pair = pair();
    let now = pair.now;
    let mut migrations = pair.server.connection().migrations();
    let begun = migrations.begin(now, &to_second_ip());
    assert_eq!(begun, Err(MigrateError::NotClient));
}

#[test]
fn client_does_not_move_before_the_handshake_is_confirmed() {
    let mut pair = with_handshake_keys();
    assert!(!pair.client.has(&Event::Confirmed));
    let begun = begin(&mut pair, &to_second_ip());
    assert_eq!(begun, Err(MigrateError::NotConfirmed), "RFC 9000 §9");
    pair.run_for(RTT * 2);
    assert_eq!(begin(&mut pair, &to_second_ip()), Ok(()));
    let now = pair.now;
    pair.client.connection().close(now, 0, b"");
    let begun = begin(&mut pair, &to_second_ip());
    assert_eq!(begun, Err(MigrateError::NotConfirmed), "it is over");
}

#[test]
fn client_without_a_spare_id_does_not_move() {
    let mut pair = pair();
    let ids = pair.client.connection().ids_mut().peer();
    while ids.reserve().is_some() {}
    let begun = begin(&mut pair, &to_second_ip());
    assert_eq!(
        begun,
        Err(MigrateError::NoSpareConnectionId),
        "RFC 9000 §9.5"
    );
    assert_eq!(state(&mut pair), MigrationState::None);
    pair.upload(10_000);
}

#[test]
fn client_without_ids_of_its_own_does_not_move() {
    let mut pair = Pair::with(Setup {
        client_cid_len: 0,
        ..Setup::default()
    });
    pair.connect();
    let begun = begin(&mut pair, &to_second_ip());
    assert_eq!(begun, Err(MigrateError::WithoutConnectionIds));
}

#[test]
fn client_of_a_server_without_ids_does_not_move() {
    let mut pair = Pair::new();
    let mut config = crate::EndpointConfig::from_seed([5; 32]);
    config.connection_id_len = 0;
    let server = Some(std::sync::Arc::clone(&pair.server_config));
    pair.server.endpoint = crate::Endpoint::new(config, server, [6; 32]);
    pair.connect();
    let begun = begin(&mut pair, &to_second_ip());
    assert_eq!(begun, Err(MigrateError::WithoutConnectionIds), "§9.5");
}
