//! An application that performs random operations and checks all results.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use courser_base::{Side, Time};
use courser_sim::host::{App, Context};
use courser_transport::{ConnectionError, ConnectionHandle, StreamEvent};
use courser_wire::{Direction, StreamId};

use super::book::{Key, SharedBook};
use super::stream::{Own, StreamContext};
use crate::common::random::SeededRandom;

/// The behaviour of an application.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The destination of a client, and the number of its connections.
    pub connect: Option<(SocketAddr, u64)>,
    /// The average time between operations.
    pub pause: Duration,
    /// The time from which it only completes what it has started.
    pub settle_at: Time,
    /// The bytes that it writes on each connection.
    pub bytes: u64,
    /// The largest number of bytes of one write and one read.
    pub piece: u64,
    /// The share of operations in a thousand that close a connection.
    pub closes: u64,
    /// The streams that the peer may have open: bidirectional, unidirectional.
    pub limits: [u64; 2],
    /// The largest datagrams of the interface.
    pub interface_mtu: Option<u32>,
}

/// One end of all connections.
pub struct Actor {
    side: Side,
    plan: Plan,
    random: SeededRandom,
    book: SharedBook,
    connections: BTreeMap<ConnectionHandle, OpenConnection>,
    next: Option<Time>,
    connected: u64,
    is_settling: bool,
}

/// A connection that is established and not over.
struct OpenConnection {
    key: Key,
    streams: BTreeMap<StreamId, Own>,
    left: u64,
    /// Streams accepted from the peer.
    accepted: [u64; 2],
    /// True if there may be more of them.
    has_opened: [bool; 2],
    /// The events of the sending part of a stream before it was accepted: the code with which the
    /// peer stopped it, and true if it is over.
    early: BTreeMap<StreamId, (u64, bool)>,
}

const DIRECTIONS: [Direction; 2] = [Direction::Bidirectional, Direction::Unidirectional];

impl Actor {
    pub fn new(side: Side, plan: Plan, random: SeededRandom, book: SharedBook) -> Self {
        Self {
            side,
            plan,
            random,
            book,
            connections: BTreeMap::new(),
            next: Some(Time::ZERO),
            connected: 0,
            is_settling: false,
        }
    }

    /// Closes all connections with this code.
    pub fn close_all(&mut self, context: &mut Context<'_>, code: u64) {
        let all: Vec<_> = self.connections.keys().copied().collect();
        for handle in all {
            self.close(context, handle, code);
        }
    }

    fn close(&mut self, context: &mut Context<'_>, handle: ConnectionHandle, code: u64) {
        let mut book = self.book.borrow_mut();
        let end = book.end(self.side, handle);
        let is_open = context.connection(handle).is_some_and(|it| !it.is_closed());
        if is_open {
            end.closed = Some(code);
            book.count("close");
            context.close(handle, code, &code.to_le_bytes());
        }
    }

