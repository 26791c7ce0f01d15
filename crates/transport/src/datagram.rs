//! Unreliable datagrams: each is delivered at most once. RFC 9221.
//!
//! Both queues are bounded in number and bytes, and the oldest datagram makes room for the newest
//! (limit K27), because the oldest is worth the least. Nothing is ever retransmitted. A datagram
//! counts in congestion control and pacing like other data.
//!
//! Datagrams precede stream data, because they are urgent. While stream data waits too, they may
//! get ahead of it by [`HEAD_START`] bytes; from then on both take turns, byte for byte. Those of a
//! session count in its share of the bytes: its streams send less instead. If the queue is full, the
//! session with the most bytes in it loses its oldest datagram.
//!
//! A datagram with an order waits while streams of its session with a higher one have data to send, and so
//! do those of its session with lower orders. If the queue is full, the session with the most bytes loses
//! the newest of its lowest order.
//!
//! A queue with a target for its delay is one of a network (RFC 8289): it drops datagrams while the
//! delay stays above the target, and refuses new ones when it is full.

mod codel;
mod event;
mod fate;
mod jitter;
mod ordered;
mod prefix;
mod queue;

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use courser_base::Time;
use courser_base::foreign::ForeignBytes;
use courser_wire::frame::Datagram;
use courser_wire::{MAX_VARINT, StreamId};

use self::codel::Codel;
use self::jitter::ArrivalJitter;
use self::ordered::Ordered;
use self::queue::{Outgoing, Queue, Sizeable as _};
use crate::build::packet_builder::PacketBuilder;
use crate::error::TransportError;
use crate::space::sent::SentFrame;

pub use self::event::{DatagramEvent, DatagramFate, DatagramId, DatagramStats};
pub use self::prefix::DatagramPrefix;

/// Sizes of the queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramLimits {
    /// Bytes that wait to be sent; 0 disables sending.
    pub send_bytes: usize,
    /// Datagrams that wait to be sent.
    pub send_count: usize,
    /// The delay before sending from which on datagrams are dropped, if it lasts.
    pub send_delay: Option<Duration>,
    /// Bytes that wait to be read; 0 disables receiving.
    pub receive_bytes: usize,
    /// Datagrams that wait to be read.
    pub receive_count: usize,
}

impl DatagramLimits {
    /// Returns the `max_datagram_frame_size` to announce (RFC 9221 §3).
    pub fn max_frame_size(&self) -> u64 {
        self.receive_bytes.min(MAX_FRAME_SIZE) as u64
    }
}

/// Options for sending a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendOptions {
    /// Time from which the datagram is no longer sent, but dropped and counted as expired.
    pub expires_at: Option<Time>,
    /// Requests a report of the datagram's fate, see [`DatagramEvent::Fate`].
    pub is_tracked: bool,
    /// The request of the session to which the datagram belongs: its bytes count in the share of the session
    /// ([`Streams::begin_session`](crate::Streams::begin_session)).
    pub session: Option<StreamId>,
    /// The order beside the streams of the session ([`Streams::set_order`](crate::Streams::set_order)): the datagram
    /// waits while streams without a group that have a higher order or a priority above 0 have data to send. Without an
    /// order it precedes all streams.
    pub order: Option<i64>,
}

/// The reason why a datagram was not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendDatagramError {
    /// The peer accepts no datagrams, or has not announced yet that it does.
    UnsupportedByPeer,
    /// Our own configuration has no room for datagrams.
    Disabled,
    /// The datagram exceeds the largest size that can be sent.
    TooLarge {
        /// Size of the datagram in bytes.
        size: usize,
        /// Largest size that fits at present, in bytes.
        max: usize,
    },
}

impl fmt::Display for SendDatagramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnsupportedByPeer => f.write_str("the peer does not accept datagrams"),
            Self::Disabled => {
                f.write_str("sending datagrams is switched off: datagram_send_buffer_size is 0")
            }
            Self::TooLarge { size, max } => write!(
                f,
                "datagram has {size} bytes, allowed are {max}: ask max_datagram_size first"
            ),
        }
    }
}

impl std::error::Error for SendDatagramError {}

