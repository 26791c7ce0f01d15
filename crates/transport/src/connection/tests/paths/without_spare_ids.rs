//! Tests peers that move without having issued an ID for it. RFC 9000 §9.5, attack A59.

use super::*;

/// Creates a pair whose server has used all IDs of the client but one. The client issues no more:
/// its new ones are lost.
fn without_spare_ids() -> Pair {
    let mut pair = Pair::connected();
    pair.run_for(RTT);
    let ids = pair.server.connection().ids_mut().peer();
    while ids.spare() > 0 {
        assert!(ids.switch_to_next());
    }
    pair
}

#[test]
fn client_without_a_spare_id_is_followed_with_the_one_in_use() {
    for to in [other_port(), other_host()] {
        let mut pair = without_spare_ids();
        let in_use = pair.server.connection().ids().destination();
        pair.link.filter = Some(Box::new(|_, _| false));
        pair.client.address = to;
        // Packets that would bring new IDs are still lost.
        from_elsewhere(&mut pair, to, &encode(&Frame::Ping));
        assert_eq!(server_peer(&mut pair), to);
        assert_eq!(pair.server.connection().ids().destination(), in_use);
        rebind(&mut pair, to);
        // The first challenge was lost with everything else, and used up the limit of three times a
        // PING.
        ping(&mut pair);
        pair.run_for(Duration::from_secs(3));
        assert!(is_validated(&mut pair), "{to}");
        pair.download(100_000);
        pair.upload(100_000);
    }
}

#[test]
fn client_without_ids_is_followed() {
    for to in [other_port(), other_host()] {
        let mut pair = Pair::with(Setup {
            client_cid_len: 0,
            ..Setup::default()
        });
        pair.connect();
        for _ in 0..3 {
            rebind(&mut pair, to);
            ping(&mut pair);
            pair.run_for(RTT * 3);
            assert_eq!(server_peer(&mut pair), to);
            assert!(is_validated(&mut pair), "{to}");
            rebind(&mut pair, client_address());
            ping(&mut pair);
            pair.run_for(RTT * 3);
            assert_eq!(server_peer(&mut pair), client_address());
        }
        pair.download(100_000);
        pair.upload(100_000);
    }
}
