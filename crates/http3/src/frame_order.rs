//! The order of frames on a request stream (RFC 9114 §4.1), and the frames that count as useless.

use courser_base::Side;

use crate::error::{Code, Error};
use crate::extensions::{Extensions, FrameStream};
use crate::fields::FieldLimits;
use crate::frame::FrameType;
use crate::frame_reader::Rules;

/// The phase of a message, which determines the frames that may follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MessagePhase {
    /// The header section of the message or of an interim response must follow.
    BeforeHeaders,
    /// Content or trailers may follow.
    Content,
    /// Only the content of a CONNECT may follow (§4.4).
    Tunnel,
    /// Trailers were received, and no frame of the message may follow.
    AfterTrailers,
}

/// Admits the frames that the peer sends on one request stream.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// The role of this end.
    side: Side,
    pub(crate) phase: MessagePhase,
    longest_section: u64,
    /// Number of tiny DATA frames until they count.
    tiny_left: u64,
    /// True if the current DATA frame is tiny and was not counted.
    is_tiny: bool,
    /// The length of the DATA frame that started last, until its first content is read.
    pub(crate) begun: Option<u64>,
    /// Number of frames without content until they count.
    empty_left: u32,
    extensions: Extensions,
}

impl Order {
    /// Creates the order for messages that the peer of `side`, the role of this end, sends.
    pub(crate) fn new(side: Side, limits: FieldLimits) -> Self {
        Self {
            side,
            phase: MessagePhase::BeforeHeaders,
            longest_section: limits.encoded(),
            tiny_left: ORDINARY_TINY_FRAMES,
            is_tiny: false,
            begun: None,
            empty_left: ORDINARY_EMPTY_FRAMES,
            extensions: Extensions::default(),
        }
    }

    /// Sets the extensions of the application.
    pub(crate) fn set_extensions(&mut self, extensions: Extensions) {
        self.extensions = extensions;
    }

    /// Returns true for the first integer of a stream that the application claims.
    pub(crate) fn is_signal(&self, value: u64) -> bool {
        self.side.is_server() && self.extensions.bidirectional(value).is_some()
    }

    /// Returns true if the current DATA frame must be counted. For the same frame it returns true only once.
    pub(crate) const fn counts_tiny(&mut self) -> bool {
        std::mem::replace(&mut self.is_tiny, false)
    }

    /// Records a frame without content. Returns true if it must be counted.
    pub(crate) const fn counts_empty(&mut self) -> bool {
        let is_ordinary = self.empty_left > 0;
        self.empty_left = self.empty_left.saturating_sub(1);
        !is_ordinary
    }
}

impl Rules for Order {
    fn classify(&self, value: u64) -> FrameType {
        match self.extensions.classify(value, FrameStream::Request) {
            // ORIGIN is invalid here, and ignored (RFC 9412 §2, RFC 8336 §2.2).
            FrameType::Origin => FrameType::Unknown,
            frame_type => frame_type,
        }
    }

    fn on_data_frame(&mut self, len: u64) {
        self.begun = Some(len);
        // Honest servers send responses in many small frames, and a client has chosen its server.
        if self.side.is_client() {
            return;
        }
        if len >= TINY {
            self.tiny_left = (self.tiny_left + len / TINY).min(ORDINARY_TINY_FRAMES);
        } else if self.tiny_left > 0 {
            self.tiny_left -= 1;
        } else {
            self.is_tiny = true;
        }
    }

    fn admit(&mut self, frame_type: FrameType) -> Result<u64, Error> {
        match (frame_type, self.phase) {
            (FrameType::Data, MessagePhase::Content | MessagePhase::Tunnel) => Ok(u64::MAX),
            (FrameType::Data, MessagePhase::AfterTrailers) => {
                Err(Error::unexpected("DATA after trailers"))
            }
            (FrameType::Data, MessagePhase::BeforeHeaders) => {
                Err(Error::unexpected("DATA before HEADERS"))
            }
            (FrameType::Headers, MessagePhase::AfterTrailers) => {
                Err(Error::unexpected("HEADERS after trailers"))
            }
            (FrameType::Headers, MessagePhase::Tunnel) => {
                Err(Error::unexpected("HEADERS after CONNECT"))
            }
            (FrameType::Headers, MessagePhase::BeforeHeaders | MessagePhase::Content) => {
                Ok(self.longest_section)
            }
            (FrameType::PushPromise, _) if self.side.is_client() => Err(Error::connection(
                Code::ID_ERROR,
                "PUSH_PROMISE without a MAX_PUSH_ID",
            )),
            (FrameType::Http2, _) => Err(Error::unexpected("a frame type reserved for HTTP/2")),
            (FrameType::Claimed(value), _) => {
                let longest = self.extensions.longest_frame(value, FrameStream::Request);
                Ok(longest.unwrap_or(0) as u64)
            }
            (FrameType::Signal, _) => Err(signal_out_of_place()),
            (FrameType::Unknown, _) => Ok(u64::MAX),
            _ => Err(Error::unexpected(
                "a control stream frame on a request stream",
            )),
        }
    }
}

/// Returns the error of a signal that is not at the start of a client's bidirectional stream
/// (draft-ietf-webtrans-http3-12 §4.2).
pub(crate) const fn signal_out_of_place() -> Error {
    Error::frame("the signal of an extension inside a stream")
}

/// Least content of a DATA frame that is not tiny (limit K85, attack A81). The smallest message of gRPC has 5
/// bytes, and the smallest of a WebSocket client 6.
const TINY: u64 = 5;

/// Number of tiny DATA frames that a request may contain before they count. Each [`TINY`] bytes in other frames
/// allow one more.
const ORDINARY_TINY_FRAMES: u64 = 256;

/// Number of frames without content that a message may contain before they count. Many implementations end a
/// body with an empty DATA frame and add a reserved frame (§7.2.8) to each message, and opening a stream for a
/// message offsets these.
const ORDINARY_EMPTY_FRAMES: u32 = 2;
