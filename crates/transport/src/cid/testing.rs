//! Helpers shared by the tests of this folder.

use courser_wire::{ConnectionId, Frame, Frames};

use crate::build::packet_builder::PacketBuilder;
use crate::space::sent::{FrameLists, SentFrame};

/// Returns an ID of eight bytes that depends on `number`.
pub(super) fn id(number: u64) -> ConnectionId {
    ConnectionId::new(&(number + 0x1d00).to_be_bytes()).unwrap()
}

/// Returns the token of [`id`].
pub(super) fn token(number: u64) -> [u8; 16] {
    (u128::from(number) + 0x70_0000).to_be_bytes()
}

/// Calls `write` with a packet of `capacity` bytes for frames. Returns the bytes of the frames and
/// the recorded frames.
pub(super) fn packet(
    capacity: usize,
    write: impl FnOnce(&mut PacketBuilder<'_>),
) -> (Vec<u8>, Vec<SentFrame>) {
    let mut bytes = vec![0; capacity];
    let mut lists = FrameLists::default();
    let mut builder = PacketBuilder::new(&mut bytes, &mut lists);
    write(&mut builder);
    let (len, sent) = builder.finish();
    let mut records = Vec::new();
    sent.for_each(&lists, |frame| records.push(frame));
    bytes.truncate(len);
    (bytes, records)
}

/// Decodes the frames in `bytes`.
pub(super) fn frames(bytes: &[u8]) -> Vec<Frame<'_>> {
    Frames::new(bytes)
        .map(|frame| frame.expect("our frames decode"))
        .collect()
}
