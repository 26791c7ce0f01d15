//! A handshake without a connection, driven by a TLS session that follows a script.

use std::collections::VecDeque;

use courser_crypto::{EncryptionLevel, TlsError};
use courser_wire::packet::MIN_INITIAL_DATAGRAM;
use courser_wire::{TransportErrorCode, VERSION_1, Version, Versions};

use super::*;
use crate::space::sent::FrameLists;

/// A TLS session that writes what its script says and reads everything.
#[derive(Default)]
struct Script {
    writes: VecDeque<(Vec<u8>, Option<KeyChange>)>,
    parameters: Option<Vec<u8>>,
    /// Bytes that were read.
    read: usize,
    /// The handshake is over once so many bytes were read.
    complete_after: usize,
}

impl TlsSession for Script {
    fn read(&mut self, _: EncryptionLevel, data: &[u8]) -> Result<(), TlsError> {
        self.read += data.len();
        match data.contains(&b'!') {
            true => Err(TlsError::alert(40, "refused")),
            false => Ok(()),
        }
    }

    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyChange> {
        let (bytes, change) = self.writes.pop_front()?;
        out.extend(bytes);
        change
    }

    fn is_handshaking(&self) -> bool {
        self.read < self.complete_after
    }

    fn peer_transport_parameters(&self) -> Option<&[u8]> {
        self.parameters.as_deref().filter(|_| self.read > 0)
    }

    fn handshake_data(&self) -> HandshakeData {
        HandshakeData::default()
    }

    fn peer_certificates(&self) -> Option<Vec<Vec<u8>>> {
        None
    }

    fn exporter(&self) -> Option<Exporter> {
        None
    }

    fn can_be_dropped(&self) -> bool {
        true
    }
}

const TIMEOUT: Duration = Duration::from_secs(10);

fn id(byte: u8) -> ConnectionId {
    ConnectionId::new(&[byte; 8]).expect("eight bytes")
}

fn beginning(script: Script, version: Negotiation) -> Beginning {
    Beginning {
        now: Time::ZERO,
        timeout: TIMEOUT,
        tls: Box::new(script),
        offloads_tls: false,
        version,
        crypto_buffer: None,
    }
}

fn server(script: Script) -> Handshake {
    let ids = HandshakeIds::of_server(id(1), id(9), id(2), None);
    let version = Negotiation::of_server(Versions::V1, false, Version::V1);
    Handshake::server(beginning(script, version), ids, 0)
}

fn client(script: Script) -> Handshake {
    let ids = HandshakeIds::of_client(id(2), id(9));
    let version = Negotiation::of_client(Versions::V1, None);
    Handshake::client(beginning(script, version), ids, None, None)
}

/// The parameters of a client whose source ID is `source`.
fn client_parameters(source: u8) -> Vec<u8> {
    let parameters = TransportParameters {
        initial_source_connection_id: Some(id(source)),
        ..TransportParameters::default()
    };
    let mut bytes = Vec::new();
    parameters.encode(&mut bytes, None);
    bytes
}

fn receive(handshake: &mut Handshake, space: SpaceId, data: &[u8]) -> Result<bool, TransportError> {
    handshake.open_space(space);
    let offset = handshake
        .crypto()
        .get(space)
        .map_or(0, |stream| stream.read_offset());
    handshake.on_crypto_frame(space, &Crypto { offset, data })
}

fn packet(kind: PacketKind, source: u8) -> Packet {
    let header = LongHeader {
        kind,
        version: VERSION_1,
        destination: id(2),
        source: id(source),
        token: &[],
    };
    let mut bytes = vec![0; 100];
    let mut writer = courser_wire::Writer::new(&mut bytes);
    let length_field = header.encode(&mut writer, 2);
    let number_offset = header.encoded_len();
    courser_wire::packet::patch_length(&mut bytes, length_field, 100 - number_offset);
    courser_wire::packet::decode(&bytes, 0, 8).expect("a header")
}

