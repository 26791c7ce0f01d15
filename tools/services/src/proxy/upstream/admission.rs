//! Admission of requests to the upstream server: a maximum in progress and a bounded, fair queue.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use courser::server::Cause;
use courser_base::{Mutex, ScopedIp, Source};
use tokio::sync::oneshot;

/// Limits requests in progress at the upstream server, and the requests that wait for their turn.
///
/// Each source may have less than a multiple of the permits left. The first permits are not counted by source, which
/// saves their requests the cost, so one address has at most four fifths of all and one network nine tenths. The same
/// multiples apply to the queue. Sources with waiting requests take turns.
#[derive(Debug)]
pub(in crate::proxy) struct Admission {
    queue_capacity: usize,
    /// Longest wait for a permit.
    longest_wait: Duration,
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    capacity: usize,
    admitted: Counts,
    queue: Queue,
    refused: u64,
    timed_out: u64,
}

/// Waiting requests, with the sources in the order of their turns.
#[derive(Debug, Default)]
struct Queue {
    counts: Counts,
    turns: VecDeque<Option<Source>>,
    by_source: HashMap<Option<Source>, BTreeMap<u64, Waiter>>,
    next_ticket: u64,
}

#[derive(Debug)]
struct Waiter {
    address: Option<ScopedIp>,
    grant: oneshot::Sender<Permit>,
}

/// Number of requests, in total and by source.
#[derive(Debug, Default)]
struct Counts {
    total: usize,
    by_source: HashMap<Source, usize>,
}

/// The use of an [`Admission`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::proxy) struct AdmissionStats {
    /// Requests in progress at the upstream server.
    pub(in crate::proxy) admitted: usize,
    /// Requests that wait.
    pub(in crate::proxy) waiting: usize,
    /// Largest number of waiting requests.
    pub(in crate::proxy) queue_capacity: usize,
    /// Requests that were refused because the queue, or their share of it, was full.
    pub(in crate::proxy) refused: u64,
    /// Requests that waited for too long.
    pub(in crate::proxy) timed_out: u64,
}

/// The permission to have one request in progress, returned when dropped.
#[derive(Debug)]
pub(in crate::proxy) struct Permit {
    admission: Arc<Admission>,
    address: Option<ScopedIp>,
}

/// A place in the queue, which is left when dropped.
struct Place<'a> {
    admission: &'a Admission,
    source: Option<Source>,
    ticket: u64,
}

impl Admission {
    pub(in crate::proxy) fn new(
        capacity: usize,
        queue_capacity: usize,
        longest_wait: Duration,
    ) -> Self {
        Self {
            queue_capacity,
            longest_wait,
            table: Mutex::new(Table {
                capacity,
                admitted: Counts::default(),
                queue: Queue::default(),
                refused: 0,
                timed_out: 0,
            }),
        }
    }

    /// Waits for a permit for a request of this client. Requests without an address have no share.
    ///
    /// # Errors
    /// [`Cause::UpstreamBusy`] if the queue is full, or [`Cause::UpstreamQueueTimeout`] after the longest wait.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the queue.
    pub(in crate::proxy) async fn admit(
        self: &Arc<Self>,
        address: Option<ScopedIp>,
    ) -> Result<Permit, Cause> {
        let (place, granted) = {
            let mut table = self.table.lock();
            let source = address.map(Source::host);
            let is_queued = table.queue.by_source.contains_key(&source);
            if !is_queued && table.may_admit(address) {
                let counted = address.filter(|_| table.is_busy());
                table.admitted.add(counted);
                return Ok(self.clone().permit(counted));
            }
            let left = self.queue_capacity.saturating_sub(table.queue.counts.total);
            if table.queue.counts.is_over_share(address, left) {
                table.refused += 1;
                return Err(Cause::UpstreamBusy);
            }
            let (grant, granted) = oneshot::channel();
            let ticket = table.queue.push(source, Waiter { address, grant });
            let place = Place {
                admission: self,
                source,
                ticket,
            };
            (place, granted)
        };
        let granted = tokio::time::timeout(self.longest_wait, granted).await;
        drop(place);
        match granted {
            Ok(Ok(permit)) => Ok(permit),
            _ => {
                self.table.lock().timed_out += 1;
                Err(Cause::UpstreamQueueTimeout)
            }
        }
    }

    /// Changes the number of requests that may be in progress. A smaller number ends no request.
    pub(in crate::proxy) fn set_capacity(self: &Arc<Self>, capacity: usize) {
        let mut table = self.table.lock();
        if table.capacity != capacity {
            table.capacity = capacity;
            drop(table);
            self.grant();
        }
    }

