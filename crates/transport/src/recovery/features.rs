//! Optional features of packets that a path may drop without an error: batches of segmentation
//! offload, ECN marks, and the cleared QUIC bit. RFC 9000 §13.4.2, RFC 9287.
//!
//! Packets of a probe timeout and repetitions of the handshake use none of them, and have the base
//! size, so that they get through if anything does. [`PathSupport`] draws the conclusions.

use courser_base::{Ecn, Time};
use courser_recovery::{BASE_MTU, FeatureLoss, PathSupport, Sent, Support};
use courser_telemetry::PathFeature;

use super::LossRecovery;
use super::built::Built;
use super::stats::WithheldFeatures;
use crate::space::SpaceId;
use crate::space::sent::SentFrames;

mod experience;

pub(crate) use self::experience::Experience;

/// All features, in the order of arrays.
pub(crate) const FEATURES: [PathFeature; 3] = [
    PathFeature::Batches,
    PathFeature::EcnMarks,
    PathFeature::ClearedQuicBit,
];

/// The features of one route.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Features {
    batches: PathSupport,
    marks: PathSupport,
    cleared_bits: PathSupport,
}

/// The features that the datagrams of one transmit may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FeatureUse {
    /// The ECN mark.
    pub(crate) ecn: Ecn,
    /// The most datagrams in a batch.
    pub(crate) max_segments: usize,
    /// The largest datagram in bytes.
    pub(crate) max_size: usize,
    /// True if the QUIC bit may be cleared.
    pub(crate) clears_quic_bit: bool,
}

impl FeatureUse {
    /// No feature at all: what every path carries.
    pub(crate) const NONE: Self = Self {
        ecn: Ecn::NotEct,
        max_segments: 1,
        max_size: BASE_MTU as usize,
        clears_quic_bit: false,
    };
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
    /// Among no packets.
    pub(super) const NONE: Self = Self {
        batched: Time::ZERO,
        marked: Time::ZERO,
        cleared: Time::ZERO,
    };

    /// Adds a packet.
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