#[test]
fn parameters_of_the_peer_come_before_data_and_are_kept_when_they_are_accepted() {
    let mut handshake = server(Script {
        parameters: Some(client_parameters(2)),
        complete_after: 100,
        ..Script::default()
    });
    assert!(handshake.next_step().expect("nothing came").is_none());
    receive(&mut handshake, SpaceId::Initial, b"hello").expect("room");
    let Ok(Some(Step::Parameters(parameters))) = handshake.next_step() else {
        panic!("the parameters");
    };
    assert_eq!(handshake.check_parameters(&parameters), Ok(false));
    assert!(handshake.peer_parameters().is_none());
    handshake.keep_parameters(parameters);
    assert!(matches!(handshake.next_step(), Ok(Some(Step::DataReady))));
    assert!(matches!(handshake.next_step(), Ok(None)));
    assert!(handshake.data().is_some());
}

#[test]
fn parameters_with_another_id_than_the_packets_are_refused() {
    let mut handshake = server(Script::default());
    let parameters = TransportParameters {
        initial_source_connection_id: Some(id(3)),
        ..TransportParameters::default()
    };
    let error = handshake.check_parameters(&parameters);
    let code = TransportErrorCode::TRANSPORT_PARAMETER_ERROR;
    assert_eq!(error.map_err(|error| error.code), Err(code));
}

#[test]
fn client_writes_first() {
    let mut handshake = client(Script {
        writes: VecDeque::from([(b"hello".to_vec(), None)]),
        complete_after: 1,
        ..Script::default()
    });
    handshake.open_space(SpaceId::Initial);
    assert!(matches!(handshake.next_step(), Ok(None)));
    assert!(handshake.has_crypto_to_send(SpaceId::Initial));
    let (mut room, mut lists) = ([0; 100], FrameLists::default());
    let mut packet = PacketBuilder::new(&mut room, &mut lists);
    handshake.write_crypto_frames(SpaceId::Initial, &mut packet);
    assert!(!handshake.has_crypto_to_send(SpaceId::Initial));
    handshake.on_crypto_lost(SpaceId::Initial, 0, 5);
    assert!(handshake.has_crypto_to_send(SpaceId::Initial));
}

#[test]
fn tls_alert_ends_handshake() {
    let mut handshake = server(Script::default());
    receive(&mut handshake, SpaceId::Initial, b"no!").expect("room");
    let code = TransportErrorCode::crypto(40);
    let step = handshake.next_step();
    assert_eq!(step.map(|_| ()).map_err(|error| error.code), Err(code));
}

#[test]
fn client_without_transport_parameters_is_an_error() {
    let mut handshake = server(Script::default());
    receive(&mut handshake, SpaceId::Initial, b"hello").expect("room");
    handshake.on_one_rtt_keys();
    let code = TransportErrorCode::crypto(109);
    let step = handshake.next_step();
    assert_eq!(step.map(|_| ()).map_err(|error| error.code), Err(code));
}

#[test]
fn complete_server_sends_handshake_done_and_tokens() {
    let mut handshake = server(Script {
        parameters: Some(client_parameters(2)),
        complete_after: 5,
        ..Script::default()
    });
    receive(&mut handshake, SpaceId::Initial, b"hello").expect("room");
    while let Ok(Some(Step::Parameters(parameters))) = handshake.next_step() {
        handshake.keep_parameters(parameters);
    }
    handshake.on_one_rtt_keys();
    assert!(matches!(handshake.next_step(), Ok(Some(Step::Complete))));
    let now = Time::ZERO + Duration::from_millis(3);
    assert_eq!(handshake.complete(now, 0), Ok(Duration::from_millis(3)));
    assert!(handshake.has_frames_to_send(), "HANDSHAKE_DONE");
    assert!(handshake.take_token_request());
    assert_eq!(handshake.deadline(now, true), None);
    assert!(matches!(handshake.next_step(), Ok(None)));
}

#[test]
fn unread_data_of_old_level_is_an_error() {
    let mut handshake = server(Script::default());
    receive(&mut handshake, SpaceId::Initial, b"hello").expect("room");
    let error = handshake.on_handshake_keys();
    let code = TransportErrorCode::PROTOCOL_VIOLATION;
    assert_eq!(error.map_err(|error| error.code), Err(code));
}

