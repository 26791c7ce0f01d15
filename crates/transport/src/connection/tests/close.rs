//! Tests the end of a connection at both ends. RFC 9000 §10.2, §11.

use courser_wire::frame::{CloseKind, ConnectionClose, Frame};
use courser_wire::packet::PacketKind;
use courser_wire::{ApplicationErrorCode, TransportErrorCode};

use super::frames::raw;
use super::*;
use crate::testing::eye::Seen;
use crate::testing::forgery::Forgery;
use crate::testing::{End, Setup, steady};

fn close(end: &mut End, now: Time, code: u64, reason: &[u8]) {
    end.connection().close(now, code, reason);
    end.touch();
}

fn close_client(pair: &mut Pair, code: u64, reason: &[u8]) {
    close(&mut pair.client, pair.now, code, reason);
    pair.drive();
}

fn closes(packet: &Seen) -> Vec<ConnectionClose<'_>> {
    let closes = packet.frames().filter_map(|frame| match frame {
        Frame::ConnectionClose(close) => Some(close),
        _ => None,
    });
    closes.collect()
}

/// Returns the kinds of the packets with CONNECTION_CLOSE.
fn kinds_of_closes(sent: &[Seen]) -> Vec<PacketKind> {
    let closing = sent.iter().filter(|packet| !closes(packet).is_empty());
    closing.map(|packet| packet.kind).collect()
}

fn lost(events: &[Event]) -> Vec<&ConnectionError> {
    let errors = events.iter().filter_map(|event| match event {
        Event::Lost(error) => Some(error),
        _ => None,
    });
    errors.collect()
}

fn application_closed(code: u64, reason: &'static [u8]) -> ConnectionError {
    let reason = Bytes::from_static(reason);
    ConnectionError::ApplicationClosed {
        code: ApplicationErrorCode(code),
        reason,
    }
}

/// Creates a pair whose client has completed the handshake without the server receiving it.
fn half_done() -> (Pair, crate::testing::eye::Eye) {
    let (mut pair, eye) = Pair::watched();
    pair.start();
    assert!(pair.run_until(RTT * 2, |pair| pair.client.has(&Event::Connected)));
    (pair, eye)
}

#[test]
fn application_close_reaches_the_peer_with_code_and_reason() {
    let (mut pair, eye) = Pair::watched_and_connected();
    close_client(&mut pair, 0x1234_5678, b"so long");
    pair.run_for(RTT);
    assert_eq!(lost(&pair.client.events), [&ConnectionError::LocallyClosed]);
    assert_eq!(
        lost(&pair.server.events),
        [&application_closed(0x1234_5678, b"so long")]
    );
    assert_eq!(
        kinds_of_closes(&eye.client_sent(&pair)),
        [PacketKind::OneRtt]
    );
    assert_eq!(
        pair.server.connection().close_error(),
        Some(&application_closed(0x1234_5678, b"so long"))
    );
}

#[test]
fn close_is_answered_within_a_round_trip_and_nothing_is_sent_afterwards() {
    let (mut pair, eye) = Pair::watched_and_connected();
    close_client(&mut pair, 0, b"");
    pair.run_for(RTT);
    assert!(!pair.client.connection().is_drained());
    assert!(
        pair.client.connection().has_finished_sending()
            && pair.server.connection().has_finished_sending()
    );
    let answers = eye.server_sent(&pair);
    let answer = closes(answers.last().expect("an answer"));
    let no_error = TransportErrorCode::NO_ERROR;
    assert_eq!(
        answer[0].kind,
        CloseKind::Transport {
            error_code: no_error,
            frame_type: 0
        }
    );
    let sent = (pair.client.sent.len(), pair.server.sent.len());
    pair.run_for(Duration::from_secs(60));
    assert_eq!((pair.client.sent.len(), pair.server.sent.len()), sent);
}

