use std::time::Duration;

use courser_wire::frame::{Frame, Frames};
use proptest::prelude::*;

use super::*;
use crate::space::sent::FrameLists;

const LIMITS: DatagramLimits = DatagramLimits {
    send_bytes: 256 * 1024,
    send_count: 64,
    send_delay: None,
    receive_bytes: 256 * 1024,
    receive_count: 64,
};

fn datagrams() -> Datagrams {
    let mut datagrams = Datagrams::new(LIMITS);
    datagrams.on_peer_parameter(65_535);
    datagrams
}

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn bytes(number: usize, len: usize) -> Bytes {
    Bytes::from(vec![u8::try_from(number % 256).expect("a byte"); len])
}

fn send(datagrams: &mut Datagrams, data: Bytes) {
    let sent = datagrams.send(at(0), data, Some(65_000), SendOptions::default());
    assert_eq!(sent, Ok(None));
}

/// Builds one packet with `capacity` bytes for frames. Returns its bytes.
fn packet(datagrams: &mut Datagrams, now: Time, capacity: usize, contested: bool) -> Vec<u8> {
    let mut lists = FrameLists::default();
    let mut buffer = vec![0xee; capacity];
    let mut packet = PacketBuilder::new(&mut buffer, &mut lists);
    datagrams.write_frames(now, capacity - 1, contested, &mut packet, |_, _| {});
    let len = packet.end();
    buffer.truncate(len);
    buffer
}

/// Returns the payloads of the DATAGRAM frames of a packet.
fn payloads(packet: &[u8]) -> Vec<Vec<u8>> {
    Frames::new(packet)
        .filter_map(|frame| match frame.expect("what we write decodes") {
            Frame::Datagram(frame) => Some(frame.data.to_vec()),
            Frame::Padding(_) => None,
            other => panic!("{other:?}"),
        })
        .collect()
}

fn fates(datagrams: &mut Datagrams) -> Vec<DatagramFate> {
    std::iter::from_fn(|| datagrams.poll_event())
        .filter_map(|event| match event {
            DatagramEvent::Fate { fate, .. } => Some(fate),
            _ => None,
        })
        .collect()
}

#[test]
fn the_64th_that_waits_to_be_sent_fits_and_the_65th_drops_the_oldest() {
    let mut datagrams = datagrams();
    (0..64).for_each(|number| send(&mut datagrams, bytes(number, 10)));
    assert_eq!(datagrams.stats().unsent_dropped, 0);
    assert_eq!(datagrams.send_space(), 0);
    send(&mut datagrams, bytes(64, 10));
    assert_eq!(datagrams.stats().unsent_dropped, 1, "limit K27");
    assert_eq!(
        datagrams.outgoing.first().expect("some").data[..],
        bytes(1, 10)[..]
    );
}

#[test]
fn bytes_that_wait_to_be_sent_are_limited_to_256_kib() {
    let mut datagrams = datagrams();
    (0..4).for_each(|number| send(&mut datagrams, bytes(number, 64_000)));
    send(&mut datagrams, bytes(4, 6_144));
    assert_eq!(datagrams.send_space(), 0);
    assert_eq!(datagrams.stats().unsent_dropped, 0, "exactly 256 KiB");
    send(&mut datagrams, bytes(5, 1));
    assert_eq!(datagrams.stats().unsent_dropped, 1, "limit K27");
    assert_eq!(datagrams.send_space(), 64_000 - 1);
}

