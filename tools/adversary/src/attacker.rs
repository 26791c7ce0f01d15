//! Many hostile connections, on many ports.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use courser_base::{Side, Time};
use courser_crypto::{ClientTls, Rng, ServerTls};
use courser_wire::packet::{self, PacketKind};
use courser_wire::{ConnectionId, MIN_INITIAL_DATAGRAM};

use crate::connection::{Connection, Seen};
use crate::hooks::{Hooks, ID_LEN};

/// A datagram that an attacker sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The number of the local port, from zero. The caller maps it to a local address.
    pub port: u16,
    /// The address of the victim.
    pub to: SocketAddr,
    /// The UDP payload, which need not be a QUIC packet.
    pub bytes: Vec<u8>,
}

/// The counters of an attacker.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Datagrams sent to the victim, including those that are lost on the way.
    pub sent: u64,
    /// The sum of their UDP payloads in bytes.
    pub sent_bytes: u64,
    /// Datagrams received, including those that cannot be decoded.
    pub received: u64,
    /// The sum of their UDP payloads in bytes.
    pub received_bytes: u64,
    /// Connections started or accepted.
    pub connections: u64,
    /// Connections whose handshake was completed.
    pub handshakes: u64,
    /// Connections that the victim closed, by error code.
    pub closes: BTreeMap<String, u64>,
}

/// The hostile connections of one attack.
pub struct Attacker {
    target: SocketAddr,
    client_tls: Arc<dyn ClientTls>,
    accept: Option<Accept>,
    rng: Rng,
    next_id: u64,
    members: BTreeMap<u64, Member>,
    /// Connections by the prefix of the connection IDs that they issue.
    routes: HashMap<Prefix, u64>,
    touched: BTreeSet<u64>,
    out: VecDeque<Datagram>,
    counts: Counts,
    /// Codes of streams and statuses of removed connections.
    gone: Codes,
    goals: Goals,
}

/// What streams ended with, and the statuses of responses.
#[derive(Clone, Debug, Default)]
struct Codes {
    streams: BTreeMap<u64, u64>,
    statuses: BTreeMap<u16, u64>,
}

impl Codes {
    fn add(&mut self, seen: &Seen) {
        for (code, count) in seen.resets.iter().chain(&seen.stops) {
            *self.streams.entry(*code).or_default() += count;
        }
        for (status, count) in &seen.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
    }
}

/// UDP addresses to which a proxy under attack forwards.
#[derive(Clone, Copy, Debug)]
pub struct Goals {
    /// A host that answers each packet with its content.
    pub echo: SocketAddr,
    /// A host that never answers.
    pub silent: SocketAddr,
}

struct Accept {
    tls: Arc<dyn ServerTls>,
    hooks: fn() -> Box<dyn Hooks>,
}

struct Member {
    connection: Connection,
    port: u16,
    peer: SocketAddr,
    was_established: bool,
    was_closed: bool,
}

impl Attacker {
    /// Creates an attacker without connections. `target` is the victim if that is a server.
    pub fn new(target: SocketAddr, client_tls: Arc<dyn ClientTls>, seed: [u8; 32]) -> Self {
        Self {
            target,
            client_tls,
            accept: None,
            rng: Rng::new(seed),
            next_id: 0,
            members: BTreeMap::new(),
            routes: HashMap::new(),
            touched: BTreeSet::new(),
            out: VecDeque::new(),
            counts: Counts::default(),
            gone: Codes::default(),
            goals: Goals {
                echo: target,
                silent: target,
            },
        }
    }

    /// Sets the addresses to which a proxy under attack forwards.
    pub fn set_goals(&mut self, goals: Goals) {
        self.goals = goals;
    }

    /// Returns the addresses to which a proxy under attack forwards: its own, unless they were set.
    pub fn goals(&self) -> Goals {
        self.goals
    }

