//! HTTP/2 with frames that are written and parsed by hand, so that a test can send wrong lengths and orders.

use std::collections::BTreeMap;

use crate::hpack::{Decoder, Section, encode, is_permitted};
use crate::message::{Content, Ending, Field, Message, Request, Response, field};
use crate::seen::{End, Framing, Seen};
use crate::wire::Wire;

/// A frame (RFC 9113 §4.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The type.
    pub kind: u8,
    /// The flags.
    pub flags: u8,
    /// The stream, or 0 for the connection.
    pub stream: u32,
    /// The payload.
    pub payload: Vec<u8>,
}

/// DATA.
pub const DATA: u8 = 0;
/// HEADERS.
pub const HEADERS: u8 = 1;
/// RST_STREAM.
pub const RST_STREAM: u8 = 3;
/// SETTINGS.
pub const SETTINGS: u8 = 4;
/// PING.
pub const PING: u8 = 6;
/// GOAWAY.
pub const GOAWAY: u8 = 7;
/// WINDOW_UPDATE.
pub const WINDOW_UPDATE: u8 = 8;
/// CONTINUATION.
pub const CONTINUATION: u8 = 9;
/// The flag END_STREAM, and ACK of SETTINGS and PING.
pub const END_STREAM: u8 = 1;
/// The flag END_HEADERS.
pub const END_HEADERS: u8 = 4;
/// The flag PADDED.
pub const PADDED: u8 = 8;
/// The flag PRIORITY.
pub const PRIORITY: u8 = 32;

/// The connection preface of a client (RFC 9113 §3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const MAX_FRAME: usize = 16_384;
const CANCEL: u32 = 8;

impl Frame {
    /// Creates a frame.
    pub fn new(kind: u8, flags: u8, stream: u32, payload: impl Into<Vec<u8>>) -> Self {
        Self {
            kind,
            flags,
            stream,
            payload: payload.into(),
        }
    }

    /// Creates RST_STREAM.
    pub fn reset(stream: u32, code: u32) -> Self {
        Self::new(RST_STREAM, 0, stream, code.to_be_bytes())
    }

    /// Returns its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let length = u32::try_from(self.payload.len()).expect("below 2^24");
        let mut bytes = length.to_be_bytes()[1..].to_vec();
        bytes.extend_from_slice(&[self.kind, self.flags]);
        bytes.extend_from_slice(&self.stream.to_be_bytes());
        bytes.extend_from_slice(&self.payload);
        bytes
    }
}

/// Returns HEADERS, and CONTINUATION where one frame is too small.
pub fn headers(stream: u32, fields: &[Field], is_end: bool) -> Vec<Frame> {
    let block = encode(fields);
    let mut pieces: Vec<&[u8]> = block.chunks(MAX_FRAME).collect();
    if pieces.is_empty() {
        pieces.push(&[]);
    }
    let last = pieces.len() - 1;
    let frame = |(index, piece): (usize, &&[u8])| {
        let kind = if index == 0 { HEADERS } else { CONTINUATION };
        let mut flags = if index == last { END_HEADERS } else { 0 };
        if index == 0 && is_end {
            flags |= END_STREAM;
        }
        Frame::new(kind, flags, stream, *piece)
    };
    pieces.iter().enumerate().map(frame).collect()
}

/// Returns the frames of a request.
pub fn request(request: &Request, stream: u32) -> Vec<Frame> {
    message(stream, &request.section(), request)
}

/// Returns the frames of a response.
pub fn response(response: &Response, stream: u32) -> Vec<Frame> {
    let mut frames = Vec::new();
    for (status, interim) in &response.control.interim {
        let status = field(":status", format!("{status:03}"));
        frames.extend(headers(stream, &[&[status], &interim[..]].concat(), false));
    }
    let status = format!("{:03}", response.control.status);
    let mut section = vec![field(":status", status)];
    section.extend(response.length_field());
    section.extend_from_slice(&response.fields);
    frames.extend(message(stream, &section, response));
    frames
}

