//! Effects of received frames.

use courser_wire::frame::Frame;

/// Effects of received frames, beyond the parts that took the frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Effects(u16);

impl Effects {
    /// The packet must be acknowledged some time.
    pub(super) const ACK_ELICITING: Self = Self(1);
    /// There are frames beside those that probe a path (RFC 9000 §9.1).
    pub(super) const BEYOND_PROBING: Self = Self(1 << 1);
    /// A part had no room: the packet must not be acknowledged.
    pub(super) const REFUSED: Self = Self(1 << 2);
    /// CRYPTO data arrived.
    pub(super) const CRYPTO: Self = Self(1 << 3);
    /// An Initial repeats CRYPTO data: the peer does not know that we have it.
    pub(super) const REPEATS_HELLO: Self = Self(1 << 4);
    /// A stream ends.
    pub(super) const ENDS_STREAM: Self = Self(1 << 5);
    /// The peer wants an ACK at once.
    pub(super) const WANTS_ACK: Self = Self(1 << 6);
    /// A STREAM frame has something new, or a credit frame raises a limit.
    pub(super) const NEWS: Self = Self(1 << 7);
    /// An ACK acknowledges something new, or proves something lost.
    pub(super) const SETTLED: Self = Self(1 << 8);
    /// The peer has confirmed the handshake.
    pub(super) const CONFIRMS: Self = Self(1 << 9);
    /// The path does not carry datagrams of the smallest size.
    pub(super) const PATH_TOO_SMALL: Self = Self(1 << 10);
    /// The peer closes the connection.
    pub(super) const CLOSES: Self = Self(1 << 11);

    /// The peer has answered on a path.
    pub(super) const PATH_VALIDATED: Self = Self(1 << 12);

    /// Effects that concern the life of the connection, and come before the next frame.
    const OF_LIFE: Self = Self::CONFIRMS
        .and(Self::PATH_TOO_SMALL)
        .and(Self::CLOSES)
        .and(Self::PATH_VALIDATED);

    /// Both effects.
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The effect if `is_so`, else none.
    #[inline]
    pub(super) const fn when(self, is_so: bool) -> Self {
        if is_so { self } else { Self(0) }
    }

    /// True when one of the effects is `other`.
    #[inline]
    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// True when the connection has to act before the next frame.
    #[inline]
    pub(super) const fn concern_life(self) -> bool {
        self.has(Self::OF_LIFE)
    }
}

/// The frames of a packet that were processed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Received {
    /// The effects of all frames.
    pub(super) effects: Effects,
    /// Frames that brought nothing.
    pub(super) idle: u32,
    /// A frame made progress for its sender.
    pub(super) has_progress: bool,
    /// STREAM and credit frames that brought what was known, and frames that report a limit of ours.
    pub(super) repeats: u32,
    /// STREAM and credit frames that brought something new.
    pub(super) news: u32,
}

impl Received {
    /// Counts a frame that had these effects.
    #[inline]
    pub(super) fn count(&mut self, frame: &Frame<'_>, effects: Effects) {
        let effects = effects
            .and(Effects::ACK_ELICITING.when(frame.is_ack_eliciting()))
            .and(Effects::BEYOND_PROBING.when(!frame.is_probing()));
        self.effects = self.effects.and(effects);
        match worth(frame, effects) {
            Worth::Nothing => self.idle += 1,
            Worth::Progress => self.has_progress = true,
            Worth::Neutral => {}
        }
        if is_repeatable(frame) {
            let has_news = effects.has(Effects::NEWS);
            self.news += u32::from(has_news);
            // What is refused now may come again: nothing before was kept either.
            let is_known = !has_news && !self.effects.has(Effects::REFUSED);
            self.repeats += u32::from(is_known);
        }
    }
}

/// The progress that a frame makes for its sender (RFC 9000 §21.9).
enum Worth {
    Nothing,
    Neutral,
    Progress,
}

