//! The handshake between two ends. RFC 9000 §7, RFC 9001 §4, §5.7.

use courser_wire::frame::Frame;
use courser_wire::packet::{self, PacketKind};

use super::frames::raw;
use super::*;
use crate::config::TransportConfig;
use crate::stream::StreamEvent;
use crate::testing::eye::{Eye, Seen};
use crate::testing::forge::{encode, forge};
use crate::testing::forgery::Forgery;
use crate::testing::identity::{client_tls, server_tls, server_tls_with_big_chain};
use crate::testing::link::Datagram;
use crate::testing::{Setup, client_address, steady};

pub(super) fn has_kind(datagram: &Datagram, kind: PacketKind) -> bool {
    packet::Packets::new(&datagram.bytes, 8)
        .flatten()
        .any(|packet| packet.kind == kind)
}

/// Returns true for the client's Finished.
fn is_finished(datagram: &Datagram) -> bool {
    datagram.from == client_address() && has_kind(datagram, PacketKind::Handshake)
}

#[test]
fn ends_without_a_common_protocol_close_with_no_application_protocol() {
    let mut pair = Pair::with(Setup {
        client_tls: client_tls(&[b"other"]),
        ..Setup::default()
    });
    pair.start();
    pair.run_for(RTT);
    assert_eq!(pair.server_error(), Some(0x178));
    assert_eq!(pair.close_received_by_client(), Some(0x178));
}

#[test]
fn certificate_for_another_name_ends_the_connection() {
    let mut pair = Pair::new();
    let (now, config, peer) = (pair.now, pair.client_config.clone(), pair.server.address);
    let handle = pair
        .client
        .endpoint
        .connect(now, &config, peer, "example.org");
    pair.client.handle = Some(handle.expect("a proper name"));
    pair.run_for(RTT * 2);
    let code = pair.client_error().expect("refused");
    assert!((0x12a..=0x130).contains(&code), "{code:#x}");
    assert_eq!(pair.close_received_by_server(), Some(code));
    assert!(!pair.client.has(&Event::Connected));
}

#[test]
fn initial_keys_are_discarded_with_the_first_handshake_packet() {
    let mut pair = with_handshake_keys();
    assert!(
        !pair
            .client
            .connection()
            .parts
            .acknowledger
            .has_space(SpaceId::Initial),
        "it has sent Finished"
    );
    assert!(
        pair.server
            .connection()
            .parts
            .acknowledger
            .has_space(SpaceId::Initial),
        "it has not seen it"
    );
    pair.run_for(RTT / 2);
    assert!(
        !pair
            .server
            .connection()
            .parts
            .acknowledger
            .has_space(SpaceId::Initial)
    );
}

#[test]
fn handshake_keys_are_discarded_when_the_handshake_is_confirmed() {
    let mut pair = with_handshake_keys();
    assert!(!pair.client.connection().is_confirmed());
    assert!(
        pair.client
            .connection()
            .parts
            .acknowledger
            .has_space(SpaceId::Handshake)
    );
    assert!(pair.run_until(RTT, |pair| pair.server.has(&Event::Confirmed)));
    assert!(
        !pair
            .server
            .connection()
            .parts
            .acknowledger
            .has_space(SpaceId::Handshake)
    );
    assert!(
        pair.client
            .connection()
            .parts
            .acknowledger
            .has_space(SpaceId::Handshake),
        "HANDSHAKE_DONE is in flight"
    );
    assert!(pair.run_until(RTT, |pair| pair.client.has(&Event::Confirmed)));
    assert!(
        !pair
            .client
            .connection()
            .parts
            .acknowledger
            .has_space(SpaceId::Handshake)
    );
}

