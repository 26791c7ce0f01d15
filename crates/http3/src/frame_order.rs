//! Which frame may follow which on a request stream, RFC 9114 §4.1.

use courser_base::Side;

use crate::error::{Code, Error};
use crate::fields::FieldLimits;
use crate::frame::FrameType;
use crate::frame_reader::Rules;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// A head has to come.
    BeforeHead,
    /// A head came and was not told of.
    Head,
    /// Content or trailers.
    Content,
    /// Content of a CONNECT, which nothing else may follow.
    Tunnel,
    AfterTrailers,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) side: Side,
    pub(crate) state: State,
    longest_section: u64,
    /// Tiny DATA frames that are not counted yet.
    tiny_left: u64,
    /// One that is.
    pub(crate) is_tiny: bool,
}

impl Order {
    pub(crate) const fn new(side: Side, limits: FieldLimits) -> Self {
        Self {
            side,
            state: State::BeforeHead,
            longest_section: limits.encoded(),
            tiny_left: ORDINARY_TINY_FRAMES,
            is_tiny: false,
        }
    }
}

impl Rules for Order {
    fn on_data_frame(&mut self, len: u64) {
        // Responses that are made word by word are honest, and a client has chosen its server.
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
        match (frame_type, self.state) {
            (FrameType::Data, State::Content | State::Tunnel) => Ok(u64::MAX),
            (FrameType::Data, State::AfterTrailers) => {
                Err(Error::unexpected("DATA after trailers"))
            }
            (FrameType::Data, _) => Err(Error::unexpected("DATA before HEADERS")),
            (FrameType::Headers, State::AfterTrailers) => {
                Err(Error::unexpected("HEADERS after trailers"))
            }
            (FrameType::Headers, State::Tunnel) => Err(Error::unexpected("HEADERS after CONNECT")),
            (FrameType::Headers, _) => Ok(self.longest_section),
            (FrameType::PushPromise, _) if self.side.is_client() => Err(Error::connection(
                Code::ID_ERROR,
                "PUSH_PROMISE without a MAX_PUSH_ID",
            )),
            (FrameType::Http2, _) => Err(Error::unexpected("a frame type of HTTP/2")),
            (FrameType::Unknown, _) => Ok(u64::MAX),
            _ => Err(Error::unexpected(
                "a frame of the control stream on a request stream",
            )),
        }
    }
}

/// Content of a DATA frame that is not worth its frame (limit K85, attack A81). Messages of gRPC
/// and WebSocket are hardly ever smaller.
const TINY: u64 = 8;

/// Tiny DATA frames that a request may have at once. Each [`TINY`] bytes in other frames allow one
/// more.
const ORDINARY_TINY_FRAMES: u64 = 256;
