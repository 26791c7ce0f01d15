//! The message that the peer sends on a request stream (RFC 9114 §4.1).

mod content;
mod step;

use bytes::Bytes;
use courser_base::{Side, Time};
use courser_telemetry::{FieldSection, Http3Frame, Http3Record, Pending};
use http::{HeaderMap, Method, StatusCode};

use self::content::ContentLength;
pub use self::step::{Decoding, Step};
use crate::connection::{Connection, RequestHead, ResponseHead, Section};
use crate::error::{Code, Error, Scope};
use crate::extensions::Extensions;
use crate::fields::{FieldLimits, FieldsError, Protocol};
use crate::frame::FrameType;
use crate::frame_order::{MessagePhase, Order};
use crate::frame_reader::{FrameReader, Piece, Rules as _};

/// Receives the message on one request stream: the request on a server, the interim responses and the final
/// response on a client.
///
/// Owns the whole state of that message: the current frame, a header section that is blocked on QPACK, the
/// decoded header section, the trailers, the content length that `content-length` announces, the end, and the
/// error to send to the peer. It never accesses a transport. The caller polls it and acts on the returned
/// [`Step`]:
///
/// - [`Step::Read`]: read the QUIC stream, then call [`push`](Self::push), [`on_fin`](Self::on_fin), or, if the
///   peer has reset the stream, [`on_reset`](Self::on_reset).
/// - [`Step::Decode`] and [`Step::Charge`]: lock the [`Connection`] that all requests share and call
///   [`decode`](Self::decode) or [`charge`](Self::charge). No other step needs the connection, so content is read
///   without a lock.
/// - [`Step::Headers`], [`Step::Content`], [`Step::Trailers`] and [`Step::End`] are the message, in this order.
///   A client gets `Headers` in addition for each interim response.
///
/// `charge` returns errors. Each has the code to send to the peer and the scope that ends. A message with an
/// error has ended.
///
/// Stores no content, and at most one header section within [`FieldLimits`]. A larger section is skipped, and
/// its stream must be [cancelled](Self::abandon) in the decoder. A caller that stops polling stops reading the
/// QUIC stream, so that flow control limits the peer.
#[derive(Debug)]
pub struct RequestStream {
    id: u64,
    kind: Kind,
    frames: FrameReader,
    order: Order,
    state: MessageState,
    /// True if FIN has arrived after the last chunk.
    has_fin: bool,
    /// True if the content belongs to another protocol (RFC 8441, RFC 9220).
    is_extended_connect: bool,
    length: ContentLength,
    /// Number of interim responses so far.
    interim: u32,
    /// Number of bytes withheld from flow control while the section is blocked.
    held: u64,
    /// The last header section, until it is taken. Stored here, because each move costs as much as a lock.
    head: Option<Head>,
    /// The trailers, held until the end of the stream, because a frame after them makes the message malformed.
    trailers: Option<Box<HeaderMap>>,
    /// Records of DATA frames and unknown frames.
    records: Pending,
}

/// The kind of message on the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Request,
    /// Responses to a request with this method.
    Response(RequestMethod),
}

/// The method of a request, as far as it affects how the response is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RequestMethod {
    Connect,
    Head,
    Other,
}

/// A decoded header section.
#[derive(Debug)]
enum Head {
    Request(RequestHead),
    Response(ResponseHead),
}

/// The state of the message.
///
/// ```text
///   Opening ---- a signal that is claimed ----> Over
///      | any other integer
///      v      HEADERS             decode              poll
///   Reading ----------> Section ----------> Headers --------> Reading
///      |                 |   |
///      |                 |   +-- decode --> Reading (trailers), TooLarge (a request)
///      |                 +-- decode ------> Failed
///      |  HEADERS of too many bytes
///      +----------------> TooLarge (a request), Failed
///      |  frame to count                charge                      poll
///      +----------------> Unproductive ----------> Counted, Reading -----> Reading
///      |  broken rule            charge
///      +----------------> Failed --------> Over
///      |  FIN
///      +----------------> Over
/// ```
///
/// A stream whose FIN has arrived ends with its header section or the last of its content. Resets, external
/// errors and the loss of the connection lead to `Over` from every state.
#[derive(Debug)]
enum MessageState {
    /// The first integer determines whether the stream belongs to the application.
    Opening,
    /// The next frame or a part of it is read.
    Reading,
    /// The payload of a HEADERS frame that is not decoded yet, blocked or not.
    Section(Bytes),
    /// A header section was decoded and not reported yet.
    Headers,
    /// A frame that the connection must count, with its content if it has any.
    Unproductive(Bytes),
    /// The content of a frame that was counted.
    Counted(Bytes),
    /// The header section of a request exceeds the limits.
    TooLarge(&'static str),
    /// The peer violated a rule, and the connection has not counted it yet.
    Failed(Error),
    /// The message has ended, failed or was cancelled.
    Over,
}

impl RequestStream {
    /// Creates the receiver of a request, for a server.
    pub fn request(id: u64, limits: FieldLimits) -> Self {
        Self::new(id, Kind::Request, limits)
    }

