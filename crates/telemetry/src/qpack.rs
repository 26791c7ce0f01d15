//! Records of QPACK (RFC 9204).

use crate::Field;

/// An event of QPACK on a connection.
///
/// Each end has two dynamic tables: that of its encoder, and that of its decoder, which is a copy
/// of the peer's.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum QpackRecord {
    /// The size of a dynamic table or its counters changed.
    StateUpdated {
        /// True for the table of our decoder, which the peer's encoder fills.
        of_peer: bool,
        /// The state after the change.
        state: QpackState,
    },
    /// A stream became blocked on the dynamic table of our decoder, or is no longer blocked
    /// (RFC 9204 §2.2.1).
    StreamStateUpdated {
        /// The ID of the stream.
        stream: u64,
        /// True if it is blocked now.
        is_blocked: bool,
    },
    /// An entry was inserted into a dynamic table.
    EntryInserted {
        /// True for the table of our decoder.
        of_peer: bool,
        /// The absolute index of the entry (RFC 9204 §3.2.4).
        index: u64,
        /// The entry, as far as it may be recorded.
        field: Field,
    },
    /// The oldest entries of a dynamic table were evicted.
    EntriesEvicted {
        /// True for the table of our decoder.
        of_peer: bool,
        /// The absolute index of the first evicted entry.
        first: u64,
        /// The number of evicted entries.
        count: u64,
    },
    /// An instruction of this end is about to be sent.
    InstructionCreated(QpackInstruction),
    /// An instruction of the peer was received.
    InstructionParsed(QpackInstruction),
}

/// The size of a dynamic table and its counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QpackState {
    /// Its capacity in bytes.
    pub capacity: usize,
    /// The size of all its entries in bytes.
    pub size: usize,
    /// The number of insertions so far.
    pub insert_count: u64,
    /// The number of insertions that the decoder has acknowledged (RFC 9204 §2.1.4).
    pub known_received_count: u64,
}

/// An instruction of an encoder or of a decoder (RFC 9204 §4.3, §4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum QpackInstruction {
    /// Set Dynamic Table Capacity (RFC 9204 §4.3.1).
    SetCapacity {
        /// The capacity in bytes.
        capacity: u64,
    },
    /// Insert with Name Reference (RFC 9204 §4.3.2).
    InsertWithNameReference {
        /// True if `index` is one of the static table.
        is_static: bool,
        /// The index of the entry with the name, as on the wire.
        index: u64,
        /// True if the value is Huffman-coded.
        is_huffman: bool,
        /// The length of the value on the wire in bytes.
        value_len: usize,
    },
    /// Insert with Literal Name (RFC 9204 §4.3.3).
    InsertWithLiteralName {
        /// True if the name is Huffman-coded.
        is_huffman_name: bool,
        /// The length of the name on the wire in bytes.
        name_len: usize,
        /// True if the value is Huffman-coded.
        is_huffman_value: bool,
        /// The length of the value on the wire in bytes.
        value_len: usize,
    },
    /// Duplicate (RFC 9204 §4.3.4).
    Duplicate {
        /// The index of the entry, as on the wire.
        index: u64,
    },
    /// Section Acknowledgment (RFC 9204 §4.4.1).
    SectionAcknowledgment {
        /// The stream of the section.
        stream: u64,
    },
    /// Stream Cancellation (RFC 9204 §4.4.2).
    StreamCancellation {
        /// The ID of the stream.
        stream: u64,
    },
    /// Insert Count Increment (RFC 9204 §4.4.3).
    InsertCountIncrement {
        /// The number of further insertions that were received.
        increment: u64,
    },
}
