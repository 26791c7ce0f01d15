//! The spans of streams, derived from the frames of packets.

use std::collections::{HashMap, HashSet};

use courser_base::Side;
use courser_telemetry::FrameRecord;
use courser_wire::{Direction, StreamId};
use tracing::field::Empty;
use tracing::{Level, Span, debug, debug_span, span_enabled};

use super::targets::STREAM;

/// The spans of the open streams of a connection.
#[derive(Debug)]
pub(super) struct StreamSpans {
    side: Side,
    /// True if stream spans are enabled. Otherwise no frame is examined.
    is_on: bool,
    open: HashMap<StreamId, StreamSpan>,
    /// The index after the highest one seen, for each kind of stream. A frame of a lower stream that is neither
    /// open nor skipped is late, and opens no span.
    next: [u64; 4],
    /// Streams whose first frame arrives after that of a higher one.
    skipped: HashSet<StreamId>,
}

#[derive(Debug)]
struct StreamSpan {
    span: Span,
    /// The end of the data sent by this end, in bytes.
    sent: u64,
    received: u64,
    is_sending: bool,
    is_receiving: bool,
}

/// Data, or the end of one direction of a stream.
enum Event {
    Data { end: u64, fin: bool },
    Reset { error_code: u64, final_size: u64 },
    Stop { error_code: u64 },
}

impl StreamSpans {
    pub(super) fn new(side: Side) -> Self {
        Self {
            side,
            is_on: span_enabled!(target: STREAM, Level::DEBUG),
            open: HashMap::new(),
            next: [0; 4],
            skipped: HashSet::new(),
        }
    }

    /// Processes the frames of a packet that was sent or received.
    pub(super) fn record(&mut self, connection: &Span, frames: &[FrameRecord], is_sent: bool) {
        if !self.is_on {
            return;
        }
        for frame in frames {
            let (id, event) = match *frame {
                FrameRecord::Stream {
                    id,
                    offset,
                    len,
                    fin,
                } => {
                    let end = offset.saturating_add(len as u64);
                    (id, Event::Data { end, fin })
                }
                FrameRecord::ResetStream {
                    id,
                    error_code,
                    final_size,
                }
                | FrameRecord::ResetStreamAt {
                    id,
                    error_code,
                    final_size,
                    ..
                } => {
                    let event = Event::Reset {
                        error_code,
                        final_size,
                    };
                    (id, event)
                }
                FrameRecord::StopSending { id, error_code } => (id, Event::Stop { error_code }),
                _ => continue,
            };
            self.on_event(connection, id, &event, is_sent);
        }
    }

    fn on_event(&mut self, connection: &Span, id: StreamId, event: &Event, is_sent: bool) {
        if self.is_first(id) && self.open.len() < MAX_STREAMS {
            self.open
                .insert(id, StreamSpan::new(connection, id, self.side));
        }
        let Some(stream) = self.open.get_mut(&id) else {
            return;
        };
        stream.on_event(event, is_sent);
        if !stream.is_sending && !stream.is_receiving {
            self.open.remove(&id);
        }
    }
}

impl StreamSpans {
    /// Returns true for the first frame of a stream.
    fn is_first(&mut self, id: StreamId) -> bool {
        let next = &mut self.next[(id.value() & 3) as usize];
        if id.index() < *next {
            return self.skipped.remove(&id);
        }
        let room = MAX_STREAMS - self.skipped.len().min(MAX_STREAMS);
        let skipped = (*next..id.index()).take(room);
        self.skipped
            .extend(skipped.map(|index| StreamId::new(id.initiator(), id.direction(), index)));
        *next = id.index() + 1;
        true
    }
}

impl StreamSpan {
    fn new(connection: &Span, id: StreamId, side: Side) -> Self {
        let is_ours = id.initiator() == side;
        let span = debug_span!(
            target: STREAM,
            parent: connection,
            "stream",
            %id,
            is_ours,
            sent = Empty,
            received = Empty,
        );
        let is_both = id.direction() == Direction::Bidirectional;
        Self {
            span,
            sent: 0,
            received: 0,
            is_sending: is_both || is_ours,
            is_receiving: is_both || !is_ours,
        }
    }

    fn on_event(&mut self, event: &Event, is_sent: bool) {
        let by = if is_sent { "local" } else { "peer" };
        let (size, is_open) = match is_sent {
            true => (&mut self.sent, &mut self.is_sending),
            false => (&mut self.received, &mut self.is_receiving),
        };
        match *event {
            Event::Data { end, fin } => {
                *size = end.max(*size);
                if fin && *is_open {
                    *is_open = false;
                    let bytes = *size;
                    debug!(target: STREAM, parent: &self.span, by, bytes, "finished");
                }
            }
            Event::Reset {
                error_code,
                final_size,
            } => {
                *size = final_size;
                *is_open = false;
                debug!(target: STREAM, parent: &self.span, by, error_code, "reset");
            }
            Event::Stop { error_code } => {
                debug!(target: STREAM, parent: &self.span, by, error_code, "stopped");
            }
        }
    }
}

/// Emits the totals of the stream, including when the connection ends first.
impl Drop for StreamSpan {
    fn drop(&mut self) {
        self.span.record("sent", self.sent);
        self.span.record("received", self.received);
    }
}

/// Largest number of open stream spans of a connection. Further streams have none.
const MAX_STREAMS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(index: u64) -> StreamId {
        StreamId::new(Side::Client, Direction::Unidirectional, index)
    }

    fn frame(index: u64, fin: bool) -> FrameRecord {
        FrameRecord::Stream {
            id: stream(index),
            offset: 0,
            len: 10,
            fin,
        }
    }

    fn spans() -> StreamSpans {
        StreamSpans {
            is_on: true,
            ..StreamSpans::new(Side::Server)
        }
    }

    #[test]
    fn spans_of_streams_are_bounded() {
        let mut spans = spans();
        // Only every hundredth stream is seen, and the others may follow.
        for index in (0..400_000).step_by(100) {
            spans.record(&Span::none(), &[frame(index, false)], false);
        }
        assert_eq!(spans.open.len(), MAX_STREAMS);
        assert_eq!(spans.skipped.len(), MAX_STREAMS);
    }

    #[test]
    fn repeated_frame_of_a_finished_stream_opens_no_span() {
        let mut spans = spans();
        spans.record(&Span::none(), &[frame(0, true)], false);
        assert!(spans.open.is_empty());
        spans.record(&Span::none(), &[frame(0, true)], false);
        assert!(spans.open.is_empty());
    }

    #[test]
    fn stream_whose_first_frame_is_late_has_a_span() {
        let mut spans = spans();
        spans.record(&Span::none(), &[frame(3, false)], false);
        spans.record(&Span::none(), &[frame(1, false)], false);
        assert!(spans.open.contains_key(&stream(1)));
        assert!(!spans.open.contains_key(&stream(2)));
    }
}
