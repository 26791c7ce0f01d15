//! Connection IDs issued, used and retired over a connection. RFC 9000 §5.1, §19.15, §19.16.

use courser_wire::frame::{Frame, NewConnectionId};

use super::frames::raw;
use super::*;
use crate::testing::Setup;
use crate::testing::eye::Seen;
use crate::testing::forge::encode;
use crate::testing::forgery::Forgery;

/// IDs that each end issues and keeps (limit K04).
const LIMIT: usize = 4;

fn given(sent: &[Seen]) -> Vec<NewConnectionId> {
    let frames = sent
        .iter()
        .flat_map(|packet| packet.frames())
        .filter_map(|frame| match frame {
            Frame::NewConnectionId(frame) => Some(frame),
            _ => None,
        });
    frames.collect()
}

fn retired(sent: &[Seen]) -> Vec<u64> {
    let frames = sent
        .iter()
        .flat_map(|packet| packet.frames())
        .filter_map(|frame| match frame {
            Frame::RetireConnectionId(frame) => Some(frame.sequence),
            _ => None,
        });
    frames.collect()
}

fn new_id(sequence: u64, retire_prior_to: u64, byte: u8) -> Vec<u8> {
    let id = ConnectionId::new(&[byte; 8]).expect("short enough");
    let frame = NewConnectionId {
        sequence,
        retire_prior_to,
        id,
        reset_token: [byte; 16],
    };
    encode(&Frame::NewConnectionId(frame))
}

fn active(end: &mut crate::testing::End) -> Vec<ConnectionId> {
    end.connection().ids().active().collect()
}

fn assert_client_refuses(case: &str, frames: &[u8], code: u64) {
    let mut pair = Pair::connected();
    pair.forge_to_client(SpaceId::Application, frames);
    assert_eq!(pair.client_error(), Some(code), "{case}");
    pair.run_for(RTT);
    assert_eq!(pair.close_received_by_server(), Some(code), "{case}");
}

#[test]
fn both_ends_issue_ids_in_sequence_up_to_the_limit() {
    let (mut pair, eye) = Pair::watched_and_connected();
    for sent in [eye.client_sent(&pair), eye.server_sent(&pair)] {
        let given = given(&sent);
        let sequences: Vec<_> = given.iter().map(|frame| frame.sequence).collect();
        assert_eq!(sequences, [1, 2, 3]);
        for (index, frame) in given.iter().enumerate() {
            assert_eq!(frame.id.len(), 8);
            assert_eq!(frame.retire_prior_to, 0, "no retirement is requested");
            assert!(given[..index].iter().all(|other| other.id != frame.id));
            assert!(
                given[..index]
                    .iter()
                    .all(|other| other.reset_token != frame.reset_token)
            );
        }
    }
    assert_eq!(active(&mut pair.client).len(), LIMIT);
    assert_eq!(active(&mut pair.server).len(), LIMIT);
}

#[test]
fn packets_to_any_active_id_are_accepted() {
    let mut pair = Pair::connected();
    for id in active(&mut pair.server) {
        let before = pair.server.connection().stats().packets_received;
        pair.client_forges(SpaceId::Application, &Forgery::of(&[0x01]).destination(&id));
        assert_eq!(
            pair.server.connection().stats().packets_received,
            before + 1,
            "{id}"
        );
    }
}

#[test]
fn retired_id_is_replaced_and_not_routed_any_more() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let old = active(&mut pair.server)[1];
    pair.forge_to_server(SpaceId::Application, &raw(&[0x19, 1]));
    let ids = active(&mut pair.server);
    assert!(!ids.contains(&old));
    assert_eq!(ids.len(), LIMIT);
    assert_eq!(
        given(&eye.server_sent(&pair))
            .last()
            .expect("a replacement")
            .sequence,
        4
    );
    let before = pair.server.connection().stats().packets_received;
    let bytes = Forgery::of(&[0x01])
        .destination(&old)
        .seal(&mut pair.client, SpaceId::Application);
    pair.send_to_server(bytes);
    assert_eq!(pair.server.connection().stats().packets_received, before);
    pair.forge_to_server(SpaceId::Application, &raw(&[0x19, 1]));
    assert_eq!(pair.server_error(), None, "a repetition");
}

#[test]
fn retirement_of_an_id_never_issued_is_a_protocol_violation() {
    for sequence in [4, 5, (1 << 62) - 1] {
        let case = format!("sequence {sequence}");
        assert_client_refuses(&case, &raw(&[0x19, sequence]), 0x0a);
    }
}

#[test]
fn retirement_of_the_id_that_carries_it_is_a_protocol_violation() {
    assert_client_refuses("0 over 0", &raw(&[0x19, 0]), 0x0a);
    let mut pair = Pair::connected();
    let other = active(&mut pair.client)[2];
    let packet = Forgery::of(&raw(&[0x19, 0])).destination(&other);
    pair.server_forges(SpaceId::Application, &packet);
    assert_eq!(pair.client_error(), None, "over another it is fine");
}

