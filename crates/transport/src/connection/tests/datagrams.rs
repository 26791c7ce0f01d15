//! Datagrams between two ends. RFC 9221.

use std::cell::Cell;

use courser_wire::frame::{Datagram, Frame};

use super::*;
use crate::build::transmit::TransmitBuffer;
use crate::datagram::{DatagramEvent, DatagramFate, SendDatagramError, SendOptions};
use crate::testing::eye::Eye;
use crate::testing::traffic::Transfer;
use crate::testing::{End, Setup, link, steady};

fn with(
    client: impl FnOnce(&mut TransportConfig),
    server: impl FnOnce(&mut TransportConfig),
) -> Setup {
    let mut setup = Setup::default();
    client(&mut setup.client);
    let mut transport = steady();
    server(&mut transport);
    setup.server.transport = Arc::new(transport);
    setup
}

fn connected(setup: Setup) -> Pair {
    let mut pair = Pair::with(setup);
    pair.connect();
    pair
}

fn send(pair: &mut Pair, len: usize, options: SendOptions) {
    let now = pair.now;
    let data = vec![len as u8; len].into();
    let sent = pair.client.connection().send_datagram(now, data, options);
    assert!(sent.is_ok(), "{sent:?}");
    pair.client.touch();
}

fn received(end: &mut End) -> Vec<usize> {
    let datagrams = end.connection().datagrams();
    std::iter::from_fn(|| datagrams.receive())
        .map(|datagram| datagram.len())
        .collect()
}

fn fates(end: &End) -> Vec<DatagramFate> {
    end.events
        .iter()
        .filter_map(|event| match event {
            Event::Datagram(DatagramEvent::Fate { fate, .. }) => Some(*fate),
            _ => None,
        })
        .collect()
}

const TRACKED: SendOptions = SendOptions {
    session: None,
    order: None,
    expires_at: None,
    is_tracked: true,
};

#[test]
fn sizes_from_none_to_the_largest_arrive_and_one_more_is_refused() {
    let mut pair = Pair::connected();
    let max = pair
        .client
        .connection()
        .max_datagram_size()
        .expect("both can");
    // Packets of 1200 bytes, less type, ID of 8, number of 4, tag of 16, and type of the frame.
    assert_eq!(max, 1200 - 1 - 8 - 4 - 16 - 1);
    for len in [0, 1, 63, 64, max - 3, max - 2, max - 1, max] {
        send(&mut pair, len, SendOptions::default());
        pair.run_for(RTT);
        assert_eq!(received(&mut pair.server), [len]);
    }
    let now = pair.now;
    let data = vec![0; max + 1].into();
    let refused = pair
        .client
        .connection()
        .send_datagram(now, data, SendOptions::default());
    let size = max + 1;
    assert_eq!(refused, Err(SendDatagramError::TooLarge { size, max }));
    assert_eq!(pair.client.connection().stats().datagrams.sent, 8);
    assert_eq!(pair.server.connection().stats().datagrams.received, 8);
    assert_eq!(pair.client.connection().stats().datagrams.acked, 8);
}

#[test]
fn largest_datagram_is_sent_although_acknowledgements_are_always_due() {
    // One packet per batch, and something to acknowledge in each.
    let mut setup = with(|_| {}, |_| {});
    setup.max_segments = 1;
    let mut pair = connected(setup);
    let max = pair
        .client
        .connection()
        .max_datagram_size()
        .expect("both can");
    let download = Transfer::down(&mut pair, 300_000);
    for _ in 0..20 {
        send(&mut pair, max, SendOptions::default());
        pair.run_for(Duration::from_millis(1));
    }
    assert!(
        download
            .finish(&mut pair, Duration::from_secs(30))
            .is_some()
    );
    assert_eq!(received(&mut pair.server), vec![max; 20]);
}

/// The sizes of the datagrams of the next batch of the client.
fn next_batch(pair: &mut Pair) -> Vec<usize> {
    let (now, from) = (pair.now, pair.client.address);
    let handle = pair.client.handle.expect("it is connected");
    let mut buffer = TransmitBuffer::new(16);
    let transmit = pair.client.endpoint.poll_transmit(now, handle, &mut buffer);
    let datagrams = transmit.map(|it| link::Datagram::split(&it, buffer.bytes(), from));
    let datagrams = datagrams.unwrap_or_default();
    datagrams.iter().map(|it| it.bytes.len()).collect()
}