/// Returns the frames of a message with this header section.
fn message<C>(stream: u32, section: &[Field], message: &Message<C>) -> Vec<Frame> {
    let trailers = &message.trailers;
    let is_complete = message.ending == Ending::Complete;
    let has_more = message.content != Content::None || !trailers.is_empty();
    let mut frames = headers(stream, section, is_complete && !has_more);
    let pieces = message.content.pieces();
    for (index, piece) in pieces.iter().enumerate() {
        let is_last = index + 1 == pieces.len() && trailers.is_empty();
        let flags = u8::from(is_last && is_complete);
        frames.push(Frame::new(DATA, flags, stream, piece.as_slice()));
    }
    if has_more && pieces.is_empty() && trailers.is_empty() && is_complete {
        frames.push(Frame::new(DATA, END_STREAM, stream, []));
    }
    if !trailers.is_empty() && is_complete {
        frames.extend(headers(stream, trailers, true));
    }
    if message.ending == Ending::Reset {
        frames.push(Frame::reset(stream, CANCEL));
    }
    frames
}

/// The state of a stream.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    sections: Vec<Section>,
    content: Vec<u8>,
    /// True behind END_STREAM.
    pub is_ended: bool,
    /// The code of RST_STREAM.
    pub reset: Option<u32>,
}

/// A connection of HTTP/2, at either end.
#[derive(Debug)]
pub struct Connection {
    /// The connection below.
    pub wire: Wire,
    decoder: Decoder,
    next: u32,
    streams: BTreeMap<u32, Stream>,
    block: Option<Block>,
    /// The code of GOAWAY.
    pub goaway: Option<u32>,
    is_malformed: bool,
}

/// A field block that CONTINUATION frames continue.
#[derive(Debug)]
struct Block {
    stream: u32,
    is_end: bool,
    bytes: Vec<u8>,
}

impl Connection {
    /// Sends the preface of a client.
    pub async fn client(wire: Wire) -> Self {
        let mut connection = Self::over(wire);
        // ENABLE_PUSH 0.
        let settings = [0, 2, 0, 0, 0, 0];
        let first = Frame::new(SETTINGS, 0, 0, settings).encode();
        connection.wire.send(&[PREFACE, &first].concat()).await;
        connection
    }

    /// Reads the preface of a client and sends that of a server. Returns `None` if the bytes are no preface.
    pub async fn server(wire: Wire) -> Option<Self> {
        let mut connection = Self::over(wire);
        if connection.wire.take(PREFACE.len()).await? != PREFACE {
            return None;
        }
        let settings = Frame::new(SETTINGS, 0, 0, []);
        connection.wire.send(&settings.encode()).await;
        Some(connection)
    }

    const fn over(wire: Wire) -> Self {
        Self {
            wire,
            decoder: Decoder::new(),
            next: 1,
            streams: BTreeMap::new(),
            block: None,
            goaway: None,
            is_malformed: false,
        }
    }

    /// Returns the ID of a new stream.
    pub const fn open(&mut self) -> u32 {
        let stream = self.next;
        self.next += 2;
        stream
    }

