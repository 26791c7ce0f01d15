//! The flow control windows and request statistics of an HTTP/2 connection, derived from its frames.
//!
//! hyper does not report when a response waits for credit, and a client that grants none keeps its connection
//! alive with PING frames. The frames show both the windows that the client grants and the data that is sent.
//! They also show which requests were cancelled before their response.

use std::collections::HashMap;

use frames::{FrameHeader, Frames, Kind};

use super::budgets::Budgets;

mod frames;

/// The windows within which the server may send.
#[derive(Debug)]
pub(crate) struct Credit {
    received: Frames,
    sent: Frames,
    /// Requests with incomplete responses, by stream ID.
    streams: HashMap<u32, Stream>,
    /// The stream ID of the newest request.
    newest: u32,
    /// The length of the header block that is not complete, or 0.
    incomplete_block: u64,
    connection: i64,
    initial: i64,
    /// Total number of bytes sent in DATA frames.
    data_sent: u64,
    /// True while a field block is being sent, whose frames must follow each other.
    is_inside_block: bool,
    /// The smallest dynamic table that the client has allowed.
    smallest_table: u32,
    /// Streams whose malformed requests have been answered, and that must be reset.
    answered_malformed: Vec<u32>,
}

/// The place of a field block that is sent before a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Placement {
    Now,
    /// After the frame that the client does not read.
    Blocked,
    /// The response has started, or its stream has ended.
    TooLate,
    Unsupported,
}

#[derive(Debug)]
struct Stream {
    window: i64,
    has_response: bool,
    is_malformed: bool,
}

impl Credit {
    pub(crate) fn new() -> Self {
        Self {
            received: Frames::after_preface(),
            sent: Frames::default(),
            streams: HashMap::new(),
            newest: 0,
            incomplete_block: 0,
            connection: INITIAL_WINDOW,
            initial: INITIAL_WINDOW,
            data_sent: 0,
            is_inside_block: false,
            smallest_table: INITIAL_TABLE,
            answered_malformed: Vec::new(),
        }
    }