#[test]
fn unread_datagrams_are_limited_to_64_and_256_kib_and_the_newest_stay() {
    let mut datagrams = datagrams();
    let receive = |datagrams: &mut Datagrams, number, len| {
        let data = bytes(number, len);
        let has_length = true;
        let frame = Datagram {
            data: &data,
            has_length,
        };
        datagrams
            .on_datagram_frame(Time::ZERO, &frame)
            .expect("small enough");
    };
    (0..64).for_each(|number| receive(&mut datagrams, number, 10));
    assert_eq!(datagrams.stats().unread_dropped, 0);
    receive(&mut datagrams, 64, 10);
    assert_eq!(datagrams.stats().unread_dropped, 1, "limit K27");
    assert_eq!(datagrams.receive(), Some(bytes(1, 10)));
    // 63 of 10 bytes are left. The fourth of 65 000 bytes still fits behind some of them.
    (0..4).for_each(|number| receive(&mut datagrams, number, 65_000));
    let kept: usize = datagrams.incoming.iter().map(Bytes::len).sum();
    assert!(kept <= 256 * 1024, "{kept}");
    receive(&mut datagrams, 7, 65_000);
    let kept: Vec<_> = datagrams.incoming.iter().map(Bytes::len).collect();
    assert_eq!(kept, [65_000; 4], "limit K27");
    assert_eq!(datagrams.stats().received, 70);
    assert_eq!(datagrams.stats().unread_dropped, 1 + 63 + 1);
}

#[test]
fn empty_datagrams_are_limited_by_their_number() {
    let mut datagrams = datagrams();
    (0..10_000).for_each(|_| send(&mut datagrams, Bytes::new()));
    assert_eq!(datagrams.stats().unsent_dropped, 10_000 - 64);
    let packet = packet(&mut datagrams, at(0), 1000, false);
    assert_eq!(payloads(&packet), vec![Vec::<u8>::new(); 64]);
}

#[test]
fn largest_one_follows_the_peers_limit() {
    let mut datagrams = Datagrams::new(LIMITS);
    let mut largest = |limit| {
        datagrams.on_peer_parameter(limit);
        datagrams.max_size(1_000)
    };
    assert_eq!(largest(0), None, "RFC 9221 §3: no datagrams at all");
    assert_eq!(largest(1), None, "no capacity for a Length field");
    assert_eq!(largest(2), Some(0));
    assert_eq!(largest(65), Some(63));
    assert_eq!(largest(66), Some(63), "64 bytes would need a longer length");
    assert_eq!(largest(67), Some(64));
    assert_eq!(largest(65_535), Some(999), "one byte for the type");
    assert_eq!(largest(courser_wire::MAX_VARINT), Some(999));
}

#[test]
fn largest_datagram_never_exceeds_the_limit_of_the_peer() {
    for limit in (2..200).chain(16_380..16_400) {
        let largest = largest_in_frame(limit).expect("some");
        let frame_len = |len| Datagram::header_len(len, true) + len;
        assert!(frame_len(largest) as u64 <= limit, "{limit}");
        assert!(frame_len(largest + 1) as u64 > limit, "{limit}");
    }
}

#[test]
fn too_large_datagram_is_refused_with_the_allowed_size() {
    let mut datagrams = datagrams();
    let options = SendOptions::default();
    let error = datagrams
        .send(at(0), bytes(0, 101), Some(100), options)
        .expect_err("too large");
    let (size, max) = (101, 100);
    assert_eq!(error, SendDatagramError::TooLarge { size, max });
    let text = "datagram has 101 bytes, allowed are 100: ask max_datagram_size first";
    assert_eq!(error.to_string(), text);
    assert!(
        datagrams
            .send(at(0), bytes(0, 100), Some(100), options)
            .is_ok()
    );
    let error = datagrams.send(at(0), Bytes::new(), None, options);
    assert_eq!(error, Err(SendDatagramError::UnsupportedByPeer));
}

#[test]
fn received_frame_of_the_announced_size_is_accepted_and_a_larger_one_is_not() {
    let mut datagrams = Datagrams::new(DatagramLimits {
        receive_bytes: 1000,
        ..LIMITS
    });
    assert_eq!(datagrams.limits.max_frame_size(), 1000);
    let data = [0; 1000];
    let mut receive = |len: usize, has_length| {
        let data = &data[..len];
        datagrams.on_datagram_frame(Time::ZERO, &Datagram { data, has_length })
    };
    // The type counts, and so does the length (RFC 9221 §3).
    assert!(receive(999, false).is_ok());
    assert!(receive(997, true).is_ok());
    let error = receive(1000, false).expect_err("1001 bytes");
    assert_eq!(error.code.value(), 0x0a);
    assert!(receive(998, true).is_err());
}

