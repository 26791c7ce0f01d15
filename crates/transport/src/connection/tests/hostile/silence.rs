//! Tests peers that acknowledge nothing, or late, or the same packets again.

use std::time::Duration;

use courser_wire::TransportErrorCode;
use courser_wire::frame::{self, Frame};

use super::*;
use crate::testing::forge::{encode, forge};
use crate::testing::tampering::varint;

/// Creates a pair whose server receives packets and answers, but no answer arrives.
fn mute_pair() -> Pair {
    let mut pair = Pair::connected();
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to == server_address()));
    pair
}

/// Delivers one packet of the client and polls the response of the server.
fn deliver(pair: &mut Pair, payload: &[u8]) {
    let bytes = forge(&mut pair.client, SpaceId::Application, payload);
    let (from, to) = (client_address(), server_address());
    pair.deliver(Datagram {
        from,
        to,
        ecn: Ecn::NotEct,
        bytes,
    });
    pair.drive();
}

fn stream(offset: u64) -> Vec<u8> {
    encode(&Frame::Stream(frame::Stream {
        id: courser_wire::StreamId::new(courser_base::Side::Client, Direction::Unidirectional, 0),
        offset,
        data: b"x",
        fin: false,
    }))
}

/// Attack A24: each packet of the client makes the server send an ACK, whose record takes memory.
#[test]
fn memory_of_our_ack_only_packets_is_bounded() {
    let mut pair = mute_pair();
    let mut most = 0;
    for _ in 0..100_000 {
        deliver(&mut pair, &stream(0));
        pair.server.sent.clear();
        most = most.max(pair.server.connection().packets.recovery.memory());
    }
    assert!(most < 64 << 10, "{most} bytes");
}

/// An end must acknowledge ack-eliciting packets (RFC 9000 §13.2.1, limit K78).
#[test]
fn peer_that_acknowledges_nothing_is_disconnected() {
    let mut pair = Pair::connected();
    // The client receives the server's packets, and its own packets are made below.
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to != server_address()));
    let id = pair
        .server
        .connection()
        .streams()
        .open(Direction::Unidirectional);
    let id = id.expect("room");
    let _ = pair.server.connection().streams().write(id, b"answer");
    pair.server.touch();
    let begun = pair.now;
    let mut offset = 0;
    while !is_closed(&mut pair.server) && pair.now - begun < Duration::from_secs(100) {
        deliver(&mut pair, &stream(offset));
        offset += 1;
        pair.run_for(Duration::from_millis(100));
    }
    let code = TransportErrorCode::PROTOCOL_VIOLATION.value();
    assert_eq!(pair.server_error(), Some(code));
    let lived = pair.now - begun;
    assert!(lived >= Duration::from_secs(30), "after {lived:?}");
    assert!(lived <= Duration::from_secs(40), "after {lived:?}");
}

/// Attack A25: the cost of an ACK depends on the newly acknowledged packets, not on repeated ranges.
#[test]
fn repeated_acknowledgements_cost_nothing() {
    let mut pair = Pair::connected();
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to == server_address()));
    let id = pair
        .server
        .connection()
        .streams()
        .open(Direction::Unidirectional)
        .expect("room");
    let mut from = pair
        .server
        .connection()
        .packets
        .recovery
        .first_unused_number();
    let (mut newly, mut acked) = (0, from);
    let before = pair.server.connection().packets.recovery.steps();
    for _ in 0..1000 {
        let _ = pair.server.connection().streams().write(id, &[7; 4000]);
        pair.server.touch();
        pair.run_for(Duration::from_millis(1));
        let recovery = &pair.server.connection().packets.recovery;
        let largest = recovery.first_unused_number() - 1;
        let Some(range) = largest.checked_sub(from + 1) else {
            continue;
        };
        // All but the first packet, each time, without skipped numbers.
        if let Some(skipped) = recovery.skipped_in(&(from + 1..=largest)) {
            from = skipped;
            continue;
        }
        let ack = [
            vec![0x02],
            varint(largest),
            varint(0),
            varint(0),
            varint(range),
        ]
        .concat();
        deliver(&mut pair, &ack);
        newly += largest - acked;
        acked = largest;
    }
    let steps = pair.server.connection().packets.recovery.steps() - before;
    assert!(newly > 200, "{newly} newly acknowledged");
    assert!(steps < 4 * newly, "{steps} steps for {newly} packets");
}

/// Attack A33: a repeated byte does not count as progress that offsets idle frames.
#[test]
fn repeated_byte_offsets_no_idle_frame() {
    let mut pair = Pair::connected();
    let mut payload = stream(0);
    payload.push(0x01);
    for _ in 0..3000 {
        deliver(&mut pair, &payload);
        if is_closed(&mut pair.server) {
            break;
        }
    }
    let code = TransportErrorCode::PROTOCOL_VIOLATION.value();
    assert_eq!(pair.server_error(), Some(code));
}
