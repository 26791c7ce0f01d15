//! PATH_CHALLENGE and PATH_RESPONSE frames. RFC 9000 §8.2.

use std::time::Duration;

use courser_base::Time;
use courser_wire::frame::{PathChallenge, PathResponse};
use courser_wire::packet::MIN_INITIAL_DATAGRAM;

use super::paths::{PathIndex, Paths};
use crate::build::packet_builder::PacketBuilder;
use crate::rng::Rng;
use crate::space::sent::SentFrame;

/// The frames of a path that were written into a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Written {
    /// True if there is at least one, so that the datagram must have full size (RFC 9000 §8.2.1, §8.2.2).
    pub(crate) any: bool,
    /// True if the first PATH_CHALLENGE of a validation was written.
    pub(crate) begins_probing: bool,
}

impl Paths {
    /// Writes the frames that wait on a path.
    pub(crate) fn write_frames(
        &mut self,
        now: Time,
        index: PathIndex,
        packet: &mut PacketBuilder<'_>,
        rng: &mut Rng,
    ) -> Written {
        let mut written = Written::default();
        let Some(path) = self.get_mut(index).filter(|path| path.has_frames_to_send()) else {
            return written;
        };
        // Fresh unpredictable bytes, drawn only when they are needed (§8.2.1).
        let challenge = path.is_challenge_due().then(|| rng.array());
        while let Some(data) = path.validation.response()
            && packet.remaining() >= PROBE_FRAME
        {
            PathResponse { data }.encode(packet.writer());
            packet.record(SentFrame::PathResponse);
            path.validation.on_response_sent();
            written.any = true;
        }
        if let Some(data) = challenge
            && packet.remaining() >= PROBE_FRAME
        {
            PathChallenge { data }.encode(packet.writer());
            packet.record(SentFrame::PathChallenge);
            // The datagram is padded as far as the amplification limit permits.
            let is_full = path.budget() >= MIN_INITIAL_DATAGRAM as u64;
            let was_probing = path.validation.is_probing();
            path.validation.on_challenge_sent(now, data, is_full);
            written.begins_probing = !was_probing && path.validation.is_probing();
            written.any = true;
        }
        written
    }

    /// Processes a PATH_CHALLENGE frame, which is answered on the path where it arrived (§8.2.2).
    ///
    /// A peer that probes a path may soon move to it. A challenge beside the response validates the path
    /// before that, so that no amplification limit applies after the move. `pto` is the probe timeout
    /// of the path in use.
    pub(crate) fn on_challenge(
        &mut self,
        now: Time,
        index: PathIndex,
        data: [u8; 8],
        pto: Duration,
    ) {
        let pto = self.validation_pto(pto);
        let may_become_active = self.peer_may_move() && index != self.active;
        let Some(path) = self.get_mut(index) else {
            return;
        };
        path.validation.on_challenge(data);
        if may_become_active && !path.amplification.is_validated() {
            path.validation.start(now, pto);
        }
    }
}

