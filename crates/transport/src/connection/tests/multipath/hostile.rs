//! Peers that abuse the frames of several paths.

use super::super::frames::raw;
use super::*;

/// Acknowledges a number that was skipped on the first and on the second path (attack A208).
#[test]
fn acknowledgement_of_a_skipped_number_ends_the_connection_on_each_path() {
    for path in [PathId::ZERO, ONE] {
        let mut pair = with_two_paths();
        // Numbers are skipped at random, about once a window.
        pair.download(2_000_000);
        let connection = pair.server.connection();
        assert!(
            connection
                .parts
                .go_to(path, &mut connection.packets.recovery)
        );
        let recovery = &connection.packets.recovery;
        let newest = recovery.first_unused_number() - 1;
        let skipped = recovery.skipped_in(&(0..=newest));
        connection
            .parts
            .go_to(PathId::ZERO, &mut connection.packets.recovery);
        let skipped = skipped.expect("a number was skipped");
        let id = u64::from(path.value());
        let forged = raw(&[0x3e, id, skipped, 0, 0, 0]);
        pair.forge_to_server(SpaceId::Application, &forged);
        assert_eq!(pair.server_error(), Some(0x0a), "{path}, packet {skipped}");
    }
}

/// Statuses cost work and bring no progress (attack A215, limit K17).
#[test]
fn statuses_without_end_end_the_connection() {
    let mut pair = with_two_paths();
    for sequence in 1..10_000 {
        let kind = [0x3e76, 0x3e77][usize::from(sequence % 2 == 0)];
        pair.forge_to_server(SpaceId::Application, &raw(&[kind, 1, sequence]));
        if pair.server_error().is_some() {
            assert!(sequence > 1000, "{sequence}");
            assert_eq!(pair.server_error(), Some(0x0a));
            return;
        }
    }
    panic!("10 000 statuses are accepted");
}

/// Peers may acknowledge each path on each other one (limit K83), but not without end.
#[test]
fn acknowledgements_of_several_paths_may_be_repeated() {
    let mut pair = with_two_paths();
    pair.download(100_000);
    let repeated = [PathId::ZERO, ONE].map(|path| {
        let connection = pair.server.connection();
        let recovery = &mut connection.packets.recovery;
        assert!(connection.parts.go_to(path, recovery));
        // The first packets of a path are acknowledged.
        let first = recovery.first_unused_number() - 1;
        connection.parts.go_to(PathId::ZERO, recovery);
        raw(&[0x3e, u64::from(path.value()), first.min(1), 0, 0, 0])
    });
    for number in 0..20_000 {
        pair.forge_to_server(SpaceId::Application, &repeated[number % 2]);
        if pair.server_error().is_some() {
            assert!(number >= 9_000, "{number}");
            assert_eq!(pair.server_error(), Some(0x0a));
            return;
        }
    }
    panic!("20 000 acknowledgements of the same packets are accepted");
}