#[test]
fn state_is_kept_for_three_probe_timeouts_and_no_longer() {
    let mut pair = Pair::connected();
    let connection = pair.client.connection();
    let pto = connection.packets.recovery.pto();
    pair.link.filter = Some(Box::new(|_, _| false));
    close_client(&mut pair, 0, b"");
    pair.run_for(pto * 3 - Duration::from_millis(1));
    assert_eq!(pair.client.endpoint.connections(), 1);
    pair.run_for(Duration::from_millis(2));
    assert_eq!(pair.client.endpoint.connections(), 0);
}

/// On a short path with requests for early acknowledgements, our probe timeout is shorter than the peer's.
#[test]
fn peer_that_missed_the_close_gets_it_with_its_first_probe() {
    let mut setup = Setup::default();
    setup.client.ack_frequency = true;
    let mut transport = steady();
    transport.ack_frequency = true;
    setup.server.transport = Arc::new(transport);
    let mut pair = Pair::with(setup);
    pair.connect();
    pair.link.delay = Duration::from_micros(50);
    pair.upload(16_000_000);
    let own = pair.client.connection().packets.recovery.pto();
    let of_server = pair.server.connection().packets.recovery.pto();
    assert!(own * 3 < of_server, "{own:?} and {of_server:?}");
    pair.link.filter = Some(Box::new(|_, _| false));
    close_client(&mut pair, 3, b"missed");
    pair.run_for(own * 3 + Duration::from_millis(1));
    pair.link.filter = None;
    pair.server.connection().pings().request();
    pair.server.touch();
    pair.run_for(of_server * 2);
    let ended = application_closed(3, b"missed");
    assert_eq!(lost(&pair.server.events), [&ended]);
}

/// A busy machine may run an end so late that the closing period is over before its CONNECTION_CLOSE was
/// sent. The peer still receives it, and no stateless reset.
#[test]
fn close_of_an_end_that_runs_late_still_reaches_the_peer() {
    let mut pair = Pair::connected();
    close(&mut pair.client, pair.now, 3, b"late");
    pair.now += pair.client.connection().packets.recovery.pto() * 3 + RTT;
    let now = pair.now;
    pair.client.connection().handle_timeout(now);
    pair.client.touch();
    pair.run_for(RTT);
    let ended = application_closed(3, b"late");
    assert_eq!(lost(&pair.server.events), [&ended]);
}

#[test]
fn state_of_closed_connections_is_freed_after_a_minute() {
    // Attack A51: a peer that acknowledges ten minutes late makes the probe timeout longer.
    let mut pair = Pair::connected();
    let late = Duration::from_secs(600);
    let now = pair.now;
    let connection = pair.server.connection();
    let rtt = connection.packets.recovery.path_mut().rtt_mut();
    for _ in 0..30 {
        rtt.on_sample(now, late, Duration::ZERO, None);
    }
    pair.link.filter = Some(Box::new(|_, _| false));
    close(&mut pair.server, pair.now, 7, b"");
    pair.drive();
    pair.run_for(Duration::from_secs(61));
    assert_eq!(pair.server.endpoint.connections(), 0);
}

#[test]
fn draining_end_answers_nothing() {
    let mut pair = Pair::connected();
    let packets: Vec<_> = (0..20)
        .map(|_| Forgery::of(&[0x01]).seal(&mut pair.client, SpaceId::Application))
        .collect();
    pair.forge_to_server(SpaceId::Application, &raw(&[0x1d, 0, 0]));
    let sent = pair.server.sent.len();
    for packet in packets {
        pair.send_to_server(packet);
    }
    assert_eq!(pair.server.sent.len(), sent);
    assert_eq!(lost(&pair.server.events).len(), 1);
}