    /// Creates the receiver of the response to a request with `method`, for a client.
    pub fn response(id: u64, limits: FieldLimits, method: &Method) -> Self {
        let method = match *method {
            Method::CONNECT => RequestMethod::Connect,
            Method::HEAD => RequestMethod::Head,
            _ => RequestMethod::Other,
        };
        Self::new(id, Kind::Response(method), limits)
    }

    fn new(id: u64, kind: Kind, limits: FieldLimits) -> Self {
        let side = match kind {
            Kind::Request => Side::Server,
            Kind::Response(_) => Side::Client,
        };
        Self {
            id,
            kind,
            frames: FrameReader::default(),
            order: Order::new(side, limits),
            state: MessageState::Reading,
            has_fin: false,
            is_extended_connect: false,
            length: ContentLength::default(),
            interim: 0,
            held: 0,
            head: None,
            trailers: None,
            records: Pending::default(),
        }
    }

    /// Returns claimed streams and frames to the application as [`Step::Claimed`] and [`Step::Frame`]. Call this
    /// before the first chunk.
    pub fn set_extensions(&mut self, extensions: &Extensions) {
        if !extensions.is_none() {
            self.order.set_extensions(extensions.clone());
            if self.kind == Kind::Request && extensions.has_any_bidirectional() {
                self.state = MessageState::Opening;
            }
        }
    }

    /// Starts or stops keeping records of DATA frames and skipped frames. Off initially.
    /// [`Connection::set_recording`] covers all other frames.
    #[inline]
    pub fn set_recording(&mut self, is_on: bool) {
        self.records.set_enabled(is_on);
    }

    /// Returns the records that were kept, from which the caller takes them.
    #[inline]
    pub const fn records(&mut self) -> &mut Pending {
        &mut self.records
    }

    /// Adds the next chunk of the stream. Allowed only after [`Step::Read`].
    pub fn push(&mut self, chunk: Bytes) {
        self.frames.push(chunk);
    }

    /// Records the end of the stream (FIN), which arrives with the last chunk or after it.
    pub fn on_fin(&mut self) {
        self.has_fin = true;
    }

    /// Returns the next step. A violation is reported as [`Step::Charge`].
    #[inline]
    pub fn poll(&mut self) -> Step {
        match &mut self.state {
            MessageState::Opening => self.read_first(),
            MessageState::Reading => self.read_frames(),
            MessageState::Section(_) => Step::Decode,
            MessageState::Headers => {
                self.state = MessageState::Reading;
                self.end_if_complete();
                Step::Headers
            }
            MessageState::Unproductive(_) | MessageState::Failed(_) => Step::Charge,
            MessageState::Counted(data) => {
                let data = std::mem::take(data);
                self.state = MessageState::Reading;
                self.on_content(data)
            }
            MessageState::TooLarge(reason) => Step::TooLarge(reason),
            MessageState::Over => Step::End,
        }
    }

    /// Decodes the section that [`Step::Decode`] reported.
    pub fn decode(&mut self, connection: &mut Connection) -> Decoding {
        let MessageState::Section(section) = &self.state else {
            return Decoding::Done;
        };
        let undecoded = match (self.order.phase, self.kind) {
            (MessagePhase::BeforeHeaders, Kind::Request) => {
                match message_of(connection.decode_request(self.id, section)) {
                    Ok(head) => return self.on_request(head),
                    Err(undecoded) => undecoded,
                }
            }
            (MessagePhase::BeforeHeaders, Kind::Response(method)) => {
                match message_of(connection.decode_response(self.id, section)) {
                    Ok(head) => return self.on_response(method, head),
                    Err(undecoded) => undecoded,
                }
            }
            _ => match message_of(connection.decode_trailers(self.id, section)) {
                Ok(trailers) => return self.on_trailers(trailers),
                Err(undecoded) => undecoded,
            },
        };
        let is_request =
            self.kind == Kind::Request && self.order.phase == MessagePhase::BeforeHeaders;
        self.state = match undecoded {
            Undecoded::Blocked => return self.on_blocked(),
            Undecoded::Fields(FieldsError::TooLarge(reason)) if is_request => {
                MessageState::TooLarge(reason)
            }
            Undecoded::Fields(error) => MessageState::Failed(error.to_error()),
            Undecoded::Error(error) => MessageState::Failed(error),
        };
        Decoding::Done
    }

