//! The frame area of one packet while it is being filled.

use courser_wire::{StreamId, Writer};

use crate::space::sent::{FrameLists, SentFrame, SentFrames};

/// Collects the frames of one packet and records them for the parts that sent them.
///
/// The buffer excludes header, packet number and tag: a part may write as many bytes as
/// [`PacketBuilder::remaining`] returns.
#[derive(Debug)]
pub struct PacketBuilder<'a> {
    writer: Writer<'a>,
    lists: &'a mut FrameLists,
    ack_eliciting: bool,
    padded: bool,
}

impl<'a> PacketBuilder<'a> {
    /// Starts an empty packet whose frames are written into `buffer`.
    pub fn new(buffer: &'a mut [u8], lists: &'a mut FrameLists) -> Self {
        lists.start();
        Self {
            writer: Writer::new(buffer),
            lists,
            ack_eliciting: false,
            padded: false,
        }
    }

    /// Returns the number of bytes that still fit.
    pub fn remaining(&self) -> usize {
        self.writer.remaining()
    }

    /// Returns the number of bytes written so far.
    pub fn len(&self) -> usize {
        self.writer.position()
    }

    /// Returns true while no frame has been written.
    pub fn is_empty(&self) -> bool {
        self.writer.position() == 0
    }

    /// Returns the writer that frames are encoded with. Check [`PacketBuilder::remaining`] first.
    pub fn writer(&mut self) -> &mut Writer<'a> {
        &mut self.writer
    }

    /// Records a frame that was just written. Every frame but ACK and PATH_ACK makes the packet ack-eliciting
    /// (RFC 9002 §2).
    pub fn record(&mut self, frame: SentFrame) {
        let is_ack = matches!(frame, SentFrame::Ack { .. } | SentFrame::PathAck { .. });
        self.ack_eliciting |= !is_ack;
        self.lists.push(frame);
    }

    /// Records `len` bytes of a stream from `offset` on that were just written.
    #[inline]
    pub fn record_stream(&mut self, id: StreamId, offset: u64, len: u16, fin: bool) {
        self.ack_eliciting = true;
        self.lists.push_stream(id, offset, len, fin);
    }

    /// Adds PADDING until the frame area is `len` bytes long or full.
    pub fn pad_to(&mut self, len: usize) {
        let missing = len.saturating_sub(self.len()).min(self.remaining());
        if missing > 0 {
            self.writer.zeros(missing);
            self.padded = true;
        }
    }

    /// Returns true if the packet contains a frame other than ACK, PADDING and CONNECTION_CLOSE.
    pub fn is_ack_eliciting(&self) -> bool {
        self.ack_eliciting
    }

    /// Returns true if PADDING was added: such a packet counts as in flight (RFC 9002 §2).
    pub fn is_padded(&self) -> bool {
        self.padded
    }

    /// Ends the packet and returns the bytes written. The record of its frames stays in the
    /// [`FrameLists`].
    pub fn end(self) -> usize {
        self.writer.position()
    }

    /// Ends the packet. Returns the bytes written and the frames recorded.
    pub fn finish(self) -> (usize, SentFrames) {
        (self.writer.position(), self.lists.take())
    }
}
