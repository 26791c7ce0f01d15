//! The script of an odd peer, which is prepared before the first packet is sent.

use std::collections::VecDeque;

use courser_base::Side;
use courser_crypto::Rng;
use courser_wire::{Direction, StreamId};

use crate::http::{DATA, HEADERS, Method, SETTINGS, put_field, section};

/// A step of a script.
#[derive(Debug)]
pub(super) enum Step {
    /// Sends a packet with these frames.
    Packet(Vec<Vec<u8>>),
    UpdateKeys,
    IssueId,
    /// Switches to another connection ID of the peer, and retires the previous one.
    UseNextId,
    Move,
    /// Sends nothing for a few round trips.
    Pause,
}

/// Creates the script for a message with this content.
pub(super) fn script(rng: &mut Rng, side: Side, content: &[u8]) -> VecDeque<Step> {
    let mut frames = stream_frames(rng, side, content);
    // Shuffles within groups, so that there are only a few gaps at a time.
    for group in frames.chunks_mut(30) {
        shuffle(rng, group);
    }
    let mut packets = packets(rng, frames);
    let quarter = packets.len() / 4;
    let mut steps = VecDeque::from([Step::IssueId, Step::Pause]);
    for turn in 0..4 {
        let rest = if turn < 3 { quarter } else { packets.len() };
        steps.extend(packets.drain(..rest).map(Step::Packet));
        steps.extend([Step::Pause, Step::UpdateKeys]);
        steps.extend(storm().map(Step::Packet));
        steps.push_back(Step::UseNextId);
        if side.is_client() {
            steps.push_back(Step::Move);
        }
        steps.push_back(Step::Packet(vec![vec![PING]]));
        steps.push_back(Step::Pause);
    }
    steps
}

/// Returns the content of a message, which is the concatenation of its DATA frames.
pub(super) fn content(mut message: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    while let Some((kind, rest)) = take_varint(message) {
        let Some((len, rest)) = take_varint(rest) else {
            break;
        };
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(rest.len());
        if kind == DATA {
            content.extend_from_slice(&rest[..len]);
        }
        message = &rest[len..];
    }
    content
}

/// Appends a variable-length integer in eight bytes, even if it is small (RFC 9000 §16).
pub(super) fn put_long(out: &mut Vec<u8>, value: u64) {
    out.extend((value | 3 << 62).to_be_bytes());
}

/// Returns all STREAM frames, alternating between the streams.
fn stream_frames(rng: &mut Rng, side: Side, content: &[u8]) -> Vec<Vec<u8>> {
    let request = StreamId::new(Side::Client, Direction::Bidirectional, 0);
    let mut streams: Vec<_> = uni_streams(side)
        .into_iter()
        .zip(0..)
        .map(|(bytes, index)| {
            let id = StreamId::new(side, Direction::Unidirectional, index);
            // Critical streams stay open, and those of reserved types end.
            let ends = index > 2;
            VecDeque::from(pieces(rng, id, &bytes, ends))
        })
        .collect();
    let message = message(rng, side, content);
    streams.push(pieces(rng, request, &message, true).into());
    let mut frames = Vec::new();
    while streams.iter().any(|stream| !stream.is_empty()) {
        for stream in &mut streams {
            frames.extend(stream.pop_front());
        }
    }
    frames
}

/// Returns the unidirectional streams of one end: the control stream, both QPACK streams, and two of
/// reserved types.
fn uni_streams(side: Side) -> Vec<Vec<u8>> {
    let mut control = Vec::new();
    put_long(&mut control, 0x00);
    let mut settings = Vec::new();
    for number in [0, 5, 1 << 40] {
        put_long(&mut settings, reserved(number));
        put_long(&mut settings, number);
    }
    control.extend(frame(SETTINGS, &settings));
    for number in 0..5 {
        control.extend(frame(reserved(number), &vec![1; number as usize * 50]));
    }
    if side.is_client() {
        // MAX_PUSH_ID, and a GOAWAY that permits all pushes.
        control.extend(frame(0x0d, &[0]));
        control.extend(frame(0x07, &(3_u64 << 62 | 1000).to_be_bytes()));
    }
    let mut streams = vec![control];
    for kind in [0x02, 0x03, reserved(3), reserved(1 << 20)] {
        let mut bytes = Vec::new();
        put_long(&mut bytes, kind);
        if kind > 3 {
            bytes.extend([0xff; 40]);
        }
        streams.push(bytes);
    }
    streams
}

