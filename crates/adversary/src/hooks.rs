//! Hooks between a hostile connection and its keys.

use courser_base::{RangeSet, Time};
use courser_crypto::Space;
use courser_wire::{ConnectionId, Frame, TransportParameters};

use crate::connection::ID_LEN;

/// Decides about every packet of a [`Connection`](crate::Connection), before it is sealed and
/// after it was opened.
///
/// Every method has the behaviour of an honest endpoint as its default.
pub trait Hooks {
    /// Edits the transport parameters of this end before the handshake starts.
    fn edit_parameters(&mut self, _parameters: &mut TransportParameters) {}

    /// Appends to the encoded transport parameters.
    fn append_parameters(&mut self, _encoded: &mut Vec<u8>) {}

    /// Returns the length of this end's connection IDs, 8 to 20 bytes.
    fn id_len(&self) -> usize {
        ID_LEN
    }

    /// Returns how many bytes of the CRYPTO stream a packet carries.
    fn crypto_chunk(&self) -> usize {
        CRYPTO_CHUNK
    }

    /// Returns whether [`Seen`](crate::Seen) keeps the content of streams.
    fn keeps_streams(&self) -> bool {
        false
    }

    /// Inspects a received frame. The connection ignores the frame on [`Verdict::Ignore`].
    fn on_frame(&mut self, _now: Time, _space: Space, _frame: &Frame<'_>) -> Verdict {
        Verdict::Process
    }

    /// Returns the packet numbers to acknowledge; `None` sends no ACK frame.
    ///
    /// The result may name packets that never arrived.
    fn acknowledge(&mut self, _now: Time, _space: Space, received: &RangeSet) -> Option<RangeSet> {
        Some(received.clone())
    }

    /// Edits a packet before it is sealed, and decides what becomes of it.
    fn on_packet(&mut self, _now: Time, _packet: &mut PacketToSend) -> Fate {
        Fate::Send
    }
}

/// The treatment of a received frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Handles it as an honest endpoint does.
    Process,
    /// Handles it as if it had not arrived. Its packet counts as received.
    Ignore,
}

/// The treatment of a packet that is about to be sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Seals and sends it.
    Send,
    /// Seals it, and sends it twice.
    Duplicate,
    /// Drops it; its packet number is used up.
    Drop,
    /// Seals it now, and sends it after the next packet that is sent.
    Hold,
    /// Seals it now, and sends it in front of the next packet, in the same datagram.
    Join,
}

/// Data of one CRYPTO frame.
const CRYPTO_CHUNK: usize = 1000;

/// A packet before it is sealed. Every field may be edited.
#[derive(Clone, Debug)]
pub struct PacketToSend {
    /// Its packet number space.
    pub space: Space,
    /// Its packet number. Numbers that repeat or run backwards are sent as they are.
    pub number: u64,
    /// The connection ID that it is addressed to.
    pub destination: ConnectionId,
    /// Encoded frames in their order. Bytes that are no frame are sent as they are.
    pub frames: Vec<Vec<u8>>,
    /// Length of the datagram that PADDING frames fill, if it is shorter.
    pub pad_to: usize,
}

/// The hooks of an honest endpoint.
#[derive(Clone, Copy, Debug, Default)]
pub struct Honest;

impl Hooks for Honest {}
