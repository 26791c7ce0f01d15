//! A bulk transfer.

use std::net::SocketAddr;

use courser_base::Time;
use courser_transport::{ConnectionError, ConnectionHandle};
use courser_wire::{Direction, StreamId};

use super::transfer::{ReadOutcome, Reading, WriteOutcome, Writing};
use super::{AppCounters, ENDLESS};
use crate::host::{App, Context};

/// The direction of a bulk transfer, as seen from the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TransferDirection {
    /// From the client to the server.
    #[default]
    Up,
    /// From the server to the client, on the client's request.
    Down,
}

/// The amount of data to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// A number of bytes, after which the client closes.
    Bytes(u64),
    /// As many bytes as possible until a time, at which the client closes.
    Until(Time),
    /// As many bytes as possible until the world ends.
    Endless,
}

/// A client that transfers bytes in one direction on one stream, and closes.
#[derive(Debug)]
pub struct Bulk {
    server: SocketAddr,
    direction: TransferDirection,
    amount: Amount,
    start: Time,
    connection: Option<ConnectionHandle>,
    writing: Option<Writing>,
    reading: Option<Reading>,
    is_over: bool,
    counters: AppCounters,
}

impl Bulk {
    /// Creates a client that connects at the start of the world.
    pub fn new(server: SocketAddr, direction: TransferDirection, amount: Amount) -> Self {
        Self {
            server,
            direction,
            amount,
            start: Time::ZERO,
            connection: None,
            writing: None,
            reading: None,
            is_over: false,
            counters: AppCounters::default(),
        }
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

    /// Opens the stream once the handshake allows it.
    fn begin(&mut self, context: &mut Context<'_>, connection: ConnectionHandle) {
        let opened = context
            .streams(connection)
            .and_then(|streams| streams.open(Direction::Bidirectional));
        let Some(id) = opened else { return };
        let len = match self.amount {
            Amount::Bytes(len) => len,
            Amount::Until(_) | Amount::Endless => ENDLESS,
        };
        let (response, request) = match self.direction {
            TransferDirection::Up => (0, len),
            TransferDirection::Down => (len, 0),
        };
        self.writing = Some(Writing::request(id, response, request));
        self.reading = Some(Reading::response(id));
        self.write(context);
        self.read(context);
    }

    fn write(&mut self, context: &mut Context<'_>) {
        let (Some(writing), Some(connection)) = (&mut self.writing, self.connection) else {
            return;
        };
        let Some(streams) = context.streams(connection) else {
            return;
        };
        match writing.step(streams, &mut self.counters) {
            WriteOutcome::Blocked => return,
            // A stream that the peer has stopped meanwhile cannot be finished.
            WriteOutcome::All => {
                let _ = streams.finish(writing.id);
            }
            WriteOutcome::Stopped => {}
        }
        self.writing = None;
    }

    fn read(&mut self, context: &mut Context<'_>) {
        let (Some(reading), Some(connection)) = (&mut self.reading, self.connection) else {
            return;
        };
        let now = context.now();
        let Some(streams) = context.streams(connection) else {
            return;
        };
        if reading.step(now, streams, &mut self.counters) != ReadOutcome::Blocked {
            self.reading = None;
            self.close(context);
        }
    }

    fn close(&mut self, context: &mut Context<'_>) {
        self.is_over = true;
        if let Some(connection) = self.connection {
            context.close(connection, 0, b"done");
        }
    }
}

impl App for Bulk {
    fn on_connected(&mut self, context: &mut Context<'_>, connection: ConnectionHandle) {
        self.begin(context, connection);
    }

    fn on_readable(&mut self, context: &mut Context<'_>, _: ConnectionHandle, _: StreamId) {
        self.read(context);
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
        self.is_over = true;
        self.counters.on_closed(error);
    }

    fn on_timer(&mut self, context: &mut Context<'_>) {
        if self.connection.is_some() || self.is_over {
            return self.close(context);
        }
        match context.connect(self.server) {
            Ok(connection) => self.connection = Some(connection),
            Err(error) => {
                self.is_over = true;
                self.counters.failures.push(error.to_string());
            }
        }
    }

    fn next_timer(&self) -> Option<Time> {
        match (self.is_over, self.connection, self.amount) {
            (true, ..) => None,
            (false, None, _) => Some(self.start),
            (false, Some(_), Amount::Until(end)) => Some(end),
            (false, Some(_), Amount::Bytes(_) | Amount::Endless) => None,
        }
    }

    fn counters(&self) -> Option<&AppCounters> {
        Some(&self.counters)
    }
}
