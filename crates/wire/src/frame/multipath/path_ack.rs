//! PATH_ACK frames: reports of packets received on one path. RFC 10069 §4.1.

use courser_base::{EcnCounts, RangeSet};

use crate::error::DecodeError;
use crate::frame::FrameType;
use crate::frame::ack::{Ack, Start};
use crate::reader::Reader;
use crate::writer::Writer;

/// A received PATH_ACK frame. RFC 10069 §4.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathAck<'a> {
    /// ID of the path whose packet numbers are acknowledged.
    pub path_id: u64,
    /// The acknowledged packet numbers, the delay and the ECN counts of this path.
    pub ack: Ack<'a>,
}

impl<'a> PathAck<'a> {
    /// Returns the frame type: 0x3e, or 0x3f with ECN counts.
    #[inline]
    pub const fn frame_type(&self) -> FrameType {
        match self.ack.ecn {
            None => FrameType::PATH_ACK,
            Some(_) => FrameType::PATH_ACK_ECN,
        }
    }

    /// Returns the number of bytes that [`PathAck::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        self.start().len() + self.ack.fields_len()
    }

    /// Writes a received frame again. To acknowledge packets that we received, use
    /// [`PathAck::write`].
    pub fn encode(&self, writer: &mut Writer<'_>) {
        self.start().encode(writer);
        self.ack.encode_fields(writer);
    }

    /// Writes a PATH_ACK frame for `ranges` of the path `path_id`, as [`Ack::write`] does for an ACK
    /// frame.
    pub fn write(
        writer: &mut Writer<'_>,
        path_id: u64,
        ranges: &RangeSet,
        delay: u64,
        ecn: Option<&EcnCounts>,
        max_ranges: usize,
    ) -> bool {
        let start = Start::of(Some(path_id), ecn);
        Ack::write_after(writer, start, ranges, delay, ecn, max_ranges)
    }

    /// Reads the fields that follow the frame type, which shows whether ECN counts follow.
    ///
    /// # Errors
    /// Fails as [`Ack::decode`] does.
    pub fn decode(reader: &mut Reader<'a>, has_ecn: bool) -> Result<Self, DecodeError> {
        Ok(Self {
            path_id: reader.varint()?,
            ack: Ack::decode(reader, has_ecn)?,
        })
    }

    fn start(&self) -> Start {
        Start::of(Some(self.path_id), self.ack.ecn.as_ref())
    }
}