#[test]
fn no_packet_is_sent_with_discarded_keys() {
    for seed in 0..10 {
        let (setup, eye) = Setup {
            seed,
            ..Setup::default()
        }
        .with_eye();
        let mut pair = Pair::with(setup);
        pair.link.loss = 200;
        pair.connect();
        let sent = eye.client_sent(&pair);
        let kinds: Vec<_> = sent.iter().map(|packet| packet.kind).collect();
        let first_handshake = kinds.iter().position(|&kind| kind == PacketKind::Handshake);
        let first_handshake = first_handshake.expect("Finished was sent");
        assert!(
            !kinds[first_handshake..].contains(&PacketKind::Initial),
            "seed {seed}: {kinds:?}"
        );
        let done = |frame: &Frame<'_>| matches!(frame, Frame::HandshakeDone);
        let sent = eye.server_sent(&pair);
        let confirmed = sent
            .iter()
            .position(|packet| packet.has(done))
            .expect("HANDSHAKE_DONE");
        assert!(
            sent[confirmed..]
                .iter()
                .all(|packet| packet.kind == PacketKind::OneRtt)
        );
    }
}

#[test]
fn server_whose_amplification_limit_is_below_a_full_datagram_sends_no_ack_eliciting_initial() {
    let (mut pair, eye) = Pair::watched();
    pair.start();
    assert!(pair.run_until(RTT, |pair| pair.server.handle.is_some()));
    let sent = eye.server_sent(&pair).len();
    pair.link.filter = Some(Box::new(|_, _| false));
    let amplification = pair
        .server
        .connection()
        .parts
        .paths
        .active_mut()
        .amplification_mut();
    let budget = usize::try_from(amplification.budget()).expect("a few datagrams");
    amplification.on_sent(budget - 1000);
    let recovery = &mut pair.server.connection().packets.recovery;
    recovery.request_ping(SpaceId::Initial);
    pair.server.touch();
    pair.run_for(Duration::from_secs(5));
    for packet in &eye.server_sent(&pair)[sent..] {
        let is_initial = packet.kind == PacketKind::Initial;
        assert!(!is_initial || !packet.is_ack_eliciting(), "{packet:?}");
    }
}

#[test]
fn first_destination_id_is_used_until_the_server_answers() {
    let (mut pair, eye) = Pair::watched();
    pair.link.filter = Some(Box::new(|_, datagram| datagram.from == client_address()));
    pair.start();
    pair.run_for(Duration::from_secs(5));
    let sent = eye.client_sent(&pair);
    assert!(sent.len() > 4, "probes went out");
    assert!(
        sent.iter()
            .all(|packet| packet.destination == sent[0].destination)
    );
    pair.link.filter = None;
    assert!(pair.run_until(Duration::from_secs(4), |pair| {
        pair.client.has(&Event::Confirmed)
    }));
    let chosen = eye.server_sent(&pair)[0].source;
    let answered = eye.client_sent(&pair)[sent.len()..].to_vec();
    assert!(answered.iter().any(|packet| packet.destination == chosen));
    assert!(
        eye.server_sent(&pair)
            .iter()
            .all(|packet| packet.destination == sent[0].source)
    );
}

#[test]
fn client_waits_for_handshake_done_which_the_server_repeats() {
    let (mut pair, eye) = Pair::watched();
    pair.link.filter = Some(Box::new(|_, datagram| {
        datagram.from == client_address() || !has_kind(datagram, PacketKind::OneRtt)
    }));
    pair.start();
    pair.run_for(Duration::from_secs(1));
    assert!(pair.client.has(&Event::Connected) && !pair.client.has(&Event::Confirmed));
    assert!(
        pair.server.has(&Event::Confirmed),
        "the server confirms at once"
    );
    pair.link.filter = None;
    assert!(pair.run_until(Duration::from_secs(5), |pair| {
        pair.client.has(&Event::Confirmed)
    }));
    pair.run_for(RTT * 4);
    let done = |frame: &Frame<'_>| matches!(frame, Frame::HandshakeDone);
    let count = |pair: &Pair| {
        eye.server_sent(pair)
            .iter()
            .filter(|sent| sent.has(done))
            .count()
    };
    let repeated = count(&pair);
    assert!(repeated >= 2);
    pair.run_for(Duration::from_secs(5));
    assert_eq!(
        count(&pair),
        repeated,
        "no repetition after the acknowledgement"
    );
}

