//! Early data (0-RTT) between two ends. RFC 9001 §4.6, §4.9.3, §5.6, RFC 9000 §7.4.1.

use courser_crypto::{TAG_LEN, header_protection};
use courser_wire::packet::{LongHeader, PacketKind, patch_length};
use courser_wire::version::VERSION_1;
use courser_wire::{StreamId, Version, Writer, packet_number};

use super::*;
use crate::config::{RetryPolicy, ServerConfig, TransportConfig};
use crate::connection::EarlyData;
use crate::datagram::{SendDatagramError, SendOptions};
use crate::stream::{ReadError, ResetAtError, WriteError};
use crate::testing::identity::{client_tls_with_early_data, server_tls_with_early_data};
use crate::testing::tampering::{Secrets, Tampered, join_parameters, split_parameters, varint};
use crate::testing::{End, Setup, steady};

mod hostile;
mod rejected;

/// Returns a setup whose ends support early data.
fn setup() -> Setup {
    let mut server = ServerConfig::new(server_tls_with_early_data(&[b"test"]));
    server.transport = Arc::new(steady());
    Setup {
        server,
        client_tls: client_tls_with_early_data(&[b"test"]),
        ..Setup::default()
    }
}

/// Connects once and closes, so that the client has tickets and tokens.
fn met(setup: Setup) -> Pair {
    let mut pair = Pair::with(setup);
    meet(&mut pair);
    pair
}

fn meet(pair: &mut Pair) {
    pair.connect();
    let now = pair.now;
    pair.client.connection().close(now, 0, b"");
    pair.client.touch();
    pair.run_for(Duration::from_secs(5));
    for end in [&mut pair.client, &mut pair.server] {
        end.events.clear();
        end.sent.clear();
        end.handle = None;
    }
}

/// Opens a stream on an end and writes all of it.
fn send(end: &mut End, data: &[u8]) -> StreamId {
    let streams = end.connection().streams();
    let id = streams.open(Direction::Bidirectional).expect("room");
    assert_eq!(streams.write(id, data), Ok(data.len()));
    streams.finish(id).expect("it is open");
    end.touch();
    id
}

/// Reads what has arrived on a stream.
fn read(end: &mut End, id: StreamId) -> Vec<u8> {
    let mut all = Vec::new();
    while let Ok(Some(chunk)) = end.connection().streams().read_chunk(id, usize::MAX) {
        all.extend_from_slice(&chunk);
    }
    end.touch();
    all
}

fn has_arrived(pair: &mut Pair) -> bool {
    pair.server.handle.is_some() && pair.server.connection().stats().data_received > 0
}

/// Starts a connection whose client sends `data` in early data.
fn start_with(pair: &mut Pair, data: &[u8]) -> StreamId {
    pair.start();
    assert_eq!(
        pair.client.connection().stats().early_data,
        EarlyData::Offered
    );
    send(&mut pair.client, data)
}

#[test]
fn early_data_arrives_within_half_a_round_trip_and_is_answered_within_one() {
    let mut pair = met(setup());
    let begun = pair.now;
    let id = start_with(&mut pair, b"request");
    assert!(pair.run_until(RTT, has_arrived));
    assert_eq!(pair.now - begun, RTT / 2);
    let server = pair.server.connection();
    assert!(server.is_handshaking());
    assert_eq!(server.stats().early_data, EarlyData::Accepted);
    assert!(server.streams().is_early(id));
    let accepted = server.streams().accept(Direction::Bidirectional);
    assert_eq!(accepted, Some(id));
    assert_eq!(read(&mut pair.server, id), b"request");
    let streams = pair.server.connection().streams();
    assert_eq!(streams.write(id, b"answer"), Ok(6));
    pair.server.touch();
    assert!(pair.run_until(RTT, |pair| pair.client.has(&Event::Connected)));
    assert_eq!(pair.now - begun, RTT, "0.5-RTT data");
    assert_eq!(read(&mut pair.client, id), b"answer");
    assert_eq!(
        pair.client.connection().stats().early_data,
        EarlyData::Accepted
    );
    assert!(!pair.client.has(&Event::EarlyDataRejected));
    assert_eq!(pair.server.connection().stats().early_packets_dropped, 0);
    pair.run_for(RTT * 3);
    assert!(pair.client.has(&Event::Confirmed) && pair.server.has(&Event::Confirmed));
    let later = send(&mut pair.client, b"later");
    assert!(!pair.client.connection().streams().is_early(later));
    assert!(pair.client.connection().streams().is_early(id));
}

