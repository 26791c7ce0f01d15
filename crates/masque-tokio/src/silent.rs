//! The bytes to targets that have never answered, across the tunnels of a client.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use courser_base::{Mutex, Time};
use courser_masque::{Allowance, Limits};
use courser_quic::runtime;

use crate::clients::Client;

/// What clients may still send to targets that have never answered. A client that opens another tunnel to a host goes on
/// with what it has left, whatever the port is.
#[derive(Debug)]
pub(crate) struct SilentTargets {
    begin: Instant,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    allowances: HashMap<Key, Shared>,
    /// The time of the last search for entries without a use.
    cleaned: Time,
}

/// A client, if it has a name, and the address of a target.
type Key = (Option<Client>, IpAddr);

type Shared = Arc<Mutex<Allowance>>;

/// The allowance of a tunnel, which it shares with others of its client to the same host until the target answers.
#[derive(Debug)]
pub(crate) struct Unanswered {
    begin: Instant,
    /// `None` once the target has answered.
    allowance: Option<Shared>,
}

impl Default for SilentTargets {
    fn default() -> Self {
        Self {
            begin: runtime::now(),
            table: Mutex::default(),
        }
    }
}

impl SilentTargets {
    /// Returns the allowance of a tunnel of a client to a host.
    pub(crate) fn of(&self, client: Option<&Client>, host: IpAddr, limits: &Limits) -> Unanswered {
        let now = Time::ZERO + (runtime::now() - self.begin);
        let mut table = self.table.lock();
        let key = (client.cloned(), host);
        // An answer counts as long as somebody has a tunnel.
        if let Some(known) = table.allowances.get(&key)
            && (Arc::strong_count(known) > 1 || !known.lock().has_answer())
        {
            return self.shared(known.clone());
        }
        let is_full =
            |table: &Table| table.allowances.len() >= MOST && !table.allowances.contains_key(&key);
        if is_full(&table) {
            table.clean(now);
        }
        if is_full(&table) {
            // Somebody uses all of the table up. What is left is enough for the first packets of a handshake.
            let few = Limits {
                unanswered_bytes: limits.unanswered_bytes.min(WITHOUT_ROOM),
                ..*limits
            };
            return self.shared(Arc::new(Mutex::new(Allowance::new(&few, now))));
        }
        let new = Arc::new(Mutex::new(Allowance::new(limits, now)));
        table.allowances.insert(key, new.clone());
        self.shared(new)
    }

    fn shared(&self, allowance: Shared) -> Unanswered {
        Unanswered {
            begin: self.begin,
            allowance: Some(allowance),
        }
    }
}

impl Table {
    /// Removes the entries that differ from new ones in nothing.
    fn clean(&mut self, now: Time) {
        if now < self.cleaned + PAUSE && self.cleaned > Time::ZERO {
            return; // A search is as long as the table.
        }
        self.cleaned = now;
        self.allowances
            .retain(|_, shared| Arc::strong_count(shared) > 1 || !shared.lock().is_whole(now));
    }
}

impl Unanswered {
    /// Returns true once the target has answered.
    pub(crate) const fn has_answer(&self) -> bool {
        self.allowance.is_none()
    }

    /// The target has answered: the bytes of all tunnels that the client has to it are not bounded any more.
    pub(crate) fn on_answer(&mut self) {
        if let Some(shared) = self.allowance.take() {
            shared.lock().on_answer();
        }
    }

    /// Returns what may be sent, or `None` once the target has answered.
    pub(crate) fn lock(&self) -> Option<Remaining<'_>> {
        let allowance = self.allowance.as_ref()?.lock();
        let now = Time::ZERO + (runtime::now() - self.begin);
        Some(Remaining { allowance, now })
    }
}

/// The bytes that may be sent at a time.
pub(crate) struct Remaining<'a> {
    allowance: MutexGuard<'a, Allowance>,
    now: Time,
}

impl Remaining<'_> {
    /// Takes the bytes of a payload. Returns false if it has to be dropped.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        self.allowance.take(self.now, bytes)
    }
}

/// Hosts and clients whose bytes are remembered (limit K565).
const MOST: usize = 8192;

/// Bytes to a target that has never answered while there is no room in the table (limit K565).
const WITHOUT_ROOM: u64 = 8 * 1024;

/// Time between two searches of a full table.
const PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn host(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    /// Returns the bytes that a new tunnel can send at once, in payloads of 972 bytes.
    fn sent(silent: &SilentTargets, client: Option<&Client>, to: IpAddr) -> usize {
        let unanswered = silent.of(client, to, &Limits::default());
        taken(&unanswered, 200) * 1000
    }

    fn taken(unanswered: &Unanswered, payloads: usize) -> usize {
        match unanswered.lock() {
            Some(mut remaining) => (0..payloads).filter(|_| remaining.take(972)).count(),
            None => payloads,
        }
    }

    /// Limit K565, attack A352.
    #[test]
    fn tunnel_that_is_opened_again_goes_on_with_what_is_left() {
        let silent = SilentTargets::default();
        let (alice, bob) = (Client::new("alice"), Client::new("bob"));
        assert_eq!(sent(&silent, Some(&alice), host(1)), 65_000);
        // Some bytes come back with time.
        assert!(sent(&silent, Some(&alice), host(1)) <= 5000);
        assert_eq!(sent(&silent, Some(&alice), host(2)), 65_000);
        assert_eq!(sent(&silent, Some(&bob), host(1)), 65_000);
        assert_eq!(sent(&silent, None, host(1)), 65_000);
        assert!(sent(&silent, None, host(1)) <= 5000);
    }

    #[test]
    fn answer_frees_all_tunnels_of_the_client_to_the_host() {
        let silent = SilentTargets::default();
        let limits = Limits::default();
        let first = silent.of(None, host(1), &limits);
        let mut second = silent.of(None, host(1), &limits);
        assert_eq!(taken(&first, 65), 65);
        second.on_answer();
        assert!(second.has_answer() && !first.has_answer());
        assert_eq!(taken(&first, 1000), 1000);
        drop((first, second));
        // The next tunnel has to be answered too.
        assert_eq!(sent(&silent, None, host(1)), 65_000);
    }

    /// Limit K565.
    #[test]
    fn table_is_bounded_and_gives_few_bytes_when_it_is_full() {
        let silent = SilentTargets::default();
        for number in 0..MOST as u32 {
            assert!(sent(&silent, None, host(number)) > 0);
        }
        assert!(sent(&silent, None, host(u32::MAX)) <= 9000);
        assert_eq!(silent.table.lock().allowances.len(), MOST);
        // Once they are whole again, they make room.
        let later = Time::ZERO + Duration::from_secs(100);
        silent.table.lock().clean(later);
        assert!(silent.table.lock().allowances.is_empty());
    }
}
