use courser_wire::{Frame, TransportErrorCode};

use super::*;
use crate::cid::testing::{frames, id, packet, token};

/// Returns the IDs of a connection whose peer allows `limit`, all issued but not sent.
fn issued(limit: u64) -> IssuedIds {
    let mut ids = IssuedIds::new(id(0));
    ids.on_peer_limit(limit);
    fill(&mut ids);
    ids
}

fn fill(ids: &mut IssuedIds) {
    for _ in 0..ids.missing() {
        let number = ids.next_sequence();
        ids.issue(id(number), token(number));
    }
}

fn send(ids: &mut IssuedIds) -> Vec<NewConnectionId> {
    let (bytes, records) = packet(1200, |packet| ids.write_frames(packet));
    let sent: Vec<_> = frames(&bytes)
        .into_iter()
        .map(|frame| match frame {
            Frame::NewConnectionId(frame) => frame,
            other => panic!("unexpected {other:?}"),
        })
        .collect();
    let sequences = sent.iter().map(|frame| frame.sequence);
    let expected: Vec<_> = sequences
        .map(|sequence| SentFrame::NewConnectionId { sequence })
        .collect();
    assert_eq!(records, expected);
    sent
}

fn retire(ids: &mut IssuedIds, sequence: u64) -> Result<Option<ConnectionId>, TransportErrorCode> {
    let carrying = ids
        .active()
        .find(|other| *other != id(sequence))
        .unwrap_or(id(999));
    ids.on_retire_connection_id_frame(sequence, &carrying)
        .map_err(|error| error.code)
}

#[test]
fn sequence_numbers_count_up_from_the_handshake_id() {
    let mut ids = IssuedIds::new(id(0));
    ids.on_peer_limit(4);
    assert_eq!(ids.sequence_of(&id(0)), Some(0));
    assert_eq!(ids.issue(id(1), token(1)), 1);
    assert_eq!(ids.issue(id(2), token(2)), 2);
    assert_eq!(ids.sequence_of(&id(2)), Some(2));
    assert_eq!(ids.sequence_of(&id(3)), None);
}

#[test]
fn preferred_address_takes_sequence_one_and_needs_no_frame() {
    let mut ids = IssuedIds::new(id(0));
    assert_eq!(ids.issue_preferred(id(1), token(1)), 1);
    ids.on_peer_limit(4);
    assert!(!ids.has_frames_to_send());
    assert_eq!(ids.missing(), 2, "the preferred address counts");
    assert_eq!(ids.issue(id(2), token(2)), 2);
}

#[test]
#[should_panic(expected = "takes sequence number 1")]
fn issuing_the_preferred_address_after_another_id_panics() {
    issued(4).issue_preferred(id(9), token(9));
}

#[test]
fn no_id_is_issued_before_the_limit_of_the_peer_is_known() {
    assert_eq!(IssuedIds::new(id(0)).missing(), 0);
}

#[test]
fn active_ids_stay_within_the_limits_of_both() {
    for limit in [2, 3, 4, 5, 100, u64::MAX] {
        let ids = issued(limit);
        let expected = usize::try_from(limit.min(ACTIVE_CONNECTION_ID_LIMIT)).unwrap();
        assert_eq!(ids.active().count(), expected, "limit {limit}");
        assert_eq!(ids.missing(), 0, "limit {limit}");
    }
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "more connection ids than are missing")]
fn issuing_one_id_more_than_is_missing_panics() {
    issued(4).issue(id(4), token(4));
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "issued twice")]
fn issuing_the_same_id_twice_panics() {
    let mut ids = IssuedIds::new(id(0));
    ids.on_peer_limit(4);
    ids.issue(id(0), token(0));
}

#[test]
fn each_issued_id_is_sent_in_one_frame() {
    let mut ids = issued(3);
    assert!(ids.has_frames_to_send());
    let frame = |number| NewConnectionId {
        sequence: number,
        retire_prior_to: 0,
        id: id(number),
        reset_token: token(number),
    };
    assert_eq!(send(&mut ids), [frame(1), frame(2)]);
    assert!(!ids.has_frames_to_send());
    assert_eq!(send(&mut ids), []);
}

#[test]
fn frames_that_do_not_fit_wait() {
    let mut ids = issued(4);
    let frame = NewConnectionId {
        sequence: 1,
        retire_prior_to: 0,
        id: id(1),
        reset_token: token(1),
    };
    for room in 0..frame.encoded_len() {
        let (bytes, _) = packet(room, |packet| ids.write_frames(packet));
        assert!(bytes.is_empty(), "room {room}");
    }
    let (bytes, records) = packet(2 * frame.encoded_len(), |packet| ids.write_frames(packet));
    assert_eq!((bytes.len(), records.len()), (2 * frame.encoded_len(), 2));
    assert!(ids.has_frames_to_send());
    assert_eq!(send(&mut ids)[0].sequence, 3);
}

#[test]
fn lost_frames_are_repeated_until_acked() {
    let mut ids = issued(2);
    let first = send(&mut ids);
    ids.on_lost(1);
    assert_eq!(send(&mut ids), first);
    ids.on_lost(1);
    ids.on_acked(1);
    assert!(
        !ids.has_frames_to_send(),
        "the first copy arrived after all"
    );
    ids.on_lost(1);
    assert!(
        !ids.has_frames_to_send(),
        "the first copy arrived after all"
    );
}

#[test]
fn retired_id_is_not_repeated() {
    let mut ids = issued(2);
    send(&mut ids);
    assert_eq!(retire(&mut ids, 1), Ok(Some(id(1))));
    ids.on_lost(1);
    assert!(!ids.has_frames_to_send());
}