#[test]
fn without_a_ticket_nothing_can_be_opened_early() {
    let mut pair = Pair::with(setup());
    pair.start();
    assert_eq!(pair.client.connection().stats().early_data, EarlyData::None);
    let streams = pair.client.connection().streams();
    assert_eq!(streams.open(Direction::Bidirectional), None);
    assert!(pair.run_until(RTT * 2, |pair| pair.server.has(&Event::Connected)));
    assert_eq!(pair.server.connection().stats().early_data, EarlyData::None);
}

#[test]
fn clients_that_do_not_offer_early_data_resume_without() {
    let mut setup = setup();
    setup.client_tls = crate::testing::identity::client_tls(&[b"test"]);
    let mut pair = met(setup);
    pair.start();
    assert_eq!(pair.client.connection().stats().early_data, EarlyData::None);
    assert!(pair.run_until(RTT * 2, |pair| pair.server.has(&Event::Connected)));
    let data = pair.server.connection().handshake_data().expect("complete");
    assert!(data.resumed);
    assert_eq!(pair.server.connection().stats().early_data, EarlyData::None);
}

#[test]
fn datagrams_are_sent_in_early_data() {
    let mut pair = met(setup());
    pair.start();
    let now = pair.now;
    let sent = pair.client.connection().send_datagram(
        now,
        bytes::Bytes::from_static(b"tick"),
        SendOptions::default(),
    );
    assert_eq!(sent, Ok(None));
    pair.client.touch();
    assert!(pair.run_until(RTT, |pair| {
        pair.server.handle.is_some() && pair.server.connection().stats().datagrams.received > 0
    }));
    assert!(pair.server.connection().is_handshaking());
    let received = pair.server.connection().datagrams().receive();
    assert_eq!(received.as_deref(), Some(&b"tick"[..]));
}

/// The extension is remembered (draft-ietf-quic-reliable-stream-reset-10 §3).
#[test]
fn reset_at_in_early_data_delivers_the_beginning() {
    let mut pair = met(setup());
    pair.start();
    let streams = pair.client.connection().streams();
    let id = streams.open(Direction::Unidirectional).expect("room");
    assert_eq!(streams.write(id, &[7; 3_000]), Ok(3_000));
    assert_eq!(streams.reset_at(id, 9, 1_000), Ok(()));
    pair.client.touch();
    pair.run_for(RTT * 3 / 4);
    let server = pair.server.connection();
    assert!(server.is_handshaking());
    assert_eq!(server.stats().early_data, EarlyData::Accepted);
    let streams = server.streams();
    assert_eq!(streams.accept(Direction::Unidirectional), Some(id));
    let mut all = Vec::new();
    let end = loop {
        match streams.read_chunk(id, usize::MAX) {
            Ok(Some(chunk)) => all.extend_from_slice(&chunk),
            end => break end,
        }
    };
    assert_eq!((all, end), (vec![7; 1_000], Err(ReadError::Reset(9))));
    pair.server.touch();
    pair.run_for(RTT * 3);
    assert!(pair.client.has(&Event::Confirmed));
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
}

/// The server must not withdraw the extension (draft-ietf-quic-reliable-stream-reset-10 §3).
#[test]
fn early_data_uses_only_what_the_server_offered_before() {
    let mut setup = setup();
    let on = Arc::clone(&setup.server.transport);
    setup.server.transport = Arc::new(TransportConfig {
        reset_stream_at: false,
        ..steady()
    });
    let mut pair = met(setup);
    let mut config = ServerConfig::clone(&pair.server_config);
    config.transport = on;
    pair.server
        .endpoint
        .set_server_config(Some(Arc::new(config)));
    let id = start_with(&mut pair, b"request");
    let streams = pair.client.connection().streams();
    let early = streams.reset_at(id, 9, 3);
    assert_eq!(early, Err(ResetAtError::Unsupported));
    assert!(pair.run_until(RTT * 2, |pair| pair.client.has(&Event::Connected)));
    let client = pair.client.connection();
    assert_eq!(client.stats().early_data, EarlyData::Accepted);
    let id = client.streams().open(Direction::Bidirectional);
    let id = id.expect("room");
    assert_eq!(client.streams().write(id, b"later"), Ok(5));
    assert_eq!(client.streams().reset_at(id, 9, 3), Ok(()));
}

