//! A writer with a fixed rate, such as speech, video or telemetry.

use std::net::SocketAddr;
use std::time::Duration;

use courser_base::Time;
use courser_transport::{ConnectionError, ConnectionHandle};
use courser_wire::{Direction, StreamId};

use super::AppCounters;
use super::transfer::{WriteOutcome, Writing};
use crate::host::{App, Context};

/// A client that writes a fixed number of bytes at a fixed interval on one stream, regardless of
/// the network. Bytes beyond the send window are kept in the application.
#[derive(Debug)]
pub struct Paced {
    server: SocketAddr,
    size: u64,
    interval: Duration,
    start: Time,
    end: Time,
    connection: Option<ConnectionHandle>,
    writing: Option<Writing>,
    due: u64,
    next: Option<Time>,
    counters: AppCounters,
}

impl Paced {
    /// Creates a client that writes `size` bytes every `interval`.
    ///
    /// # Panics
    /// When `interval` is zero.
    pub fn new(server: SocketAddr, size: u64, interval: Duration) -> Self {
        assert!(!interval.is_zero(), "the interval is not zero");
        Self {
            server,
            size,
            interval,
            start: Time::ZERO,
            end: Time::MAX,
            connection: None,
            writing: None,
            due: 0,
            next: None,
            counters: AppCounters::default(),
        }
    }

    /// Sets the times at which the client connects and closes.
    #[must_use]
    pub fn between(self, start: Time, end: Time) -> Self {
        Self { start, end, ..self }
    }

    /// Returns the connection once it has been started.
    pub fn connection(&self) -> Option<ConnectionHandle> {
        self.connection
    }

    fn write(&mut self, context: &mut Context<'_>) {
        let (Some(writing), Some(connection)) = (&mut self.writing, self.connection) else {
            return;
        };
        let Some(streams) = context.streams(connection) else {
            return;
        };
        if writing.step(streams, &mut self.counters) == WriteOutcome::Stopped {
            self.writing = None;
        }
    }
}

impl App for Paced {
    fn on_connected(&mut self, context: &mut Context<'_>, connection: ConnectionHandle) {
        let opened = context
            .streams(connection)
            .and_then(|streams| streams.open(Direction::Bidirectional));
        let Some(id) = opened else { return };
        self.writing = Some(Writing::request(id, 0, 0));
        self.next = Some(context.now());
        self.write(context);
    }

    fn on_writable(&mut self, context: &mut Context<'_>, _: ConnectionHandle, _: StreamId) {
        self.write(context);
    }

    fn on_closed(
        &mut self,
        _context: &mut Context<'_>,
        _connection: ConnectionHandle,
        error: &ConnectionError,
    ) {
        (self.writing, self.next) = (None, None);
        self.counters.on_closed(error);
    }

    fn on_timer(&mut self, context: &mut Context<'_>) {
        let now = context.now();
        match (self.connection, self.next) {
            (None, _) => match context.connect(self.server) {
                Ok(connection) => self.connection = Some(connection),
                Err(error) => {
                    self.start = Time::MAX;
                    self.counters.failures.push(error.to_string());
                }
            },
            (Some(connection), Some(_)) if now >= self.end => {
                self.next = None;
                context.close(connection, 0, b"done");
            }
            (Some(_), Some(at)) => {
                self.next = Some(at + self.interval);
                self.due += self.size;
                if let Some(writing) = &mut self.writing {
                    writing.extend_to(self.due);
                }
                self.write(context);
            }
            (Some(_), None) => {}
        }
    }

    fn next_timer(&self) -> Option<Time> {
        match self.connection {
            None => Some(self.start).filter(|at| *at != Time::MAX),
            Some(_) => self.next.map(|at| at.min(self.end)),
        }
    }

    fn counters(&self) -> Option<&AppCounters> {
        Some(&self.counters)
    }
}
