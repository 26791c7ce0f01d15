//! Malformed requests over HTTP/2, and targets that h2 does not accept.
//!
//! h2 ends a connection for the bytes of one field, resets requests without a response, and refuses targets that other
//! servers accept (`docs/design/0062`). The inspector reads each field block before h2 does. Almost all pass unchanged.
//! h2 receives a malformed request as a valid one with a [mark](crate::exchange::marks), for which the server responds
//! with 400.

mod block;
mod kinds;
mod table;

use std::borrow::Cow;

use self::block::{Blocks, Outcome, Part};
use crate::exchange::marks::Marks;
use crate::http2::hpack::Undecodable;

/// Reads the bytes that a client sends, before h2 does.
#[derive(Debug)]
pub(crate) struct Inspector {
    marks: Marks,
    blocks: Blocks,
    /// The bytes from the beginning of an incomplete frame header or field block.
    held: Vec<u8>,
    /// Number of bytes to pass on unchanged: the preface, or the rest of a frame.
    left: usize,
    /// The stream ID of the newest request. Later field blocks on the same stream are trailers.
    newest: u32,
    /// Largest number of CONTINUATION frames before the last one of a field block.
    max_continuations: usize,
    /// True once the client has violated a rule for which h2 ends the connection.
    is_over: bool,
    /// The streams of malformed requests that are not taken yet.
    malformed: Vec<u32>,
    unended: Unended,
}

/// The bytes that h2 receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Passed {
    /// The first of the received ones.
    Received(usize),
    /// Those that were appended to the output.
    Output,
}

impl Inspector {
    /// Creates the inspector of a connection whose header sections have at most `max_header_bytes`.
    pub(crate) fn new(marks: Marks, max_header_bytes: u32) -> Self {
        // As h2 computes it.
        let least = (max_header_bytes as usize / MAX_FRAME).max(1);
        Self {
            marks,
            blocks: Blocks::new(max_header_bytes),
            held: Vec::new(),
            left: PREFACE_LEN,
            newest: 0,
            max_continuations: least.saturating_add(least / 4).max(MIN_CONTINUATIONS),
            is_over: false,
            malformed: Vec::new(),
            unended: Unended::default(),
        }
    }

    /// Returns true if h2 has received something for which it ends the connection, so that nothing more is read.
    pub(super) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns the streams of malformed requests since the last call.
    pub(super) fn take_malformed(&mut self) -> impl Iterator<Item = u32> {
        std::mem::take(&mut self.malformed).into_iter()
    }

    /// Reads received bytes. Appends the bytes for h2 to `output`, unless they are received ones that it can have in
    /// place.
    #[inline]
    pub(super) fn read(&mut self, received: &[u8], output: &mut Vec<u8>) -> Passed {
        let held = std::mem::take(&mut self.held);
        let is_joined = !held.is_empty();
        let bytes = match is_joined {
            false => Cow::Borrowed(received),
            true => {
                let mut joined = held;
                joined.extend_from_slice(received);
                Cow::Owned(joined)
            }
        };
        let mut copied = 0;
        let passed = self.walk(&bytes, &mut copied, output);
        let is_in_place = copied == 0 && !is_joined;
        if !is_in_place {
            output.extend_from_slice(&bytes[copied..passed]);
        }
        if passed < bytes.len() {
            self.held = match bytes {
                Cow::Owned(mut bytes) => {
                    bytes.drain(..passed);
                    bytes
                }
                Cow::Borrowed(bytes) => bytes[passed..].to_vec(),
            };
        }
        match is_in_place {
            true => Passed::Received(passed),
            false => Passed::Output,
        }
    }

