//! The capacity that a handshake in progress occupies.

use std::mem;
use std::sync::Arc;

use courser_base::Time;

use super::fair_shares::Claimant;
use crate::endpoint::shards::ShardId;
use crate::endpoint::shared::Shared;

/// The share of one handshake in the limits on those in progress (limits K10, K11, K100).
///
/// Dropping it releases the share, after a refusal, at the end of the handshake, and in a panic. No code
/// path has to count down.
#[derive(Debug)]
pub struct Claim {
    shared: Arc<Shared>,
    shard: ShardId,
    claimant: Claimant,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// The client waits to be accepted, and its datagrams have this many bytes.
    Waiting { bytes: usize },
    /// The client was accepted.
    Handshaking,
}

impl Claim {
    /// Counts a client that begins to wait, with `bytes` of datagrams.
    pub fn new(shared: Arc<Shared>, shard: ShardId, claimant: Claimant, bytes: usize) -> Self {
        shared.handshakes.lock().on_waiting(claimant, bytes);
        shared.counts(shard).on_waiting(bytes);
        Self {
            shared,
            shard,
            claimant,
            stage: Stage::Waiting { bytes },
        }
    }

    /// Returns the client of the handshake.
    pub fn claimant(&self) -> Claimant {
        self.claimant
    }

    /// Counts another `len` bytes of a waiting client. Returns false if they exceed a limit.
    pub fn extend(&mut self, len: usize) -> bool {
        let Stage::Waiting { bytes } = &mut self.stage else {
            return false;
        };
        let mut handshakes = self.shared.handshakes.lock();
        let fits = handshakes.on_waiting_bytes(self.claimant, len);
        if fits {
            *bytes += len;
            self.shared.counts(self.shard).on_waiting_bytes(len);
        }
        fits
    }

    /// Returns false if the source of the client has reached its share of handshakes, so that the client
    /// cannot be accepted (limit K100).
    pub fn may_begin(&self) -> bool {
        self.shared.handshakes.lock().may_begin(self.claimant)
    }

    /// Counts a waiting client as handshaking, without the bytes of its datagrams.
    #[must_use = "the handshake ends when its claim is dropped"]
    pub fn accepted(mut self, now: Time) -> Self {
        if let Stage::Waiting { bytes } = mem::replace(&mut self.stage, Stage::Handshaking) {
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
        match self.stage {
            Stage::Waiting { bytes } => {
                handshakes.on_refused(self.claimant, bytes);
                counts.on_left(bytes);
            }
            Stage::Handshaking => handshakes.on_handshake_ended(self.claimant),
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

    /// Returns the same numbers of all shards together, and the number of counted sources.
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
    fn refused_client_releases_its_claim() {
        let shared = Shared::of_test(2);
        let mut claim = Claim::new(shared.clone(), shard(1), client(), 1200);
        assert!(claim.extend(300));
        assert_eq!(counts(&shared, 1), (1, 1500, 1));
        assert_eq!(counts(&shared, 0), (0, 0, 0));
        assert_eq!(totals(&shared), (1, 1500, 1, 2));
        drop(claim);
        assert_eq!(counts(&shared, 1), (0, 0, 0));
        assert_eq!(totals(&shared), (0, 0, 0, 0));
    }

    #[test]
    fn accepted_client_counts_as_a_handshake_until_its_claim_is_dropped() {
        let shared = Shared::of_test(2);
        let claim = Claim::new(shared.clone(), shard(0), client(), 1200).accepted(Time::ZERO);
        assert_eq!(counts(&shared, 0), (0, 0, 1));
        assert_eq!(totals(&shared), (0, 0, 1, 2));
        drop(claim);
        assert_eq!(counts(&shared, 0), (0, 0, 0));
        assert_eq!(totals(&shared), (0, 0, 0, 0));
    }

    #[test]
    fn panic_releases_the_claim() {
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
