//! A model of the calls of an application, for checking the data that arrives.

use std::collections::BTreeMap;

use courser_transport::{ReadError, Streams};
use courser_wire::StreamId;

/// The streams of an application.
#[derive(Default)]
pub(super) struct Model {
    pub(super) sending: BTreeMap<StreamId, Sending>,
    pub(super) receiving: BTreeMap<StreamId, Receiving>,
}

/// The sending half of a stream.
#[derive(Default)]
pub(super) struct Sending {
    pub(super) written: u64,
    pub(super) is_finished: bool,
    /// The error code of a reset.
    pub(super) reset: Option<u64>,
    /// The peer sent STOP_SENDING.
    pub(super) is_stopped: bool,
}

/// The receiving half of a stream.
#[derive(Default)]
pub(super) struct Receiving {
    pub(super) read: u64,
    pub(super) end: Option<End>,
}

/// The end of a received stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Fin,
    Reset(u64),
    /// The application stopped the stream.
    Stopped,
    /// The stream was closed, for example with its connection.
    Gone,
}

impl Receiving {
    /// Reads at most `max` bytes and compares them with those that belong at their offsets. Returns
    /// true if there may be more.
    ///
    /// # Panics
    /// Panics if they differ.
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
            Err(ReadError::ClosedStream | ReadError::Unordered) => self.end = Some(End::Gone),
        }
        false
    }

    /// Compares the received stream with what the peer sent.
    ///
    /// # Panics
    /// Panics if more was read than written, or the stream ended without reason.
    pub(super) fn check(&self, id: StreamId, sent: &Sending) {
        assert!(self.read <= sent.written, "{id:?}: more than was written");
        match self.end {
            Some(End::Fin) => {
                assert!(sent.is_finished, "{id:?} was not finished");
                assert_eq!(self.read, sent.written, "{id:?} ended early");
            }
            Some(End::Reset(code)) => {
                // A stopped stream is reset with the code of STOP_SENDING.
                assert!(
                    sent.reset == Some(code) || sent.is_stopped,
                    "{id:?} was not reset with {code}: {:?}",
                    sent.reset
                );
            }
            Some(End::Stopped | End::Gone) | None => {}
        }
    }

    /// Returns true if no more data or end of the stream can arrive.
    pub(super) fn has_all(&self, sent: &Sending) -> bool {
        self.end.is_some()
            || (!sent.is_finished && sent.reset.is_none() && self.read == sent.written)
    }
}

/// Returns the byte that is sent at an offset of a stream.
pub(super) const fn byte_at(id: StreamId, offset: u64) -> u8 {
    let mixed = (offset ^ id.value() << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}