#[test]
fn handshake_packets_that_overtake_the_initial_are_buffered() {
    let mut pair = Pair::with(Setup {
        server: crate::config::ServerConfig::new(server_tls_with_big_chain(&[b"test"], 3)),
        ..Setup::default()
    });
    let held = hold(&mut pair, |datagram| datagram.from != client_address());
    pair.start();
    pair.run_for(RTT / 2);
    let mut flight = held.borrow_mut().split_off(0);
    assert!(flight.len() >= 2, "the chain fills several datagrams");
    pair.link.filter = None;
    // A packet with the wrong source ID among them would be dropped, as it would be without
    // buffering.
    flight.reverse();
    for datagram in flight {
        pair.send_to_client(datagram.bytes);
    }
    assert!(
        pair.client.has(&Event::Connected),
        "{:?}",
        pair.client.events
    );
}

#[test]
fn at_most_ten_packets_are_buffered_before_the_handshake_is_complete() {
    // Limit K08. The client is done; its Finished is lost.
    let mut pair = Pair::new();
    let held = hold(&mut pair, is_finished);
    pair.start();
    assert!(pair.run_until(RTT * 2, |pair| pair.client.has(&Event::Connected)));
    for stream in 0..12 {
        let opens = Forgery::of(&raw(&[0x0b, 4 * stream, 1, 7]));
        pair.client_forges(SpaceId::Application, &opens);
    }
    assert!(
        pair.server
            .events
            .iter()
            .all(|event| !matches!(event, Event::Stream(_)))
    );
    assert!(
        pair.server
            .connection()
            .packets
            .protection
            .has_keys(SpaceId::Application),
        "it has the keys and does not use them"
    );
    for datagram in held.borrow_mut().split_off(0) {
        pair.send_to_server(datagram.bytes);
    }
    let opened = Event::Stream(StreamEvent::Opened {
        direction: Direction::Bidirectional,
    });
    assert!(pair.server.has(&Event::Connected) && pair.server.has(&opened));
    let streams = pair.server.connection().streams();
    let accepted = std::iter::from_fn(|| streams.accept(Direction::Bidirectional)).count();
    assert_eq!(accepted, 10);
}

#[test]
fn data_that_arrives_before_the_finished_is_delivered_with_it() {
    let mut pair = Pair::new();
    let held = hold(&mut pair, is_finished);
    pair.start();
    assert!(pair.run_until(RTT * 2, |pair| pair.client.has(&Event::Connected)));
    let streams = pair.client.connection().streams();
    let id = streams.open(Direction::Unidirectional).expect("room");
    streams.write(id, b"early").expect("room");
    pair.client.touch();
    pair.run_for(RTT);
    assert!(pair.server.connection().is_handshaking());
    for datagram in held.borrow_mut().split_off(0) {
        pair.send_to_server(datagram.bytes);
    }
    let streams = pair.server.connection().streams();
    assert_eq!(streams.accept(Direction::Unidirectional), Some(id));
    assert_eq!(streams.read(id, &mut [0; 9]), Ok(Some(5)));
}

#[test]
fn handshake_done_waits_for_the_finished() {
    let (mut pair, eye) = Pair::watched();
    let held = hold(&mut pair, is_finished);
    pair.start();
    assert!(pair.run_until(RTT * 2, |pair| pair.client.has(&Event::Connected)));
    pair.run_for(RTT * 2);
    let done = |frame: &Frame<'_>| matches!(frame, Frame::HandshakeDone);
    let is_told = |pair: &Pair| eye.server_sent(pair).iter().any(|packet| packet.has(done));
    assert!(
        pair.server
            .connection()
            .packets
            .protection
            .has_keys(SpaceId::Application),
        "it could send 1-RTT packets"
    );
    assert!(!is_told(&pair));
    for datagram in held.borrow_mut().split_off(0) {
        pair.send_to_server(datagram.bytes);
    }
    assert!(pair.server.has(&Event::Confirmed) && is_told(&pair));
}