    /// Returns the number of streams that the victim has reset or stopped, by error code.
    pub fn stream_codes(&self) -> BTreeMap<u64, u64> {
        self.codes().streams
    }

    /// Returns the number of responses by status.
    pub fn statuses(&self) -> BTreeMap<u16, u64> {
        self.codes().statuses
    }

    fn codes(&self) -> Codes {
        let mut codes = self.gone.clone();
        for member in self.members.values() {
            codes.add(member.connection.seen());
        }
        codes
    }

    /// Uses another TLS configuration for clients from now on.
    pub fn connect_with(&mut self, tls: Arc<dyn ClientTls>) {
        self.client_tls = tls;
    }

    /// Accepts clients from now on. `hooks` creates the hooks of each connection.
    pub fn accept_with(&mut self, tls: Arc<dyn ServerTls>, hooks: fn() -> Box<dyn Hooks>) {
        self.accept = Some(Accept { tls, hooks });
    }

    /// Replaces the hooks of connections that are accepted from now on, whose TLS stays the same.
    pub fn replace_hooks(&mut self, hooks: fn() -> Box<dyn Hooks>) {
        if let Some(accept) = &mut self.accept {
            accept.hooks = hooks;
        }
    }

    /// Returns the victim's address.
    pub fn target(&self) -> SocketAddr {
        self.target
    }

    /// Returns the counters of all connections, including removed ones.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the random number generator, which depends only on the seed.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// Starts a connection to the victim from local port number `port`, and returns its key.
    ///
    /// # Panics
    /// Panics if the TLS configuration is invalid.
    pub fn connect(&mut self, port: u16, hooks: Box<dyn Hooks>) -> u64 {
        let rng = self.rng.fork();
        let connection = Connection::client(&*self.client_tls, SERVER_NAME, hooks, rng)
            .expect("the server name is a DNS name");
        self.add(connection, port, self.target)
    }

    /// Returns the connection with this key. Frames that it queues are sent at the end of the turn.
    pub fn connection(&mut self, key: u64) -> Option<&mut Connection> {
        let member = self.members.get_mut(&key)?;
        self.touched.insert(key);
        Some(&mut member.connection)
    }

    /// Returns the connection with this key for reading.
    pub fn peek(&self, key: u64) -> Option<&Connection> {
        self.members.get(&key).map(|member| &member.connection)
    }

    /// Returns the keys of all connections.
    pub fn keys(&self) -> Vec<u64> {
        self.members.keys().copied().collect()
    }

    /// Sends the datagrams of this connection from another local port from now on.
    pub fn move_to_port(&mut self, key: u64, port: u16) {
        if let Some(member) = self.members.get_mut(&key) {
            member.port = port;
        }
    }

    /// Removes a connection without closing it.
    pub fn forget(&mut self, key: u64) {
        if let Some(member) = self.members.remove(&key) {
            self.gone.add(member.connection.seen());
            self.routes.remove(&prefix(&member.connection.local_id()));
        }
        self.touched.remove(&key);
    }

    /// Sends bytes that belong to no connection.
    pub fn send_raw(&mut self, port: u16, bytes: Vec<u8>) {
        let to = self.target;
        self.queue(Datagram { port, to, bytes });
    }

    /// Processes a datagram that arrived on local port number `port`.
    pub fn receive(&mut self, now: Time, port: u16, from: SocketAddr, bytes: &mut [u8]) {
        self.counts.received += 1;
        self.counts.received_bytes += bytes.len() as u64;
        let Ok(packet) = packet::decode(bytes, 0, ID_LEN) else {
            return;
        };
        let key = match self.routes.get(&prefix(&packet.destination)) {
            Some(key) => *key,
            None if packet.kind == PacketKind::Initial && bytes.len() >= MIN_INITIAL_DATAGRAM => {
                match self.accept_client(port, from, packet.destination, packet.source) {
                    Some(key) => key,
                    None => return,
                }
            }
            None => return,
        };
        if let Some(connection) = self.connection(key) {
            connection.receive(now, bytes);
        }
        self.update_counts(key);
    }

