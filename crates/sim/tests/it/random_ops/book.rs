//! What both applications did and saw, and what must be true of it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use bytes::Bytes;
use courser_base::{Side, Time};
use courser_sim::apps;
use courser_sim::seed::mix;
use courser_transport::{ConnectionError, ConnectionHandle};
use courser_wire::StreamId;

/// A connection as both ends know it: keying material that only they can derive.
pub type Key = [u8; 16];

/// One direction of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flow {
    /// Bytes that the sender's transport took.
    pub written: u64,
    /// What the sender said about the end.
    pub finished: bool,
    pub reset: Option<u64>,
    /// The sender's transport said that the peer has everything.
    pub is_acknowledged: bool,
    /// What the sender was told that the reader had said.
    pub told_stopped: Option<u64>,
    /// Bytes that the reader got.
    pub read: u64,
    /// The reader saw the end, or a reset.
    pub is_read: bool,
    /// The reader gave up.
    pub stopped: Option<u64>,
}

impl Flow {
    /// Nothing more will happen at either end.
    pub fn is_over(&self) -> bool {
        self.is_acknowledged && (self.is_read || self.stopped.is_some())
    }
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct End {
    pub key: Option<Key>,
    /// With what the application closed it, and what it was told at the end.
    pub closed: Option<u64>,
    pub lost: Option<(Time, ConnectionError)>,
}

/// Everything, over all connections.
#[derive(Debug, Default)]
pub struct Book {
    /// By connection, stream and who sends.
    pub flows: BTreeMap<(Key, StreamId, bool), Flow>,
    /// By who it is (true: the server) and its handle.
    pub ends: BTreeMap<(bool, ConnectionHandle), End>,
    /// Who was refused a stream of which kind and waits to be allowed one.
    pub owed: BTreeSet<(bool, ConnectionHandle, usize)>,
    /// Operations done, by name.
    pub done: BTreeMap<&'static str, u64>,
}

/// Shared by the applications and the judge of a run.
pub type Shared = Rc<RefCell<Book>>;

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

    /// The other end of a connection, if it got that far.
    pub fn other(&self, is_server: bool, key: Key) -> Option<(ConnectionHandle, &End)> {
        let mut ends = self.ends.iter();
        ends.find(|((of, _), end)| *of != is_server && end.key == Some(key))
            .map(|((_, handle), end)| (*handle, end))
    }

    /// Flow of a stream that must exist.
    pub fn flow(&mut self, key: Key, id: StreamId, sender: Side) -> &mut Flow {
        match self.flows.get_mut(&(key, id, sender.is_server())) {
            Some(flow) => flow,
            None => panic!("nobody opened {id:?} to send from the {sender:?}"),
        }
    }

    /// Bytes arrived in order: they must be those that were written there.
    pub fn on_read(&mut self, key: Key, id: StreamId, sender: Side, bytes: &[u8]) {
        let flow = self.flow(key, id, sender);
        assert!(!flow.is_read, "{id:?} goes on behind its end");
        let (from, to) = (flow.read, flow.read + bytes.len() as u64);
        assert!(!bytes.is_empty(), "{id:?} gives nothing instead of Blocked");
        assert!(
            to <= flow.written,
            "{id:?}: read {to} of {} bytes",
            flow.written
        );
        assert!(
            apps::check(phase(key, id, sender) + from, bytes),
            "{id:?}: bytes {from} to {to} are not those written there",
        );
        flow.read = to;
    }

    /// The reader is told that this was all.
    pub fn on_end(&mut self, key: Key, id: StreamId, sender: Side) {
        let flow = self.flow(key, id, sender);
        assert!(
            flow.finished && flow.read == flow.written,
            "{id:?}: an end that nobody wrote, {flow:?}",
        );
        flow.is_read = true;
    }

    /// The reader is told that the sender gave up.
    pub fn on_reset(&mut self, key: Key, id: StreamId, sender: Side, code: u64) {
        let flow = self.flow(key, id, sender);
        assert_eq!(
            flow.reset,
            Some(code),
            "{id:?}: a reset that nobody sent, {flow:?}"
        );
        flow.is_read = true;
    }

    /// The sender is told that the reader gave up.
    pub fn on_stopped(&mut self, key: Key, id: StreamId, sender: Side, code: u64) {
        let flow = self.flow(key, id, sender);
        assert_eq!(
            flow.stopped,
            Some(code),
            "{id:?}: a stop that nobody sent, {flow:?}"
        );
        flow.told_stopped = Some(code);
    }

    /// The sender is told that the peer has all.
    pub fn on_acknowledged(&mut self, key: Key, id: StreamId, sender: Side) {
        let flow = self.flow(key, id, sender);
        let was_ended = flow.finished || flow.reset.is_some() || flow.stopped.is_some();
        assert!(was_ended, "{id:?} is over before its end, {flow:?}");
        assert!(!flow.is_acknowledged, "{id:?} is over twice");
        flow.is_acknowledged = true;
    }

    /// Every connection is over at both ends, or all its streams are.
    pub fn is_settled(&self) -> bool {
        let is_lost = |end: &End| end.lost.is_some();
        let known = self.ends.iter().all(|((is_server, _), end)| {
            let Some(key) = end.key else {
                return is_lost(end);
            };
            let other = self.other(*is_server, key);
            // A server knows of the client's end of the handshake only later.
            other.map_or(is_lost(end), |(_, other)| is_lost(end) == is_lost(other))
        });
        known && self.unsettled().next().is_none()
    }

    /// Flows of living connections that are not over.
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

/// Where in the pattern a flow begins: what is read elsewhere does not fit.
fn phase(key: Key, id: StreamId, sender: Side) -> u64 {
    let of = u64::from_le_bytes(key[..8].try_into().expect("eight bytes"));
    mix(of ^ mix(id.value() * 2 + u64::from(sender.is_server()))) >> 16
}

/// Up to `len` bytes to write at `offset` of a flow.
pub fn bytes_at(key: Key, id: StreamId, sender: Side, offset: u64, len: u64) -> Bytes {
    apps::piece(phase(key, id, sender) + offset, len)
}
