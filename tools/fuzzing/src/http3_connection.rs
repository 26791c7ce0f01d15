//! An HTTP/3 connection whose peer sends arbitrary bytes on any stream in any order.

mod peer;
mod request;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use courser_adversary::put_varint;
use courser_base::{Side, Time};
use courser_http3::{
    Code, Config, Connection, Error, Event, Extensions, FieldsToSend, FrameStream, Scope, UniFate,
    UniStream,
};
use http::{HeaderMap, StatusCode};

use self::peer::Peer;
use self::request::Stream;
use crate::input::Input;

/// Runs control, QPACK and request streams of a peer. The input decides their bytes, how they are
/// split, and their order.
///
/// # Panics
/// Panics if the connection panics, an error code has no name, memory exceeds its limits, an unblocked
/// section is still blocked, or a malformed message is accepted.
pub fn http3_connection(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let setup = input.byte();
    let side = if setup & 1 == 0 {
        Side::Server
    } else {
        Side::Client
    };
    let mut world = World::new(side, setup);
    for _ in 0..MAX_STEPS {
        if input.is_empty() {
            return;
        }
        match world.step(&mut input) {
            Ok(()) => world.check(),
            Err(error) => {
                assert!(error.code.name().is_some(), "{error}");
                if error.scope == Scope::Connection {
                    return;
                }
            }
        }
    }
}

/// The largest number of steps per input.
const MAX_STEPS: usize = 1000;

struct World {
    side: Side,
    now: Time,
    connection: Connection,
    /// The credit of our encoder stream.
    encoder_credit: u64,
    peer: Peer,
    requests: BTreeMap<u64, Stream>,
    /// Unidirectional streams that were stopped or have ended.
    ended: Vec<u64>,
}

impl World {
    fn new(side: Side, setup: u8) -> Self {
        let now = Time::from_nanos(1);
        let mut config = Config::new(side);
        config.extended_connect = setup & 2 != 0;
        config.datagrams = setup & 4 != 0;
        if setup & 8 != 0 {
            config.decoder.max_table_capacity = 0;
            config.decoder.max_blocked_streams = 0;
        }
        if setup & 16 != 0 {
            let extensions = Extensions::new()
                .frame(0x0e, FrameStream::Control, 100)
                .and_then(|extensions| extensions.unidirectional_stream(0x10));
            config.extensions = extensions.unwrap_or_default();
        }
        let mut connection = Connection::new(side, config, 1, now);
        connection.set_request_limit(8);
        Self {
            side,
            now,
            connection,
            encoder_credit: u64::MAX,
            peer: Peer::new(setup),
            requests: BTreeMap::new(),
            ended: Vec::new(),
        }
    }

    fn step(&mut self, input: &mut Input<'_>) -> Result<(), Error> {
        let operation = input.byte();
        let stream = 4 * u64::from(operation >> 4 & 3);
        match operation & 15 {
            0 => self.uni(
                u64::from(operation >> 4 & 7),
                input.bytes(),
                operation >> 7 == 1,
            )?,
            1 => self.control(&control_frame(input))?,
            2 => {
                let instructions = self.peer.take_instructions(usize::from(input.byte()));
                self.uni(1, &instructions, false)?;
            }
            3 => {
                let answers = self.peer.take_answers(usize::from(input.byte()));
                self.uni(2, &answers, false)?;
            }
            4 | 5 => {
                let frame = self.peer.headers(stream, self.side, input);
                self.request(stream).queue(&frame);
            }
            6 => {
                let data = input.bytes();
                let mut frame = Vec::new();
                put_varint(&mut frame, 0);
                put_varint(&mut frame, data.len() as u64);
                frame.extend_from_slice(data);
                self.request(stream).queue(&frame);
            }
            7 => {
                let bytes = input.bytes();
                self.request(stream).queue(bytes);
            }
            8 => self.request(stream).finish(),
            9..=11 => self.deliver(stream, usize::from(input.byte()))?,
            12 => {
                self.requests.remove(&stream);
                match operation >> 6 {
                    0 => self.connection.on_cancelled(self.now, stream)?,
                    1 => self.connection.on_given_up(self.now, stream)?,
                    2 => self
                        .connection
                        .handle_uni_reset(self.now, u64::from(input.byte()))?,
                    _ => {}
                }
                // A later step uses the number again for another stream.
                self.connection.forget(stream);
            }
            13 => self.send(stream, input),
            14 => self.now += Duration::from_millis(1 << (operation >> 4)),
            _ => self.other(operation >> 4, input)?,
        }
        self.on_events()
    }

    /// Delivers bytes on a unidirectional stream. Number 0 is the control stream, 1 and 2 are the
    /// QPACK streams, and others get their type from the bytes.
    fn uni(&mut self, number: u64, bytes: &[u8], fin: bool) -> Result<(), Error> {
        let stream = 4 * number + if self.side.is_server() { 2 } else { 3 };
        if self.ended.contains(&stream) {
            return Ok(());
        }
        let mut chunk = Vec::new();
        if self.peer.is_first_use(number) && number < 3 {
            chunk.push([0, 2, 3][number as usize]);
        }
        chunk.extend_from_slice(bytes);
        match self
            .connection
            .handle_uni(self.now, stream, chunk.into(), fin)?
        {
            UniFate::Read => {}
            UniFate::Stop(code) => {
                assert_ne!(code, Code::NO_ERROR);
                self.ended.push(stream);
            }
            UniFate::Ended | UniFate::Claimed { .. } => self.ended.push(stream),
        }
        Ok(())
    }