    /// Queues the datagrams of all connections that have something to send.
    pub fn transmit(&mut self, now: Time) {
        let due = self.members.iter().filter_map(|(key, member)| {
            let at = member.connection.next_timeout()?;
            (at <= now).then_some(*key)
        });
        let due: Vec<u64> = due.collect();
        self.touched.extend(due);
        for key in std::mem::take(&mut self.touched) {
            self.flush(now, key);
        }
    }

    /// Returns the next datagram to send.
    pub fn poll_datagram(&mut self) -> Option<Datagram> {
        self.out.pop_front()
    }

    /// Returns the time at which to call [`Attacker::transmit`] even if nothing arrives.
    pub fn next_timeout(&self) -> Option<Time> {
        self.members
            .values()
            .filter_map(|member| member.connection.next_timeout())
            .min()
    }

    fn add(&mut self, connection: Connection, port: u16, peer: SocketAddr) -> u64 {
        let key = self.next_id;
        self.next_id += 1;
        self.counts.connections += 1;
        self.routes.insert(prefix(&connection.local_id()), key);
        self.touched.insert(key);
        self.members.insert(
            key,
            Member {
                connection,
                port,
                peer,
                was_established: false,
                was_closed: false,
            },
        );
        key
    }

    fn accept_client(
        &mut self,
        port: u16,
        from: SocketAddr,
        original: ConnectionId,
        client_id: ConnectionId,
    ) -> Option<u64> {
        let accept = self.accept.as_ref()?;
        let hooks = (accept.hooks)();
        let rng = self.rng.fork();
        let connection = Connection::server(&*accept.tls, original, client_id, hooks, rng).ok()?;
        debug_assert_eq!(connection.side(), Side::Server);
        let key = self.add(connection, port, from);
        // Repetitions of the first Initial have the same destination.
        self.routes.insert(prefix(&original), key);
        Some(key)
    }

    /// Counts a handshake that was completed and a connection that the peer closed.
    fn update_counts(&mut self, key: u64) {
        let Some(member) = self.members.get_mut(&key) else {
            return;
        };
        if member.connection.is_established() && !member.was_established {
            member.was_established = true;
            self.counts.handshakes += 1;
        }
        if let Some(close) = &member.connection.seen().close
            && !member.was_closed
        {
            member.was_closed = true;
            if self.counts.closes.len() < MAX_CODES {
                *self.counts.closes.entry(close.code()).or_default() += 1;
            }
        }
    }

    fn flush(&mut self, now: Time, key: u64) {
        let Some(member) = self.members.get_mut(&key) else {
            return;
        };
        if member.connection.is_closed() {
            return;
        }
        member.connection.transmit(now);
        let (port, to) = (member.port, member.peer);
        let mut datagrams = Vec::new();
        while let Some(bytes) = member.connection.poll_datagram() {
            datagrams.push(Datagram { port, to, bytes });
        }
        datagrams
            .into_iter()
            .for_each(|datagram| self.queue(datagram));
    }

    fn queue(&mut self, datagram: Datagram) {
        self.counts.sent += 1;
        self.counts.sent_bytes += datagram.bytes.len() as u64;
        self.out.push_back(datagram);
    }
}

impl std::fmt::Debug for Attacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attacker")
            .field("target", &self.target)
            .field("connections", &self.members.len())
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

/// The first bytes of a connection ID. Attacks that issue further IDs keep this prefix.
type Prefix = [u8; 4];

fn prefix(id: &ConnectionId) -> Prefix {
    id.first_chunk().copied().unwrap_or_default()
}

/// The server name of every hostile client.
const SERVER_NAME: &str = "localhost";

/// The largest number of distinct error codes that are counted.
const MAX_CODES: usize = 64;
