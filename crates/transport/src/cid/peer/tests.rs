use super::*;
use crate::cid::ACTIVE_CONNECTION_ID_LIMIT;
use crate::cid::retirements::MAX_RETIREMENTS;
use crate::cid::testing::{frames, id, packet, token};
use crate::space::sent::SentFrame;
use courser_wire::Frame;

const LIMIT: u64 = ACTIVE_CONNECTION_ID_LIMIT;
const VIOLATION: TransportErrorCode = TransportErrorCode::PROTOCOL_VIOLATION;
const LIMIT_ERROR: TransportErrorCode = TransportErrorCode::CONNECTION_ID_LIMIT_ERROR;
const ENCODING: TransportErrorCode = TransportErrorCode::FRAME_ENCODING_ERROR;

fn frame(sequence: u64, retire_prior_to: u64) -> NewConnectionId {
    NewConnectionId {
        sequence,
        retire_prior_to,
        id: id(sequence),
        reset_token: token(sequence),
    }
}

fn on_frame(ids: &mut PeerIds, frame: &NewConnectionId) -> Result<(), TransportErrorCode> {
    ids.on_new_connection_id_frame(frame, LIMIT)
        .map_err(|error| error.code)
}

/// Creates a table that holds the IDs below `count`, and uses 0.
fn peer_ids(count: u64) -> PeerIds {
    let mut ids = PeerIds::new(id(0));
    for sequence in 1..count {
        on_frame(&mut ids, &frame(sequence, 0)).unwrap();
    }
    ids
}

/// Writes one packet and returns the sequence numbers that it retires.
fn send(ids: &mut PeerIds) -> Vec<u64> {
    let (bytes, records) = packet(1200, |packet| ids.write_frames(packet));
    let sent: Vec<_> = frames(&bytes)
        .into_iter()
        .map(|frame| match frame {
            Frame::RetireConnectionId(frame) => frame.sequence,
            other => panic!("unexpected {other:?}"),
        })
        .collect();
    let sequences = sent.iter().copied();
    let expected: Vec<_> = sequences
        .map(|sequence| SentFrame::RetireConnectionId { sequence })
        .collect();
    assert_eq!(records, expected);
    sent
}

fn held(ids: &PeerIds) -> Vec<u64> {
    let mut sequences: Vec<_> = ids.held().map(|held| held.sequence).collect();
    sequences.sort_unstable();
    sequences
}

#[test]
fn new_ids_are_kept_as_spares() {
    let ids = peer_ids(4);
    assert_eq!(
        (*ids.current(), ids.current_sequence(), ids.spare()),
        (id(0), 0, 3)
    );
    assert_eq!(ids.id_of(2), Some(&id(2)));
    assert_eq!(ids.id_of(4), None);
}

#[test]
fn frame_of_a_peer_with_an_empty_id_is_refused() {
    let mut ids = PeerIds::new(ConnectionId::EMPTY);
    assert_eq!(on_frame(&mut ids, &frame(1, 0)), Err(VIOLATION));
}

#[test]
fn frame_with_an_empty_id_is_refused() {
    let empty = NewConnectionId {
        id: ConnectionId::EMPTY,
        ..frame(1, 0)
    };
    assert_eq!(on_frame(&mut peer_ids(1), &empty), Err(ENCODING));
}

#[test]
fn frame_that_retires_its_own_id_is_refused() {
    assert_eq!(on_frame(&mut peer_ids(1), &frame(1, 2)), Err(ENCODING));
    assert_eq!(on_frame(&mut peer_ids(1), &frame(1, 1)), Ok(()));
}

#[test]
fn exact_repetition_changes_nothing() {
    let mut ids = peer_ids(4);
    for _ in 0..100 {
        assert_eq!(on_frame(&mut ids, &frame(3, 0)), Ok(()));
    }
    assert_eq!(held(&ids), [0, 1, 2, 3]);
    assert!(!ids.has_frames_to_send());
}

#[test]
fn sequence_number_with_another_id_is_refused() {
    let other = NewConnectionId {
        id: id(77),
        ..frame(2, 0)
    };
    assert_eq!(on_frame(&mut peer_ids(4), &other), Err(VIOLATION));
}

