//! Tests of the frames sent, their order, and retransmission after a loss.

use super::*;

/// Returns limits that do not interfere.
fn wide() -> StreamsConfig {
    StreamsConfig {
        stream_receive_window: 1 << 30,
        receive_window: 1 << 30,
        unsent_limit: 1 << 20,
        send_buffer_max: 1 << 24,
        ..config()
    }
}

pub(super) fn wide_client() -> End {
    End::new(Side::Client, &wide())
}

#[test]
fn bulk_fills_packets_without_len_fields() {
    let mut client = wide_client();
    let id = client.streams.open(UNI).unwrap();
    client.streams.write(id, &[7; 3000]).unwrap();
    let packets = client.send_all();
    let lens: Vec<usize> = packets.iter().map(|packet| packet.bytes.len()).collect();
    assert_eq!(lens[..2], [ROOM, ROOM]);
    let types: Vec<u8> = packets.iter().map(|packet| packet.bytes[0]).collect();
    assert_eq!(types, [0x08, 0x0c, 0x0e]);
    assert_eq!(client.streams.counters().data_sent, 3000);
}

#[test]
fn small_streams_share_a_packet() {
    let mut client = wide_client();
    for _ in 0..5 {
        let id = client.streams.open(BIDI).unwrap();
        client.streams.write(id, b"x").unwrap();
        client.streams.finish(id).unwrap();
    }
    let packets = client.send_all();
    assert_eq!(packets.len(), 1);
    assert_eq!(kinds(&packets)[4], "STREAM 16 0+1 FIN");
    client.on_acked(&packets[0]);
    assert!(!client.streams.unacked_or_unsent());
}

#[test]
fn lost_spans_go_before_new_data() {
    let mut client = wide_client();
    let (lossy, fresh) = (
        client.streams.open(UNI).unwrap(),
        client.streams.open(UNI).unwrap(),
    );
    client.streams.write(lossy, &[1; 2000]).unwrap();
    let packets = client.send_all();
    client.streams.set_priority(fresh, 10).unwrap();
    client.streams.write(fresh, &[2; 500]).unwrap();
    client.on_lost(&packets[0]);
    let sent = kinds(&client.send_all());
    assert_eq!(sent, ["STREAM 2 0+1198", "STREAM 6 0+500"]);
    assert_eq!(client.streams.counters().data_retransmitted, 1198);
}

#[test]
fn repetition_carries_the_same_bytes() {
    let mut client = wide_client();
    let id = client.streams.open(UNI).unwrap();
    let data: Vec<u8> = (0..5000).map(|i| ((i * 31) >> 2) as u8).collect();
    client.streams.write(id, &data).unwrap();
    client.streams.finish(id).unwrap();
    let mut packets = client.send_all();
    for round in 0..5 {
        for packet in &packets {
            client.on_lost(packet);
        }
        // Repeated in different pieces each time.
        packets.clear();
        while client.streams.has_frames_to_send() {
            packets.push(client.send_within(300 + 77 * round));
        }
        let mut seen = vec![0; data.len()];
        for frame in packets.iter().flat_map(Flying::frames) {
            let Frame::Stream(frame) = frame else {
                panic!("only STREAM frames")
            };
            seen[frame.offset as usize..][..frame.data.len()].copy_from_slice(frame.data);
        }
        assert_eq!(seen, data, "round {round}");
    }
    for packet in &packets {
        client.on_acked(packet);
    }
    assert_eq!(client.events(), [StreamEvent::Finished { id }]);
}

#[test]
fn acknowledgement_of_the_first_copy_cancels_the_repetition() {
    let mut client = wide_client();
    let id = client.streams.open(UNI).unwrap();
    client.streams.write(id, b"abc").unwrap();
    let packets = client.send_all();
    client.on_lost(&packets[0]);
    assert!(client.streams.has_stream_data());
    client.on_acked(&packets[0]);
    assert!(!client.streams.has_frames_to_send());
    client.streams.write(id, b"d").unwrap();
    assert_eq!(kinds(&client.send_all()), ["STREAM 2 3+1"]);
}

