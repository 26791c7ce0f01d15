//! Tests transport parameters in real handshakes. RFC 9000 §7.3, §7.4, §18.

use std::sync::Arc;

use courser_crypto::{ClientTls, ServerTls};
use courser_wire::frame::Frame;

use super::*;
use crate::config::{RetryPolicy, ServerConfig, TransportConfig};
use crate::testing::identity::{client_tls, server_tls};
use crate::testing::tampering::{Tampered, join_parameters, split_parameters, varint};
use crate::testing::{Setup, steady};

type Parameters = Vec<(u64, Vec<u8>)>;

const ORIGINAL_DESTINATION: u64 = 0x00;
const MAX_IDLE_TIMEOUT: u64 = 0x01;
const RESET_TOKEN: u64 = 0x02;
const MAX_UDP_PAYLOAD_SIZE: u64 = 0x03;
const MAX_DATA: u64 = 0x04;
const MAX_STREAM_DATA_UNI: u64 = 0x07;
const MAX_STREAMS_BIDI: u64 = 0x08;
const MAX_STREAMS_UNI: u64 = 0x09;
const ACK_DELAY_EXPONENT: u64 = 0x0a;
const MAX_ACK_DELAY: u64 = 0x0b;
const MIN_ACK_DELAY: u64 = 0xff04_de1b;
const DISABLE_ACTIVE_MIGRATION: u64 = 0x0c;
const PREFERRED_ADDRESS: u64 = 0x0d;
const CID_LIMIT: u64 = 0x0e;
const INITIAL_SOURCE: u64 = 0x0f;
const RETRY_SOURCE: u64 = 0x10;

/// Replaces or adds a parameter.
fn set(parameters: &mut Parameters, id: u64, content: Vec<u8>) {
    remove(parameters, id);
    parameters.push((id, content));
}

fn remove(parameters: &mut Parameters, id: u64) {
    parameters.retain(|(known, _)| *known != id);
}

fn changed(change: impl Fn(&mut Parameters)) -> impl Fn(Vec<u8>) -> Vec<u8> {
    move |bytes| {
        let mut parameters = split_parameters(&bytes);
        change(&mut parameters);
        join_parameters(&parameters)
    }
}

/// Returns a setup whose client sends other parameters than it applies.
fn with_client(change: impl Fn(Vec<u8>) -> Vec<u8> + Send + Sync + 'static) -> Setup {
    let tls: Arc<dyn ClientTls> = Tampered::parameters(client_tls(&[b"test"]), change);
    Setup {
        client_tls: tls,
        ..Setup::default()
    }
}

/// Returns a setup whose server sends other parameters than it applies.
fn with_server(change: impl Fn(Vec<u8>) -> Vec<u8> + Send + Sync + 'static) -> Setup {
    let tls: Arc<dyn ServerTls> = Tampered::parameters(server_tls(&[b"test"]), change);
    Setup {
        server: ServerConfig::new(tls),
        ..Setup::default()
    }
}

/// Asserts that the server refuses the client's parameters and that the client receives the error.
fn assert_server_refuses(case: &str, change: impl Fn(&mut Parameters) + Send + Sync + 'static) {
    let mut pair = Pair::with(with_client(changed(change)));
    pair.start();
    pair.run_for(RTT * 2);
    assert_eq!(pair.server_error(), Some(0x08), "{case}");
    assert_eq!(pair.close_received_by_client(), Some(0x08), "{case}");
    assert!(!pair.server.has(&Event::Connected), "{case}");
}

fn assert_client_refuses(case: &str, change: impl Fn(&mut Parameters) + Send + Sync + 'static) {
    let mut pair = Pair::with(with_server(changed(change)));
    pair.start();
    pair.run_for(RTT * 2);
    assert_eq!(pair.client_error(), Some(0x08), "{case}");
    assert_eq!(pair.close_received_by_server(), Some(0x08), "{case}");
    assert!(!pair.client.has(&Event::Connected), "{case}");
}