#[test]
fn early_data_fills_the_first_window() {
    let mut pair = met(setup());
    let data = vec![7; 60_000];
    let id = start_with(&mut pair, &data);
    assert!(pair.run_until(RTT, |pair| pair.client.has(&Event::Connected)));
    let early = pair.server.connection().stats().data_received;
    assert!(
        (7_000..12_000).contains(&early),
        "{early} bytes before the handshake"
    );
    pair.server
        .connection()
        .streams()
        .accept(Direction::Bidirectional);
    let mut all = Vec::new();
    for _ in 0..20 {
        all.extend(read(&mut pair.server, id));
        pair.run_for(RTT);
    }
    assert_eq!(all, data);
}

/// Runs until the server has read `len` bytes of a stream, and returns them.
fn read_all(pair: &mut Pair, id: StreamId, len: usize) -> Vec<u8> {
    let mut all = Vec::new();
    let end = pair.now + Duration::from_secs(60);
    while all.len() < len && pair.now < end {
        pair.run_for(RTT / 4);
        if pair.server.handle.is_some() {
            pair.server
                .connection()
                .streams()
                .accept(Direction::Bidirectional);
            all.extend(read(&mut pair.server, id));
        }
    }
    all
}

#[test]
fn lost_early_data_is_sent_again() {
    let mut pair = met(setup());
    let id = start_with(&mut pair, &[3; 5_000]);
    // The first datagrams have the ClientHello; all later ones of the first flight are lost.
    let mut count = 0;
    let held = hold(&mut pair, move |datagram| {
        count += usize::from(datagram.to.port() == 4433);
        datagram.to.port() == 4433 && (2..6).contains(&count)
    });
    assert!(read_all(&mut pair, id, 5_000) == [3; 5_000]);
    assert!(!held.borrow().is_empty(), "packets were lost");
}

#[test]
fn early_data_survives_losses_and_reordering() {
    for seed in 0..100 {
        let mut pair = met(Setup { seed, ..setup() });
        (pair.link.loss, pair.link.reorder, pair.link.duplicate) = (200, 300, 100);
        // A part of the first window, or more than it.
        let len = if seed % 2 == 0 { 6_000 } else { 30_000 };
        let data: Vec<u8> = (0..len).map(|at| u32::to_le_bytes(at)[0] ^ seed).collect();
        let id = start_with(&mut pair, &data);
        let all = read_all(&mut pair, id, data.len());
        assert!(all == data, "seed {seed}: {} bytes", all.len());
        let is_connected = |pair: &mut Pair| pair.client.has(&Event::Connected);
        assert!(pair.run_until(Duration::from_secs(60), is_connected));
        let state = pair.client.connection().stats().early_data;
        assert_eq!(state, EarlyData::Accepted, "seed {seed}");
    }
}

#[test]
fn early_data_survives_a_retry() {
    let mut setup = setup();
    setup.server.retry = RetryPolicy::Always;
    let mut pair = Pair::with(setup);
    pair.client_config.tokens = None;
    meet(&mut pair);
    let begun = pair.now;
    let id = start_with(&mut pair, b"request");
    assert!(pair.run_until(RTT * 3, has_arrived));
    assert_eq!(pair.now - begun, RTT * 3 / 2);
    assert!(pair.server.connection().is_handshaking());
    pair.server
        .connection()
        .streams()
        .accept(Direction::Bidirectional);
    assert_eq!(read(&mut pair.server, id), b"request");
    pair.run_for(RTT * 4);
    let in_flight = pair
        .client
        .connection()
        .packets
        .recovery
        .bytes_in_flight_of_all_paths();
    assert_eq!(
        in_flight, 0,
        "packets that the server dropped do not count as lost"
    );
}

