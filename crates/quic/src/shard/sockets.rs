//! The sockets of an endpoint: the one in use, and earlier ones that connections still need.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use courser_base::{FourTuple, Time};
use courser_transport::{Endpoint, SocketId};
use courser_udp::Counters;

use crate::runtime::Socket;
use crate::via::Via;

/// Maximum of sockets of one endpoint (limit K161). A further one takes the place of the oldest that no
/// connection needs, or else of the oldest.
const MAX_SOCKETS: usize = 4;

/// Maximum of sockets for further paths of connections (limit K161): as many as a connection can have.
const MAX_BESIDE: usize = 8;

/// Maximum of sockets for the paths of connections that remain after the address was given away (limit K391). Each
/// costs a descriptor, and the system looks through those of an address.
pub(crate) const MAX_KEPT: usize = 1024;

/// Time between two checks whether the earlier sockets are needed. Each check asks all connections.
const UPKEEP: Duration = Duration::from_millis(500);

/// Returns the paths of all connections.
pub(crate) fn paths(endpoint: &Endpoint) -> impl Iterator<Item = FourTuple> + '_ {
    let connections = endpoint.handles().filter_map(|it| endpoint.connection(it));
    let open = connections.filter(|it| !it.is_drained());
    open.map(|it| it.path())
}

/// The sockets of an endpoint.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// Never empty. The last one is in use, the others are for connections that stay there, and for further paths.
    list: Vec<(SocketId, Arc<Socket>)>,
    /// The sockets for further paths, and from where each sends.
    beside: Vec<(Via, SocketId)>,
    /// The last ID that was given to a socket.
    last_id: SocketId,
    /// The counters of sockets that are closed.
    closed: Counters,
    /// Datagrams that the system dropped at sockets that are closed.
    closed_overflow: u64,
    /// True once all sockets were closed, by a system that reports dropped datagrams.
    is_closed: bool,
    /// Changes of the list so far.
    generation: u32,
    next_upkeep: Time,
    /// After the address was given away: sockets for the paths of the connections that remain here.
    kept: Vec<(FourTuple, Arc<Socket>)>,
    address: Address,
}

/// What this process receives at the address, apart from the paths that have a socket of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Address {
    /// Everything.
    Own,
    /// Nothing: another process receives from the same sockets.
    GivenAway,
    /// Nothing: another process may bind it.
    Left,
}

impl Sockets {
    pub(crate) fn new(socket: Arc<Socket>) -> Self {
        Self {
            list: vec![(SocketId::default(), socket)],
            beside: Vec::new(),
            last_id: SocketId::default(),
            closed: Counters::default(),
            closed_overflow: 0,
            is_closed: false,
            generation: 0,
            next_upkeep: Time::ZERO,
            kept: Vec::new(),
            address: Address::Own,
        }
    }

    /// Returns the socket in use.
    pub(crate) fn newest(&self) -> &Arc<Socket> {
        &self.list[self.list.len() - 1].1
    }

    /// Returns the ID of the socket in use.
    pub(crate) fn newest_id(&self) -> SocketId {
        self.list[self.list.len() - 1].0
    }

    /// Returns a socket, unless it was given up.
    #[inline]
    pub(crate) fn get(&self, id: SocketId) -> Option<&Arc<Socket>> {
        let mut from_newest = self.list.iter().rev();
        from_newest.find(|(at, _)| *at == id).map(|(_, it)| it)
    }

    /// Adds a socket, which is in use from now on. `is_needed` returns whether a connection needs an earlier
    /// one: those without a spare connection ID cannot follow to this socket.
    pub(crate) fn add(
        &mut self,
        socket: Arc<Socket>,
        mut is_needed: impl FnMut(SocketId) -> bool,
    ) -> SocketId {
        let id = self.next_id();
        if self.list.len() - self.beside.len() >= MAX_SOCKETS {
            let beside: Vec<SocketId> = self.beside.iter().map(|(_, id)| *id).collect();
            let earlier = self.list.iter().map(|(at, _)| *at);
            let mut earlier = earlier.filter(|at| !beside.contains(at));
            let oldest = earlier.clone().next();
            let unneeded = earlier.find(|at| !is_needed(*at)).or(oldest);
            self.retain(|at| Some(at) != unneeded);
        }
        self.list.push((id, socket));
        self.generation += 1;
        id
    }