    /// Walks over the frames and returns the number of bytes that are complete. Appends changed blocks to `output`, with
    /// the bytes before them, and sets `copied` to the number of bytes that it contains.
    fn walk(&mut self, bytes: &[u8], copied: &mut usize, output: &mut Vec<u8>) -> usize {
        let mut at = 0;
        loop {
            let skipped = self.left.min(bytes.len() - at);
            at += skipped;
            self.left -= skipped;
            if self.is_over {
                return bytes.len();
            }
            let Some(header) = FrameHeader::read(&bytes[at..]) else {
                return at;
            };
            if header.kind != HEADERS {
                match self.read_other(header, &bytes[at + HEADER_LEN..]) {
                    Ok(None) => {}
                    Ok(Some(code)) => {
                        output.extend_from_slice(&bytes[*copied..at + HEADER_LEN]);
                        output.extend_from_slice(&code.to_be_bytes());
                        *copied = at + HEADER_LEN + CODE_LEN;
                    }
                    Err(Incomplete) => return at,
                }
                at += HEADER_LEN;
                self.left = header.len;
                continue;
            }
            let block = match Block::read(&bytes[at..], self.max_continuations) {
                Ok(block) => block,
                Err(Unread::Incomplete) => return at,
                Err(Unread::Invalid) => {
                    self.is_over = true;
                    return bytes.len();
                }
            };
            let Ok(changed) = self.read_block(header, &block) else {
                self.is_over = true;
                return bytes.len();
            };
            if let Some((header, changed)) = changed {
                output.extend_from_slice(&bytes[*copied..at]);
                let depends = block.depends_on_itself(header.stream);
                let priority = block.priority.filter(|_| !depends);
                put_block(output, header, priority, &changed);
                *copied = at + block.wire_len;
            }
            at += block.wire_len;
        }
    }

    /// Reads the block of a request or of trailers. Returns its frame and fields if h2 must receive others.
    fn read_block(
        &mut self,
        mut header: FrameHeader,
        block: &Block<'_>,
    ) -> Result<Option<(FrameHeader, Vec<u8>)>, Undecodable> {
        let is_trailers = header.stream <= self.newest;
        self.newest = self.newest.max(header.stream);
        let part = if is_trailers {
            Part::Trailers
        } else {
            Part::Request
        };
        // Only the first block behind a request and its content can be trailers, so that h2 refuses later ones.
        let is_unended = is_trailers && self.unended.contains(header.stream);
        let has_ended = header.flags & END_STREAM != 0;
        if has_ended {
            self.unended.remove(header.stream);
        }
        let depends = block.depends_on_itself(header.stream);
        let outcome = self
            .blocks
            .read(&block.fields, part, depends, &self.marks)?;
        if !has_ended && !is_trailers {
            let content = match self.blocks.is_connect() {
                true => Content::Tunnel,
                false => Content::Body,
            };
            self.unended.add(header.stream, content);
        }
        let Outcome::Changed {
            block: changed,
            is_malformed,
        } = outcome
        else {
            return Ok(None);
        };
        match part {
            Part::Request if is_malformed => self.malformed.push(header.stream),
            // h2 resets the stream for trailers that are not the end (RFC 9113 §8.1), with PROTOCOL_ERROR. If the stream
            // has ended, it resets it with STREAM_CLOSED (RFC 9113 §5.1).
            Part::Trailers if is_malformed && is_unended => header.flags &= !END_STREAM,
            _ => {}
        }
        Ok(Some((header, changed)))
    }

    /// Reads a frame other than HEADERS, whose payload begins with these bytes. Returns the code of a reset if h2 must
    /// receive another one.
    #[inline]
    fn read_other(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
    ) -> Result<Option<u32>, Incomplete> {
        let is_reset = header.kind == RST_STREAM;
        let mut changed = None;
        if is_reset
            && header.len == CODE_LEN
            && let Some(content) = self.unended.known(header.stream)
        {
            let code = payload.first_chunk().ok_or(Incomplete)?;
            changed = content.code_for_h2(u32::from_be_bytes(*code));
        }
        if is_reset || header.kind == DATA && header.flags & END_STREAM != 0 {
            self.unended.remove(header.stream);
        }
        Ok(changed)
    }
}