#[test]
fn without_a_receive_buffer_every_frame_is_refused() {
    let mut datagrams = Datagrams::new(DatagramLimits {
        receive_bytes: 0,
        ..LIMITS
    });
    let (data, has_length): (&[u8], _) = (&[], false);
    let error = datagrams
        .on_datagram_frame(Time::ZERO, &Datagram { data, has_length })
        .expect_err("not announced");
    assert_eq!(error.code.value(), 0x0a, "RFC 9221 §3");
}

/// A queue that drops if datagrams wait for 5 ms and longer.
fn controlled() -> Datagrams {
    let mut datagrams = Datagrams::new(DatagramLimits {
        send_delay: Some(Duration::from_millis(5)),
        ..LIMITS
    });
    datagrams.on_peer_parameter(65_535);
    datagrams
}

#[test]
fn queue_with_a_target_for_its_delay_drops_the_newest_when_it_is_full() {
    let mut datagrams = controlled();
    for number in 0..70 {
        send(&mut datagrams, bytes(number, 100));
    }
    assert_eq!(datagrams.stats().unsent_dropped, 6);
    let sent = payloads(&packet(&mut datagrams, at(1), 10_000, false));
    assert_eq!(sent.len(), 64);
    assert_eq!(sent[0], bytes(0, 100), "the oldest stays");
}

#[test]
fn delay_that_lasts_drops_datagrams_and_one_that_does_not_drops_none() {
    let mut datagrams = controlled();
    let mut waiting = 0;
    for millis in 0..400 {
        // A millisecond serves one of 1000 bytes, and 20 of them wait.
        while waiting < 20 {
            let data = bytes(waiting, 1000);
            let options = SendOptions::default();
            let sent = datagrams.send(at(millis), data, Some(65_000), options);
            assert_eq!(sent, Ok(None));
            waiting += 1;
        }
        let before = datagrams.stats().unsent_dropped;
        assert_eq!(
            payloads(&packet(&mut datagrams, at(millis), 1010, false)).len(),
            1
        );
        let dropped = datagrams.stats().unsent_dropped - before;
        waiting -= 1 + usize::try_from(dropped).expect("few");
        assert!(millis >= 100 || dropped == 0, "dropped at {millis} ms");
    }
    let dropped = datagrams.stats().unsent_dropped;
    assert!((3..20).contains(&dropped), "{dropped} were dropped");
}

#[test]
fn datagram_that_fills_its_packet_has_no_length_field() {
    for (len, digits) in [(97, "31"), (98, "00 30"), (99, "30")] {
        let mut datagrams = datagrams();
        send(&mut datagrams, bytes(7, len));
        let packet = packet(&mut datagrams, at(0), 100, false);
        assert_eq!(payloads(&packet), [vec![7; len]], "{len}");
        let start: Vec<_> = digits
            .split(' ')
            .map(|digits| u8::from_str_radix(digits, 16).expect("hex"))
            .collect();
        assert!(packet.starts_with(&start), "{len}: {packet:02x?}");
    }
}

#[test]
fn datagram_that_does_not_fit_comes_first_in_the_next_packet() {
    let mut datagrams = datagrams();
    send(&mut datagrams, bytes(1, 600));
    send(&mut datagrams, bytes(2, 600));
    let first = packet(&mut datagrams, at(0), 1000, false);
    assert_eq!(payloads(&first), [vec![1; 600]]);
    assert!(datagrams.leads());
    let second = packet(&mut datagrams, at(0), 1000, false);
    assert_eq!(payloads(&second), [vec![2; 600]]);
    assert!(!datagrams.leads() && !datagrams.has_frames_to_send());
}