    fn next_id(&mut self) -> SocketId {
        self.last_id = SocketId(self.last_id.0.wrapping_add(1));
        self.last_id
    }

    /// Returns the socket for further paths that sends from there to peers of this version of IP.
    pub(crate) fn beside(&self, via: &Via, is_ipv4: bool) -> Option<SocketId> {
        let is_of_version = |id: SocketId| {
            let bound = self.get(id).and_then(|socket| socket.local_addr().ok());
            bound.is_some_and(|bound| bound.is_ipv4() == is_ipv4)
        };
        let mut beside = self.beside.iter();
        let found = beside.find(|(it, id)| it == via && is_of_version(*id));
        found.map(|(_, id)| *id)
    }

    /// Adds a socket for further paths, beside the one in use. Returns `None` if there are too many.
    pub(crate) fn add_beside(&mut self, via: Via, socket: Arc<Socket>) -> Option<SocketId> {
        if self.beside.len() >= MAX_BESIDE {
            return None;
        }
        let id = self.next_id();
        self.beside.push((via, id));
        self.list.insert(self.list.len() - 1, (id, socket));
        self.generation += 1;
        Some(id)
    }

    /// Replaces the socket in use by one on the same address. Everything that was sent from the one before
    /// is sent from this one. Returns the one before, which the caller drops without a lock.
    pub(crate) fn replace_newest(&mut self, socket: Socket) -> Arc<Socket> {
        let newest = self.list.len() - 1;
        let before = std::mem::replace(&mut self.list[newest].1, Arc::new(socket));
        self.closed += before.counters();
        self.closed_overflow += before.receive_overflow().unwrap_or(0);
        self.generation += 1;
        before
    }

    /// Returns those of these paths that have no socket of their own, up to the limit.
    pub(crate) fn without_own(&self, paths: impl Iterator<Item = FourTuple>) -> Vec<FourTuple> {
        let mut known: HashSet<FourTuple> = self.kept.iter().map(|(path, _)| *path).collect();
        let most = MAX_KEPT.saturating_sub(self.kept.len());
        paths
            .filter(|path| known.insert(*path))
            .take(most)
            .collect()
    }

    /// Returns true if each of these paths has a socket of its own.
    pub(crate) fn have_own(&self, mut paths: impl Iterator<Item = FourTuple>) -> bool {
        let known: HashSet<FourTuple> = self.kept.iter().map(|(path, _)| *path).collect();
        paths.all(|path| known.contains(&path))
    }

    /// Receives the datagrams of a path from a socket of its own, so that they arrive here when another
    /// process receives at the address.
    pub(crate) fn keep(&mut self, path: FourTuple, socket: Socket) {
        self.kept.push((path, Arc::new(socket)));
        self.generation += 1;
    }

    /// Sets whether another process receives at the address. Datagrams are still sent from there. An address that was
    /// left stays so.
    pub(crate) fn set_given_away(&mut self, is_given_away: bool) {
        if self.address != Address::Left {
            self.address = match is_given_away {
                true => Address::GivenAway,
                false => Address::Own,
            };
        }
        self.generation += 1;
    }

    /// Receives nothing at the address any more, so that another process may bind it.
    pub(crate) fn set_left(&mut self) {
        self.address = Address::Left;
        self.generation += 1;
    }

    /// Returns true if nothing is received at the address, except from the paths that have a socket of their own.
    pub(crate) fn is_given_away(&self) -> bool {
        self.address != Address::Own
    }