/// More bytes are needed.
#[derive(Debug)]
struct Incomplete;

/// What follows the field block of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Content {
    Body,
    Tunnel,
}

impl Content {
    /// Returns the code with which h2 must receive a reset, if it is another one. hyper takes a reset with NO_ERROR for the
    /// end of a body, and with NO_ERROR or CANCEL for the end of a tunnel: what was cut off would look whole.
    const fn code_for_h2(self, code: u32) -> Option<u32> {
        match (self, code) {
            (Self::Body, NO_ERROR) => Some(CANCEL),
            (Self::Tunnel, NO_ERROR | CANCEL) => Some(CONNECT_ERROR),
            _ => None,
        }
    }
}

/// The streams whose requests have begun and not ended.
#[derive(Debug, Default)]
struct Unended {
    streams: Vec<(u32, Content)>,
    /// True once there were too many of them. All streams count as not ended then.
    is_unknown: bool,
}

impl Unended {
    fn contains(&self, stream: u32) -> bool {
        self.is_unknown || self.known(stream).is_some()
    }

    /// Returns what a stream has, if it is known not to have ended.
    fn known(&self, stream: u32) -> Option<Content> {
        let mut streams = self.streams.iter();
        let found = streams.find(|(it, _)| *it == stream);
        found.map(|(_, content)| *content)
    }

    fn add(&mut self, stream: u32, content: Content) {
        self.is_unknown |= self.streams.len() >= MAX_UNENDED;
        if !self.is_unknown {
            self.streams.push((stream, content));
        }
    }

    fn remove(&mut self, stream: u32) {
        self.streams.retain(|(it, _)| *it != stream);
        if self.streams.is_empty() {
            // Most connections send no content.
            self.streams = Vec::new();
        }
    }
}

/// The reason why a block cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unread {
    /// More bytes are needed.
    Incomplete,
    /// The frames violate RFC 9113, or there are too many of them. h2 ends the connection.
    Invalid,
}

/// The header of a frame (RFC 9113 §4.1).
#[derive(Clone, Copy, Debug)]
struct FrameHeader {
    len: usize,
    kind: u8,
    flags: u8,
    stream: u32,
}

impl FrameHeader {
    #[inline]
    fn read(bytes: &[u8]) -> Option<Self> {
        let &[a, b, c, kind, flags, d, e, f, g] = bytes.first_chunk()?;
        Some(Self {
            len: usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c),
            kind,
            flags,
            stream: u32::from_be_bytes([d & 0x7f, e, f, g]),
        })
    }

    fn write(self, out: &mut Vec<u8>) {
        let len = u32::try_from(self.len).unwrap_or_default();
        out.extend_from_slice(&len.to_be_bytes()[1..]);
        out.extend_from_slice(&[self.kind, self.flags]);
        out.extend_from_slice(&self.stream.to_be_bytes());
    }
}

/// A complete field block with its frames.
#[derive(Debug)]
struct Block<'a> {
    fields: Cow<'a, [u8]>,
    /// The stream dependency and weight (RFC 9113 §6.2).
    priority: Option<[u8; 5]>,
    /// Length of all its frames.
    wire_len: usize,
}

impl<'a> Block<'a> {
    /// Reads the block that begins with a HEADERS frame.
    #[inline]
    fn read(bytes: &'a [u8], max_continuations: usize) -> Result<Self, Unread> {
        let first = FrameHeader::read(bytes).ok_or(Unread::Incomplete)?;
        if first.len > MAX_FRAME {
            return Err(Unread::Invalid);
        }
        let wire_len = HEADER_LEN + first.len;
        let mut payload = bytes.get(HEADER_LEN..wire_len).ok_or(Unread::Incomplete)?;
        let mut padding = 0;
        if first.flags & PADDED != 0 {
            let (&len, rest) = payload.split_first().ok_or(Unread::Invalid)?;
            (padding, payload) = (usize::from(len), rest);
        }
        let mut priority = None;
        if first.flags & PRIORITY != 0 {
            let (fields, rest) = payload.split_first_chunk().ok_or(Unread::Invalid)?;
            (priority, payload) = (Some(*fields), rest);
        }
        let len = payload.len().checked_sub(padding).ok_or(Unread::Invalid)?;
        let mut block = Self {
            fields: Cow::Borrowed(&payload[..len]),
            priority,
            wire_len,
        };
        if first.flags & END_HEADERS == 0 {
            block.read_continuations(bytes, first.stream, max_continuations)?;
        }
        Ok(block)
    }

