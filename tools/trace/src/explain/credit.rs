//! Follows flow control in a trace: limits, and the data sent up to them (RFC 9000 §4).

use std::collections::HashMap;

use super::delivery::Delivery;
use crate::qlog::{Frame, Parameters, Span};

/// Flow control in one direction: the limits of the receiver, and the bytes sent.
#[derive(Clone, Debug)]
pub(super) struct Credit {
    /// The lowest bit of the IDs of streams that the sender opens (RFC 9000 §2.1).
    sender_bit: u64,
    max_data: Option<u64>,
    initial_max_data: Option<u64>,
    /// Initial limits of bidirectional streams that the sender opens, of those that the receiver opens, and
    /// of unidirectional streams.
    initial: [Option<u64>; 3],
    streams: HashMap<u64, Stream>,
    /// Stream bytes sent, each counted once.
    pub(super) bytes: u64,
    /// Earlier limits of the connection, newest last.
    previous_max_data: [u64; PREVIOUS],
}

/// A stream in one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// The largest offset sent.
    end: u64,
    maximum: Option<u64>,
    /// The limit before the last update.
    previous: Option<u64>,
    is_over: bool,
}

/// A limit that is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reached {
    /// The limit of the connection.
    Connection,
    /// The limit of every stream with unsent data, as far as the trace shows.
    Stream,
}

impl Credit {
    /// Starts without known limits. `sender_is_server` is true if the server sends in this direction.
    pub(super) fn new(sender_is_server: bool) -> Self {
        Self {
            sender_bit: u64::from(sender_is_server),
            max_data: None,
            initial_max_data: None,
            initial: [None; 3],
            streams: HashMap::new(),
            bytes: 0,
            previous_max_data: [0; PREVIOUS],
        }
    }

    /// Sets the initial limits from the transport parameters of the receiver.
    pub(super) fn on_parameters(&mut self, of_receiver: &Parameters) {
        self.max_data = self.max_data.max(of_receiver.initial_max_data);
        self.initial_max_data = of_receiver.initial_max_data;
        self.initial = [
            of_receiver.initial_max_stream_data_bidi_remote,
            of_receiver.initial_max_stream_data_bidi_local,
            of_receiver.initial_max_stream_data_uni,
        ];
    }

    fn initial_of(&self, id: u64) -> Option<u64> {
        let is_unidirectional = id & 2 != 0;
        let is_senders = id & 1 == self.sender_bit;
        match (is_unidirectional, is_senders) {
            (true, _) => self.initial[2],
            (false, true) => self.initial[0],
            (false, false) => self.initial[1],
        }
    }

    /// Processes a frame that the receiver sent. Returns true if it grants credit.
    pub(super) fn on_receivers_frame(&mut self, frame: &Frame) -> bool {
        match *frame {
            Frame::MaxData { maximum } => {
                if let Some(before) = self.max_data {
                    self.previous_max_data.rotate_left(1);
                    self.previous_max_data[PREVIOUS - 1] = before;
                }
                self.max_data = self.max_data.max(Some(maximum));
                true
            }
            Frame::MaxStreamData { stream, maximum } => {
                let initial = self.initial_of(stream);
                if let Some(state) = self.stream(stream) {
                    state.previous = state.maximum.or(initial);
                    state.maximum = state.maximum.max(Some(maximum));
                }
                true
            }
            _ => false,
        }
    }

    fn stream(&mut self, id: u64) -> Option<&mut Stream> {
        if self.streams.len() >= MAX_STREAMS && !self.streams.contains_key(&id) {
            self.streams.retain(|_, stream| !stream.is_over);
            if self.streams.len() >= MAX_STREAMS {
                return None;
            }
        }
        Some(self.streams.entry(id).or_default())
    }

    /// Processes data that the sender sent. Returns the number of bytes that were new.
    pub(super) fn on_data(&mut self, span: Span, fin: bool) -> u64 {
        let id = span.stream;
        let end = span.offset.saturating_add(span.len);
        let Some(stream) = self.stream(id) else {
            return span.len;
        };
        let new = end.saturating_sub(stream.end);
        stream.end = stream.end.max(end);
        stream.is_over |= fin;
        self.bytes = self.bytes.saturating_add(new);
        new
    }