#[test]
fn lost_data_and_bare_fin_need_no_credit() {
    let mut client = End::client();
    let (fin, data) = (
        client.streams.open(UNI).unwrap(),
        client.streams.open(UNI).unwrap(),
    );
    client.streams.write(fin, &[0; 100]).unwrap();
    client.streams.write(data, &[0; 100]).unwrap();
    let first = client.send_all();
    let third = client.streams.open(UNI).unwrap();
    client.streams.write(third, &[0; 100]).unwrap();
    client.send_all();
    assert!(client.streams.is_connection_blocked());
    client.streams.finish(fin).unwrap();
    client.on_lost(&first[0]);
    assert!(client.streams.has_stream_data());
    let sent = kinds(&client.send_all());
    assert_eq!(
        sent,
        ["STREAM 2 0+100", "STREAM 2 100+0 FIN", "STREAM 6 0+100"]
    );
}

#[test]
fn streams_of_one_priority_take_turns() {
    let mut client = wide_client();
    client.streams.on_congestion_window(128 << 10);
    let ids = [0; 3].map(|_| client.streams.open(UNI).unwrap());
    for id in ids {
        client.streams.write(id, &[0; 100_000]).unwrap();
    }
    let mut sent = [0usize; 3];
    let mut changes = 0;
    let mut last = None;
    for _ in 0..(48 << 10) * 2 / ROOM {
        let packet = client.send().unwrap();
        for frame in packet.frames() {
            let Frame::Stream(frame) = frame else {
                panic!("only STREAM frames")
            };
            let place = ids.iter().position(|&id| id == frame.id).unwrap();
            sent[place] += frame.data.len();
            changes += usize::from(last.replace(place) != Some(place));
        }
    }
    let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
    assert!(most - least <= 20 << 10, "{sent:?}");
    assert!((5..=7).contains(&changes), "{changes} changes");
}

#[test]
fn higher_priority_goes_first_also_when_set_later() {
    let mut client = wide_client();
    let ids = [0; 3].map(|_| client.streams.open(UNI).unwrap());
    for id in ids {
        client.streams.write(id, &[0; 1000]).unwrap();
    }
    client.streams.set_priority(ids[2], 1).unwrap();
    client.streams.set_priority(ids[0], -1).unwrap();
    assert_eq!(client.streams.priority(ids[2]), Ok(1));
    let sent = kinds(&client.send_all());
    let order: Vec<_> = sent
        .iter()
        .map(|kind| kind.split(' ').nth(1).unwrap())
        .collect();
    let mut distinct = order.clone();
    distinct.dedup();
    assert_eq!(distinct, ["10", "6", "2"]);
}

#[test]
fn writing_from_bytes_copies_nothing_and_takes_what_fits() {
    let mut client = End::new(
        Side::Client,
        &StreamsConfig {
            unsent_limit: 4096,
            ..wide()
        },
    );
    let id = client.streams.open(UNI).unwrap();
    let mut data = bytes::Bytes::from(vec![3; 10_000]);
    assert_eq!(client.streams.write_chunk(id, &mut data), Ok(4096));
    assert_eq!(data.len(), 5904);
    assert_eq!(
        client.streams.write_chunk(id, &mut data),
        Err(WriteError::Blocked)
    );
    assert_eq!(data.len(), 5904);
    client.send_and_ack_all();
    assert_eq!(client.streams.write_chunk(id, &mut data), Ok(4096));
    client.send_and_ack_all();
    assert_eq!(client.streams.write_chunk(id, &mut data), Ok(1808));
    assert!(data.is_empty());
}

#[test]
fn control_frames_wait_for_room() {
    let mut client = wide_client();
    let ids = [0; 5].map(|_| client.streams.open(BIDI).unwrap());
    for id in ids {
        client.streams.reset(id, 1 << 40).unwrap();
        client.streams.stop(id, 1 << 40).unwrap();
    }
    let mut frames = 0;
    for _ in 0..20 {
        if !client.streams.has_frames_to_send() {
            break;
        }
        let packet = client.send_within(40);
        assert!(!packet.bytes.is_empty());
        frames += packet.frames().count();
    }
    assert_eq!(frames, 10);
    assert!(!client.streams.has_frames_to_send());
}

