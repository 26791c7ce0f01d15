//! Many connections with the same behaviour.

use std::collections::BTreeMap;
use std::time::Duration;

use courser_base::Time;
use courser_crypto::Space;
use courser_wire::StreamId;

use crate::attack::{Attack, Pace};
use crate::attacker::{Attacker, Goals};
use crate::connection::Connection;
use crate::hooks::{Honest, Hooks};
use crate::http;
use crate::sessions;

/// Maintains a number of connections that each repeat the same burst.
///
/// A connection that the victim closed is replaced by a new one.
pub struct Crowd {
    /// The number of simultaneous connections.
    connections: usize,
    /// Creates the hooks of a connection.
    hooks: fn() -> Box<dyn Hooks>,
    /// Runs once when the handshake of a connection is confirmed.
    setup: fn(&mut Connection, &mut Progress),
    /// Runs on every confirmed connection after each pause.
    burst: Burst,
    /// The pause between bursts of one connection. Zero means full speed.
    pause: Duration,
    members: BTreeMap<u64, Progress>,
}

/// Sends the packets of one connection in one turn.
type Burst = Box<dyn Fn(&mut Connection, &mut Progress, Time)>;

/// The progress of one connection of a [`Crowd`]. Each attack uses the fields as it needs.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// The number of bursts so far.
    pub bursts: u64,
    /// The next offset of the control stream.
    pub control: u64,
    /// The next offset of the QPACK encoder stream.
    pub encoder: u64,
    /// The index of the next request stream.
    pub streams: u64,
    /// The index of the next unidirectional stream.
    pub uni_streams: u64,
    /// The offset on the stream that the attack uses.
    pub offset: u64,
    /// The addresses to which a proxy under attack forwards.
    pub goals: Option<Goals>,
    is_set_up: bool,
    next_burst: Option<Time>,
}

/// The largest number of connections started in one turn, so that responses are read in between.
const CONNECTS: usize = 16;

impl Progress {
    /// Returns the IDs of the next request streams that the peer permits, at most `max`.
    pub(super) fn requests(
        &mut self,
        connection: &Connection,
        max: u64,
    ) -> impl Iterator<Item = StreamId> + use<> {
        let first = self.streams;
        self.streams += permitted(connection, self, max);
        (first..self.streams).map(http::request_stream)
    }

    /// Returns the IDs of the next unidirectional streams that the peer permits, at most `max`.
    pub(super) fn uni_streams(
        &mut self,
        connection: &Connection,
        max: u64,
    ) -> impl Iterator<Item = StreamId> + use<> {
        let initial = connection
            .peer_parameters()
            .map_or(0, |parameters| parameters.initial_max_streams_uni);
        let limit = initial.max(connection.seen().max_streams_uni);
        let first = self.uni_streams;
        self.uni_streams += limit.saturating_sub(first).min(max);
        (first..self.uni_streams).map(http::uni_stream)
    }

    /// Continues the control stream.
    pub(super) fn push_control(&mut self, connection: &mut Connection, bytes: &[u8]) {
        push(connection, http::CONTROL, &mut self.control, bytes);
    }

    /// Continues the QPACK encoder stream.
    pub(super) fn push_encoder(&mut self, connection: &mut Connection, bytes: &[u8]) {
        push(connection, http::ENCODER, &mut self.encoder, bytes);
    }
}

fn push(connection: &mut Connection, stream: u64, offset: &mut u64, bytes: &[u8]) {
    let id = http::uni_stream(stream);
    for chunk in bytes.chunks(http::CHUNK) {
        connection.push_bytes(http::stream(id, *offset, chunk, false));
        *offset += chunk.len() as u64;
    }
}

impl Crowd {
    /// Creates a crowd of HTTP/3 clients: each connection opens the control and encoder streams before its first
    /// burst.
    pub fn of_clients(
        connections: usize,
        burst: impl Fn(&mut Connection, &mut Progress, Time) + 'static,
    ) -> Self {
        Self::new(connections, burst).with_setup(preface)
    }

