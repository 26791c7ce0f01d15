//! The results of optional features on all paths of an endpoint, for later paths.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use courser_telemetry::PathFeature;

use crate::recovery::stats::Fallbacks;

/// The results of all connections of an endpoint. Clones share them.
///
/// A device near the socket loses batches to every peer, and an access network drops the marked packets
/// of every connection. Each connection would need a probe timeout to detect that. So after
/// losses on [`MIN_LOSSES`] paths in a row, without an arrival on any, the feature is tried on each new path
/// before it is used. The first arrival on any path ends that, so peers that report false losses have no
/// effect on an endpoint with other peers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Experience(Arc<[Record; 3]>);

#[derive(Debug, Default)]
struct Record {
    /// Losses in a row on paths of any connection.
    losses: AtomicU8,
    /// The number of times that the feature was disabled on a path.
    given_up: AtomicU64,
}

impl Experience {
    fn of(&self, feature: PathFeature) -> &Record {
        &self.0[match feature {
            PathFeature::Batches => 0,
            PathFeature::EcnMarks => 1,
            PathFeature::ClearedQuicBit => 2,
        }]
    }

    /// Records the first arrival of packets with the feature on a path.
    pub(crate) fn on_confirmed(&self, feature: PathFeature) {
        self.of(feature).losses.store(0, Relaxed);
    }

    /// Records that only packets with the feature were lost on a path. `is_given_up` is true if the feature was
    /// disabled on the path because of that.
    pub(crate) fn on_lost(&self, feature: PathFeature, is_given_up: bool) {
        let record = self.of(feature);
        let losses = record.losses.load(Relaxed).saturating_add(1);
        record.losses.store(losses, Relaxed);
        record.given_up.fetch_add(u64::from(is_given_up), Relaxed);
    }

    /// Returns true if the feature has to be tried on a new path before it is used.
    pub(super) fn needs_trial(&self, feature: PathFeature) -> bool {
        self.of(feature).losses.load(Relaxed) >= MIN_LOSSES
    }

    /// Resets the losses, because the endpoint sends from another socket.
    pub(crate) fn restart(&self) {
        self.0.iter().for_each(|it| it.losses.store(0, Relaxed));
    }

    /// Returns how often each feature was disabled on a path.
    pub(crate) fn fallbacks(&self) -> Fallbacks {
        let of = |feature| self.of(feature).given_up.load(Relaxed);
        Fallbacks {
            batches: of(PathFeature::Batches),
            ecn: of(PathFeature::EcnMarks),
            quic_bit: of(PathFeature::ClearedQuicBit),
        }
    }
}

/// Losses in a row after which a feature is tried first on each path: the same number as on a single path.
const MIN_LOSSES: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_in_a_row_count_until_the_feature_arrives_somewhere() {
        let experience = Experience::default();
        let (batches, marks) = (PathFeature::Batches, PathFeature::EcnMarks);
        experience.on_lost(batches, false);
        assert!(!experience.needs_trial(batches));
        experience.on_lost(batches, true);
        assert!(experience.needs_trial(batches) && !experience.needs_trial(marks));
        experience.on_confirmed(batches);
        assert!(!experience.needs_trial(batches));
        let expected = Fallbacks {
            batches: 1,
            ..Fallbacks::default()
        };
        assert_eq!(experience.fallbacks(), expected);
    }

    #[test]
    fn losses_are_reset_for_another_socket() {
        let experience = Experience::default();
        (0..300).for_each(|_| experience.on_lost(PathFeature::EcnMarks, false));
        assert!(experience.needs_trial(PathFeature::EcnMarks));
        experience.restart();
        assert!(!experience.needs_trial(PathFeature::EcnMarks));
    }
}
