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
    /// Total size of all waiting datagrams in bytes, including early ones, of requests without their own limits.
    bytes: usize,
    /// The requests that have their own limits, and the total size of their waiting datagrams in bytes.
    limited: usize,
    limited_bytes: usize,
    has_ended: bool,
}

#[derive(Debug, Default)]
struct Entry {
    state: StreamState,
    queue: VecDeque<Bytes>,
    waker: Option<ForeignWaker>,
    /// The bounds of the queue in number and bytes, if the request has its own. Its datagrams then do not count
    /// for the connection.
    limits: Option<(usize, usize)>,
    /// Size of the queue in bytes.
    bytes: usize,
    /// Number of datagrams that were dropped because too many waited.
    dropped: u64,
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
                entry.bytes += payload.len();
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
    #[cfg(test)]
    pub(crate) fn deliver(&self, now: Time, datagram: (u64, Bytes), is_future: bool) -> Delivery {
        let mut refused = false;
        let received = std::iter::once((datagram.0, datagram.1, is_future));
        self.deliver_all(now, received, &mut Vec::new(), |_| refused = true);
        match refused {
            true => Delivery::Refused,
            false => Delivery::Done,
        }
    }

    /// Delivers datagrams in one turn, each with its request and whether that is not open yet. Wakes each task
    /// once, and calls `refuse` for the requests that must be aborted. `woken` is an empty buffer.
    pub(crate) fn deliver_all(
        &self,
        now: Time,
        datagrams: impl Iterator<Item = (u64, Bytes, bool)>,
        woken: &mut Vec<ForeignWaker>,
        mut refuse: impl FnMut(u64),
    ) {
        let mut refused = Vec::new();
        let mut table = self.lock();
        for (stream, payload, is_future) in datagrams {
            if table.deliver(now, (stream, payload), is_future, woken) == Delivery::Refused {
                refused.push(stream);
            }
        }
        drop(table);
        woken.drain(..).for_each(ForeignWaker::wake);
        refused.into_iter().for_each(&mut refuse);
    }

    /// Gives a request a queue with bounds of its own.
    pub(super) fn set_limits(&self, stream: u64, datagrams: usize, bytes: usize) {
        let mut table = self.lock();
        let table = &mut *table;
        let Some(entry) = table.requests.get_mut(&stream) else {
            return;
        };
        if entry.limits.replace((datagrams, bytes)).is_none() {
            table.bytes -= entry.bytes;
            table.limited += 1;
            table.limited_bytes += entry.bytes;
        }
        table.limited_bytes -= entry.make_room(0, false);
    }