#[test]
fn lost_control_frames_are_sent_again_with_current_values() {
    let mut server = End::server();
    let id = client_uni(0);
    server.stream(id, 0, &[0; 60]).unwrap();
    server.read(id, 60).unwrap();
    let packets = server.send_all();
    assert_eq!(kinds(&packets), ["MAX_STREAM_DATA 2 160"]);
    server.stream(id, 60, &[0; 60]).unwrap();
    server.read(id, 60).unwrap();
    let again = server.send_all();
    assert_eq!(kinds(&again), ["MAX_STREAM_DATA 2 220"]);
    server.on_lost(&packets[0]);
    assert_eq!(kinds(&server.send_all()), ["MAX_STREAM_DATA 2 220"]);
    server.streams.stop(id, 9).unwrap();
    let stop = server.send_all();
    assert_eq!(kinds(&stop), ["STOP_SENDING 2 9"]);
    server.on_lost(&again[0]);
    server.on_lost(&stop[0]);
    assert_eq!(kinds(&server.send_all()), ["STOP_SENDING 2 9"]);
}

#[test]
fn many_requests_use_few_entries() {
    let mut client = End::new(Side::Client, &wide());
    for round in 0..1000u64 {
        client.max_streams(BIDI, round + 4).unwrap();
        let id = client.streams.open(BIDI).unwrap();
        client.streams.write(id, b"q").unwrap();
        client.streams.finish(id).unwrap();
        client.send_and_ack_all();
        client.fin(id, 0, b"a").unwrap();
        assert_eq!(client.read(id, 10), Ok(Some(b"a".to_vec())));
        assert_eq!(client.read(id, 10), Ok(None));
        assert_eq!(client.streams.open_count(Side::Client, BIDI), 0);
        client.events();
    }
    assert_eq!(client.streams.table.len(), 0);
}

/// A limit need not be repeated because a packet with it is lost, if another packet delivered it.
#[test]
fn acknowledged_limits_are_not_sent_again_when_a_copy_is_lost() {
    let mut client = End::client();
    let ids = [0; 3].map(|_| client.streams.open(BIDI).unwrap());
    for id in ids {
        client.streams.write(id, &[0; 200]).unwrap();
    }
    while client.streams.open(BIDI).is_some() {}
    let first = client.send_all();
    client.streams.repeat_blocked();
    let second = client.send_all();
    second.iter().for_each(|flying| client.on_acked(flying));
    let is_blocked = |kind: &String| kind.contains("BLOCKED");
    assert_eq!(
        kinds(&first).iter().filter(|kind| is_blocked(kind)).count(),
        4
    );
    first.iter().for_each(|flying| client.on_lost(flying));
    let again = kinds(&client.send_all());
    assert!(!again.iter().any(is_blocked), "{again:?}");
    // A limit that was raised since has not been delivered.
    client.max_data(280);
    let third = client.send_all();
    assert!(kinds(&third).contains(&"DATA_BLOCKED 280".to_owned()));
    third.iter().for_each(|flying| client.on_lost(flying));
    assert!(kinds(&client.send_all()).contains(&"DATA_BLOCKED 280".to_owned()));
}

#[test]
fn acknowledged_credit_is_not_sent_again_when_a_copy_is_lost() {
    let mut server = End::server();
    let id = client_uni(0);
    server.stream(id, 0, &[0; 50]).unwrap();
    server.read(id, 50).unwrap();
    let first = server.send_all();
    assert_eq!(kinds(&first), ["MAX_STREAM_DATA 2 150"]);
    // A probe repeats it before the loss is detected.
    server.on_lost(&first[0]);
    let second = server.send_all();
    assert_eq!(kinds(&second), ["MAX_STREAM_DATA 2 150"]);
    server.on_acked(&second[0]);
    server.on_lost(&first[0]);
    assert!(!server.streams.has_frames_to_send());
    server.stream(id, 50, &[0; 50]).unwrap();
    server.read(id, 50).unwrap();
    let third = server.send_all();
    assert_eq!(kinds(&third), ["MAX_STREAM_DATA 2 200"]);
    server.on_lost(&third[0]);
    assert_eq!(kinds(&server.send_all()), ["MAX_STREAM_DATA 2 200"]);
}

