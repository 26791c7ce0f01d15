//! The server to which all clients connect.

use std::collections::BTreeMap;

use courser_transport::{ConnectionError, ConnectionHandle, StreamEvent};
use courser_wire::{Direction, StreamId};

use super::AppCounters;
use super::transfer::{ReadOutcome, Reading, WriteOutcome, Writing};
use crate::host::{App, Context};

/// A server that reads and checks requests, and sends responses of the requested length.
#[derive(Debug, Default)]
pub struct Serve {
    reading: BTreeMap<(ConnectionHandle, StreamId), Reading>,
    writing: BTreeMap<(ConnectionHandle, StreamId), Writing>,
    counters: AppCounters,
}

impl Serve {
    /// Creates a server without connections.
    pub fn new() -> Self {
        Self::default()
    }

    fn read(&mut self, context: &mut Context<'_>, connection: ConnectionHandle, id: StreamId) {
        let now = context.now();
        let Some(reading) = self.reading.get_mut(&(connection, id)) else {
            return;
        };
        let Some(streams) = context.streams(connection) else {
            return;
        };
        match reading.step(now, streams, &mut self.counters) {
            ReadOutcome::Blocked => {}
            ReadOutcome::Reset => {
                self.reading.remove(&(connection, id));
            }
            ReadOutcome::End(response_len) => {
                self.reading.remove(&(connection, id));
                if id.direction() == Direction::Bidirectional {
                    let writing = Writing::response(id, response_len);
                    self.writing.insert((connection, id), writing);
                    self.write(context, connection, id);
                }
            }
        }
    }

    fn write(&mut self, context: &mut Context<'_>, connection: ConnectionHandle, id: StreamId) {
        let Some(writing) = self.writing.get_mut(&(connection, id)) else {
            return;
        };
        let Some(streams) = context.streams(connection) else {
            return;
        };
        match writing.step(streams, &mut self.counters) {
            WriteOutcome::Blocked => return,
            // A stream that the peer has stopped meanwhile cannot be finished.
            WriteOutcome::All => {
                let _ = streams.finish(id);
            }
            WriteOutcome::Stopped => {}
        }
        self.writing.remove(&(connection, id));
    }
}

impl App for Serve {
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
            self.reading.insert((connection, id), Reading::request(id));
            self.read(context, connection, id);
        }
    }

    fn on_connected(&mut self, context: &mut Context<'_>, connection: ConnectionHandle) {
        // An event about new streams follows only after `accept` has returned `None`.
        self.on_opened(context, connection, Direction::Bidirectional);
        self.on_opened(context, connection, Direction::Unidirectional);
    }

    fn on_readable(
        &mut self,
        context: &mut Context<'_>,
        connection: ConnectionHandle,
        id: StreamId,
    ) {
        self.read(context, connection, id);
    }

    fn on_writable(
        &mut self,
        context: &mut Context<'_>,
        connection: ConnectionHandle,
        id: StreamId,
    ) {
        self.write(context, connection, id);
    }

    fn on_stream_event(
        &mut self,
        _context: &mut Context<'_>,
        connection: ConnectionHandle,
        event: StreamEvent,
    ) {
        if let StreamEvent::Stopped { id, .. } = event {
            self.writing.remove(&(connection, id));
        }
    }

    fn on_closed(
        &mut self,
        _context: &mut Context<'_>,
        connection: ConnectionHandle,
        error: &ConnectionError,
    ) {
        self.reading.retain(|(of, _), _| *of != connection);
        self.writing.retain(|(of, _), _| *of != connection);
        self.counters.on_closed(error);
    }

    fn counters(&self) -> Option<&AppCounters> {
        Some(&self.counters)
    }
}