    /// Charges the connection's budget for the frame without progress, or the failed request, that
    /// [`Step::Charge`] reported.
    /// # Errors
    ///
    /// Returns the error that ends the message, with the code to send to the peer. It ends the connection if the
    /// budget is exhausted (limit K17).
    pub fn charge(&mut self, connection: &mut Connection, now: Time) -> Result<(), Error> {
        match std::mem::replace(&mut self.state, MessageState::Reading) {
            MessageState::Unproductive(data) => {
                if let Err(error) = connection.on_empty_frame(now) {
                    self.state = MessageState::Over;
                    return Err(error);
                }
                if !data.is_empty() {
                    self.state = MessageState::Counted(data);
                }
                Ok(())
            }
            MessageState::Failed(error) => Err(self.fail(connection, now, error)),
            state => {
                self.state = state;
                Ok(())
            }
        }
    }

    /// Ends the message because of an error that the caller has found. Returns `error`, or a connection error
    /// if the budget is exhausted.
    pub fn fail(&mut self, connection: &mut Connection, now: Time, error: Error) -> Error {
        self.state = MessageState::Over;
        match error.scope {
            Scope::Connection => error,
            // Streams that are reset because of the peer count, because they cause useless work (A72).
            Scope::Stream => match connection.on_cancelled(now, self.id) {
                Ok(()) => error,
                Err(error) => error,
            },
        }
    }

    /// Ends the message because the peer has reset the stream, which counts as a cancelled request.
    ///
    /// # Errors
    ///
    /// Returns a connection error if the peer cancels too many requests.
    pub fn on_reset(&mut self, connection: &mut Connection, now: Time) -> Result<(), Error> {
        self.state = MessageState::Over;
        connection.on_cancelled(now, self.id)
    }

    /// Ends the message because the connection is lost.
    pub fn on_connection_lost(&mut self) {
        self.state = MessageState::Over;
    }

    /// Returns the code for STOP_SENDING if the message is cancelled now, or `None` if it has ended. A server
    /// has read enough to respond (§4.1), and a client cancels (§4.1.1).
    pub const fn stop_code(&self) -> Option<Code> {
        match (&self.state, self.kind) {
            (MessageState::Over, _) => None,
            (_, Kind::Request) => Some(Code::NO_ERROR),
            (_, Kind::Response(_)) => Some(Code::REQUEST_CANCELLED),
        }
    }

    /// Returns true for a request to which a server can respond before it has arrived completely, and whose rest
    /// is content or trailers. A client may fail if it is stopped while it sends them (§4.1). Bytes of a CONNECT
    /// are not content: they are useless without a receiver.
    pub fn is_answered_early(&self) -> bool {
        match (&self.state, self.kind, self.order.phase) {
            (MessageState::Over, ..) => false,
            _ if self.is_extended_connect => false,
            (MessageState::TooLarge(_), ..) => true,
            (_, Kind::Request, place) => {
                matches!(place, MessagePhase::Content | MessagePhase::AfterTrailers)
            }
            _ => false,
        }
    }

    /// Cancels the rest of the message. If it contains a section that was not decoded, that is cancelled in the
    /// decoder (RFC 9204 §2.2.2.2).
    pub fn abandon(&mut self, connection: &mut Connection) {
        self.state = MessageState::Over;
        connection.forget(self.id);
    }

    /// Returns the number of further bytes of an incomplete header section to withhold from flow control. Call
    /// this after [`Step::Read`]. Zero for most sections, whose memory is included in that of their stream.
    pub fn hold_partial(&mut self) -> u64 {
        let partial = self.frames.partial_section() as u64;
        let more = partial.saturating_sub(self.held);
        if more < MIN_HELD {
            return 0;
        }
        self.held += more;
        more
    }

    /// Returns the number of bytes that [`Decoding::Blocked`] and [`hold_partial`](Self::hold_partial) have
    /// withheld, and clears it. Call this after [`Decoding::Done`] and when the stream is cancelled; the caller
    /// grants credit for them.
    pub const fn take_held(&mut self) -> u64 {
        std::mem::replace(&mut self.held, 0)
    }

    /// Returns true if the message has ended, failed or was cancelled.
    pub const fn is_over(&self) -> bool {
        matches!(self.state, MessageState::Over)
    }

