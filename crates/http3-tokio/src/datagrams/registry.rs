//! Delivery of datagrams to their requests.

use std::collections::{HashMap, VecDeque};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use courser_base::foreign::ForeignWaker;
use courser_base::{Held, Mutex, Time};
use courser_http3::{self as http3, Code, Scope};

/// The datagrams of all requests of a connection. No other lock is taken while its lock is held.
#[derive(Debug)]
pub(crate) struct Registry {
    /// True if the settings of this end enable datagrams.
    is_enabled: bool,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    requests: HashMap<u64, Entry>,
    /// Datagrams for requests that have not arrived yet, because packets may be reordered.
    early: VecDeque<(u64, Bytes, Time)>,
    /// Total size of all waiting datagrams in bytes, including early ones.
    bytes: usize,
    has_ended: bool,
}

#[derive(Debug, Default)]
struct Entry {
    state: StreamState,
    queue: VecDeque<Bytes>,
    waker: Option<ForeignWaker>,
    /// True if this end has ended the sending direction of the stream.
    has_ended_sending: bool,
    has_handle: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum StreamState {
    /// It is undecided whether the request uses datagrams.
    #[default]
    Open,
    /// The request uses datagrams.
    Claimed,
    /// The request does not use datagrams.
    Unused,
    /// A datagram arrived for a request that does not use them, and the stream was aborted.
    Aborted,
    /// The peer has ended the receiving direction of the stream.
    Closed,
}

/// What happened to a received datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Delivery {
    /// The datagram waits to be received, or was dropped.
    Done,
    /// The request does not use datagrams and must be aborted (RFC 9297 §2).
    Refused,
}

impl Registry {
    pub(crate) fn new(is_enabled: bool) -> Self {
        Self {
            is_enabled,
            table: Mutex::default(),
        }
    }

    pub(crate) const fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// Adds a request that will have a handle, and moves its early datagrams to it.
    pub(crate) fn open(&self, now: Time, stream: u64) {
        if !self.is_enabled {
            return;
        }
        let mut table = self.lock();
        let mut entry = Entry {
            has_handle: true,
            ..Entry::default()
        };
        for (owner, payload, at) in std::mem::take(&mut table.early) {
            if owner == stream {
                entry.queue.push_back(payload);
            } else if now - at < LONGEST_EARLY {
                table.early.push_back((owner, payload, at));
            } else {
                table.bytes -= payload.len();
            }
        }
        table.requests.insert(stream, entry);
    }

    /// Delivers a datagram. `is_future` means that its request is not open yet.
    pub(crate) fn deliver(
        &self,
        now: Time,
        (stream, payload): (u64, Bytes),
        is_future: bool,
    ) -> Delivery {
        let mut table = self.lock();
        let Some(entry) = table.requests.get_mut(&stream) else {
            // RFC 9297 §2.1: datagrams for ended streams are dropped.
            if is_future {
                table.keep_early(now, stream, payload);
            }
            return Delivery::Done;
        };
        match entry.state {
            StreamState::Open | StreamState::Claimed => {}
            StreamState::Unused => {
                entry.state = StreamState::Aborted;
                return Delivery::Refused;
            }
            StreamState::Aborted | StreamState::Closed => return Delivery::Done,
        }
        let mut freed = 0;
        if entry.queue.len() >= MAX_OF_REQUEST {
            freed = entry.queue.pop_front().map_or(0, |oldest| oldest.len());
        }
        table.bytes -= freed;
        let fits = table.bytes + payload.len() <= MAX_BYTES;
        let Some(entry) = table.requests.get_mut(&stream) else {
            return Delivery::Done;
        };
        let mut waker = None;
        if fits {
            let len = payload.len();
            entry.queue.push_back(payload);
            waker = entry.waker.take();
            table.bytes += len;
        }
        drop(table);
        waker.into_iter().for_each(ForeignWaker::wake);
        Delivery::Done
    }

    /// Declares that the request uses datagrams. Returns false if none can be sent for it.
    pub(super) fn claim(&self, stream: u64) -> bool {
        let mut table = self.lock();
        let Some(entry) = table.requests.get_mut(&stream) else {
            return false;
        };
        if entry.state == StreamState::Open {
            entry.state = StreamState::Claimed;
        }
        !entry.has_ended_sending && entry.state != StreamState::Aborted
    }