#[test]
fn datagram_that_no_longer_fits_any_packet_is_dropped() {
    let mut datagrams = datagrams();
    send(&mut datagrams, bytes(1, 1400));
    send(&mut datagrams, bytes(2, 1000));
    let packet = packet(&mut datagrams, at(0), 1100, false);
    assert_eq!(payloads(&packet), [vec![2; 1000]]);
    assert_eq!(datagrams.stats().unsent_dropped, 1);
}

#[test]
fn expired_datagrams_are_reported_and_not_sent() {
    let mut datagrams = datagrams();
    let options = |millis| SendOptions {
        session: None,
        order: None,
        expires_at: Some(at(millis)),
        is_tracked: true,
    };
    for (number, millis) in [(1, 20), (2, 10), (3, 30)] {
        let sent = datagrams.send(at(0), bytes(number, 5), Some(100), options(millis));
        assert!(matches!(sent, Ok(Some(_))));
    }
    assert_eq!(datagrams.next_timeout(), Some(at(10)));
    datagrams.on_timeout(at(9));
    assert_eq!(fates(&mut datagrams), []);
    datagrams.on_timeout(at(10));
    assert_eq!(fates(&mut datagrams), [DatagramFate::Expired]);
    assert_eq!(datagrams.next_timeout(), Some(at(20)));
    let packet = packet(&mut datagrams, at(25), 100, false);
    assert_eq!(payloads(&packet), [vec![3; 5]]);
    assert_eq!(fates(&mut datagrams), [DatagramFate::Expired]);
    assert_eq!(datagrams.stats().expired, 2);
    assert_eq!(datagrams.next_timeout(), None);
}

#[test]
fn expired_datagrams_are_dropped_before_the_oldest() {
    let mut datagrams = datagrams();
    send(&mut datagrams, bytes(0, 1));
    let options = SendOptions {
        session: None,
        order: None,
        expires_at: Some(at(5)),
        is_tracked: false,
    };
    for number in 1..64 {
        let sent = datagrams.send(at(0), bytes(number, 1), Some(100), options);
        assert_eq!(sent, Ok(None));
    }
    let options = SendOptions::default();
    let sent = datagrams.send(at(6), bytes(64, 1), Some(100), options);
    assert_eq!(sent, Ok(None));
    assert_eq!(datagrams.stats().expired, 63);
    assert_eq!(datagrams.stats().unsent_dropped, 0);
    let packet = packet(&mut datagrams, at(6), 100, false);
    assert_eq!(payloads(&packet), [vec![0], vec![64]]);
}

#[test]
fn datagrams_get_a_head_start_before_stream_data_and_then_take_turns() {
    let mut datagrams = datagrams();
    (0..64).for_each(|number| send(&mut datagrams, bytes(number, 1000)));
    let mut pattern = String::new();
    for _ in 0..40 {
        let packet = packet(&mut datagrams, at(0), 1050, true);
        pattern.push(if packet.is_empty() { 's' } else { 'd' });
        // Stream data fills the rest of the packet.
        datagrams.on_stream_data_sent(1050 - packet.len());
    }
    assert_eq!(&pattern[..17], "ddddddddddddddddd", "16 KiB");
    let turns = &pattern[18..];
    let count = turns.chars().filter(|turn| *turn == 'd').count();
    assert!((10..=12).contains(&count), "{pattern}");
}

#[test]
fn datagrams_without_stream_data_do_not_count_as_head_start() {
    let mut datagrams = datagrams();
    (0..60).for_each(|number| send(&mut datagrams, bytes(number, 1000)));
    for _ in 0..30 {
        assert!(!packet(&mut datagrams, at(0), 1050, false).is_empty());
    }
    for _ in 0..16 {
        assert!(!packet(&mut datagrams, at(0), 1050, true).is_empty());
    }
}