/// Encodes a request or response with this content, with reserved and empty frames in between.
fn message(rng: &mut Rng, side: Side, content: &[u8]) -> Vec<u8> {
    let mut message = frame(reserved(7), b"before the header section");
    match side {
        Side::Client => message.extend(frame(HEADERS, &section(Method::Post, "/echo"))),
        Side::Server => {
            // Entry 24 of the static table is status 103, and entry 25 is 200 (RFC 9204 §A).
            for _ in 0..3 {
                message.extend(frame(HEADERS, &[0, 0, 0xc0 | 24]));
                message.extend(frame(reserved(8), b""));
            }
            message.extend(frame(HEADERS, &[0, 0, 0xc0 | 25]));
        }
    }
    let mut rest = content;
    let mut number = 0;
    while !rest.is_empty() {
        let len = (1 + below(rng, 1500)).min(rest.len());
        let (piece, after) = rest.split_at(len);
        message.extend(frame(DATA, piece));
        message.extend(frame(DATA, b""));
        message.extend(frame(reserved(number), &piece[..len.min(9)]));
        (rest, number) = (after, number + 1);
    }
    let mut trailers = vec![0, 0];
    put_field(&mut trailers, "x-odd", b"");
    message.extend(frame(HEADERS, &trailers));
    message.extend(frame(reserved(9), b"behind the trailers"));
    message
}

/// Returns STREAM frames for these bytes. The first ones have one byte, later ones have any length.
/// Some are repeated and some are empty, and FIN has a frame of its own.
fn pieces(rng: &mut Rng, id: StreamId, bytes: &[u8], ends: bool) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let most = if at < ONE_BYTE_EACH {
            1
        } else {
            1 + below(rng, 400)
        };
        let end = bytes.len().min(at + most);
        let frame = stream(id, at as u64, &bytes[at..end], false);
        if below(rng, 8) == 0 {
            frames.push(frame.clone());
        }
        if below(rng, 16) == 0 {
            frames.push(stream(id, at as u64, b"", false));
        }
        frames.push(frame);
        at = end;
    }
    if ends {
        frames.push(stream(id, bytes.len() as u64, b"", true));
    }
    frames
}

/// Packs frames into packets, with PADDING between them.
fn packets(rng: &mut Rng, frames: Vec<Vec<u8>>) -> Vec<Vec<Vec<u8>>> {
    let mut packets = Vec::new();
    let (mut packet, mut len) = (Vec::new(), 0);
    for frame in frames {
        let padding = vec![0; below(rng, 4)];
        if len + frame.len() + padding.len() > ROOM {
            packets.push(std::mem::take(&mut packet));
            len = 0;
        }
        len += frame.len() + padding.len();
        packet.extend([frame, padding]);
    }
    packets.push(packet);
    packets
}

/// Returns packets of PADDING, some of which are ack-eliciting.
fn storm() -> impl Iterator<Item = Vec<Vec<u8>>> {
    (0..40).map(|number| {
        let mut padding = vec![0; ROOM];
        if number % 4 == 0 {
            padding[ROOM / 2] = PING;
        }
        vec![padding]
    })
}

/// Encodes a STREAM frame with eight-byte integers, except for its type, which must use the shortest
/// encoding (RFC 9000 §12.4).
fn stream(id: StreamId, offset: u64, data: &[u8], fin: bool) -> Vec<u8> {
    let mut bytes = vec![0x0e | u8::from(fin)];
    for number in [id.value(), offset, data.len() as u64] {
        put_long(&mut bytes, number);
    }
    bytes.extend_from_slice(data);
    bytes
}

/// Encodes an HTTP/3 frame with eight-byte integers.
fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_long(&mut bytes, kind);
    put_long(&mut bytes, payload.len() as u64);
    bytes.extend_from_slice(payload);
    bytes
}

/// Returns a reserved type or setting, which receivers ignore (RFC 9114 §7.2.8).
const fn reserved(number: u64) -> u64 {
    0x1f * number + 0x21
}

fn take_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let len = 1 << (bytes.first()? >> 6);
    let (number, rest) = bytes.split_at_checked(len)?;
    let joined = number
        .iter()
        .fold(0, |joined, byte| joined << 8 | u64::from(*byte));
    Some((joined & ((1 << (8 * len - 2)) - 1), rest))
}

fn below(rng: &mut Rng, limit: usize) -> usize {
    u32::from_be_bytes(rng.array()) as usize % limit
}

fn shuffle<T>(rng: &mut Rng, items: &mut [T]) {
    for at in (1..items.len()).rev() {
        items.swap(at, below(rng, at + 1));
    }
}

/// The number of bytes at the start of each stream that are sent one per frame.
const ONE_BYTE_EACH: usize = 600;
/// Bytes of frames in one packet.
const ROOM: usize = 1100;

const PING: u8 = 0x01;