    /// Performs an operation on an established connection.
    fn with<T>(
        &mut self,
        context: &mut Context<'_>,
        handle: ConnectionHandle,
        act: impl FnOnce(&mut ConnectionOperation<'_>, &mut StreamContext<'_, '_>) -> T,
    ) -> T {
        let Some(open_connection) = self.connections.get_mut(&handle) else {
            panic!("an event of a connection that has ended or never existed");
        };
        let OpenConnection {
            key,
            streams,
            left,
            accepted,
            has_opened,
            early,
        } = open_connection;
        let mut view = ConnectionOperation {
            streams,
            accepted,
            has_opened,
            early,
            limits: self.plan.limits,
            is_settling: self.is_settling,
        };
        let mut stream_context = StreamContext {
            context,
            handle,
            side: self.side,
            key: *key,
            book: &self.book,
            random: &mut self.random,
            piece: self.plan.piece,
            left,
        };
        act(&mut view, &mut stream_context)
    }

    fn connect(&mut self, context: &mut Context<'_>) -> bool {
        let Some((peer, times)) = self.plan.connect else {
            return false;
        };
        let is_due = self.connected == 0 || self.random.percent(5);
        if self.connected == times || !is_due {
            return false;
        }
        self.connected += 1;
        let handle = context.connect(peer).expect("the configuration is valid");
        self.book.borrow_mut().end(self.side, handle);
        if self.random.percent(2) {
            let code = self.random.below(1 << 62);
            self.close(context, handle, code);
        }
        true
    }

    fn operate(&mut self, context: &mut Context<'_>) {
        if self.connect(context) {
            return;
        }
        let at = self.random.below(self.connections.len() as u64);
        let at = usize::try_from(at).expect("the index fits into usize");
        let Some(handle) = self.connections.keys().nth(at).copied() else {
            return;
        };
        if self.random.below(1000) < self.plan.closes {
            let code = self.random.below(1 << 62);
            return self.close(context, handle, code);
        }
        self.with(
            context,
            handle,
            |open_connection, stream_context| match stream_context.random.below(20) {
                0..=3 => open_connection.open(stream_context),
                4..=17 => open_connection.operate(stream_context),
                18 => update_keys(stream_context),
                _ => {
                    if let Some(connection) =
                        stream_context.context.connection(stream_context.handle)
                    {
                        connection.pings().request();
                        stream_context.count("ping");
                    }
                }
            },
        );
    }
}

fn update_keys(stream_context: &mut StreamContext<'_, '_>) {
    let now = stream_context.context.now();
    // It may be too early for the rules.
    if let Some(connection) = stream_context.context.connection(stream_context.handle)
        && connection.initiate_key_update(now).is_ok()
    {
        stream_context.count("key update");
    }
}

/// A connection during an operation.
struct ConnectionOperation<'a> {
    streams: &'a mut BTreeMap<StreamId, Own>,
    accepted: &'a mut [u64; 2],
    has_opened: &'a mut [bool; 2],
    early: &'a mut BTreeMap<StreamId, (u64, bool)>,
    limits: [u64; 2],
    is_settling: bool,
}

