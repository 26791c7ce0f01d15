//! PRIORITY_UPDATE, RFC 9218 §7.

use std::collections::BTreeMap;

use courser_wire::{Reader, StreamId};

use super::Connection;
use super::goaway::is_request;
use crate::error::{Code, Error};
use crate::frame;
use crate::priority::Priority;

/// The priorities that arrived before their streams.
#[derive(Debug, Default)]
pub(super) struct Priorities {
    early: BTreeMap<u64, Priority>,
    /// The number of streams that the client has opened.
    opened: u64,
    /// The number of streams that the client may open.
    limit: u64,
}

impl Priorities {
    /// Reads a PRIORITY_UPDATE frame. Returns its stream if that is open.
    pub(super) fn on_update(&mut self, payload: &[u8]) -> Result<(Option<u64>, Priority), Error> {
        let mut reader = Reader::new(payload);
        let Ok(stream) = reader.varint() else {
            return Err(Error::frame("PRIORITY_UPDATE without an identifier"));
        };
        let index = StreamId::from_value(stream).index();
        if !is_request(stream) {
            return Err(Error::connection(
                Code::ID_ERROR,
                "PRIORITY_UPDATE for a stream that is no request",
            ));
        }
        if index >= self.limit {
            return Err(Error::connection(
                Code::ID_ERROR,
                "PRIORITY_UPDATE for a stream that may not be opened",
            ));
        }
        let Some(priority) = Priority::parse(reader.rest()) else {
            return Err(Error::connection(
                Code::GENERAL_PROTOCOL_ERROR,
                "PRIORITY_UPDATE with a value that is no dictionary",
            ));
        };
        if index < self.opened {
            return Ok((Some(stream), priority));
        }
        if self.early.len() < MOST_EARLY || self.early.contains_key(&stream) {
            self.early.insert(stream, priority);
        }
        Ok((None, priority))
    }

    pub(super) fn forget(&mut self, stream: u64) {
        self.early.remove(&stream);
    }
}

/// The maximum number of early priorities: as many as requests may be open.
const MOST_EARLY: usize = 128;

impl Connection {
    /// Sets the number of requests that the client may have opened, by the transport's stream limit.
    pub fn set_request_limit(&mut self, streams: u64) {
        self.priorities.limit = self.priorities.limit.max(streams);
    }

    /// Returns the number of requests that the client has opened.
    pub(super) const fn opened_requests(&self) -> u64 {
        self.priorities.opened
    }

    /// Returns true if the stream limit allows a request with this index.
    pub(super) fn may_exist(&self, index: u64) -> bool {
        index < self.priorities.limit
    }

    /// Takes note of a request that was opened. Returns the priority of an earlier PRIORITY_UPDATE,
    /// which takes precedence over the `priority` field.
    pub fn on_request_opened(&mut self, stream: u64) -> Option<Priority> {
        let opened = StreamId::from_value(stream).index() + 1;
        self.priorities.opened = self.priorities.opened.max(opened);
        self.set_request_limit(opened);
        self.priorities.early.remove(&stream)
    }

    /// Asks the server to change the priority of a request.
    pub fn update_priority(&mut self, stream: u64, priority: Priority) {
        let mut payload = Vec::new();
        frame::put_varint(&mut payload, stream);
        payload.extend_from_slice(priority.to_string().as_bytes());
        let out = &mut self.control_out;
        frame::encode_header(out, frame::PRIORITY_UPDATE_REQUEST, payload.len());
        out.extend_from_slice(&payload);
    }
}
