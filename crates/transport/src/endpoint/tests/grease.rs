//! Tests greasing of the QUIC bit (RFC 9287), and datagrams of other protocols (RFC 9443).

use courser_wire::packet::has_fixed_bit;

use super::*;
use crate::testing::traffic::Transfer;

/// Returns a pair with the setting of each end, after a handshake and a transfer.
fn greased(client: bool, server: bool) -> Pair {
    let mut pair = Pair::new();
    pair.client.endpoint.config.grease_quic_bit = client;
    pair.server.endpoint.config.grease_quic_bit = server;
    pair.connect();
    let transfer = Transfer::up(&mut pair, 200_000);
    assert!(transfer.finish(&mut pair, Duration::from_secs(5)).is_some());
    pair
}

/// Returns the numbers of datagrams whose first packet has the QUIC bit, and of those without it.
fn bits(datagrams: &[Datagram]) -> (usize, usize) {
    let with = datagrams.iter().filter(|it| has_fixed_bit(it.bytes[0]));
    let with = with.count();
    (with, datagrams.len() - with)
}

#[test]
fn quic_bit_is_cleared_at_random_if_both_ends_accept_that() {
    let pair = greased(true, true);
    for (end, whose) in [(&pair.client, "client"), (&pair.server, "server")] {
        let (with, without) = bits(&end.sent);
        assert!(with > 10 && without > 10, "{whose}: {with} and {without}");
    }
    let first = packet::decode(&pair.client.sent[0].bytes, 0, 8).expect("the QUIC bit");
    assert_eq!(
        first.kind,
        PacketKind::Initial,
        "the parameter of the server is unknown"
    );
}

#[test]
fn quic_bit_is_never_cleared_to_a_peer_that_does_not_accept_that() {
    for (client, server) in [(false, false), (true, false), (false, true)] {
        let pair = greased(client, server);
        for end in [&pair.client, &pair.server] {
            assert_eq!(bits(&end.sent).1, 0, "{client} {server}");
        }
    }
}

#[test]
fn greased_ends_survive_losses_and_key_updates() {
    for seed in 0..20 {
        let mut pair = Pair::with(Setup {
            seed,
            ..Setup::default()
        });
        pair.client.endpoint.config.grease_quic_bit = true;
        pair.server.endpoint.config.grease_quic_bit = true;
        (pair.link.loss, pair.link.reorder) = (100, 200);
        pair.connect();
        let now = pair.now;
        // Once the server has acknowledged a packet.
        let _ = pair.client.connection().initiate_key_update(now);
        pair.client.touch();
        let transfer = Transfer::up(&mut pair, 20_000);
        let taken = transfer.finish(&mut pair, Duration::from_secs(20));
        assert!(taken.is_some(), "seed {seed}");
    }
}

#[test]
fn datagrams_of_other_protocols_get_no_answer() {
    for greased in [false, true] {
        let mut pair = Pair::new();
        pair.server.endpoint.config.grease_quic_bit = greased;
        // STUN, ZRTP, DTLS, and the channels of TURN below the range of QUIC.
        for first in [0, 3, 16, 20, 63] {
            let mut datagram = FirstDatagram::new(1).initial();
            datagram.bytes[0] = first;
            let answers = answers(&mut pair, datagram);
            assert!(answers.is_empty(), "{greased} {first}: RFC 9443 §3");
        }
        assert_clean(&pair.server, "server");
    }
}

#[test]
fn path_that_drops_cleared_bits_is_usable() {
    for from_the_start in [true, false] {
        let mut pair = Pair::new();
        pair.client.endpoint.config.grease_quic_bit = true;
        pair.server.endpoint.config.grease_quic_bit = true;
        let passes = |datagram: &Datagram| has_fixed_bit(datagram.bytes[0]);
        if from_the_start {
            pair.link.filter = Some(Box::new(move |_, datagram| passes(datagram)));
        }
        pair.connect();
        pair.upload(50_000);
        pair.link.filter = Some(Box::new(move |_, datagram| passes(datagram)));
        let time = pair.upload(300_000);
        assert!(time < Duration::from_secs(3), "{from_the_start}: {time:?}");
        let sent = pair.client.sent.len();
        pair.upload(300_000);
        assert_eq!(bits(&pair.client.sent[sent..]).1, 0, "{from_the_start}");
        let stats = pair.client.connection().stats();
        assert!(stats.path.withheld.quic_bit, "{from_the_start}");
        assert_eq!(stats.fallbacks.quic_bit, 1, "{from_the_start}");
    }
}

/// The loss of packets with a cleared bit must not affect peers that never get any.
#[test]
fn losses_of_cleared_bits_leave_batches_to_peers_that_refuse_them() {
    let mut pair = Pair::new();
    pair.client.endpoint.config.grease_quic_bit = true;
    pair.server.endpoint.config.grease_quic_bit = true;
    let passes = |datagram: &Datagram| has_fixed_bit(datagram.bytes[0]);
    pair.link.filter = Some(Box::new(move |_, datagram| passes(datagram)));
    pair.connect();
    pair.download(300_000);
    assert_eq!(pair.server.connection().stats().fallbacks.quic_bit, 1);
    pair.client.endpoint.config.grease_quic_bit = false;
    pair.connect();
    pair.download(300_000);
    let seen = pair.server.batches.len();
    pair.download(300_000);
    let batches = &pair.server.batches[seen..];
    let datagrams: usize = batches.iter().sum();
    assert!(datagrams > 4 * batches.len(), "{batches:?}");
}