#[test]
fn sequence_number_with_another_token_is_refused() {
    let other = NewConnectionId {
        reset_token: token(77),
        ..frame(2, 0)
    };
    assert_eq!(on_frame(&mut peer_ids(4), &other), Err(VIOLATION));
}

#[test]
fn id_with_another_sequence_number_is_refused() {
    for known in [0, 1] {
        let other = NewConnectionId {
            id: id(known),
            ..frame(2, 0)
        };
        assert_eq!(
            on_frame(&mut peer_ids(2), &other),
            Err(VIOLATION),
            "id {known}"
        );
    }
}

#[test]
fn handshake_id_in_a_frame_is_refused() {
    assert_eq!(
        on_frame(&mut peer_ids(2), &frame(0, 0)),
        Err(VIOLATION),
        "its token is not known"
    );
}

#[test]
fn one_id_above_our_limit_is_refused() {
    let mut ids = peer_ids(LIMIT);
    assert_eq!(on_frame(&mut ids, &frame(LIMIT, 0)), Err(LIMIT_ERROR));
}

#[test]
fn limit_counts_after_retirement() {
    let mut ids = peer_ids(LIMIT);
    assert_eq!(on_frame(&mut ids, &frame(LIMIT, 1)), Ok(()));
    assert_eq!(held(&ids), [1, 2, 3, 4]);
    assert_eq!(on_frame(&mut ids, &frame(LIMIT + 1, 1)), Err(LIMIT_ERROR));
}

#[test]
fn raised_retire_prior_to_replaces_the_id_in_use() {
    let mut ids = peer_ids(3);
    on_frame(&mut ids, &frame(3, 2)).unwrap();
    assert_eq!((*ids.current(), ids.current_sequence()), (id(2), 2));
    assert_eq!(held(&ids), [2, 3]);
    let mut sent = send(&mut ids);
    sent.sort_unstable();
    assert_eq!(sent, [0, 1]);
}

#[test]
fn raised_retire_prior_to_may_replace_everything() {
    let mut ids = peer_ids(LIMIT);
    on_frame(&mut ids, &frame(9, 9)).unwrap();
    assert_eq!(*ids.current(), id(9));
    let mut sent = send(&mut ids);
    sent.sort_unstable();
    assert_eq!(sent, [0, 1, 2, 3]);
}

#[test]
fn retire_prior_to_that_does_not_grow_is_ignored() {
    let mut ids = peer_ids(3);
    on_frame(&mut ids, &frame(3, 2)).unwrap();
    send(&mut ids);
    for mark in [0, 1, 2] {
        on_frame(&mut ids, &frame(4, mark)).unwrap();
    }
    assert_eq!(held(&ids), [2, 3, 4]);
    assert!(!ids.has_frames_to_send());
}

#[test]
fn id_below_the_mark_is_retired_on_arrival_once() {
    let mut ids = peer_ids(1);
    on_frame(&mut ids, &frame(5, 5)).unwrap();
    assert_eq!(send(&mut ids), [0]);
    on_frame(&mut ids, &frame(3, 0)).unwrap();
    assert_eq!(send(&mut ids), [3]);
    assert_eq!(*ids.current(), id(5));
    on_frame(&mut ids, &frame(3, 0)).unwrap();
    assert!(!ids.has_frames_to_send(), "in flight");
    ids.on_retirement_acked(3);
    on_frame(&mut ids, &frame(3, 0)).unwrap();
    assert!(!ids.has_frames_to_send(), "acknowledged");
}

/// Fails by a timeout if a loop runs from the old value to the new one.
#[test]
fn cost_of_a_huge_retire_prior_to_depends_on_stored_ids_alone() {
    let mut ids = peer_ids(LIMIT);
    let largest = (1 << 62) - 1;
    on_frame(&mut ids, &frame(largest, largest)).unwrap();
    assert_eq!(held(&ids), [largest]);
    assert_eq!(ids.retirements.open.len(), 4);
}