    /// Returns true if data before `span` is missing.
    pub(super) fn is_behind_gap(&self, span: Span) -> bool {
        let stream = self.streams.get(&span.stream);
        span.offset > stream.map_or(0, |stream| stream.end)
    }

    /// Marks a stream as over, because it was reset.
    pub(super) fn on_reset(&mut self, id: u64) {
        if let Some(stream) = self.stream(id) {
            stream.is_over = true;
        }
    }

    /// Returns true if a stream has begun and has not ended.
    pub(super) fn has_open_streams(&self) -> bool {
        self.streams.values().any(|stream| !stream.is_over)
    }

    /// Returns the limit that the sender has reached.
    pub(super) fn reached(&self) -> Option<Reached> {
        if self.max_data.is_some_and(|limit| limit <= self.bytes) && self.bytes > 0 {
            return Some(Reached::Connection);
        }
        let mut blocked = self.blocked_streams();
        blocked.next().map(|_| Reached::Stream)
    }

    /// Returns the limit at which the sender stopped, although the receiver may have raised it since.
    pub(super) fn reached_earlier(&self) -> Option<Reached> {
        let bytes = self.bytes;
        if bytes > 0 && self.previous_max_data.contains(&bytes) {
            return Some(Reached::Connection);
        }
        self.was_stream_blocked().then_some(Reached::Stream)
    }

    /// Returns true if a gap in the received data prevents the receiver from granting credit, because a
    /// large part of the window lies behind it. Otherwise the receiver could read the data before the gap.
    ///
    /// If streams have reached their limits, returns true only if this applies to all of them.
    pub(super) fn is_blocked_by_gap(&self, reached: Reached, arrived: &Delivery) -> bool {
        match reached {
            Reached::Connection => is_large(arrived.behind_gaps(), self.initial_max_data),
            Reached::Stream => {
                let mut blocked = self.blocked_streams().peekable();
                let is_held = |(id, limit): (u64, u64)| {
                    let part = arrived.gap_in(id).map(|from| limit.saturating_sub(from));
                    part.is_some_and(|part| is_large(part, self.initial_of(id)))
                };
                blocked.peek().is_some() && blocked.all(is_held)
            }
        }
    }

    /// Returns true if `part` bytes are a large part of the window of the connection or of a stream.
    pub(super) fn is_large(&self, part: u64) -> bool {
        let windows = [true, false].map(|it| self.initial_window(it));
        let mut known = windows.into_iter().filter(Option::is_some);
        known.any(|window| is_large(part, window))
    }

    /// Returns the streams that have reached their limits, and the limits.
    fn blocked_streams(&self) -> impl Iterator<Item = (u64, u64)> {
        let open = self.streams.iter().filter(|(_, stream)| !stream.is_over);
        open.filter_map(|(&id, stream)| {
            let limit = stream.maximum.or(self.initial_of(id))?;
            (stream.end > 0 && stream.end >= limit).then_some((id, limit))
        })
    }

    /// Returns true if a stream ended at the limit that applied before its last update.
    fn was_stream_blocked(&self) -> bool {
        let mut open = self.streams.values().filter(|stream| !stream.is_over);
        open.any(|stream| stream.end > 0 && stream.previous == Some(stream.end))
    }

    /// Returns the initial window of the connection, or the largest one of a stream.
    pub(super) fn initial_window(&self, is_connection: bool) -> Option<u64> {
        match is_connection {
            true => self.initial_max_data,
            false => self.initial.iter().flatten().max().copied(),
        }
    }
}

/// Returns true if `part` bytes are a large part of `window`. If the window is unknown, every part is.
fn is_large(part: u64, window: Option<u64>) -> bool {
    part > 0 && part.saturating_mul(GAP_SHARE) >= window.unwrap_or(0)
}

/// The number of earlier limits of the connection that are remembered.
const PREVIOUS: usize = 4;
/// The largest number of streams whose limits are remembered. K207.
const MAX_STREAMS: usize = 1024;
/// A gap blocks a window if one in this many parts of the initial window lies behind it. Receivers grant
/// credit once the application has read a quarter to a half of the window.
const GAP_SHARE: u64 = 4;
