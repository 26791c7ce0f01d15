//! A record of the operations and results of both applications, with their invariants.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use bytes::Bytes;
use courser_base::{Side, Time};
use courser_sim::apps;
use courser_sim::seed::mix;
use courser_transport::{ConnectionError, ConnectionHandle};
use courser_wire::StreamId;

/// A connection as both ends identify it: keying material that only they can derive.
pub type Key = [u8; 16];

/// One direction of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flow {
    /// Bytes that the sender's transport accepted.
    pub written: u64,
    /// The end that the sender chose.
    pub finished: bool,
    pub reset: Option<u64>,
    /// True if the sender's transport reported that the peer has everything.
    pub is_acknowledged: bool,
    /// The code of the stop that the transport reported to the sender.
    pub reported_stop: Option<u64>,
    /// Bytes that the reader received.
    pub read: u64,
    /// True if the reader received the end, or a reset.
    pub is_read: bool,
    /// True if the reader stopped the stream.
    pub stopped: Option<u64>,
}

impl Flow {
    /// Returns true if neither end will change any more.
    pub fn is_over(&self) -> bool {
        self.is_acknowledged && (self.is_read || self.stopped.is_some())
    }
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct End {
    pub key: Option<Key>,
    /// The code with which the application closed it, and the reason it was given at the end.
    pub closed: Option<u64>,
    pub lost: Option<(Time, ConnectionError)>,
}

/// The record of all connections.
#[derive(Debug, Default)]
pub struct Book {
    /// The flows by connection, stream and sender.
    pub flows: BTreeMap<(Key, StreamId, bool), Flow>,
    /// The ends by side (true: the server) and handle.
    pub ends: BTreeMap<(bool, ConnectionHandle), End>,
    /// The ends that could not open a stream of a kind and wait for credit.
    pub awaiting_credit: BTreeSet<(bool, ConnectionHandle, usize)>,
    /// The number of operations by name.
    pub done: BTreeMap<&'static str, u64>,
}

/// The record of a run, which both applications write and `check_invariants` reads.
pub type SharedBook = Rc<RefCell<Book>>;

impl Book {
    pub fn count(&mut self, what: &'static str) {
        *self.done.entry(what).or_default() += 1;
    }

    pub fn end(&mut self, side: Side, handle: ConnectionHandle) -> &mut End {
        let begin = End {
            key: None,
            closed: None,
            lost: None,
        };
        self.ends.entry((side.is_server(), handle)).or_insert(begin)
    }

    /// Returns the other end of a connection, if it has been established.
    pub fn other(&self, is_server: bool, key: Key) -> Option<(ConnectionHandle, &End)> {
        let mut ends = self.ends.iter();
        ends.find(|((of, _), end)| *of != is_server && end.key == Some(key))
            .map(|((_, handle), end)| (*handle, end))
    }

    /// Returns the flow of a stream that must exist.
    pub fn flow(&mut self, key: Key, id: StreamId, sender: Side) -> &mut Flow {
        match self.flows.get_mut(&(key, id, sender.is_server())) {
            Some(flow) => flow,
            None => panic!("{id:?} has no flow from the {sender:?}"),
        }
    }

    /// Records bytes that arrived in order, which must be those that were written there.
    pub fn on_read(&mut self, key: Key, id: StreamId, sender: Side, bytes: &[u8]) {
        let flow = self.flow(key, id, sender);
        assert!(!flow.is_read, "{id:?} has bytes after its end");
        let (from, to) = (flow.read, flow.read + bytes.len() as u64);
        assert!(
            !bytes.is_empty(),
            "{id:?} returned no bytes instead of Blocked"
        );
        assert!(
            to <= flow.written,
            "{id:?}: read {to} of {} bytes",
            flow.written
        );
        assert!(
            apps::is_pattern_at(phase(key, id, sender) + from, bytes),
            "{id:?}: bytes {from} to {to} differ from the written ones",
        );
        flow.read = to;
    }

    /// Records that the reader received the end of the stream.
    pub fn on_end(&mut self, key: Key, id: StreamId, sender: Side) {
        let flow = self.flow(key, id, sender);
        assert!(
            flow.finished && flow.read == flow.written,
            "{id:?}: an end that the sender did not write, {flow:?}",
        );
        flow.is_read = true;
    }

    /// Records that the reader received a reset.
    pub fn on_reset(&mut self, key: Key, id: StreamId, sender: Side, code: u64) {
        let flow = self.flow(key, id, sender);
        assert_eq!(
            flow.reset,
            Some(code),
            "{id:?}: a reset that the sender did not send, {flow:?}"
        );
        flow.is_read = true;
    }

    /// Records that the sender was notified of the reader's stop.
    pub fn on_stopped(&mut self, key: Key, id: StreamId, sender: Side, code: u64) {
        let flow = self.flow(key, id, sender);
        assert_eq!(
            flow.stopped,
            Some(code),
            "{id:?}: a stop that the reader did not send, {flow:?}"
        );
        flow.reported_stop = Some(code);
    }

    /// Records that the peer has acknowledged everything.
    pub fn on_acknowledged(&mut self, key: Key, id: StreamId, sender: Side) {
        let flow = self.flow(key, id, sender);
        let was_ended = flow.finished || flow.reset.is_some() || flow.stopped.is_some();
        assert!(was_ended, "{id:?} is over before its end, {flow:?}");
        assert!(!flow.is_acknowledged, "{id:?} is over twice");
        flow.is_acknowledged = true;
    }

    /// Returns true if every connection is over at both ends, or all its streams are.
    pub fn is_settled(&self) -> bool {
        let is_lost = |end: &End| end.lost.is_some();
        let known = self.ends.iter().all(|((is_server, _), end)| {
            let Some(key) = end.key else {
                return is_lost(end);
            };
            let other = self.other(*is_server, key);
            // A server learns of the client's end of the handshake later.
            other.map_or(is_lost(end), |(_, other)| is_lost(end) == is_lost(other))
        });
        known && self.unsettled().next().is_none()
    }

    /// Returns the flows of open connections that are not over.
    pub fn unsettled(&self) -> impl Iterator<Item = (StreamId, &Flow)> {
        let flows = self.flows.iter().filter(|(_, flow)| !flow.is_over());
        flows
            .filter(|((key, ..), _)| self.is_alive(*key))
            .map(|((_, id, _), flow)| (*id, flow))
    }

    pub fn is_alive(&self, key: Key) -> bool {
        let mut ends = self.ends.values().filter(|end| end.key == Some(key));
        ends.all(|end| end.lost.is_none())
    }
}

/// Returns the offset in the pattern at which a flow starts, so that bytes of other flows do not
/// match.
fn phase(key: Key, id: StreamId, sender: Side) -> u64 {
    let of = u64::from_le_bytes(key[..8].try_into().expect("the slice has eight bytes"));
    mix(of ^ mix(id.value() * 2 + u64::from(sender.is_server()))) >> 16
}

/// Returns up to `len` bytes to write at `offset` of a flow.
pub fn bytes_at(key: Key, id: StreamId, sender: Side, offset: u64, len: u64) -> Bytes {
    apps::pattern_at(phase(key, id, sender) + offset, len)
}