    /// Returns the header section of the request. `None` before [`Step::Headers`] and after
    /// [`take_request`](Self::take_request).
    pub const fn request_mut(&mut self) -> Option<&mut RequestHead> {
        match &mut self.head {
            Some(Head::Request(head)) => Some(head),
            _ => None,
        }
    }

    /// Takes the header section of the request.
    pub fn take_request(&mut self) -> Option<RequestHead> {
        match self.head.take_if(|head| matches!(head, Head::Request(_))) {
            Some(Head::Request(head)) => Some(head),
            _ => None,
        }
    }

    /// Takes the header section of the latest response, interim or final.
    pub fn take_response(&mut self) -> Option<ResponseHead> {
        match self.head.take_if(|head| matches!(head, Head::Response(_))) {
            Some(Head::Response(head)) => Some(head),
            _ => None,
        }
    }

    /// Returns the number of bytes held in buffers.
    pub fn memory(&self) -> usize {
        let kept = match &self.state {
            MessageState::Section(bytes)
            | MessageState::Unproductive(bytes)
            | MessageState::Counted(bytes) => bytes.len(),
            _ => 0,
        };
        self.frames.memory() + kept
    }

    fn read_first(&mut self) -> Step {
        match self.frames.first_integer() {
            Some(signal) if self.order.is_signal(signal) => {
                self.state = MessageState::Over;
                let first = self.frames.take_rest();
                Step::Claimed { signal, first }
            }
            None if !self.has_fin => Step::Read,
            _ => {
                self.state = MessageState::Reading;
                self.read_frames()
            }
        }
    }

    fn read_frames(&mut self) -> Step {
        loop {
            let piece = match self.frames.poll(&mut self.order) {
                Ok(Some(piece)) => piece,
                Ok(None) if self.has_fin => return self.on_end(),
                Ok(None) => return Step::Read,
                Err(error) => return self.on_violation(error),
            };
            self.record(&piece);
            match piece {
                Piece::Data(data) if self.order.counts_tiny() => return self.on_unproductive(data),
                Piece::Data(data) => return self.on_content(data),
                Piece::Frame(FrameType::Claimed(frame_type), payload) => {
                    self.order.on_data_frame(payload.len() as u64);
                    if self.order.counts_tiny() {
                        self.state = MessageState::Unproductive(Bytes::new());
                    }
                    return Step::Frame {
                        frame_type,
                        payload,
                    };
                }
                // Only HEADERS can be admitted here.
                Piece::Frame(_, section) => {
                    self.state = MessageState::Section(section);
                    return Step::Decode;
                }
                Piece::Oversized { .. } => return self.on_oversized(),
                Piece::EmptyData | Piece::Skipping { .. } => {
                    if self.order.counts_empty() {
                        return self.on_unproductive(Bytes::new());
                    }
                }
            }
        }
    }

    /// Records the frame whose start is `piece`, if it is one.
    fn record(&mut self, piece: &Piece) {
        // Taken even if nothing is recorded, because the next part is not the start of the frame.
        let begun = match piece {
            Piece::Data(_) => self.order.begun.take(),
            _ => None,
        };
        if !self.records.is_enabled() {
            return;
        }
        let frame = match *piece {
            Piece::Data(_) => begun.map(|len| Http3Frame::Data { len }),
            Piece::EmptyData => Some(Http3Frame::Data { len: 0 }),
            Piece::Skipping { frame_type, len } => Some(Http3Frame::Other { frame_type, len }),
            Piece::Oversized { len } => Some(Http3Frame::Headers {
                len,
                section: FieldSection::default(),
            }),
            Piece::Frame(FrameType::Claimed(frame_type), ref payload) => Some(Http3Frame::Other {
                frame_type,
                len: payload.len() as u64,
            }),
            Piece::Frame(..) => None,
        };
        if let Some(frame) = frame {
            let stream = self.id;
            self.records
                .http3(|| Http3Record::FrameParsed { stream, frame });
        }
    }

    fn on_unproductive(&mut self, data: Bytes) -> Step {
        self.state = MessageState::Unproductive(data);
        Step::Charge
    }

    /// Refuses a section that is longer than any section within the limits. The peer's encoder is informed when
    /// the stream is cancelled or fails.
    fn on_oversized(&mut self) -> Step {
        let error = FieldsError::TooLarge("size before decompression");
        match (error, self.kind, self.order.phase) {
            (FieldsError::TooLarge(reason), Kind::Request, MessagePhase::BeforeHeaders) => {
                self.state = MessageState::TooLarge(reason);
                Step::TooLarge(reason)
            }
            _ => self.on_violation(error.to_error()),
        }
    }

