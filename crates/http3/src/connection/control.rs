//! The peer's control stream (RFC 9114 §6.2.1, §7.2).

use bytes::Bytes;
use courser_base::Side;
use courser_wire::Reader;

use crate::error::{Code, Error};
use crate::extensions::{Extensions, FrameStream};
use crate::frame::{self, FrameType};
use crate::frame_order::signal_out_of_place;
use crate::frame_reader::{FrameReader, Piece, Rules};
use crate::settings;

/// Reads the frames of the peer's control stream.
#[derive(Debug)]
pub(super) struct ControlReader {
    frames: FrameReader,
    order: Order,
}

#[derive(Clone, Debug)]
struct Order {
    /// The role of this end.
    side: Side,
    has_settings: bool,
    extensions: Extensions,
}

impl Rules for Order {
    fn classify(&self, value: u64) -> FrameType {
        self.extensions.classify(value, FrameStream::Control)
    }

    fn admit(&mut self, frame_type: FrameType) -> Result<u64, Error> {
        if !self.has_settings && frame_type != FrameType::Settings {
            return Err(Error::connection(
                Code::MISSING_SETTINGS,
                "the control stream does not begin with SETTINGS",
            ));
        }
        match (frame_type, self.side) {
            (FrameType::Settings, _) if self.has_settings => {
                Err(Error::unexpected("more than one SETTINGS frame"))
            }
            (FrameType::Settings, _) => {
                self.has_settings = true;
                Ok(settings::LONGEST)
            }
            (FrameType::GoAway | FrameType::CancelPush, _)
            | (FrameType::MaxPushId, Side::Server) => Ok(8),
            (FrameType::PriorityUpdateRequest | FrameType::PriorityUpdatePush, Side::Server) => {
                Ok(LONGEST_PRIORITY_UPDATE)
            }
            (FrameType::Origin, _) => Ok(LONGEST_ORIGIN),
            (FrameType::Claimed(value), _) => {
                let longest = self.extensions.longest_frame(value, FrameStream::Control);
                Ok(longest.unwrap_or(0) as u64)
            }
            (FrameType::Signal, _) => Err(signal_out_of_place()),
            (FrameType::Unknown, _) => Ok(u64::MAX),
            (FrameType::Http2, _) => Err(Error::unexpected("a frame type reserved for HTTP/2")),
            (FrameType::Data | FrameType::Headers | FrameType::PushPromise, _) => Err(
                Error::unexpected("a request stream frame on the control stream"),
            ),
            (
                FrameType::MaxPushId
                | FrameType::PriorityUpdateRequest
                | FrameType::PriorityUpdatePush,
                Side::Client,
            ) => Err(Error::unexpected("a frame that only clients send")),
        }
    }
}

impl ControlReader {
    pub(super) fn new(side: Side, extensions: Extensions) -> Self {
        Self {
            frames: FrameReader::default(),
            order: Order {
                side,
                has_settings: false,
                extensions,
            },
        }
    }

    /// Adds the next chunk of the stream.
    pub(super) fn push(&mut self, chunk: Bytes) {
        self.frames.push(chunk);
    }

    /// Returns the next frame, or `None` if it is incomplete.
    ///
    /// # Errors
    ///
    /// Returns a connection error for frames that the peer must not send here or now.
    pub(super) fn poll(&mut self) -> Result<Option<Piece>, Error> {
        self.frames.poll(&mut self.order)
    }
}

/// Parses a payload that consists of exactly one integer.
pub(super) fn integer(payload: &[u8]) -> Result<u64, Error> {
    let mut reader = Reader::new(payload);
    match reader.varint() {
        Ok(value) if reader.is_empty() => Ok(value),
        _ => Err(Error::frame("payload is not exactly one integer")),
    }
}

/// Appends an ORIGIN frame (RFC 9412 §2).
pub(super) fn encode_origins(out: &mut Vec<u8>, origins: &[String]) {
    let mut payload = Vec::new();
    for origin in origins {
        let Ok(len) = u16::try_from(origin.len()) else {
            continue;
        };
        payload.extend_from_slice(&len.to_be_bytes());
        payload.extend_from_slice(origin.as_bytes());
    }
    frame::encode_header(out, frame::ORIGIN, payload.len());
    out.extend_from_slice(&payload);
}

/// Parses the payload of an ORIGIN frame. Skips entries that are not ASCII.
pub(super) fn decode_origins(payload: &[u8]) -> Result<Vec<String>, Error> {
    let mut reader = Reader::new(payload);
    let mut origins = Vec::new();
    while !reader.is_empty() {
        let entry = reader.u16().and_then(|len| reader.bytes(usize::from(len)));
        let entry = entry.map_err(|_| Error::frame("ORIGIN truncated inside an entry"))?;
        if entry.is_ascii() {
            origins.extend(String::from_utf8(entry.to_vec()));
        }
    }
    Ok(origins)
}

/// Longest payload of PRIORITY_UPDATE: an identifier and a field value.
const LONGEST_PRIORITY_UPDATE: u64 = 256;
const LONGEST_ORIGIN: u64 = 4096;
