//! What a sent packet carried, so that its fate can reach the owners of its frames.

use courser_wire::{Direction, StreamId};

use crate::datagram::DatagramId;

/// One frame that somebody wants to hear about again when its packet is acked or lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SentFrame {
    /// An ACK whose largest number was this; when acked, older ranges need no repeating.
    Ack {
        /// Largest packet number acknowledged in it.
        largest: u64,
    },
    /// A PING: counts as ack-eliciting, nobody repeats it.
    Ping,
    /// A span of the CRYPTO stream of the packet's own space.
    Crypto {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u16,
    },
    /// A span of a stream.
    Stream {
        /// Which stream.
        id: StreamId,
        /// First byte.
        offset: u64,
        /// Bytes, possibly zero with `fin`.
        len: u16,
        /// The span ends the stream.
        fin: bool,
    },
    /// RESET_STREAM.
    ResetStream {
        /// Which stream.
        id: StreamId,
    },
    /// STOP_SENDING.
    StopSending {
        /// Which stream.
        id: StreamId,
    },
    /// MAX_DATA; a lost one is replaced by the limit of the day, unless that has arrived.
    MaxData {
        /// What it said.
        limit: u64,
    },
    /// MAX_STREAM_DATA.
    MaxStreamData {
        /// Which stream.
        id: StreamId,
        /// What it said.
        limit: u64,
    },
    /// MAX_STREAMS.
    MaxStreams {
        /// Which kind of streams.
        direction: Direction,
        /// What it said.
        limit: u64,
    },
    /// DATA_BLOCKED.
    DataBlocked {
        /// What it said.
        limit: u64,
    },
    /// STREAM_DATA_BLOCKED.
    StreamDataBlocked {
        /// Which stream.
        id: StreamId,
        /// What it said.
        limit: u64,
    },
    /// STREAMS_BLOCKED.
    StreamsBlocked {
        /// Which kind of streams.
        direction: Direction,
        /// What it said.
        limit: u64,
    },
    /// NEW_CONNECTION_ID.
    NewConnectionId {
        /// Sequence number of the ID.
        sequence: u64,
    },
    /// RETIRE_CONNECTION_ID.
    RetireConnectionId {
        /// Sequence number of the ID.
        sequence: u64,
    },
    /// NEW_TOKEN.
    NewToken,
    /// HANDSHAKE_DONE.
    HandshakeDone,
    /// PATH_CHALLENGE or PATH_RESPONSE: never repeated as such (RFC 9000 §13.3).
    PathProbe,
    /// ACK_FREQUENCY; a lost one is replaced by the request of the day.
    AckFrequency {
        /// Its sequence number.
        sequence: u64,
    },
    /// DATAGRAM frames whose fate is only counted.
    Datagrams {
        /// How many.
        count: u8,
    },
    /// A DATAGRAM frame whose fate is told.
    TrackedDatagram {
        /// Which one.
        id: DatagramId,
    },
    /// All of a datagram that probes for a larger size: tried again by its path's search.
    MtuProbe {
        /// Which probe of the path.
        probe: u32,
        /// Bytes of the datagram.
        size: u16,
        /// The path it was sent on.
        path: u32,
    },
}

impl SentFrame {
    /// True for datagrams, which are sent once.
    pub fn is_datagram(self) -> bool {
        matches!(self, Self::Datagrams { .. } | Self::TrackedDatagram { .. })
    }
}

/// The frames of one packet: at most one stream span, one ACK and a number of datagrams inline, the
/// rest in a recycled list that [`FrameLists`] keeps.
///
/// A bulk packet carries one stream span and nothing else, so it costs no list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SentFrames {
    stream_id: u64,
    offset: u64,
    ack_largest: u64,
    len: u16,
    flags: u8,
    /// Datagrams whose fate is only counted.
    datagrams: u8,
    /// Index + 1 of the list with everything else; 0 for none.
    list: u32,
}

const HAS_STREAM: u8 = 1;
const HAS_FIN: u8 = 2;
const HAS_ACK: u8 = 4;
const IS_MTU_PROBE: u8 = 8;
const HAS_DATAGRAMS: u8 = 16;

