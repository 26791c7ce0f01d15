//! PRIORITY_UPDATE frames (RFC 9218 §7).

use std::collections::BTreeMap;

use courser_wire::{Reader, StreamId};

use super::goaway::is_request;
use crate::error::{Code, Error};
use crate::frame;
use crate::priority::Priority;

/// The priorities that arrived before their streams.
#[derive(Debug, Default)]
pub(super) struct Priorities {
    early: BTreeMap<u64, Priority>,
    /// Number of streams that the client has opened.
    opened: u64,
    /// Number of streams that the client may open.
    limit: u64,
}

impl Priorities {
    /// Raises the number of streams that the client may open.
    pub(super) fn set_limit(&mut self, streams: u64) {
        self.limit = self.limit.max(streams);
    }

    /// Returns the number of streams that the client has opened.
    pub(super) const fn opened(&self) -> u64 {
        self.opened
    }

    /// Returns true if the stream limit allows a request with this index.
    pub(super) const fn may_exist(&self, index: u64) -> bool {
        index < self.limit
    }

    /// Records that a stream was opened, of a request or not.
    pub(super) fn on_arrived(&mut self, stream: u64) {
        let opened = StreamId::from_value(stream).index() + 1;
        self.opened = self.opened.max(opened);
        self.set_limit(opened);
    }

    /// Records that a request was opened. Returns the priority that arrived before it.
    pub(super) fn on_opened(&mut self, stream: u64) -> Option<Priority> {
        self.on_arrived(stream);
        self.early.remove(&stream)
    }

    /// Parses a PRIORITY_UPDATE frame. Returns its stream if that is open.
    pub(super) fn on_update(&mut self, payload: &[u8]) -> Result<(Option<u64>, Priority), Error> {
        let mut reader = Reader::new(payload);
        let Ok(stream) = reader.varint() else {
            return Err(Error::frame("PRIORITY_UPDATE without an identifier"));
        };
        let index = StreamId::from_value(stream).index();
        if !is_request(stream) {
            return Err(Error::connection(
                Code::ID_ERROR,
                "PRIORITY_UPDATE for a stream that is not a request",
            ));
        }
        if index >= self.limit {
            return Err(Error::connection(
                Code::ID_ERROR,
                "PRIORITY_UPDATE for a stream beyond the stream limit",
            ));
        }
        let Some(priority) = Priority::parse(reader.rest()) else {
            return Err(Error::connection(
                Code::GENERAL_PROTOCOL_ERROR,
                "PRIORITY_UPDATE whose value is not a dictionary",
            ));
        };
        if index < self.opened {
            return Ok((Some(stream), priority));
        }
        if self.early.len() < MAX_EARLY || self.early.contains_key(&stream) {
            self.early.insert(stream, priority);
        }
        Ok((None, priority))
    }

    pub(super) fn forget(&mut self, stream: u64) {
        self.early.remove(&stream);
    }
}

/// Largest number of early priorities, as many as requests may be open.
const MAX_EARLY: usize = 256;

/// Appends a PRIORITY_UPDATE frame for a request.
pub(super) fn encode_update(out: &mut Vec<u8>, stream: u64, priority: Priority) {
    let mut payload = Vec::new();
    frame::put_varint(&mut payload, stream);
    payload.extend_from_slice(priority.to_string().as_bytes());
    frame::encode_header(out, frame::PRIORITY_UPDATE_REQUEST, payload.len());
    out.extend_from_slice(&payload);
}