#[test]
fn little_that_is_left_is_no_less_than_what_is_sent() {
    let mut client = wide_client();
    assert_eq!(client.streams.pending_bytes_up_to(1200), Some(0));
    let ids: Vec<_> = (0..4).map(|_| client.streams.open(BIDI).unwrap()).collect();
    for &id in &ids {
        client.streams.write(id, &[7; 50]).unwrap();
        client.streams.finish(id).unwrap();
    }
    client.streams.stop(ids[0], 1).unwrap();
    let left = client.streams.pending_bytes_up_to(1200).unwrap();
    let packets = client.send_all();
    assert_eq!(packets.len(), 1);
    assert!(packets[0].bytes.len() as u64 <= left, "{left}");
    assert!(left < 500, "{left}");
    // Lost data never counts as little.
    client.on_lost(&packets[0]);
    assert_eq!(client.streams.pending_bytes_up_to(1200), None);
}

#[test]
fn much_that_is_left_is_not_little() {
    let mut client = wide_client();
    let id = client.streams.open(BIDI).unwrap();
    client.streams.write(id, &[7; 1150]).unwrap();
    assert!(client.streams.pending_bytes_up_to(1200).is_some());
    client.streams.write(id, &[7; 50]).unwrap();
    assert_eq!(
        client.streams.pending_bytes_up_to(1200),
        None,
        "a full datagram"
    );
    client.send_all();
    for _ in 0..5 {
        let id = client.streams.open(BIDI).unwrap();
        client.streams.write(id, b"x").unwrap();
    }
    assert_eq!(
        client.streams.pending_bytes_up_to(1200),
        None,
        "five streams"
    );
    client.send_all();
    for _ in 0..2 {
        let id = client.streams.open(BIDI).unwrap();
        client.streams.reset(id, 1).unwrap();
        client.streams.stop(id, 1).unwrap();
    }
    assert!(client.streams.pending_bytes_up_to(132).is_some());
    assert_eq!(client.streams.pending_bytes_up_to(131), None, "four frames");
}

/// An end that has so much credit of the connection, and a large congestion window.
fn end_with_credit(bytes: u64) -> End {
    let config = StreamsConfig {
        receive_window: bytes,
        ..StreamsConfig::default()
    };
    let mut end = End::new(Side::Client, &config);
    end.streams.on_congestion_window(1 << 30);
    end
}

/// Limit K214: a response is written whole although the writer of a transfer claims all credit.
#[test]
fn small_response_needs_no_credit_that_a_transfer_has_claimed() {
    let mut end = end_with_credit(100_000);
    let bulk = end.streams.open(BIDI).unwrap();
    assert_eq!(end.streams.write(bulk, &[1; 200_000]), Ok(100_000));
    assert_eq!(end.streams.write(bulk, &[1; 1]), Err(WriteError::Blocked));

    let small = end.streams.open(BIDI).unwrap();
    assert_eq!(end.streams.write(small, &[2; 4000]), Ok(4000));
    end.streams.finish(small).unwrap();
    // Both share the credit that is left.
    let sent = kinds(&end.send_all());
    let is_end = |frame: &String| frame.starts_with("STREAM 4 ") && frame.ends_with("FIN");
    assert!(sent.iter().take(20).any(is_end), "{sent:?}");
}

/// Limit K214: what one stream may hold beyond the connection's credit, and what all may.
#[test]
fn streams_share_what_is_held_beyond_the_credit() {
    let mut end = end_with_credit(0);
    let written: Vec<usize> = std::iter::repeat_with(|| {
        let id = end.streams.open(BIDI).unwrap();
        end.streams.write(id, &[0; 100_000]).unwrap()
    })
    .take(10)
    .collect();
    assert_eq!(written, [[16_384; 8].as_slice(), &[512; 2]].concat());
}

