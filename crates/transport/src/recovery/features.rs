//! Optional features of packets that a path may drop without an error: batches of segmentation
//! offload, ECN marks, and the cleared QUIC bit. RFC 9000 §13.4.2, RFC 9287.
//!
//! [`PathSupport`] decides from acknowledgements and losses whether the path supports a feature.

use courser_base::{Ecn, Time};
use courser_recovery::{FeatureLoss, PathSupport, Sent, Support};
use courser_telemetry::PathFeature;

use super::built::Built;
use super::stats::WithheldFeatures;
use crate::space::sent::SentFrames;

mod experience;

pub(crate) use self::experience::Experience;

/// All features, in the order of [`LostByFeature`]'s arrays.
pub(crate) const FEATURES: [PathFeature; 3] = [
    PathFeature::Batches,
    PathFeature::EcnMarks,
    PathFeature::ClearedQuicBit,
];

/// The features of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Features {
    batches: PathSupport,
    pub(super) marks: PathSupport,
    pub(super) cleared_bits: PathSupport,
}

/// The times at which the newest acknowledged packets with each feature were sent. [`Time::ZERO`] if
/// there are none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewestByFeature {
    batched: Time,
    marked: Time,
    cleared: Time,
}

impl NewestByFeature {
    pub(super) const NONE: Self = Self {
        batched: Time::ZERO,
        marked: Time::ZERO,
        cleared: Time::ZERO,
    };

    #[inline]
    pub(super) fn add(&mut self, sent: &Sent<SentFrames>) {
        if sent.follows_in_batch {
            self.batched = self.batched.max(sent.time);
        }
        if sent.ecn_marked {
            self.marked = self.marked.max(sent.time);
        }
        if sent.quic_bit_cleared {
            self.cleared = self.cleared.max(sent.time);
        }
    }

    pub(super) fn get(&self, feature: PathFeature) -> Option<Time> {
        let time = match feature {
            PathFeature::Batches => self.batched,
            PathFeature::EcnMarks => self.marked,
            PathFeature::ClearedQuicBit => self.cleared,
        };
        (time > Time::ZERO).then_some(time)
    }
}

/// Packets that were declared lost at the same time, by feature.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LostByFeature {
    /// The number of packets with each feature, and the time at which the newest was sent.
    with: [(u32, Time); FEATURES.len()],
    /// The time at which the newest packet without each feature was sent.
    without: [Option<Time>; FEATURES.len()],
}

impl LostByFeature {
    /// Adds a packet. Ignores MTU probes, whose loss has another reason.
    pub(super) fn add(&mut self, sent: &Sent<SentFrames>) {
        if sent.is_mtu_probe || !sent.ack_eliciting {
            return;
        }
        let has = [
            sent.follows_in_batch,
            sent.ecn_marked,
            sent.quic_bit_cleared,
        ];
        for (index, has_feature) in has.into_iter().enumerate() {
            if has_feature {
                let (count, newest) = &mut self.with[index];
                (*count, *newest) = (*count + 1, sent.time.max(*newest));
            } else {
                let newest = &mut self.without[index];
                *newest = (*newest).max(Some(sent.time));
            }
        }
    }

    /// Returns the loss of packets with each feature.
    pub(super) fn of_each(&self) -> impl Iterator<Item = (PathFeature, FeatureLoss)> {
        let with = FEATURES.into_iter().zip(self.with).zip(self.without);
        with.filter(|((_, (count, _)), _)| *count > 0)
            .map(|((feature, (count, sent)), others)| {
                let loss = FeatureLoss {
                    count,
                    sent,
                    others,
                };
                (feature, loss)
            })
    }
}

impl Features {
    /// Creates the features of a new path. Those that failed on other paths of the endpoint are
    /// disabled until a trial succeeds.
    pub(super) fn new(experience: &Experience) -> Self {
        let mut features = Self::default();
        for feature in FEATURES {
            if experience.needs_trial(feature) {
                *features.get_mut(feature) = PathSupport::unproven();
            }
        }
        features
    }

    pub(super) fn get_mut(&mut self, feature: PathFeature) -> &mut PathSupport {
        match feature {
            PathFeature::Batches => &mut self.batches,
            PathFeature::EcnMarks => &mut self.marks,
            PathFeature::ClearedQuicBit => &mut self.cleared_bits,
        }
    }

    /// Records that an ack-eliciting packet was sent.
    #[inline]
    pub(super) fn on_sent(&mut self, built: &Built, ecn: Ecn) {
        if built.follows_in_batch {
            self.batches.on_sent();
        }
        if ecn != Ecn::NotEct {
            self.marks.on_sent();
        }
        if built.quic_bit_cleared {
            self.cleared_bits.on_sent();
        }
    }

    /// Records that a packet of a batch was not lost but late.
    pub(super) fn on_batch_late(&mut self) {
        self.batches.on_spurious_loss();
    }

    /// Records that packets were dropped from the records: whether they arrived stays unknown.
    pub(super) fn on_forgotten(&mut self) {
        for feature in FEATURES {
            self.get_mut(feature).on_packets_discarded();
        }
    }

    /// Returns the features that are disabled.
    pub(super) fn withheld(&self) -> WithheldFeatures {
        WithheldFeatures {
            batches: self.batches.is_ruled_out(),
            ecn: self.marks.is_ruled_out(),
            quic_bit: self.cleared_bits.is_ruled_out(),
        }
    }

    /// Returns true if every feature may be used without limits.
    #[inline]
    pub(super) fn are_free(&self) -> bool {
        self.batches.is_confirmed() && !self.marks.is_withheld() && !self.cleared_bits.is_withheld()
    }

    /// Returns the maximum number of datagrams in the next batch.
    ///
    /// On a path that has not delivered a batch yet, only one batch is in flight, and other datagrams are sent
    /// one by one. After a loss the next batch is small, and is sent only if more data follows, whose
    /// acknowledgement shows the loss of the batch without a probe timeout.
    pub(super) fn max_segments(&self, now: Time, is_ahead: bool) -> usize {
        match self.batches.state() {
            Support::Confirmed => usize::MAX,
            _ if !self.batches.allows_trial(now) => 1,
            Support::Unknown => usize::MAX,
            Support::Unproven | Support::Doubtful | Support::Failed if is_ahead => TRIAL_SEGMENTS,
            Support::Unproven | Support::Doubtful | Support::Failed => 1,
        }
    }
}

/// Datagrams in a trial batch. That random loss takes all three after the first is rare.
const TRIAL_SEGMENTS: usize = 4;