    pub(in crate::proxy) fn stats(&self) -> AdmissionStats {
        let table = self.table.lock();
        AdmissionStats {
            admitted: table.admitted.total,
            waiting: table.queue.counts.total,
            queue_capacity: self.queue_capacity,
            refused: table.refused,
            timed_out: table.timed_out,
        }
    }

    const fn permit(self: Arc<Self>, address: Option<ScopedIp>) -> Permit {
        Permit {
            admission: self,
            address,
        }
    }

    /// Admits waiting requests while permits are left for them.
    fn grant(self: &Arc<Self>) {
        loop {
            // Sent after the lock is released: a request that has just left returns its permit at once.
            let next = self.table.lock().next();
            let Some(Waiter { address, grant }) = next else {
                return;
            };
            let _ = grant.send(self.clone().permit(address));
        }
    }
}

impl Table {
    /// Returns true if so many permits are in use that the sources of others count.
    const fn is_busy(&self) -> bool {
        self.admitted.total >= self.capacity / UNCOUNTED_PART
    }

    fn may_admit(&self, address: Option<ScopedIp>) -> bool {
        let left = self.capacity.saturating_sub(self.admitted.total);
        !self.admitted.is_over_share(address, left)
    }

    /// Removes the waiting request whose turn it is, and counts it as admitted.
    fn next(&mut self) -> Option<Waiter> {
        for _ in 0..self.queue.turns.len() {
            if self.admitted.total >= self.capacity {
                return None;
            }
            let source = self.queue.turns.pop_front()?;
            self.queue.turns.push_back(source);
            let waiting = self.queue.by_source.get(&source)?;
            let (&ticket, waiter) = waiting.first_key_value()?;
            if self.may_admit(waiter.address) {
                let waiter = self.queue.remove(source, ticket)?;
                self.admitted.add(waiter.address);
                return Some(waiter);
            }
        }
        None
    }
}

impl Queue {
    fn push(&mut self, source: Option<Source>, waiter: Waiter) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.counts.add(waiter.address);
        let waiting = self.by_source.entry(source).or_default();
        if waiting.is_empty() {
            self.turns.push_back(source);
        }
        waiting.insert(ticket, waiter);
        ticket
    }

    fn remove(&mut self, source: Option<Source>, ticket: u64) -> Option<Waiter> {
        let waiting = self.by_source.get_mut(&source)?;
        let waiter = waiting.remove(&ticket)?;
        self.counts.remove(waiter.address);
        if waiting.is_empty() {
            self.by_source.remove(&source);
            self.turns.retain(|other| *other != source);
        }
        Some(waiter)
    }
}

impl Counts {
    fn add(&mut self, address: Option<ScopedIp>) {
        self.total += 1;
        for (source, _) in sources(address) {
            *self.by_source.entry(source).or_default() += 1;
        }
    }

    fn remove(&mut self, address: Option<ScopedIp>) {
        self.total -= 1;
        for (source, _) in sources(address) {
            if let Some(count) = self.by_source.get_mut(&source) {
                *count -= 1;
                if *count == 0 {
                    self.by_source.remove(&source);
                }
            }
        }
    }

    /// Returns true if none is left, or if the source has its share while this many are left.
    fn is_over_share(&self, address: Option<ScopedIp>, left: usize) -> bool {
        // No source can have three times as many as are left.
        if left.saturating_mul(ADDRESS_MULTIPLE) > self.total {
            return false;
        }
        left == 0
            || sources(address).any(|(source, multiple)| {
                let count = self.by_source.get(&source).copied().unwrap_or(0);
                count >= left.saturating_mul(multiple)
            })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut table = self.admission.table.lock();
        table.admitted.remove(self.address);
        let is_awaited = table.queue.counts.total > 0;
        drop(table);
        if is_awaited {
            self.admission.grant();
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut table = self.admission.table.lock();
        table.queue.remove(self.source, self.ticket);
    }
}

/// Returns the address and the network to which a request counts, each with the multiple of the permits left that
/// it may have.
fn sources(address: Option<ScopedIp>) -> impl Iterator<Item = (Source, usize)> {
    address.into_iter().flat_map(|address| {
        [
            (Source::host(address), ADDRESS_MULTIPLE),
            (Source::network(address), NETWORK_MULTIPLE),
        ]
    })
}

/// Divisor of the permits that yields those that are not counted by source (limit K351).
const UNCOUNTED_PART: usize = 8;
/// Multiple of the permits left that one address may have (limit K351).
const ADDRESS_MULTIPLE: usize = 3;
/// Multiple of the permits left that one network may have (limit K351).
const NETWORK_MULTIPLE: usize = 7;

#[cfg(test)]
mod tests;
