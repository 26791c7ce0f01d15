//! The state of a connection that the transport does not keep.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use courser_base::FourTuple;
use courser_crypto::HandshakeData;
use courser_transport::{
    Connection, ConnectionError, ConnectionHandle, ConnectionStats, DatagramEvent, Event,
    StreamEvent, Streams,
};

use crate::VarInt;
use crate::wakers::{ConnectionWakers, Topic};

/// One connection as its application handles see it.
///
/// Lives until the transport has forgotten the connection and the last handle is gone,
/// whichever is later.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) handle: ConnectionHandle,
    /// The transport still knows the connection.
    pub(crate) in_transport: bool,
    /// Handles of the application exist.
    pub(crate) is_held: bool,
    /// Waits in the queue of those who may have something to send.
    pub(crate) is_queued: bool,
    /// The peer knows that it is over: `wait_idle` waits no longer.
    pub(crate) is_quiet: bool,
    pub(crate) is_connected: bool,
    /// About as many bytes were written and not sent.
    pub(crate) unflushed: usize,
    pub(crate) error: Option<ConnectionError>,
    pub(crate) wakers: ConnectionWakers,
    /// Streams and data that arrived before the end and can still be accepted and read.
    pub(crate) unread: Option<Box<Streams>>,
    /// Datagrams that had arrived before the end.
    pub(crate) unread_datagrams: VecDeque<Bytes>,
    /// The facts that remain once the transport has dropped the connection.
    pub(crate) remains: Option<Box<Remains>>,
}

/// The last words of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Remains {
    /// The last one that was proven.
    pub(crate) path: FourTuple,
    pub(crate) rtt: Duration,
    pub(crate) stats: ConnectionStats,
    pub(crate) handshake_data: Option<HandshakeData>,
    pub(crate) certificates: Option<Vec<Vec<u8>>>,
}

impl Remains {
    pub(crate) fn of(connection: &Connection) -> Self {
        Self {
            path: connection.proven_path(),
            rtt: connection.rtt(),
            stats: connection.stats(),
            handshake_data: connection.handshake_data(),
            certificates: connection.peer_certificates(),
        }
    }
}

impl Default for Remains {
    /// For a connection of which nothing was ever known.
    fn default() -> Self {
        Self {
            path: FourTuple::to(SocketAddr::from(([0, 0, 0, 0], 0))),
            rtt: Duration::ZERO,
            stats: ConnectionStats::default(),
            handshake_data: None,
            certificates: None,
        }
    }
}

impl Slot {
    pub(crate) fn new(handle: ConnectionHandle) -> Self {
        Self {
            handle,
            in_transport: true,
            is_held: true,
            is_queued: false,
            is_quiet: false,
            is_connected: false,
            unflushed: 0,
            error: None,
            wakers: ConnectionWakers::default(),
            unread: None,
            unread_datagrams: VecDeque::new(),
            remains: None,
        }
    }

    /// Hands an event on to those who wait for it.
    pub(crate) fn on_event(&mut self, event: Event, woken: &mut Vec<Waker>) {
        match event {
            Event::HandshakeDataReady => {
                self.wakers.waiters(Topic::Handshake).wake_all(woken);
            }
            Event::Connected => {
                self.is_connected = true;
                self.wakers.waiters(Topic::Handshake).wake_all(woken);
            }
            Event::Stream(event) => self.on_stream_event(event, woken),
            Event::Datagram(event) => self.on_datagram_event(event, woken),
            Event::Lost(error) => self.end(error, woken),
            Event::Confirmed | Event::PathChanged { .. } => {}
        }
    }

    fn on_stream_event(&mut self, event: StreamEvent, woken: &mut Vec<Waker>) {
        match event {
            StreamEvent::Opened { direction } => {
                self.wakers
                    .waiters(Topic::Accept(direction))
                    .wake_all(woken);
            }
            StreamEvent::Available { direction } => {
                self.wakers.waiters(Topic::Open(direction)).wake_all(woken);
            }
            StreamEvent::Readable { id } => self.wakers.wake_reader(id, woken),
            StreamEvent::Writable { id } => self.wakers.wake_writer(id, woken),
            StreamEvent::Stopped {
                id,
                code,
                was_finished,
            } => {
                let code = VarInt::from_wire(code);
                self.wakers.on_stopped(id, code, was_finished);
                self.wakers.wake_writer(id, woken);
                self.wakers.wake_stopped(id, code, woken);
            }
            StreamEvent::Finished { id } => self.wakers.wake_finished(id, woken),
        }
    }

    fn on_datagram_event(&mut self, event: DatagramEvent, woken: &mut Vec<Waker>) {
        match event {
            DatagramEvent::Readable => self.wakers.waiters(Topic::Datagram).wake_all(woken),
            DatagramEvent::Room => self.wakers.waiters(Topic::DatagramRoom).wake_all(woken),
            DatagramEvent::Fate { id, fate } => self.wakers.on_fate(id, fate, woken),
        }
    }

    /// The connection is over for the application; the first reason stays.
    pub(crate) fn end(&mut self, error: ConnectionError, woken: &mut Vec<Waker>) {
        if self.error.is_none() {
            self.error = Some(error);
            self.wakers.wake_all(woken);
        }
    }
}