/// Encodes a preferred address with this ID.
fn preferred(id: &[u8]) -> Vec<u8> {
    let len = u8::try_from(id.len()).expect("short");
    [&[10, 0, 0, 3, 1, 1][..], &[0; 18], &[len], id, &[0x77; 16]].concat()
}

/// Returns contents that neither end may send.
fn bad_for_both() -> Vec<(&'static str, u64, Vec<u8>)> {
    vec![
        (
            "max_udp_payload_size of 1199",
            MAX_UDP_PAYLOAD_SIZE,
            varint(1199),
        ),
        ("ack_delay_exponent of 21", ACK_DELAY_EXPONENT, varint(21)),
        ("max_ack_delay of 2^14", MAX_ACK_DELAY, varint(1 << 14)),
        (
            "min_ack_delay above max_ack_delay",
            MIN_ACK_DELAY,
            varint(25_001),
        ),
        ("active_connection_id_limit of 1", CID_LIMIT, varint(1)),
        ("active_connection_id_limit of 0", CID_LIMIT, varint(0)),
        (
            "disable_active_migration with content",
            DISABLE_ACTIVE_MIGRATION,
            vec![0],
        ),
        (
            "initial_max_streams_bidi past 2^60",
            MAX_STREAMS_BIDI,
            varint((1 << 60) + 1),
        ),
        (
            "initial_max_streams_uni past 2^60",
            MAX_STREAMS_UNI,
            varint((1 << 60) + 1),
        ),
        ("varint with a byte too many", MAX_DATA, vec![5, 0]),
        ("varint cut short", MAX_DATA, vec![0xc0, 0, 0]),
        ("empty varint", MAX_IDLE_TIMEOUT, vec![]),
        (
            "initial_source_connection_id of 21 bytes",
            INITIAL_SOURCE,
            vec![1; 21],
        ),
        (
            "initial_source_connection_id of another",
            INITIAL_SOURCE,
            vec![1; 8],
        ),
        ("empty initial_source_connection_id", INITIAL_SOURCE, vec![]),
    ]
}

#[test]
fn server_refuses_malformed_parameters() {
    for (case, id, content) in bad_for_both() {
        assert_server_refuses(case, move |parameters| set(parameters, id, content.clone()));
    }
}

#[test]
fn client_refuses_malformed_parameters() {
    for (case, id, content) in bad_for_both() {
        assert_client_refuses(case, move |parameters| set(parameters, id, content.clone()));
    }
}

#[test]
fn server_refuses_parameters_that_only_servers_may_send() {
    for (case, id, content) in [
        (
            "original_destination_connection_id",
            ORIGINAL_DESTINATION,
            vec![1; 8],
        ),
        ("stateless_reset_token", RESET_TOKEN, vec![1; 16]),
        ("preferred_address", PREFERRED_ADDRESS, preferred(&[9; 8])),
        ("retry_source_connection_id", RETRY_SOURCE, vec![1; 8]),
    ] {
        assert_server_refuses(case, move |parameters| set(parameters, id, content.clone()));
    }
}

#[test]
fn client_refuses_malformed_parameters_of_servers() {
    let long = preferred(&[9; 21]);
    let mut short = preferred(&[9; 8]);
    short.pop();
    for (case, id, content) in [
        (
            "original_destination_connection_id of another",
            ORIGINAL_DESTINATION,
            vec![1; 8],
        ),
        (
            "stateless_reset_token of 15 bytes",
            RESET_TOKEN,
            vec![1; 15],
        ),
        (
            "stateless_reset_token of 17 bytes",
            RESET_TOKEN,
            vec![1; 17],
        ),
        (
            "preferred_address without an ID",
            PREFERRED_ADDRESS,
            preferred(&[]),
        ),
        (
            "preferred_address with an ID of 21 bytes",
            PREFERRED_ADDRESS,
            long,
        ),
        ("preferred_address cut short", PREFERRED_ADDRESS, short),
        (
            "retry_source_connection_id without Retry",
            RETRY_SOURCE,
            vec![1; 8],
        ),
    ] {
        assert_client_refuses(case, move |parameters| set(parameters, id, content.clone()));
    }
}

