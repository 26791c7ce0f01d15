//! Applications that limit a transfer.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use courser_base::Time;
use courser_sim::host::{App, Context};
use courser_transport::{ConnectionHandle, ReadError, StreamEvent};
use courser_wire::{Direction, StreamId};

/// The time between two steps.
const TICK: Duration = Duration::from_millis(10);

/// A server that reads, processes and writes at limited rates.
#[derive(Debug)]
pub struct Slow {
    /// Bytes to read from each stream in a tick.
    reads: usize,
    /// The time from the end of a request to the beginning of its response.
    thinks: Duration,
    /// Bytes to write to each stream in a tick.
    writes: usize,
    /// The length of each response, which requests do not contain.
    response: usize,
    streams: BTreeMap<(ConnectionHandle, StreamId), State>,
    next: Option<Time>,
}

#[derive(Debug)]
enum State {
    Reading,
    Thinking(Time),
    Writing(usize),
}

impl Slow {
    /// Creates a server without limits.
    pub fn new() -> Self {
        Self {
            reads: usize::MAX,
            thinks: Duration::ZERO,
            writes: usize::MAX,
            response: 0,
            streams: BTreeMap::new(),
            next: None,
        }
    }

    /// Limits reading to `reads` bytes of each stream in a tick.
    #[must_use]
    pub fn reading(self, reads: usize) -> Self {
        Self { reads, ..self }
    }

    /// Answers each request after `thinks`, with `response` bytes.
    #[must_use]
    pub fn answering(self, thinks: Duration, response: usize) -> Self {
        Self {
            thinks,
            response,
            ..self
        }
    }

    /// Limits writing to `writes` bytes of each stream in a tick.
    #[must_use]
    pub fn writing(self, writes: usize) -> Self {
        Self { writes, ..self }
    }

    fn step(&mut self, context: &mut Context<'_>) {
        let now = context.now();
        let (reads, writes, response) = (self.reads, self.writes, self.response);
        let thinks = self.thinks;
        self.streams.retain(|&(connection, id), state| {
            let Some(streams) = context.streams(connection) else {
                return false;
            };
            if let State::Reading = state {
                let mut left = reads;
                loop {
                    match streams.read_chunk(id, left) {
                        Ok(Some(chunk)) => left -= chunk.len().min(left),
                        Ok(None) => {
                            *state = State::Thinking(now + thinks);
                            break;
                        }
                        Err(ReadError::Blocked) => return true,
                        Err(_) => return false,
                    }
                    if left == 0 {
                        return true;
                    }
                }
            }
            if let State::Thinking(until) = *state {
                if now < until {
                    return true;
                }
                *state = State::Writing(response);
            }
            let State::Writing(rest) = state else {
                return true;
            };
            let mut left = writes.min(*rest);
            while left > 0 {
                let mut piece = Bytes::from(vec![0; left.min(16_384)]);
                match streams.write_chunk(id, &mut piece) {
                    Ok(len) => {
                        left -= len;
                        *rest -= len;
                    }
                    Err(_) => break,
                }
            }
            if *rest == 0 {
                let _ = streams.finish(id);
                return false;
            }
            true
        });
        self.next = (!self.streams.is_empty()).then(|| now + TICK);
    }
}

impl App for Slow {
    fn on_opened(
        &mut self,
        context: &mut Context<'_>,
        connection: ConnectionHandle,
        direction: Direction,
    ) {
        while let Some(id) = context
            .streams(connection)
            .and_then(|streams| streams.accept(direction))
        {
            self.streams.insert((connection, id), State::Reading);
        }
        self.next = self.next.or(Some(context.now()));
    }

    fn on_connected(&mut self, context: &mut Context<'_>, connection: ConnectionHandle) {
        self.on_opened(context, connection, Direction::Bidirectional);
    }

    fn on_timer(&mut self, context: &mut Context<'_>) {
        self.step(context);
    }

    fn next_timer(&self) -> Option<Time> {
        self.next
    }
}

/// A client that requests many small responses at once, each on its own stream, and then closes.
#[derive(Debug)]
pub struct Many {
    server: SocketAddr,
    left: u64,
    open: Vec<StreamId>,
    connection: Option<ConnectionHandle>,
    is_over: bool,
}

impl Many {
    /// Creates a client that sends `requests` requests.
    pub fn new(server: SocketAddr, requests: u64) -> Self {
        Self {
            server,
            left: requests,
            open: Vec::new(),
            connection: None,
            is_over: false,
        }
    }

    fn step(&mut self, context: &mut Context<'_>) {
        let Some(connection) = self.connection else {
            return;
        };
        let Some(streams) = context.streams(connection) else {
            return;
        };
        while self.left > 0 {
            let Some(id) = streams.open(Direction::Bidirectional) else {
                break;
            };
            self.left -= 1;
            let mut request = Bytes::copy_from_slice(&100u64.to_be_bytes());
            let _ = streams.write_chunk(id, &mut request);
            let _ = streams.finish(id);
            self.open.push(id);
        }
        // Stream events are reported only after a read that was blocked.
        self.open.retain(|&id| {
            loop {
                match streams.read_chunk(id, usize::MAX) {
                    Ok(Some(_)) => {}
                    Err(ReadError::Blocked) => return true,
                    Ok(None) | Err(_) => return false,
                }
            }
        });
        if self.left == 0 && self.open.is_empty() {
            self.is_over = true;
            context.close(connection, 0, b"done");
        }
    }
}

impl App for Many {
    fn on_connected(&mut self, context: &mut Context<'_>, _: ConnectionHandle) {
        self.step(context);
    }

    fn on_readable(&mut self, context: &mut Context<'_>, _: ConnectionHandle, _: StreamId) {
        self.step(context);
    }

    fn on_stream_event(&mut self, context: &mut Context<'_>, _: ConnectionHandle, _: StreamEvent) {
        self.step(context);
    }

    fn on_timer(&mut self, context: &mut Context<'_>) {
        self.connection = context.connect(self.server).ok();
    }

    fn next_timer(&self) -> Option<Time> {
        (self.connection.is_none() && !self.is_over).then_some(Time::ZERO)
    }
}