/// The datagrams of one connection, in both directions.
#[derive(Debug)]
pub struct Datagrams {
    limits: DatagramLimits,
    /// The `max_datagram_frame_size` of the peer.
    peer_max_frame: u64,
    outgoing: Queue<Outgoing>,
    /// Created for the first datagram with an order.
    ordered: Option<Box<Ordered>>,
    incoming: Queue<Bytes>,
    events: VecDeque<DatagramEvent>,
    /// True if a reader found the queue empty, and waits for an event.
    has_reader: bool,
    /// True if the application has read since the queue was last reported as half full.
    is_read: bool,
    /// True if a writer found the queue full, and waits for an event.
    has_writer: bool,
    next_id: u64,
    /// Bytes by which datagrams are ahead of stream data.
    ahead: usize,
    /// True if the next datagram did not fit behind other frames and comes first in the next
    /// packet.
    leads: bool,
    /// A time before which no datagram expires.
    expires_at: Option<Time>,
    /// Drops datagrams if their delay lasts.
    codel: Option<Codel>,
    counters: DatagramStats,
    jitter: ArrivalJitter,
}

impl Datagrams {
    pub(crate) fn new(limits: DatagramLimits) -> Self {
        Self {
            outgoing: Queue::new(limits.send_count, limits.send_bytes),
            ordered: None,
            incoming: Queue::new(limits.receive_count, limits.receive_bytes),
            codel: limits.send_delay.map(Codel::new),
            limits,
            peer_max_frame: 0,
            events: VecDeque::new(),
            has_reader: true,
            is_read: false,
            has_writer: false,
            next_id: 0,
            ahead: 0,
            leads: false,
            expires_at: None,
            counters: DatagramStats::default(),
            jitter: ArrivalJitter::default(),
        }
    }

    pub(crate) fn on_peer_parameter(&mut self, max_datagram_frame_size: u64) {
        self.peer_max_frame = max_datagram_frame_size;
    }

    /// Returns counters of datagrams sent, received and dropped.
    pub fn stats(&self) -> DatagramStats {
        DatagramStats {
            arrival_jitter: self.jitter.value(),
            ..self.counters
        }
    }

    /// Frees the spare capacity of the queues.
    pub(crate) fn shrink(&mut self) {
        self.outgoing.shrink();
        self.ordered.take_if(|ordered| ordered.len() == 0);
        self.incoming.shrink();
        self.events.shrink_to_fit();
    }

    /// Returns the next event for the application.
    pub(crate) fn poll_event(&mut self) -> Option<DatagramEvent> {
        self.events.pop_front()
    }

    /// Removes and returns the oldest datagram that was received.
    ///
    /// After `None`, [`DatagramEvent::Readable`] reports the next one.
    pub fn receive(&mut self) -> Option<Bytes> {
        let datagram = self.incoming.pop();
        self.is_read = true;
        self.has_reader |= datagram.is_none();
        datagram
    }

    /// Returns true once when the queue of unread datagrams is half full, and again after a read, so that
    /// an application that does not read is woken only once.
    pub(crate) fn take_crowded(&mut self) -> bool {
        let is_crowded = self.is_read && self.incoming.is_half_full();
        self.is_read &= !is_crowded;
        is_crowded
    }

    /// Returns the size of the largest datagram that is accepted without dropping an older one.
    pub fn send_space(&self) -> usize {
        match &self.ordered {
            None => self.outgoing.space(),
            Some(_) if self.waiting() >= self.limits.send_count => 0,
            Some(_) => self.limits.send_bytes - self.waiting_bytes(),
        }
    }

    /// Returns the bytes that wait, in both directions.
    pub(crate) fn memory(&self) -> u64 {
        (self.waiting_bytes() + self.incoming.bytes()) as u64
    }

    /// Returns the number of datagrams that wait to be sent.
    #[inline]
    fn waiting(&self) -> usize {
        let ordered = self.ordered.as_ref();
        self.outgoing.len() + ordered.map_or(0, |ordered| ordered.len())
    }

    /// Returns the bytes of the datagrams that wait to be sent.
    #[inline]
    pub(crate) fn waiting_bytes(&self) -> usize {
        let ordered = self.ordered.as_ref();
        self.outgoing.bytes() + ordered.map_or(0, |ordered| ordered.bytes())
    }

    /// Returns an upper bound on the bytes of the frames of all datagrams that wait to be sent.
    #[inline]
    pub(crate) fn frame_bytes(&self) -> u64 {
        (self.waiting_bytes() + self.waiting() * LARGEST_HEADER) as u64
    }

    /// Returns true if a datagram of `len` bytes is accepted without dropping an older one.
    /// Otherwise [`DatagramEvent::Room`] reports when there is more room.
    pub fn has_send_space(&mut self, len: usize) -> bool {
        let fits = self.fits(len);
        self.has_writer |= !fits;
        fits
    }

    fn fits(&self, len: usize) -> bool {
        let left = self.limits.send_bytes - self.waiting_bytes();
        self.waiting() < self.limits.send_count && len <= left
    }

