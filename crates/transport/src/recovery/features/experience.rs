//! The experience of an endpoint with optional features, for paths that open later.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use courser_telemetry::PathFeature;

use crate::recovery::stats::Fallbacks;

/// The experience of all connections of an endpoint. Clones share it.
///
/// A device near the socket loses batches to every peer, and an access network drops the marked packets
/// of every connection. Each connection would find that out at the cost of a probe timeout. So a
/// feature that was lost on [`ENOUGH`] paths in a row, and arrived on none meanwhile, has to prove
/// itself on each new path before it is used. Its first arrival on any path ends that: peers that
/// report false losses have no effect on an endpoint with others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Experience(Arc<[Record; 3]>);

#[derive(Debug, Default)]
struct Record {
    /// Losses in a row on paths of any connection.
    losses: AtomicU8,
    /// The number of times that a path gave the feature up.
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

    /// Records that packets with the feature arrived on a path where that was not known.
    pub(crate) fn on_confirmed(&self, feature: PathFeature) {
        self.of(feature).losses.store(0, Relaxed);
    }

    /// Records that only packets with the feature were lost on a path, and whether the path gave the
    /// feature up because of that.
    pub(crate) fn on_lost(&self, feature: PathFeature, is_given_up: bool) {
        let record = self.of(feature);
        let losses = record.losses.load(Relaxed).saturating_add(1);
        record.losses.store(losses, Relaxed);
        record.given_up.fetch_add(u64::from(is_given_up), Relaxed);
    }

    /// Returns true if the feature has to prove itself on a new path.
    pub(super) fn is_bad(&self, feature: PathFeature) -> bool {
        self.of(feature).losses.load(Relaxed) >= ENOUGH
    }

    /// Forgets the losses, because the endpoint sends from another socket.
    pub(crate) fn restart(&self) {
        self.0.iter().for_each(|it| it.losses.store(0, Relaxed));
    }

    /// Returns how often paths gave each feature up.
    pub(crate) fn fallbacks(&self) -> Fallbacks {
        let of = |feature| self.of(feature).given_up.load(Relaxed);
        Fallbacks {
            batches: of(PathFeature::Batches),
            ecn: of(PathFeature::EcnMarks),
            quic_bit: of(PathFeature::ClearedQuicBit),
        }
    }
}

/// Losses in a row after which a feature has to prove itself: as many as on one path.
const ENOUGH: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_in_a_row_count_until_the_feature_arrives_somewhere() {
        let experience = Experience::default();
        let (batches, marks) = (PathFeature::Batches, PathFeature::EcnMarks);
        experience.on_lost(batches, false);
        assert!(!experience.is_bad(batches));
        experience.on_lost(batches, true);
        assert!(experience.is_bad(batches) && !experience.is_bad(marks));
        experience.on_confirmed(batches);
        assert!(!experience.is_bad(batches));
        let expected = Fallbacks {
            batches: 1,
            ..Fallbacks::default()
        };
        assert_eq!(experience.fallbacks(), expected);
    }

    #[test]
    fn another_socket_begins_anew() {
        let experience = Experience::default();
        (0..300).for_each(|_| experience.on_lost(PathFeature::EcnMarks, false));
        assert!(experience.is_bad(PathFeature::EcnMarks));
        experience.restart();
        assert!(!experience.is_bad(PathFeature::EcnMarks));
    }
}
