//! Effects of received frames, as `dispatch` combines them from the answers of the parts.

use courser_wire::frame::ConnectionClose;

/// Effects of a frame on the life of the connection, which take place before the next frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct LifeEffects<'a> {
    /// The peer has confirmed the handshake.
    pub(super) confirms: bool,
    /// The path does not carry datagrams of the smallest size.
    pub(super) is_path_too_small: bool,
    /// The peer has answered on a path, which a client may have waited for.
    pub(super) is_path_validated: bool,
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

/// The value of a frame for the end that processed it (RFC 9000 §21.9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Worth {
    /// It costs work and brings nothing.
    Nothing,
    /// It counts neither for nor against the peer.
    Neutral,
    /// It makes progress.
    Progress,
    /// It makes progress, and pays for frames that repeat what is known.
    Fresh,
    /// It raises a limit, which pays for frames that repeat what is known.
    Credit,
    /// It repeats what is known. Honest peers do that when an acknowledgement is late or lost, or in large
    /// numbers while they wait for credit: Chromium sends a STREAMS_BLOCKED frame for each request that
    /// it has to queue, thousands of them for a page of thousands of images.
    Repetition,
}

impl Worth {
    /// Returns the worth of a frame that makes progress or none.
    #[inline]
    pub(super) fn of_progress(is_made: bool) -> Self {
        match is_made {
            true => Self::Progress,
            false => Self::Nothing,
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

/// The frames of a packet that were processed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct ReceivedFrames {
    /// The packet must be acknowledged some time.
    pub(super) is_ack_eliciting: bool,
    /// The peer wants an ACK at once.
    pub(super) wants_ack: bool,
    /// A stream ends.
    pub(super) ends_stream: bool,
    /// A part had no room: the packet must not be acknowledged.
    pub(super) is_refused: bool,
    /// There are frames beside those that probe a path (RFC 9000 §9.1).
    pub(super) is_beyond_probing: bool,
    /// CRYPTO data arrived.
    pub(super) has_crypto: bool,
    /// An Initial repeats CRYPTO data: the peer has no acknowledgement of it.
    pub(super) repeats_hello: bool,
    /// An ack-eliciting packet of ours was acknowledged.
    pub(super) acknowledges: bool,
    /// A frame made progress for its sender.
    pub(super) has_progress: bool,
    /// Number of frames that brought nothing.
    pub(super) idle: u32,
    /// Number of STREAM and credit frames that repeat what is known, and of frames that report a limit of ours.
    pub(super) repetitions: u32,
    /// Number of STREAM and credit frames that brought something new.
    pub(super) fresh: u32,
}

impl ReceivedFrames {
    /// Counts a frame.
    #[inline]
    pub(super) fn count(&mut self, worth: Worth) {
        match worth {
            Worth::Nothing => self.idle += 1,
            Worth::Neutral => {}
            Worth::Progress => self.has_progress = true,
            Worth::Fresh => {
                self.has_progress = true;
                self.fresh += 1;
            }
            Worth::Credit => self.fresh += 1,
            // Content that is refused is sent again, together with what was accepted.
            Worth::Repetition => self.repetitions += u32::from(!self.is_refused),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_counted_by_their_worth() {
        // Worth, frames without progress, fresh ones, repetitions, progress.
        for (worth, idle, fresh, repetitions, has_progress) in [
            (Worth::Nothing, 2, 0, 0, false),
            (Worth::Neutral, 0, 0, 0, false),
            (Worth::Progress, 0, 0, 0, true),
            (Worth::Fresh, 0, 2, 0, true),
            (Worth::Credit, 0, 2, 0, false),
            (Worth::Repetition, 0, 0, 2, false),
        ] {
            let mut received = ReceivedFrames::default();
            received.count(worth);
            received.count(worth);
            let expected = ReceivedFrames {
                has_progress,
                idle,
                repetitions,
                fresh,
                ..ReceivedFrames::default()
            };
            assert_eq!(received, expected, "{worth:?}");
        }
    }

    #[test]
    fn nothing_is_a_repetition_once_a_part_has_refused() {
        let mut received = ReceivedFrames::default();
        received.count(Worth::Repetition);
        received.is_refused = true;
        received.count(Worth::Repetition);
        assert_eq!(received.repetitions, 1);
    }
}
