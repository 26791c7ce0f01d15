//! Records of the frames in sent packets, for the parts that sent them: each is notified when its frame is
//! acknowledged or lost.

use courser_base::Time;
use courser_wire::{Direction, PathId, StreamId};

use crate::datagram::DatagramId;
use crate::frame_counts::{FrameCounts, FrameTally};

/// A frame whose owner is notified when its packet is acknowledged or lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SentFrame {
    /// An ACK. Once it is acknowledged, later ACKs omit the ranges up to `largest`.
    Ack {
        /// The largest packet number that it acknowledges.
        largest: u64,
    },
    /// A PING, which makes the packet ack-eliciting and is never repeated.
    Ping,
    /// An IMMEDIATE_ACK, which is never repeated.
    ImmediateAck,
    /// A PING that the application requested to measure its round trip.
    MeasuredPing {
        /// The newest request for which it was sent.
        request: u64,
        /// The time at which it was sent.
        sent: Time,
    },
    /// A span of the CRYPTO stream of the packet's own space.
    Crypto {
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        len: u16,
    },
    /// A span of a stream.
    Stream {
        /// The stream.
        id: StreamId,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes, possibly zero with `fin`.
        len: u16,
        /// True if the span ends the stream.
        fin: bool,
    },
    /// RESET_STREAM: repeated with the same contents.
    ResetStream {
        /// The stream.
        id: StreamId,
    },
    /// RESET_STREAM_AT: replaced by one with the current reliable size.
    ResetStreamAt {
        /// The stream.
        id: StreamId,
        /// The number of bytes that it promises to deliver.
        reliable_size: u64,
    },
    /// STOP_SENDING: repeated until all data or a reset arrives.
    StopSending {
        /// The stream.
        id: StreamId,
    },
    /// MAX_DATA: replaced by the current limit, unless that was acknowledged.
    MaxData {
        /// The limit that it announces.
        limit: u64,
    },
    /// MAX_STREAM_DATA: replaced by the current limit, unless that was acknowledged.
    MaxStreamData {
        /// The stream.
        id: StreamId,
        /// The limit that it announces.
        limit: u64,
    },
    /// MAX_STREAMS: replaced by the current limit, unless that was acknowledged.
    MaxStreams {
        /// The direction of the streams.
        direction: Direction,
        /// The limit that it announces.
        limit: u64,
    },
    /// DATA_BLOCKED: repeated while data is still blocked.
    DataBlocked {
        /// The limit that it reports.
        limit: u64,
    },
    /// STREAM_DATA_BLOCKED: repeated while data is still blocked.
    StreamDataBlocked {
        /// The stream.
        id: StreamId,
        /// The limit that it reports.
        limit: u64,
    },
    /// STREAMS_BLOCKED: repeated while the application still waits for a stream.
    StreamsBlocked {
        /// The direction of the streams.
        direction: Direction,
        /// The limit that it reports.
        limit: u64,
    },
    /// NEW_CONNECTION_ID: repeated with the same ID, unless that was retired.
    NewConnectionId {
        /// Sequence number of the ID.
        sequence: u64,
    },
    /// RETIRE_CONNECTION_ID: repeated.
    RetireConnectionId {
        /// Sequence number of the ID.
        sequence: u64,
    },
    /// NEW_TOKEN: repeated.
    NewToken,
    /// HANDSHAKE_DONE: repeated until it is acknowledged.
    HandshakeDone,
    /// PATH_CHALLENGE: replaced by one with other data (RFC 9000 §13.3).
    PathChallenge,
    /// PATH_RESPONSE: never repeated (RFC 9000 §13.3).
    PathResponse,
    /// ACK_FREQUENCY: replaced by the current request.
    AckFrequency {
        /// Sequence number of the request.
        sequence: u64,
    },
    /// DATAGRAM frames whose acknowledgement or loss is only counted.
    Datagrams {
        /// Number of DATAGRAM frames.
        count: u8,
    },
    /// A DATAGRAM frame whose acknowledgement or loss the application is told.
    TrackedDatagram {
        /// The ID under which it is reported.
        id: DatagramId,
    },
    /// A PATH_ACK. Once it is acknowledged, later ones of this path omit the ranges up to `largest`.
    PathAck {
        /// The path whose packets it acknowledges.
        path: PathId,
        /// The largest packet number that it acknowledges.
        largest: u64,
    },
    /// PATH_ABANDON: repeated.
    PathAbandon {
        /// The path.
        path: PathId,
    },
    /// PATH_STATUS_AVAILABLE or PATH_STATUS_BACKUP: repeated if it is the newest status of its path.
    PathStatus {
        /// The path.
        path: PathId,
        /// Sequence number of the status.
        sequence: u64,
    },
    /// PATH_NEW_CONNECTION_ID: repeated with the same ID, unless that was retired.
    PathNewConnectionId {
        /// The path of the ID.
        path: PathId,
        /// Sequence number of the ID.
        sequence: u64,
    },
    /// PATH_RETIRE_CONNECTION_ID: repeated.
    PathRetireConnectionId {
        /// The path of the ID.
        path: PathId,
        /// Sequence number of the ID.
        sequence: u64,
    },
    /// MAX_PATH_ID: replaced by the current limit, unless that was acknowledged.
    MaxPathId {
        /// The limit that it announces.
        limit: PathId,
    },
    /// PATHS_BLOCKED: never repeated, because it is for information only (RFC 10069 §4.7).
    PathsBlocked,
    /// PATH_CIDS_BLOCKED: never repeated, because it is for information only (RFC 10069 §4.7).
    PathCidsBlocked,
    /// OBSERVED_ADDRESS: repeated on its path, unless there is a newer one.
    ObservedAddress {
        /// The path to which it belongs.
        path: PathId,
        /// Sequence number of the observation.
        sequence: u64,
    },
    /// ADD_ADDRESS: repeated unless the address was withdrawn.
    AddAddress {
        /// Number of the address.
        sequence: u64,
    },
    /// REMOVE_ADDRESS: repeated.
    RemoveAddress {
        /// Number of the address.
        sequence: u64,
    },
    /// REACH_OUT: repeated until the next round.
    ReachOut {
        /// Number of the round.
        round: u64,
        /// Number of the address at this end.
        sequence: u64,
    },
    /// An MTU probe. Its loss is reported to the search of its path, which may send another one.
    MtuProbe {
        /// Number of the probe on its path.
        probe: u32,
        /// Size of the datagram in bytes.
        size: u16,
        /// The path on which it was sent.
        path: u32,
    },
}

