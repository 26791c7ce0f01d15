//! The clients that wait to be accepted, refused, retried or ignored.

use std::collections::HashMap;
use std::time::Duration;

use courser_base::{Ecn, Time};

use super::claim::Claim;
use super::client::Client;
use crate::build::transmit::SocketId;
use crate::endpoint::arrived::Arrived;
use crate::endpoint::shrink::shrink;
use crate::hasher::KeyedState;

/// The state of an [`Incoming`](super::incoming::Incoming).
#[derive(Debug)]
pub struct Waiting {
    pub client: Client,
    /// Its datagrams so far.
    pub datagrams: Vec<StoredDatagram>,
    /// What it holds of the limits of handshakes.
    pub claim: Claim,
}

/// A datagram of a waiting client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredDatagram {
    pub ecn: Ecn,
    pub bytes: Vec<u8>,
}

impl StoredDatagram {
    /// Copies the bytes of a datagram, whose receive buffer is reused.
    pub fn new(arrived: Arrived, datagram: &[u8]) -> Self {
        Self {
            ecn: arrived.ecn,
            bytes: datagram.to_vec(),
        }
    }
}

impl Waiting {
    /// Keeps another datagram of the client. Returns false if a limit forbids it: that of the program in bytes, if it
    /// has set one.
    pub fn keep(&mut self, arrived: Arrived, datagram: &[u8], most: Option<usize>) -> bool {
        let fits = match most {
            None => self.datagrams.len() < MAX_DATAGRAMS,
            Some(most) => {
                self.claim.waiting_bytes() + datagram.len() <= most
                    && self.datagrams.len() < MAX_DATAGRAMS.max(most / SMALL_DATAGRAM)
            }
        };
        let is_kept =
            self.client.place.tuple == arrived.path && fits && self.claim.extend(datagram.len());
        if is_kept {
            self.datagrams.push(StoredDatagram::new(arrived, datagram));
        }
        is_kept
    }
}

/// The clients that wait, by number.
#[derive(Debug)]
pub struct WaitingClients {
    clients: HashMap<u64, Waiting, KeyedState>,
    next_id: u64,
    /// A lower bound on the IDs of waiting clients.
    oldest: u64,
}

impl WaitingClients {
    pub fn new(key: [u8; 16]) -> Self {
        Self {
            clients: HashMap::with_hasher(KeyedState::new(key)),
            next_id: 0,
            oldest: 0,
        }
    }

    /// Returns the number of the next client.
    pub fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Adds a client under [`WaitingClients::next_id`].
    pub fn add(&mut self, waiting: Waiting) {
        self.clients.insert(self.next_id, waiting);
        self.next_id += 1;
    }

    /// Returns a waiting client.
    pub fn get(&self, id: u64) -> Option<&Waiting> {
        self.clients.get(&id)
    }

    /// Returns a waiting client.
    pub fn get_mut(&mut self, id: u64) -> Option<&mut Waiting> {
        self.clients.get_mut(&id)
    }

    /// Removes and returns a waiting client.
    pub fn take(&mut self, id: u64) -> Option<Waiting> {
        let waiting = self.clients.remove(&id);
        shrink(&mut self.clients);
        waiting
    }

    /// Returns true if a client arrived at this socket. Examines all of them.
    pub fn uses_socket(&self, socket: SocketId) -> bool {
        self.clients
            .values()
            .any(|it| it.client.place.socket == socket)
    }

    /// Returns how long the oldest client has waited.
    pub fn delay(&mut self, now: Time) -> Duration {
        // Each ID is passed once.
        while self.oldest < self.next_id {
            if let Some(oldest) = self.clients.get(&self.oldest) {
                return now - oldest.client.since;
            }
            self.oldest += 1;
        }
        Duration::ZERO
    }

    /// Returns true if no client waits.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }
}

/// Maximum of datagrams of one waiting client: a ClientHello of several datagrams, twice.
const MAX_DATAGRAMS: usize = 8;

/// The smallest mean size in bytes of more datagrams than that (limit K571), so that their entries do not cost more
/// memory than their bytes.
const SMALL_DATAGRAM: usize = 256;
