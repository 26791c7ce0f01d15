//! Applications on a host.

use std::any::Any;

use courser_base::Time;
use courser_transport::{ConnectionError, ConnectionHandle, Event, StreamEvent};
use courser_wire::{Direction, StreamId};

use super::Context;
use crate::apps::Tally;

/// An application on a [`Host`](super::Host): it is called when something happens, and acts
/// through the [`Context`].
///
/// Stream events are edges, see [`StreamEvent`]: read until [`ReadError::Blocked`], write until
/// [`WriteError::Blocked`], open and accept until there is nothing, and the next call follows.
///
/// [`ReadError::Blocked`]: courser_transport::ReadError::Blocked
/// [`WriteError::Blocked`]: courser_transport::WriteError::Blocked
pub trait App: Any {
    /// The world has begun.
    fn on_start(&mut self, _context: &mut Context<'_>) {}

    /// A handshake is complete, at either end.
    fn on_connected(&mut self, _context: &mut Context<'_>, _connection: ConnectionHandle) {}

    /// The peer opened streams.
    fn on_opened(
        &mut self,
        _context: &mut Context<'_>,
        _connection: ConnectionHandle,
        _direction: Direction,
    ) {
    }

    /// A stream that had nothing to read has something.
    fn on_readable(
        &mut self,
        _context: &mut Context<'_>,
        _connection: ConnectionHandle,
        _id: StreamId,
    ) {
    }

    /// A stream that had no room has room.
    fn on_writable(
        &mut self,
        _context: &mut Context<'_>,
        _connection: ConnectionHandle,
        _id: StreamId,
    ) {
    }

    /// The peer has everything that was written to a finished stream.
    fn on_finished(
        &mut self,
        _context: &mut Context<'_>,
        _connection: ConnectionHandle,
        _id: StreamId,
    ) {
    }

    /// Any other event of streams: stopped by the peer, more may be opened.
    fn on_stream_event(
        &mut self,
        _context: &mut Context<'_>,
        _connection: ConnectionHandle,
        _event: StreamEvent,
    ) {
    }

    /// A connection is over.
    fn on_closed(
        &mut self,
        _context: &mut Context<'_>,
        _connection: ConnectionHandle,
        _error: &ConnectionError,
    ) {
    }

    /// The time of [`App::next_timer`] has come.
    fn on_timer(&mut self, _context: &mut Context<'_>) {}

    /// When to call [`App::on_timer`]. A time that stays in the past makes the world stall.
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// What it has moved so far, if it counts that.
    fn tally(&self) -> Option<&Tally> {
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
        // Apps that send datagrams ask the connection for them.
        Event::Datagram(_)
        | Event::HandshakeDataReady
        | Event::Confirmed
        | Event::PathChanged { .. } => {}
    }
}
