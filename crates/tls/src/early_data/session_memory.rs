//! Sessions in the memory of one process.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

use courser_base::{Mutex, Source};
use rustls::server::StoresServerSessions;

use crate::secrets::current_client;

/// Stores the sessions of a server.
///
/// When it is full, the oldest session of the site (/16 of IPv4, /48 of IPv6) with the most sessions is removed. A site
/// that performs very many handshakes therefore removes its own sessions, and not those of others.
pub(super) struct SessionMemory {
    max_sessions: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    sessions: HashMap<Vec<u8>, StoredSession>,
    sites: HashMap<Option<Source>, Site>,
    /// The sites by their number of sessions. Of equal ones, the last is the one that was added first.
    by_size: BTreeMap<(usize, Reverse<u64>), Option<Source>>,
    /// The number of the next session and of the next site.
    next: u64,
}

struct StoredSession {
    value: Vec<u8>,
    number: u64,
    /// `None` for sessions of clients without an address.
    site: Option<Source>,
}

struct Site {
    number: u64,
    /// The keys of its sessions, oldest first.
    keys: BTreeMap<u64, Vec<u8>>,
}

impl SessionMemory {
    pub(super) fn new(max_sessions: usize) -> Self {
        Self {
            max_sessions,
            table: Mutex::default(),
        }
    }
}

impl StoresServerSessions for SessionMemory {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        let site = current_client().map(Source::site);
        let mut table = self.table.lock();
        table.remove(&key);
        table.insert(key, value, site);
        if table.sessions.len() > self.max_sessions {
            table.remove_oldest();
        }
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let table = self.table.lock();
        table.sessions.get(key).map(|it| it.value.clone())
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.table.lock().remove(key)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

impl Table {
    fn insert(&mut self, key: Vec<u8>, value: Vec<u8>, site: Option<Source>) {
        let number = self.next;
        self.next += 1;
        let of_site = self.sites.entry(site).or_insert_with(|| Site {
            number,
            keys: BTreeMap::new(),
        });
        self.by_size.remove(&of_site.rank());
        of_site.keys.insert(number, key.clone());
        self.by_size.insert(of_site.rank(), site);
        let session = StoredSession {
            value,
            number,
            site,
        };
        self.sessions.insert(key, session);
    }

    fn remove(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let StoredSession {
            value,
            number,
            site,
        } = self.sessions.remove(key)?;
        if let Some(of_site) = self.sites.get_mut(&site) {
            self.by_size.remove(&of_site.rank());
            of_site.keys.remove(&number);
            match of_site.keys.is_empty() {
                true => drop(self.sites.remove(&site)),
                false => drop(self.by_size.insert(of_site.rank(), site)),
            }
        }
        Some(value)
    }

    /// Removes the oldest session of the site with the most.
    fn remove_oldest(&mut self) {
        let largest = self.by_size.last_key_value();
        let largest = largest.and_then(|(_, site)| self.sites.get(site));
        let oldest = largest.and_then(|site| site.keys.values().next());
        if let Some(key) = oldest.cloned() {
            self.remove(&key);
        }
    }
}

impl Site {
    fn rank(&self) -> (usize, Reverse<u64>) {
        (self.keys.len(), Reverse(self.number))
    }
}

impl fmt::Debug for SessionMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionMemory")
            .field("max_sessions", &self.max_sessions)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::secrets::Secrets;

    fn put(memory: &SessionMemory, client: &str, number: usize) {
        let client: IpAddr = client.parse().expect("an address");
        let mut secrets = Secrets::default();
        secrets.set_client(client);
        let key = number.to_be_bytes().to_vec();
        secrets.capture(|| assert!(memory.put(key, vec![1])));
    }

    fn has(memory: &SessionMemory, number: usize) -> bool {
        memory.get(&number.to_be_bytes()).is_some()
    }

    /// Attack A271.
    #[test]
    fn site_that_fills_the_memory_removes_its_own_sessions() {
        let memory = SessionMemory::new(100);
        for number in 0..20 {
            put(&memory, &format!("198.{number}.100.1"), number);
        }
        for number in 20..500 {
            put(&memory, &format!("192.0.{}.1", number % 256), number);
        }
        assert!((0..20).all(|it| has(&memory, it)));
        let kept: Vec<_> = (20..500).filter(|it| has(&memory, *it)).collect();
        assert_eq!(kept, (420..500).collect::<Vec<_>>());
    }

    #[test]
    fn oldest_site_of_equal_ones_loses_its_session_first() {
        let memory = SessionMemory::new(3);
        for number in 0..4 {
            put(&memory, &format!("198.{number}.100.1"), number);
        }
        assert!(!has(&memory, 0) && (1..4).all(|it| has(&memory, it)));
    }

    #[test]
    fn taken_sessions_leave_no_entries() {
        let memory = SessionMemory::new(3);
        put(&memory, "192.0.2.1", 1);
        put(&memory, "192.0.2.1", 1);
        put(&memory, "192.0.2.1", 2);
        for number in [1_usize, 2] {
            assert_eq!(memory.take(&number.to_be_bytes()), Some(vec![1]));
            assert_eq!(memory.take(&number.to_be_bytes()), None);
        }
        let table = memory.table.lock();
        assert!(table.sessions.is_empty() && table.sites.is_empty() && table.by_size.is_empty());
    }
}
