//! An application that performs random operations and checks all results.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use courser_base::{Side, Time};
use courser_sim::host::{App, Context};
use courser_transport::{ConnectionError, ConnectionHandle, StreamEvent};
use courser_wire::{Direction, StreamId};

use super::book::{Key, SharedBook};
use super::stream::{Hands, Own};
use crate::common::dice::Dice;

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
    dice: Dice,
    book: SharedBook,
    connections: BTreeMap<ConnectionHandle, Linked>,
    next: Option<Time>,
    connected: u64,
    is_settling: bool,
}

/// A connection that is established and not over.
struct Linked {
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
    pub fn new(side: Side, plan: Plan, dice: Dice, book: SharedBook) -> Self {
        Self {
            side,
            plan,
            dice,
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
        act: impl FnOnce(&mut Working<'_>, &mut Hands<'_, '_>) -> T,
    ) -> T {
        let Some(linked) = self.connections.get_mut(&handle) else {
            panic!("an event of a connection that has ended or never existed");
        };
        let Linked {
            key,
            streams,
            left,
            accepted,
            has_opened,
            early,
        } = linked;
        let mut view = Working {
            streams,
            accepted,
            has_opened,
            early,
            limits: self.plan.limits,
            is_settling: self.is_settling,
        };
        let mut hands = Hands {
            context,
            handle,
            side: self.side,
            key: *key,
            book: &self.book,
            dice: &mut self.dice,
            piece: self.plan.piece,
            left,
        };
        act(&mut view, &mut hands)
    }

    fn connect(&mut self, context: &mut Context<'_>) -> bool {
        let Some((peer, times)) = self.plan.connect else {
            return false;
        };
        let is_due = self.connected == 0 || self.dice.percent(5);
        if self.connected == times || !is_due {
            return false;
        }
        self.connected += 1;
        let handle = context.connect(peer).expect("a good configuration");
        self.book.borrow_mut().end(self.side, handle);
        if self.dice.percent(2) {
            let code = self.dice.below(1 << 62);
            self.close(context, handle, code);
        }
        true
    }

    fn operate(&mut self, context: &mut Context<'_>) {
        if self.connect(context) {
            return;
        }
        let at = self.dice.below(self.connections.len() as u64);
        let at = usize::try_from(at).expect("an index");
        let Some(handle) = self.connections.keys().nth(at).copied() else {
            return;
        };
        if self.dice.below(1000) < self.plan.closes {
            let code = self.dice.below(1 << 62);
            return self.close(context, handle, code);
        }
        self.with(context, handle, |linked, hands| {
            match hands.dice.below(20) {
                0..=3 => linked.open(hands),
                4..=17 => linked.operate(hands),
                18 => update_keys(hands),
                _ => {
                    if let Some(connection) = hands.context.connection(hands.handle) {
                        connection.pings().request();
                        hands.count("ping");
                    }
                }
            }
        });
    }
}

fn update_keys(hands: &mut Hands<'_, '_>) {
    let now = hands.context.now();
    // It may be too early for the rules.
    if let Some(connection) = hands.context.connection(hands.handle)
        && connection.initiate_key_update(now).is_ok()
    {
        hands.count("key update");
    }
}

/// A connection during an operation.
struct Working<'a> {
    streams: &'a mut BTreeMap<StreamId, Own>,
    accepted: &'a mut [u64; 2],
    has_opened: &'a mut [bool; 2],
    early: &'a mut BTreeMap<StreamId, (u64, bool)>,
    limits: [u64; 2],
    is_settling: bool,
}

impl Working<'_> {
    fn own(&mut self, id: StreamId, event: &str) -> &mut Own {
        match self.streams.get_mut(&id) {
            Some(own) => own,
            None => panic!("an event of {id:?}, which was neither opened nor accepted: {event}"),
        }
    }

    /// Returns true if the peer may have aborted a stream before this end has accepted it.
    fn on_stopped(&mut self, hands: &mut Hands<'_, '_>, id: StreamId, code: u64) {
        let is_new = id.index() >= self.accepted[index(id.direction())];
        if is_new && id.initiator() != hands.side {
            let before = self.early.insert(id, (code, false));
            assert!(before.is_none(), "{id:?} stopped twice");
        } else {
            self.own(id, "Stopped").on_stopped(hands, code);
        }
    }

    fn open(&mut self, hands: &mut Hands<'_, '_>) {
        let direction = hands.dice.pick(&DIRECTIONS);
        self.open_one(hands, direction);
    }

    fn open_one(&mut self, hands: &mut Hands<'_, '_>, direction: Direction) {
        if hands
            .context
            .connection(hands.handle)
            .is_none_or(|it| it.is_closed())
        {
            return;
        }
        let opened = hands.streams().open(direction);
        let mut book = hands.book.borrow_mut();
        let owed = (hands.side.is_server(), hands.handle, index(direction));
        let Some(id) = opened else {
            book.owed.insert(owed);
            return;
        };
        book.owed.remove(&owed);
        book.count("open");
        let is_new = !self.streams.contains_key(&id);
        assert!(
            is_new && id.initiator() == hands.side,
            "{id:?} opened twice"
        );
        assert_eq!(id.direction(), direction);
        for sender in senders(id) {
            let key = (hands.key, id, sender.is_server());
            book.flows.insert(key, Default::default());
        }
        self.streams
            .insert(id, Own::new(id, hands.side, hands.dice));
    }