    /// Closes all sockets when nothing is sent or received any more, so that the system gives datagrams
    /// to other shards. Returns them, for the caller to drop without a lock.
    pub(crate) fn close(&mut self) -> Vec<Arc<Socket>> {
        self.is_closed |= self.newest().receive_overflow().is_some();
        let placeholder = self.newest().placeholder();
        let newest = self.replace_newest(placeholder);
        let mut closed = vec![newest];
        closed.extend(self.kept.drain(..).map(|(_, socket)| socket));
        while self.list.len() > 1 {
            let (_, earlier) = self.list.remove(0);
            self.closed += earlier.counters();
            self.closed_overflow += earlier.receive_overflow().unwrap_or(0);
            closed.push(earlier);
        }
        self.beside.clear();
        closed
    }

    /// Gives up an earlier socket that has failed.
    pub(crate) fn give_up(&mut self, id: SocketId) {
        if id != self.newest_id() {
            self.retain(|at| at != id);
        }
    }

    /// Closes earlier sockets, and those of single paths, that no connection needs.
    pub(crate) fn close_unused(&mut self, now: Time, endpoint: &mut Endpoint) {
        if (self.list.len() == 1 && self.kept.is_empty()) || now < self.next_upkeep {
            return;
        }
        self.next_upkeep = now + UPKEEP;
        self.retain(|id| endpoint.uses_socket(id));
        if !self.kept.is_empty() {
            let paths: HashSet<_> = paths(endpoint).collect();
            let before = self.kept.len();
            self.kept.retain(|(path, _)| paths.contains(path));
            self.generation += u32::from(self.kept.len() != before);
        }
    }

    fn retain(&mut self, mut is_kept: impl FnMut(SocketId) -> bool) {
        let before = self.list.len();
        let (closed, overflow) = (&mut self.closed, &mut self.closed_overflow);
        self.list.retain(|(id, socket)| {
            let is_kept = is_kept(*id);
            if !is_kept {
                *closed += socket.counters();
                *overflow += socket.receive_overflow().unwrap_or(0);
            }
            is_kept
        });
        let list = &self.list;
        self.beside
            .retain(|(_, id)| list.iter().any(|(at, _)| at == id));
        self.generation += u32::from(self.list.len() != before);
    }

    /// Returns the counters of all sockets so far.
    pub(crate) fn counters(&self) -> Counters {
        let mut sum = self.closed;
        self.list.iter().for_each(|(_, it)| sum += it.counters());
        sum
    }

    /// Returns how many received datagrams the system has dropped at all sockets so far; `None` if the
    /// socket in use does not report it.
    pub(crate) fn receive_overflow(&self) -> Option<u64> {
        let earlier = self.list.iter().rev().skip(1);
        let earlier = earlier.filter_map(|(_, socket)| socket.receive_overflow());
        let newest = match self.newest().receive_overflow() {
            Some(newest) => newest,
            // All sockets are closed, and what they counted is known.
            None if self.is_closed => 0,
            None => return None,
        };
        Some(newest + earlier.sum::<u64>() + self.closed_overflow)
    }

    /// Returns the maximum of datagrams in one send call on any of the sockets.
    pub(crate) fn gso_segments(&self) -> usize {
        let each = self.list.iter().map(|(_, socket)| socket.gso_segments());
        each.min().unwrap_or(1)
    }

    /// Returns the list if it has changed since `generation`, and updates that.
    pub(crate) fn changed_since(
        &self,
        generation: &mut u32,
    ) -> Option<Vec<(SocketId, Arc<Socket>)>> {
        let old = std::mem::replace(generation, self.generation);
        // Connections do not notice through which descriptor of the address their datagrams arrive.
        let id = self.newest_id();
        let kept = self.kept.iter().map(|(_, socket)| (id, socket.clone()));
        (old != self.generation).then(|| kept.chain(self.list.iter().cloned()).collect())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