#[test]
fn retired_id_is_replaced() {
    let mut ids = issued(4);
    send(&mut ids);
    assert_eq!(retire(&mut ids, 0), Ok(Some(id(0))));
    assert_eq!(ids.missing(), 1);
    fill(&mut ids);
    let sent = send(&mut ids);
    assert_eq!((sent.len(), sent[0].sequence), (1, 4));
}

#[test]
fn repeated_retirement_changes_nothing() {
    let mut ids = issued(4);
    send(&mut ids);
    assert_eq!(retire(&mut ids, 2), Ok(Some(id(2))));
    assert_eq!(retire(&mut ids, 2), Ok(None));
    assert_eq!(ids.missing(), 1);
}

#[test]
fn retirement_of_an_id_never_issued_is_refused() {
    let mut ids = issued(4);
    send(&mut ids);
    for sequence in [4, 5, (1 << 62) - 1] {
        assert_eq!(
            retire(&mut ids, sequence),
            Err(TransportErrorCode::PROTOCOL_VIOLATION)
        );
    }
}

#[test]
fn retirement_of_an_id_not_sent_yet_is_refused() {
    let mut ids = issued(4);
    assert_eq!(
        retire(&mut ids, 1),
        Err(TransportErrorCode::PROTOCOL_VIOLATION)
    );
}

#[test]
fn retirement_of_the_id_of_the_carrying_packet_is_refused() {
    let mut ids = issued(4);
    send(&mut ids);
    let error = ids.on_retire_connection_id_frame(2, &id(2)).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
    assert_eq!(
        ids.on_retire_connection_id_frame(2, &id(1)),
        Ok(Some(id(2)))
    );
}

#[test]
fn retirement_of_an_empty_id_is_refused() {
    let mut ids = IssuedIds::new(ConnectionId::EMPTY);
    ids.on_peer_limit(4);
    for sequence in [0, 1] {
        let error = ids
            .on_retire_connection_id_frame(sequence, &ConnectionId::EMPTY)
            .unwrap_err();
        assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
    }
}

#[test]
fn empty_id_is_never_accompanied_by_others() {
    let mut ids = IssuedIds::new(ConnectionId::EMPTY);
    ids.on_peer_limit(4);
    assert!(ids.is_zero_length());
    assert_eq!(ids.missing(), 0);
    assert!(!ids.rotate(1));
    assert!(!ids.has_frames_to_send());
    assert_eq!(ids.sequence_of(&ConnectionId::EMPTY), Some(0));
}

#[test]
fn one_id_always_stays_when_the_peer_retires_all() {
    let mut ids = issued(4);
    send(&mut ids);
    for sequence in 0..3 {
        assert!(
            ids.on_retire_connection_id_frame(sequence, &id(3))
                .unwrap()
                .is_some()
        );
    }
    assert!(ids.on_retire_connection_id_frame(3, &id(3)).is_err());
}

#[test]
fn rotation_is_requested_in_the_frames_of_the_replacements() {
    let mut ids = issued(4);
    send(&mut ids);
    assert!(ids.rotate(4));
    assert_eq!(ids.missing(), 4);
    fill(&mut ids);
    let sent = send(&mut ids);
    assert_eq!(
        sent.iter()
            .map(|frame| frame.retire_prior_to)
            .collect::<Vec<_>>(),
        [4; 4]
    );
    assert_eq!(
        ids.active().count(),
        IssuedIds::MAX_IDS,
        "old ones work until they are retired"
    );
}

#[test]
fn rotation_is_refused_until_the_previous_one_is_complete() {
    let mut ids = issued(4);
    send(&mut ids);
    assert!(ids.rotate(2));
    fill(&mut ids);
    send(&mut ids);
    assert!(!ids.rotate(6), "two ids are not retired");
    retire(&mut ids, 0).unwrap();
    assert!(!ids.rotate(6), "one id is not retired");
    retire(&mut ids, 1).unwrap();
    assert!(ids.rotate(6));
}

#[test]
fn rotation_without_effect_or_replacements_is_refused() {
    let mut ids = issued(4);
    assert!(!ids.rotate(0), "retires nothing");
    assert!(
        !ids.rotate(5),
        "needs a replacement with a sequence number that is not next"
    );
    assert!(
        !IssuedIds::new(id(0)).rotate(1),
        "the peer's limit is not known"
    );
    send(&mut ids);
    assert!(ids.rotate(1));
    retire(&mut ids, 0).unwrap();
    assert!(!ids.rotate(1), "nothing below is left");
}

#[test]
fn repeated_frame_never_retires_itself() {
    let mut ids = issued(4);
    send(&mut ids);
    ids.on_lost(2);
    assert!(ids.rotate(4));
    let sent = send(&mut ids);
    assert_eq!((sent[0].sequence, sent[0].retire_prior_to), (2, 2));
}

/// A peer may retire IDs as fast as it receives them; the table never exceeds its initial size.
#[test]
fn flood_of_retirements_leaves_the_table_small() {
    let mut ids = issued(u64::MAX);
    for round in 0..100_000u64 {
        let frames = send(&mut ids);
        assert!(frames.len() <= MAX_ACTIVE, "round {round}");
        let keep = ids.active().last().unwrap();
        let oldest = ids.sequence_of(&ids.active().next().unwrap()).unwrap();
        ids.on_retire_connection_id_frame(oldest, &keep).unwrap();
        fill(&mut ids);
        assert_eq!(ids.active().count(), MAX_ACTIVE, "round {round}");
    }
    assert!(ids.ids.capacity() <= 2 * IssuedIds::MAX_IDS);
}

#[test]
fn tokens_stay_out_of_logs() {
    let text = format!("{:?}", issued(4));
    assert!(!text.contains(&format!("{:?}", token(1))), "{text}");
}
