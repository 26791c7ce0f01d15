//! The budget for the growth of the receive windows of all connections.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use courser_base::{Mutex, ScopedIp, Source, Time};

/// Bytes by which the windows of an endpoint's connections may grow beyond their initial size
/// (attack limit K16). Clones share one budget.
///
/// The initial window of each connection is granted in any case, because the number of connections
/// is limited. Growth depends on the traffic of the peer: without a common bound, each of thousands
/// of peers could make us reserve the largest window.
///
/// The connections of a source together may have a multiple of what is left ([`Source::shares`]). When a
/// window cannot grow, those that were not used for a while lose their growth.
#[derive(Clone, Debug)]
pub struct WindowBudget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    table: Mutex<Table>,
    /// True while memory is short: [`Draw::take`] returns 0.
    is_frozen: AtomicBool,
}

#[derive(Debug, Default)]
struct Table {
    left: u64,
    /// The bytes drawn by the windows of each source.
    held: HashMap<Source, u64>,
    /// The windows that have drawn bytes.
    drawn: HashMap<u64, Arc<Drawn>>,
    next: u64,
    /// The time at which idle windows were last looked for.
    examined: Time,
}

/// The bytes that one window has drawn.
#[derive(Debug)]
struct Drawn {
    address: ScopedIp,
    /// Zero once they were taken away, because the window was idle.
    bytes: AtomicU64,
    /// The time at which the window was last used, in nanoseconds.
    used: AtomicU64,
}

impl WindowBudget {
    /// Creates a budget of `bytes`.
    pub fn new(bytes: u64) -> Self {
        let table = Table {
            left: bytes,
            ..Table::default()
        };
        Self(Arc::new(Shared {
            table: Mutex::new(table),
            is_frozen: AtomicBool::new(false),
        }))
    }

    /// Returns the bytes that have not been drawn.
    #[cfg(test)]
    pub fn left(&self) -> u64 {
        self.0.table.lock().left
    }

    /// Stops or resumes growth. No bytes are granted while `is_frozen`.
    #[inline]
    pub(crate) fn freeze(&self, is_frozen: bool) {
        self.0.is_frozen.store(is_frozen, Relaxed);
    }
}

impl Table {
    /// Returns how many of the requested bytes a window may draw.
    ///
    /// A window may have an eighth of what the others have left: if eight windows take all they may, a third is
    /// left for later ones.
    fn grant(&self, address: ScopedIp, requested: u64, taken: u64) -> u64 {
        let of_window = (self.left.saturating_add(taken) / SHARE).saturating_sub(taken);
        let of_source = |(source, multiple)| {
            // After the grant, the source has at most `multiple` times what is left.
            let (held, multiple) = (u128::from(self.held_by(source)), multiple as u128);
            let most = (multiple * u128::from(self.left)).saturating_sub(held) / (multiple + 1);
            u64::try_from(most).unwrap_or(u64::MAX)
        };
        let of_sources = Source::shares(address).map(of_source).min();
        requested
            .min(of_window)
            .min(of_sources.unwrap_or(u64::MAX))
            .min(self.left)
    }

    fn held_by(&self, source: Source) -> u64 {
        self.held.get(&source).copied().unwrap_or(0)
    }

    fn take(&mut self, address: ScopedIp, bytes: u64) {
        self.left -= bytes;
        for (source, _) in Source::shares(address) {
            *self.held.entry(source).or_default() += bytes;
        }
    }

    fn give_back(&mut self, address: ScopedIp, bytes: u64) {
        self.left += bytes;
        for (source, _) in Source::shares(address) {
            if let Entry::Occupied(mut held) = self.held.entry(source) {
                *held.get_mut() -= bytes;
                if *held.get() == 0 {
                    held.remove();
                }
            }
        }
    }

    /// Takes away the bytes of idle windows. Examines all windows, so it runs once a second at most.
    fn reclaim(&mut self, now: Time) {
        if now < self.examined + RECLAIM_INTERVAL {
            return;
        }
        self.examined = now;
        let is_idle = |drawn: &Drawn| {
            let used = Time::from_nanos(drawn.used.load(Relaxed));
            now.saturating_since(used) >= IDLE
        };
        let idle = self.drawn.values().filter(|it| is_idle(it));
        let idle: Vec<Arc<Drawn>> = idle.cloned().collect();
        for drawn in idle {
            let bytes = drawn.bytes.swap(0, Relaxed);
            self.give_back(drawn.address, bytes);
        }
    }
}

/// The divisor of what others have left that yields one window's maximum.
const SHARE: u64 = 8;

/// Time without use after which a window may lose its growth (limit K372).
const IDLE: Duration = Duration::from_secs(10);

/// Least time between two searches for idle windows (limit K372).
const RECLAIM_INTERVAL: Duration = Duration::from_secs(1);

/// The bytes that one window draws. They return to the budget when this is dropped, or when the window is idle and
/// others need them.
#[derive(Debug)]
pub(crate) struct Draw {
    budget: WindowBudget,
    address: ScopedIp,
    /// The number and the bytes of this window in the budget, once it has drawn any.
    drawn: Option<(u64, Arc<Drawn>)>,
    /// The bytes by which the window has grown.
    taken: u64,
}

