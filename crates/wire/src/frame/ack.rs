//! ACK frames: reports of received packets. RFC 9000 §19.3.

use std::ops::{Range, RangeInclusive};

use courser_base::{EcnCounts, RangeSet};

use super::FrameType;
use crate::error::DecodeError;
use crate::reader::Reader;
use crate::varint::varint_len;
use crate::writer::Writer;

/// A received ACK frame. RFC 9000 §19.3.
///
/// The ranges stay in their encoding. [`Ack::decode`] has checked all of them, and [`Ack::ranges`]
/// decodes them one by one as the caller iterates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ack<'a> {
    /// The largest packet number acknowledged.
    pub largest: u64,
    /// Time by which the peer delayed the acknowledgement, in units of its `ack_delay_exponent`.
    pub delay: u64,
    /// The peer's ECN counts, if the frame reports them.
    pub ecn: Option<EcnCounts>,
    /// Number of packets below `largest` in the first range.
    first_range: u64,
    /// Number of pairs of a gap and a range that follow the first range.
    range_count: u64,
    /// The encoding of these pairs.
    encoded_ranges: &'a [u8],
}

impl<'a> Ack<'a> {
    /// Returns the frame type: 0x02, or 0x03 with ECN counts.
    #[inline]
    pub const fn frame_type(&self) -> FrameType {
        match self.ecn {
            None => FrameType::ACK,
            Some(_) => FrameType::ACK_ECN,
        }
    }

    /// Iterates over the acknowledged ranges, newest first. There is at least one.
    #[inline]
    pub fn ranges(&self) -> AckRanges<'a> {
        AckRanges {
            next: Some(self.largest - self.first_range..=self.largest),
            encoded: Reader::new(self.encoded_ranges),
        }
    }

    /// Returns the number of ranges, at least one.
    #[inline]
    pub const fn range_count(&self) -> u64 {
        self.range_count + 1
    }

    /// Returns the number of bytes that [`Ack::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        Start::of(None, self.ecn.as_ref()).len() + self.fields_len()
    }

    /// Writes a received frame again. To acknowledge packets that we received, use [`Ack::write`].
    pub fn encode(&self, writer: &mut Writer<'_>) {
        self.frame_type().encode(writer);
        self.encode_fields(writer);
    }

    /// Returns the length of the fields that ACK and PATH_ACK share.
    pub(super) fn fields_len(&self) -> usize {
        varint_len(self.largest)
            + varint_len(self.delay)
            + varint_len(self.range_count)
            + varint_len(self.first_range)
            + self.encoded_ranges.len()
            + ecn_len(self.ecn.as_ref())
    }

    /// Writes the fields that ACK and PATH_ACK share.
    pub(super) fn encode_fields(&self, writer: &mut Writer<'_>) {
        writer.varint(self.largest);
        writer.varint(self.delay);
        writer.varint(self.range_count);
        writer.varint(self.first_range);
        writer.bytes(self.encoded_ranges);
        write_ecn(writer, self.ecn.as_ref());
    }

    /// Writes an ACK frame for `ranges`, newest first. The frame holds as many ranges as fit the
    /// writer, at most `max_ranges`.
    ///
    /// `delay` is in units of our `ack_delay_exponent`. Writes nothing and returns false if
    /// `ranges` is empty or if not even the newest range fits.
    pub fn write(
        writer: &mut Writer<'_>,
        ranges: &RangeSet,
        delay: u64,
        ecn: Option<&EcnCounts>,
        max_ranges: usize,
    ) -> bool {
        let start = Start::of(None, ecn);
        Self::write_after(writer, start, ranges, delay, ecn, max_ranges)
    }

    /// Writes `start` and the fields that ACK and PATH_ACK share, as [`Ack::write`] does.
    #[inline(always)]
    pub(super) fn write_after(
        writer: &mut Writer<'_>,
        start: Start,
        ranges: &RangeSet,
        delay: u64,
        ecn: Option<&EcnCounts>,
        max_ranges: usize,
    ) -> bool {
        let Some(newest) = ranges.last() else {
            return false;
        };
        let (largest, first_range) = (newest.end - 1, newest.end - newest.start - 1);
        let numbers = varint_len(largest) + varint_len(delay) + varint_len(first_range);
        let fixed = start.len() + numbers + ecn_len(ecn);
        let Some(more) = count_further_ranges(ranges, fixed, writer.remaining(), max_ranges) else {
            return false;
        };
        start.encode(writer);
        writer.varint(largest);
        writer.varint(delay);
        writer.varint(more as u64);
        writer.varint(first_range);
        for (gap, len) in gaps_and_range_lens(ranges).take(more) {
            writer.varint(gap);
            writer.varint(len);
        }
        write_ecn(writer, ecn);
        true
    }

    /// Reads the fields that follow the frame type, or the path ID of PATH_ACK, and checks every
    /// range, in time linear in the number of bytes. The type shows whether ECN counts follow.
    ///
    /// # Errors
    /// Fails if the input is truncated, if the range count exceeds what the remaining bytes can
    /// hold, or if a range extends below packet number 0.
    pub fn decode(reader: &mut Reader<'a>, has_ecn: bool) -> Result<Self, DecodeError> {
        let largest = reader.varint()?;
        let delay = reader.varint()?;
        let count_at = reader.offset();
        let range_count = reader.varint()?;
        let first_at = reader.offset();
        let first_range = reader.varint()?;
        let mut smallest = largest
            .checked_sub(first_range)
            .ok_or(below_zero(first_at))?;
        // A gap and a range take at least two bytes.
        if range_count > reader.remaining() as u64 / 2 {
            return Err(DecodeError::truncated(count_at));
        }
        let before = reader.clone();
        for _ in 0..range_count {
            let range_at = reader.offset();
            let (gap, len) = (reader.varint()?, reader.varint()?);
            smallest = *range_below(smallest, gap, len)
                .ok_or(below_zero(range_at))?
                .start();
        }
        let encoded_ranges = &before.unread()[..before.remaining() - reader.remaining()];
        let ecn = if has_ecn {
            Some(decode_ecn(reader)?)
        } else {
            None
        };
        Ok(Self {
            largest,
            delay,
            ecn,
            first_range,
            range_count,
            encoded_ranges,
        })
    }
}

