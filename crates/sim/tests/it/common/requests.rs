//! Clients beyond the ready-made ones: many streams at once, aborted, read slowly.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use courser_base::Time;
use courser_sim::apps::{AppCounters, Mismatch, is_pattern_at, pattern_at};
use courser_sim::host::{App, Context};
use courser_transport::{
    ConnectionError, ConnectionHandle, ReadError, StreamEvent, Streams, WriteError,
};
use courser_wire::{Direction, StreamId};

/// How a request ends.
#[derive(Clone, Copy, Debug)]
pub enum RequestEnd {
    /// It is sent completely, and the response is read completely.
    Finish,
    /// The client resets it after this number of written bytes.
    ResetAfter(u64),
    /// The client stops the response after this number of read bytes.
    StopAfter(u64),
}

/// A client that opens as many requests at once as the server allows until all are done, and then
/// closes.
pub struct Requests {
    server: SocketAddr,
    count: u64,
    request: u64,
    response: u64,
    end_of: fn(u64) -> RequestEnd,
    /// The time of the first request.
    begin: Time,
    /// The delay between the last byte and the end of each request.
    finish_after: Duration,
    connection: Option<ConnectionHandle>,
    opened: u64,
    open: BTreeMap<StreamId, Request>,
    most_open: usize,
    is_closed: bool,
    counters: AppCounters,
}

#[derive(Clone, Copy)]
struct Request {
    end: RequestEnd,
    /// The length of the header and the pattern behind it.
    written: u64,
    read: u64,
    /// The time at which the request is finished after all bytes are written.
    finish_at: Option<Time>,
    is_sent: bool,
}

impl Requests {
    /// Creates `count` requests of this size, each for a response of this size.
    pub fn new(server: SocketAddr, count: u64, request: u64, response: u64) -> Self {
        Self {
            server,
            count,
            request,
            response,
            end_of: |_| RequestEnd::Finish,
            begin: Time::ZERO,
            finish_after: Duration::ZERO,
            connection: None,
            opened: 0,
            open: BTreeMap::new(),
            most_open: 0,
            is_closed: false,
            counters: AppCounters::default(),
        }
    }

    /// Sets how each request ends, by its index.
    pub fn with_end(self, end_of: fn(u64) -> RequestEnd) -> Self {
        Self { end_of, ..self }
    }

    /// Sets the time of the first request, long after the handshake.
    pub fn beginning_at(self, begin: Duration) -> Self {
        Self {
            begin: Time::ZERO + begin,
            ..self
        }
    }

    /// Sets the delay between the last byte and the end of each stream.
    pub fn finishing_after(self, finish_after: Duration) -> Self {
        Self {
            finish_after,
            ..self
        }
    }

    /// Returns true if every request has ended.
    pub fn is_done(&self) -> bool {
        self.opened == self.count && self.open.is_empty()
    }

    /// Returns the largest number of requests that were open at once.
    pub fn most_open(&self) -> usize {
        self.most_open
    }

    fn begin(&mut self, context: &mut Context<'_>) {
        if context.now() < self.begin {
            return;
        }
        let Some(connection) = self.connection else {
            return;
        };
        while self.opened < self.count {
            let opened = context
                .streams(connection)
                .and_then(|streams| streams.open(Direction::Bidirectional));
            let Some(id) = opened else { break };
            let request = Request {
                end: (self.end_of)(self.opened),
                written: 0,
                read: 0,
                finish_at: None,
                is_sent: false,
            };
            self.opened += 1;
            self.open.insert(id, request);
            self.most_open = self.most_open.max(self.open.len());
            self.step(context, id);
        }
    }

    fn step(&mut self, context: &mut Context<'_>, id: StreamId) {
        let now = context.now();
        let (Some(connection), Some(mut request)) = (self.connection, self.open.get(&id).copied())
        else {
            return;
        };
        let Some(streams) = context.streams(connection) else {
            return;
        };
        if !request.is_sent {
            self.write(now, streams, id, &mut request);
        }
        let is_over = self.read(now, streams, id, &mut request);
        if is_over {
            self.open.remove(&id);
        } else {
            self.open.insert(id, request);
        }
        if self.is_done() && !self.is_closed {
            self.is_closed = true;
            context.close(connection, 0, b"done");
        }
    }

    fn write(&mut self, now: Time, streams: &mut Streams, id: StreamId, request: &mut Request) {
        let header = self.response.to_be_bytes();
        let end = header.len() as u64 + self.request;
        let (stop, resets) = match request.end {
            RequestEnd::ResetAfter(bytes) => (bytes.min(end), true),
            RequestEnd::Finish | RequestEnd::StopAfter(_) => (end, false),
        };
        while request.written < stop {
            let header_left =
                header.get(usize::try_from(request.written).expect("the length fits into usize")..);
            let written = match header_left.filter(|left| !left.is_empty()) {
                Some(left) => streams.write(id, left),
                None => {
                    let at = request.written - header.len() as u64;
                    let mut next = pattern_at(at, stop - request.written);
                    let written = streams.write_chunk(id, &mut next);
                    self.counters.written += *written.as_ref().unwrap_or(&0) as u64;
                    written
                }
            };
            match written {
                Ok(len) => request.written += len as u64,
                Err(WriteError::Blocked) => return,
                Err(error) => panic!("request {id:?}: {error}"),
            }
        }
        if resets {
            request.is_sent = true;
            streams.reset(id, 7).expect("the stream is open");
            return;
        }
        let at = *request.finish_at.get_or_insert(now + self.finish_after);
        if at <= now {
            request.is_sent = true;
            streams.finish(id).expect("the stream is open");
        }
    }