#[test]
fn repeated_hello_is_detected_at_later_levels() {
    let mut handshake = server(Script::default());
    let hello = Crypto {
        offset: 0,
        data: b"hello",
    };
    assert_eq!(
        receive(&mut handshake, SpaceId::Initial, b"hello"),
        Ok(false)
    );
    assert!(matches!(handshake.next_step(), Ok(None)));
    handshake.on_handshake_keys().expect("all was read");
    assert_eq!(
        handshake.on_crypto_frame(SpaceId::Initial, &hello),
        Ok(true)
    );
    let longer = Crypto {
        offset: 0,
        data: b"hello again",
    };
    assert!(
        handshake
            .on_crypto_frame(SpaceId::Initial, &longer)
            .is_err()
    );
}

#[test]
fn offloaded_bytes_are_read_in_task_that_returns_session() {
    let mut handshake = server(Script::default());
    handshake.offloads_tls = true;
    receive(&mut handshake, SpaceId::Initial, b"hello").expect("room");
    assert!(matches!(handshake.next_step(), Ok(None)));
    assert!(handshake.list_tls_task() && !handshake.list_tls_task());
    let task = handshake.take_tls_task().expect("it was listed");
    receive(&mut handshake, SpaceId::Initial, b"more").expect("room");
    assert!(matches!(handshake.next_step(), Ok(None)), "it waits");
    let finished = task.run().0.unwrap_or_else(|_| panic!("no panic"));
    assert_eq!(handshake.on_tls_finished(finished), Ok(true));
    assert!(matches!(handshake.next_step(), Ok(None)));
    assert!(handshake.list_tls_task(), "the next bytes");
    handshake.on_close();
    assert!(!handshake.on_tls_lost(), "not awaited any more");
}

#[test]
fn client_with_unvalidated_address_has_half_the_timeout() {
    let handshake = server(Script::default());
    let deadline = |heard, is_validated| handshake.deadline(heard, is_validated);
    let whole = Time::ZERO + TIMEOUT;
    assert_eq!(deadline(Time::ZERO, false), Some(Time::ZERO + TIMEOUT / 2));
    assert_eq!(deadline(Time::ZERO, true), Some(whole));
    assert_eq!(deadline(whole, false), Some(whole), "never more");
    assert_eq!(
        client(Script::default()).deadline(whole, false),
        Some(whole)
    );
}

#[test]
fn packets_with_another_source_id_are_dropped() {
    let mut handshake = client(Script::default());
    let first = packet(PacketKind::Initial, 5);
    assert!(handshake.accepts_header(&first, 100));
    assert_eq!(handshake.on_first_packet(&first), Some(id(5)));
    assert_eq!(handshake.on_first_packet(&first), None, "only once");
    assert!(handshake.accepts_header(&packet(PacketKind::Handshake, 5), 100));
    assert!(!handshake.accepts_header(&packet(PacketKind::Handshake, 6), 100));
}

#[test]
fn server_drops_initials_in_small_datagrams() {
    let handshake = server(Script::default());
    let initial = packet(PacketKind::Initial, 2);
    assert!(!handshake.accepts_header(&initial, MIN_INITIAL_DATAGRAM - 1));
    assert!(handshake.accepts_header(&initial, MIN_INITIAL_DATAGRAM));
}

#[test]
fn only_first_response_may_negotiate_version() {
    let mut handshake = client(Script::default());
    assert!(handshake.is_unanswered_by(&id(9)));
    assert!(!handshake.is_unanswered_by(&id(8)), "not from there");
    handshake.on_first_packet(&packet(PacketKind::Initial, 5));
    assert!(!handshake.is_unanswered_by(&id(9)));
    assert!(!server(Script::default()).is_unanswered_by(&id(9)));
}

#[test]
fn frames_of_servers_are_refused_from_clients() {
    let mut handshake = server(Script::default());
    let token = NewToken { token: b"token" };
    assert!(handshake.on_new_token_frame(&token).is_err());
    assert!(handshake.check_handshake_done_frame().is_err());
    let mut handshake = client(Script::default());
    assert!(handshake.on_new_token_frame(&token).is_ok());
    assert!(handshake.check_handshake_done_frame().is_ok());
}

#[test]
fn speed_up_happens_once() {
    let mut handshake = client(Script::default());
    assert!(handshake.take_speed_up());
    assert!(!handshake.take_speed_up());
}
