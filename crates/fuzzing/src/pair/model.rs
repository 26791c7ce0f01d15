//! A model of the data that must arrive.

use std::collections::BTreeMap;

use courser_transport::{ReadError, Streams};
use courser_wire::StreamId;

/// Calls that an application made on its streams.
#[derive(Default)]
pub(super) struct Model {
    pub(super) sending: BTreeMap<StreamId, Sending>,
    pub(super) receiving: BTreeMap<StreamId, Receiving>,
}

#[derive(Default)]
pub(super) struct Sending {
    pub(super) written: u64,
    pub(super) is_finished: bool,
    /// With this code.
    pub(super) reset: Option<u64>,
    /// The peer did not want it.
    pub(super) is_stopped: bool,
}

#[derive(Default)]
pub(super) struct Receiving {
    pub(super) read: u64,
    pub(super) end: Option<End>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Fin,
    Reset(u64),
    /// We did not want more.
    Stopped,
    /// The stream is gone with its connection.
    Gone,
}

impl Receiving {
    /// Reads at most `max` bytes and compares them with what was sent. Returns true if there may
    /// be more.
    ///
    /// # Panics
    /// When they differ.
    pub(super) fn read(&mut self, streams: &mut Streams, id: StreamId, max: usize) -> bool {
        if self.end.is_some() {
            return false;
        }
        match streams.read_chunk(id, max) {
            Ok(None) => self.end = Some(End::Fin),
            Ok(Some(data)) => {
                for (at, &byte) in (self.read..).zip(&data[..]) {
                    assert_eq!(byte, byte_at(id, at), "{id:?} at {at}");
                }
                self.read += data.len() as u64;
                assert!(data.len() <= max);
                return !data.is_empty();
            }
            Err(ReadError::Blocked) => {}
            Err(ReadError::Reset(code)) => self.end = Some(End::Reset(code)),
            Err(ReadError::ClosedStream) => self.end = Some(End::Gone),
        }
        false
    }

    /// Checks that it fits what the peer did.
    ///
    /// # Panics
    /// When there is more than was sent, or an end that was none.
    pub(super) fn check(&self, id: StreamId, sent: &Sending) {
        assert!(self.read <= sent.written, "{id:?}: more than was written");
        match self.end {
            Some(End::Fin) => {
                assert!(sent.is_finished, "{id:?} was not finished");
                assert_eq!(self.read, sent.written, "{id:?} ended early");
            }
            Some(End::Reset(code)) => {
                // A stream that was stopped is reset with the code of that.
                assert!(
                    sent.reset == Some(code) || sent.is_stopped,
                    "{id:?} was not reset with {code}: {:?}",
                    sent.reset
                );
            }
            Some(End::Stopped | End::Gone) | None => {}
        }
    }

    /// True when nothing more can come of it.
    pub(super) fn has_all(&self, sent: &Sending) -> bool {
        self.end.is_some()
            || (!sent.is_finished && sent.reset.is_none() && self.read == sent.written)
    }
}

/// The byte that belongs at an offset of a stream.
pub(super) const fn byte_at(id: StreamId, offset: u64) -> u8 {
    let mixed = (offset ^ id.value() << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}