/// Without an ID no packet could be sent, not even the retirement.
#[test]
fn last_id_is_kept_until_a_successor_arrives() {
    let mut ids = peer_ids(2);
    assert!(ids.switch_to_next() && send(&mut ids) == [0]);
    on_frame(&mut ids, &frame(3, 0)).unwrap();
    assert!(ids.switch_to_next() && send(&mut ids) == [1]);
    on_frame(&mut ids, &frame(2, 0)).unwrap();
    assert!(ids.switch_to_next() && send(&mut ids) == [3]);
    on_frame(&mut ids, &frame(3, 3)).unwrap();
    assert_eq!((*ids.current(), ids.has_frames_to_send()), (id(2), false));
    on_frame(&mut ids, &frame(4, 3)).unwrap();
    assert_eq!(*ids.current(), id(4));
    assert_eq!(send(&mut ids), [2]);
}

#[test]
fn sixteen_open_retirements_are_the_limit() {
    assert!(MAX_RETIREMENTS as u64 >= 2 * LIMIT, "RFC 9000 §5.1.2");
    let mut ids = peer_ids(1);
    for sequence in 1..=16 {
        assert_eq!(
            on_frame(&mut ids, &frame(sequence, sequence)),
            Ok(()),
            "{sequence}"
        );
        send(&mut ids);
    }
    assert_eq!(ids.retirements.open.len(), MAX_RETIREMENTS);
    assert_eq!(on_frame(&mut ids, &frame(17, 17)), Err(LIMIT_ERROR));
}

#[test]
fn ids_retired_on_arrival_count_as_open_retirements() {
    let mut ids = peer_ids(1);
    on_frame(&mut ids, &frame(100, 100)).unwrap();
    for sequence in 1..16 {
        assert_eq!(
            on_frame(&mut ids, &frame(sequence, 0)),
            Ok(()),
            "{sequence}"
        );
    }
    assert_eq!(on_frame(&mut ids, &frame(16, 0)), Err(LIMIT_ERROR));
}

#[test]
fn acknowledged_retirements_no_longer_count() {
    let mut ids = peer_ids(1);
    for sequence in 1..=100 {
        assert_eq!(
            on_frame(&mut ids, &frame(sequence, sequence)),
            Ok(()),
            "{sequence}"
        );
        assert_eq!(send(&mut ids), [sequence - 1]);
        ids.on_retirement_acked(sequence - 1);
    }
    assert!(ids.retirements.open.is_empty());
}

#[test]
fn sequence_numbers_with_too_many_gaps_are_refused() {
    let mut ids = peer_ids(1);
    for ranges in 2..=MAX_SEQUENCE_RANGES as u64 {
        let result = on_frame(&mut ids, &frame(2 * ranges, 2 * ranges));
        assert_eq!(result, Ok(()), "{ranges} ranges");
        for sequence in send(&mut ids) {
            ids.on_retirement_acked(sequence);
        }
    }
    assert_eq!(on_frame(&mut ids, &frame(1000, 1000)), Err(LIMIT_ERROR));
}

#[test]
fn lost_retirement_is_repeated_until_acked() {
    let mut ids = peer_ids(2);
    assert!(ids.switch_to_next());
    assert_eq!(send(&mut ids), [0]);
    ids.on_retirement_lost(0);
    assert!(ids.has_frames_to_send());
    assert_eq!(send(&mut ids), [0]);
    ids.on_retirement_lost(0);
    ids.on_retirement_acked(0);
    assert!(
        !ids.has_frames_to_send(),
        "the first copy arrived after all"
    );
    ids.on_retirement_lost(0);
    assert!(!ids.has_frames_to_send());
}

#[test]
fn retirement_that_does_not_fit_waits() {
    let mut ids = peer_ids(2);
    ids.switch_to_next();
    let (bytes, _) = packet(1, |packet| ids.write_frames(packet));
    assert!(bytes.is_empty() && ids.has_frames_to_send());
    let (bytes, _) = packet(2, |packet| ids.write_frames(packet));
    assert_eq!((bytes.len(), ids.has_frames_to_send()), (2, false));
}

