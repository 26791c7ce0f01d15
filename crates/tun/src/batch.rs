//! The memory of readers and writers, and what a device can do for them.

use bytes::BytesMut;

use crate::MAX_PACKET;
use crate::header::Header;
use crate::join::Joiner;

/// The offloads of a device, which are those that the system has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offloads {
    /// The system leaves checksums to this crate.
    pub checksum: bool,
    /// Segments of TCP come as super-packets of up to 64 KiB.
    pub tcp: bool,
    /// Datagrams of UDP that a program sent with one call come as super-packets, and runs of them are taken (Linux 6.2).
    pub udp: bool,
}

/// The buffer of a reader, which its packets share. Keep it between calls.
#[derive(Debug)]
pub struct ReadBuffer {
    /// A packet as the system writes it, with its header.
    pub(crate) raw: Box<[u8]>,
    /// The rest of the allocation for packets.
    pub(crate) packets: BytesMut,
    /// Packets that contradicted their header.
    pub(crate) malformed: u64,
    /// The last call ended because the device had no more.
    pub(crate) is_drained: bool,
}

/// The memory of a writer. Keep it between calls.
#[derive(Debug, Default)]
pub struct WriteBuffer {
    pub(crate) joiner: Joiner,
}

/// The outcome of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Packets that the system took.
    pub packets: usize,
    /// System calls for them.
    pub calls: usize,
    /// Packets that the system refused: malformed ones, all while the interface is down, and those without memory.
    pub dropped: usize,
}

impl ReadBuffer {
    /// Allocates a buffer, some 64 KiB.
    pub fn new() -> Self {
        Self {
            raw: vec![0; Header::LEN + MAX_PACKET].into_boxed_slice(),
            packets: BytesMut::new(),
            malformed: 0,
            is_drained: false,
        }
    }

    /// Returns the number of packets that were dropped because they contradicted their header.
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Returns true if the last call has read everything that was there, so that the next one can wait for the
    /// descriptor.
    pub const fn is_drained(&self) -> bool {
        self.is_drained
    }
}

impl Default for ReadBuffer {
    fn default() -> Self {
        Self::new()
    }
}

impl WriteBuffer {
    /// Returns an empty buffer, which grows with the first write.
    pub fn new() -> Self {
        Self::default()
    }
}