    /// Returns the size of the largest datagram that can be sent in packets with `capacity` bytes of
    /// frames.
    pub(crate) fn max_size(&self, capacity: usize) -> Option<usize> {
        let by_peer = largest_in_frame(self.peer_max_frame)?;
        // A datagram that fills its packet needs no Length field.
        Some(
            by_peer
                .min(capacity.checked_sub(1)?)
                .min(self.limits.send_bytes),
        )
    }

    /// Queues a datagram without a prefix.
    #[cfg(test)]
    pub(crate) fn send(
        &mut self,
        now: Time,
        data: Bytes,
        max: Option<usize>,
        options: SendOptions,
    ) -> Result<Option<DatagramId>, SendDatagramError> {
        self.send_after(now, DatagramPrefix::NONE, data, max, options)
    }

    /// Queues a datagram that consists of these two parts. If the queue is full, older ones are dropped: first those that have
    /// expired, then the oldest. A queue with a target for its delay drops this one instead.
    ///
    /// `max` is the result of [`Datagrams::max_size`].
    pub(crate) fn send_after(
        &mut self,
        now: Time,
        prefix: DatagramPrefix,
        data: Bytes,
        max: Option<usize>,
        options: SendOptions,
    ) -> Result<Option<DatagramId>, SendDatagramError> {
        let data = ForeignBytes::new(data);
        if self.limits.send_bytes == 0 {
            return Err(SendDatagramError::Disabled);
        }
        let max = max.ok_or(SendDatagramError::UnsupportedByPeer)?;
        let size = prefix.as_bytes().len() + data.len();
        if size > max {
            return Err(SendDatagramError::TooLarge { size, max });
        }
        let id = options.is_tracked.then(|| {
            self.next_id += 1;
            DatagramId(self.next_id)
        });
        // A full queue is searched only if something in it has expired: each further datagram would walk all of it.
        if !self.fits(size) && self.expires_at.is_some_and(|at| at <= now) {
            self.drop_expired(now);
        }
        let datagram = Outgoing {
            prefix,
            data,
            queued_at: now,
            expires_at: options.expires_at,
            id,
            session: options.session,
        };
        if self.codel.is_some() && !self.fits(size) {
            self.give_up(&datagram, DatagramFate::Dropped);
            return Ok(id);
        }
        while !self.fits(size)
            && let Some(dropped) = self.pop_of_largest()
        {
            self.give_up(&dropped, DatagramFate::Dropped);
        }
        self.expires_at = [self.expires_at, options.expires_at]
            .into_iter()
            .flatten()
            .min();
        match options.order {
            None => self.outgoing.push(datagram),
            Some(order) => {
                let ordered = self.ordered.get_or_insert_default();
                ordered.push(order, datagram);
            }
        }
        Ok(id)
    }

    /// Removes and returns a datagram of the session with the most bytes: the last of those with an order, else the
    /// oldest.
    fn pop_of_largest(&mut self) -> Option<Outgoing> {
        let Some(ordered) = self.ordered.as_mut().filter(|ordered| ordered.len() > 0) else {
            return self.outgoing.pop_of_largest();
        };
        let session = self.outgoing.largest_session(ordered.iter())?;
        let last = ordered.pop_last(session);
        last.or_else(|| self.outgoing.pop_of(session))
    }

    /// Returns true if a datagram waits to be sent.
    #[inline]
    pub(crate) fn has_frames_to_send(&self) -> bool {
        !self.outgoing.is_empty() || self.has_ordered()
    }

    /// Returns true if datagrams with an order wait to be sent.
    #[inline]
    pub(crate) fn has_ordered(&self) -> bool {
        let ordered = self.ordered.as_ref();
        ordered.is_some_and(|ordered| ordered.len() > 0)
    }

    /// Returns true if a datagram must come first in a packet, because it did not fit behind other
    /// frames.
    #[inline]
    pub(crate) fn leads(&self) -> bool {
        self.leads
    }

    /// Returns true once the application has queued a datagram.
    pub(crate) fn are_used(&self) -> bool {
        self.counters.sent > 0 || self.has_frames_to_send()
    }