    /// Returns the number of datagrams of the request that were dropped because too many waited.
    pub(super) fn dropped(&self, stream: u64) -> u64 {
        let table = self.lock();
        table.requests.get(&stream).map_or(0, |entry| entry.dropped)
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

    /// Moves up to `most` waiting datagrams to `take`. Returns their number, or `None` if no more can arrive.
    pub(super) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        stream: u64,
        most: usize,
        mut take: impl FnMut(Bytes),
    ) -> Poll<Option<usize>> {
        let waker = ForeignWaker::of(cx);
        let mut table = self.lock();
        let has_ended = table.has_ended;
        let table = &mut *table;
        let Some(entry) = table.requests.get_mut(&stream) else {
            return Poll::Ready(None);
        };
        if entry.state == StreamState::Open {
            entry.state = StreamState::Claimed;
        }
        if !entry.queue.is_empty() {
            let count = entry.queue.len().min(most);
            let mut bytes = 0;
            for payload in entry.queue.drain(..count) {
                bytes += payload.len();
                take(payload);
            }
            entry.bytes -= bytes;
            match entry.limits {
                None => table.bytes -= bytes,
                Some(_) => table.limited_bytes -= bytes,
            }
            return Poll::Ready(Some(count));
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
        let bytes = std::mem::take(&mut entry.bytes);
        // No datagram is delivered to it any longer.
        let limits = entry.limits.take();
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
        match limits {
            None => table.bytes -= bytes,
            Some(_) => {
                table.limited -= 1;
                table.limited_bytes -= bytes;
            }
        }
        delivery
    }

    /// Removes a stream that gets no handle.
    pub(crate) fn forget(&self, stream: u64) {
        if !self.is_enabled {
            return;
        }
        let mut table = self.lock();
        if let Some(entry) = table.requests.remove(&stream) {
            table.on_removed(&entry);
        }
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
        } else if let Some(entry) = table.requests.remove(&stream) {
            table.on_removed(&entry);
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
    /// Uncounts a request that was removed.
    fn on_removed(&mut self, entry: &Entry) {
        match entry.limits {
            None => self.bytes -= entry.bytes,
            Some(_) => {
                self.limited -= 1;
                self.limited_bytes -= entry.bytes;
            }
        }
    }

    fn deliver(
        &mut self,
        now: Time,
        (stream, payload): (u64, Bytes),
        is_future: bool,
        woken: &mut Vec<ForeignWaker>,
    ) -> Delivery {
        let Some(entry) = self.requests.get_mut(&stream) else {
            // RFC 9297 §2.1: datagrams for ended streams are dropped.
            if is_future {
                self.keep_early(now, stream, payload);
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
        let len = payload.len();
        let fits = match entry.limits {
            Some((_, most)) if len <= most => {
                self.limited_bytes -= entry.make_room(len, true);
                // What all have room for is divided only when it is used up.
                let share = MAX_LIMITED_BYTES / self.limited.max(1);
                while self.limited_bytes + len > MAX_LIMITED_BYTES
                    && !entry.queue.is_empty()
                    && entry.bytes + len > share
                {
                    self.limited_bytes -= entry.drop_oldest();
                }
                let fits =
                    entry.bytes + len <= share || self.limited_bytes + len <= MAX_LIMITED_BYTES;
                self.limited_bytes += if fits { len } else { 0 };
                fits
            }
            Some(_) => false,
            None => {
                if entry.queue.len() >= MAX_OF_REQUEST {
                    self.bytes -= entry.drop_oldest();
                }
                let fits = self.bytes + len <= MAX_BYTES;
                self.bytes += if fits { len } else { 0 };
                fits
            }
        };
        if fits {
            entry.bytes += len;
            entry.queue.push_back(payload);
            woken.extend(entry.waker.take());
        } else {
            entry.dropped += 1;
        }
        Delivery::Done
    }

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

impl Entry {
    /// Drops the oldest datagrams until `len` more bytes, and one datagram more if it is added, keep the bounds of
    /// the request. Returns their size.
    fn make_room(&mut self, len: usize, is_added: bool) -> usize {
        let Some((datagrams, bytes)) = self.limits else {
            return 0;
        };
        let room = datagrams.saturating_sub(usize::from(is_added));
        let mut dropped = 0;
        while !self.queue.is_empty() && (self.queue.len() > room || self.bytes + len > bytes) {
            dropped += self.drop_oldest();
        }
        dropped
    }

    /// Returns the size of the datagram.
    fn drop_oldest(&mut self) -> usize {
        let len = self.queue.pop_front().map_or(0, |oldest| oldest.len());
        self.bytes -= len;
        self.dropped += 1;
        len
    }
}

/// Largest number of waiting datagrams of one request (limit K27).
const MAX_OF_REQUEST: usize = 64;
/// Largest size of waiting datagrams of all requests in bytes (limit K27).
const MAX_BYTES: usize = 256 * 1024;
/// Size of waiting datagrams in bytes of all requests with limits of their own, from which a request whose datagrams exceed
/// an equal part of it drops its oldest (limit K592). Those below their part may still grow to it, so that the total is at
/// most twice as large.
const MAX_LIMITED_BYTES: usize = 8 << 20;
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
