//! The optional features that the next packets may use.
//!
//! Packets of a probe timeout and repeated packets of the handshake use none, and have the base size, so that
//! they arrive on every path that works at all.

use courser_base::{Ecn, Time};
use courser_recovery::{BASE_MTU, PathSupport};

use super::LossRecovery;
use super::features::{FEATURES, LostByFeature, NewestByFeature};
use super::stats::WithheldFeatures;
use crate::space::SpaceId;

/// The features that the datagrams of one transmit may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FeatureUse {
    /// The ECN mark.
    pub(crate) ecn: Ecn,
    /// Maximum number of datagrams in a batch.
    pub(crate) max_segments: usize,
    /// The largest datagram in bytes.
    pub(crate) max_size: usize,
    /// True if the QUIC bit may be cleared.
    pub(crate) clears_quic_bit: bool,
}

impl FeatureUse {
    /// No feature, and the base size.
    pub(crate) const NONE: Self = Self {
        ecn: Ecn::NotEct,
        max_segments: 1,
        max_size: BASE_MTU as usize,
        clears_quic_bit: false,
    };
}

impl LossRecovery {
    /// Returns the features of the next 1-RTT datagrams. `may_clear` is true if the peer accepts a cleared
    /// QUIC bit, and `is_ahead` returns true if there is data for several full datagrams after the next one.
    #[inline]
    pub(crate) fn features(
        &self,
        now: Time,
        may_clear: bool,
        is_ahead: impl FnOnce() -> bool,
    ) -> FeatureUse {
        let path = self.paths.active();
        let all = FeatureUse {
            ecn: self.mark(SpaceId::Application).unwrap_or_default(),
            max_segments: usize::MAX,
            max_size: usize::from(path.search.size_in_use()),
            clears_quic_bit: may_clear,
        };
        match path.features.are_free() {
            true => all,
            false => self.limited_features(now, all, is_ahead()),
        }
    }

    #[cold]
    fn limited_features(&self, now: Time, all: FeatureUse, is_ahead: bool) -> FeatureUse {
        let features = &self.paths.active().features;
        let mut limited = FeatureUse {
            max_segments: features.max_segments(now, is_ahead),
            ..all
        };
        let is_tried = |support: &PathSupport| is_ahead && support.allows_trial(now);
        if features.marks.is_withheld() && is_tried(&features.marks) {
            limited.ecn = self.mark_of(SpaceId::Application).unwrap_or_default();
        }
        if features.cleared_bits.is_withheld() {
            limited.clears_quic_bit &= is_tried(&features.cleared_bits);
        }
        // A trial is sent without a batch. If no mark is set and no bit is cleared, there is no trial,
        // whose result could be waited for.
        let tries_mark = features.marks.is_withheld() && limited.ecn != Ecn::NotEct;
        let tries_bit = features.cleared_bits.is_withheld() && limited.clears_quic_bit;
        if tries_mark || tries_bit {
            limited.max_segments = 1;
        }
        limited
    }

    /// Returns the features of the next datagrams of the handshake. Their ECN mark depends on the
    /// packets in them. `None` if they may use none, because they repeat data that may have been lost.
    pub(crate) fn handshake_features(&self, now: Time, may_clear: bool) -> Option<FeatureUse> {
        let is_probing = |id| self.is_probing(id);
        if self.is_handshake_repeated || SpaceId::ALL.into_iter().any(is_probing) {
            return None;
        }
        Some(self.features(now, may_clear, || false))
    }

    /// Returns true if the next 1-RTT packets are probes after a timeout: these use no feature.
    #[inline]
    pub(crate) fn is_after_timeout(&self) -> bool {
        self.spaces.application.space.is_after_timeout && self.spaces.application.space.probes > 0
    }

    /// Records the ECN mark of a received packet. Only that of a client's first packet has an effect.
    ///
    /// A client that repeats its first flight sends it without a mark. If the network drops marked
    /// packets in both directions, an answer with marks would cost another timeout, so marks begin
    /// with a trial then. A client that never marks its first flight has no disadvantage: marks
    /// become useful with more data.
    #[inline]
    pub(crate) fn on_mark_received(&mut self, ecn: Ecn) {
        let is_first = self.stats.packets_sent == 0 && self.side.is_server();
        if is_first && ecn == Ecn::NotEct {
            self.paths.active_mut().features.marks = PathSupport::unproven();
        }
    }

    /// Returns the features that are disabled on the path in use.
    #[inline]
    pub(crate) fn withheld(&self) -> WithheldFeatures {
        self.paths.active().features.withheld()
    }

    /// Returns true if packets are marked only to try whether marks pass.
    #[inline]
    pub(super) fn are_marks_withheld(&self) -> bool {
        self.paths.active().features.marks.is_withheld()
    }

    /// Processes the acknowledgement of packets on the path in use.
    #[inline]
    pub(super) fn on_features_acked(&mut self, newest: &NewestByFeature) {
        let features = &mut self.paths.active_mut().features;
        for feature in FEATURES {
            if let Some(sent) = newest.get(feature)
                && features.get_mut(feature).on_acked(sent)
            {
                self.experience.on_confirmed(feature);
            }
        }
    }

    /// Processes the loss of packets on the path in use.
    pub(super) fn on_features_lost(&mut self, now: Time, lost: &LostByFeature) {
        let features = &mut self.paths.active_mut().features;
        for (feature, loss) in lost.of_each() {
            let support = features.get_mut(feature);
            let was_ruled_out = support.is_ruled_out();
            if !support.on_lost(now, &loss) {
                continue;
            }
            let is_new = support.is_ruled_out() && !was_ruled_out;
            self.experience.on_lost(feature, is_new);
            if is_new {
                self.stats.fallbacks.count(feature);
            }
        }
    }
}