/// Creates a pair with an initial round-trip time of two seconds, so that probes are late, and a
/// server whose certificates fill several datagrams.
fn patient() -> (Pair, Eye) {
    let mut server = crate::config::ServerConfig::new(server_tls_with_big_chain(&[b"test"], 3));
    let transport = TransportConfig {
        initial_rtt: Duration::from_secs(2),
        ..steady()
    };
    server.transport = Arc::new(transport.clone());
    let setup = Setup {
        server,
        client: transport,
        ..Setup::default()
    };
    let (setup, eye) = setup.with_eye();
    (Pair::with(setup), eye)
}

/// The server's Initial is lost, but its Handshake packets arrive.
#[test]
fn client_that_receives_early_handshake_packets_repeats_its_hello() {
    let (mut pair, eye) = patient();
    let mut is_first = true;
    pair.link.filter = Some(Box::new(move |_, datagram| {
        datagram.from == client_address() || !std::mem::take(&mut is_first)
    }));
    pair.start();
    let begun = pair.now;
    assert!(pair.run_until(Duration::from_secs(20), |pair| {
        pair.client.has(&Event::Connected)
    }));
    // The ClientHello is sent again, and so is the server's flight.
    assert_eq!(pair.now - begun, RTT * 2, "RFC 9002 §6.2.3");
    let initials = eye.client_sent(&pair);
    let hellos = initials
        .iter()
        .filter(|packet| packet.has(|frame| matches!(frame, Frame::Crypto(crypto) if crypto.offset == 0 && packet.kind == PacketKind::Initial)));
    assert_eq!(hellos.count(), 2);
}

/// The server sends as much as the first time, and nothing after that.
#[test]
fn server_that_receives_a_repeated_hello_repeats_its_flight_once() {
    let (mut pair, eye) = patient();
    let held = hold(&mut pair, |datagram| datagram.from == client_address());
    pair.start();
    pair.drive();
    pair.link.filter = Some(Box::new(|_, _| false));
    for datagram in held.borrow_mut().split_off(0) {
        pair.send_to_server(datagram.bytes);
    }
    let message = {
        let sent = eye.client_sent(&pair);
        let mut frames = sent[0].frames();
        let crypto = frames.find(|frame| matches!(frame, Frame::Crypto(_)));
        encode(&crypto.expect("a hello"))
    };
    let is_hello = |packet: &Seen| {
        packet.kind == PacketKind::Initial && packet.has(|frame| matches!(frame, Frame::Crypto(_)))
    };
    let hellos = |pair: &Pair| {
        let sent = eye.server_sent(pair);
        sent.iter().filter(|packet| is_hello(packet)).count()
    };
    let first = hellos(&pair);
    assert!(first > 0);
    for _ in 0..4 {
        pair.forge_to_server(SpaceId::Initial, &message);
        assert_eq!(hellos(&pair), 2 * first, "RFC 9002 §6.2.3");
    }
    let [received, sent] = [&pair.client.sent, &pair.server.sent]
        .map(|sent| sent.iter().map(|it| it.bytes.len()).sum::<usize>());
    // The four forged packets, each of at least 1200 bytes of frames.
    assert!(sent <= 3 * (received + 4 * 1300), "{sent} for {received}");
}