#[test]
fn closing_end_answers_at_doubling_intervals() {
    let mut pair = Pair::connected();
    pair.link.filter = Some(Box::new(|_, _| false));
    close(&mut pair.server, pair.now, 7, b"");
    pair.drive();
    let sent = pair.server.sent.len();
    let mut answered = Vec::new();
    for packet in 1..=40 {
        pair.forge_to_server(SpaceId::Application, &[0x01]);
        if pair.server.sent.len() > sent + answered.len() {
            answered.push(packet);
        }
    }
    assert_eq!(answered, [1, 3, 7, 15, 31]);
}

#[test]
fn closing_end_processes_the_close_of_the_peer_behind_other_frames() {
    let mut pair = Pair::connected();
    pair.link.filter = Some(Box::new(|_, _| false));
    close_client(&mut pair, 7, b"");
    let sent = pair.client.sent.len();
    let frames = [
        raw(&[0x01]),
        raw(&[0x0a, 1, 0]),
        vec![0; 9],
        raw(&[0x1d, 3, 0]),
    ]
    .concat();
    pair.forge_to_client(SpaceId::Application, &frames);
    assert!(pair.client.connection().has_finished_sending());
    // That packet was answered once more, later ones are not.
    let answered = pair.client.sent.len();
    assert!(answered <= sent + 1);
    pair.forge_to_client(SpaceId::Application, &[0x01]);
    assert_eq!(pair.client.sent.len(), answered);
    assert_eq!(lost(&pair.client.events), [&ConnectionError::LocallyClosed]);
}

#[test]
fn closing_end_ignores_all_other_frames() {
    let mut pair = Pair::connected();
    pair.link.filter = Some(Box::new(|_, _| false));
    close(&mut pair.server, pair.now, 7, b"");
    pair.drive();
    let events = pair.server.events.len();
    for frames in [
        raw(&[0x08, 0]),
        raw(&[0x20]),
        raw(&[0x1e]),
        raw(&[0x04, 3, 0, 0]),
        vec![],
    ] {
        pair.forge_to_server(SpaceId::Application, &frames);
    }
    assert_eq!(pair.server.events.len(), events);
    let streams = pair.server.connection().streams();
    assert_eq!(streams.accept(Direction::Bidirectional), None);
    assert!(pair.server.connection().life.is_closing());
}

#[test]
fn application_close_of_a_client_has_a_general_code_in_initials() {
    let (mut pair, eye) = Pair::watched();
    pair.start();
    pair.drive();
    close_client(&mut pair, 99, b"secret");
    pair.run_for(RTT);
    let sent = eye.client_sent(&pair);
    let closing = sent.last().expect("sent");
    assert_eq!(
        (closing.kind, closing.datagram_len),
        (PacketKind::Initial, 1200)
    );
    let close = closes(closing)[0];
    let error_code = TransportErrorCode::APPLICATION_ERROR;
    assert_eq!(
        close.kind,
        CloseKind::Transport {
            error_code,
            frame_type: 0
        }
    );
    assert!(close.reason.is_empty());
    assert_eq!(pair.close_received_by_server(), Some(0x0c));
}

#[test]
fn server_that_closes_during_the_handshake_sends_the_close_at_every_level() {
    let (mut pair, eye) = Pair::watched();
    pair.start();
    assert!(pair.run_until(RTT, |pair| pair.server.handle.is_some()));
    close(&mut pair.server, pair.now, 99, b"secret");
    pair.drive();
    let kinds = kinds_of_closes(&eye.server_sent(&pair));
    assert_eq!(
        kinds,
        [
            PacketKind::Initial,
            PacketKind::Handshake,
            PacketKind::OneRtt
        ]
    );
    for packet in eye
        .server_sent(&pair)
        .iter()
        .filter(|packet| packet.kind != PacketKind::OneRtt)
    {
        assert!(closes(packet).iter().all(|close| close.reason.is_empty()));
    }
    pair.run_for(RTT);
    assert_eq!(lost(&pair.client.events).len(), 1);
    assert_eq!(pair.close_received_by_client(), Some(0x0c));
}

