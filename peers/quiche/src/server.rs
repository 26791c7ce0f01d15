//! A server: one socket and one thread for all connections.

use std::collections::HashMap;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Instant;

use nix::poll::{PollFd, PollFlags};
use peers_common::Failure;
use quiche::{ConnectionId, RecvInfo, RetryConnectionIds};
use slab::Slab;

use crate::body::{Buffers, Quic};
use crate::event_loop;
use crate::ids::{self, ID_LEN, Id};
use crate::socket::{Left, Socket};

/// What a server does on its connections.
pub trait Application {
    /// The state of a connection that carries requests.
    type Session;

    /// Called with a new connection before its first datagram.
    ///
    /// # Errors
    /// When the connection is refused; the client gets no answer.
    fn on_accept(&mut self, _: &mut Quic) -> Result<(), Failure> {
        Ok(())
    }

    /// Called when requests can come: after the handshake, or before with 0-RTT packets. Returns `None` if
    /// the connection was closed instead.
    fn begin(&mut self, quic: &mut Quic) -> Option<Self::Session>;

    /// Called after datagrams and timers. Reads what has come, and hands over what there is room for.
    fn work(&mut self, session: &mut Self::Session, quic: &mut Quic);
}

/// The rules for connections.
#[derive(Clone, Copy, Debug, Default)]
pub struct Admission {
    /// True if clients have to prove their address with a Retry.
    pub retries: bool,
    /// True if clients get IDs for new paths, as many as they take.
    pub offers_ids: bool,
}

/// A server and its connections.
pub struct Server<A: Application> {
    socket: Socket,
    table: Table<A>,
    application: A,
}

/// Connections by the IDs that this server issued: the index in the table, and four random bytes. A
/// datagram finds its connection without a hash.
struct Table<A: Application> {
    config: quiche::Config,
    admission: Admission,
    /// The beginning of each token of a Retry, which stays secret.
    secret: [u8; 16],
    connections: Slab<Connection<A>>,
    /// Connections by the IDs that clients chose or got in a Retry, for packets sent before the client
    /// received ours.
    by_first_id: HashMap<Vec<u8>, usize>,
    /// Connections with work to do.
    marked: Vec<usize>,
    /// Answers to datagrams without a connection.
    answers: Vec<(Vec<u8>, SocketAddr)>,
}

struct Connection<A: Application> {
    quic: Quic,
    session: Option<A::Session>,
    id: Id,
    /// Further IDs of the connection, for new paths.
    more_ids: Vec<Id>,
    first_id: Vec<u8>,
    deadline: Option<Instant>,
    is_marked: bool,
}

impl<A: Application> Server<A> {
    /// Starts a server at `address`.
    ///
    /// # Errors
    /// When the address is taken or not of this machine.
    pub fn bind(
        config: quiche::Config,
        address: SocketAddr,
        admission: Admission,
        application: A,
    ) -> Result<Self, Failure> {
        Ok(Self {
            socket: Socket::bind(address)?,
            table: Table {
                config,
                admission,
                secret: ids::random()?,
                connections: Slab::new(),
                by_first_id: HashMap::new(),
                marked: Vec::new(),
                answers: Vec::new(),
            },
            application,
        })
    }

    /// Returns the address of the server.
    pub const fn local_address(&self) -> SocketAddr {
        self.socket.local_address()
    }