    fn on_content(&mut self, data: Bytes) -> Step {
        if let Err(error) = self.length.on_content(data.len()) {
            return self.on_violation(error);
        }
        self.end_if_complete();
        Step::Content(data)
    }

    fn on_end(&mut self) -> Step {
        if let Err(error) = self.check_end() {
            return self.on_violation(error);
        }
        self.state = MessageState::Over;
        match self.trailers.take() {
            Some(trailers) => Step::Trailers(trailers),
            None => Step::End,
        }
    }

    fn on_violation(&mut self, error: Error) -> Step {
        self.state = MessageState::Failed(error);
        Step::Charge
    }

    /// Ends the message with its header section or the last of its content if FIN has arrived.
    fn end_if_complete(&mut self) {
        if self.has_fin && self.check_end().is_ok() {
            self.state = MessageState::Over;
        }
    }

    /// Checks that the stream may end here (§4.1, §7.1).
    fn check_end(&self) -> Result<(), Error> {
        self.frames.finish()?;
        match (self.order.phase, self.kind) {
            (MessagePhase::BeforeHeaders, Kind::Request) => Err(Error::stream(
                Code::REQUEST_INCOMPLETE,
                "stream ended before the request",
            )),
            (MessagePhase::BeforeHeaders, Kind::Response(_)) => {
                Err(Error::malformed("stream ended before a final response"))
            }
            _ => self.length.check_end(),
        }
    }

    fn on_request(&mut self, head: RequestHead) -> Decoding {
        let (request, length) = &head;
        let is_extended = request.extensions().get::<Protocol>().is_some();
        if *request.method() == Method::CONNECT && !is_extended {
            self.order.phase = MessagePhase::Tunnel;
        } else {
            self.order.phase = MessagePhase::Content;
            self.is_extended_connect = is_extended;
            self.length.announce(*length);
        }
        self.head = Some(Head::Request(head));
        self.state = MessageState::Headers;
        Decoding::Done
    }

    fn on_response(&mut self, method: RequestMethod, head: ResponseHead) -> Decoding {
        let status = head.0.status();
        self.state = MessageState::Headers;
        if status.is_informational() {
            self.interim += 1;
            if self.interim > MAX_INTERIM {
                let error = Error::stream(Code::EXCESSIVE_LOAD, "more than 8 interim responses");
                self.state = MessageState::Failed(error);
                return Decoding::Done;
            }
        } else if method == RequestMethod::Connect && status.is_success() {
            self.order.phase = MessagePhase::Tunnel;
        } else {
            self.order.phase = MessagePhase::Content;
            // `content-length` is the length that the content would have, but there is none (RFC 9110 §8.6).
            let is_bodiless = method == RequestMethod::Head || status == StatusCode::NOT_MODIFIED;
            self.length
                .announce(if is_bodiless { Some(0) } else { head.1 });
        }
        self.head = Some(Head::Response(head));
        Decoding::Done
    }

    fn on_trailers(&mut self, trailers: HeaderMap) -> Decoding {
        self.order.phase = MessagePhase::AfterTrailers;
        self.trailers = Some(Box::new(trailers));
        self.state = MessageState::Reading;
        Decoding::Done
    }

    /// Withholds the section and all bytes after it from flow control (RFC 9204 §2.2.1).
    fn on_blocked(&mut self) -> Decoding {
        let hold = (self.memory() as u64).saturating_sub(self.held);
        self.held += hold;
        Decoding::Blocked { hold }
    }
}

/// The reason why a section did not become a message.
enum Undecoded {
    Blocked,
    Fields(FieldsError),
    Error(Error),
}

fn message_of<T>(section: Result<Section<T>, Error>) -> Result<T, Undecoded> {
    match section {
        Ok(Section::Decoded(Ok(message))) => Ok(message),
        Ok(Section::Decoded(Err(error))) => Err(Undecoded::Fields(error)),
        Ok(Section::Blocked) => Err(Undecoded::Blocked),
        Err(error) => Err(Undecoded::Error(error)),
    }
}

/// Least number of bytes of an incomplete section that are withheld from flow control. Smaller ones are included
/// in the memory that each stream counts (limits K116, K310).
const MIN_HELD: u64 = 2 * 1024;

/// Largest number of interim responses before a final one (limit K51, attack A90).
const MAX_INTERIM: u32 = 8;

#[cfg(test)]
mod tests;
