//! How much of a stream fits into the rest of a packet. RFC 9000 §19.8.

use courser_wire::{StreamId, frame, varint_len};

use crate::build::packet_builder::PacketBuilder;
use crate::stream::send_buffer::Span;

/// Records a STREAM frame with this span for its fate.
pub(super) fn record(id: StreamId, span: Span, packet: &mut PacketBuilder<'_>) {
    let len = u16::try_from(span.len).expect("bounded by Fit::of");
    packet.record_stream(id, span.offset, len, span.fin);
}

/// How much data a STREAM frame can carry in the rest of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fit {
    pub(super) len: usize,
    /// True if the frame has a LEN field. Without one it extends to the end of the packet.
    pub(super) has_len: bool,
}

impl Fit {
    /// Returns `None` if no useful frame fits into `remaining` bytes.
    #[inline]
    pub(super) fn of(remaining: usize, id: StreamId, offset: u64, available: u64) -> Option<Self> {
        let available = usize::try_from(available).unwrap_or(MAX_SPAN).min(MAX_SPAN);
        let space = remaining.checked_sub(frame::Stream::header_len(id, offset, None))?;
        if available > space && space < MIN_USEFUL {
            return None;
        }
        if available >= space && space <= MAX_SPAN {
            return Some(Self {
                len: space,
                has_len: false,
            });
        }
        // If all the data fits only without a LEN field, a few bytes are left for the next frame.
        let len_field = varint_len(available as u64);
        let len = available.min(space.checked_sub(len_field)?);
        (len == available || len > 0).then_some(Self { len, has_len: true })
    }

    #[inline]
    /// Writes the type and the fields before the data.
    pub(super) fn write_header(self, id: StreamId, span: Span, packet: &mut PacketBuilder<'_>) {
        let len = self.has_len.then_some(self.len);
        frame::Stream::encode_header(packet.writer(), id, span.offset, len, span.fin);
    }
}

/// The largest span, because records store its length in 16 bits.
pub(super) const MAX_SPAN: usize = u16::MAX as usize;
/// No frame with less data than this is written if more data is waiting: it would hardly carry more than its
/// header.
const MIN_USEFUL: usize = 16;