    /// Returns true if the request is over.
    fn read(
        &mut self,
        now: Time,
        streams: &mut Streams,
        id: StreamId,
        request: &mut Request,
    ) -> bool {
        match request.end {
            // An incomplete request has no response.
            RequestEnd::ResetAfter(_) if request.is_sent => {
                streams.stop(id, 7).expect("the stream is open");
                return true;
            }
            RequestEnd::StopAfter(bytes) if request.read >= bytes => {
                streams.stop(id, 7).expect("the stream is open");
                return true;
            }
            _ => {}
        }
        match streams.read_chunk(id, usize::MAX) {
            Ok(Some(chunk)) => {
                note(&mut self.counters, id, request.read, &chunk);
                request.read += chunk.len() as u64;
                self.read(now, streams, id, request)
            }
            Ok(None) => {
                assert_eq!(request.read, self.response, "request {id:?}");
                self.counters.streams += 1;
                self.counters.finished_at = Some(now);
                true
            }
            Err(ReadError::Blocked) => false,
            Err(error) => panic!("answer of {id:?}: {error}"),
        }
    }
}

/// Checks bytes against the pattern, and counts them.
fn note(counters: &mut AppCounters, stream: StreamId, offset: u64, bytes: &[u8]) {
    if counters.mismatch.is_none() && !is_pattern_at(offset, bytes) {
        counters.mismatch = Some(Mismatch { stream, offset });
    }
    counters.received += bytes.len() as u64;
}

impl App for Requests {
    fn on_start(&mut self, context: &mut Context<'_>) {
        self.connection = context.connect(self.server).ok();
        assert!(self.connection.is_some(), "it may connect");
    }

    fn on_connected(&mut self, context: &mut Context<'_>, _: ConnectionHandle) {
        self.begin(context);
    }

    fn on_readable(&mut self, context: &mut Context<'_>, _: ConnectionHandle, id: StreamId) {
        self.step(context, id);
    }

    fn on_writable(&mut self, context: &mut Context<'_>, _: ConnectionHandle, id: StreamId) {
        self.step(context, id);
    }

    fn on_stream_event(
        &mut self,
        context: &mut Context<'_>,
        _: ConnectionHandle,
        event: StreamEvent,
    ) {
        if matches!(event, StreamEvent::Available { .. }) {
            self.begin(context);
        }
    }

    fn on_closed(&mut self, _: &mut Context<'_>, _: ConnectionHandle, error: &ConnectionError) {
        if !error.is_local_close() {
            self.counters.failures.push(error.to_string());
        }
    }

    fn on_timer(&mut self, context: &mut Context<'_>) {
        let now = context.now();
        self.begin(context);
        let due = |request: &Request| request.finish_at.is_some_and(|at| at <= now);
        let due: Vec<StreamId> = self
            .open
            .iter()
            .filter(|(_, request)| !request.is_sent && due(request))
            .map(|(id, _)| *id)
            .collect();
        for id in due {
            self.step(context, id);
        }
    }

    fn next_timer(&self) -> Option<Time> {
        let begin = (self.opened == 0 && self.begin > Time::ZERO).then_some(self.begin);
        let ends = self
            .open
            .values()
            .filter(|request| !request.is_sent)
            .filter_map(|request| request.finish_at);
        ends.chain(begin).min()
    }

    fn counters(&self) -> Option<&AppCounters> {
        Some(&self.counters)
    }
}

/// A client that requests bytes and reads a fixed number of them at a fixed interval.
pub struct SlowReader {
    server: SocketAddr,
    response: u64,
    each: usize,
    interval: Duration,
    connection: Option<ConnectionHandle>,
    stream: Option<StreamId>,
    next: Option<Time>,
    counters: AppCounters,
}

impl SlowReader {
    /// Creates a client that requests `response` bytes, and reads `each` of them every `interval`.
    pub fn new(server: SocketAddr, response: u64, each: usize, interval: Duration) -> Self {
        Self {
            server,
            response,
            each,
            interval,
            connection: None,
            stream: None,
            next: None,
            counters: AppCounters::default(),
        }
    }
}

impl App for SlowReader {
    fn on_start(&mut self, context: &mut Context<'_>) {
        self.connection = context.connect(self.server).ok();
        assert!(self.connection.is_some(), "it may connect");
    }

    fn on_connected(&mut self, context: &mut Context<'_>, connection: ConnectionHandle) {
        let now = context.now();
        let streams = context.streams(connection).expect("the stream is open");
        let id = streams
            .open(Direction::Bidirectional)
            .expect("the peer allows one stream");
        let len = streams.write(id, &self.response.to_be_bytes());
        assert_eq!(len, Ok(8));
        streams.finish(id).expect("the stream is open");
        self.stream = Some(id);
        self.next = Some(now + self.interval);
    }

    fn on_closed(&mut self, _: &mut Context<'_>, _: ConnectionHandle, error: &ConnectionError) {
        self.next = None;
        if !error.is_local_close() {
            self.counters.failures.push(error.to_string());
        }
    }

    fn on_timer(&mut self, context: &mut Context<'_>) {
        let now = context.now();
        let (Some(connection), Some(id)) = (self.connection, self.stream) else {
            return;
        };
        self.next = Some(now + self.interval);
        let streams = context.streams(connection).expect("the stream is open");
        let mut left = self.each;
        while left > 0 {
            match streams.read_chunk(id, left) {
                Ok(Some(chunk)) => {
                    let offset = self.counters.received;
                    note(&mut self.counters, id, offset, &chunk);
                    left -= chunk.len();
                }
                Ok(None) => {
                    self.counters.streams += 1;
                    self.next = None;
                    return context.close(connection, 0, b"done");
                }
                Err(ReadError::Blocked) => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.next
    }

    fn counters(&self) -> Option<&AppCounters> {
        Some(&self.counters)
    }
}