    pub(super) fn poll_receive(&self, cx: &mut Context<'_>, stream: u64) -> Poll<Option<Bytes>> {
        let waker = ForeignWaker::of(cx);
        let mut table = self.lock();
        let has_ended = table.has_ended;
        let Some(entry) = table.requests.get_mut(&stream) else {
            return Poll::Ready(None);
        };
        if entry.state == StreamState::Open {
            entry.state = StreamState::Claimed;
        }
        if let Some(payload) = entry.queue.pop_front() {
            table.bytes -= payload.len();
            return Poll::Ready(Some(payload));
        }
        if has_ended || entry.state != StreamState::Claimed {
            return Poll::Ready(None);
        }
        entry.waker = Some(waker);
        Poll::Pending
    }

    /// Handles the drop of a request's last handle.
    pub(super) fn on_handle_dropped(&self, stream: u64) -> Delivery {
        let mut table = self.lock();
        let Some(entry) = table.requests.get_mut(&stream) else {
            return Delivery::Done;
        };
        entry.has_handle = false;
        let waiting = std::mem::take(&mut entry.queue);
        let mut delivery = Delivery::Done;
        match entry.state {
            StreamState::Open if waiting.is_empty() => entry.state = StreamState::Unused,
            StreamState::Open => {
                entry.state = StreamState::Aborted;
                delivery = Delivery::Refused;
            }
            StreamState::Claimed => entry.state = StreamState::Closed,
            StreamState::Unused | StreamState::Aborted => {}
            StreamState::Closed => drop(table.requests.remove(&stream)),
        }
        table.bytes -= waiting.iter().map(Bytes::len).sum::<usize>();
        delivery
    }

    /// Drops all later datagrams, because the receiving direction has ended.
    pub(crate) fn on_receiving_over(&self, stream: u64) {
        if !self.is_enabled {
            return;
        }
        let mut table = self.lock();
        let Some(entry) = table.requests.get_mut(&stream) else {
            return;
        };
        let waker = entry.waker.take();
        if entry.has_handle {
            entry.state = StreamState::Closed;
        } else {
            table.requests.remove(&stream);
        }
        drop(table);
        waker.into_iter().for_each(ForeignWaker::wake);
    }

    /// Forbids sending, because the sending direction has ended.
    pub(crate) fn on_sending_over(&self, stream: u64) {
        if self.is_enabled
            && let Some(entry) = self.lock().requests.get_mut(&stream)
        {
            entry.has_ended_sending = true;
        }
    }

    /// Returns true if the stream was aborted because of a datagram.
    pub(crate) fn was_aborted(&self, stream: u64) -> bool {
        let table = self.lock();
        let entry = table.requests.get(&stream);
        entry.is_some_and(|entry| entry.state == StreamState::Aborted)
    }

    /// Ends all receivers when the connection is closed.
    pub(crate) fn on_end(&self) {
        let mut table = self.lock();
        table.has_ended = true;
        let entries = table.requests.values_mut();
        let woken: Vec<_> = entries.filter_map(|entry| entry.waker.take()).collect();
        drop(table);
        woken.into_iter().for_each(ForeignWaker::wake);
    }

    fn lock(&self) -> Held<'_, Table> {
        self.table.hold()
    }
}

impl Table {
    /// Keeps a datagram for a request that has not arrived yet, for as long as its arrival is likely.
    fn keep_early(&mut self, now: Time, stream: u64, payload: Bytes) {
        while let Some((_, oldest, at)) = self.early.front()
            && (self.early.len() >= MAX_EARLY || now - *at >= LONGEST_EARLY)
        {
            self.bytes -= oldest.len();
            self.early.pop_front();
        }
        if self.bytes + payload.len() <= MAX_BYTES {
            self.bytes += payload.len();
            self.early.push_back((stream, payload, now));
        }
    }
}

/// Largest number of waiting datagrams of one request (limit K27).
const MAX_OF_REQUEST: usize = 64;
/// Largest size of waiting datagrams of all requests in bytes (limit K27).
const MAX_BYTES: usize = 256 * 1024;
/// Largest number of datagrams for requests that have not arrived yet (limit K28).
const MAX_EARLY: usize = 32;
/// Time for which early datagrams are kept: about one round trip (RFC 9297 §2.1) of a slow path.
const LONGEST_EARLY: Duration = Duration::from_millis(300);

/// The error of a request that receives datagrams but does not use them (RFC 9297 §2).
pub(crate) const UNUSED_DATAGRAM: http3::Error = http3::Error {
    code: Code::DATAGRAM_ERROR,
    scope: Scope::Stream,
    reason: "datagram for a request that does not use datagrams",
};

#[cfg(test)]
mod tests;
