//! The state that this crate keeps of a connection beside that of the transport.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use courser_base::Unreachable;
use courser_transport::{ConnectionHandle, DatagramEvent, Event, StreamEvent};
use courser_wire::{StreamId, VarInt};

use crate::error::WriteError;
use crate::shard::ended_values::EndedValues;
use crate::shard::wakers::{ConnectionWakers, Topic};

/// The part of a connection that its handles use. It exists until the last handle is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionEntry {
    pub(crate) handle: ConnectionHandle,
    pub(crate) is_connected: bool,
    /// The end of the connection was reported, and all waiting tasks were woken.
    pub(crate) is_over: bool,
    /// The approximate number of bytes that were written and not sent.
    pub(crate) unsent: usize,
    /// Writes and changes since the driver sent, or their task waited.
    pub(crate) uses: u32,
    /// The turn of the driver in which sending made no room for a datagram; 0 for none.
    pub(crate) full_in_turn: u32,
    /// The reason why the server cannot be reached, if there is a report.
    pub(crate) unreachable: Option<Unreachable>,
    /// The path is silent. The handles read it without the lock.
    pub(crate) silence: Arc<AtomicBool>,
    pub(crate) wakers: ConnectionWakers,
    /// Values of users that wait to be dropped.
    pub(crate) ended: Option<Box<EndedValues>>,
}

impl ConnectionEntry {
    pub(crate) fn new(handle: ConnectionHandle) -> Self {
        Self {
            handle,
            is_connected: false,
            is_over: false,
            unsent: 0,
            uses: 0,
            full_in_turn: 0,
            unreachable: None,
            silence: Arc::default(),
            wakers: ConnectionWakers::default(),
            ended: None,
        }
    }

    /// Passes an event to the tasks that wait for it.
    pub(crate) fn on_event(&mut self, event: Event, woken: &mut Vec<Waker>) {
        match event {
            Event::HandshakeDataReady => {
                self.wakers.waiters(Topic::Handshake).wake_all(woken);
            }
            Event::Connected => {
                self.is_connected = true;
                self.wakers.waiters(Topic::Handshake).wake_all(woken);
                // The peer's limits are known now.
                self.wakers.wake_for_datagram_size(woken);
            }
            // All streams are gone, and with them what their tasks wait for.
            Event::EarlyDataRejected => self.wakers.wake_all(woken),
            Event::Stream(event) => self.on_stream_event(event, woken),
            Event::Datagram(event) => self.on_datagram_event(event, woken),
            Event::Lost(_) => self.on_end(woken),
            Event::PingAnswered => self.wakers.waiters(Topic::Ping).wake_all(woken),
            Event::Unreachable(cause) => {
                self.unreachable = Some(cause);
                self.wakers.waiters(Topic::Handshake).wake_all(woken);
            }
            Event::PathSilent => {
                self.silence.store(true, Ordering::Relaxed);
                self.wakers.wake_for_silence(woken);
            }
            Event::PathAnswers => {
                self.silence.store(false, Ordering::Relaxed);
                self.wakers.waiters(Topic::Silence).wake_all(woken);
            }
            // A further path may be opened from the confirmation on.
            Event::Confirmed
            | Event::Migrated
            | Event::MigrationFailed
            | Event::MayOpenPath
            | Event::PathOpened(_)
            | Event::PathClosed { .. }
            | Event::AddressObserved(_) => {
                self.wakers.waiters(Topic::Migration).wake_all(woken);
            }
            Event::DatagramSizeChanged => {
                self.wakers.wake_for_datagram_size(woken);
            }
            Event::PathChanged { .. }
            | Event::InterfaceMtuWanted { .. }
            | Event::PathSuspect(_)
            | Event::PathRecovered(_) => {}
        }
    }

    /// Wakes all waiting tasks, because the connection is over.
    pub(crate) fn on_end(&mut self, woken: &mut Vec<Waker>) {
        self.is_over = true;
        self.wakers.wake_all(woken);
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
                self.end_watches(id, &Err(WriteError::Stopped(code)), woken);
            }
            StreamEvent::Acknowledged { id, len } => {
                self.wakers.settle(id, len, &Ok(()), woken);
            }
            StreamEvent::Expired { id } => {
                self.wakers.on_expired(id);
                self.wakers.wake_writer(id, woken);
                self.end_watches(id, &Err(WriteError::DeadlinePassed), woken);
            }
            StreamEvent::Finished { id } => {
                self.wakers.wake_finished(id, woken);
                // After a reset they have their result already.
                self.end_watches(id, &Ok(()), woken);
            }
        }
    }

    /// Ends all watches of a stream that is not sent on any more.
    pub(crate) fn end_watches(
        &mut self,
        id: StreamId,
        result: &Result<(), WriteError>,
        woken: &mut Vec<Waker>,
    ) {
        self.wakers.settle(id, u64::MAX, result, woken);
        self.wakers.wake_blocked(id, woken);
    }

    fn on_datagram_event(&mut self, event: DatagramEvent, woken: &mut Vec<Waker>) {
        match event {
            DatagramEvent::Readable => self.wakers.waiters(Topic::Datagram).wake_all(woken),
            DatagramEvent::Room => self.wakers.waiters(Topic::DatagramRoom).wake_all(woken),
            DatagramEvent::Fate { id, fate } => self.wakers.on_fate(id, fate, woken),
        }
    }
}