    fn read_continuations(&mut self, bytes: &[u8], stream: u32, most: usize) -> Result<(), Unread> {
        let mut end = self.wire_len;
        let mut count = 0;
        // Frames are joined when all have arrived, because clients may send single bytes.
        loop {
            let header = FrameHeader::read(&bytes[end..]).ok_or(Unread::Incomplete)?;
            if (header.kind, header.stream) != (CONTINUATION, stream) || header.len > MAX_FRAME {
                return Err(Unread::Invalid);
            }
            let is_last = header.flags & END_HEADERS != 0;
            count += usize::from(!is_last);
            if count > most {
                return Err(Unread::Invalid);
            }
            end += HEADER_LEN + header.len;
            if end > bytes.len() {
                return Err(Unread::Incomplete);
            }
            if is_last {
                break;
            }
        }
        let fields = self.fields.to_mut();
        while let Some(header) = FrameHeader::read(&bytes[self.wire_len..end]) {
            let start = self.wire_len + HEADER_LEN;
            self.wire_len = start + header.len;
            fields.extend_from_slice(&bytes[start..self.wire_len]);
        }
        Ok(())
    }

    /// Returns true if the priority names the stream of the block itself, for which h2 does not decode it.
    fn depends_on_itself(&self, stream: u32) -> bool {
        self.priority
            .is_some_and(|[a, b, c, d, _]| u32::from_be_bytes([a & 0x7f, b, c, d]) == stream)
    }
}

/// Appends the frames of a block.
fn put_block(out: &mut Vec<u8>, header: FrameHeader, priority: Option<[u8; 5]>, block: &[u8]) {
    let priority = priority.as_ref().map_or(&[][..], |bytes| bytes);
    let has_priority = if priority.is_empty() { 0 } else { PRIORITY };
    let mut flags = header.flags & END_STREAM | has_priority;
    let mut kind = HEADERS;
    let (mut before, mut rest) = (priority, block);
    loop {
        let len = rest.len().min(MAX_FRAME - before.len());
        let (piece, after) = rest.split_at(len);
        if after.is_empty() {
            flags |= END_HEADERS;
        }
        let frame = FrameHeader {
            len: before.len() + len,
            kind,
            flags,
            stream: header.stream,
        };
        frame.write(out);
        out.extend_from_slice(before);
        out.extend_from_slice(piece);
        if after.is_empty() {
            return;
        }
        (kind, flags, before, rest) = (CONTINUATION, 0, &[], after);
    }
}

/// Number of CONTINUATION frames before the last one of a field block that every client may send (limit K409).
const MIN_CONTINUATIONS: usize = 5;

/// Largest number of streams that are known not to have ended (limit K412). The server permits fewer at a time, but a client
/// need not end those that the server has reset.
const MAX_UNENDED: usize = 256;

const PREFACE_LEN: usize = 24;
const HEADER_LEN: usize = 9;
/// Length of the error code in RST_STREAM (RFC 9113 §6.4).
const CODE_LEN: usize = 4;
/// Largest frame that the server accepts (RFC 9113 §4.2).
const MAX_FRAME: usize = 16_384;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 32;

const NO_ERROR: u32 = 0;
const CANCEL: u32 = 8;
const CONNECT_ERROR: u32 = 10;

#[cfg(test)]
mod tests;