impl ConnectionOperation<'_> {
    fn own(&mut self, id: StreamId, event: &str) -> &mut Own {
        match self.streams.get_mut(&id) {
            Some(own) => own,
            None => panic!("an event of {id:?}, which was neither opened nor accepted: {event}"),
        }
    }

    /// Returns true if the peer may have aborted a stream before this end has accepted it.
    fn on_stopped(&mut self, stream_context: &mut StreamContext<'_, '_>, id: StreamId, code: u64) {
        let is_new = id.index() >= self.accepted[index(id.direction())];
        if is_new && id.initiator() != stream_context.side {
            let before = self.early.insert(id, (code, false));
            assert!(before.is_none(), "{id:?} stopped twice");
        } else {
            self.own(id, "Stopped").on_stopped(stream_context, code);
        }
    }

    fn open(&mut self, stream_context: &mut StreamContext<'_, '_>) {
        let direction = stream_context.random.pick(&DIRECTIONS);
        self.open_one(stream_context, direction);
    }

    fn open_one(&mut self, stream_context: &mut StreamContext<'_, '_>, direction: Direction) {
        if stream_context
            .context
            .connection(stream_context.handle)
            .is_none_or(|it| it.is_closed())
        {
            return;
        }
        let opened = stream_context.streams().open(direction);
        let mut book = stream_context.book.borrow_mut();
        let awaiting_credit = (
            stream_context.side.is_server(),
            stream_context.handle,
            index(direction),
        );
        let Some(id) = opened else {
            book.awaiting_credit.insert(awaiting_credit);
            return;
        };
        book.awaiting_credit.remove(&awaiting_credit);
        book.count("open");
        let is_new = !self.streams.contains_key(&id);
        assert!(
            is_new && id.initiator() == stream_context.side,
            "{id:?} opened twice"
        );
        assert_eq!(id.direction(), direction);
        for sender in senders(id) {
            let key = (stream_context.key, id, sender.is_server());
            book.flows.insert(key, Default::default());
        }
        self.streams
            .insert(id, Own::new(id, stream_context.side, stream_context.random));
    }

    /// Performs an operation on one of the streams.
    fn operate(&mut self, stream_context: &mut StreamContext<'_, '_>) {
        for direction in DIRECTIONS {
            if self.has_opened[index(direction)] && stream_context.random.percent(30) {
                self.accept(stream_context, direction);
            }
        }
        let live = self.streams.values_mut().filter(|own| !own.is_over());
        let mut live: Vec<_> = live.collect();
        let at = stream_context.random.below(live.len() as u64);
        if let Some(own) = live.get_mut(usize::try_from(at).expect("the index fits into usize")) {
            own.operate(stream_context);
        }
    }

    /// Accepts all streams that the peer has opened.
    fn accept(&mut self, stream_context: &mut StreamContext<'_, '_>, direction: Direction) {
        let kind = index(direction);
        self.has_opened[kind] = false;
        while let Some(id) = stream_context.streams().accept(direction) {
            let expected =
                StreamId::new(stream_context.side.peer(), direction, self.accepted[kind]);
            assert_eq!(id, expected, "streams come in their order");
            self.accepted[kind] += 1;
            // Panics if the peer has not opened it.
            stream_context.book.borrow_mut().flow(
                stream_context.key,
                id,
                stream_context.side.peer(),
            );
            let mut own = Own::new(id, stream_context.side, stream_context.random);
            if let Some((code, is_over)) = self.early.remove(&id) {
                own.on_stopped(stream_context, code);
                if is_over {
                    own.on_acknowledged(stream_context);
                }
            }
            if self.is_settling {
                own.settle(stream_context);
            }
            self.streams.insert(id, own);
            let open = self.streams.values().filter(|own| {
                own.id.initiator() != stream_context.side
                    && own.id.direction() == direction
                    && !own.is_over()
            });
            let (open, limit) = (open.count() as u64, self.limits[kind]);
            assert!(open <= limit, "{open} streams open, {limit} allowed");
        }
    }

    /// Reads the data that arrived before the end of the connection, which must be correct.
    fn read_rest(&mut self, stream_context: &mut StreamContext<'_, '_>) {
        for direction in DIRECTIONS {
            self.accept(stream_context, direction);
        }
        for own in self.streams.values_mut() {
            while own.read_rest(stream_context) {
                stream_context.count("read after the end");
            }
        }
    }

    fn settle(&mut self, stream_context: &mut StreamContext<'_, '_>) {
        for own in self.streams.values_mut() {
            own.settle(stream_context);
        }
        for direction in DIRECTIONS {
            self.accept(stream_context, direction);
        }
    }
}

const fn index(direction: Direction) -> usize {
    match direction {
        Direction::Bidirectional => 0,
        Direction::Unidirectional => 1,
    }
}

/// Returns the end that sends on a stream.
fn senders(id: StreamId) -> impl Iterator<Item = Side> {
    let both = id.direction() == Direction::Bidirectional;
    let peer = both.then(|| id.initiator().peer());
    std::iter::once(id.initiator()).chain(peer)
}

impl App for Actor {
    fn on_connected(&mut self, context: &mut Context<'_>, handle: ConnectionHandle) {
        let connection = context.connection(handle).expect("the connection exists");
        let mut key = Key::default();
        let exported = connection.export_keying_material(&mut key, b"random operations", None);
        exported.expect("the handshake is complete");
        if let Some(mtu) = self.plan.interface_mtu {
            connection.set_interface_mtu(mtu);
        }
        let mut book = self.book.borrow_mut();
        let end = book.end(self.side, handle);
        assert!(end.key.is_none() && end.lost.is_none(), "connected twice");
        end.key = Some(key);
        book.count("connect");
        drop(book);
        let open_connection = OpenConnection {
            key,
            streams: BTreeMap::new(),
            left: self.plan.bytes,
            accepted: [0; 2],
            has_opened: [true; 2],
            early: BTreeMap::new(),
        };
        self.connections.insert(handle, open_connection);
        for direction in DIRECTIONS {
            self.on_opened(context, handle, direction);
        }
    }