/// Limit K590: transfers fill the memory of the connection, and a request beside them is written all the same.
#[test]
fn little_is_written_beside_transfers_that_fill_the_memory() {
    let config = StreamsConfig {
        stream_receive_window: 1 << 30,
        receive_window: 1 << 30,
        max_bidi: 1000,
        ..StreamsConfig::default()
    };
    let mut end = End::new(Side::Client, &config);
    for _ in 0..2 {
        let id = end.streams.open(BIDI).unwrap();
        let half = send_budget::SEND_BUFFER_MIN as usize / 2;
        assert_eq!(end.streams.write(id, &[1; 100_000]), Ok(half));
    }
    let requests: Vec<_> = std::iter::repeat_with(|| {
        let id = end.streams.open(BIDI).unwrap();
        end.streams.write(id, &[2; 1000])
    })
    .take_while(Result::is_ok)
    .collect();
    let first = StreamId::new(Side::Client, BIDI, 2);
    assert_eq!(end.streams.blocked_by(first), Ok(None), "it was written");
    // An eighth of 128 KiB.
    assert_eq!(requests, [[Ok(1000); 16].as_slice(), &[Ok(384)]].concat());
}

/// Opens a stream with an order.
fn open_ordered(end: &mut End, order: i64) -> StreamId {
    let id = end.streams.open(UNI).unwrap();
    end.streams.set_order(id, order).unwrap();
    id
}

/// Returns an end whose memory is filled by streams with the orders 1 to 50.
fn full_of_orders() -> End {
    let config = StreamsConfig {
        stream_receive_window: 1 << 30,
        receive_window: 1 << 30,
        max_uni: 1000,
        ..StreamsConfig::default()
    };
    let mut end = End::new(Side::Client, &config);
    for order in (1..=50).rev() {
        let id = open_ordered(&mut end, order);
        while end.streams.write(id, &[1; 4096]).is_ok() {}
    }
    // The limit of 128 KiB, and an eighth of it for little writes.
    assert_eq!(end.streams.undelivered().bytes, 144 << 10);
    end
}

/// Limits K636 and K645: a stream of a higher order than all in the full memory is written and sent at once, and its writer
/// continues before all others.
#[test]
fn newest_order_is_written_and_sent_while_older_ones_fill_the_memory() {
    let mut end = full_of_orders();
    let newest = open_ordered(&mut end, 51);
    let mut left = 40_000;
    let mut flying = Vec::new();
    let mut sent = 0;
    let written = end.streams.write(newest, &vec![2; left]);
    assert_eq!(written, Ok(16 << 10));
    left -= 16 << 10;
    assert_eq!(
        end.streams.write(newest, &vec![2; left]),
        Err(WriteError::Blocked)
    );
    while sent < 40_000 {
        let packet = end.send().expect("there is data");
        for frame in packet.frames() {
            let Frame::Stream(frame) = frame else {
                panic!("only STREAM frames")
            };
            if sent == 40_000 {
                // The rest of the last packet is for others.
                break;
            }
            assert_eq!(frame.id, newest, "after {sent} bytes");
            sent += frame.data.len();
        }
        flying.push(packet);
        // Acknowledgements come after some packets.
        if flying.len() > 4 {
            let acked = flying.remove(0);
            end.on_acked(&acked);
        }
        for event in end.events() {
            assert_eq!(event, StreamEvent::Writable { id: newest });
            while let Ok(written) = end.streams.write(newest, &vec![2; left])
                && written > 0
            {
                left -= written;
            }
        }
    }
    assert_eq!(left, 0);
}

/// Attack A335: a peer acknowledges nothing, while each stream has a higher order than those before.
#[test]
fn rising_orders_take_a_bounded_part_of_the_memory() {
    let mut end = full_of_orders();
    let ids: Vec<_> = (51..400)
        .map(|order| {
            let id = open_ordered(&mut end, order);
            while end.streams.write(id, &[2; 16 << 10]).is_ok() {}
            id
        })
        .collect();
    // A quarter beyond the limit.
    assert_eq!(end.streams.undelivered().bytes, 160 << 10);
    // The highest that waits is woken, and none else.
    let mut events = Vec::new();
    while events.is_empty() {
        let packet = end.send().expect("there is data");
        end.on_acked(&packet);
        events = end.events();
    }
    let highest = *ids.last().unwrap();
    assert_eq!(events, [StreamEvent::Writable { id: highest }]);
    assert!(end.streams.write(highest, &[2; 4096]).is_ok());
    let lower = end.streams.write(ids[0], &[2; 4096]);
    assert_eq!(lower, Err(WriteError::Blocked));
}