#[test]
fn missing_ids_are_refused() {
    assert_server_refuses("initial_source", |parameters| {
        remove(parameters, INITIAL_SOURCE)
    });
    assert_client_refuses("initial_source", |parameters| {
        remove(parameters, INITIAL_SOURCE)
    });
    assert_client_refuses("original", |parameters| {
        remove(parameters, ORIGINAL_DESTINATION)
    });
    assert_server_refuses("all", Vec::clear);
    assert_client_refuses("all", Vec::clear);
}

#[test]
fn repeated_parameters_are_refused() {
    for id in [MAX_DATA, 0x1234_5678] {
        let repeat = move |parameters: &mut Parameters| {
            remove(parameters, id);
            parameters.extend([(id, varint(500)), (id, varint(500))]);
        };
        assert_server_refuses(&format!("{id:#x}"), repeat);
        assert_client_refuses(&format!("{id:#x}"), repeat);
    }
}

#[test]
fn length_past_the_extension_is_refused() {
    let cut = |mut bytes: Vec<u8>| {
        bytes.extend([0x20, 5, 1, 1]);
        bytes
    };
    let mut pair = Pair::with(with_client(cut));
    pair.start();
    pair.run_for(RTT * 2);
    assert_eq!(pair.server_error(), Some(0x08));
    assert_eq!(pair.close_received_by_client(), Some(0x08));
}

#[test]
fn unknown_and_reserved_parameters_are_skipped() {
    let add = |parameters: &mut Parameters| {
        parameters.push((31 * 3 + 27, vec![1, 2, 3]));
        parameters.push((31 * 1_000_000 + 27, vec![]));
        parameters.push((0x21, varint(65_535)));
        parameters.push(((1 << 62) - 1, vec![0; 100]));
    };
    Pair::with(with_client(changed(add))).connect();
    Pair::with(with_server(changed(add))).connect();
}

/// The peer announces no extension. No frame of one is sent, so nothing can fail.
#[test]
fn peer_without_extensions_gets_none_of_their_frames() {
    const KNOWN: std::ops::RangeInclusive<u64> = ORIGINAL_DESTINATION..=RETRY_SOURCE;
    let plain = |parameters: &mut Parameters| parameters.retain(|(id, _)| KNOWN.contains(id));
    for is_client_plain in [true, false] {
        let setup = match is_client_plain {
            true => with_client(changed(plain)),
            false => with_server(changed(plain)),
        };
        let mut pair = Pair::with(setup);
        pair.connect();
        pair.download(500_000);
        pair.upload(500_000);
        let timeouts = pair.client.connection().stats().ptos;
        assert_eq!(timeouts, 0, "plain client: {is_client_plain}");
        let (receives_plain, end) = match is_client_plain {
            true => ("client", &mut pair.server),
            false => ("server", &mut pair.client),
        };
        let connection = end.connection();
        assert_eq!(connection.max_datagram_size(), None, "{receives_plain}");
        let sent = connection.stats().frames_sent;
        let extensions = [
            sent.ack_frequency,
            sent.immediate_ack,
            sent.datagram,
            sent.reset_stream_at,
        ];
        assert_eq!(extensions, [0; 4], "{receives_plain}");
    }
}

/// A peer that does not skip unknown parameters sends an error, so that no timeout passes.
#[test]
fn parameters_that_a_peer_refuses_end_the_attempt_within_a_round_trip() {
    let refused = |parameters: &mut Parameters| set(parameters, ACK_DELAY_EXPONENT, varint(21));
    let mut pair = Pair::with(with_client(changed(refused)));
    pair.start();
    let is_over = |pair: &mut Pair| pair.close_received_by_client() == Some(0x08);
    assert!(pair.run_until(RTT * 3 / 2, is_over));
    assert_eq!(pair.client.connection().stats().ptos, 0);
}