    /// Records that the request on a stream is malformed.
    pub(crate) fn on_malformed(&mut self, stream: u32) {
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.is_malformed = true;
        }
    }

    /// Returns the streams of malformed requests that have been answered completely, once a frame may follow. They must
    /// be reset (RFC 9113 §8.1.1).
    #[inline]
    pub(crate) fn take_answered_malformed(&mut self) -> Vec<u32> {
        if self.answered_malformed.is_empty() || !self.may_insert_frame() {
            return Vec::new();
        }
        std::mem::take(&mut self.answered_malformed)
    }

    /// Returns true unless a frame or field block is being sent.
    const fn may_insert_frame(&self) -> bool {
        self.sent.is_between_frames() && !self.is_inside_block
    }

    /// Returns true if the final response on a stream has not started, and a frame may be sent before it.
    ///
    /// A client that has lowered the size of its dynamic table expects the change in the next field block (RFC 7541
    /// §4.2), which only the encoder can send.
    pub(crate) fn may_precede_response(&self, stream: u32) -> Placement {
        let stream = self.streams.get(&stream);
        if stream.is_none_or(|stream| stream.has_response) {
            return Placement::TooLate;
        }
        if self.smallest_table < INITIAL_TABLE {
            return Placement::Unsupported;
        }
        match self.may_insert_frame() {
            true => Placement::Now,
            false => Placement::Blocked,
        }
    }

    /// Returns true if a started response cannot continue before the client grants credit.
    pub(crate) fn is_used_up(&self) -> bool {
        let mut responses = self.streams.values().filter(|stream| stream.has_response);
        if self.connection <= 0 {
            responses.next().is_some()
        } else {
            responses.any(|stream| stream.window <= 0)
        }
    }

    /// Returns true if no response can continue before the client grants credit for the connection.
    pub(crate) const fn is_connection_used_up(&self) -> bool {
        self.connection <= 0
    }

    /// Returns the number of bytes sent in DATA frames.
    pub(crate) const fn data_sent(&self) -> u64 {
        self.data_sent
    }

    /// Returns the announced bytes of the header block that is not complete, or 0.
    pub(crate) const fn incomplete_block(&self) -> u64 {
        self.incomplete_block
    }

    /// Returns the stream ID of the newest request, or `None` while a frame is being sent.
    pub(crate) fn newest_between_frames(&self) -> Option<u32> {
        self.sent.is_between_frames().then_some(self.newest)
    }

    /// Processes bytes that the client sent.
    pub(crate) fn on_received(&mut self, mut bytes: &[u8], budgets: &mut Budgets) {
        while let Some(part) = self.received.next(&mut bytes) {
            match part {
                frames::Part::Header(header) => self.on_received_header(header, budgets),
                frames::Part::WindowUpdate { stream, increment } => {
                    self.on_window_update(stream, i64::from(increment));
                }
                frames::Part::InitialWindow(window) => self.on_initial_window(i64::from(window)),
                frames::Part::TableSize(size) => {
                    self.smallest_table = self.smallest_table.min(size);
                }
                frames::Part::Reset { stream, .. } => match self.streams.remove(&stream) {
                    Some(stream) if stream.has_response => {}
                    Some(_) => budgets.on_cancelled(),
                    // The stream had ended, and its request was counted.
                    None => budgets.on_frame(),
                },
            }
        }
    }

    /// Processes bytes that the server sends.
    pub(crate) fn on_sent(&mut self, mut bytes: &[u8], budgets: &mut Budgets) {
        while let Some(part) = self.sent.next(&mut bytes) {
            match part {
                frames::Part::Header(header) => self.on_sent_header(header, budgets),
                frames::Part::Reset { stream, code } => {
                    let ended = self.streams.remove(&stream);
                    let is_early = ended.is_some_and(|stream| !stream.has_response);
                    if is_early && is_error_of_client(code) {
                        budgets.on_cancelled();
                    }
                }
                // Settings and window updates of the server concern the other direction.
                frames::Part::WindowUpdate { .. }
                | frames::Part::InitialWindow(_)
                | frames::Part::TableSize(_) => {}
            }
        }
    }

    fn on_received_header(&mut self, header: FrameHeader, budgets: &mut Budgets) {
        if matches!(header.kind, Kind::Headers | Kind::Continuation) {
            self.incomplete_block = match header.ends_block {
                true => 0,
                false => self.incomplete_block + u64::from(header.len),
            };
        }
        match header.kind {
            // Later header sections on the same stream are trailers.
            Kind::Headers if header.stream > self.newest => {
                self.newest = header.stream;
                budgets.on_request();
                if self.streams.len() < MAX_STREAMS {
                    let stream = Stream {
                        window: self.initial,
                        has_response: false,
                        is_malformed: false,
                    };
                    self.streams.insert(header.stream, stream);
                }
            }
            Kind::Data if header.len == 0 && !header.ends_stream => budgets.on_frame(),
            Kind::Priority => budgets.on_priority(),
            Kind::Other => budgets.on_frame(),
            // h2 limits CONTINUATION frames, and the error code of a reset is a separate part.
            Kind::Headers | Kind::Data | Kind::Continuation | Kind::ResetStream => {}
        }
    }

    fn on_sent_header(&mut self, header: FrameHeader, budgets: &mut Budgets) {
        self.is_inside_block =
            matches!(header.kind, Kind::Headers | Kind::Continuation) && !header.ends_block;
        match header.kind {
            Kind::Data => {
                budgets.on_content(header.len);
                self.data_sent += u64::from(header.len);
                self.connection -= i64::from(header.len);
                if let Some(stream) = self.streams.get_mut(&header.stream) {
                    stream.window -= i64::from(header.len);
                }
            }
            Kind::Headers => {
                if let Some(stream) = self.streams.get_mut(&header.stream)
                    && !std::mem::replace(&mut stream.has_response, true)
                {
                    budgets.on_answered();
                }
            }
            Kind::ResetStream | Kind::Priority | Kind::Continuation | Kind::Other => {}
        }
        if header.ends_stream
            && let Some(stream) = self.streams.remove(&header.stream)
            && stream.is_malformed
        {
            self.answered_malformed.push(header.stream);
        }
    }

    fn on_window_update(&mut self, stream: u32, increment: i64) {
        if stream == 0 {
            self.connection += increment;
        } else if let Some(stream) = self.streams.get_mut(&stream) {
            stream.window += increment;
        }
    }

    /// Changes the initial window, including that of open streams (RFC 9113 §6.9.2).
    fn on_initial_window(&mut self, window: i64) {
        let change = window - self.initial;
        self.initial = window;
        for stream in self.streams.values_mut() {
            stream.window += change;
        }
    }
}

/// Returns true for the error codes with which HTTP/2 resets a request because of the client, or refuses it.
/// Failed services cause other codes.
const fn is_error_of_client(code: u32) -> bool {
    const PROTOCOL_ERROR: u32 = 1;
    const FLOW_CONTROL_ERROR: u32 = 3;
    const STREAM_CLOSED: u32 = 5;
    const FRAME_SIZE_ERROR: u32 = 6;
    const REFUSED_STREAM: u32 = 7;
    matches!(
        code,
        PROTOCOL_ERROR | FLOW_CONTROL_ERROR | STREAM_CLOSED | FRAME_SIZE_ERROR | REFUSED_STREAM
    )
}

/// Size of the dynamic table before any setting (RFC 9113 §6.5.2).
const INITIAL_TABLE: u32 = 4096;

/// Initial window before any setting (RFC 9113 §6.9.2).
const INITIAL_WINDOW: i64 = 65_535;

/// Largest number of tracked requests. The server refuses further ones much earlier, and refused ones are not
/// tracked, but a client can open streams that are ignored after a GOAWAY.
const MAX_STREAMS: usize = 4096;

#[cfg(test)]
mod tests;