    fn on_opened(&mut self, context: &mut Context<'_>, handle: ConnectionHandle, of: Direction) {
        self.with(context, handle, |open_connection, stream_context| {
            open_connection.has_opened[index(of)] = true;
            if open_connection.is_settling || stream_context.random.percent(80) {
                open_connection.accept(stream_context, of);
            }
        });
    }

    fn on_readable(&mut self, context: &mut Context<'_>, handle: ConnectionHandle, id: StreamId) {
        self.with(context, handle, |open_connection, stream_context| {
            let is_settling = open_connection.is_settling;
            open_connection
                .own(id, "Readable")
                .on_readable(stream_context, is_settling);
        });
    }

    fn on_writable(&mut self, context: &mut Context<'_>, handle: ConnectionHandle, id: StreamId) {
        self.with(context, handle, |open_connection, stream_context| {
            let is_settling = open_connection.is_settling;
            open_connection
                .own(id, "Writable")
                .on_writable(stream_context, is_settling);
        });
    }

    fn on_finished(&mut self, context: &mut Context<'_>, handle: ConnectionHandle, id: StreamId) {
        self.with(
            context,
            handle,
            |open_connection, stream_context| match open_connection.early.get_mut(&id) {
                Some((_, is_over)) => *is_over = true,
                None => open_connection
                    .own(id, "Finished")
                    .on_acknowledged(stream_context),
            },
        );
    }

    fn on_stream_event(
        &mut self,
        context: &mut Context<'_>,
        handle: ConnectionHandle,
        event: StreamEvent,
    ) {
        self.with(
            context,
            handle,
            |open_connection, stream_context| match event {
                StreamEvent::Stopped { id, code, .. } => {
                    open_connection.on_stopped(stream_context, id, code)
                }
                StreamEvent::Available { direction } => {
                    open_connection.open_one(stream_context, direction);
                    if open_connection.is_settling {
                        open_connection.settle(stream_context);
                    }
                }
                _ => {}
            },
        );
    }

    fn on_closed(
        &mut self,
        context: &mut Context<'_>,
        handle: ConnectionHandle,
        error: &ConnectionError,
    ) {
        if self.connections.contains_key(&handle) {
            self.with(context, handle, |open_connection, stream_context| {
                open_connection.read_rest(stream_context)
            });
        }
        self.connections.remove(&handle);
        let mut book = self.book.borrow_mut();
        let end = book.end(self.side, handle);
        assert!(
            end.lost.is_none(),
            "over twice: {:?} and {error:?}",
            end.lost
        );
        end.lost = Some((context.now(), error.clone()));
        let side = self.side.is_server();
        book.awaiting_credit
            .retain(|(of, awaiting_credit, _)| (*of, *awaiting_credit) != (side, handle));
    }

    fn on_timer(&mut self, context: &mut Context<'_>) {
        let now = context.now();
        if now < self.plan.settle_at {
            self.operate(context);
            let pause = u64::try_from(self.plan.pause.as_micros()).expect("the time fits into u64");
            let pause = Duration::from_micros(self.random.between(1, pause * 2));
            self.next = Some((now + pause).min(self.plan.settle_at));
            return;
        }
        self.next = None;
        self.is_settling = true;
        let all: Vec<_> = self.connections.keys().copied().collect();
        for handle in all {
            let is_open = context.connection(handle).is_some_and(|it| !it.is_closed());
            if is_open {
                self.with(context, handle, |open_connection, stream_context| {
                    open_connection.settle(stream_context)
                });
            }
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.next
    }
}