    /// Serves until standard input ends, and returns the application.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn run(mut self) -> Result<A, Failure> {
        self.serve(true)?;
        Ok(self.application)
    }

    /// Serves until the process is ended.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn run_forever(mut self) -> Result<(), Failure> {
        self.serve(false)
    }

    fn serve(&mut self, ends_with_input: bool) -> Result<(), Failure> {
        let mut input = io::stdin();
        let mut deadline = None;
        loop {
            let mut waited = [
                self.socket.to_poll(),
                PollFd::new(input.as_fd(), PollFlags::POLLIN),
            ];
            let count = if ends_with_input { 2 } else { 1 };
            event_loop::wait(&mut waited[..count], deadline)?;
            let [can_receive, has_input] = waited.map(|one| one.any().unwrap_or(false));
            if has_input && input.read(&mut [0; 512])? == 0 {
                return Ok(());
            }
            let mut is_busy = can_receive && self.receive()?;
            self.table.expire(Instant::now());
            is_busy |= self.take_turns()?;
            deadline = if is_busy {
                Some(Instant::now())
            } else {
                self.table.deadline()
            };
        }
    }

    /// Passes datagrams to their connections. Returns true if there may be more.
    fn receive(&mut self) -> io::Result<bool> {
        let Self {
            socket,
            table,
            application,
        } = self;
        let is_more = socket.receive(|datagram, info| match table.find(datagram) {
            Some(index) => {
                // quiche ignores datagrams that it cannot decrypt, and closes connections that break a
                // rule.
                let _ = table.connections[index].quic.recv(datagram, info);
                table.mark(index);
            }
            None => {
                // What quiche cannot read, and what it cannot begin a connection with, gets no answer.
                let _ = table.accept(datagram, info, application);
            }
        })?;
        for (packet, to) in table.answers.drain(..) {
            socket.send_alone(&packet, to);
        }
        Ok(is_more)
    }

    /// Lets connections with work respond and send. Returns true if work is left.
    fn take_turns(&mut self) -> Result<bool, Failure> {
        let mut is_busy = false;
        for index in std::mem::take(&mut self.table.marked) {
            if self.table.admission.offers_ids {
                self.table.offer_ids(index)?;
            }
            let connection = &mut self.table.connections[index];
            connection.is_marked = false;
            connection.work(&mut self.application);
            let left = self.socket.send(&mut connection.quic)?;
            connection.deadline = connection.quic.timeout_instant();
            is_busy |= left == Left::More;
            if connection.quic.is_closed() {
                let closed = self.table.connections.remove(index);
                self.table.by_first_id.remove(&closed.first_id);
            } else if left != Left::Nothing {
                self.table.mark(index);
            }
        }
        Ok(is_busy)
    }
}

impl<A: Application> Table<A> {
    /// Returns the connection of a datagram.
    fn find(&self, datagram: &[u8]) -> Option<usize> {
        let first = *datagram.first()?;
        if first & LONG_HEADER == 0 {
            return self.of_id(datagram.get(1..=ID_LEN)?);
        }
        // RFC 8999 §5.1: the version, and the length of the ID before it.
        let length = usize::from(*datagram.get(5)?);
        let id = datagram.get(6..6 + length)?;
        self.of_id(id).or_else(|| self.by_first_id.get(id).copied())
    }

    fn of_id(&self, id: &[u8]) -> Option<usize> {
        let place = id.first_chunk().map(|place| u32::from_be_bytes(*place))?;
        let index = usize::try_from(place).ok()?;
        let connection = self.connections.get(index)?;
        let is_its = connection.id == id || connection.more_ids.iter().any(|more| more == id);
        is_its.then_some(index)
    }

