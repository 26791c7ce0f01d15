//! Session tickets of clients, by server and version of QUIC.
//!
//! Stores of rustls identify servers by name only, but different ports of one host are different
//! servers. A ticket of one must not be offered to the other: the client would send early data that
//! is rejected, or offer a key exchange that the other does not support. A ticket of one version
//! must not be used in another (RFC 9369 §5).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use courser_base::Mutex;
use courser_crypto::TicketOrigin;
use courser_wire::Version;
use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// Tickets in memory, at most eight for each server, and of the 256 servers that were added last
/// (limit K67). A server is a name, a port and a version of QUIC. Clones share the tickets.
#[derive(Clone, Default, Debug)]
pub struct ClientTickets(Arc<Mutex<Table>>);

#[derive(Default, Debug)]
struct Table {
    servers: HashMap<Server, KnownServer>,
    /// The servers in the order in which they were added.
    order: VecDeque<Server>,
}

/// A server by name and port, and a version of QUIC.
type Server = (Arc<str>, Version);

/// The tickets and settings of a server.
#[derive(Default, Debug)]
struct KnownServer {
    group: Option<NamedGroup>,
    /// The tickets of the server, oldest first.
    tickets: VecDeque<Tls13ClientSessionValue>,
}

impl Table {
    /// Changes the tickets and settings of a server. Returns those of the server that was removed
    /// at the limit, which the caller drops after releasing the lock.
    fn change(
        &mut self,
        server: Server,
        change: impl FnOnce(&mut KnownServer),
    ) -> Option<KnownServer> {
        let mut removed = None;
        if !self.servers.contains_key(&server) {
            if self.order.len() >= MAX_SERVERS
                && let Some(oldest) = self.order.pop_front()
            {
                removed = self.servers.remove(&oldest);
            }
            self.order.push_back(server.clone());
        }
        change(self.servers.entry(server).or_default());
        removed
    }
}

/// The ticket store of one session, which resumes in the version in which it starts, and stores
/// tickets for the version that is negotiated.
#[derive(Debug)]
pub(crate) struct SessionTickets {
    all: ClientTickets,
    server: Arc<str>,
    first: Version,
    /// The version to which received tickets belong.
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

    /// Sets the version to which received tickets belong.
    pub(crate) fn set_version(&self, version: u32) {
        self.current.store(version, Ordering::Relaxed);
    }

    fn first_server(&self) -> Server {
        (self.server.clone(), self.first)
    }

    fn current_server(&self) -> Server {
        let current = Version::from_value(self.current.load(Ordering::Relaxed));
        (self.server.clone(), current.unwrap_or(self.first))
    }
}

/// Ignores the name in all methods, because the store belongs to one server.
impl ClientSessionStore for SessionTickets {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        let set = |known: &mut KnownServer| known.group = Some(group);
        let removed = self.all.0.lock().change(self.first_server(), set);
        drop(removed);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.all.0.lock().servers.get(&self.first_server())?.group
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
        let removed = self.all.0.lock().change(self.current_server(), add);
        drop((replaced, removed));
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let mut all = self.all.0.lock();
        all.servers
            .get_mut(&self.first_server())?
            .tickets
            .pop_back()
    }
}

/// Maximum number of servers whose tickets are kept (limit K67).
const MAX_SERVERS: usize = 256;
/// Maximum number of tickets kept for each server (limit K67), as in the stores of rustls.
const MAX_TICKETS: usize = 8;

#[cfg(test)]
mod tests;