/// Iterator over the ranges of a received ACK frame, newest first. See [`Ack::ranges`].
#[derive(Clone, Debug)]
pub struct AckRanges<'a> {
    next: Option<RangeInclusive<u64>>,
    encoded: Reader<'a>,
}

impl Iterator for AckRanges<'_> {
    type Item = RangeInclusive<u64>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let range = self.next.take()?;
        if let (Ok(gap), Ok(len)) = (self.encoded.varint(), self.encoded.varint()) {
            self.next = range_below(*range.start(), gap, len);
        }
        Some(range)
    }
}

/// Returns the range of `len + 1` numbers that lies below `smallest` with `gap + 1` numbers between
/// them. RFC 9000 §19.3.1.
#[inline]
fn range_below(smallest: u64, gap: u64, len: u64) -> Option<RangeInclusive<u64>> {
    let largest = smallest.checked_sub(gap)?.checked_sub(2)?;
    Some(largest.checked_sub(len)?..=largest)
}

/// Returns the number of ranges after the newest that fit into `room`, or `None` if not even the
/// newest fits.
fn count_further_ranges(
    ranges: &RangeSet,
    fixed: usize,
    room: usize,
    max_ranges: usize,
) -> Option<usize> {
    let max_further = max_ranges.checked_sub(1)?;
    if fixed + varint_len(0) > room {
        return None;
    }
    let mut len = fixed;
    let mut further = 0;
    for (gap, range_len) in gaps_and_range_lens(ranges).take(max_further) {
        len += varint_len(gap) + varint_len(range_len);
        if len + varint_len(further as u64 + 1) > room {
            break;
        }
        further += 1;
    }
    Some(further)
}

/// Returns the ranges below the newest as the wire encodes them: the gap above each range, then its
/// length, both minus one.
fn gaps_and_range_lens(ranges: &RangeSet) -> impl Iterator<Item = (u64, u64)> + '_ {
    let above = ranges.iter().rev();
    let below = ranges.iter().rev().skip(1);
    above
        .zip(below)
        .map(|(above, below): (Range<u64>, Range<u64>)| {
            (above.start - below.end - 1, below.end - below.start - 1)
        })
}

/// What precedes the fields that ACK and PATH_ACK share.
#[derive(Clone, Copy)]
pub(super) struct Start {
    frame_type: FrameType,
    /// The path ID of PATH_ACK.
    path_id: Option<u64>,
}

impl Start {
    /// Returns the start of a PATH_ACK frame for a path, or of an ACK frame for none.
    pub(super) fn of(path_id: Option<u64>, ecn: Option<&EcnCounts>) -> Self {
        let frame_type = match (path_id, ecn) {
            (None, None) => FrameType::ACK,
            (None, Some(_)) => FrameType::ACK_ECN,
            (Some(_), None) => FrameType::PATH_ACK,
            (Some(_), Some(_)) => FrameType::PATH_ACK_ECN,
        };
        Self {
            frame_type,
            path_id,
        }
    }

    /// Returns the length in bytes. Each of the four types takes one.
    pub(super) fn len(self) -> usize {
        1 + self.path_id.map_or(0, varint_len)
    }

    #[inline]
    pub(super) fn encode(self, writer: &mut Writer<'_>) {
        self.frame_type.encode(writer);
        if let Some(path_id) = self.path_id {
            writer.varint(path_id);
        }
    }
}

fn ecn_len(ecn: Option<&EcnCounts>) -> usize {
    ecn.map_or(0, |counts| {
        varint_len(counts.ect0) + varint_len(counts.ect1) + varint_len(counts.ce)
    })
}

fn write_ecn(writer: &mut Writer<'_>, ecn: Option<&EcnCounts>) {
    if let Some(counts) = ecn {
        writer.varint(counts.ect0);
        writer.varint(counts.ect1);
        writer.varint(counts.ce);
    }
}

fn decode_ecn(reader: &mut Reader<'_>) -> Result<EcnCounts, DecodeError> {
    Ok(EcnCounts {
        ect0: reader.varint()?,
        ect1: reader.varint()?,
        ce: reader.varint()?,
    })
}

const fn below_zero(offset: usize) -> DecodeError {
    DecodeError::invalid("acknowledged range is below packet number 0", offset)
}

#[cfg(test)]
mod tests;