#[test]
fn client_that_closes_before_confirmation_sends_the_close_at_both_levels() {
    let (mut pair, eye) = half_done();
    close_client(&mut pair, 99, b"bye");
    let kinds = kinds_of_closes(&eye.client_sent(&pair));
    assert_eq!(kinds, [PacketKind::Handshake, PacketKind::OneRtt]);
    pair.run_for(RTT);
    // The Finished came first: the server has discarded its Handshake keys.
    assert_eq!(lost(&pair.server.events), [&application_closed(99, b"bye")]);
}

#[test]
fn server_without_the_finished_reads_the_close_of_the_client() {
    let (mut pair, _) = Pair::watched();
    pair.start();
    let finished = |pair: &mut Pair| pair.client.has(&Event::Connected);
    pair.run_for(RTT / 2);
    pair.link.filter = Some(Box::new(|_, datagram| {
        datagram.from != crate::testing::client_address()
    }));
    assert!(pair.run_until(RTT * 2, finished));
    pair.link.filter = None;
    close_client(&mut pair, 99, b"bye");
    pair.run_for(RTT);
    assert_eq!(pair.close_received_by_server(), Some(0x0c));
    assert!(!pair.server.has(&Event::Connected));
}

#[test]
fn close_after_confirmation_is_sent_in_1rtt_packets_only() {
    let (mut pair, eye) = Pair::watched_and_connected();
    pair.forge_to_server(SpaceId::Application, &raw(&[0x1e]));
    pair.run_for(RTT);
    assert_eq!(
        kinds_of_closes(&eye.server_sent(&pair)),
        [PacketKind::OneRtt]
    );
    assert_eq!(pair.close_received_by_client(), Some(0x0a));
}

#[test]
fn transport_error_names_frame_type_and_reason_at_both_ends() {
    let mut pair = Pair::connected();
    pair.forge_to_server(SpaceId::Application, &raw(&[0x11, 1, 9]));
    pair.run_for(RTT);
    let [ConnectionError::TransportError(ours)] = lost(&pair.server.events)[..] else {
        panic!("{:?}", pair.server.events);
    };
    assert_eq!((ours.code.value(), ours.frame_type), (0x05, Some(0x11)));
    let [ConnectionError::ConnectionClosed(theirs)] = lost(&pair.client.events)[..] else {
        panic!("{:?}", pair.client.events);
    };
    assert_eq!((theirs.code.value(), theirs.frame_type), (0x05, 0x11));
    assert_eq!(&theirs.reason[..], ours.reason.as_bytes());
    assert!(!theirs.reason.is_empty());
}

#[test]
fn unknown_codes_and_reasons_of_any_bytes_are_passed_on() {
    for code in [0x11, 0x0fff, 0x1ff, (1 << 62) - 1] {
        let mut pair = Pair::connected();
        let reason = [0xff, 0x00, 0x1b, 0xc3, 0x28];
        let frame = [&raw(&[0x1c, code, 0x2ab2, 5])[..], &reason].concat();
        pair.forge_to_client(SpaceId::Application, &frame);
        let [ConnectionError::ConnectionClosed(close)] = lost(&pair.client.events)[..] else {
            panic!("{:?}", pair.client.events);
        };
        assert_eq!((close.code.value(), close.frame_type), (code, 0x2ab2));
        assert_eq!(&close.reason[..], &reason);
    }
}

#[test]
fn long_reasons_are_cut_and_codes_past_the_largest_varint_are_lowered() {
    let mut pair = Pair::connected();
    close_client(&mut pair, u64::MAX, &[b'x'; 5000]);
    pair.run_for(RTT);
    let [ConnectionError::ApplicationClosed { code, reason }] = lost(&pair.server.events)[..]
    else {
        panic!("{:?}", pair.server.events);
    };
    assert_eq!(code.0, (1 << 62) - 1);
    assert_eq!(reason.len(), 512);
}

