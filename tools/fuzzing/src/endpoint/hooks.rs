//! Modifications that a hostile peer makes before encryption.

use std::cell::RefCell;
use std::rc::Rc;

use courser_adversary::{Fate, Hooks, PacketToSend};
use courser_base::{RangeSet, Time};
use courser_crypto::Space;
use courser_wire::{ConnectionId, Frame, Frames, TransportParameters};

use crate::input::Input;

/// Instructions for the hooks of one peer.
#[derive(Default)]
pub(super) struct Orders {
    /// Values for transport parameters.
    parameters: Vec<(u8, u64)>,
    /// Modifications of CRYPTO data.
    edits: Vec<Edit>,
    /// Exempts packet number spaces from edits: bit 0 for Initial, bit 1 for Handshake.
    unedited_spaces: u8,
    acks: Acks,
}

/// A modification of one byte in a CRYPTO stream.
struct Edit {
    offset: u16,
    kind: u8,
    value: u8,
}

/// The packet numbers that a peer acknowledges.
#[derive(Clone, Copy, Default)]
enum Acks {
    #[default]
    Honest,
    None,
    /// An arbitrary range, given by its start and length.
    Any(u64, u64),
    /// Only the largest received packet number.
    Largest,
}

impl Orders {
    pub(super) fn read(input: &mut Input<'_>) -> Self {
        let mut orders = Self::default();
        for _ in 0..input.below(8) {
            orders.parameters.push((input.byte(), input.number()));
        }
        orders.read_edits(input);
        orders
    }

    pub(super) fn read_edits(&mut self, input: &mut Input<'_>) {
        self.edits.clear();
        let first = input.byte();
        self.unedited_spaces = first >> 4 & 3;
        for _ in 0..first & 15 {
            self.edits.push(Edit {
                offset: input.short() & 0x0fff,
                kind: input.byte(),
                value: input.byte(),
            });
        }
    }

    pub(super) fn read_acks(&mut self, input: &mut Input<'_>) {
        self.acks = match input.below(4) {
            0 => Acks::Honest,
            1 => Acks::None,
            2 => Acks::Any(input.number(), input.number()),
            _ => Acks::Largest,
        };
    }
}

/// Hooks that follow orders, which may change during the connection.
pub(super) struct Scripted(pub(super) Rc<RefCell<Orders>>);

impl Hooks for Scripted {
    fn edit_parameters(&mut self, parameters: &mut TransportParameters) {
        for &(which, value) in &self.0.borrow().parameters {
            edit(parameters, which, value);
        }
    }

    fn acknowledge(&mut self, _now: Time, _space: Space, received: &RangeSet) -> Option<RangeSet> {
        let mut ranges = RangeSet::default();
        match self.0.borrow().acks {
            Acks::Honest => return Some(received.clone()),
            Acks::None => return None,
            Acks::Any(start, len) => {
                let end = start.saturating_add(len).min(MAX_NUMBER);
                ranges.insert(start.min(end)..end + 1);
            }
            Acks::Largest => drop(ranges.insert_one(received.max()?)),
        }
        Some(ranges)
    }

    fn on_packet(&mut self, _now: Time, packet: &mut PacketToSend) -> Fate {
        let orders = self.0.borrow();
        let is_edited = match packet.space {
            Space::Initial => orders.unedited_spaces & 1 == 0,
            Space::Handshake => orders.unedited_spaces & 2 == 0,
            Space::Application => true,
        };
        if is_edited && !orders.edits.is_empty() {
            for frame in &mut packet.frames {
                edit_crypto(frame, &orders.edits);
            }
        }
        Fate::Send
    }
}

/// The largest packet number.
const MAX_NUMBER: u64 = (1 << 62) - 1;

/// Modifies the data of a CRYPTO frame. The length stays the same, so that later TLS messages keep
/// their offsets.
fn edit_crypto(bytes: &mut [u8], edits: &[Edit]) {
    let Some(Ok(Frame::Crypto(crypto))) = Frames::new(bytes).next() else {
        return;
    };
    let (offset, len) = (crypto.offset, crypto.data.len());
    let start = bytes.len() - len;
    for edit in edits {
        let Some(at) = u64::from(edit.offset).checked_sub(offset) else {
            continue;
        };
        let Some(byte) = usize::try_from(at)
            .ok()
            .filter(|&at| at < len)
            .and_then(|at| bytes.get_mut(start + at))
        else {
            continue;
        };
        match edit.kind % 3 {
            0 => *byte = edit.value,
            1 => *byte ^= edit.value,
            _ => *byte = byte.wrapping_add(edit.value),
        }
    }
}

/// Sets one transport parameter to `value`.
fn edit(parameters: &mut TransportParameters, which: u8, value: u64) {
    let flag = value & 1 == 1;
    match which % 18 {
        0 => parameters.max_idle_timeout = value,
        1 => parameters.max_udp_payload_size = value,
        2 => parameters.initial_max_data = value,
        3 => parameters.initial_max_stream_data_bidi_local = value,
        4 => parameters.initial_max_stream_data_bidi_remote = value,
        5 => parameters.initial_max_stream_data_uni = value,
        6 => parameters.initial_max_streams_bidi = value,
        7 => parameters.initial_max_streams_uni = value,
        8 => parameters.ack_delay_exponent = value,
        9 => parameters.max_ack_delay = value,
        10 => parameters.disable_active_migration = flag,
        11 => parameters.active_connection_id_limit = value,
        12 => parameters.min_ack_delay = Some(value),
        13 => parameters.max_datagram_frame_size = value,
        14 => parameters.stateless_reset_token = Some([value as u8; 16]),
        15 => parameters.initial_source_connection_id = id(value),
        16 => parameters.original_destination_connection_id = id(value),
        _ => parameters.retry_source_connection_id = id(value),
    }
}

fn id(value: u64) -> Option<ConnectionId> {
    let bytes = value.to_le_bytes();
    ConnectionId::new(&bytes[..(value & 7) as usize])
}
