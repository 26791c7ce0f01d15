//! One end of the connection: an endpoint, its driver and its application.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use courser_base::{Ecn, FourTuple, Time};
#[cfg(test)]
use courser_transport::EarlyData;
use courser_transport::{
    ClientConfig, Connection, ConnectionHandle, Endpoint, EndpointConfig, Event, ReceiveMeta,
    RetryPolicy, SendOptions, ServerConfig, StreamEvent, TransmitBuffer, TransportConfig,
    WriteError,
};
use courser_wire::{Direction, StreamId};

use super::model::{End as StreamEnd, Model, Sending, byte_at};
use crate::input::Input;
use crate::tls::Ends;

/// Datagrams with their source and destination.
type Sent = Vec<(SocketAddr, SocketAddr, Vec<u8>)>;

/// An endpoint with at most one connection.
pub(super) struct End {
    endpoint: Endpoint,
    buffer: TransmitBuffer,
    addresses: Vec<SocketAddr>,
    handle: Option<ConnectionHandle>,
    is_lost: bool,
    model: Model,
}

impl End {
    pub(super) fn client(setup: u8) -> Self {
        let mut config = endpoint_config(1);
        config.connection_id_len = if setup & 1 == 0 { 8 } else { 0 };
        let address = SocketAddr::from(([10, 0, 0, 1], 50_000));
        Self::new(Endpoint::new(config, None, [3; 32]), address, setup)
    }

    pub(super) fn server(setup: u8, ends: &Ends) -> Self {
        let mut server = ServerConfig::new(Arc::clone(&ends.server));
        server.transport = transport();
        server.retry = match setup & 2 {
            0 => RetryPolicy::Auto,
            _ => RetryPolicy::Always,
        };
        let endpoint = Endpoint::new(endpoint_config(2), Some(Arc::new(server)), [4; 32]);
        Self::new(endpoint, SocketAddr::from(([10, 0, 0, 2], 4433)), setup)
    }