impl SentFrames {
    /// Adds a frame.
    fn push(&mut self, frame: SentFrame, pool: &mut Pool) {
        match frame {
            SentFrame::Ack { largest } if self.flags & HAS_ACK == 0 => {
                self.flags |= HAS_ACK;
                self.ack_largest = largest;
            }
            SentFrame::Stream {
                id,
                offset,
                len,
                fin,
            } if self.flags & HAS_STREAM == 0 => {
                self.flags |= HAS_STREAM | if fin { HAS_FIN } else { 0 };
                (self.stream_id, self.offset, self.len) = (id.value(), offset, len);
            }
            SentFrame::Datagrams { count } if self.flags & HAS_DATAGRAMS == 0 => {
                self.flags |= HAS_DATAGRAMS;
                self.datagrams = count;
            }
            other => {
                if matches!(other, SentFrame::MtuProbe { .. }) {
                    self.flags |= IS_MTU_PROBE;
                }
                pool.push(&mut self.list, other);
            }
        }
    }

    /// Calls `each` with every frame, in no particular order.
    pub fn for_each(&self, lists: &FrameLists, mut each: impl FnMut(SentFrame)) {
        if let Some(stream) = self.stream() {
            each(stream);
        }
        if self.flags & HAS_ACK != 0 {
            each(SentFrame::Ack {
                largest: self.ack_largest,
            });
        }
        if self.flags & HAS_DATAGRAMS != 0 {
            let count = self.datagrams;
            each(SentFrame::Datagrams { count });
        }
        lists.pool.frames(self.list).iter().copied().for_each(each);
    }

    /// The inline stream span, if there is one.
    pub fn stream(&self) -> Option<SentFrame> {
        (self.flags & HAS_STREAM != 0).then(|| SentFrame::Stream {
            id: StreamId::from_value(self.stream_id),
            offset: self.offset,
            len: self.len,
            fin: self.flags & HAS_FIN != 0,
        })
    }

    /// True when a stream span is all there is.
    pub fn is_only_stream(&self) -> bool {
        self.list == 0 && self.flags & (HAS_STREAM | HAS_ACK | HAS_DATAGRAMS) == HAS_STREAM
    }

    /// True for a datagram that probes for a larger size.
    pub fn is_mtu_probe(&self) -> bool {
        self.flags & IS_MTU_PROBE != 0
    }

    /// Gives the list back; every record ends with this call.
    pub fn release(self, lists: &mut FrameLists) {
        lists.pool.release(self.list);
    }
}

/// The record of the packet being built, and the lists of packets with more than one stream span
/// and one ACK, recycled.
///
/// The record stays in here until its packet is sealed: copied right after its fields were
/// written it would wait for each of them to leave the store buffer.
#[derive(Debug, Default)]
pub struct FrameLists {
    current: SentFrames,
    pool: Pool,
}

#[derive(Debug, Default)]
struct Pool {
    lists: Vec<Vec<SentFrame>>,
    free: Vec<u32>,
}

impl FrameLists {
    /// Starts the record of a packet.
    #[inline]
    pub fn start(&mut self) {
        self.current = SentFrames::default();
    }

    /// Adds a frame to the record of the packet being built.
    #[inline]
    pub fn push(&mut self, frame: SentFrame) {
        self.current.push(frame, &mut self.pool);
    }

    /// The record of the packet that was built.
    #[inline]
    pub fn take(&mut self) -> SentFrames {
        self.current
    }

    /// How many lists are in use.
    #[cfg(test)]
    pub fn in_use(&self) -> usize {
        self.pool.in_use()
    }

    /// Gives the memory of unused lists back, when none is in use.
    pub fn shrink(&mut self) {
        if self.pool.in_use() == 0 {
            self.pool = Pool::default();
        }
    }
}

impl Pool {
    fn push(&mut self, list: &mut u32, frame: SentFrame) {
        if *list == 0 {
            let index = self.free.pop().unwrap_or_else(|| {
                self.lists.push(Vec::new());
                u32::try_from(self.lists.len() - 1).expect("sent packets are capped far below 2^32")
            });
            *list = index + 1;
        }
        self.lists[*list as usize - 1].push(frame);
    }

    fn frames(&self, list: u32) -> &[SentFrame] {
        if list == 0 {
            &[]
        } else {
            &self.lists[list as usize - 1]
        }
    }

    fn release(&mut self, list: u32) {
        if list == 0 {
            return;
        }
        self.lists[list as usize - 1].clear();
        self.free.push(list - 1);
        if self.in_use() == 0 && self.lists.len() > KEPT_LISTS {
            *self = Self::default();
        }
    }

    fn in_use(&self) -> usize {
        self.lists.len() - self.free.len()
    }
}

/// An idle connection keeps no more list heads than this.
const KEPT_LISTS: usize = 256;

#[cfg(test)]
mod tests;