    fn control(&mut self, frame: &[u8]) -> Result<(), Error> {
        self.uni(0, frame, false)
    }

    fn request(&mut self, stream: u64) -> &mut Stream {
        if self.side.is_server() && !self.requests.contains_key(&stream) {
            self.connection.on_request_opened(stream);
        }
        let side = self.side;
        self.requests
            .entry(stream)
            .or_insert_with(|| Stream::new(side, stream))
    }

    fn deliver(&mut self, stream: u64, len: usize) -> Result<(), Error> {
        let Some(request) = self.requests.get_mut(&stream) else {
            return Ok(());
        };
        let result = request.deliver(&mut self.connection, self.now, len);
        self.on_result(stream, result)
    }

    /// Removes a stream after an error, which the stream has already counted as cancelled. Returns
    /// errors of the connection.
    fn on_result(&mut self, stream: u64, result: Result<(), Error>) -> Result<(), Error> {
        let Err(error) = result else {
            return Ok(());
        };
        assert!(error.code.name().is_some(), "{error}");
        if error.scope == Scope::Connection {
            return Err(error);
        }
        self.requests.remove(&stream);
        Ok(())
    }

    /// Sends a message. The peer must be able to read it if all its instructions were true.
    fn send(&mut self, stream: u64, input: &mut Input<'_>) {
        let mut headers = HeaderMap::new();
        let (name, value) = peer::line(input);
        if let (Ok(name), Ok(value)) = (
            http::HeaderName::from_bytes(&name),
            http::HeaderValue::from_bytes(&value),
        ) {
            headers.insert(name, value);
        }
        let fields = FieldsToSend::response(&StatusCode::OK, &headers);
        let mut section = Vec::new();
        self.connection
            .append_section(stream, &fields, || self.encoder_credit, &mut section);
        self.take_outgoing();
        self.peer.check_section(stream, &section, &fields);
    }

    fn take_outgoing(&mut self) {
        let instructions = std::mem::take(self.connection.outgoing(UniStream::Encoder));
        self.peer.on_instructions(&instructions);
        for stream in [UniStream::Control, UniStream::Decoder] {
            self.connection.outgoing(stream).clear();
        }
    }

    fn other(&mut self, operation: u8, input: &mut Input<'_>) -> Result<(), Error> {
        match operation {
            0 => {
                let payload = Bytes::copy_from_slice(input.bytes());
                self.connection.handle_datagram(payload).map(drop)
            }
            1 => {
                self.connection.announce_going_away();
                Ok(())
            }
            2 => {
                self.connection.go_away_after_last();
                Ok(())
            }
            3 => self.connection.check_bidirectional(),
            4 => {
                self.encoder_credit = u64::from(input.short());
                Ok(())
            }
            // From now on, the peer's decoder stream carries false instructions.
            5 => {
                self.peer.on_false_instruction();
                self.uni(2, input.bytes(), false)
            }
            _ => self.control(input.bytes()),
        }
    }

    fn on_events(&mut self) -> Result<(), Error> {
        if let Some(settings) = self.connection.peer_settings() {
            self.peer.on_settings(settings);
        }
        for _ in 0..MAX_EVENTS {
            let Some(event) = self.connection.poll_event() else {
                return Ok(());
            };
            if let Event::Unblocked { stream } = event {
                let Some(request) = self.requests.get_mut(&stream) else {
                    continue;
                };
                let result = request.on_unblocked(&mut self.connection, self.now);
                self.on_result(stream, result)?;
            }
        }
        panic!("endless events");
    }

    fn check(&mut self) {
        self.take_outgoing();
        assert!(
            self.connection.memory() <= MAX_MEMORY,
            "{}",
            self.connection.memory()
        );
        assert!(self.connection.blocked_bytes() <= 64 * 1024);
        for request in self.requests.values() {
            request.check(self.side);
        }
    }
}

/// Enough for two dynamic tables of 4 KiB, incomplete instructions and cached header sections.
const MAX_MEMORY: usize = 64 * 1024;

/// The largest number of events per step.
const MAX_EVENTS: usize = 1000;

/// Encodes a frame for the control stream.
fn control_frame(input: &mut Input<'_>) -> Vec<u8> {
    let operation = input.byte();
    let mut payload = Vec::new();
    let kind = match operation & 7 {
        0 | 1 => {
            for _ in 0..operation >> 3 & 7 {
                put_varint(&mut payload, [1, 6, 7, 8, 0x33, 2, 0x21][input.below(7)]);
                put_varint(&mut payload, input.number());
            }
            0x04
        }
        2 => {
            put_varint(&mut payload, input.number());
            0x07
        }
        3 => {
            put_varint(&mut payload, input.number());
            0x0d
        }
        4 => {
            put_varint(&mut payload, input.number());
            payload.extend_from_slice(input.bytes());
            0xf0700 + u64::from(operation >> 7)
        }
        5 => {
            let origin = input.bytes();
            payload.extend_from_slice(&(origin.len() as u16).to_be_bytes());
            payload.extend_from_slice(origin);
            0x0c
        }
        6 => {
            put_varint(&mut payload, input.number());
            0x03
        }
        _ => {
            payload.extend_from_slice(input.bytes());
            input.number()
        }
    };
    let mut frame = Vec::new();
    put_varint(&mut frame, kind);
    put_varint(&mut frame, payload.len() as u64);
    frame.extend_from_slice(&payload);
    frame
}