#[test]
fn readers_and_writers_are_woken_once_for_each_wait() {
    let mut datagrams = datagrams();
    let (data, has_length): (&[u8], _) = (b"x", true);
    let frame = Datagram { data, has_length };
    datagrams
        .on_datagram_frame(Time::ZERO, &frame)
        .expect("small");
    datagrams
        .on_datagram_frame(Time::ZERO, &frame)
        .expect("small");
    assert_eq!(datagrams.poll_event(), Some(DatagramEvent::Readable));
    assert_eq!(datagrams.poll_event(), None);
    assert!(datagrams.receive().is_some() && datagrams.receive().is_some());
    datagrams
        .on_datagram_frame(Time::ZERO, &frame)
        .expect("small");
    assert_eq!(datagrams.poll_event(), None, "no reader has found it empty");
    assert!(datagrams.receive().is_some() && datagrams.receive().is_none());
    datagrams
        .on_datagram_frame(Time::ZERO, &frame)
        .expect("small");
    assert_eq!(datagrams.poll_event(), Some(DatagramEvent::Readable));

    (0..64).for_each(|number| send(&mut datagrams, bytes(number, 1)));
    assert!(!datagrams.has_send_space(1));
    packet(&mut datagrams, at(0), 1000, false);
    assert_eq!(datagrams.poll_event(), Some(DatagramEvent::Room));
    assert_eq!(datagrams.poll_event(), None);
}

#[test]
fn half_full_queue_of_unread_datagrams_is_reported_once_for_each_read() {
    let mut datagrams = datagrams();
    let (data, has_length): (&[u8], _) = (b"x", true);
    let frame = Datagram { data, has_length };
    let fill = |datagrams: &mut Datagrams| {
        (0..40).for_each(|_| {
            datagrams
                .on_datagram_frame(Time::ZERO, &frame)
                .expect("small")
        });
        datagrams.take_crowded()
    };
    assert!(!fill(&mut datagrams), "the application does not read");
    while datagrams.receive().is_some() {}
    assert!(fill(&mut datagrams));
    assert!(!fill(&mut datagrams), "the application has not read since");
    assert!(datagrams.receive().is_some());
    assert!(fill(&mut datagrams));
}

#[test]
fn received_datagrams_remain_after_the_end_unless_we_closed() {
    for (is_lost, left) in [(true, Some(Bytes::from_static(b"x"))), (false, None)] {
        let mut datagrams = datagrams();
        let (data, has_length): (&[u8], _) = (b"x", true);
        let frame = Datagram { data, has_length };
        datagrams
            .on_datagram_frame(Time::ZERO, &frame)
            .expect("small");
        send(&mut datagrams, bytes(1, 1));
        datagrams.on_end(is_lost);
        assert!(!datagrams.has_frames_to_send());
        assert_eq!(datagrams.poll_event(), None);
        assert_eq!(datagrams.receive(), left);
    }
}

#[derive(Clone, Debug)]
enum Op {
    Send { len: usize, lifetime: Option<u64> },
    Wait(u64),
    Packet { capacity: usize, contested: bool },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        3 => (0..300_usize, prop::option::of(0..20_u64))
            .prop_map(|(len, lifetime)| Op::Send { len, lifetime }),
        1 => (0..10_u64).prop_map(Op::Wait),
        2 => (40..400_usize, any::<bool>())
            .prop_map(|(capacity, contested)| Op::Packet { capacity, contested }),
    ];
    prop::collection::vec(op, 1..150)
}

