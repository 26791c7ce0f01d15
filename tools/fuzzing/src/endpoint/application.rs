//! The application of an endpoint under attack, which makes arbitrary calls.

use bytes::Bytes;
use courser_base::Time;
#[cfg(test)]
use courser_transport::EarlyData;
use courser_transport::{Connection, ConnectionHandle, Endpoint, SendOptions, Streams};
use courser_wire::{Direction, StreamId};

use crate::input::Input;

/// An application whose calls the input decides.
#[derive(Default)]
pub(super) struct Application {
    handles: Vec<ConnectionHandle>,
    streams: Vec<StreamId>,
}

/// The largest number of remembered streams.
const MAX_STREAMS: usize = 64;

/// The largest number of events of one connection between two calls.
const MAX_EVENTS: usize = 1000;

impl Application {
    pub(super) fn on_connection(&mut self, handle: ConnectionHandle) {
        self.handles.push(handle);
    }

    /// Reads all events of a connection.
    ///
    /// # Panics
    /// Panics if there are more than one call can cause.
    pub(super) fn read_events(&mut self, endpoint: &mut Endpoint, handle: ConnectionHandle) {
        for _ in 0..MAX_EVENTS {
            let connection = endpoint.connection_mut(handle);
            if connection.and_then(Connection::poll_event).is_none() {
                return;
            }
        }
        panic!("endless events");
    }

    /// Performs one operation on one connection.
    pub(super) fn operate(&mut self, endpoint: &mut Endpoint, now: Time, input: &mut Input<'_>) {
        let operation = input.byte();
        if self.handles.is_empty() {
            return;
        }
        let handle = self.handles[usize::from(operation >> 6) % self.handles.len()];
        let Some(connection) = endpoint.connection_mut(handle) else {
            return;
        };
        match operation & 63 {
            0 => connection.close(now, input.number(), input.bytes()),
            1 => {
                connection.pings().request();
            }
            2 => drop(connection.initiate_key_update(now)),
            3 => {
                let data = vec![7; usize::from(input.short())];
                let options = SendOptions::default();
                let _ = connection.send_datagram(now, data.into(), options);
            }
            4 => while connection.datagrams().receive().is_some() {},
            5 => connection.set_interface_mtu(u32::from(input.short())),
            6..=8 if connection.is_drained() => return endpoint.release(handle),
            6..=8 => {}
            9 => connection.keep_alive_while_busy(false),
            _ => self.use_stream(connection.streams(), input),
        }
        endpoint.mark_ready(handle);
    }

    /// Performs one operation on one stream.
    fn use_stream(&mut self, streams: &mut Streams, input: &mut Input<'_>) {
        let operation = input.byte();
        let direction = match operation & 16 {
            0 => Direction::Bidirectional,
            _ => Direction::Unidirectional,
        };
        let id = match self.streams.len() {
            0 => StreamId::from_value(u64::from(operation >> 5)),
            len => self.streams[input.below(len)],
        };
        match operation & 15 {
            0 => self.remember(streams.open(direction)),
            1..=3 => self.remember(streams.accept(direction)),
            4 => drop(streams.read(id, &mut [0; 1000])),
            5 => drop(streams.read_chunk(id, usize::from(input.short()))),
            6 => drop(streams.read_chunk_and_end(id)),
            7 => drop(streams.write(id, &vec![1; usize::from(input.short())])),
            8 => {
                let mut data = Bytes::from(vec![2; usize::from(input.short())]);
                let _ = streams.write_chunk(id, &mut data);
            }
            9 => drop(streams.finish(id)),
            10 => drop(streams.reset(id, input.number())),
            11 => drop(streams.stop(id, input.number())),
            12 => drop(streams.set_priority(id, i32::from(input.byte()))),
            13 => {
                streams.await_data(id);
                let _ = streams.credit_beyond(id, 0);
            }
            14 => drop(streams.stopped(id)),
            _ => self.remember(Some(StreamId::from_value(input.number()))),
        }
    }

    fn remember(&mut self, id: Option<StreamId>) {
        if self.streams.len() < MAX_STREAMS {
            self.streams.extend(id);
        }
    }

    /// Returns the state of early data of each connection, and true if the first remembered stream
    /// began in early data.
    #[cfg(test)]
    pub(super) fn early_data(&self, endpoint: &mut Endpoint) -> Vec<(EarlyData, bool)> {
        let mut all = Vec::new();
        for &handle in &self.handles {
            if let Some(connection) = endpoint.connection_mut(handle) {
                let state = connection.stats().early_data;
                let id = self.streams.first();
                all.push((
                    state,
                    id.is_some_and(|&id| connection.streams().is_early(id)),
                ));
            }
        }
        all
    }

    /// Returns the errors of connections that panicked.
    pub(super) fn faults(&self, endpoint: &Endpoint) -> Vec<String> {
        let faults = self.handles.iter().filter_map(|&it| endpoint.fault(it));
        faults.map(ToString::to_string).collect()
    }
}