/// PATH_CHALLENGE and PATH_RESPONSE: type and eight bytes.
const PROBE_FRAME: usize = 9;

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use courser_base::FourTuple;

    use super::*;
    use crate::path::Path;
    use crate::path::paths::PeerMoves;
    use crate::space::sent::FrameLists;

    fn paths() -> Paths {
        let tuple = FourTuple::to(SocketAddr::from(([127, 0, 0, 1], 1)));
        Paths::new(Path::new(tuple, 0), Duration::ZERO)
    }

    fn write(paths: &mut Paths, capacity: usize) -> (usize, Written) {
        let (mut room, mut lists) = (vec![0; capacity], FrameLists::default());
        let mut packet = PacketBuilder::new(&mut room, &mut lists);
        let mut rng = Rng::new([7; 32]);
        let written = paths.write_frames(Time::ZERO, 0, &mut packet, &mut rng);
        (packet.len(), written)
    }

    #[test]
    fn path_without_pending_frames_writes_nothing() {
        assert_eq!(write(&mut paths(), 100), (0, Written::default()));
    }

    #[test]
    fn response_is_written_once() {
        let mut paths = paths();
        paths.on_challenge(Time::ZERO, 0, [1; 8], Duration::ZERO);
        assert_eq!(write(&mut paths, 8), (0, Written::default()), "no room");
        let (len, written) = write(&mut paths, 100);
        assert_eq!((len, written.any, written.begins_probing), (9, true, false));
        assert_eq!(write(&mut paths, 100), (0, Written::default()));
    }

    #[test]
    fn all_pending_responses_share_a_packet() {
        let mut paths = paths();
        for data in [[1; 8], [2; 8]] {
            paths.on_challenge(Time::ZERO, 0, data, Duration::ZERO);
        }
        let (len, written) = write(&mut paths, 12);
        assert_eq!((len, written.any), (9, true), "no room for the second");
        paths.on_challenge(Time::ZERO, 0, [3; 8], Duration::ZERO);
        assert_eq!(write(&mut paths, 100).0, 18);
        assert_eq!(write(&mut paths, 100), (0, Written::default()));
    }

    /// Adds a path from another port of the peer, at which packets have arrived.
    fn with_second_path(paths: &mut Paths) -> PathIndex {
        let tuple = FourTuple::to(SocketAddr::from(([127, 0, 0, 1], 2)));
        let index = paths.add(Time::ZERO, tuple, Duration::ZERO, || 1);
        let index = index.expect("the first one");
        paths.table[index].amplification.on_received(1200);
        index
    }

    fn is_validating(paths: &Paths, index: PathIndex) -> bool {
        paths.table[index].validation.is_in_progress()
    }

    #[test]
    fn path_that_the_peer_probes_is_challenged_at_once() {
        let mut paths = paths();
        let index = with_second_path(&mut paths);
        assert!(!is_validating(&paths, index));
        paths.on_challenge(Time::ZERO, index, [1; 8], Duration::ZERO);
        assert!(is_validating(&paths, index) && !is_validating(&paths, 0));
        let (mut room, mut lists) = (vec![0; 100], FrameLists::default());
        let mut packet = PacketBuilder::new(&mut room, &mut lists);
        let written = paths.write_frames(Time::ZERO, index, &mut packet, &mut Rng::new([7; 32]));
        assert!(
            written.any && written.begins_probing,
            "the response and a challenge"
        );
        assert_eq!(packet.len(), 18);
    }

    #[test]
    fn probe_of_the_path_in_use_or_of_a_validated_one_starts_no_validation() {
        let mut paths = paths();
        paths.on_challenge(Time::ZERO, 0, [1; 8], Duration::ZERO);
        assert!(!is_validating(&paths, 0), "the path in use");
        let index = with_second_path(&mut paths);
        paths.table[index].amplification.on_validated();
        paths.on_challenge(Time::ZERO, index, [1; 8], Duration::ZERO);
        assert!(!is_validating(&paths, index), "a validated one");
    }

    #[test]
    fn client_does_not_challenge_the_paths_that_its_server_probes() {
        let mut paths = paths();
        let index = with_second_path(&mut paths);
        paths.set_peer_moves(PeerMoves::Nowhere);
        paths.on_challenge(Time::ZERO, index, [1; 8], Duration::ZERO);
        assert!(!is_validating(&paths, index));
    }

    #[test]
    fn response_and_challenge_share_a_packet() {
        let mut paths = paths();
        paths.on_challenge(Time::ZERO, 0, [1; 8], Duration::ZERO);
        paths
            .active_mut()
            .validation
            .start(Time::ZERO, Duration::ZERO);
        let (len, written) = write(&mut paths, 100);
        assert_eq!((len, written.any, written.begins_probing), (18, true, true));
    }
}