proptest! {
    /// Every datagram is sent once and in order, or dropped, or waits. None is counted twice.
    #[test]
    fn each_datagram_has_one_fate(ops in ops()) {
        let mut datagrams = Datagrams::new(DatagramLimits {
            send_bytes: 1000,
            send_count: 8,
            ..LIMITS
        });
        datagrams.on_peer_parameter(65_535);
        let (mut now, mut taken, mut sent) = (0, 0_u64, 0);
        let mut last = None;
        for op in ops {
            match op {
                Op::Wait(millis) => {
                    now += millis;
                    datagrams.on_timeout(at(now));
                }
                Op::Send { len, lifetime } => {
                    // The number is at the front, so that the order can be checked.
                    let mut data = taken.to_be_bytes().to_vec();
                    data.resize(8 + len, 0);
                    let options = SendOptions {
                        session: None,
                        order: None,
                        expires_at: lifetime.map(|millis| at(now + millis)),
                        is_tracked: taken.is_multiple_of(3),
                    };
                    let result = datagrams.send(at(now), data.into(), Some(1000), options);
                    prop_assert!(result.is_ok());
                    taken += 1;
                }
                Op::Packet { capacity, contested } => {
                    for payload in payloads(&packet(&mut datagrams, at(now), capacity, contested)) {
                        let number = Some(u64::from_be_bytes(*payload[..8].as_array().unwrap()));
                        prop_assert!(number > last, "{:?} after {:?}", number, last);
                        last = number;
                        sent += 1;
                    }
                }
            }
            let waiting = datagrams.outgoing.iter().count();
            let bytes: usize = datagrams.outgoing.iter().map(|datagram| datagram.data.len()).sum();
            prop_assert!(waiting <= 8 && bytes <= 1000);
            let space = if waiting == 8 { 0 } else { 1000 - bytes };
            prop_assert_eq!(datagrams.send_space(), space);
            let stats = datagrams.stats();
            prop_assert_eq!(stats.sent, sent);
            let over = stats.sent + stats.expired + stats.unsent_dropped;
            prop_assert_eq!(over + waiting as u64, taken);
        }
    }
}

#[test]
fn session_that_sends_too_much_loses_its_own_datagrams() {
    let mut datagrams = datagrams();
    let of = |index| SendOptions {
        session: Some(StreamId::new(
            courser_base::Side::Client,
            courser_wire::Direction::Bidirectional,
            index,
        )),
        ..SendOptions::default()
    };
    let mut send = |index, number| {
        let data = bytes(number, 100);
        datagrams
            .send(at(0), data, Some(65_000), of(index))
            .unwrap();
    };
    send(1, 200);
    for number in 0..100 {
        send(0, number);
    }
    send(1, 201);
    let mut left = Vec::new();
    while datagrams.has_frames_to_send() {
        let packet = packet(&mut datagrams, at(0), 1200, false);
        left.extend(payloads(&packet).iter().map(|payload| payload[0]));
    }
    assert_eq!(left.len(), 64);
    assert_eq!((left[0], left[63]), (200, 201), "of the other session");
    assert_eq!(
        left[1..63],
        (38..100).collect::<Vec<u8>>(),
        "the oldest went"
    );
    assert_eq!(datagrams.stats().unsent_dropped, 38);
}

/// Sends a datagram of the session with this index.
fn send_of(datagrams: &mut Datagrams, index: u64, order: Option<i64>, data: Bytes) {
    let request = StreamId::new(
        courser_base::Side::Client,
        courser_wire::Direction::Bidirectional,
        index,
    );
    let options = SendOptions {
        session: Some(request),
        order,
        ..SendOptions::default()
    };
    let sent = datagrams.send(at(0), data, Some(65_000), options);
    assert_eq!(sent, Ok(None));
}

/// Builds one packet, in which datagrams with an order below `least` wait. Returns the first bytes of the payloads.
fn ordered_packet(datagrams: &mut Datagrams, capacity: usize, least: i64) -> Vec<u8> {
    let mut lists = FrameLists::default();
    let mut buffer = vec![0xee; capacity];
    let mut packet = PacketBuilder::new(&mut buffer, &mut lists);
    let (now, largest) = (at(0), capacity - 1);
    datagrams.write_frames(now, largest, true, &mut packet, |_, _| {});
    let may_send = |_, order| order >= least;
    datagrams.write_ordered_frames(now, largest, true, &mut packet, may_send);
    let len = packet.end();
    let payloads = payloads(&buffer[..len]);
    payloads.iter().map(|payload| payload[0]).collect()
}