#[test]
fn retry_source_must_be_present_and_correct_after_retry() {
    let with_retry = |change: fn(&mut Parameters)| {
        let mut setup = with_server(changed(change));
        setup.server.retry = RetryPolicy::Always;
        let mut pair = Pair::with(setup);
        pair.start();
        pair.run_for(RTT * 4);
        pair
    };
    let pair = with_retry(|_| {});
    assert!(pair.client.has(&Event::Confirmed));
    assert!(pair.server.endpoint.stats().retries_sent > 0);
    for (case, change) in [
        (
            "missing",
            (|parameters| remove(parameters, RETRY_SOURCE)) as fn(&mut Parameters),
        ),
        ("another", |parameters| {
            set(parameters, RETRY_SOURCE, vec![1; 8])
        }),
        ("original", |parameters| {
            set(parameters, ORIGINAL_DESTINATION, vec![1; 8])
        }),
    ] {
        let mut pair = with_retry(change);
        assert_eq!(pair.client_error(), Some(0x08), "{case}");
        assert_eq!(pair.close_received_by_server(), Some(0x08), "{case}");
    }
}

#[test]
fn preferred_address_counts_as_the_first_additional_id() {
    let add = |parameters: &mut Parameters| {
        set(parameters, PREFERRED_ADDRESS, preferred(&[9; 8]));
    };
    let mut pair = Pair::with(with_server(changed(add)));
    pair.start();
    assert!(pair.run_until(RTT * 2, |pair| pair.client.has(&Event::Connected)));
    assert_eq!(pair.client.connection().ids_mut().peer().spare(), 1);
    assert_eq!(
        pair.client.connection().path().peer,
        pair.server.address,
        "it is not used before it has answered"
    );
}

#[test]
fn no_parameter_is_sent_twice() {
    let check = |bytes: Vec<u8>| {
        let mut ids: Vec<_> = split_parameters(&bytes)
            .into_iter()
            .map(|(id, _)| id)
            .collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
        bytes
    };
    Pair::with(with_client(check)).connect();
    Pair::with(with_server(check)).connect();
}

#[test]
fn parameters_that_are_not_sent_have_their_defaults() {
    let none = |parameters: &mut Parameters| {
        parameters.retain(|(id, _)| [ORIGINAL_DESTINATION, INITIAL_SOURCE].contains(id));
    };
    let mut pair = Pair::with(with_server(changed(none)));
    pair.connect();
    let connection = pair.client.connection();
    for direction in [Direction::Bidirectional, Direction::Unidirectional] {
        assert_eq!(
            connection.streams().open(direction),
            None,
            "no streams: {direction:?}"
        );
    }
    let peer = connection.parts.handshake.peer_parameters().expect("known");
    assert_eq!((peer.ack_delay_exponent, peer.max_ack_delay), (3, 25));
    assert_eq!(
        (peer.active_connection_id_limit, peer.max_idle_timeout),
        (2, 0)
    );
    assert_eq!(connection.ids().active().count(), 2);
}

#[test]
fn limits_of_the_peer_are_respected() {
    let small = |parameters: &mut Parameters| {
        set(parameters, MAX_DATA, varint(1000));
        set(parameters, MAX_STREAM_DATA_UNI, varint(700));
        set(parameters, MAX_STREAMS_UNI, varint(2));
    };
    let (setup, eye) = with_server(changed(small)).with_eye();
    let mut pair = Pair::with(setup);
    pair.connect();
    let streams = pair.client.connection().streams();
    let mut open = || streams.open(Direction::Unidirectional);
    let ids = [(); 2].map(|()| open().expect("two are allowed"));
    assert_eq!(open(), None);
    for _ in 0..2 {
        for id in ids {
            let _ = pair.client.connection().streams().write(id, &[7; 2000]);
        }
        pair.client.touch();
        pair.drive();
    }
    // The server, which is unaware of the change, answers our BLOCKED frames.
    pair.run_for(RTT / 2);
    let (mut all, mut longest) = (0, 0);
    for packet in eye.client_sent(&pair) {
        for frame in packet.frames() {
            if let Frame::Stream(frame) = frame {
                all += frame.data.len();
                longest = longest.max(frame.offset + frame.data.len() as u64);
            }
        }
    }
    assert_eq!((all, longest), (1000, 700));
}