    /// Creates a crowd whose connections each send `packets` packets at a time. `frames` returns the encoded frames
    /// of one packet.
    pub fn of_packets(
        connections: usize,
        packets: usize,
        frames: impl Fn(&mut Connection, &mut Progress) -> Vec<Vec<u8>> + 'static,
    ) -> Self {
        Self::new(connections, move |connection, progress, now| {
            for _ in 0..packets {
                let frames = frames(connection, progress);
                connection.send_packet(now, Space::Application, frames);
            }
        })
    }

    /// Creates a crowd of `connections` with honest hooks that repeat `burst` at full speed.
    pub fn new(
        connections: usize,
        burst: impl Fn(&mut Connection, &mut Progress, Time) + 'static,
    ) -> Self {
        Self {
            connections,
            hooks: || Box::new(Honest),
            setup: |_, _| {},
            burst: Box::new(burst),
            pause: Duration::ZERO,
            members: BTreeMap::new(),
        }
    }

    /// Sets the hooks of connections.
    #[must_use]
    pub fn with_hooks(self, hooks: fn() -> Box<dyn Hooks>) -> Self {
        Self { hooks, ..self }
    }

    /// Sets the function that runs once per connection.
    #[must_use]
    pub fn with_setup(self, setup: fn(&mut Connection, &mut Progress)) -> Self {
        Self { setup, ..self }
    }

    /// Sets the pause between bursts.
    #[must_use]
    pub fn with_pause(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// Returns the progress of each connection.
    pub fn members(&self) -> impl Iterator<Item = &Progress> {
        self.members.values()
    }

    /// Replaces connections that the victim closed.
    fn replace_closed(&mut self, attacker: &mut Attacker) {
        self.members.retain(|key, _| {
            let is_open = attacker.peek(*key).is_some_and(|it| !it.is_closed());
            if !is_open {
                attacker.forget(*key);
            }
            is_open
        });
        let missing = self.connections.saturating_sub(self.members.len());
        for _ in 0..missing.min(CONNECTS) {
            let key = attacker.connect(0, (self.hooks)());
            self.members.insert(key, Progress::default());
        }
    }
}

impl Attack for Crowd {
    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        self.replace_closed(attacker);
        let goals = attacker.goals();
        let mut next_turn = now + self.pause;
        let mut is_complete = self.members.len() == self.connections;
        for (key, progress) in &mut self.members {
            // A datagram from the victim makes turns come early, so each connection keeps its pause.
            if let Some(at) = progress.next_burst.filter(|at| *at > now) {
                next_turn = next_turn.min(at);
                continue;
            }
            if !attacker.peek(*key).is_some_and(Connection::is_confirmed) {
                is_complete = false;
                continue;
            }
            let Some(connection) = attacker.connection(*key) else {
                continue;
            };
            if !std::mem::replace(&mut progress.is_set_up, true) {
                (self.setup)(connection, progress);
            }
            progress.goals = Some(goals);
            (self.burst)(connection, progress, now);
            progress.bursts += 1;
            progress.next_burst = Some(now + self.pause);
        }
        if self.pause.is_zero() || !is_complete {
            Pace::Now
        } else {
            Pace::At(next_turn)
        }
    }
}

/// Opens the control and encoder streams, and records their offsets in `progress`.
pub(super) fn preface(connection: &mut Connection, progress: &mut Progress) {
    (progress.control, progress.encoder) = http::preface(connection);
    progress.uni_streams = 2;
}

/// Opens the streams of a client with WebTransport and datagrams.
pub(super) fn preface_of_sessions(connection: &mut Connection, progress: &mut Progress) {
    progress.control = sessions::preface(connection, sessions::SETTINGS);
    progress.encoder = 1;
    progress.uni_streams = 2;
}

/// Returns the number of further request streams that the peer permits, at most `max`.
pub(super) fn permitted(connection: &Connection, progress: &Progress, max: u64) -> u64 {
    let initial = connection
        .peer_parameters()
        .map_or(0, |parameters| parameters.initial_max_streams_bidi);
    let limit = initial.max(connection.seen().max_streams_bidi);
    limit.saturating_sub(progress.streams).min(max)
}