    /// Begins a connection if the datagram requests one, and answers other versions than version 1 with
    /// Version Negotiation.
    fn accept(
        &mut self,
        datagram: &mut [u8],
        info: RecvInfo,
        application: &mut A,
    ) -> Result<(), Failure> {
        let header = quiche::Header::from_slice(datagram, ID_LEN)?;
        if header.ty == quiche::Type::Short || datagram.len() < quiche::MIN_CLIENT_INITIAL_LEN {
            return Ok(());
        }
        if !quiche::version_is_supported(header.version) {
            return self.answer(info.from, |packet| {
                quiche::negotiate_version(&header.scid, &header.dcid, packet)
            });
        }
        if header.ty != quiche::Type::Initial || self.connections.len() == MAX_CONNECTIONS {
            return Ok(());
        }
        let token = header.token.as_deref().unwrap_or_default();
        let original = token
            .strip_prefix(self.secret.as_slice())
            .map(ConnectionId::from_ref);
        if self.admission.retries && original.is_none() {
            let token = [self.secret.as_slice(), &header.dcid].concat();
            let id: Id = ids::random()?;
            let id = ConnectionId::from_ref(&id);
            let (to, from, version) = (&header.scid, &header.dcid, header.version);
            return self.answer(info.from, |packet| {
                quiche::retry(to, from, &id, &token, version, packet)
            });
        }
        let entry = self.connections.vacant_entry();
        let index = entry.key();
        let id = id_of(index)?;
        let (scid, config) = (ConnectionId::from_ref(&id), &mut self.config);
        let mut quic = match &original {
            None => {
                quiche::accept_with_buf_factory::<Buffers>(&scid, None, info.to, info.from, config)
            }
            Some(original) => {
                let before = RetryConnectionIds {
                    original_destination_cid: original,
                    retry_source_cid: &header.dcid,
                };
                quiche::accept_with_retry(&scid, before, info.to, info.from, config)
            }
        }?;
        application.on_accept(&mut quic)?;
        quic.recv(datagram, info)?;
        let first_id = header.dcid.to_vec();
        entry.insert(Connection {
            quic,
            session: None,
            id,
            more_ids: Vec::new(),
            first_id: first_id.clone(),
            deadline: None,
            is_marked: false,
        });
        self.by_first_id.insert(first_id, index);
        self.mark(index);
        Ok(())
    }

    /// Keeps a packet for the sender of a datagram.
    fn answer(
        &mut self,
        to: SocketAddr,
        write: impl FnOnce(&mut [u8]) -> quiche::Result<usize>,
    ) -> Result<(), Failure> {
        let mut packet = vec![0; MAX_ANSWER];
        let length = write(&mut packet)?;
        packet.truncate(length);
        self.answers.push((packet, to));
        Ok(())
    }

    /// Gives the client of a connection as many IDs as it takes, and forgets those that it retired.
    fn offer_ids(&mut self, index: usize) -> Result<(), Failure> {
        let Connection { quic, more_ids, .. } = &mut self.connections[index];
        ids::offer(quic, || id_of(index), |id| more_ids.push(id))?;
        while let Some(retired) = quic.retired_scid_next() {
            more_ids.retain(|id| retired.as_ref() != id);
        }
        while quic.path_event_next().is_some() {}
        Ok(())
    }

    fn mark(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if !connection.is_marked {
            connection.is_marked = true;
            self.marked.push(index);
        }
    }

    /// Returns the time of the first timer. A measurement has few connections, so all are examined.
    fn deadline(&self) -> Option<Instant> {
        let deadlines = self.connections.iter();
        deadlines.filter_map(|(_, one)| one.deadline).min()
    }

    /// Handles timers that have expired.
    fn expire(&mut self, now: Instant) {
        for (index, connection) in &mut self.connections {
            if connection.deadline.is_some_and(|deadline| deadline <= now) {
                connection.quic.on_timeout();
                if !connection.is_marked {
                    connection.is_marked = true;
                    self.marked.push(index);
                }
            }
        }
    }
}

impl<A: Application> Connection<A> {
    /// Lets the application respond to all that can be read.
    fn work(&mut self, application: &mut A) {
        let Self { quic, session, .. } = self;
        if session.is_none() && (quic.is_established() || quic.is_in_early_data()) {
            *session = application.begin(quic);
        }
        if let Some(session) = session {
            application.work(session, quic);
        }
    }
}

/// Makes an ID for the connection at `index`.
fn id_of(index: usize) -> Result<Id, Failure> {
    let mut id = Id::default();
    let (place, secret) = id.split_at_mut(4);
    place.copy_from_slice(&u32::try_from(index)?.to_be_bytes());
    secret.copy_from_slice(&ids::random::<4>()?);
    Ok(id)
}

/// RFC 8999 §5.1.
const LONG_HEADER: u8 = 0x80;

/// The largest number of connections. Others are not answered: the limit bounds memory and is far above
/// what is measured.
const MAX_CONNECTIONS: usize = 10_000;

/// Longer than any Retry and any Version Negotiation: the token of a Retry has one ID of a client.
const MAX_ANSWER: usize = 300;
