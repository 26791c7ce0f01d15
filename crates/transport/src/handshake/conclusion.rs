//! The frames with which a server concludes a handshake: HANDSHAKE_DONE and NEW_TOKEN.
//! RFC 9000 §19.7, §19.20.

use std::time::Duration;

use bytes::Bytes;
use courser_base::Time;
use courser_wire::frame::{Frame, NewToken};

use crate::build::packet_builder::PacketBuilder;
use crate::space::sent::SentFrame;

/// The frames that a server sends when the handshake is complete.
#[derive(Debug, Default)]
pub(super) struct Conclusion {
    /// True if HANDSHAKE_DONE is due.
    sends_done: bool,
    /// Time at which HANDSHAKE_DONE was last sent, until it is acknowledged.
    done_sent: Option<Time>,
    /// True if the endpoint should create tokens.
    needs_tokens: bool,
    /// Tokens for the client's next connections.
    tokens: Vec<Bytes>,
    /// True if NEW_TOKEN frames are due.
    sends_tokens: bool,
}

impl Conclusion {
    /// Requests HANDSHAKE_DONE and tokens, when the handshake is complete.
    pub(super) fn begin(&mut self) {
        self.sends_done = true;
        self.needs_tokens = true;
    }

    /// Withdraws all frames, because the connection is over.
    pub(super) fn on_close(&mut self) {
        self.tokens = Vec::new();
        self.sends_tokens = false;
        self.sends_done = false;
    }

    /// Requests HANDSHAKE_DONE again, at most once per round trip, because the client seems not to have
    /// received it.
    pub(super) fn repeat_done(&mut self, now: Time, rtt: Duration) {
        if self.done_sent.is_some_and(|sent| now >= sent + rtt) {
            self.sends_done = true;
        }
    }

    /// Returns true once when the endpoint should create tokens.
    pub(super) fn take_token_request(&mut self) -> bool {
        std::mem::take(&mut self.needs_tokens)
    }

    /// Queues a NEW_TOKEN frame for each token.
    pub(super) fn queue_tokens(&mut self, tokens: Vec<Bytes>) {
        self.sends_tokens = !tokens.is_empty();
        self.tokens = tokens;
    }

    /// Returns true if a frame is due.
    #[inline]
    pub(super) fn has_frames_to_send(&self) -> bool {
        self.sends_done || self.sends_tokens
    }

    /// Writes the frames that are due. All NEW_TOKEN frames go into one packet.
    pub(super) fn write_frames(&mut self, now: Time, packet: &mut PacketBuilder<'_>) {
        if self.sends_done && packet.remaining() >= 1 {
            Frame::HandshakeDone.encode(packet.writer());
            packet.record(SentFrame::HandshakeDone);
            self.sends_done = false;
            self.done_sent = Some(now);
        }
        if !self.sends_tokens {
            return;
        }
        let frames = self.tokens.iter().map(|token| NewToken { token });
        let len: usize = frames.clone().map(|frame| frame.encoded_len()).sum();
        if len <= packet.remaining() {
            for frame in frames {
                frame.encode(packet.writer());
                packet.record(SentFrame::NewToken);
            }
            self.sends_tokens = false;
        }
    }

    /// Ends the repetition of HANDSHAKE_DONE, because the client has acknowledged it.
    pub(super) fn on_done_acked(&mut self) {
        self.done_sent = None;
    }

    /// Sends a lost HANDSHAKE_DONE again.
    pub(super) fn on_done_lost(&mut self) {
        self.sends_done = true;
    }

    /// Frees the tokens, which all arrived with the acknowledged packet.
    pub(super) fn on_tokens_acked(&mut self) {
        self.tokens = Vec::new();
    }

    /// Sends the tokens of a lost packet again, unless a copy of them was acknowledged.
    pub(super) fn on_tokens_lost(&mut self) {
        self.sends_tokens = !self.tokens.is_empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::sent::FrameLists;

    /// Writes the frames that are due into a packet of at most `room` bytes. Returns its size.
    fn write(conclusion: &mut Conclusion, now: Time, room: usize) -> usize {
        let (mut room, mut lists) = (vec![0; room], FrameLists::default());
        let mut packet = PacketBuilder::new(&mut room, &mut lists);
        conclusion.write_frames(now, &mut packet);
        packet.len()
    }

    #[test]
    fn done_is_repeated_once_per_round_trip_until_it_is_acknowledged() {
        let (mut conclusion, rtt) = (Conclusion::default(), Duration::from_millis(10));
        conclusion.repeat_done(Time::ZERO, rtt);
        assert!(!conclusion.has_frames_to_send(), "nothing was sent before");
        conclusion.begin();
        assert_eq!(write(&mut conclusion, Time::ZERO, 10), 1);
        conclusion.repeat_done(Time::ZERO + rtt / 2, rtt);
        assert!(!conclusion.has_frames_to_send());
        conclusion.repeat_done(Time::ZERO + rtt, rtt);
        assert!(conclusion.has_frames_to_send());
        assert_eq!(write(&mut conclusion, Time::ZERO + rtt, 10), 1);
        conclusion.on_done_acked();
        conclusion.repeat_done(Time::ZERO + rtt * 3, rtt);
        assert!(!conclusion.has_frames_to_send());
    }

    #[test]
    fn tokens_share_a_packet_and_are_sent_again_when_lost() {
        let mut conclusion = Conclusion::default();
        conclusion.queue_tokens(vec![Bytes::from_static(b"one"), Bytes::from_static(b"two")]);
        assert_eq!(write(&mut conclusion, Time::ZERO, 9), 0, "one would fit");
        assert_eq!(write(&mut conclusion, Time::ZERO, 10), 10);
        assert!(!conclusion.has_frames_to_send());
        conclusion.on_tokens_lost();
        assert!(conclusion.has_frames_to_send());
        conclusion.on_tokens_acked();
        conclusion.on_tokens_lost();
        assert!(!conclusion.has_frames_to_send(), "a copy has arrived");
    }

    #[test]
    fn tokens_are_requested_once() {
        let mut conclusion = Conclusion::default();
        assert!(!conclusion.take_token_request());
        conclusion.begin();
        assert!(conclusion.take_token_request());
        assert!(!conclusion.take_token_request());
    }

    #[test]
    fn no_frame_is_due_after_close() {
        let mut conclusion = Conclusion::default();
        conclusion.begin();
        conclusion.queue_tokens(vec![Bytes::from_static(b"token")]);
        conclusion.on_close();
        assert!(!conclusion.has_frames_to_send());
    }
}