#[test]
fn switching_takes_the_lowest_spare_and_retires_the_current() {
    let mut ids = peer_ids(3);
    assert!(ids.switch_to_next());
    assert_eq!((*ids.current(), ids.spare()), (id(1), 1));
    assert!(ids.switch_to_next());
    assert_eq!(*ids.current(), id(2));
    assert_eq!(send(&mut ids), [0, 1]);
    assert!(!ids.switch_to_next(), "no spare is left");
    assert_eq!(*ids.current(), id(2));
}

#[test]
fn switching_leaves_part_of_the_limit_to_the_peer() {
    let mut ids = peer_ids(1);
    for sequence in 1..=8 {
        on_frame(&mut ids, &frame(sequence, 0)).unwrap();
        assert!(ids.switch_to_next(), "{sequence}");
    }
    on_frame(&mut ids, &frame(9, 0)).unwrap();
    assert!(!ids.switch_to_next(), "eight retirements are open");
    on_frame(&mut ids, &frame(10, 0)).unwrap();
    on_frame(&mut ids, &frame(11, 0)).unwrap();
    assert_eq!(on_frame(&mut ids, &frame(15, 15)), Ok(()));
}

#[test]
fn reserved_id_belongs_to_one_path() {
    let mut ids = peer_ids(3);
    assert_eq!(ids.reserve(), Some((1, id(1))));
    assert_eq!(ids.spare(), 1);
    assert!(ids.switch_to_next());
    assert_eq!(*ids.current(), id(2), "a reserved id is no spare");
    assert_eq!(ids.reserve(), None);
    assert!(ids.switch_to(1));
    assert_eq!(*ids.current(), id(1));
    assert_eq!(send(&mut ids), [0, 2]);
    assert!(!ids.switch_to(1), "it is current");
}

#[test]
fn reserved_id_of_a_path_given_up_is_retired() {
    let mut ids = peer_ids(3);
    let (sequence, _) = ids.reserve().unwrap();
    ids.give_up(sequence);
    assert_eq!(send(&mut ids), [1]);
    assert_eq!(ids.id_of(sequence), None);
    for other in [sequence, 0, 2, 99] {
        ids.give_up(other);
    }
    assert_eq!(send(&mut ids), [0; 0], "none of them is reserved");
    assert_eq!(ids.spare(), 1);
}