/// Limit K652: a stream gets its order after its header is written.
#[test]
fn header_of_a_new_stream_is_written_into_full_memory() {
    let mut end = full_of_orders();
    let newest = open_ordered(&mut end, 51);
    while end.streams.write(newest, &[2; 16 << 10]).is_ok() {}
    let id = end.streams.open(UNI).unwrap();
    assert_eq!(end.streams.write(id, &[3; 4]), Err(WriteError::Blocked));
    assert_eq!(end.streams.write_header(id, &[3; 40]), Ok(16));
    assert_eq!(end.streams.write(id, &[3; 4]), Err(WriteError::Blocked));
}

/// Publishers that rank groups anew give the newest one the order that the one before has still, and lower that a moment later.
#[test]
fn writer_that_leads_since_others_were_lowered_is_woken() {
    let mut end = full_of_orders();
    let before = open_ordered(&mut end, 51);
    while end.streams.write(before, &[2; 4096]).is_ok() {}
    let newest = open_ordered(&mut end, 51);
    let mut written = 0;
    while let Ok(len) = end.streams.write(newest, &[3; 1000]) {
        written += len;
    }
    end.streams.set_order(before, 50).unwrap();
    let mut events = Vec::new();
    let mut flying = Vec::new();
    while events.is_empty() {
        let packet = end.send().expect("there is data");
        flying.push(packet);
        let acked = flying.remove(0);
        end.on_acked(&acked);
        events = end.events();
        events.retain(|event| *event != StreamEvent::Writable { id: before });
        assert!(
            end.streams.undelivered().bytes > 100 << 10,
            "most waits still"
        );
    }
    assert_eq!(events, [StreamEvent::Writable { id: newest }]);
    assert!(
        end.streams.write(newest, &[3; 1000]).is_ok(),
        "after {written}"
    );
}

/// Limit K654: of the writers that wait, the newest 64 are compared.
#[test]
fn writers_before_the_newest_64_wait_for_a_quarter_of_the_memory() {
    for (later, wakes) in [(63, true), (64, false)] {
        let mut end = full_of_orders();
        let before = open_ordered(&mut end, 51);
        while end.streams.write(before, &[2; 4096]).is_ok() {}
        let newest = open_ordered(&mut end, 51);
        while end.streams.write(newest, &[3; 1000]).is_ok() {}
        for _ in 0..later {
            let id = open_ordered(&mut end, -1);
            assert_eq!(end.streams.write(id, &[4; 9]), Err(WriteError::Blocked));
        }
        end.streams.set_order(before, 50).unwrap();
        let mut is_woken = false;
        while end.streams.undelivered().bytes > 130 << 10 {
            let packet = end.send().expect("there is data");
            end.on_acked(&packet);
            is_woken |= end.events().contains(&StreamEvent::Writable { id: newest });
        }
        assert_eq!(is_woken, wakes, "{later}");
    }
}

/// Streams of a group wait for those of their own group only, and each group is written while others fill the memory.
#[test]
fn first_stream_of_each_group_is_written_while_others_fill_the_memory() {
    let mut end = full_of_orders();
    let other = open_ordered(&mut end, -5);
    end.streams.set_group(other, 7).unwrap();
    assert_eq!(end.streams.write(other, &[2; 10_000]), Ok(10_000));
    let lower = open_ordered(&mut end, -6);
    end.streams.set_group(lower, 7).unwrap();
    assert_eq!(
        end.streams.write(lower, &[2; 10_000]),
        Err(WriteError::Blocked)
    );
}

