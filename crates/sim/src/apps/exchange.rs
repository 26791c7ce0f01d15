//! Requests and responses, one at a time. Small exchanges serve as pings.

use std::net::SocketAddr;
use std::time::Duration;

use courser_base::Time;
use courser_transport::{ConnectionError, ConnectionHandle};
use courser_wire::{Direction, StreamId};

use super::AppCounters;
use super::transfer::{ReadOutcome, Reading, WriteOutcome, Writing};
use crate::host::{App, Context};

/// A client that sends requests and reads responses, each on its own stream, and closes after the
/// last one.
#[derive(Debug)]
pub struct Exchange {
    server: SocketAddr,
    request: u64,
    response: u64,
    /// The number of exchanges that have not started; `None` is unlimited.
    remaining: Option<u64>,
    interval: Duration,
    start: Time,
    connection: Option<ConnectionHandle>,
    /// The start of the next exchange, while none is in progress.
    next: Option<Time>,
    current: Option<Current>,
    counters: AppCounters,
}

#[derive(Debug)]
struct Current {
    begun: Time,
    writing: Option<Writing>,
    reading: Reading,
}

impl Exchange {
    /// Creates a client with `count` exchanges of this size, each starting when the previous one
    /// has ended.
    pub fn new(server: SocketAddr, request: u64, response: u64, count: Option<u64>) -> Self {
        Self {
            server,
            request,
            response,
            remaining: count,
            interval: Duration::ZERO,
            start: Time::ZERO,
            connection: None,
            next: None,
            current: None,
            counters: AppCounters::default(),
        }
    }

    /// Creates a client that exchanges one byte in each direction every `interval`.
    pub fn ping(server: SocketAddr, interval: Duration, count: Option<u64>) -> Self {
        Self::new(server, 1, 1, count).every(interval)
    }

    /// Sets the shortest time between the starts of two exchanges.
    #[must_use]
    pub fn every(self, interval: Duration) -> Self {
        Self { interval, ..self }
    }

    /// Sets the time at which the client connects.
    #[must_use]
    pub fn starting_at(self, start: Time) -> Self {
        Self { start, ..self }
    }

    /// Returns the connection once it has been started.
    pub fn connection(&self) -> Option<ConnectionHandle> {
        self.connection
    }

    fn begin(&mut self, context: &mut Context<'_>) {
        self.next = None;
        let Some(connection) = self.connection else {
            return;
        };
        if self.remaining == Some(0) {
            return context.close(connection, 0, b"done");
        }
        let now = context.now();
        let Some(streams) = context.streams(connection) else {
            return;
        };
        // At the peer's stream limit, the exchange starts when the limit is raised.
        let Some(id) = streams.open(Direction::Bidirectional) else {
            return;
        };
        self.remaining = self.remaining.map(|left| left - 1);
        self.current = Some(Current {
            begun: now,
            writing: Some(Writing::request(id, self.response, self.request)),
            reading: Reading::response(id),
        });
        self.step(context);
    }

    /// Writes and reads as much as possible.
    fn step(&mut self, context: &mut Context<'_>) {
        let (Some(current), Some(connection)) = (&mut self.current, self.connection) else {
            return;
        };
        let now = context.now();
        let Some(streams) = context.streams(connection) else {
            return;
        };
        if let Some(writing) = &mut current.writing {
            let wrote = writing.step(streams, &mut self.counters);
            if wrote == WriteOutcome::All {
                // A stream that the peer has stopped meanwhile cannot be finished.
                let _ = streams.finish(writing.id);
            }
            if wrote != WriteOutcome::Blocked {
                current.writing = None;
            }
        }
        if current.reading.step(now, streams, &mut self.counters) == ReadOutcome::Blocked {
            return;
        }
        let begun = current.begun;
        self.current = None;
        self.counters.on_exchange(now, begun);
        self.next = Some((begun + self.interval).max(now));
    }
}

impl App for Exchange {
    fn on_connected(&mut self, context: &mut Context<'_>, _: ConnectionHandle) {
        self.begin(context);
    }

    fn on_readable(&mut self, context: &mut Context<'_>, _: ConnectionHandle, _: StreamId) {
        self.step(context);
    }

    fn on_writable(&mut self, context: &mut Context<'_>, _: ConnectionHandle, _: StreamId) {
        self.step(context);
    }

    fn on_stream_event(
        &mut self,
        context: &mut Context<'_>,
        _: ConnectionHandle,
        event: courser_transport::StreamEvent,
    ) {
        let is_limit_raised = matches!(event, courser_transport::StreamEvent::Available { .. });
        if is_limit_raised && self.current.is_none() && self.next.is_none() {
            self.begin(context);
        }
    }

    fn on_closed(
        &mut self,
        _context: &mut Context<'_>,
        _connection: ConnectionHandle,
        error: &ConnectionError,
    ) {
        (self.current, self.next) = (None, None);
        self.counters.on_closed(error);
    }

    fn on_timer(&mut self, context: &mut Context<'_>) {
        if self.connection.is_some() {
            return self.begin(context);
        }
        match context.connect(self.server) {
            Ok(connection) => self.connection = Some(connection),
            Err(error) => {
                self.start = Time::MAX;
                self.counters.failures.push(error.to_string());
            }
        }
    }

    fn next_timer(&self) -> Option<Time> {
        match self.connection {
            None => Some(self.start).filter(|at| *at != Time::MAX),
            Some(_) => self.next,
        }
    }

    fn counters(&self) -> Option<&AppCounters> {
        Some(&self.counters)
    }
}