    fn get(&self, feature: PathFeature) -> Option<Time> {
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
    /// Adds a packet. Probes of the path MTU, whose loss proves nothing, are left out.
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

    /// Returns the loss of each feature.
    fn of_each(&self) -> impl Iterator<Item = (PathFeature, FeatureLoss)> {
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
    /// Creates the features of a new path. Those that failed on other paths of the endpoint have to
    /// prove themselves.
    pub(super) fn new(experience: &Experience) -> Self {
        let mut features = Self::default();
        for feature in FEATURES {
            if experience.is_bad(feature) {
                *features.get_mut(feature) = PathSupport::unproven();
            }
        }
        features
    }

    fn get_mut(&mut self, feature: PathFeature) -> &mut PathSupport {
        match feature {
            PathFeature::Batches => &mut self.batches,
            PathFeature::EcnMarks => &mut self.marks,
            PathFeature::ClearedQuicBit => &mut self.cleared_bits,
        }
    }

    /// Notes that an ack-eliciting packet was sent.
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

    /// Notes that a packet of a batch was late only.
    pub(super) fn on_batch_late(&mut self) {
        self.batches.on_spurious_loss();
    }

    /// Notes that packets were forgotten, whose fate stays unknown.
    pub(super) fn on_forgotten(&mut self) {
        for feature in FEATURES {
            self.get_mut(feature).on_forgotten();
        }
    }

    /// Returns the features that are given up.
    pub(super) fn withheld(&self) -> WithheldFeatures {
        WithheldFeatures {
            batches: self.batches.is_given_up(),
            ecn: self.marks.is_given_up(),
            quic_bit: self.cleared_bits.is_given_up(),
        }
    }

    /// Returns true if every feature may be used without limits.
    #[inline]
    fn are_free(&self) -> bool {
        self.batches.is_confirmed() && !self.marks.is_withheld() && !self.cleared_bits.is_withheld()
    }

    /// Returns the most datagrams in the next batch.
    ///
    /// On a path that has never delivered one there is one batch in flight, and what is sent beside it
    /// leaves one by one. After a loss the next batch is small, and leaves only ahead of other data,
    /// whose acknowledgement reveals its loss without a probe timeout.
    fn max_segments(&self, now: Time, is_ahead: bool) -> usize {
        match self.batches.state() {
            Support::Confirmed => usize::MAX,
            _ if !self.batches.allows_trial(now) => 1,
            Support::Unknown => usize::MAX,
            Support::Unproven | Support::Doubtful | Support::Failed if is_ahead => TRIAL_SEGMENTS,
            Support::Unproven | Support::Doubtful | Support::Failed => 1,
        }
    }
}

/// The datagrams in a batch that is a trial. Random loss takes three of three seldom enough.
const TRIAL_SEGMENTS: usize = 4;

impl LossRecovery {
    /// Returns the features of the next 1-RTT datagrams. `is_ahead` returns true if several full
    /// datagrams wait behind the next one.
    #[inline]
    pub(crate) fn features(&self, now: Time, is_ahead: impl FnOnce() -> bool) -> FeatureUse {
        let route = self.routes.active();
        let all = FeatureUse {
            ecn: self.mark(SpaceId::Application).unwrap_or_default(),
            max_segments: usize::MAX,
            max_size: usize::from(route.mtu),
            clears_quic_bit: true,
        };
        match route.features.are_free() {
            true => all,
            false => self.limited_features(now, all, is_ahead()),
        }
    }

    #[cold]
    fn limited_features(&self, now: Time, all: FeatureUse, is_ahead: bool) -> FeatureUse {
        let features = &self.routes.active().features;
        let mut limited = FeatureUse {
            max_segments: features.max_segments(now, is_ahead),
            ..all
        };
        let is_tried = |support: &PathSupport| is_ahead && support.allows_trial(now);
        if features.marks.is_withheld() && is_tried(&features.marks) {
            limited.ecn = self.mark_of(SpaceId::Application).unwrap_or_default();
            limited.max_segments = 1;
        }
        if features.cleared_bits.is_withheld() {
            limited.clears_quic_bit = is_tried(&features.cleared_bits);
            if limited.clears_quic_bit {
                limited.max_segments = 1;
            }
        }
        limited
    }

    /// Returns the features of the next datagrams of the handshake. Their ECN mark depends on the
    /// packets in them. `None` if they may use none, because they repeat what may have been lost.
    pub(crate) fn handshake_features(&self, now: Time) -> Option<FeatureUse> {
        let is_probing = |id| self.is_probing(id);
        if self.is_handshake_repeated || SpaceId::ALL.into_iter().any(is_probing) {
            return None;
        }
        Some(self.features(now, || false))
    }

    /// Returns true if the next 1-RTT packets probe because of a timeout: they use no feature.
    #[inline]
    pub(crate) fn is_after_timeout(&self) -> bool {
        self.spaces.application.is_after_timeout && self.spaces.application.probes > 0
    }

    /// Notes the ECN mark of the first datagram from a client.
    ///
    /// A client that repeats its first flight sends it without a mark. If the network drops marked
    /// packets in both directions, an answer with marks would cost another timeout, so marks begin
    /// with a trial then. A client that never marks its first flight loses nothing by that: marks
    /// matter once there is more to send.
    pub(crate) fn on_first_mark(&mut self, ecn: Ecn) {
        if ecn == Ecn::NotEct {
            self.routes.active_mut().features.marks = PathSupport::unproven();
        }
    }

    /// The features that are given up on the path in use.
    #[inline]
    pub(crate) fn withheld(&self) -> WithheldFeatures {
        self.routes.active().features.withheld()
    }

    /// Returns true if packets are marked only to try whether marks pass.
    #[inline]
    pub(super) fn are_marks_withheld(&self) -> bool {
        self.routes.active().features.marks.is_withheld()
    }

    /// Takes the acknowledgement of packets on the path in use.
    #[inline]
    pub(super) fn on_features_acked(&mut self, newest: &NewestByFeature) {
        let features = &mut self.routes.active_mut().features;
        for feature in FEATURES {
            if let Some(sent) = newest.get(feature)
                && features.get_mut(feature).on_acked(sent)
            {
                self.experience.on_confirmed(feature);
            }
        }
    }

    /// Takes the loss of packets on the path in use.
    pub(super) fn on_features_lost(&mut self, now: Time, lost: &LostByFeature) {
        let features = &mut self.routes.active_mut().features;
        for (feature, loss) in lost.of_each() {
            let support = features.get_mut(feature);
            let was_given_up = support.is_given_up();
            if !support.on_lost(now, &loss) {
                continue;
            }
            let is_new = support.is_given_up() && !was_given_up;
            self.experience.on_lost(feature, is_new);
            if is_new {
                self.stats.fallbacks.count(feature);
            }
        }
    }
}