#[test]
fn datagrams_of_one_size_are_sent_as_one_batch() {
    let mut pair = connected(with(|_| {}, |_| {}));
    let queue = |pair: &mut Pair, sizes: &[usize]| {
        for &size in sizes {
            let (now, options) = (pair.now, SendOptions::default());
            let client = pair.client.connection();
            client
                .send_datagram(now, vec![1; size].into(), options)
                .expect("room");
        }
    };
    queue(&mut pair, &[700, 700, 700, 700, 650, 900, 60]);
    let batches = [
        next_batch(&mut pair),
        next_batch(&mut pair),
        next_batch(&mut pair),
    ];
    let counts = batches.each_ref().map(Vec::len);
    // A datagram of 650 bytes ends a batch, and one of 900 does not fit into it. The last one fits into a
    // packet of 900 bytes.
    assert_eq!(counts, [5, 1, 0], "{batches:?}");
    let [first, ..] = &batches;
    assert!(first[..4].iter().all(|len| *len == first[0]) && first[4] < first[0]);
}

#[test]
fn peer_without_the_parameter_gets_none() {
    let mut pair = connected(with(
        |_| {},
        |server| server.datagram_receive_buffer_size = None,
    ));
    assert_eq!(pair.client.connection().max_datagram_size(), None);
    let now = pair.now;
    let options = SendOptions::default();
    let refused = pair
        .client
        .connection()
        .send_datagram(now, Bytes::new(), options);
    assert_eq!(refused, Err(SendDatagramError::UnsupportedByPeer));
    // The opposite direction works: each end announces its own limit (RFC 9221 §3).
    let data = Bytes::from_static(b"news");
    let sent = pair.server.connection().send_datagram(now, data, options);
    assert_eq!(sent, Ok(None));
    pair.server.touch();
    pair.run_for(RTT);
    assert_eq!(received(&mut pair.client), [4]);
}

#[test]
fn frame_that_was_not_announced_is_a_protocol_violation() {
    let mut pair = connected(with(
        |_| {},
        |server| server.datagram_receive_buffer_size = None,
    ));
    let (data, has_length): (&[u8], _) = (b"x", true);
    pair.frame_to_server(&Frame::Datagram(Datagram { data, has_length }));
    assert_eq!(pair.server_error(), Some(0x0a), "RFC 9221 §3");
}

#[test]
fn frame_larger_than_announced_is_a_protocol_violation() {
    for (len, error) in [(97, None), (98, Some(0x0a))] {
        let setup = with(
            |_| {},
            |server| server.datagram_receive_buffer_size = Some(100),
        );
        let mut pair = connected(setup);
        assert_eq!(pair.client.connection().max_datagram_size(), Some(97));
        let (data, has_length): (&[u8], _) = (&vec![7; len], true);
        pair.frame_to_server(&Frame::Datagram(Datagram { data, has_length }));
        assert_eq!(pair.server_error(), error, "{len}: RFC 9221 §3");
    }
}

#[test]
fn frame_before_1_rtt_is_a_protocol_violation() {
    let (data, has_length): (&[u8], _) = (b"x", true);
    let frame = crate::testing::forge::encode(&Frame::Datagram(Datagram { data, has_length }));
    for (mut pair, space) in [
        (with_initial_keys(), SpaceId::Initial),
        (with_handshake_keys(), SpaceId::Handshake),
    ] {
        pair.forge_to_server(space, &frame);
        assert_eq!(pair.server_error(), Some(0x0a), "{space:?}");
    }
}

#[test]
fn packet_with_a_datagram_alone_is_acknowledged_in_time() {
    let (mut pair, eye) = {
        let (setup, eye) = Setup::default().with_eye();
        (connected(setup), eye)
    };
    let before = pair.server.connection().stats().acks_sent;
    send(&mut pair, 100, TRACKED);
    pair.run_for(RTT * 2 + Duration::from_millis(25));
    assert_eq!(fates(&pair.client), [DatagramFate::Acked], "RFC 9221 §5.2");
    assert_eq!(pair.server.connection().stats().acks_sent, before + 1);
    assert_eq!(frames_sent(&pair, &eye), 1);
}

fn frames_sent(pair: &Pair, eye: &Eye) -> usize {
    let sent = eye.client_sent(pair);
    let frames = sent.iter().flat_map(|seen| seen.frames());
    frames
        .filter(|frame| matches!(frame, Frame::Datagram(_)))
        .count()
}

#[test]
fn lost_datagrams_are_reported_and_never_sent_again() {
    let (setup, eye) = Setup::default().with_eye();
    let mut pair = connected(setup);
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to.port() != 4433));
    for _ in 0..3 {
        send(&mut pair, 1000, TRACKED);
    }
    // Several probe timeouts must not repeat them.
    pair.run_for(RTT * 20);
    assert_eq!(fates(&pair.client), [], "no fate is known yet");
    pair.link.filter = None;
    pair.run_for(Duration::from_secs(10));
    assert_eq!(fates(&pair.client), [DatagramFate::Lost; 3]);
    assert_eq!(frames_sent(&pair, &eye), 3, "RFC 9221 §5");
    assert_eq!(pair.client.connection().stats().datagrams.lost, 3);
    assert_eq!(received(&mut pair.server), Vec::<usize>::new());
}