    /// Returns a time at or before the expiry of the first datagram that expires.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.expires_at
    }

    pub(crate) fn on_timeout(&mut self, now: Time) {
        if self.expires_at.is_some_and(|at| at <= now) {
            self.drop_expired(now);
        }
    }

    /// Writes the datagrams that may be sent and fit. `largest` is the largest datagram that a
    /// packet can hold; `is_contested` means that stream data waits too. `charge` gets the bytes of each datagram of a
    /// session.
    pub(crate) fn write_frames(
        &mut self,
        now: Time,
        largest: usize,
        is_contested: bool,
        packet: &mut PacketBuilder<'_>,
        mut charge: impl FnMut(StreamId, u64),
    ) {
        self.leads = false;
        self.ahead = if is_contested { self.ahead } else { 0 };
        let mut count = 0;
        while let Some(first) = self.outgoing.first() {
            let (size, session) = (first.size(), first.session);
            if first.is_expired(now) {
                self.drop_first(DatagramFate::Expired);
            } else if size > largest {
                // It fitted when it was queued. Since then the path's datagram size has fallen.
                self.drop_first(DatagramFate::Dropped);
            } else if is_contested && self.ahead >= HEAD_START {
                break;
            } else if packet.remaining() < 1 + size {
                self.leads = true;
                break;
            } else if self.is_late(now) {
                self.drop_first(DatagramFate::Dropped);
            } else {
                if let Some(session) = session {
                    charge(session, size as u64);
                }
                count += u8::from(self.write_first(packet));
                self.ahead += size;
            }
            if count == u8::MAX {
                break;
            }
        }
        if count > 0 {
            packet.record(SentFrame::Datagrams { count });
        }
    }

    /// Writes the datagrams with an order that may be sent and fit, after [`Datagrams::write_frames`], with the same
    /// `largest` and `is_contested`. `may_send` gets a session and the order of its first datagram. Returns the bytes of
    /// each session.
    pub(crate) fn write_ordered_frames(
        &mut self,
        now: Time,
        largest: usize,
        is_contested: bool,
        packet: &mut PacketBuilder<'_>,
        mut may_send: impl FnMut(Option<StreamId>, i64) -> bool,
    ) -> Vec<(StreamId, u64)> {
        let mut sent = Vec::new();
        // Those without an order are first.
        while self.outgoing.is_empty()
            && let Some(ordered) = &mut self.ordered
            && let Some(session) = ordered.turn(&mut may_send)
            && let Some(first) = ordered.first(session)
        {
            let size = first.size();
            if first.is_expired(now) || size > largest {
                let fate = match first.is_expired(now) {
                    true => DatagramFate::Expired,
                    false => DatagramFate::Dropped,
                };
                if let Some(first) = self.pop_ordered(session) {
                    self.give_up(&first, fate);
                }
                continue;
            }
            if is_contested && self.ahead >= HEAD_START {
                break;
            }
            if packet.remaining() < 1 + size {
                self.leads = true;
                break;
            }
            let Some(first) = self.pop_ordered(session) else {
                break;
            };
            if self.write(&first, packet) {
                packet.record(SentFrame::Datagrams { count: 1 });
            }
            self.ahead += size;
            sent.extend(session.map(|session| (session, size as u64)));
        }
        sent
    }

    fn pop_ordered(&mut self, session: Option<StreamId>) -> Option<Outgoing> {
        let first = self.ordered.as_mut()?.pop(session)?;
        self.on_popped();
        Some(first)
    }

    /// Reduces the lead of datagrams by stream data that was sent while they waited.
    pub(crate) fn on_stream_data_sent(&mut self, bytes: usize) {
        self.ahead = self.ahead.saturating_sub(bytes);
    }

    /// Returns true if the first datagram is dropped because the delay of the queue has been too long for a while.
    fn is_late(&mut self, now: Time) -> bool {
        let (Some(codel), Some(first)) = (&mut self.codel, self.outgoing.first()) else {
            return false;
        };
        let behind = self.outgoing.bytes() - first.size();
        codel.drops(now, now - first.queued_at, behind)
    }

    /// Writes the first datagram, which must fit. Returns true unless it was recorded as tracked.
    fn write_first(&mut self, packet: &mut PacketBuilder<'_>) -> bool {
        self.pop_outgoing()
            .is_some_and(|first| self.write(&first, packet))
    }

    /// Writes a datagram, which must fit. Returns true unless it was recorded as tracked.
    fn write(&mut self, first: &Outgoing, packet: &mut PacketBuilder<'_>) -> bool {
        let size = first.size();
        let has_length = Datagram::header_len(size, true) + size <= packet.remaining();
        if !has_length {
            // A frame without a length extends to the end of the packet. Padding moves it there.
            let gap = packet.remaining() - Datagram::header_len(size, false) - size;
            packet.writer().zeros(gap);
        }
        let writer = packet.writer();
        Datagram::encode_header(size, has_length, writer);
        writer.bytes(first.prefix.as_bytes());
        writer.bytes(&first.data);
        self.counters.sent += 1;
        self.counters.sent_bytes += size as u64;
        match first.id {
            Some(id) => packet.record(SentFrame::TrackedDatagram { id }),
            None => return true,
        }
        false
    }

    fn pop_outgoing(&mut self) -> Option<Outgoing> {
        let first = self.outgoing.pop()?;
        self.on_popped();
        Some(first)
    }

    /// Updates the state after a datagram has left the queue.
    fn on_popped(&mut self) {
        if !self.has_frames_to_send() {
            self.expires_at = None;
        }
        if std::mem::take(&mut self.has_writer) {
            self.events.push_back(DatagramEvent::Room);
        }
    }

    fn drop_first(&mut self, fate: DatagramFate) {
        if let Some(first) = self.pop_outgoing() {
            self.give_up(&first, fate);
        }
    }

    fn drop_expired(&mut self, now: Time) {
        let mut expired = self.outgoing.take_if(|datagram| datagram.is_expired(now));
        if let Some(ordered) = &mut self.ordered {
            expired.extend(ordered.take_if(|datagram| datagram.is_expired(now)));
        }
        for datagram in &expired {
            self.give_up(datagram, DatagramFate::Expired);
        }
        if !expired.is_empty() && std::mem::take(&mut self.has_writer) {
            self.events.push_back(DatagramEvent::Room);
        }
        let ordered = self.ordered.iter().flat_map(|ordered| ordered.iter());
        self.expires_at = self
            .outgoing
            .iter()
            .chain(ordered)
            .filter_map(|datagram| datagram.expires_at)
            .min();
    }

    /// Queues a datagram from the peer. Unread older ones make room for it.
    pub(crate) fn on_datagram_frame(
        &mut self,
        now: Time,
        frame: &Datagram<'_>,
    ) -> Result<(), TransportError> {
        let limit = self.limits.max_frame_size();
        let size = frame.encoded_len();
        if size as u64 > limit {
            let reason = format!("DATAGRAM frame of {size} bytes, announced was {limit}");
            return Err(TransportError::protocol_violation(reason));
        }
        self.jitter.on_arrival(now);
        self.counters.received += 1;
        self.counters.received_bytes += frame.data.len() as u64;
        while !self.incoming.fits(frame.data.len()) && self.incoming.pop().is_some() {
            self.counters.unread_dropped += 1;
        }
        self.incoming.push(Bytes::copy_from_slice(frame.data));
        if std::mem::take(&mut self.has_reader) {
            self.events.push_back(DatagramEvent::Readable);
        }
        Ok(())
    }

    /// Drops the queued datagrams, because the server has refused the early data.
    pub(crate) fn on_early_data_rejected(&mut self) {
        while self.outgoing.first().is_some() {
            self.drop_first(DatagramFate::Dropped);
        }
        let ordered = self.ordered.as_mut();
        let dropped = ordered.map_or_else(Vec::new, |ordered| ordered.take_if(|_| true));
        for datagram in &dropped {
            self.give_up(datagram, DatagramFate::Dropped);
        }
        self.peer_max_frame = 0;
    }

    /// Stops sending because the connection is over. Received datagrams can still be read, unless
    /// our own application closed.
    pub(crate) fn on_end(&mut self, is_lost: bool) {
        self.outgoing.clear();
        self.ordered = None;
        self.events.clear();
        self.expires_at = None;
        if !is_lost {
            self.incoming.clear();
        }
    }
}

/// Returns the largest payload of a frame of `limit` bytes with its Length field; `None` if none
/// fits.
fn largest_in_frame(limit: u64) -> Option<usize> {
    // Bytes of a Length field, and the largest length that it can hold.
    let fields = [
        (1, 63),
        (2, (1 << 14) - 1),
        (4, (1 << 30) - 1),
        (8, MAX_VARINT),
    ];
    let largest = fields
        .into_iter()
        .filter_map(|(field, most)| Some(limit.checked_sub(1 + field)?.min(most)))
        .max()?;
    Some(usize::try_from(largest).unwrap_or(usize::MAX))
}

/// Bytes by which datagrams may be ahead of waiting stream data: as much as a stream sends before
/// the next one takes its turn.
const HEAD_START: usize = 16 << 10;

/// Bytes of the type and the largest length of a frame.
const LARGEST_HEADER: usize = 1 + 4;

/// Accepts every datagram that fits into a packet (RFC 9221 §3).
const MAX_FRAME_SIZE: usize = 65_535;

#[cfg(test)]
mod tests;
