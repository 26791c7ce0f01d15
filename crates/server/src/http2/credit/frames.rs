//! Parsing of HTTP/2 frames from bytes that are split at any position (RFC 9113 §4.1, §6).

/// Parses frames that concern flow control, the headers of other frames, and skips the remaining bytes.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Number of bytes to skip: the preface, or the rest of a frame.
    skip: usize,
    field: [u8; 9],
    field_len: usize,
    /// The frame whose payload is being parsed field by field.
    open: Option<Open>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    field: Field,
    stream: u32,
    left: usize,
}

/// The fields in the payload of a frame.
#[derive(Clone, Copy, Debug)]
enum Field {
    Setting,
    Increment,
    ErrorCode,
}

impl Field {
    const fn len(self) -> usize {
        match self {
            Self::Setting => 6,
            Self::Increment | Self::ErrorCode => 4,
        }
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) kind: Kind,
    pub(super) len: u32,
    pub(super) stream: u32,
    pub(super) ends_stream: bool,
    /// True if a header block ends with this frame.
    pub(super) ends_block: bool,
}

/// The frame types that are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Data,
    Headers,
    ResetStream,
    /// PRIORITY (RFC 9113 §6.3) or PRIORITY_UPDATE (RFC 9218 §7.1).
    Priority,
    Continuation,
    Other,
}

/// A parsed frame header or payload field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The header of any frame.
    Header(FrameHeader),
    /// The payload of WINDOW_UPDATE; stream 0 means the connection.
    WindowUpdate { stream: u32, increment: u32 },
    /// The value of SETTINGS_INITIAL_WINDOW_SIZE.
    InitialWindow(u32),
    /// The value of SETTINGS_HEADER_TABLE_SIZE.
    TableSize(u32),
    /// The payload of RST_STREAM.
    Reset { stream: u32, code: u32 },
}

impl Frames {
    /// Creates a parser of a client's bytes, which start with a preface (RFC 9113 §3.4).
    pub(super) fn after_preface() -> Self {
        Self {
            skip: PREFACE_LEN,
            ..Self::default()
        }
    }

    /// Returns true unless a frame is incomplete.
    pub(super) const fn is_between_frames(&self) -> bool {
        self.skip == 0 && self.field_len == 0 && self.open.is_none()
    }

    /// Consumes bytes up to the next part. Returns `None` if there is no complete part.
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Option<Part> {
        loop {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            *bytes = &bytes[skipped..];
            let size = self.field_size();
            let taken = (size - self.field_len).min(bytes.len());
            let (field, rest) = bytes.split_at(taken);
            self.field[self.field_len..self.field_len + taken].copy_from_slice(field);
            *bytes = rest;
            self.field_len += taken;
            if self.field_len < size || self.skip > 0 {
                return None;
            }
            self.field_len = 0;
            if let Some(part) = self.read_field() {
                return Some(part);
            }
        }
    }

    fn field_size(&self) -> usize {
        self.open.map_or(HEADER_LEN, |open| open.field.len())
    }

    fn read_field(&mut self) -> Option<Part> {
        let field = self.field;
        let Some(open) = &mut self.open else {
            return Some(Part::Header(self.read_header()));
        };
        let (kind, stream) = (open.field, open.stream);
        open.left -= kind.len();
        if open.left == 0 {
            self.open = None;
        }
        match kind {
            Field::Setting => {
                let value = number(&field[2..6]);
                match [field[0], field[1]] {
                    SETTINGS_INITIAL_WINDOW_SIZE => Some(Part::InitialWindow(value)),
                    SETTINGS_HEADER_TABLE_SIZE => Some(Part::TableSize(value)),
                    _ => None,
                }
            }
            Field::Increment => {
                let increment = number(&field[..4]) & TOP_BIT_CLEAR;
                Some(Part::WindowUpdate { stream, increment })
            }
            Field::ErrorCode => {
                let code = number(&field[..4]);
                Some(Part::Reset { stream, code })
            }
        }
    }

    fn read_header(&mut self) -> FrameHeader {
        let field = self.field;
        let len = number(&[0, field[0], field[1], field[2]]);
        let (frame_type, flags) = (field[3], field[4]);
        let stream = number(&field[5..9]) & TOP_BIT_CLEAR;
        let left = len as usize;
        let field = match frame_type {
            SETTINGS => Some(Field::Setting),
            WINDOW_UPDATE => Some(Field::Increment),
            RST_STREAM => Some(Field::ErrorCode),
            _ => None,
        };
        // Frames with another length are errors, which end the connection.
        let is_whole = |field: &Field| match field {
            Field::Setting => left > 0 && left.is_multiple_of(field.len()),
            Field::Increment | Field::ErrorCode => left == field.len(),
        };
        match field.filter(is_whole) {
            Some(field) => {
                self.open = Some(Open {
                    field,
                    stream,
                    left,
                });
            }
            None => self.skip = left,
        }
        let kind = match frame_type {
            DATA => Kind::Data,
            HEADERS => Kind::Headers,
            RST_STREAM => Kind::ResetStream,
            PRIORITY | PRIORITY_UPDATE => Kind::Priority,
            CONTINUATION => Kind::Continuation,
            _ => Kind::Other,
        };
        FrameHeader {
            kind,
            len,
            stream,
            ends_stream: matches!(kind, Kind::Data | Kind::Headers) && flags & END_STREAM != 0,
            ends_block: flags & END_HEADERS != 0,
        }
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0, |number, &byte| number << 8 | u32::from(byte))
}

const PREFACE_LEN: usize = 24;
const HEADER_LEN: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const PRIORITY_UPDATE: u8 = 16;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const SETTINGS_HEADER_TABLE_SIZE: [u8; 2] = [0, 1];
const SETTINGS_INITIAL_WINDOW_SIZE: [u8; 2] = [0, 4];

/// Clears the reserved first bit of stream IDs and increments.
const TOP_BIT_CLEAR: u32 = (1 << 31) - 1;
