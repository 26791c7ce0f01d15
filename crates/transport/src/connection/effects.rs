//! Effects of received frames, as `dispatch` combines them from the results of the parts.

use courser_wire::frame::ConnectionClose;
use courser_wire::{Frame, PathId};

/// Effects of a frame on the life of the connection, which take place before the next frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct LifeEffects<'a> {
    /// True if the frame confirms the handshake (RFC 9001 §4.1.2).
    pub(super) confirms: bool,
    /// True if the path does not carry datagrams of the smallest size.
    pub(super) is_path_too_small: bool,
    /// True if a path is validated, which a client may wait for to migrate.
    pub(super) is_path_validated: bool,
    /// A path that the peer has given up, and this end had not.
    pub(super) abandoned: Option<PathId>,
    /// The frame with which the peer closes the connection.
    pub(super) close: Option<ConnectionClose<'a>>,
}

impl LifeEffects<'_> {
    /// Returns true if there is an effect.
    #[inline]
    pub(super) fn any(self) -> bool {
        self != Self::default()
    }
}

/// The progress that a frame brings to the end that processed it (RFC 9000 §21.9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FrameProgress {
    /// It costs work without any progress.
    Nothing,
    /// It counts neither for nor against the peer.
    Neutral,
    /// It brings data, an acknowledgement or state, and offsets one frame without progress.
    Progress,
    /// It brings new stream data, or acknowledges on one of several paths, and offsets repeated frames as well.
    Fresh,
    /// It raises a limit, which offsets repeated frames alone.
    Credit,
    /// It repeats known content. Honest peers do that when an acknowledgement is late or lost, or in large
    /// numbers while they wait for credit: Chromium sends a STREAMS_BLOCKED frame for each request that
    /// it has to queue, thousands of them for a page of thousands of images.
    Repetition,
}

impl FrameProgress {
    /// Returns [`FrameProgress::Progress`] or [`FrameProgress::Nothing`].
    #[inline]
    pub(super) fn of_progress(has_progress: bool) -> Self {
        match has_progress {
            true => Self::Progress,
            false => Self::Nothing,
        }
    }

    /// Returns the worth of an acknowledgement. Those of one path may be repeated on all others: picoquic acknowledges each path
    /// in each packet, so that more than half of its PATH_ACK frames bring nothing new.
    #[inline]
    pub(super) fn of_ack(frame: &Frame<'_>, has_progress: bool) -> Self {
        match (frame, has_progress) {
            (Frame::PathAck(_), true) => Self::Fresh,
            (Frame::PathAck(_), false) => Self::Repetition,
            _ => Self::of_progress(has_progress),
        }
    }

    /// Returns the worth of a frame that announces a limit, which is raised by it or not.
    #[inline]
    pub(super) fn of_credit(is_raised: bool) -> Self {
        match is_raised {
            true => Self::Credit,
            false => Self::Repetition,
        }
    }
}

/// The combined effects of the frames of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct ReceivedFrames {
    /// True if the packet must be acknowledged within the promised delay.
    pub(super) is_ack_eliciting: bool,
    /// True if there is an IMMEDIATE_ACK frame.
    pub(super) has_immediate_ack: bool,
    /// True if there is a STREAM frame with FIN, whose acknowledgement is due early.
    pub(super) ends_stream: bool,
    /// True if a part could not store a frame, so that the packet must not be acknowledged.
    pub(super) is_refused: bool,
    /// True if there are frames beside those that probe a path (RFC 9000 §9.1).
    pub(super) has_non_probing_frame: bool,
    /// True if there is a CRYPTO frame, so that TLS may have work.
    pub(super) has_crypto: bool,
    /// True if an Initial repeats CRYPTO data, because the peer has no acknowledgement of it.
    pub(super) repeats_hello: bool,
    /// True if an ack-eliciting packet of ours was acknowledged.
    pub(super) acknowledges: bool,
    /// True if a frame brought progress.
    pub(super) has_progress: bool,
    /// Number of frames without progress.
    pub(super) idle: u32,
    /// Number of STREAM and credit frames that repeat known content, and of frames that report a limit of ours.
    pub(super) repetitions: u32,
    /// Number of STREAM and credit frames with new content.
    pub(super) fresh: u32,
}

impl ReceivedFrames {
    /// Counts a frame by its progress.
    #[inline]
    pub(super) fn count(&mut self, progress: FrameProgress) {
        match progress {
            FrameProgress::Nothing => self.idle += 1,
            FrameProgress::Neutral => {}
            FrameProgress::Progress => self.has_progress = true,
            FrameProgress::Fresh => {
                self.has_progress = true;
                self.fresh += 1;
            }
            FrameProgress::Credit => self.fresh += 1,
            // Content that is refused is sent again, together with what was accepted.
            FrameProgress::Repetition => self.repetitions += u32::from(!self.is_refused),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_counted_by_their_progress() {
        // Kind, frames without progress, fresh ones, repetitions, progress.
        for (progress, idle, fresh, repetitions, has_progress) in [
            (FrameProgress::Nothing, 2, 0, 0, false),
            (FrameProgress::Neutral, 0, 0, 0, false),
            (FrameProgress::Progress, 0, 0, 0, true),
            (FrameProgress::Fresh, 0, 2, 0, true),
            (FrameProgress::Credit, 0, 2, 0, false),
            (FrameProgress::Repetition, 0, 0, 2, false),
        ] {
            let mut received = ReceivedFrames::default();
            received.count(progress);
            received.count(progress);
            let expected = ReceivedFrames {
                has_progress,
                idle,
                repetitions,
                fresh,
                ..ReceivedFrames::default()
            };
            assert_eq!(received, expected, "{progress:?}");
        }
    }

    #[test]
    fn repetitions_do_not_count_after_a_refusal() {
        let mut received = ReceivedFrames::default();
        received.count(FrameProgress::Repetition);
        received.is_refused = true;
        received.count(FrameProgress::Repetition);
        assert_eq!(received.repetitions, 1);
    }
}
