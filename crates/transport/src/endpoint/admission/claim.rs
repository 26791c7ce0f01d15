//! What a handshake in progress holds of the limits.

use std::mem;
use std::sync::Arc;

use courser_base::Time;

use super::fair_shares::Claimant;
use crate::endpoint::shards::ShardId;
use crate::endpoint::shared::Shared;

/// What one handshake in progress holds of the limits of all of them (K10, K11, K100).
///
/// It is given back when the claim is dropped, whatever the reason: the client is refused, the handshake is
/// complete or has failed, or the code that handles it panics. So no path can forget to count down.
#[derive(Debug)]
pub struct Claim {
    shared: Arc<Shared>,
    shard: ShardId,
    claimant: Claimant,
    state: ClaimState,
}

/// The state of the client that holds a claim.
#[derive(Clone, Copy, Debug)]
enum ClaimState {
    /// The client waits to be accepted, and its datagrams have this many bytes.
    Waiting { bytes: usize },
    /// The client was accepted.
    Handshaking,
}

impl Claim {
    /// Makes the claim of a client that waits from now on, with `bytes` kept for it.
    pub fn new(shared: Arc<Shared>, shard: ShardId, claimant: Claimant, bytes: usize) -> Self {
        shared.handshakes.lock().on_waiting(claimant, bytes);
        shared.counts(shard).on_waiting(bytes);
        Self {
            shared,
            shard,
            claimant,
            state: ClaimState::Waiting { bytes },
        }
    }

    /// Returns the client that holds the claim.
    pub fn claimant(&self) -> Claimant {
        self.claimant
    }

    /// Returns the bytes of the datagrams of a waiting client.
    pub fn waiting_bytes(&self) -> usize {
        match self.state {
            ClaimState::Waiting { bytes } => bytes,
            ClaimState::Handshaking => 0,
        }
    }

    /// Claims another `len` bytes for a waiting client. Returns false if a limit forbids it.
    pub fn extend(&mut self, len: usize) -> bool {
        let ClaimState::Waiting { bytes } = &mut self.state else {
            return false;
        };
        let mut handshakes = self.shared.handshakes.lock();
        let is_extended = handshakes.on_waiting_bytes(self.claimant, len);
        if is_extended {
            *bytes += len;
            self.shared.counts(self.shard).on_waiting_bytes(len);
        }
        is_extended
    }

    /// Returns false if the source of the client has reached its share of handshakes, so that the client
    /// cannot be accepted (limit K100).
    pub fn may_begin(&self) -> bool {
        self.shared.handshakes.lock().may_begin(self.claimant)
    }

    /// Turns the claim of a waiting client into that of a handshake, which holds no bytes here.
    #[must_use = "the handshake ends when its claim is dropped"]
    pub fn accepted(mut self, now: Time) -> Self {
        if let ClaimState::Waiting { bytes } =
            mem::replace(&mut self.state, ClaimState::Handshaking)
        {
            let mut handshakes = self.shared.handshakes.lock();
            handshakes.on_accepted(now, self.claimant, bytes);
            self.shared.counts(self.shard).on_left(bytes);
        }
        self
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut handshakes = self.shared.handshakes.lock();
        let counts = self.shared.counts(self.shard);
        match self.state {
            ClaimState::Waiting { bytes } => {
                handshakes.on_refused(self.claimant, bytes);
                counts.on_left(bytes);
            }
            ClaimState::Handshaking => handshakes.on_handshake_ended(self.claimant),
        }
        counts.on_ended();
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use courser_base::ScopedIp;

    use super::*;

    fn client() -> Claimant {
        Claimant {
            address: ScopedIp::from(Ipv4Addr::new(192, 0, 2, 1)),
            is_validated: false,
        }
    }

    fn shard(number: u16) -> ShardId {
        ShardId { number, count: 2 }
    }

    /// Returns the clients that wait, their bytes and the handshakes in progress in a shard.
    fn counts(shared: &Shared, number: u16) -> (usize, usize, usize) {
        let counts = shared.counts(shard(number));
        (counts.waiting(), counts.waiting_bytes(), counts.half_open())
    }

    /// Returns the same numbers of all shards together, and the sources that hold claims.
    fn totals(shared: &Shared) -> (usize, usize, usize, usize) {
        let all = shared.handshakes.lock();
        (
            all.waiting(),
            all.waiting_bytes(),
            all.half_open(),
            all.sources(),
        )
    }

    #[test]
    fn a_refused_client_gives_back_its_whole_claim() {
        let shared = Shared::of_test(2);
        let mut claim = Claim::new(shared.clone(), shard(1), client(), 1200);
        assert!(claim.extend(300));
        assert_eq!(counts(&shared, 1), (1, 1500, 1));
        assert_eq!(counts(&shared, 0), (0, 0, 0));
        assert_eq!(totals(&shared), (1, 1500, 1, 3));
        drop(claim);
        assert_eq!(counts(&shared, 1), (0, 0, 0));
        assert_eq!(totals(&shared), (0, 0, 0, 0));
    }

    #[test]
    fn accepted_client_counts_as_a_handshake_until_its_claim_is_dropped() {
        let shared = Shared::of_test(2);
        let claim = Claim::new(shared.clone(), shard(0), client(), 1200).accepted(Time::ZERO);
        assert_eq!(counts(&shared, 0), (0, 0, 1));
        assert_eq!(totals(&shared), (0, 0, 1, 3));
        drop(claim);
        assert_eq!(counts(&shared, 0), (0, 0, 0));
        assert_eq!(totals(&shared), (0, 0, 0, 0));
    }

    #[test]
    fn a_panic_gives_the_claim_back() {
        let shared = Shared::of_test(2);
        let claim = Claim::new(shared.clone(), shard(0), client(), 1200);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _claim = claim.accepted(Time::ZERO);
            std::panic::resume_unwind(Box::new("a hook"));
        }));
        assert!(caught.is_err());
        assert_eq!(totals(&shared), (0, 0, 0, 0));
    }
}
