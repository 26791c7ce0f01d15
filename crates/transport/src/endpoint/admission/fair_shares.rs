//! Fair shares of handshakes in progress (limit K100).

use std::collections::HashMap;

use courser_base::{ScopedIp, Source};

use crate::endpoint::shrink::shrink;
use crate::hasher::KeyedState;

/// The client that a handshake in progress counts towards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claimant {
    /// The address of the client.
    pub address: ScopedIp,
    /// True if a token has validated the address. Otherwise it may be forged.
    pub is_validated: bool,
}

/// Amounts of the limited resources of handshakes in progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Amounts {
    /// Clients that wait to be accepted.
    pub waiting: usize,
    /// Bytes of the datagrams of waiting clients.
    pub bytes: usize,
    /// Accepted clients whose handshake is in progress.
    pub handshaking: usize,
}

/// Counts handshakes in progress by source, so that no source uses too much of a limited resource.
///
/// A source is within its share while it holds less than a multiple of the amount left, so that an
/// idle endpoint limits none. Validated clients are counted separately: packets with forged
/// addresses do not reduce the share of the owner of the address.
#[derive(Clone, Debug)]
pub struct FairShares {
    /// The amounts held; at most four entries for each handshake in progress.
    held: HashMap<(Source, bool), Amounts, KeyedState>,
}

impl FairShares {
    /// Creates an empty table. The key must be secret.
    pub fn new(key: [u8; 16]) -> Self {
        Self {
            held: HashMap::with_hasher(KeyedState::new(key)),
        }
    }

    /// Returns true if the client's address or one of its networks already holds its share of `left`, in any
    /// amount.
    pub fn are_used_up(&self, claimant: Claimant, left: Amounts) -> bool {
        Source::shares(claimant.address).any(|(source, multiple)| {
            let held = self.held_by(source, claimant.is_validated);
            held.waiting >= left.waiting.max(1).saturating_mul(multiple)
                || held.bytes > left.bytes.saturating_mul(multiple)
                || held.handshaking >= left.handshaking.max(1).saturating_mul(multiple)
        })
    }

    /// Returns true if the client's address or one of its networks holds its share of handshakes of accepted
    /// clients, of which `left` are left.
    pub fn are_handshakes_used_up(&self, claimant: Claimant, left: usize) -> bool {
        let unlimited = Amounts {
            waiting: usize::MAX,
            bytes: usize::MAX,
            handshaking: left,
        };
        self.are_used_up(claimant, unlimited)
    }

    /// Returns true if the client's address or one of its networks would exceed its share with `more` bytes,
    /// with `left` bytes left afterwards.
    pub fn are_bytes_used_up(&self, claimant: Claimant, more: usize, left: usize) -> bool {
        Source::shares(claimant.address).any(|(source, multiple)| {
            let held = self.held_by(source, claimant.is_validated).bytes + more;
            held > left.saturating_mul(multiple)
        })
    }

    /// Returns the amounts that a source holds. Unvalidated clients are counted together with all others
    /// of the same address.
    fn held_by(&self, source: Source, is_validated: bool) -> Amounts {
        let of = |is_validated: bool| {
            let held = self.held.get(&(source, is_validated));
            held.copied().unwrap_or_default()
        };
        let mut held = of(true);
        if !is_validated {
            let unvalidated = of(false);
            held.waiting += unvalidated.waiting;
            held.bytes += unvalidated.bytes;
            held.handshaking += unvalidated.handshaking;
        }
        held
    }

    /// Changes the amounts of the client's sources.
    pub fn change(&mut self, claimant: Claimant, change: impl Fn(&mut Amounts)) {
        for (source, _) in Source::shares(claimant.address) {
            let key = (source, claimant.is_validated);
            let held = self.held.entry(key).or_default();
            change(held);
            if *held == Amounts::default() {
                self.held.remove(&key);
                shrink(&mut self.held);
            }
        }
    }

    /// Returns the number of sources with any amounts.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.held.len()
    }
}