#[test]
fn congestion_control_and_pacing_delay_datagrams() {
    let mut pair = Pair::connected();
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to.port() == 4433));
    for _ in 0..64 {
        send(&mut pair, 1100, SendOptions::default());
    }
    pair.run_for(Duration::from_millis(100));
    let stats = pair.client.connection().stats();
    let window = stats.path.congestion_window;
    assert!(
        stats.datagrams.sent < 20,
        "{} in {window}",
        stats.datagrams.sent
    );
    assert!(
        stats.path.bytes_in_flight <= window + 2 * 1200,
        "RFC 9221 §5.4"
    );
    assert!(pair.client.connection().datagrams().has_frames_to_send());
}

/// A datagram of 200 bytes needs no room for a packet of 1200. A call on a path with losses has a window of two packets.
#[test]
fn small_datagrams_leave_until_the_window_is_used() {
    let smallest = |config: &mut TransportConfig| config.initial_window = Some(2400);
    let mut pair = connected(with(smallest, |_| {}));
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to.port() == 4433));
    for _ in 0..40 {
        send(&mut pair, 200, SendOptions::default());
        pair.run_for(Duration::from_millis(1));
    }
    let path = pair.client.connection().stats().path;
    let left = path.congestion_window.checked_sub(path.bytes_in_flight);
    // A packet, and what it might have needed for an acknowledgement.
    assert!(left.is_some_and(|left| left < 400), "{path:?}");
}

#[test]
fn expired_datagrams_are_reported_on_time_while_the_window_is_closed() {
    let mut pair = Pair::connected();
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to.port() == 4433));
    for _ in 0..40 {
        send(&mut pair, 1100, SendOptions::default());
    }
    pair.run_for(Duration::from_millis(5));
    let options = SendOptions {
        session: None,
        order: None,
        expires_at: Some(pair.now + Duration::from_millis(10)),
        is_tracked: true,
    };
    send(&mut pair, 10, options);
    pair.run_for(Duration::from_millis(9));
    assert_eq!(fates(&pair.client), []);
    pair.run_for(Duration::from_millis(1));
    assert_eq!(fates(&pair.client), [DatagramFate::Expired]);
    assert_eq!(pair.client.connection().stats().datagrams.expired, 1);
}

#[test]
fn size_follows_the_path_and_datagrams_that_no_longer_fit_are_dropped() {
    let carried = Rc::new(Cell::new(1400));
    let limit = Rc::clone(&carried);
    let search = |config: &mut TransportConfig| config.mtu_discovery = true;
    let mut pair = Pair::with(with(search, search));
    pair.link.filter = Some(Box::new(move |_, datagram| {
        datagram.bytes.len() <= limit.get()
    }));
    pair.connect();
    pair.upload(2_000_000);
    pair.run_for(RTT * 50);
    let wide = pair.client.connection().max_datagram_size().expect("some");
    let mtu = usize::from(pair.client.connection().stats().path.mtu);
    assert!(mtu > 1300 && wide == mtu - 30, "{wide} of {mtu}");
    carried.set(1200);
    let upload = Transfer::up(&mut pair, 200_000);
    assert!(upload.finish(&mut pair, Duration::from_secs(60)).is_some());
    // Full datagrams are smaller at once. The limit of the application waits for certainty.
    pair.run_for(RTT * 50);
    assert_eq!(pair.client.connection().max_datagram_size(), Some(1170));
}

/// Returns the shares of datagrams and of a stream on a link that is too narrow for both.
fn shares(size: usize) -> (f64, f64) {
    let mut pair = Pair::connected();
    pair.link.rate = Some(1_000_000);
    let mut upload = Transfer::up(&mut pair, 100_000_000);
    let (begun, mut arrived) = (pair.now, 0);
    while pair.now - begun < Duration::from_secs(10) {
        let now = pair.now;
        // Writes as much as is accepted: the application has endless data of both kinds.
        while pair.client.connection().datagrams().has_send_space(size) {
            let data = vec![1; size].into();
            let sent = pair
                .client
                .connection()
                .send_datagram(now, data, SendOptions::default());
            assert_eq!(sent, Ok(None));
        }
        pair.client.touch();
        pair.step();
        upload.step(&mut pair);
        arrived += received(&mut pair.server).iter().sum::<usize>();
    }
    let total = 1_000_000.0 * 10.0;
    (arrived as f64 / total, upload.received() as f64 / total)
}

#[test]
fn datagrams_and_streams_share_a_narrow_link_evenly() {
    for size in [100, 1170] {
        let (datagrams, stream) = shares(size);
        assert!(
            datagrams + stream > 0.75,
            "{size}: {datagrams} and {stream}"
        );
        let ratio = datagrams / stream;
        assert!(
            (0.7..1.4).contains(&ratio),
            "{size}: {datagrams} and {stream}"
        );
    }
}