#[test]
fn early_data_that_overtakes_the_client_hello_waits_for_it() {
    let mut pair = met(setup());
    let id = start_with(&mut pair, &[9; 4_000]);
    let mut count = 0;
    let held = hold(&mut pair, move |datagram| {
        count += usize::from(datagram.to.port() == 4433);
        datagram.to.port() == 4433 && count == 1
    });
    pair.run_for(RTT * 3 / 5);
    let first = held.borrow_mut().pop().expect("a datagram was held back");
    assert!(
        pair.server.handle.is_some(),
        "the rest of the ClientHello has arrived"
    );
    assert_eq!(pair.server.connection().stats().data_received, 0);
    pair.link.filter = None;
    pair.deliver(first);
    pair.drive();
    let received = pair.server.connection().stats().data_received;
    assert!(received > 2_000, "{received} bytes had waited");
    assert!(pair.server.connection().is_handshaking());
    pair.run_for(RTT * 3);
    pair.server
        .connection()
        .streams()
        .accept(Direction::Bidirectional);
    assert_eq!(read(&mut pair.server, id), [9; 4_000]);
}

#[test]
fn client_discards_0_rtt_keys_when_it_has_1_rtt_keys() {
    let mut pair = met(setup());
    start_with(&mut pair, b"request");
    assert!(pair.client.connection().packets.protection.seals_zero_rtt());
    assert!(pair.run_until(RTT * 2, |pair| pair.client.has(&Event::Connected)));
    assert!(!pair.client.connection().packets.protection.seals_zero_rtt());
}

#[test]
fn server_discards_0_rtt_keys_three_probe_timeouts_after_the_first_1_rtt_packet() {
    let mut pair = met(setup());
    start_with(&mut pair, b"request");
    assert!(pair.run_until(RTT * 2, |pair| pair.client.has(&Event::Connected)));
    send(&mut pair.client, b"in a 1-RTT packet");
    assert!(pair.run_until(RTT, |pair| {
        pair.server.connection().stats().data_received > 7
    }));
    let server = pair.server.connection();
    assert!(server.packets.protection.opens_zero_rtt());
    let pto = server.packets.recovery.pto();
    let due = server
        .packets
        .protection
        .next_timeout()
        .expect("the keys have a deadline");
    assert!(due > pair.now + pto * 2 && due <= pair.now + pto * 4);
    pair.run_for(pto * 5);
    assert!(!pair.server.connection().packets.protection.opens_zero_rtt());
    assert_eq!(
        pair.server.connection().packets.protection.next_timeout(),
        None
    );
}

#[test]
fn early_data_above_the_limit_is_accepted_after_the_handshake() {
    let mut setup = setup();
    setup.server.max_early_data = 3_000;
    let mut pair = met(setup);
    let id = start_with(&mut pair, &[5; 9_000]);
    assert!(pair.run_until(RTT, |pair| pair.client.has(&Event::Connected)));
    let early = pair.server.connection().stats().data_received;
    assert!(early > 0 && early <= 3_000, "{early} bytes, limit K153");
    assert!(pair.server.connection().stats().early_packets_dropped > 0);
    pair.run_for(RTT * 20);
    pair.server
        .connection()
        .streams()
        .accept(Direction::Bidirectional);
    assert_eq!(read(&mut pair.server, id), [5; 9_000]);
}

#[test]
fn acknowledged_0_rtt_packet_does_not_confirm_the_handshake() {
    let mut pair = met(setup());
    start_with(&mut pair, b"request");
    assert!(pair.run_until(RTT * 2, |pair| pair.client.has(&Event::Connected)));
    // The server has acknowledged early data before it has the client's Finished.
    pair.drive();
    let client = pair.client.connection();
    assert!(client.stats().data_acked > 0);
    assert!(!client.is_confirmed(), "RFC 9001 §4.1.2");
    assert!(pair.run_until(RTT, |pair| pair.client.has(&Event::Confirmed)));
}