    /// Sends frames.
    pub async fn send(&mut self, frames: &[Frame]) -> bool {
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::encode).collect();
        self.wire.send(&bytes).await
    }

    /// Sends a request and returns its response.
    pub async fn exchange(&mut self, request: &Request) -> Seen {
        let stream = self.open();
        self.send(&self::request(request, stream)).await;
        if request.ending == Ending::Cut {
            self.wire.close().await;
        }
        self.answer(stream).await
    }

    /// Waits for the end of a stream and returns its response.
    pub async fn answer(&mut self, stream: u32) -> Seen {
        while !self.is_over(stream) && self.step().await {}
        self.response_on(stream)
    }

    fn is_over(&self, stream: u32) -> bool {
        let state = self.streams.get(&stream);
        state.is_some_and(|stream| stream.is_ended || stream.reset.is_some())
    }

    /// Returns the IDs and states of the streams on which frames have arrived.
    pub fn streams(&self) -> impl Iterator<Item = (u32, &Stream)> {
        self.streams
            .iter()
            .map(|(number, stream)| (*number, stream))
    }

    /// Receives and processes a frame. Returns false at the end of the connection, and if no frame arrives in time.
    pub async fn step(&mut self) -> bool {
        let Some(frame) = self.receive().await else {
            return false;
        };
        let is_ack = frame.flags & END_STREAM != 0;
        match frame.kind {
            DATA => {
                let length = frame.payload.len();
                let is_end = frame.flags & END_STREAM != 0;
                let stream = frame.stream;
                let state = self.streams.entry(stream).or_default();
                state.content.extend_from_slice(&unpadded(&frame));
                state.is_ended |= is_end;
                if let Some(credit) = u32::try_from(length).ok().filter(|length| *length > 0) {
                    let mut updates = vec![Frame::new(WINDOW_UPDATE, 0, 0, credit.to_be_bytes())];
                    if !is_end {
                        let update = Frame::new(WINDOW_UPDATE, 0, stream, credit.to_be_bytes());
                        updates.push(update);
                    }
                    self.send(&updates).await;
                }
            }
            HEADERS => {
                self.block = Some(Block {
                    stream: frame.stream,
                    is_end: is_ack,
                    bytes: unpadded(&frame),
                });
                self.close_block(frame.flags);
            }
            CONTINUATION => {
                if let Some(block) = &mut self.block {
                    block.bytes.extend_from_slice(&frame.payload);
                }
                self.close_block(frame.flags);
            }
            RST_STREAM => {
                let code = code_of(&frame.payload);
                self.streams.entry(frame.stream).or_default().reset = Some(code);
            }
            SETTINGS if !is_ack => {
                self.send(&[Frame::new(SETTINGS, END_STREAM, 0, [])]).await;
            }
            PING if !is_ack => {
                self.send(&[Frame::new(PING, END_STREAM, 0, frame.payload)])
                    .await;
            }
            GOAWAY => self.goaway = frame.payload.get(4..).map(code_of),
            _ => {}
        }
        !self.is_malformed
    }

    /// Receives a frame.
    pub async fn receive(&mut self) -> Option<Frame> {
        let head = self.wire.take(9).await?;
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let payload = self.wire.take(length).await?;
        let stream = code_of(&head[5..]) & 0x7fff_ffff;
        Some(Frame::new(head[3], head[4], stream, payload))
    }

    fn close_block(&mut self, flags: u8) {
        if flags & END_HEADERS == 0 {
            return;
        }
        let Some(block) = self.block.take() else {
            return;
        };
        let section = self.decoder.decode(&block.bytes);
        let Some(section) = section.filter(|section| is_permitted(&section.fields)) else {
            self.is_malformed = true;
            return;
        };
        let stream = self.streams.entry(block.stream).or_default();
        stream.sections.push(section);
        stream.is_ended |= block.is_end;
    }

    /// Returns the part of a response that has arrived.
    pub fn response_on(&self, stream: u32) -> Seen {
        let end = self.end_of(stream);
        let Some(state) = self.streams.get(&stream) else {
            return Seen::nothing(end);
        };
        response_of(&state.sections, &state.content, end)
    }

    /// Returns the part of a request that has arrived.
    pub fn request_on(&self, stream: u32) -> Seen {
        let end = self.end_of(stream);
        let Some(state) = self.streams.get(&stream) else {
            return Seen::nothing(end);
        };
        request_of(&state.sections, &state.content, end)
    }

    fn end_of(&self, stream: u32) -> End {
        let state = self.streams.get(&stream);
        match state {
            Some(state) if state.is_ended => End::Complete,
            Some(Stream {
                reset: Some(code), ..
            }) => End::Reset((*code).into()),
            _ if self.is_malformed => End::Malformed,
            _ => match (self.goaway, self.wire.end) {
                (Some(code), _) => End::Closed(code.into()),
                (None, Some(end)) => end,
                (None, None) => End::Silent,
            },
        }
    }
}

