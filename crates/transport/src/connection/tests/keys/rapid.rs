//! A peer that updates its keys as often as the rules allow. RFC 9001 §6.1, attack A65.

use super::*;
use crate::testing::tampering::GENERATIONS;

/// Each update is acknowledged before the next one: no rule forbids that, so it must cost little.
#[test]
fn updates_with_every_packet_keep_two_generations_and_lose_nothing() {
    let (mut pair, eye) = Pair::watched_and_connected();
    // The honest client knows nothing of this.
    pair.link.filter = Some(Box::new(|_, _| false));
    let honest = next_number(&mut pair);
    for generation in 1..GENERATIONS {
        let number = honest + generation as u64;
        let packet = eye.forge_client(&mut pair, generation, &ping().number(number));
        pair.send_to_server(packet);
        pair.run_for(Duration::from_millis(30));
        assert_eq!(pair.server_error(), None, "generation {generation}");
        let sent = eye.server_sent(&pair);
        let last = generations(&sent).last().copied();
        assert_eq!(last, Some(generation), "it follows");
    }
    // Two generations back the keys are gone: the packet is as good as noise.
    let number = honest + 2 * GENERATIONS as u64;
    let stale = eye.forge_client(&mut pair, GENERATIONS - 3, &ping().number(number));
    let before = pair.server.connection().stats.packets_received;
    pair.send_to_server(stale);
    assert_eq!(
        pair.server.connection().stats.packets_received,
        before,
        "not authentic any more"
    );
    assert_eq!(pair.server_error(), None);
}
