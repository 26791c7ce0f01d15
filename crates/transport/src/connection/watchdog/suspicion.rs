//! Limits frames that cost work without progress. RFC 9000 §21.9.

use std::time::Duration;

use courser_base::Time;

use crate::connection::effects::ReceivedFrames;
use crate::error::TransportError;

/// Counts the frames of a peer that bring no progress (limit K17).
///
/// Honest peers send such frames too: a PING now and then, or an ACK without new ranges. So a bucket of
/// [`BURST`] refills with time and with every packet that brings progress. Only a peer that sends
/// little else empties it.
///
/// Repeated STREAM and credit frames, and those of a peer that waits for credit, have a bucket of
/// their own (limit K83). A peer may have to retransmit everything, several times on a path that loses
/// most packets, and it may report each stream that it has to wait for. So each frame with new
/// content offsets [`REPEATS_PER_FRESH`] repeated ones, at any later time.
#[derive(Debug)]
pub(in crate::connection) struct Suspicion {
    left: u32,
    refilled: Time,
    repeats_left: u64,
}

/// Frames without progress that are tolerated at once.
pub(in crate::connection) const BURST: u32 = 2_000;

/// Repeated frames that are tolerated at once.
pub(in crate::connection) const REPEATS: u64 = 10_000;

/// Repeated frames that one frame with new content offsets.
pub(in crate::connection) const REPEATS_PER_FRESH: u64 = 8;

/// The interval at which time offsets one frame: 100 a second.
const REFILL: Duration = Duration::from_millis(10);

impl Suspicion {
    pub(in crate::connection) fn new(now: Time) -> Self {
        Self {
            left: BURST,
            refilled: now,
            repeats_left: REPEATS,
        }
    }

    /// Returns the numbers of frames without progress and of repeated frames that are not offset.
    #[cfg(test)]
    pub(in crate::connection) fn used(&self) -> (u32, u64) {
        let repeats = REPEATS.saturating_sub(self.repeats_left);
        (BURST - self.left, repeats)
    }

    /// Judges a packet that was processed.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION when the peer exceeds a limit.
    pub(in crate::connection) fn judge(
        &mut self,
        now: Time,
        packet: &ReceivedFrames,
    ) -> Result<(), TransportError> {
        if !self.on_packet(now, packet.idle, packet.has_progress) {
            let reason = "too many frames without progress";
            return Err(TransportError::protocol_violation(reason));
        }
        if !self.on_repetitions(now, packet.repetitions, packet.fresh) {
            let reason = "too many repeated frames";
            return Err(TransportError::protocol_violation(reason));
        }
        Ok(())
    }

    /// Counts the STREAM and credit frames of a packet: `repetitions` of known content, and `fresh` ones.
    /// Returns false if the peer exceeds the limit.
    pub(in crate::connection) fn on_repetitions(
        &mut self,
        now: Time,
        repetitions: u32,
        fresh: u32,
    ) -> bool {
        if repetitions > 0 {
            self.refill(now);
        }
        let earned = u64::from(fresh) * REPEATS_PER_FRESH;
        self.repeats_left = self.repeats_left.saturating_add(earned);
        match self.repeats_left.checked_sub(u64::from(repetitions)) {
            Some(left) => {
                self.repeats_left = left;
                true
            }
            None => false,
        }
    }

    /// Counts the frames of a packet: `idle` of them bring no progress, and `progress` is true if another one
    /// does. Returns false if the peer exceeds the limit.
    pub(in crate::connection) fn on_packet(
        &mut self,
        now: Time,
        idle: u32,
        progress: bool,
    ) -> bool {
        if progress {
            self.left = self.left.saturating_add(1).min(BURST);
        }
        if idle == 0 {
            return true;
        }
        self.refill(now);
        match self.left.checked_sub(idle) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    fn refill(&mut self, now: Time) {
        let elapsed = now - self.refilled;
        let earned = elapsed.as_nanos() / REFILL.as_nanos();
        let Ok(earned @ 1..) = u32::try_from(earned) else {
            if earned > 0 {
                (self.left, self.refilled) = (BURST, now);
                self.repeats_left = self.repeats_left.max(REPEATS);
            }
            return;
        };
        self.refill_repeats(earned);
        self.left = self.left.saturating_add(earned).min(BURST);
        self.refilled += REFILL * earned;
    }

    /// Refills the bucket of repeated frames with time, up to the burst, because an idle peer may repeat its
    /// last frame with each probe.
    fn refill_repeats(&mut self, earned: u32) {
        if self.repeats_left < REPEATS {
            self.repeats_left = (self.repeats_left + u64::from(earned)).min(REPEATS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_is_tolerated_and_one_more_frame_is_not() {
        let mut suspicion = Suspicion::new(Time::ZERO);
        assert!((0..BURST).all(|_| suspicion.on_packet(Time::ZERO, 1, false)));
        assert!(!suspicion.on_packet(Time::ZERO, 1, false));
    }

    #[test]
    fn hundred_frames_a_second_are_always_tolerated() {
        let mut suspicion = Suspicion::new(Time::ZERO);
        for step in 0..100_000u32 {
            assert!(
                suspicion.on_packet(Time::ZERO + REFILL * step, 1, false),
                "step {step}"
            );
        }
    }

    #[test]
    fn progress_offsets_frames_without_it() {
        let mut suspicion = Suspicion::new(Time::ZERO);
        for _ in 0..10 * BURST {
            assert!(suspicion.on_packet(Time::ZERO, 1, true));
        }
    }

    #[test]
    fn all_content_may_be_repeated_several_times() {
        let mut suspicion = Suspicion::new(Time::ZERO);
        let fresh = 1_000_000_u32;
        assert!((0..fresh).all(|_| suspicion.on_repetitions(Time::ZERO, 0, 1)));
        let allowed = REPEATS + u64::from(fresh) * REPEATS_PER_FRESH;
        assert!((0..allowed).all(|_| suspicion.on_repetitions(Time::ZERO, 1, 0)));
        assert!(!suspicion.on_repetitions(Time::ZERO, 1, 0));
    }

    #[test]
    fn hundred_repeated_frames_a_second_are_always_tolerated() {
        let mut suspicion = Suspicion::new(Time::ZERO);
        for step in 0..100_000u32 {
            let now = Time::ZERO + REFILL * step;
            assert!(suspicion.on_repetitions(now, 1, 0), "step {step}");
        }
    }

    #[test]
    fn a_clock_that_jumps_far_fills_the_bucket() {
        let mut suspicion = Suspicion::new(Time::ZERO);
        assert!(suspicion.on_packet(Time::ZERO, BURST, false));
        assert!(suspicion.on_packet(Time::MAX, BURST, false));
        assert!(!suspicion.on_packet(Time::MAX, 1, false));
    }
}