/// Returns the payload of DATA or HEADERS without padding and priority.
fn unpadded(frame: &Frame) -> Vec<u8> {
    let mut payload = &frame.payload[..];
    if frame.flags & PADDED != 0
        && let Some((length, rest)) = payload.split_first()
    {
        payload = &rest[..rest.len().saturating_sub(usize::from(*length))];
    }
    if frame.kind == HEADERS && frame.flags & PRIORITY != 0 {
        payload = payload.get(5..).unwrap_or_default();
    }
    payload.to_vec()
}

fn code_of(payload: &[u8]) -> u32 {
    let bytes = payload.get(..4).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u32::from_be_bytes)
}

/// Returns the value of a pseudo-header field as text.
fn pseudo(fields: &[Field], name: &str) -> Option<String> {
    fields
        .iter()
        .find(|(other, _)| other == name.as_bytes())
        .map(|(_, value)| String::from_utf8_lossy(value).into_owned())
}

fn is_pseudo((name, _): &Field) -> bool {
    name.starts_with(b":")
}

/// Takes Content-Length out of the fields.
fn framing_of(fields: &mut Vec<Field>) -> Framing {
    let lengths: Vec<u64> = fields
        .iter()
        .filter(|(name, _)| name == b"content-length")
        .filter_map(|(_, value)| std::str::from_utf8(value).ok()?.parse().ok())
        .collect();
    let [length] = lengths[..] else {
        return Framing::None;
    };
    fields.retain(|(name, _)| name != b"content-length");
    Framing::Length(length)
}

/// Builds a response from its field sections.
pub(crate) fn response_of(sections: &[Section], content: &[u8], end: End) -> Seen {
    let mut seen = without_header_section(sections, content, end);
    let mut sections = sections.iter();
    for section in sections.by_ref() {
        let status = pseudo(&section.fields, ":status").unwrap_or_default();
        let fields = section.fields.iter();
        let rest: Vec<Field> = fields.filter(|field| !is_pseudo(field)).cloned().collect();
        if status.starts_with('1') {
            seen.interim.push((status, rest));
            continue;
        }
        seen.start = status;
        seen.fields = rest;
        break;
    }
    seen.framing = framing_of(&mut seen.fields);
    seen.trailers = fields_of(sections);
    seen
}

/// Builds a request from its field sections.
pub(crate) fn request_of(sections: &[Section], content: &[u8], end: End) -> Seen {
    let mut seen = without_header_section(sections, content, end);
    let mut sections = sections.iter();
    if let Some(Section { fields, .. }) = sections.next() {
        let method = pseudo(fields, ":method").unwrap_or_default();
        let path = pseudo(fields, ":path").unwrap_or_default();
        seen.start = format!("{method} {path}");
        for (name, value) in fields {
            match &name[..] {
                b":method" | b":path" | b":scheme" => {}
                b":authority" => seen.fields.push(field("host", value)),
                b"host" => seen.fields.push(field("host (field)", value)),
                _ => seen.fields.push((name.clone(), value.clone())),
            }
        }
    }
    seen.framing = framing_of(&mut seen.fields);
    seen.trailers = fields_of(sections);
    seen
}

fn without_header_section(sections: &[Section], content: &[u8], end: End) -> Seen {
    let never_indexed = sections
        .iter()
        .flat_map(|section| section.never_indexed.clone());
    Seen {
        content: content.to_vec(),
        never_indexed: never_indexed.collect(),
        ..Seen::nothing(end)
    }
}

fn fields_of<'a>(sections: impl Iterator<Item = &'a Section>) -> Vec<Field> {
    sections
        .flat_map(|section| section.fields.clone())
        .collect()
}