fn worth(frame: &Frame<'_>, effects: Effects) -> Worth {
    match frame {
        Frame::Stream(frame) if frame.data.is_empty() && !frame.fin => Worth::Nothing,
        Frame::Stream(_) if effects.has(Effects::NEWS) => Worth::Progress,
        // What was here already pays for nothing, but honest peers repeat themselves too.
        Frame::Stream(_) => Worth::Neutral,
        // An empty one may mean something to the application, but pays for nothing.
        Frame::Datagram(frame) if !frame.data.is_empty() => Worth::Progress,
        Frame::Ack(_) if effects.has(Effects::SETTLED) => Worth::Progress,
        Frame::Ack(_)
        | Frame::Ping
        | Frame::PathChallenge(_)
        | Frame::NewToken(_)
        | Frame::ImmediateAck
        | Frame::AckFrequency(_) => Worth::Nothing,
        _ => Worth::Neutral,
    }
}

/// True for frames that honest peers send again when an acknowledgement is late or lost, or in large
/// numbers while they wait for credit: Chromium sends a STREAMS_BLOCKED frame for each request that it
/// has to queue, thousands of them for a page of thousands of images.
const fn is_repeatable(frame: &Frame<'_>) -> bool {
    match frame {
        // Empty ones count as frames without progress.
        Frame::Stream(frame) => !frame.data.is_empty() || frame.fin,
        Frame::MaxData(_) | Frame::MaxStreamData(_) | Frame::MaxStreams(_) => true,
        Frame::DataBlocked(_) | Frame::StreamDataBlocked(_) | Frame::StreamsBlocked(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use courser_wire::frame::{MaxData, PathResponse};

    use super::*;

    fn count(frames: &[(Frame<'_>, Effects)]) -> Received {
        let mut received = Received::default();
        for (frame, effects) in frames {
            received.count(frame, *effects);
        }
        received
    }

    fn max_data() -> Frame<'static> {
        Frame::MaxData(MaxData { limit: 1 })
    }

    #[test]
    fn pings_bring_nothing_and_ask_for_an_acknowledgement() {
        let received = count(&[(Frame::Ping, Effects::default()); 3]);
        assert_eq!((received.idle, received.has_progress), (3, false));
        assert!(received.effects.has(Effects::ACK_ELICITING));
        assert!(received.effects.has(Effects::BEYOND_PROBING));
    }

    #[test]
    fn frames_that_probe_a_path_do_not_count_as_more() {
        let frame = Frame::PathResponse(PathResponse { data: [1; 8] });
        let received = count(&[(frame, Effects::default())]);
        assert!(!received.effects.has(Effects::BEYOND_PROBING));
    }

    #[test]
    fn credit_that_is_known_is_a_repetition() {
        let received = count(&[
            (max_data(), Effects::NEWS),
            (max_data(), Effects::default()),
            (max_data(), Effects::default()),
        ]);
        assert_eq!((received.news, received.repeats), (1, 2));
    }

    #[test]
    fn reports_of_missing_credit_are_repetitions() {
        let blocked = courser_wire::frame::DataBlocked { limit: 1 };
        let received = count(&[(Frame::DataBlocked(blocked), Effects::default()); 3]);
        assert_eq!((received.idle, received.repeats), (0, 3));
        assert!(!received.has_progress);
    }

    #[test]
    fn nothing_is_a_repetition_once_a_part_has_refused() {
        let received = count(&[
            (max_data(), Effects::REFUSED),
            (max_data(), Effects::default()),
        ]);
        assert_eq!(received.repeats, 0);
    }

    #[test]
    fn only_effects_on_the_life_come_before_the_next_frame() {
        let quiet = Effects::CRYPTO.and(Effects::SETTLED);
        assert!(!quiet.concern_life());
        for effect in [
            Effects::CONFIRMS,
            Effects::PATH_TOO_SMALL,
            Effects::CLOSES,
            Effects::PATH_VALIDATED,
        ] {
            assert!(quiet.and(effect).concern_life());
        }
    }
}