#[test]
fn few_datagrams_are_sent_ahead_of_stream_data() {
    let mut pair = Pair::connected();
    pair.link.rate = Some(1_000_000);
    let mut upload = Transfer::up(&mut pair, 10_000_000);
    for _ in 0..40 {
        send(&mut pair, 200, TRACKED);
        let before = pair.now;
        while pair.now - before < Duration::from_millis(20) {
            pair.step();
            upload.step(&mut pair);
        }
    }
    assert!(upload.received() > 300_000);
    let stats = pair.client.connection().stats().datagrams;
    assert_eq!((stats.sent, stats.unsent_dropped), (40, 0));
    assert!(!pair.client.connection().datagrams().has_frames_to_send());
}

#[test]
fn flood_of_unread_datagrams_is_bounded_and_the_connection_stays_open() {
    for len in [0, 1] {
        let mut pair = Pair::connected();
        let frame = &[0x31, len, 7][..2 + usize::from(len)];
        for _ in 0..100 {
            pair.forge_to_server(SpaceId::Application, &frame.repeat(400));
        }
        assert_eq!(pair.server_error(), None);
        let stats = pair.server.connection().stats().datagrams;
        let (all, dropped) = (stats.received, stats.unread_dropped);
        assert_eq!((all, dropped), (40_000, 40_000 - 64), "limit K27");
        assert_eq!(received(&mut pair.server), [usize::from(len); 64]);
    }
}

#[test]
fn datagrams_received_before_the_peer_closed_can_be_read() {
    let mut pair = Pair::connected();
    send(&mut pair, 5, SendOptions::default());
    pair.run_for(RTT);
    let now = pair.now;
    pair.client.connection().close(now, 7, b"");
    pair.client.touch();
    pair.run_for(RTT);
    assert!(pair.server.connection().is_closed());
    assert_eq!(received(&mut pair.server), [5]);
}

/// Sends datagrams of several sizes and a short stream, and returns the lengths of the 1-RTT datagrams of the client.
fn lengths_of_messages(pads: bool) -> Vec<usize> {
    let mut pair = connected(with(|client| client.pad_to_mtu = pads, |_| {}));
    let from = pair.client.sent.len();
    for len in [1, 300, 900] {
        send(&mut pair, len, SendOptions::default());
        pair.run_for(RTT);
    }
    let streams = pair.client.connection().streams();
    let id = streams.open(Direction::Unidirectional).expect("credit");
    assert_eq!(streams.write(id, b"short"), Ok(5));
    pair.client.touch();
    pair.run_for(RTT * 2);
    assert_eq!(received(&mut pair.server), [1, 300, 900]);
    let sent = &pair.client.sent[from..];
    sent.iter().map(|datagram| datagram.bytes.len()).collect()
}

#[test]
fn padded_messages_have_one_length() {
    let lengths = lengths_of_messages(true);
    assert!(lengths.len() >= 4, "{lengths:?}");
    assert!(lengths.iter().all(|&len| len == 1200), "{lengths:?}");
    let lengths = lengths_of_messages(false);
    assert!(
        lengths.iter().filter(|&&len| len < 400).count() >= 3,
        "{lengths:?}"
    );
}

/// draft-ietf-moq-transport-19 §7.2: a datagram has an order beside streams.
#[test]
fn datagrams_with_an_order_wait_for_streams_of_higher_orders() {
    let mut pair = connected(with(|_| {}, |_| {}));
    let now = pair.now;
    let client = pair.client.connection();
    let streams = client.streams();
    let id = streams
        .open(courser_wire::Direction::Unidirectional)
        .expect("allowed");
    streams.set_order(id, 5).expect("it is open");
    let len = 60_000;
    assert_eq!(streams.write(id, &vec![7; len]), Ok(len));
    for (size, order) in [
        (300, Some(-1)),
        (400, Some(9)),
        (401, Some(5)),
        (402, Some(4)),
        (500, None),
    ] {
        let options = SendOptions {
            order,
            ..SendOptions::default()
        };
        let sent = client.send_datagram(now, vec![0; size].into(), options);
        assert_eq!(sent, Ok(None));
    }
    pair.client.touch();
    // The stream takes some round trips.
    let mut arrived = Vec::new();
    let mut bytes = 0;
    let mut before_the_end = 0;
    while arrived.len() < 5 {
        pair.run_for(Duration::from_millis(1));
        arrived.extend(received(&mut pair.server));
        let stats = pair.client.connection().streams().send_stats(id);
        bytes = stats.map_or(len as u64, |stats| stats.sent);
        if bytes < len as u64 {
            before_the_end = arrived.len();
        }
    }
    assert_eq!(arrived, [500, 400, 401, 402, 300]);
    assert_eq!((before_the_end, bytes), (3, len as u64));
}