impl SentFrame {
    /// Returns true for datagrams, which are never repeated.
    pub fn is_datagram(self) -> bool {
        matches!(self, Self::Datagrams { .. } | Self::TrackedDatagram { .. })
    }

    /// Counts the frame in the counts of its type.
    #[inline]
    fn count(self, counts: &mut FrameTally) {
        let count = match self {
            // The frame that makes the probe ack-eliciting has a record of its own.
            Self::MtuProbe { .. } => return,
            // Connections with several paths count them themselves.
            Self::PathAck { .. }
            | Self::PathAbandon { .. }
            | Self::PathStatus { .. }
            | Self::PathNewConnectionId { .. }
            | Self::PathRetireConnectionId { .. }
            | Self::MaxPathId { .. }
            | Self::PathsBlocked
            | Self::PathCidsBlocked
            | Self::ObservedAddress { .. }
            | Self::AddAddress { .. }
            | Self::RemoveAddress { .. }
            | Self::ReachOut { .. } => return,
            Self::Stream { .. } => return counts.stream += 1,
            Self::Ack { .. } => return counts.ack += 1,
            Self::TrackedDatagram { .. } => return counts.datagram += 1,
            Self::Datagrams { count } => {
                counts.datagram += u64::from(count);
                return;
            }
            Self::Ping | Self::MeasuredPing { .. } => &mut counts.ping,
            Self::ResetStream { .. } => &mut counts.reset_stream,
            Self::ResetStreamAt { .. } => &mut counts.reset_stream_at,
            Self::StopSending { .. } => &mut counts.stop_sending,
            Self::Crypto { .. } => &mut counts.crypto,
            Self::NewToken => &mut counts.new_token,
            Self::MaxData { .. } => &mut counts.max_data,
            Self::MaxStreamData { .. } => &mut counts.max_stream_data,
            Self::MaxStreams { .. } => &mut counts.max_streams,
            Self::DataBlocked { .. } => &mut counts.data_blocked,
            Self::StreamDataBlocked { .. } => &mut counts.stream_data_blocked,
            Self::StreamsBlocked { .. } => &mut counts.streams_blocked,
            Self::NewConnectionId { .. } => &mut counts.new_connection_id,
            Self::RetireConnectionId { .. } => &mut counts.retire_connection_id,
            Self::PathChallenge => &mut counts.path_challenge,
            Self::PathResponse => &mut counts.path_response,
            Self::HandshakeDone => &mut counts.handshake_done,
            Self::AckFrequency { .. } => &mut counts.ack_frequency,
            Self::ImmediateAck => &mut counts.immediate_ack,
        };
        *count = count.saturating_add(1);
    }
}