    /// Performs an operation on one of the streams.
    fn operate(&mut self, hands: &mut Hands<'_, '_>) {
        for direction in DIRECTIONS {
            if self.has_opened[index(direction)] && hands.dice.percent(30) {
                self.accept(hands, direction);
            }
        }
        let live = self.streams.values_mut().filter(|own| !own.is_over());
        let mut live: Vec<_> = live.collect();
        let at = hands.dice.below(live.len() as u64);
        if let Some(own) = live.get_mut(usize::try_from(at).expect("an index")) {
            own.operate(hands);
        }
    }

    /// Accepts all streams that the peer has opened.
    fn accept(&mut self, hands: &mut Hands<'_, '_>, direction: Direction) {
        let kind = index(direction);
        self.has_opened[kind] = false;
        while let Some(id) = hands.streams().accept(direction) {
            let expected = StreamId::new(hands.side.peer(), direction, self.accepted[kind]);
            assert_eq!(id, expected, "streams come in their order");
            self.accepted[kind] += 1;
            // Panics if the peer has not opened it.
            hands
                .book
                .borrow_mut()
                .flow(hands.key, id, hands.side.peer());
            let mut own = Own::new(id, hands.side, hands.dice);
            if let Some((code, is_over)) = self.early.remove(&id) {
                own.on_stopped(hands, code);
                if is_over {
                    own.on_acknowledged(hands);
                }
            }
            if self.is_settling {
                own.settle(hands);
            }
            self.streams.insert(id, own);
            let open = self.streams.values().filter(|own| {
                own.id.initiator() != hands.side
                    && own.id.direction() == direction
                    && !own.is_over()
            });
            let (open, limit) = (open.count() as u64, self.limits[kind]);
            assert!(open <= limit, "{open} streams open, {limit} allowed");
        }
    }

    /// Reads the data that arrived before the end of the connection, which must be correct.
    fn read_rest(&mut self, hands: &mut Hands<'_, '_>) {
        for direction in DIRECTIONS {
            self.accept(hands, direction);
        }
        for own in self.streams.values_mut() {
            while own.read_rest(hands) {
                hands.count("read after the end");
            }
        }
    }

    fn settle(&mut self, hands: &mut Hands<'_, '_>) {
        for own in self.streams.values_mut() {
            own.settle(hands);
        }
        for direction in DIRECTIONS {
            self.accept(hands, direction);
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
        let connection = context.connection(handle).expect("it has just connected");
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
        let linked = Linked {
            key,
            streams: BTreeMap::new(),
            left: self.plan.bytes,
            accepted: [0; 2],
            has_opened: [true; 2],
            early: BTreeMap::new(),
        };
        self.connections.insert(handle, linked);
        for direction in DIRECTIONS {
            self.on_opened(context, handle, direction);
        }
    }

    fn on_opened(&mut self, context: &mut Context<'_>, handle: ConnectionHandle, of: Direction) {
        self.with(context, handle, |linked, hands| {
            linked.has_opened[index(of)] = true;
            if linked.is_settling || hands.dice.percent(80) {
                linked.accept(hands, of);
            }
        });
    }

    fn on_readable(&mut self, context: &mut Context<'_>, handle: ConnectionHandle, id: StreamId) {
        self.with(context, handle, |linked, hands| {
            let is_settling = linked.is_settling;
            linked.own(id, "Readable").on_readable(hands, is_settling);
        });
    }

    fn on_writable(&mut self, context: &mut Context<'_>, handle: ConnectionHandle, id: StreamId) {
        self.with(context, handle, |linked, hands| {
            let is_settling = linked.is_settling;
            linked.own(id, "Writable").on_writable(hands, is_settling);
        });
    }

    fn on_finished(&mut self, context: &mut Context<'_>, handle: ConnectionHandle, id: StreamId) {
        self.with(context, handle, |linked, hands| {
            match linked.early.get_mut(&id) {
                Some((_, is_over)) => *is_over = true,
                None => linked.own(id, "Finished").on_acknowledged(hands),
            }
        });
    }

    fn on_stream_event(
        &mut self,
        context: &mut Context<'_>,
        handle: ConnectionHandle,
        event: StreamEvent,
    ) {
        self.with(context, handle, |linked, hands| match event {
            StreamEvent::Stopped { id, code, .. } => linked.on_stopped(hands, id, code),
            StreamEvent::Available { direction } => {
                linked.open_one(hands, direction);
                if linked.is_settling {
                    linked.settle(hands);
                }
            }
            _ => {}
        });
    }

    fn on_closed(
        &mut self,
        context: &mut Context<'_>,
        handle: ConnectionHandle,
        error: &ConnectionError,
    ) {
        if self.connections.contains_key(&handle) {
            self.with(context, handle, |linked, hands| linked.read_rest(hands));
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
        book.owed
            .retain(|(of, owed, _)| (*of, *owed) != (side, handle));
    }

    fn on_timer(&mut self, context: &mut Context<'_>) {
        let now = context.now();
        if now < self.plan.settle_at {
            self.operate(context);
            let pause = u64::try_from(self.plan.pause.as_micros()).expect("a while");
            let pause = Duration::from_micros(self.dice.between(1, pause * 2));
            self.next = Some((now + pause).min(self.plan.settle_at));
            return;
        }
        self.next = None;
        self.is_settling = true;
        let all: Vec<_> = self.connections.keys().copied().collect();
        for handle in all {
            let is_open = context.connection(handle).is_some_and(|it| !it.is_closed());
            if is_open {
                self.with(context, handle, |linked, hands| linked.settle(hands));
            }
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.next
    }
}