    fn new(endpoint: Endpoint, address: SocketAddr, setup: u8) -> Self {
        Self {
            endpoint,
            buffer: TransmitBuffer::new(if setup & 4 == 0 { 16 } else { 1 }),
            addresses: vec![address],
            handle: None,
            is_lost: false,
            model: Model::default(),
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        *self.addresses.last().expect("every end has an address")
    }

    pub(super) fn has_address(&self, address: SocketAddr) -> bool {
        self.addresses.contains(&address)
    }

    /// Changes the address, as NAT rebinding does. Datagrams to earlier addresses still arrive.
    pub(super) fn change_address(&mut self, choice: u8) {
        let host = if choice & 1 == 0 { 1 } else { 3 };
        let address = SocketAddr::from(([10, 0, 0, host], 50_000 + u16::from(choice >> 5)));
        self.addresses.retain(|known| *known != address);
        self.addresses.push(address);
    }

    pub(super) fn connect(&mut self, now: Time, server: SocketAddr, ends: &Ends) {
        let mut config = ClientConfig::new(Arc::clone(&ends.client));
        config.transport = transport();
        let handle = self.endpoint.connect(now, &config, server, "localhost");
        self.handle = Some(handle.expect("a valid configuration"));
    }

    pub(super) fn close(&mut self, now: Time) {
        if let Some(connection) = self.connection() {
            connection.close(now, 7, b"the end");
        }
        self.touch();
    }

    fn connection(&mut self) -> Option<&mut Connection> {
        self.endpoint.connection_mut(self.handle?)
    }

    fn touch(&mut self) {
        if let Some(handle) = self.handle {
            self.endpoint.mark_ready(handle);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_lost
    }

    pub(super) fn receive(&mut self, now: Time, from: SocketAddr, mut datagram: Vec<u8>) {
        let meta = ReceiveMeta {
            path: FourTuple::to(from),
            ecn: Ecn::Ect0,
            segment_size: datagram.len().max(1),
        };
        self.endpoint.handle_datagrams(now, &mut datagram, &meta);
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.endpoint.next_timeout()
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.endpoint.handle_timeout(now);
    }

    /// Does the work of a driver and returns the datagrams to send.
    pub(super) fn drive(&mut self, now: Time) -> Sent {
        while let Some(incoming) = self.endpoint.poll_incoming() {
            match self.handle {
                None => self.handle = self.endpoint.accept(now, incoming, None).ok(),
                // A duplicate of the first packet that arrives after the connection has ended.
                Some(_) => self.endpoint.ignore(incoming),
            }
        }
        let mut sent = Vec::new();
        while let Some(handle) = self.endpoint.next_ready() {
            while let Some(event) = self
                .endpoint
                .connection_mut(handle)
                .and_then(Connection::poll_event)
            {
                self.on_event(&event);
            }
            while let Some(transmit) = self.endpoint.poll_transmit(now, handle, &mut self.buffer) {
                let size = transmit.segment_size.unwrap_or(transmit.len).max(1);
                for datagram in self.buffer.bytes().chunks(size) {
                    sent.push((self.address(), transmit.destination, datagram.to_vec()));
                }
            }
        }
        while let Some(transmit) = self.endpoint.poll_stateless_transmit(&mut self.buffer) {
            let datagram = self.buffer.bytes().to_vec();
            sent.push((self.address(), transmit.destination, datagram));
        }
        sent
    }

    fn on_event(&mut self, event: &Event) {
        match event {
            Event::Lost(_) => self.is_lost = true,
            // All streams are gone, and their numbers begin anew.
            Event::EarlyDataRejected => self.model = Model::default(),
            Event::Stream(StreamEvent::Stopped { id, .. }) => {
                self.model.sending.entry(*id).or_default().is_stopped = true;
            }
            _ => {}
        }
    }

    /// Makes one call of the application.
    pub(super) fn operate(&mut self, now: Time, input: &mut Input<'_>) {
        let operation = input.byte();
        let direction = match operation & 16 {
            0 => Direction::Bidirectional,
            _ => Direction::Unidirectional,
        };
        match operation & 15 {
            0 => self.open(direction),
            1 => self.accept(direction),
            2 => self.write(input.below(8), usize::from(input.byte())),
            3 => self.write(input.below(8), usize::from(input.short())),
            4 => self.finish(input.below(8)),
            5 => self.reset(input.below(8), input.number()),
            6 | 7 => drop(self.read(input.below(8), 1 + usize::from(input.short()))),
            8 => self.stop(input.below(8), input.number()),
            9 => self.send_datagram(now, usize::from(input.short()) % 2000),
            10 => {
                let Some(connection) = self.connection() else {
                    return;
                };
                while let Some(datagram) = connection.datagrams().receive() {
                    assert!(datagram.iter().all(|&byte| byte == datagram.len() as u8));
                }
            }
            11 => self.with(|connection| {
                connection.pings().request();
            }),
            12 => self.with(|connection| {
                let _ = connection.initiate_key_update(now);
            }),
            13 => self
                .with(|connection| connection.set_interface_mtu(1000 + u32::from(operation) * 8)),
            14 => self.prioritize(input.below(8), input.byte()),
            // Rare, because it ends the connection.
            _ if operation >> 4 == 15 => self.with(|connection| connection.close(now, 1, b"bye")),
            _ => {}
        }
        self.touch();
    }

    fn with(&mut self, work: impl FnOnce(&mut Connection)) {
        if let Some(connection) = self.connection() {
            work(connection);
        }
    }

    fn open(&mut self, direction: Direction) {
        if self.model.sending.len() >= MAX_STREAMS {
            return;
        }
        let Some(id) = self
            .connection()
            .and_then(|it| it.streams().open(direction))
        else {
            return;
        };
        self.model.sending.entry(id).or_default();
        if direction == Direction::Bidirectional {
            self.model.receiving.entry(id).or_default();
        }
    }

    fn accept(&mut self, direction: Direction) {
        let Some(id) = self
            .connection()
            .and_then(|it| it.streams().accept(direction))
        else {
            return;
        };
        let is_new = self.model.receiving.insert(id, Default::default());
        assert!(is_new.is_none(), "{id:?} was accepted twice");
        if direction == Direction::Bidirectional {
            self.model.sending.entry(id).or_default();
        }
    }

    fn sending(&self, index: usize) -> Option<StreamId> {
        let len = self.model.sending.len().max(1);
        self.model.sending.keys().nth(index % len).copied()
    }

    fn receiving(&self, index: usize) -> Option<StreamId> {
        let len = self.model.receiving.len().max(1);
        self.model.receiving.keys().nth(index % len).copied()
    }

    fn write(&mut self, index: usize, len: usize) {
        let Some(id) = self.sending(index) else {
            return;
        };
        let start = self.model.sending[&id].written;
        let data: Vec<u8> = (start..).take(len).map(|at| byte_at(id, at)).collect();
        let Some(connection) = self.connection() else {
            return;
        };
        let result = match len & 1 {
            0 => connection.streams().write(id, &data),
            _ => connection.streams().write_chunk(id, &mut Bytes::from(data)),
        };
        let sending = self.model.sending.entry(id).or_default();
        match result {
            Ok(written) => {
                assert!(written <= len);
                assert!(
                    !sending.is_finished && sending.reset.is_none(),
                    "{id:?} was already finished or reset"
                );
                sending.written += written as u64;
            }
            Err(WriteError::Stopped(_)) => sending.is_stopped = true,
            Err(WriteError::Blocked | WriteError::ClosedStream) => {}
        }
    }

    fn finish(&mut self, index: usize) {
        let Some(id) = self.sending(index) else {
            return;
        };
        self.finish_stream(id);
    }

    fn finish_stream(&mut self, id: StreamId) {
        let result = self.connection().map(|it| it.streams().finish(id));
        if let Some(Ok(())) = result {
            self.model.sending.entry(id).or_default().is_finished = true;
        }
    }

    fn reset(&mut self, index: usize, code: u64) {
        let Some(id) = self.sending(index) else {
            return;
        };
        let result = self.connection().map(|it| it.streams().reset(id, code));
        if let Some(Ok(())) = result {
            let sending = self.model.sending.entry(id).or_default();
            sending.reset.get_or_insert(code);
        }
    }

    fn stop(&mut self, index: usize, code: u64) {
        let Some(id) = self.receiving(index) else {
            return;
        };
        let result = self.connection().map(|it| it.streams().stop(id, code));
        if let Some(Ok(())) = result {
            let receiving = self.model.receiving.entry(id).or_default();
            receiving.end.get_or_insert(StreamEnd::Stopped);
        }
    }

    fn read(&mut self, index: usize, max: usize) -> bool {
        let Some(id) = self.receiving(index) else {
            return false;
        };
        self.read_stream(id, max)
    }

    fn read_stream(&mut self, id: StreamId, max: usize) -> bool {
        let Some(connection) = self.handle.and_then(|it| self.endpoint.connection_mut(it)) else {
            return false;
        };
        let receiving = self.model.receiving.entry(id).or_default();
        receiving.read(connection.streams(), id, max)
    }

    fn send_datagram(&mut self, now: Time, len: usize) {
        let data = vec![len as u8; len];
        self.with(|connection| {
            let max = connection.max_datagram_size();
            let result = connection.send_datagram(now, data.into(), SendOptions::default());
            if max.is_some_and(|max| len <= max) {
                assert!(result.is_ok(), "{len} bytes fit: {result:?}");
            }
        });
    }

    fn prioritize(&mut self, index: usize, priority: u8) {
        if let Some(id) = self.sending(index) {
            self.with(|connection| {
                let _ = connection.streams().set_priority(id, i32::from(priority));
            });
        }
    }

    /// Accepts all streams, finishes the sending ones, and reads the receiving ones.
    pub(super) fn finish_all(&mut self, _now: Time) {
        for direction in [Direction::Bidirectional, Direction::Unidirectional] {
            for _ in 0..MAX_STREAMS {
                self.accept(direction);
            }
        }
        for id in self.model.sending.keys().copied().collect::<Vec<_>>() {
            self.finish_stream(id);
        }
        for id in self.model.receiving.keys().copied().collect::<Vec<_>>() {
            while self.read_stream(id, 1 << 20) {}
        }
        self.touch();
    }

    /// Returns true if everything that the other end sent has arrived.
    pub(super) fn has_all_of(&self, other: &Self) -> bool {
        self.missing(other).is_empty()
    }

    /// Describes the streams of the other end that have not arrived completely.
    pub(super) fn missing(&self, other: &Self) -> String {
        let mut missing = String::new();
        for (id, sending) in &other.model.sending {
            let is_used = sending.written > 0 || sending.is_finished || sending.reset.is_some();
            let has_all = match self.model.receiving.get(id) {
                Some(receiving) => receiving.has_all(sending),
                None => !is_used,
            };
            if !has_all {
                let Sending {
                    written,
                    is_finished,
                    reset,
                    ..
                } = sending;
                let read = self.model.receiving.get(id).map(|it| it.read);
                missing.push_str(&format!(
                    "{id:?}: {read:?} of {written}, finished {is_finished}, reset {reset:?}; "
                ));
            }
        }
        missing
    }

    /// Checks the conditions that hold at any time.
    pub(super) fn check(&self) {
        let stats = self.endpoint.stats();
        let fault = self.handle.and_then(|handle| self.endpoint.fault(handle));
        assert_eq!(stats.faults, 0, "a connection panicked: {fault:?}");
        assert!(
            stats.memory_used <= MAX_MEMORY,
            "{} bytes",
            stats.memory_used
        );
    }

    /// Compares the streams that were read with those that the other end wrote.
    pub(super) fn check_against(&self, other: &Self) {
        for (id, receiving) in &self.model.receiving {
            if let Some(sending) = other.model.sending.get(id) {
                receiving.check(*id, sending);
            } else {
                assert_eq!(receiving.read, 0, "{id:?}: bytes that were not written");
            }
        }
    }

    /// Returns the state of early data, and true if the first stream began in early data.
    #[cfg(test)]
    pub(super) fn early_data(&mut self) -> (EarlyData, bool) {
        let receiving = self.model.receiving.keys().next().copied();
        let connection = self.connection().expect("the connection exists");
        let is_early = receiving.is_some_and(|id| connection.streams().is_early(id));
        (connection.stats().early_data, is_early)
    }

    /// Checks that no state is left.
    pub(super) fn check_empty(&self) {
        let stats = self.endpoint.stats();
        assert_eq!(
            stats.connections, 0,
            "the connection did not end: {stats:?}"
        );
        assert_eq!(stats.memory_used, 0, "leaked memory: {stats:?}");
    }
}

/// The limit in bytes for one connection: both windows, both datagram queues and packet records.
const MAX_MEMORY: u64 = 1 << 20;

/// The largest number of streams that one end uses.
const MAX_STREAMS: usize = 16;

fn endpoint_config(seed: u8) -> EndpointConfig {
    let mut config = EndpointConfig::from_seed([seed; 32]);
    config.unix_seconds_at_epoch = 1_700_000_000;
    config
}

/// Settings with small limits, so that a short input can reach them.
fn transport() -> Arc<TransportConfig> {
    static CONFIG: OnceLock<Arc<TransportConfig>> = OnceLock::new();
    let make = || {
        Arc::new(TransportConfig {
            max_bidi_streams: 4,
            max_uni_streams: 4,
            stream_receive_window: 16 * 1024,
            stream_receive_window_max: 64 * 1024,
            receive_window: 32 * 1024,
            receive_window_max: 128 * 1024,
            send_buffer_max: 128 * 1024,
            unsent_limit: 32 * 1024,
            // Larger datagrams would take more time without more coverage.
            mtu_max: 1500,
            max_gaps_per_stream: 8,
            max_gaps: 16,
            ..TransportConfig::default()
        })
    };
    Arc::clone(CONFIG.get_or_init(make))
}
