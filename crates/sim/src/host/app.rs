//! Applications on a host.

use std::any::Any;

use courser_base::Time;
use courser_transport::{ConnectionError, ConnectionHandle, Event, StreamEvent};
use courser_wire::{Direction, StreamId};

use super::Context;
use crate::apps::AppCounters;

/// An application on a [`Host`](super::Host), which receives events and acts through the
/// [`Context`].
///
/// Stream events are edge-triggered, see [`StreamEvent`]. An event follows only after the
/// application has read until [`ReadError::Blocked`], written until [`WriteError::Blocked`], or
/// opened and accepted all available streams.
///
/// [`ReadError::Blocked`]: courser_transport::ReadError::Blocked
/// [`WriteError::Blocked`]: courser_transport::WriteError::Blocked
pub trait App: Any {
    /// Called at the start of the world.
    fn on_start(&mut self, _context: &mut Context<'_>) {}

    /// Called at the end of a handshake, on both sides.
    fn on_connected(&mut self, _context: &mut Context<'_>, _connection: ConnectionHandle) {}

    /// Called after the peer opened streams.
    fn on_opened(
        &mut self,
        _context: &mut Context<'_>,
        _connection: ConnectionHandle,
        _direction: Direction,
    ) {
    }

    /// Called when a blocked stream becomes readable.
    fn on_readable(
        &mut self,
        _context: &mut Context<'_>,
        _connection: ConnectionHandle,
        _id: StreamId,
    ) {
    }

    /// Called when a blocked stream becomes writable.
    fn on_writable(
        &mut self,
        _context: &mut Context<'_>,
        _connection: ConnectionHandle,
        _id: StreamId,
    ) {
    }

    /// Called when the peer has acknowledged all data of a finished stream.
    fn on_finished(
        &mut self,
        _context: &mut Context<'_>,
        _connection: ConnectionHandle,
        _id: StreamId,
    ) {
    }

    /// Called for all other events of streams: the peer has stopped a stream, or more streams may
    /// be opened.
    fn on_stream_event(
        &mut self,
        _context: &mut Context<'_>,
        _connection: ConnectionHandle,
        _event: StreamEvent,
    ) {
    }

    /// Called when a connection is closed.
    fn on_closed(
        &mut self,
        _context: &mut Context<'_>,
        _connection: ConnectionHandle,
        _error: &ConnectionError,
    ) {
    }

    /// Called at the time of [`App::next_timer`].
    fn on_timer(&mut self, _context: &mut Context<'_>) {}

    /// Returns the time of the next call of [`App::on_timer`]. A time that remains in the past
    /// stalls the world.
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// Returns the counters of the application, if it has any.
    fn counters(&self) -> Option<&AppCounters> {
        None
    }
}

pub(super) fn dispatch(
    app: &mut dyn App,
    context: &mut Context<'_>,
    connection: ConnectionHandle,
    event: &Event,
) {
    match event {
        Event::Connected => app.on_connected(context, connection),
        Event::Lost(error) => app.on_closed(context, connection, error),
        Event::Stream(StreamEvent::Opened { direction }) => {
            app.on_opened(context, connection, *direction);
        }
        Event::Stream(StreamEvent::Readable { id }) => app.on_readable(context, connection, *id),
        Event::Stream(StreamEvent::Writable { id }) => app.on_writable(context, connection, *id),
        Event::Stream(StreamEvent::Finished { id }) => app.on_finished(context, connection, *id),
        Event::Stream(event) => app.on_stream_event(context, connection, *event),
        // Applications that send datagrams take these events from the connection.
        Event::Datagram(_)
        | Event::HandshakeDataReady
        | Event::EarlyDataRejected
        | Event::Confirmed
        | Event::PingAnswered
        | Event::PathChanged { .. }
        | Event::Migrated
        | Event::DatagramSizeChanged
        | Event::InterfaceMtuWanted { .. }
        | Event::MigrationFailed
        | Event::MayOpenPath
        | Event::PathOpened(_)
        | Event::PathSuspect(_)
        | Event::PathRecovered(_)
        | Event::AddressObserved(_)
        | Event::PathClosed { .. }
        | Event::Unreachable(_)
        | Event::PathSilent
        | Event::PathAnswers => {}
    }
}