/// The frames of one packet. At most one stream span, one ACK and a number of datagrams are stored
/// inline, the rest in a recycled list of [`FrameLists`].
///
/// A bulk packet carries only one stream span, so it needs no list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SentFrames {
    stream_id: u64,
    offset: u64,
    ack_largest: u64,
    len: u16,
    flags: u8,
    /// DATAGRAM frames whose acknowledgement or loss is only counted.
    datagrams: u8,
    /// Index + 1 of the list with all other frames; 0 if there is none.
    list: u32,
}

const HAS_STREAM: u8 = 1;
const HAS_FIN: u8 = 2;
const HAS_ACK: u8 = 4;
const IS_MTU_PROBE: u8 = 8;
const HAS_DATAGRAMS: u8 = 16;

impl SentFrames {
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
            } if self.flags & HAS_STREAM == 0 => self.set_stream(id, offset, len, fin),
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

    #[inline]
    fn set_stream(&mut self, id: StreamId, offset: u64, len: u16, fin: bool) {
        self.flags |= HAS_STREAM | if fin { HAS_FIN } else { 0 };
        (self.stream_id, self.offset, self.len) = (id.value(), offset, len);
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

    /// Returns the inline stream span, if there is one.
    pub fn stream(&self) -> Option<SentFrame> {
        (self.flags & HAS_STREAM != 0).then(|| SentFrame::Stream {
            id: StreamId::from_value(self.stream_id),
            offset: self.offset,
            len: self.len,
            fin: self.flags & HAS_FIN != 0,
        })
    }

    /// Returns true if a stream span is the only frame.
    pub fn is_only_stream(&self) -> bool {
        self.list == 0 && self.flags & (HAS_STREAM | HAS_ACK | HAS_DATAGRAMS) == HAS_STREAM
    }

    /// Returns true for a datagram that probes for a larger size.
    pub fn is_mtu_probe(&self) -> bool {
        self.flags & IS_MTU_PROBE != 0
    }

    /// Returns the list to the pool; every record must end with this call.
    pub fn release(self, lists: &mut FrameLists) {
        lists.pool.release(self.list);
    }
}

/// The record of the packet being built, and recycled lists for packets with more than one stream
/// span and one ACK.
///
/// The record is copied only after its packet was sealed: a copy right after its fields were written would
/// wait until each of them has left the store buffer.
#[derive(Debug, Default)]
pub struct FrameLists {
    current: SentFrames,
    pool: Pool,
    counts: FrameTally,
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
        frame.count(&mut self.counts);
        self.current.push(frame, &mut self.pool);
    }

    /// Adds a span of a stream, which nearly every packet has. It is not passed as a [`SentFrame`]: the
    /// processor would wait for one that was just written field by field and is read as a whole.
    #[inline]
    pub fn push_stream(&mut self, id: StreamId, offset: u64, len: u16, fin: bool) {
        if self.current.flags & HAS_STREAM == 0 {
            self.counts.stream += 1;
            return self.current.set_stream(id, offset, len, fin);
        }
        self.push(SentFrame::Stream {
            id,
            offset,
            len,
            fin,
        });
    }

    /// Returns the record of the packet that was built.
    #[inline]
    pub fn take(&mut self) -> SentFrames {
        self.current
    }

    /// Returns the numbers of frames so far.
    pub(crate) fn counts(&self) -> FrameCounts {
        self.counts.into()
    }

    /// Counts a CONNECTION_CLOSE, which needs no record.
    pub(crate) fn on_close_sent(&mut self) {
        self.counts.connection_close += 1;
    }

    /// Frees all lists, when the records of all packets are dropped.
    pub(crate) fn free(&mut self) {
        self.pool = Pool::default();
    }

    /// Returns the number of lists in use.
    #[cfg(test)]
    pub fn in_use(&self) -> usize {
        self.pool.in_use()
    }

    /// Frees the memory of unused lists, if none is in use.
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

/// Maximum of lists that are kept while none is in use.
const KEPT_LISTS: usize = 256;

#[cfg(test)]
mod tests;