#[test]
fn handshake_done_is_repeated_for_a_client_that_still_sends_handshake_packets() {
    let (mut pair, eye) = Pair::watched();
    pair.link.filter = Some(Box::new(|_, datagram| {
        datagram.from == client_address() || !has_kind(datagram, PacketKind::OneRtt)
    }));
    pair.start();
    assert!(pair.run_until(RTT * 3, |pair| pair.server.has(&Event::Confirmed)));
    let done = |frame: &Frame<'_>| matches!(frame, Frame::HandshakeDone);
    let count = |pair: &Pair| {
        let sent = eye.server_sent(pair);
        sent.iter().filter(|packet| packet.has(done)).count()
    };
    assert_eq!(count(&pair), 1);
    pair.forge_to_server(SpaceId::Handshake, &[1]);
    assert_eq!(count(&pair), 1, "the first may still be in flight");
    pair.now += RTT;
    for _ in 0..10 {
        pair.forge_to_server(SpaceId::Handshake, &[1]);
    }
    assert_eq!(count(&pair), 2, "once per round trip");
    pair.link.filter = None;
    let late = forge(&mut pair.client, SpaceId::Handshake, &[1]);
    assert!(pair.run_until(Duration::from_secs(5), |pair| {
        pair.client.has(&Event::Confirmed)
    }));
    pair.run_for(RTT * 10);
    let all = count(&pair);
    pair.send_to_server(late);
    assert_eq!(count(&pair), all, "it was acknowledged");
}

/// Limit K12: only packets of a client with an unvalidated address must arrive every five seconds.
#[test]
fn silence_of_a_client_with_a_validated_address_does_not_end_the_handshake() {
    let mut server = crate::config::ServerConfig::new(server_tls(&[b"test"]));
    server.retry = crate::config::RetryPolicy::Always;
    let client = TransportConfig {
        initial_rtt: Duration::from_millis(100),
        ..steady()
    };
    let mut pair = Pair::with(Setup {
        server,
        client,
        ..Setup::default()
    });
    pair.start();
    let begun = pair.now;
    assert!(pair.run_until(RTT * 3, |pair| pair.server.handle.is_some()));
    let lasts = Duration::from_secs(7);
    pair.link.filter = Some(Box::new(|_, _| false));
    pair.run_for(lasts);
    pair.link.filter = None;
    let has_ended = |pair: &mut Pair| {
        let is_end = |event: &Event| matches!(event, Event::Confirmed | Event::Lost(_));
        pair.server.events.iter().any(is_end)
    };
    assert!(pair.run_until(Duration::from_secs(10), has_ended));
    assert!(
        pair.server.has(&Event::Confirmed),
        "{:?}",
        pair.server.events
    );
    assert!(pair.now - begun > lasts);
}

/// RFC 9002 §6.3: the time to the Retry is the round-trip time, and no second passes.
#[test]
fn loss_after_a_retry_costs_a_few_round_trips() {
    let mut server = crate::config::ServerConfig::new(server_tls(&[b"test"]));
    server.retry = crate::config::RetryPolicy::Always;
    let mut pair = Pair::with(Setup {
        server,
        ..Setup::default()
    });
    // The client's two datagrams and their Retry packets arrive, the next two datagrams do not.
    let mut from_client = 0;
    pair.link.filter = Some(Box::new(move |_, datagram| {
        from_client += usize::from(datagram.from == client_address());
        datagram.from != client_address() || !(3..=4).contains(&from_client)
    }));
    let begun = pair.now;
    pair.start();
    let is_confirmed = |pair: &mut Pair| pair.client.has(&Event::Confirmed);
    assert!(pair.run_until(Duration::from_secs(5), is_confirmed));
    let took = pair.now - begun;
    assert!(took > RTT * 4, "{took:?}: nothing was lost");
    assert!(took < RTT * 8, "{took:?}");
}

#[test]
fn handshake_that_exceeds_its_time_limit_ends_without_a_packet() {
    let mut pair = Pair::new();
    pair.link.filter = Some(Box::new(|_, datagram| datagram.from == client_address()));
    pair.start();
    pair.run_for(Duration::from_secs(11));
    assert!(
        pair.client
            .has(&Event::Lost(ConnectionError::HandshakeTimedOut))
    );
    let sent = pair.client.sent.len();
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.client.sent.len(), sent);
    assert_eq!(pair.client.endpoint.connections(), 0);
}