impl Draw {
    /// Draws for a window of a connection with this peer.
    pub(crate) fn new(budget: WindowBudget, peer: impl Into<ScopedIp>) -> Self {
        Self {
            budget,
            address: peer.into(),
            drawn: None,
            taken: 0,
        }
    }

    /// Records that the window is in use. Returns the bytes that it has lost since the last call, because it was
    /// idle.
    pub(crate) fn on_used(&mut self, now: Time) -> u64 {
        let Some((_, drawn)) = &self.drawn else {
            return 0;
        };
        drawn.used.store(now.as_nanos(), Relaxed);
        match drawn.bytes.load(Relaxed) {
            0 => std::mem::take(&mut self.taken),
            _ => 0,
        }
    }

    /// Draws up to `requested` bytes, and returns how many.
    #[cold]
    pub(crate) fn take(&mut self, now: Time, requested: u64) -> u64 {
        let shared = &self.budget.0;
        if shared.is_frozen.load(Relaxed) {
            return 0;
        }
        let mut table = shared.table.lock();
        let mut granted = table.grant(self.address, requested, self.taken);
        if granted < requested {
            table.reclaim(now);
            granted = table.grant(self.address, requested, self.taken);
        }
        if granted == 0 {
            return 0;
        }
        let (_, drawn) = self.drawn.get_or_insert_with(|| {
            let drawn = Arc::new(Drawn {
                address: self.address,
                bytes: AtomicU64::new(0),
                used: AtomicU64::new(now.as_nanos()),
            });
            let number = table.next;
            table.next += 1;
            table.drawn.insert(number, drawn.clone());
            (number, drawn)
        });
        table.take(self.address, granted);
        drawn.bytes.fetch_add(granted, Relaxed);
        self.taken += granted;
        granted
    }
}

impl Drop for Draw {
    fn drop(&mut self) {
        if let Some((number, drawn)) = self.drawn.take() {
            let mut table = self.budget.0.table.lock();
            table.drawn.remove(&number);
            let bytes = drawn.bytes.swap(0, Relaxed);
            table.give_back(drawn.address, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    /// Returns windows of connections from these addresses, which draw as much as they may, in turns.
    fn greedy(budget: &WindowBudget, now: Time, addresses: &[&str]) -> Vec<Draw> {
        let address = |text: &&str| text.parse::<IpAddr>().expect("an address");
        let windows = addresses.iter().map(address);
        let mut windows: Vec<_> = windows.map(|it| Draw::new(budget.clone(), it)).collect();
        for _ in 0..100 {
            for window in &mut windows {
                window.take(now, 128 * MIB);
            }
        }
        windows
    }

    /// Attack A247.
    #[test]
    fn forty_connections_of_one_address_leave_a_fair_part_to_others() {
        let budget = WindowBudget::new(1024 * MIB);
        let held = greedy(&budget, at(0), &["192.0.2.1"; 40]);
        assert!(budget.left() >= 255 * MIB, "{}", budget.left());
        let other = greedy(&budget, at(0), &["198.51.100.1"]);
        assert!(other[0].taken >= 30 * MIB, "{}", other[0].taken);
        drop((held, other));
        let table = budget.0.table.lock();
        assert_eq!(
            (table.left, table.held.len(), table.drawn.len()),
            (1024 * MIB, 0, 0)
        );
    }

    #[test]
    fn networks_of_one_site_leave_a_twelfth() {
        let budget = WindowBudget::new(1024 * MIB);
        let addresses: Vec<String> = (0..256)
            .map(|it| format!("2001:db8:0:{:x}::1", it << 8))
            .collect();
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        let _held = greedy(&budget, at(0), &addresses);
        assert!(budget.left() >= 85 * MIB, "{}", budget.left());
    }

    #[test]
    fn idle_windows_lose_their_growth_when_others_need_it() {
        let budget = WindowBudget::new(1024 * MIB);
        let mut idle = greedy(&budget, at(0), &["192.0.2.1"; 40]);
        let left = budget.left();
        let mut used = idle.pop().expect("40 windows");
        let of_used = used.taken;
        assert_eq!(used.on_used(at(9)), 0);
        let mut other = greedy(&budget, at(9), &["198.51.100.1"]).remove(0);
        assert!(other.taken < left, "nothing is idle for long enough");
        assert!(other.take(at(11), 128 * MIB) > 0, "they are now");
        assert_eq!(used.on_used(at(11)), 0, "it was in use");
        let lost = idle[0].on_used(at(12));
        assert!(lost > 0 && idle[0].taken == 0);
        assert_eq!(idle[0].on_used(at(12)), 0, "reported once");
        assert!(idle[0].take(at(12), MIB) > 0, "it may grow again");
        drop((idle, other));
        assert_eq!(budget.left(), 1024 * MIB - of_used);
    }
}
