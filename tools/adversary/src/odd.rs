//! Peers that combine all unusual behaviour that the RFCs permit (fault F63).
//!
//! An [`OddClient`] uploads content to a server, and an [`OddServer`] echoes the content that a
//! client uploads. Both use connection IDs of 20 bytes, reserved versions, parameters, settings,
//! frames and streams, one-byte CRYPTO and STREAM frames out of order, storms of PADDING, overlong
//! variable-length integers, empty DATA frames, coalesced packets, key updates and new connection
//! IDs. The client also changes its port several times.

mod script;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use courser_base::{Side, Time};
use courser_crypto::{Rng, Space};
use courser_wire::{
    Crypto, Direction, Frame, Frames, MIN_INITIAL_DATAGRAM, StreamId, TransportParameters,
};

use self::script::{Step, script};
use crate::attack::{Attack, Pace};
use crate::attacker::Attacker;
use crate::connection::{Connection, DATAGRAM};
use crate::encode::{encode, put_varint};
use crate::hooks::{Fate, Hooks, PacketToSend};

/// The hooks of odd clients and servers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Odd;

impl Hooks for Odd {
    fn edit_parameters(&mut self, parameters: &mut TransportParameters) {
        parameters.active_connection_id_limit = 2;
        parameters.ack_delay_exponent = 0;
        parameters.max_ack_delay = 1;
    }

    /// Appends an empty and a long reserved parameter (RFC 9000 §18.1) with overlong encodings.
    fn append_parameters(&mut self, encoded: &mut Vec<u8>) {
        for (number, len) in [(1, 0), (1000, 200)] {
            script::put_long(encoded, 31 * number + 27);
            script::put_long(encoded, len);
            encoded.extend((0..len).map(|byte| byte as u8));
        }
    }

    fn id_len(&self) -> usize {
        20
    }

    fn crypto_chunk(&self) -> usize {
        CRYPTO_BYTES
    }

    fn keeps_streams(&self) -> bool {
        true
    }

    fn on_packet(&mut self, _now: Time, packet: &mut PacketToSend) -> Fate {
        if packet.space == Space::Application {
            return Fate::Send;
        }
        let frames = std::mem::take(&mut packet.frames);
        let has_crypto = frames.iter().any(|frame| frame[0] == CRYPTO);
        packet.frames = frames.into_iter().flat_map(one_byte_each).collect();
        if packet.space == Space::Initial && !has_crypto {
            // A packet with only an ACK is coalesced with the following Handshake packet, which is
            // padded instead (RFC 9000 §14.1).
            packet.pad_to = 0;
            return Fate::Join;
        }
        packet.pad_to = DATAGRAM;
        match packet.number % 2 {
            0 => Fate::Duplicate,
            _ => Fate::Send,
        }
    }
}

/// Splits a CRYPTO frame into frames of one byte, and swaps the frames of each pair.
fn one_byte_each(frame: Vec<u8>) -> Vec<Vec<u8>> {
    let Some(Ok(Frame::Crypto(crypto))) = Frames::new(&frame).next() else {
        return vec![frame];
    };
    let bytes = crypto.data.chunks(1).zip(crypto.offset..);
    let mut frames: Vec<Vec<u8>> = bytes
        .map(|(data, offset)| encode(&Frame::Crypto(Crypto { offset, data })))
        .collect();
    for pair in frames.chunks_mut(2) {
        pair.reverse();
    }
    frames
}

/// A client that uploads content and receives a response.
#[derive(Debug)]
pub struct OddClient {
    content: Vec<u8>,
    key: Option<u64>,
    runner: Option<ScriptRunner>,
}

impl OddClient {
    /// Creates a client that uploads this content.
    pub fn new(content: Vec<u8>) -> Self {
        Self {
            content,
            key: None,
            runner: None,
        }
    }
}

impl Attack for OddClient {
    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        let key = *self.key.get_or_insert_with(|| {
            attacker.send_raw(0, reserved_version_datagram());
            attacker.connect(0, Box::new(Odd))
        });
        if attacker.peek(key).is_some_and(Connection::is_confirmed) {
            let content = &self.content;
            let runner = self
                .runner
                .get_or_insert_with(|| ScriptRunner::new(attacker, Side::Client, content));
            runner.advance(attacker, key, now);
        }
        Pace::At(now + STEP)
    }
}

/// A server that echoes the content that each client uploads.
#[derive(Debug, Default)]
pub struct OddServer {
    runners: BTreeMap<u64, ScriptRunner>,
    answered: BTreeSet<u64>,
}

