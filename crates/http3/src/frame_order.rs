//! The order of frames on a request stream, RFC 9114 §4.1, and the frames that count as useless.

use courser_base::Side;

use crate::error::{Code, Error};
use crate::extensions::{Extensions, FrameStream};
use crate::fields::FieldLimits;
use crate::frame::FrameType;
use crate::frame_reader::Rules;

/// A place in a message, which decides the frames that may come next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FramePlace {
    /// HEADERS of the message, or of an interim response, must come.
    BeforeHead,
    /// Content or trailers may come.
    Content,
    /// Content of a CONNECT, the only frames that may follow it (§4.4).
    Tunnel,
    /// The trailers came.
    AfterTrailers,
}

/// Admits the frames that the peer sends on one request stream.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// Our role.
    side: Side,
    pub(crate) place: FramePlace,
    longest_section: u64,
    /// Tiny DATA frames that are not counted yet.
    tiny_left: u64,
    /// The DATA frame that began last is tiny, and was not counted.
    is_tiny: bool,
    /// The length of the DATA frame that began last, until the first piece of its content takes it.
    pub(crate) begun: Option<u64>,
    /// Frames without content that are not counted yet.
    empty_left: u32,
    extensions: Extensions,
}

impl Order {
    /// Reads what the peer of `side`, our role, sends.
    pub(crate) fn new(side: Side, limits: FieldLimits) -> Self {
        Self {
            side,
            place: FramePlace::BeforeHead,
            longest_section: limits.encoded(),
            tiny_left: ORDINARY_TINY_FRAMES,
            is_tiny: false,
            begun: None,
            empty_left: ORDINARY_EMPTY_FRAMES,
            extensions: Extensions::default(),
        }
    }

    /// Sets the claims of the application.
    pub(crate) fn set_extensions(&mut self, extensions: Extensions) {
        self.extensions = extensions;
    }

    /// Returns true for the first integer of a stream that the application claims.
    pub(crate) fn is_signal(&self, value: u64) -> bool {
        self.side.is_server() && self.extensions.has_bidirectional(value)
    }

    /// Returns true if the DATA frame that began last has to be counted. Asked again about the same
    /// frame, it returns false.
    pub(crate) const fn counts_tiny(&mut self) -> bool {
        std::mem::replace(&mut self.is_tiny, false)
    }

    /// Takes a frame without content. Returns true if it has to be counted.
    pub(crate) const fn counts_empty(&mut self) -> bool {
        let is_ordinary = self.empty_left > 0;
        self.empty_left = self.empty_left.saturating_sub(1);
        !is_ordinary
    }
}

impl Rules for Order {
    fn classify(&self, value: u64) -> FrameType {
        match self.extensions.classify(value, FrameStream::Request) {
            // It is invalid there, and ignored (RFC 9412 §2, RFC 8336 §2.2).
            FrameType::Origin => FrameType::Unknown,
            frame_type => frame_type,
        }
    }

    fn on_data_frame(&mut self, len: u64) {
        self.begun = Some(len);
        // Responses in many small pieces are honest, and a client has chosen its server.
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
        match (frame_type, self.place) {
            (FrameType::Data, FramePlace::Content | FramePlace::Tunnel) => Ok(u64::MAX),
            (FrameType::Data, FramePlace::AfterTrailers) => {
                Err(Error::unexpected("DATA after trailers"))
            }
            (FrameType::Data, FramePlace::BeforeHead) => {
                Err(Error::unexpected("DATA before HEADERS"))
            }
            (FrameType::Headers, FramePlace::AfterTrailers) => {
                Err(Error::unexpected("HEADERS after trailers"))
            }
            (FrameType::Headers, FramePlace::Tunnel) => {
                Err(Error::unexpected("HEADERS after CONNECT"))
            }
            (FrameType::Headers, FramePlace::BeforeHead | FramePlace::Content) => {
                Ok(self.longest_section)
            }
            (FrameType::PushPromise, _) if self.side.is_client() => Err(Error::connection(
                Code::ID_ERROR,
                "PUSH_PROMISE without a MAX_PUSH_ID",
            )),
            (FrameType::Http2, _) => Err(Error::unexpected("a frame type of HTTP/2")),
            (FrameType::Claimed(value), _) => {
                let longest = self.extensions.longest_frame(value, FrameStream::Request);
                Ok(longest.unwrap_or(0) as u64)
            }
            (FrameType::Signal, _) => Err(signal_out_of_place()),
            (FrameType::Unknown, _) => Ok(u64::MAX),
            _ => Err(Error::unexpected(
                "a frame of the control stream on a request stream",
            )),
        }
    }
}

/// Returns the error of a signal that does not begin a client's bidirectional stream,
/// draft-ietf-webtrans-http3-12 §4.2.
pub(crate) const fn signal_out_of_place() -> Error {
    Error::frame("the signal of an extension inside a stream")
}

/// The content that makes a DATA frame worth its header (limit K85, attack A81). The smallest message
/// of gRPC has 5 bytes, and the smallest of a WebSocket client 6.
const TINY: u64 = 5;

/// The number of tiny DATA frames that a request may send before they count. Each [`TINY`] bytes in
/// other frames allow one more.
const ORDINARY_TINY_FRAMES: u64 = 256;

/// The number of frames without content that a message may have before they count. Many stacks end
/// a body with an empty DATA frame and put a reserved frame (§7.2.8) into each message, and a peer
/// that opens a stream for a message pays for these.
const ORDINARY_EMPTY_FRAMES: u32 = 2;