/// The maximum that a program sets includes the part for the first of each group.
#[test]
fn part_for_the_highest_order_is_within_the_maximum() {
    let config = StreamsConfig {
        stream_receive_window: 1 << 30,
        receive_window: 1 << 30,
        send_buffer_max: 64 << 10,
        unsent_limit: 64 << 10,
        ..StreamsConfig::default()
    };
    let mut end = End::new(Side::Client, &config);
    let older = open_ordered(&mut end, 1);
    while end.streams.write(older, &[1; 4096]).is_ok() {}
    assert_eq!(end.streams.undelivered().bytes, 56 << 10);
    let newest = open_ordered(&mut end, 2);
    assert_eq!(end.streams.write(newest, &[1; 20_000]), Ok(8 << 10));
    assert_eq!(end.streams.undelivered().bytes, 64 << 10);
}

/// Returns the bytes that each of the streams has sent in `packets` packets.
fn bytes_of(client: &mut End, ids: &[StreamId], packets: usize) -> Vec<usize> {
    let mut sent = vec![0; ids.len()];
    for _ in 0..packets {
        let packet = client.send().expect("there is data");
        for frame in packet.frames() {
            let Frame::Stream(frame) = frame else {
                panic!("only STREAM frames")
            };
            let at = ids.iter().position(|id| *id == frame.id).unwrap();
            sent[at] += frame.data.len();
        }
        client.on_acked(&packet);
        for id in ids {
            let stats = client.streams.send_stats(*id).unwrap();
            if stats.written - stats.sent < 20_000 {
                client.streams.write(*id, &[0; 20_000]).unwrap();
            }
        }
    }
    sent
}

#[test]
fn session_follows_the_class_of_its_request() {
    let mut client = wide_client();
    client.streams.on_congestion_window(128 << 10);
    let requests = [0; 2].map(|_| client.streams.open(BIDI).unwrap());
    let ids = requests.map(|request| {
        let id = client.streams.open(UNI).unwrap();
        client.streams.begin_session(request).unwrap();
        client.streams.set_session(id, request).unwrap();
        client.streams.write(id, &[0; 50_000]).unwrap();
        id
    });
    let sent = bytes_of(&mut client, &ids, 1000);
    assert!(sent[0].abs_diff(sent[1]) <= 40_000, "they share: {sent:?}");
    let level = |class| Level { class, priority: 5 };
    client.streams.set_level(requests[1], level(1)).unwrap();
    assert_eq!(bytes_of(&mut client, &ids, 100)[0], 0, "the urgent one");
    client.streams.set_level(requests[0], level(2)).unwrap();
    assert_eq!(bytes_of(&mut client, &ids, 100)[1], 0, "and the other");
    // The end of a request ends its class.
    client.streams.reset(requests[0], 0).unwrap();
    client.streams.stop(requests[0], 0).unwrap();
    for packet in client.send_all() {
        client.on_acked(&packet);
    }
    for id in ids {
        client.streams.write(id, &[0; 50_000]).unwrap();
    }
    assert_eq!(client.streams.priority(requests[1]), Ok(i32::MAX));
}

#[test]
fn order_and_group_can_change_while_data_waits() {
    let mut client = wide_client();
    client.streams.on_congestion_window(128 << 10);
    let ids = [0; 3].map(|_| {
        let id = client.streams.open(UNI).unwrap();
        client.streams.write(id, &[0; 50_000]).unwrap();
        id
    });
    for (at, order) in [(0, i64::MIN), (1, 5), (2, i64::MAX)] {
        client.streams.set_order(ids[at], order).unwrap();
        assert_eq!(client.streams.order(ids[at]), Ok(order));
    }
    assert_eq!(bytes_of(&mut client, &ids, 100)[..2], [0, 0]);
    client.streams.set_order(ids[0], i64::MAX).unwrap();
    client.streams.set_order(ids[2], 0).unwrap();
    assert_eq!(bytes_of(&mut client, &ids, 100)[1..], [0, 0]);
    client.streams.set_group(ids[2], 7).unwrap();
    let sent = bytes_of(&mut client, &ids, 100);
    assert!(
        sent[0].abs_diff(sent[2]) <= 40_000 && sent[1] == 0,
        "{sent:?}"
    );
}