#[test]
fn id_given_up_is_retired_below_the_limit_and_is_no_spare_before() {
    let mut ids = peer_ids(1);
    for sequence in 1..=8 {
        on_frame(&mut ids, &frame(sequence, 0)).unwrap();
        assert!(ids.switch_to_next(), "{sequence}");
    }
    on_frame(&mut ids, &frame(9, 0)).unwrap();
    let (reserved, _) = ids.reserve().unwrap();
    ids.give_up(reserved);
    assert_eq!(send(&mut ids), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!((ids.spare(), ids.reserve()), (0, None));
    ids.on_retirement_acked(0);
    assert_eq!(send(&mut ids), [9]);
}

#[test]
fn peer_can_have_a_reserved_id_retired() {
    let mut ids = peer_ids(3);
    let (sequence, _) = ids.reserve().unwrap();
    on_frame(&mut ids, &frame(3, 2)).unwrap();
    assert_eq!(ids.id_of(sequence), None);
    assert_eq!(*ids.current(), id(2));
}

#[test]
fn reserved_id_becomes_current_when_no_spare_is_left() {
    let mut ids = peer_ids(2);
    let (sequence, reserved) = ids.reserve().unwrap();
    on_frame(&mut ids, &frame(1, 1)).unwrap();
    assert_eq!(
        (ids.current_sequence(), *ids.current()),
        (sequence, reserved)
    );
}

#[test]
fn reserved_id_stays_with_its_path_while_a_spare_is_left() {
    let mut ids = peer_ids(2);
    let (reserved, _) = ids.reserve().unwrap();
    on_frame(&mut ids, &frame(2, 1)).unwrap();
    assert_eq!(ids.current_sequence(), 2);
    assert_eq!(ids.id_of(reserved), Some(&id(reserved)));
}

#[test]
fn server_chooses_its_handshake_id() {
    let mut ids = PeerIds::new(id(50));
    ids.set_handshake_id(id(51));
    ids.set_handshake_id(id(52));
    assert_eq!((*ids.current(), ids.current_sequence()), (id(52), 0));
}

#[test]
fn preferred_address_brings_sequence_one() {
    let mut ids = peer_ids(1);
    ids.on_preferred_address(id(1), token(1), LIMIT).unwrap();
    assert_eq!(ids.id_of(1), Some(&id(1)));
    assert_eq!(
        on_frame(&mut ids, &frame(1, 0)),
        Ok(()),
        "repeated in a frame"
    );
    let other = NewConnectionId {
        id: id(9),
        ..frame(1, 0)
    };
    assert_eq!(on_frame(&mut ids, &other), Err(VIOLATION));
}

#[test]
fn preferred_address_with_an_empty_id_is_refused() {
    let code = TransportErrorCode::TRANSPORT_PARAMETER_ERROR;
    let error = peer_ids(1).on_preferred_address(ConnectionId::EMPTY, token(1), LIMIT);
    assert_eq!(error.unwrap_err().code, code);
    let error = PeerIds::new(ConnectionId::EMPTY).on_preferred_address(id(1), token(1), LIMIT);
    assert_eq!(error.unwrap_err().code, code);
}

#[test]
fn only_tokens_of_ids_in_use_reset() {
    let mut ids = peer_ids(4);
    assert!(!ids.is_reset_token(&token(0)), "not known yet");
    ids.set_reset_token(token(0));
    assert!(ids.is_reset_token(&token(0)));
    assert!(!ids.is_reset_token(&token(1)), "never used");
    ids.switch_to_next();
    assert!(ids.is_reset_token(&token(1)));
    assert!(!ids.is_reset_token(&token(0)), "retired");
    ids.reserve();
    assert!(ids.is_reset_token(&token(2)), "used on another path");
    ids.set_reset_token(token(8));
    assert!(!ids.is_reset_token(&token(8)), "the handshake id is gone");
}

#[test]
fn missing_tokens_match_nothing() {
    let ids = peer_ids(4);
    assert!(!ids.is_reset_token(&[0; 16]));
    assert!(!ids.is_reset_token(&[0xff; 16]));
}

#[test]
fn one_wrong_bit_is_no_reset_token() {
    let mut ids = peer_ids(1);
    ids.set_reset_token(token(0));
    for bit in 0..128 {
        let wrong = (u128::from_be_bytes(token(0)) ^ 1 << bit).to_be_bytes();
        assert!(!ids.is_reset_token(&wrong), "bit {bit}");
    }
}

#[test]
fn tokens_of_used_ids_are_reported_to_the_endpoint() {
    let mut ids = peer_ids(4);
    assert_eq!(ids.poll_token_change(), None);
    ids.set_reset_token(token(0));
    assert_eq!(ids.poll_token_change(), Some(TokenChange::Added(token(0))));
    assert_eq!(ids.poll_token_change(), None);
    ids.switch_to_next();
    assert_eq!(
        ids.poll_token_change(),
        Some(TokenChange::Removed(token(0)))
    );
    assert_eq!(ids.poll_token_change(), Some(TokenChange::Added(token(1))));
    assert_eq!(ids.poll_token_change(), None);
}

#[test]
fn unrequested_reset_tokens_are_not_reported() {
    let mut ids = peer_ids(1);
    for sequence in 1..=1000 {
        on_frame(&mut ids, &frame(sequence, sequence)).unwrap();
        send(&mut ids)
            .into_iter()
            .for_each(|old| ids.on_retirement_acked(old));
    }
    assert_eq!(
        ids.poll_token_change(),
        Some(TokenChange::Added(token(1000)))
    );
    assert_eq!(ids.poll_token_change(), None);
}

#[test]
fn tokens_stay_out_of_logs() {
    let mut ids = peer_ids(2);
    ids.set_reset_token(token(0));
    let text = format!("{:?} {:?}", ids.poll_token_change(), ids);
    let secret = format!("{:?}", token(0));
    assert!(!text.contains(secret.trim_matches(['[', ']'])), "{text}");
}

mod flood;
