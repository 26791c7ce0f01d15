//! Resets of streams, which must deliver the header (draft-ietf-webtrans-http3-16 §4.4).

use courser_wire::Direction;

use crate::session_id::SessionId;
use crate::stream_header::StreamHeader;

/// The way to reset a stream that this end sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResetPlan {
    /// With RESET_STREAM_AT and this reliable size.
    At(u64),
    /// With RESET_STREAM at once.
    Now,
    /// With RESET_STREAM once the bytes up to this offset are acknowledged, so that both ends count the stream. Until
    /// then nothing else is sent on it.
    AfterAcknowledged(u64),
}

impl ResetPlan {
    /// Plans the reset of a stream.
    ///
    /// `reliable_reset` is that of the [`Agreement`](crate::Agreement), `kept` the number of bytes of the body that
    /// the peer receives before the reset, and `acknowledged` the number of bytes that it has acknowledged without
    /// a gap, with the header. Without RESET_STREAM_AT only the header is kept.
    pub fn new(
        direction: Direction,
        session: SessionId,
        reliable_reset: bool,
        kept: u64,
        acknowledged: u64,
    ) -> Self {
        let header = StreamHeader::new(direction, session).len() as u64;
        if reliable_reset {
            return Self::At(header.saturating_add(kept));
        }
        match acknowledged >= header {
            true => Self::Now,
            false => Self::AfterAcknowledged(header),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BIDI: Direction = Direction::Bidirectional;

    fn plan(reliable_reset: bool, kept: u64, acknowledged: u64) -> ResetPlan {
        let session = SessionId::new(256).expect("a session ID");
        ResetPlan::new(BIDI, session, reliable_reset, kept, acknowledged)
    }

    /// draft-ietf-webtrans-http3-16 §4.4; WT-h3-011, WT-h3-064, MT-004.
    #[test]
    fn reliable_size_has_the_header_and_what_is_kept() {
        assert_eq!(plan(true, 0, 0), ResetPlan::At(4));
        assert_eq!(plan(true, 100, 50), ResetPlan::At(104));
        assert_eq!(plan(true, u64::MAX, 0), ResetPlan::At(u64::MAX));
    }

    /// WT-v-016.
    #[test]
    fn without_reliable_resets_the_header_is_acknowledged_first() {
        assert_eq!(plan(false, 0, 0), ResetPlan::AfterAcknowledged(4));
        assert_eq!(plan(false, 100, 3), ResetPlan::AfterAcknowledged(4));
        assert_eq!(plan(false, 100, 4), ResetPlan::Now);
    }
}