#[test]
fn close_during_the_handshake_respects_the_amplification_limit() {
    let mut pair = Pair::new();
    pair.start();
    assert!(pair.run_until(RTT, |pair| pair.server.handle.is_some()));
    pair.link.filter = Some(Box::new(|_, _| false));
    close(&mut pair.server, pair.now, 0, b"");
    pair.drive();
    let mut received = 1200 * pair.client.sent.len();
    for _ in 0..30 {
        let bytes = Forgery::of(&[0x01]).seal(&mut pair.client, SpaceId::Initial);
        received += bytes.len();
        pair.send_to_server(bytes);
        let sent: usize = pair
            .server
            .sent
            .iter()
            .map(|datagram| datagram.bytes.len())
            .sum();
        assert!(sent <= 3 * received, "{sent} bytes for {received}");
    }
}

#[test]
fn close_held_back_by_the_amplification_limit_is_sent_when_permitted() {
    let mut pair = Pair::new();
    pair.start();
    assert!(pair.run_until(RTT, |pair| pair.server.handle.is_some()));
    let amplification = pair
        .server
        .connection()
        .parts
        .paths
        .active_mut()
        .amplification_mut();
    amplification.on_sent(usize::try_from(amplification.budget()).expect("a few datagrams"));
    close(&mut pair.server, pair.now, 0, b"");
    pair.drive();
    let sent = pair.server.sent.len();
    // It can be attributed to the connection, but is too short to be answered.
    let id = pair.server.connection().handshake_mut().local_id();
    pair.send_to_server([&[0x40][..], &id, &[0; 12]].concat());
    assert_eq!(
        pair.server.sent.len(),
        sent,
        "three times 21 bytes are too few"
    );
    let bytes = Forgery::of(&[0x01]).seal(&mut pair.client, SpaceId::Initial);
    pair.send_to_server(bytes);
    assert_eq!(pair.server.sent.len(), sent + 1);
}

#[test]
fn closed_connection_refuses_further_calls() {
    let mut pair = Pair::connected();
    close_client(&mut pair, 1, b"first");
    close_client(&mut pair, 2, b"second");
    let (now, sent) = (pair.now, pair.client.sent.len());
    let connection = pair.client.connection();
    connection.pings().request();
    assert!(connection.initiate_key_update(now).is_err());
    assert_eq!(connection.streams().open(Direction::Bidirectional), None);
    pair.client.touch();
    pair.drive();
    assert_eq!(pair.client.sent.len(), sent);
    pair.run_for(RTT);
    assert_eq!(
        lost(&pair.server.events),
        [&application_closed(1, b"first")]
    );
}

#[test]
fn frames_behind_a_close_are_not_processed() {
    let mut pair = Pair::connected();
    let frames = [raw(&[0x1d, 5, 0]), raw(&[0x0a, 0, 0]), raw(&[0x20])].concat();
    pair.forge_to_server(SpaceId::Application, &frames);
    assert_eq!(lost(&pair.server.events), [&application_closed(5, b"")]);
    assert_eq!(
        pair.server
            .connection()
            .streams()
            .accept(Direction::Bidirectional),
        None
    );
}

#[test]
fn an_error_behind_frames_that_were_applied_ends_the_connection() {
    let raises = raw(&[0x10, 1 << 30]);
    let opens = raw(&[0x0b, 0, 2, 7, 7]);
    for (case, wrong, code) in [
        ("HANDSHAKE_DONE of a client", 0x1e, 0x0a),
        ("an unknown type", 0x21, 0x07),
    ] {
        let mut pair = Pair::connected();
        let frames = [&raises[..], &opens, &raw(&[wrong])].concat();
        pair.forge_to_server(SpaceId::Application, &frames);
        assert_eq!(pair.server_error(), Some(code), "{case}");
        assert!(pair.server.connection().is_closed(), "{case}");
        pair.run_for(RTT);
        assert_eq!(pair.close_received_by_client(), Some(code), "{case}");
    }
}