#[test]
fn datagrams_with_an_order_follow_those_without_and_wait_for_streams() {
    let mut datagrams = datagrams();
    for (number, order) in [
        (0, Some(2)),
        (1, Some(3)),
        (2, None),
        (3, Some(-1)),
        (4, Some(3)),
    ] {
        send_of(&mut datagrams, 0, order, bytes(number, 100));
    }
    assert_eq!(ordered_packet(&mut datagrams, 1200, 0), [2, 1, 4, 0]);
    assert!(datagrams.has_frames_to_send(), "one waits");
    assert_eq!(ordered_packet(&mut datagrams, 1200, 0), [0; 0]);
    assert_eq!(ordered_packet(&mut datagrams, 1200, -1), [3]);
    assert!(!datagrams.has_frames_to_send());
    assert_eq!(datagrams.stats().sent, 5);
}

/// The first datagrams of a few sessions are compared with streams at a time, and those of the others with the next packets.
#[test]
fn datagrams_of_many_sessions_take_turns_in_bounded_work() {
    let mut datagrams = datagrams();
    for index in 0..60 {
        let order = if index == 59 { 1 } else { -1 };
        send_of(&mut datagrams, index, Some(order), bytes(0, 10));
    }
    let mut asked = 0;
    for _ in 0..4 {
        let mut lists = FrameLists::default();
        let mut buffer = vec![0; 1200];
        let mut packet = PacketBuilder::new(&mut buffer, &mut lists);
        datagrams.write_ordered_frames(at(0), 1000, true, &mut packet, |_, order| {
            asked += 1;
            order > 0
        });
    }
    assert_eq!(datagrams.stats().sent, 1, "its turn has come");
    assert!(asked <= 5 * 16, "{asked} comparisons");
}

/// Attack A336: datagrams of low orders wait for streams without end.
#[test]
fn session_whose_datagrams_wait_for_its_streams_loses_the_lowest_of_its_own() {
    let mut datagrams = datagrams();
    send_of(&mut datagrams, 1, None, bytes(200, 100));
    send_of(&mut datagrams, 1, Some(-9), bytes(201, 100));
    for number in 0..100_usize {
        let order = i64::try_from(number % 50).unwrap();
        send_of(&mut datagrams, 0, Some(order), bytes(number, 100));
    }
    assert_eq!(datagrams.stats().unsent_dropped, 38);
    assert_eq!(datagrams.send_space(), 0);
    let mut left = Vec::new();
    while datagrams.has_frames_to_send() {
        left.extend(ordered_packet(&mut datagrams, 1200, i64::MIN));
    }
    assert!(
        left.contains(&200) && left.contains(&201),
        "of the other session"
    );
    assert!(
        left.contains(&49) && left.contains(&99),
        "the highest orders"
    );
}

#[test]
fn expired_datagrams_with_an_order_are_dropped_while_they_wait() {
    let mut datagrams = datagrams();
    let options = SendOptions {
        order: Some(-1),
        expires_at: Some(at(5)),
        is_tracked: true,
        ..SendOptions::default()
    };
    let sent = datagrams.send(at(0), bytes(1, 10), Some(65_000), options);
    assert!(sent.is_ok());
    assert_eq!(ordered_packet(&mut datagrams, 1200, 0), [0; 0]);
    assert_eq!(datagrams.next_timeout(), Some(at(5)));
    datagrams.on_timeout(at(5));
    assert!(!datagrams.has_frames_to_send());
    assert_eq!(fates(&mut datagrams), [DatagramFate::Expired]);
    assert_eq!(datagrams.next_timeout(), None);
}
