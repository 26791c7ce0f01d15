//! Counters of each path, and of all together.

use super::*;

fn bytes_sent(end: &End, address: SocketAddr) -> u64 {
    let sent = end
        .sent
        .iter()
        .filter(|it| it.from == address || it.to == address);
    sent.map(|it| it.bytes.len() as u64).sum()
}

/// Returns the packets and bytes of all open paths together.
fn sums(end: &mut End) -> [u64; 4] {
    let paths = end.connection().several_paths().list();
    paths.iter().fold([0; 4], |sums, path| {
        let traffic = &path.traffic;
        [
            sums[0] + path.packets_sent,
            sums[1] + path.packets_lost,
            sums[2] + traffic.bytes_sent,
            sums[3] + traffic.bytes_received,
        ]
    })
}

fn totals(end: &mut End) -> [u64; 4] {
    let stats = end.connection().stats();
    [
        stats.packets_sent,
        stats.packets_lost,
        stats.udp_sent.bytes,
        stats.udp_received.bytes,
    ]
}

#[test]
fn counters_of_paths_add_up_to_those_of_the_connection() {
    let mut pair = with_two_paths();
    let mut number = 0;
    pair.link.filter = Some(Box::new(move |_, _| {
        number += 1;
        number % 50 != 0
    }));
    pair.upload(2_000_000);
    pair.download(1_000_000);
    for end in [&mut pair.client, &mut pair.server] {
        let all = totals(end);
        assert_eq!(sums(end), all);
        assert!(all.iter().all(|count| *count > 0), "{all:?}");
    }
    let paths = pair.client.connection().several_paths().list();
    let of_second = paths[1].traffic.bytes_sent;
    assert_eq!(of_second, bytes_sent(&pair.client, second_socket()));
    let frames = pair.client.connection().stats().frames_sent;
    assert!(frames.stream >= 2_000_000 / 1500, "{frames:?}");
}

#[test]
fn counters_of_a_closed_path_remain_in_those_of_the_connection() {
    let mut pair = with_two_paths();
    pair.upload(2_000_000);
    let (before, of_path) = (totals(&mut pair.client), {
        let paths = pair.client.connection().several_paths().list();
        paths[1].packets_sent
    });
    assert!(of_path > 100, "{of_path}");
    let now = pair.now;
    let code = TransportErrorCode::APPLICATION_ABANDON_PATH;
    let connection = pair.client.connection();
    assert!(connection.several_paths().close(now, ONE, code));
    pair.client.touch();
    pair.run_for(RTT * 20);
    assert_eq!(pair.client.connection().several_paths().list().len(), 1);
    let after = totals(&mut pair.client);
    assert!(
        before
            .iter()
            .zip(after)
            .all(|(before, after)| after >= *before),
        "{before:?} {after:?}"
    );
    // What is left belongs to the first path.
    assert!(sums(&mut pair.client)[0] <= after[0] - of_path);
}