impl Attack for OddServer {
    fn start(&mut self, attacker: &mut Attacker) {
        attacker.accept_with(crate::server_tls(b"h3"), || Box::new(Odd));
    }

    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        for key in attacker.keys() {
            let connection = attacker.peek(key).filter(|it| it.is_confirmed());
            if !self.answered.contains(&key)
                && let Some(content) = connection.and_then(received)
            {
                self.answered.insert(key);
                let runner = ScriptRunner::new(attacker, Side::Server, &content);
                self.runners.insert(key, runner);
            }
            if let Some(runner) = self.runners.get_mut(&key) {
                runner.advance(attacker, key, now);
            }
        }
        Pace::At(now + STEP)
    }
}

/// Performs the steps of a script, a few packets at a time.
#[derive(Debug)]
struct ScriptRunner {
    steps: VecDeque<Step>,
    port: u16,
    /// The sequence number of the current Destination Connection ID.
    sequence: u64,
    resumes_at: Option<Time>,
}

impl ScriptRunner {
    fn new(attacker: &mut Attacker, side: Side, content: &[u8]) -> Self {
        let mut rng: Rng = attacker.rng().fork();
        Self {
            steps: script(&mut rng, side, content),
            port: 0,
            sequence: 0,
            resumes_at: None,
        }
    }

    /// Performs the next steps unless the script pauses.
    fn advance(&mut self, attacker: &mut Attacker, key: u64, now: Time) {
        if self.resumes_at.is_some_and(|at| at > now) {
            return;
        }
        for _ in 0..PACKETS_PER_STEP {
            let Some(step) = self.steps.pop_front() else {
                return;
            };
            let Some(connection) = attacker.connection(key) else {
                return;
            };
            match step {
                Step::Packet(frames) => connection.send_packet(now, Space::Application, frames),
                Step::UpdateKeys => connection.update_keys(),
                Step::IssueId => issue_id(connection),
                Step::UseNextId => self.use_next_id(connection),
                Step::Move => {
                    self.port += 1;
                    attacker.move_to_port(key, self.port);
                }
                Step::Pause => {
                    self.resumes_at = Some(now + PAUSE);
                    return;
                }
            }
        }
    }

    /// Switches to the next connection ID that the peer issued, and retires the current one.
    fn use_next_id(&mut self, connection: &mut Connection) {
        let issued = &connection.seen().issued;
        let next = issued.iter().find(|(next, _)| *next > self.sequence);
        let Some((sequence, id)) = next.copied() else {
            return;
        };
        let retired = std::mem::replace(&mut self.sequence, sequence);
        connection.set_peer_id(id);
        let mut frame = vec![RETIRE_CONNECTION_ID];
        script::put_long(&mut frame, retired);
        connection.push_bytes(frame);
    }
}

/// Issues a second connection ID, which every peer must accept.
fn issue_id(connection: &mut Connection) {
    // The prefix of the ID assigns datagrams to connections.
    let mut id = connection.local_id()[..4].to_vec();
    id.extend(connection.rng().array::<16>());
    let mut frame = vec![NEW_CONNECTION_ID];
    script::put_long(&mut frame, 1);
    script::put_long(&mut frame, 0);
    frame.push(20);
    frame.extend(id);
    frame.extend(connection.rng().array::<16>());
    connection.push_bytes(frame);
}

/// Returns the content of the peer's message on the first request stream once it is complete.
pub fn received(connection: &Connection) -> Option<Vec<u8>> {
    let id = StreamId::new(Side::Client, Direction::Bidirectional, 0);
    let (message, is_complete) = connection.seen().stream(id);
    is_complete.then(|| script::content(&message))
}

/// Returns a first datagram with a reserved version, which servers answer with Version Negotiation
/// (RFC 9000 §15).
fn reserved_version_datagram() -> Vec<u8> {
    let mut bytes = vec![0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 20];
    bytes.extend([7; 20]);
    bytes.push(20);
    bytes.extend([8; 20]);
    put_varint(&mut bytes, 0);
    bytes.resize(MIN_INITIAL_DATAGRAM, 0);
    bytes
}

/// The number of one-byte CRYPTO frames that fill a datagram.
const CRYPTO_BYTES: usize = 210;
const PACKETS_PER_STEP: usize = 4;
const STEP: Duration = Duration::from_millis(2);
/// A pause of several round trips, in which key updates and new paths complete.
const PAUSE: Duration = Duration::from_millis(60);

const CRYPTO: u8 = 0x06;
const NEW_CONNECTION_ID: u8 = 0x18;
const RETIRE_CONNECTION_ID: u8 = 0x19;