#[test]
fn more_ids_than_the_limit_are_refused() {
    assert_client_refuses("a fifth", &new_id(4, 0, 0xc4), 0x09);
    let mut pair = Pair::connected();
    pair.forge_to_client(SpaceId::Application, &new_id(4, 1, 0xc4));
    assert_eq!(pair.client_error(), None, "it counts after retirement");
}

#[test]
fn raised_retire_prior_to_replaces_and_retires_older_ids() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let before = pair.client.connection().ids().destination();
    pair.forge_to_client(SpaceId::Application, &new_id(4, 3, 0xc4));
    let connection = pair.client.connection();
    assert_ne!(connection.ids().destination(), before);
    assert_eq!(connection.ids_mut().peer().current_sequence(), 3);
    let sent = eye.client_sent(&pair);
    let mut retired = retired(&sent);
    retired.sort_unstable();
    assert_eq!(retired, [0, 1, 2]);
    let last = sent.last().expect("sent");
    assert_eq!(
        last.destination,
        pair.client.connection().ids().destination()
    );
    assert_eq!(pair.client_error(), None);
}

#[test]
fn id_below_the_mark_is_retired_on_arrival_and_once() {
    let (mut pair, eye) = Pair::watched_and_connected();
    pair.forge_to_client(SpaceId::Application, &new_id(9, 9, 0xc9));
    let count = retired(&eye.client_sent(&pair)).len();
    assert_eq!(count, 4);
    for _ in 0..3 {
        pair.forge_to_client(SpaceId::Application, &new_id(7, 0, 0xc7));
    }
    let retired = retired(&eye.client_sent(&pair));
    assert_eq!(retired[count..], [7]);
    assert_eq!(pair.client_error(), None);
}

#[test]
fn retirement_is_repeated_until_it_is_acknowledged() {
    let (mut pair, eye) = Pair::watched_and_connected();
    pair.link.filter = Some(Box::new(|_, _| false));
    pair.forge_to_client(SpaceId::Application, &new_id(4, 1, 0xc4));
    pair.run_for(Duration::from_secs(1));
    assert!(retired(&eye.client_sent(&pair)).len() >= 2);
    let last = eye.client_sent(&pair).last().expect("sent").number;
    pair.forge_to_client(SpaceId::Application, &raw(&[0x02, last, 0, 0, 0]));
    assert_eq!(
        pair.client.connection().ids_mut().peer().open_retirements(),
        0
    );
    let count = retired(&eye.client_sent(&pair)).len();
    pair.run_for(Duration::from_secs(5));
    assert_eq!(retired(&eye.client_sent(&pair)).len(), count);
}

#[test]
fn exact_repetitions_are_no_error() {
    let mut pair = Pair::connected();
    for _ in 0..3 {
        pair.forge_to_client(SpaceId::Application, &new_id(4, 1, 0xc4));
    }
    pair.forge_to_client(SpaceId::Application, &new_id(4, 0, 0xc4));
    assert_eq!(pair.client_error(), None);
}

#[test]
fn contradictions_are_protocol_violations() {
    let first = new_id(4, 1, 0xc4);
    for (case, second) in [
        ("another ID and token", new_id(4, 1, 0xc5)),
        ("same ID under another number", new_id(5, 2, 0xc4)),
    ] {
        assert_client_refuses(case, &[&first[..], &second].concat(), 0x0a);
    }
    let mut other_token = first.clone();
    *other_token.last_mut().expect("a token") ^= 1;
    assert_client_refuses("another token", &[first, other_token].concat(), 0x0a);
}

#[test]
fn flood_of_retirements_is_refused() {
    // Limit K05: 16 that the peer has not acknowledged.
    let mut pair = Pair::connected();
    pair.link.filter = Some(Box::new(|_, _| false));
    let mut byte = 0;
    while pair.client_error().is_none() && byte < 40 {
        byte += 1;
        let sequence = 3 + u64::from(byte);
        pair.forge_to_client(SpaceId::Application, &new_id(sequence, sequence, byte));
    }
    assert_eq!(pair.client_error(), Some(0x09));
    assert!((10..=17).contains(&byte), "after {byte}");
}

#[test]
fn end_without_ids_issues_none_and_receives_none() {
    let made = || {
        let mut pair = Pair::with(Setup {
            client_cid_len: 0,
            ..Setup::default()
        });
        pair.connect();
        pair
    };
    let mut pair = made();
    assert_eq!(pair.client.connection().missing_ids(), 0);
    assert_eq!(active(&mut pair.client), [ConnectionId::EMPTY]);
    pair.forge_to_client(SpaceId::Application, &raw(&[0x19, 0]));
    assert_eq!(pair.client_error(), Some(0x0a), "RETIRE_CONNECTION_ID");
    pair.run_for(RTT);
    assert_eq!(pair.close_received_by_server(), Some(0x0a));
    let mut pair = made();
    pair.forge_to_server(SpaceId::Application, &new_id(1, 0, 1));
    assert_eq!(pair.server_error(), Some(0x0a), "NEW_CONNECTION_ID");
    pair.run_for(RTT);
    assert_eq!(pair.close_received_by_client(), Some(0x0a));
}