#[test]
fn smaller_idle_timeout_counts_at_both_ends() {
    let transport = TransportConfig {
        max_idle_timeout: Some(Duration::from_secs(3)),
        ..steady()
    };
    let mut pair = Pair::with(Setup {
        client: transport,
        ..Setup::default()
    });
    pair.connect();
    let (client, server) = (pair.client.sent.len(), pair.server.sent.len());
    pair.run_for(Duration::from_millis(2800));
    assert!(!pair.server.connection().is_closed() && !pair.client.connection().is_closed());
    pair.run_for(Duration::from_millis(400));
    for end in [&pair.client, &pair.server] {
        assert!(end.has(&Event::Lost(ConnectionError::TimedOut)));
        assert_eq!(end.endpoint.connections(), 0);
    }
    assert_eq!(
        (pair.client.sent.len(), pair.server.sent.len()),
        (client, server),
        "in silence"
    );
}

#[test]
fn huge_idle_timeout_and_limits_are_accepted() {
    let huge = |parameters: &mut Parameters| {
        let most = varint((1 << 62) - 1);
        for id in [
            MAX_IDLE_TIMEOUT,
            MAX_UDP_PAYLOAD_SIZE,
            MAX_DATA,
            MAX_STREAM_DATA_UNI,
            CID_LIMIT,
        ] {
            set(parameters, id, most.clone());
        }
        set(parameters, MAX_STREAMS_UNI, varint(1 << 60));
        set(parameters, MAX_ACK_DELAY, varint((1 << 14) - 1));
        set(parameters, ACK_DELAY_EXPONENT, varint(20));
    };
    let mut setup = with_server(changed(huge));
    setup.client.max_idle_timeout = None;
    let mut pair = Pair::with(setup);
    pair.connect();
    pair.run_for(Duration::from_secs(3600));
    assert!(!pair.client.connection().is_closed());
}

/// Returns the ID that a server issues first, and its token. A preferred address must contain
/// these, because it has the same sequence number (RFC 9000 §5.1.1).
fn first_id_of_server() -> (Vec<u8>, [u8; 16]) {
    let (mut pair, eye) = Pair::watched();
    pair.connect();
    let packets = eye.server_sent(&pair);
    let mut frames = packets.iter().flat_map(|packet| packet.frames());
    let found = frames.find_map(|frame| match frame {
        Frame::NewConnectionId(frame) if frame.sequence == 1 => {
            Some((frame.id.to_vec(), frame.reset_token))
        }
        _ => None,
    });
    found.expect("it gives out IDs")
}

/// Fault F24: the server prefers an address that is unreachable. The client stays where it is.
#[test]
fn unreachable_preferred_address_has_no_effect() {
    let (id, token) = first_id_of_server();
    let offer = move |parameters: &mut Parameters| {
        let mut content = preferred(&id);
        let at = content.len() - token.len();
        content[at..].copy_from_slice(&token);
        set(parameters, PREFERRED_ADDRESS, content);
    };
    let mut pair = Pair::with(with_server(changed(offer)));
    pair.connect();
    let streams = pair.client.connection().streams();
    let id = streams.open(Direction::Unidirectional).expect("room");
    assert_eq!(streams.write(id, &[7; 60_000]), Ok(60_000));
    pair.client.touch();
    pair.run_for(RTT * 50);
    let received = pair.server.connection().stats().data_received;
    assert_eq!(received, 60_000);
    let server = pair.server.address;
    assert_eq!(pair.client.connection().path().peer, server);
    let elsewhere = pair.client.sent.iter().filter(|sent| sent.to != server);
    let sizes: Vec<_> = elsewhere.map(|sent| sent.bytes.len()).collect();
    assert!(sizes.len() <= 3, "limit K160: {sizes:?}");
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
}
