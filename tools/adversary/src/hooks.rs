//! Hooks between a hostile connection and its keys.

use courser_base::{RangeSet, Time};
use courser_crypto::Space;
use courser_wire::{ConnectionId, Frame, TransportParameters};

/// Modifies the packets of a [`Connection`](crate::Connection) before they are sealed and after they
/// were opened.
///
/// The default of every method is the behaviour of an honest endpoint.
pub trait Hooks {
    /// Edits the transport parameters of this end before the handshake starts.
    fn edit_parameters(&mut self, _parameters: &mut TransportParameters) {}

    /// Appends to the encoded transport parameters.
    fn append_parameters(&mut self, _encoded: &mut Vec<u8>) {}

    /// Returns the length of this end's connection IDs, 8 to 20 bytes.
    fn id_len(&self) -> usize {
        ID_LEN
    }

    /// Returns the number of CRYPTO stream bytes in each packet.
    fn crypto_chunk(&self) -> usize {
        CRYPTO_CHUNK
    }

    /// Returns true if [`Seen`](crate::Seen) keeps the content of streams.
    fn keeps_streams(&self) -> bool {
        false
    }

    /// Inspects a received frame and decides whether the connection processes it.
    fn on_frame(&mut self, _now: Time, _space: Space, _frame: &Frame<'_>) -> Verdict {
        Verdict::Process
    }

    /// Returns the packet numbers to acknowledge, or `None` to send no ACK frame.
    ///
    /// The result may contain packets that never arrived.
    fn acknowledge(&mut self, _now: Time, _space: Space, received: &RangeSet) -> Option<RangeSet> {
        Some(received.clone())
    }

    /// Edits a packet before it is sealed, and decides its fate.
    fn on_packet(&mut self, _now: Time, _packet: &mut PacketToSend) -> Fate {
        Fate::Send
    }
}

/// The treatment of a received frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Processes the frame as an honest endpoint does.
    Process,
    /// Ignores the frame. Its packet still counts as received.
    Ignore,
}

/// The treatment of a packet that is about to be sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Seals and sends the packet.
    Send,
    /// Seals the packet and sends it twice.
    Duplicate,
    /// Drops the packet. Its packet number is not used again.
    Drop,
    /// Seals the packet now, and sends it after the next one.
    Hold,
    /// Seals the packet now, and sends it in front of the next one in the same datagram.
    Join,
}

/// The length of hostile connections' IDs, unless their hooks choose another.
pub const ID_LEN: usize = 8;

/// The default number of data bytes in one CRYPTO frame.
const CRYPTO_CHUNK: usize = 1000;

/// A packet before it is sealed. Every field may be edited.
#[derive(Clone, Debug)]
pub struct PacketToSend {
    /// The packet number space.
    pub space: Space,
    /// The packet number. Repeated and decreasing numbers are sent unchanged.
    pub number: u64,
    /// The Destination Connection ID.
    pub destination: ConnectionId,
    /// Encoded frames in order. Bytes that are not a frame are sent unchanged.
    pub frames: Vec<Vec<u8>>,
    /// The length to which PADDING frames extend a shorter datagram.
    pub pad_to: usize,
}

/// The hooks of an honest endpoint.
#[derive(Clone, Copy, Debug, Default)]
pub struct Honest;

impl Hooks for Honest {}
