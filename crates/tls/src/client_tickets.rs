//! Session tickets of clients, by server and version of QUIC.
//!
//! Stores of rustls know servers by name only, but different ports of one host are different servers. A
//! ticket of one is useless to the other: it makes the client send early data that is rejected, or the
//! offer of a key exchange that the other does not support. A ticket of one version must not be used in
//! another (RFC 9369 §5).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use courser_base::Mutex;
use courser_crypto::TicketOrigin;
use courser_wire::Version;
use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// Tickets of servers, kept in memory: at most eight of each server, which is a name, a port and a version
/// of QUIC, and those of the 256 servers that were added last (limit K67). Clones share them.
#[derive(Clone, Default, Debug)]
pub struct ClientTickets(Arc<Mutex<Table>>);

#[derive(Default, Debug)]
struct Table {
    servers: HashMap<Server, KnownServer>,
    /// The servers, the oldest first.
    order: VecDeque<Server>,
}

/// A server by name and port, and a version of QUIC.
type Server = (Arc<str>, Version);

/// The tickets and settings of a server.
#[derive(Default, Debug)]
struct KnownServer {
    group: Option<NamedGroup>,
    /// The oldest first.
    tickets: VecDeque<Tls13ClientSessionValue>,
}

impl Table {
    /// Changes the tickets and settings of a server. Returns those of the server that this one has replaced, for the
    /// caller to drop without the lock.
    fn change(
        &mut self,
        server: Server,
        change: impl FnOnce(&mut KnownServer),
    ) -> Option<KnownServer> {
        let mut forgotten = None;
        if !self.servers.contains_key(&server) {
            if self.order.len() >= MAX_SERVERS
                && let Some(oldest) = self.order.pop_front()
            {
                forgotten = self.servers.remove(&oldest);
            }
            self.order.push_back(server.clone());
        }
        change(self.servers.entry(server).or_default());
        forgotten
    }
}

/// The tickets for one session: it resumes a session of the version in which it starts, and stores
/// tickets of the version that it comes to.
#[derive(Debug)]
pub(crate) struct SessionTickets {
    all: ClientTickets,
    server: Arc<str>,
    first: Version,
    /// The version of tickets that arrive.
    current: AtomicU32,
}

impl SessionTickets {
    pub(crate) fn new(all: &ClientTickets, origin: TicketOrigin<'_>) -> Self {
        let first = origin.version.and_then(Version::from_value);
        let first = first.unwrap_or(Version::V1);
        Self {
            all: all.clone(),
            server: origin.server.into(),
            first,
            current: AtomicU32::new(first.value()),
        }
    }

    /// Sets the version of tickets that arrive.
    pub(crate) fn set_version(&self, version: u32) {
        self.current.store(version, Ordering::Relaxed);
    }

    fn at_start(&self) -> Server {
        (self.server.clone(), self.first)
    }

    fn at_present(&self) -> Server {
        let current = Version::from_value(self.current.load(Ordering::Relaxed));
        (self.server.clone(), current.unwrap_or(self.first))
    }
}

/// The name is part of the server that the store was made for.
impl ClientSessionStore for SessionTickets {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        let set = |known: &mut KnownServer| known.group = Some(group);
        let forgotten = self.all.0.lock().change(self.at_start(), set);
        drop(forgotten);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.all.0.lock().servers.get(&self.at_start())?.group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut replaced = None;
        let add = |known: &mut KnownServer| {
            if known.tickets.len() >= MAX_TICKETS {
                replaced = known.tickets.pop_front();
            }
            known.tickets.push_back(value);
        };
        let forgotten = self.all.0.lock().change(self.at_present(), add);
        drop((replaced, forgotten));
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let mut all = self.all.0.lock();
        all.servers.get_mut(&self.at_start())?.tickets.pop_back()
    }
}

/// Servers whose tickets are kept (limit K67).
const MAX_SERVERS: usize = 256;
/// Tickets kept of each server (limit K67), as many as in the stores of rustls.
const MAX_TICKETS: usize = 8;

#[cfg(test)]
mod tests;
