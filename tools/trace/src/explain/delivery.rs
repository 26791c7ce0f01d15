//! Counts streams that were transferred completely, in one direction.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::qlog::{Frame, Packet, Space, Span};

/// The streams of one direction.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Streams {
    /// Streams on which data, an end or a reset was seen.
    pub begun: u64,
    /// Streams whose data and end have all arrived.
    pub complete: u64,
    /// Streams that were reset.
    pub reset: u64,
    /// Streams that were neither complete nor reset at the end of the trace.
    pub open: u64,
}

/// The reason why a trace does not show whether each stream was transferred completely.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unknown {
    /// Records are missing in the trace, or cannot be read.
    Gaps,
    /// The trace begins after its connection did.
    BeginsLate,
    /// Too many streams were open at once to follow them.
    TooManyStreams,
    /// A stream had too many gaps at once to follow them.
    TooManyParts,
    /// Too many packets were not acknowledged at once to follow them.
    TooManyPackets,
}

/// Follows the ranges of streams that have arrived.
///
/// In a connection with bidirectional streams, only those count: the unidirectional streams of HTTP/3
/// never end.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    streams: HashMap<u64, Stream>,
    /// The largest ID of the streams that were forgotten after their end, for each of the four types
    /// (RFC 9000 §2.1). Streams up to it that are not in `streams` were forgotten.
    forgotten_up_to: [Option<u64>; 4],
    /// The counts of bidirectional streams, then those of unidirectional ones.
    counts: [Streams; 2],
    /// The ranges in unacknowledged packets. Stays empty for received data.
    unacknowledged: BTreeMap<u64, Vec<(Span, bool)>>,
    is_overfull: bool,
    beginning: Option<Beginning>,
}

/// The first packet of one direction in a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Beginning {
    /// A packet of the handshake: the trace lacks nothing.
    Handshake,
    /// The 1-RTT packet with number 0.
    FirstOneRtt,
    /// Another 1-RTT packet: earlier ones are missing.
    Late,
}

impl Beginning {
    fn of(packet: &Packet) -> Self {
        match packet.number {
            _ if packet.packet_type != "1RTT" => Self::Handshake,
            Some(1..) => Self::Late,
            _ => Self::FirstOneRtt,
        }
    }
}

#[derive(Debug, Default)]
struct Stream {
    /// All bytes up to here have arrived.
    end: u64,
    /// Ranges behind a gap, as their starts and ends. They neither touch nor overlap.
    later: BTreeMap<u64, u64>,
    size: Option<u64>,
    is_over: bool,
    /// The reason why ranges may have arrived without being counted.
    doubt: Option<Unknown>,
}

impl Stream {
    fn add(&mut self, span: Span, fin: bool) {
        let (from, to) = (span.offset, span.offset.saturating_add(span.len));
        if fin {
            self.size = Some(to);
        }
        if from > self.end {
            if !self.insert_range(from, to) {
                self.doubt.get_or_insert(Unknown::TooManyParts);
            }
            return;
        }
        self.end = self.end.max(to);
        while let Some(part) = self.later.first_entry()
            && *part.key() <= self.end
        {
            self.end = self.end.max(part.remove());
        }
    }

    /// Remembers a range behind a gap, merged with those that it touches. Returns false at the limit
    /// [`MAX_PARTS`].
    fn insert_range(&mut self, mut from: u64, mut to: u64) -> bool {
        if from == to {
            return true;
        }
        if let Some((&start, &end)) = self.later.range(..=from).next_back()
            && end >= from
        {
            (from, to) = (start, to.max(end));
        }
        while let Some((&start, &end)) = self.later.range(from..=to).next() {
            self.later.remove(&start);
            to = to.max(end);
        }
        let has_room = self.later.len() < MAX_PARTS;
        if has_room {
            self.later.insert(from, to);
        }
        has_room
    }

    /// Returns true if this range has arrived.
    fn has(&self, span: Span, fin: bool) -> bool {
        let to = span.offset.saturating_add(span.len);
        let known = self.later.range(..=span.offset).next_back();
        (!fin || self.size.is_some())
            && (to <= self.end || known.is_some_and(|(_, &end)| to <= end))
    }

    /// Returns the start of the first gap before a range that has arrived. A stream that was reset has no
    /// gap, because its data is not read.
    fn gap(&self) -> Option<u64> {
        (!self.is_over && !self.later.is_empty()).then_some(self.end)
    }

    fn is_complete(&self) -> bool {
        self.size.is_some_and(|size| size <= self.end)
    }
}

impl Delivery {
    /// Processes a packet that this end received, if the data of this direction is received.
    pub(super) fn on_received(&mut self, packet: &Packet) {
        self.beginning.get_or_insert_with(|| Beginning::of(packet));
        for frame in &packet.frames {
            match *frame {
                Frame::Stream { span, fin } => self.arrived(span, fin),
                Frame::ResetStream { stream } => self.reset(stream),
                _ => {}
            }
        }
    }

    /// Processes a packet that this end sent, if the data of this direction is sent.
    pub(super) fn on_sent(&mut self, packet: &Packet) {
        self.beginning.get_or_insert_with(|| Beginning::of(packet));
        let mut parts = Vec::new();
        for frame in &packet.frames {
            match *frame {
                Frame::Stream { span, fin } => {
                    self.stream_at(span);
                    parts.push((span, fin));
                }
                Frame::ResetStream { stream } => self.reset(stream),
                _ => {}
            }
        }
        let Some(number) = packet.number.filter(|_| !parts.is_empty()) else {
            return;
        };
        self.unacknowledged.insert(number, parts);
        if self.unacknowledged.len() > MAX_PACKETS {
            self.forget_packet();
        }
    }

    /// Forgets the oldest packet. If its data has not arrived in another packet, the streams in it become
    /// doubtful, because an acknowledgement would be missed.
    fn forget_packet(&mut self) {
        let Some((_, parts)) = self.unacknowledged.pop_first() else {
            return;
        };
        for (span, fin) in parts {
            if let Some(stream) = self.streams.get_mut(&span.stream)
                && !stream.is_over
                && !stream.has(span, fin)
            {
                stream.doubt.get_or_insert(Unknown::TooManyPackets);
            }
        }
    }

    /// Processes the acknowledgements in a packet that this end received.
    pub(super) fn on_acknowledgements(&mut self, packet: &Packet) {
        if packet.space() != Space::Application {
            return;
        }
        for range in &packet.acked {
            let numbers: Vec<u64> = self
                .unacknowledged
                .range(range.clone())
                .map(|(number, _)| *number)
                .collect();
            for number in numbers {
                for (span, fin) in self.unacknowledged.remove(&number).unwrap_or_default() {
                    self.arrived(span, fin);
                }
            }
        }
    }

    /// Returns the offset up to which a stream has arrived in order, if data after a gap has arrived too.
    pub(super) fn gap_in(&self, id: u64) -> Option<u64> {
        self.streams.get(&id).and_then(Stream::gap)
    }

    /// Returns the bytes between the first gap and the end of the received data, summed over all streams.
    pub(super) fn behind_gaps(&self) -> u64 {
        let all = self.streams.values();
        all.filter_map(|stream| {
            let (_, &last) = stream.later.last_key_value()?;
            stream.gap().map(|from| last - from)
        })
        .fold(0, u64::saturating_add)
    }

    /// Returns the counts of the streams. `None` if too many were open at once to count them.
    pub(super) fn streams(&self) -> Option<Streams> {
        let mut streams = self.counts[self.counted()];
        streams.open = streams.begun - streams.complete - streams.reset;
        (!self.is_overfull).then_some(streams)
    }

    /// Returns the reason why the trace does not show which streams are complete. `None` if it does.
    pub(super) fn unknown(&self) -> Option<Unknown> {
        if self.is_overfull {
            return Some(Unknown::TooManyStreams);
        }
        if self.beginning == Some(Beginning::Late) {
            return Some(Unknown::BeginsLate);
        }
        let of_its_kind = |id: u64| kind(id) == self.counted();
        let open = self
            .streams
            .iter()
            .filter(|(id, stream)| !stream.is_over && of_its_kind(**id));
        open.filter_map(|(_, stream)| stream.doubt).min()
    }

    /// Returns the index in `counts` of the kind of streams that count.
    const fn counted(&self) -> usize {
        let [both, _] = &self.counts;
        if both.begun > 0 { 0 } else { 1 }
    }

    fn arrived(&mut self, span: Span, fin: bool) {
        let Some(stream) = self.stream_at(span) else {
            return;
        };
        stream.add(span, fin);
        if !stream.is_over && stream.is_complete() {
            stream.is_over = true;
            stream.later.clear();
            self.count(span.stream).complete += 1;
        }
    }

    fn reset(&mut self, id: u64) {
        if let Some(stream) = self.stream(id)
            && !stream.is_over
        {
            stream.is_over = true;
            self.count(id).reset += 1;
        }
    }

    fn count(&mut self, id: u64) -> &mut Streams {
        &mut self.counts[kind(id)]
    }

    /// Returns the stream of a range. A trace without a handshake may also lack the beginning of a stream.
    fn stream_at(&mut self, span: Span) -> Option<&mut Stream> {
        let is_new = !self.streams.contains_key(&span.stream);
        let lacks_more = self.beginning != Some(Beginning::Handshake) && span.offset > 0;
        let stream = self.stream(span.stream)?;
        if is_new && lacks_more {
            stream.doubt = Some(Unknown::BeginsLate);
        }
        Some(stream)
    }

    fn stream(&mut self, id: u64) -> Option<&mut Stream> {
        if !self.streams.contains_key(&id) {
            if self.forgotten_up_to[class(id)].is_some_and(|last| id <= last) {
                return None;
            }
            self.make_room();
            if self.is_overfull {
                return None;
            }
            self.count(id).begun += 1;
        }
        Some(self.streams.entry(id).or_default())
    }

    fn make_room(&mut self) {
        if self.streams.len() < MAX_STREAMS {
            return;
        }
        for (&id, _) in self.streams.iter().filter(|(_, stream)| stream.is_over) {
            let last = &mut self.forgotten_up_to[class(id)];
            *last = (*last).max(Some(id));
        }
        self.streams.retain(|_, stream| !stream.is_over);
        // Once a stream is left out, the counts stay unknown.
        self.is_overfull |= self.streams.len() >= MAX_STREAMS;
    }
}

/// Returns 0 for a bidirectional stream, and 1 for a unidirectional one.
fn kind(id: u64) -> usize {
    usize::from(id & 2 != 0)
}

/// Returns the type of a stream: its two lowest bits (RFC 9000 §2.1).
fn class(id: u64) -> usize {
    kind(id) * 2 + usize::from(id & 1 != 0)
}

/// The largest number of streams that are followed at once (limit K254).
const MAX_STREAMS: usize = 1024;
/// The largest number of ranges behind a gap that are remembered for a stream (limit K254).
const MAX_PARTS: usize = 1024;
/// The largest number of unacknowledged packets with data that are remembered (limit K254).
const MAX_PACKETS: usize = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: u64, frames: &[(u64, u64, u64, bool)]) -> Packet {
        let frames = frames.iter().map(|&(stream, offset, len, fin)| {
            let span = Span {
                stream,
                offset,
                len,
            };
            Frame::Stream { span, fin }
        });
        Packet {
            packet_type: "1RTT".to_owned(),
            number: Some(number),
            len: 1200,
            streams: Vec::new(),
            acked: Vec::new(),
            frames: frames.collect(),
            ack_eliciting: true,
        }
    }

    fn counts(delivery: &Delivery) -> (u64, u64, u64, u64) {
        let it = delivery.streams().expect("few streams");
        (it.begun, it.complete, it.reset, it.open)
    }

    #[test]
    fn received_stream_is_complete_when_all_data_up_to_its_end_arrived() {
        let mut delivery = Delivery::default();
        delivery.on_received(&packet(0, &[(0, 0, 10, false), (0, 20, 10, true)]));
        assert_eq!(counts(&delivery), (1, 0, 0, 1));
        delivery.on_received(&packet(1, &[(0, 10, 10, false), (4, 0, 5, false)]));
        // A copy of a part changes nothing.
        delivery.on_received(&packet(2, &[(0, 20, 10, true), (2, 0, 9, false)]));
        assert_eq!(counts(&delivery), (2, 1, 0, 1));
        let mut reset = packet(3, &[]);
        reset.frames.push(Frame::ResetStream { stream: 4 });
        delivery.on_received(&reset);
        delivery.on_received(&reset);
        assert_eq!(counts(&delivery), (2, 1, 1, 0));
    }

    #[test]
    fn sent_stream_is_complete_when_all_data_is_acknowledged() {
        let mut delivery = Delivery::default();
        delivery.on_sent(&packet(3, &[(0, 0, 10, false)]));
        delivery.on_sent(&packet(4, &[(0, 10, 0, true)]));
        let ack = |range| Packet {
            acked: vec![range],
            ..packet(9, &[])
        };
        delivery.on_acknowledgements(&Packet {
            packet_type: "initial".to_owned(),
            ..ack(3..=4)
        });
        delivery.on_acknowledgements(&ack(4..=4));
        assert_eq!(counts(&delivery), (1, 0, 0, 1));
        // The first packet was lost, and its data sent again.
        delivery.on_sent(&packet(5, &[(0, 0, 10, false)]));
        delivery.on_acknowledgements(&ack(0..=u64::MAX));
        assert_eq!(counts(&delivery), (1, 1, 0, 0));
    }

    #[test]
    fn memory_is_bounded() {
        let mut delivery = Delivery::default();
        for index in 0..100_000 {
            delivery.on_received(&packet(index, &[(index * 4, 0, 5, true)]));
        }
        assert!(delivery.streams.len() <= MAX_STREAMS);
        assert_eq!(counts(&delivery), (100_000, 100_000, 0, 0));
        // A copy of a forgotten stream's end does not open it again.
        delivery.on_received(&packet(7, &[(0, 0, 5, true)]));
        assert_eq!(counts(&delivery), (100_000, 100_000, 0, 0));

        let mut delivery = Delivery::default();
        for index in 0..100_000 {
            delivery.on_sent(&packet(index, &[(0, index * 2, 1, false)]));
        }
        assert_eq!(delivery.unacknowledged.len(), MAX_PACKETS);
        for index in 1..100_000 {
            delivery.on_received(&packet(index, &[(4, index * 2, 1, false)]));
        }
        assert_eq!(delivery.streams[&4].later.len(), MAX_PARTS);
        assert!(delivery.unknown().is_some());
        for index in 0..MAX_STREAMS as u64 + 10 {
            delivery.on_received(&packet(index, &[(index * 4, 1, 1, false)]));
        }
        assert_eq!(delivery.streams(), None);
        assert_eq!(delivery.unknown(), Some(Unknown::TooManyStreams));
    }

    #[test]
    fn parts_behind_a_gap_are_joined() {
        let mut delivery = Delivery::default();
        delivery.on_received(&packet(0, &[(0, 0, 10, false)]));
        // The packet with the bytes 10 to 19 is lost. The pairs after it arrive in the wrong order.
        for index in 1..3000 {
            let (first, second) = (index * 20, index * 20 + 10);
            delivery.on_received(&packet(
                index,
                &[(0, second, 10, false), (0, first, 10, false)],
            ));
        }
        assert_eq!(delivery.streams[&0].later.len(), 1);
        delivery.on_received(&packet(3000, &[(0, 60_000, 0, true)]));
        delivery.on_received(&packet(3001, &[(0, 10, 10, false)]));
        assert_eq!(counts(&delivery), (1, 1, 0, 0));
        assert_eq!(delivery.unknown(), None);
    }

    #[test]
    fn gaps_are_those_before_data_that_has_arrived() {
        let mut delivery = Delivery::default();
        delivery.on_received(&packet(0, &[(0, 0, 10, false), (4, 0, 10, false)]));
        assert_eq!((delivery.gap_in(0), delivery.behind_gaps()), (None, 0));
        delivery.on_received(&packet(2, &[(0, 20, 10, false), (4, 40, 10, false)]));
        delivery.on_received(&packet(4, &[(0, 50, 10, false)]));
        assert_eq!(
            (delivery.gap_in(0), delivery.gap_in(4)),
            (Some(10), Some(10))
        );
        assert_eq!(delivery.behind_gaps(), 50 + 40);
        delivery.on_received(&packet(5, &[(0, 10, 10, false)]));
        assert_eq!(
            (delivery.gap_in(0), delivery.behind_gaps()),
            (Some(30), 30 + 40)
        );
        delivery.reset(4);
        delivery.on_received(&packet(6, &[(0, 30, 20, false)]));
        assert_eq!((delivery.gap_in(0), delivery.gap_in(4)), (None, None));
        assert_eq!(delivery.behind_gaps(), 0);
    }

    #[test]
    fn overlapping_parts_are_joined() {
        let mut stream = Stream::default();
        for (from, to) in [
            (10, 20),
            (30, 40),
            (50, 60),
            (15, 32),
            (33, 35),
            (40, 50),
            (70, 70),
        ] {
            assert!(stream.insert_range(from, to));
        }
        assert_eq!(stream.later, BTreeMap::from([(10, 60)]));
    }

    #[test]
    fn parts_beyond_the_limit_leave_completeness_unknown() {
        let mut delivery = Delivery::default();
        let parts = MAX_PARTS as u64 + 1;
        for index in 0..=parts {
            delivery.on_received(&packet(index, &[(0, index * 2, 1, index == parts)]));
        }
        assert_eq!(delivery.unknown(), Some(Unknown::TooManyParts));
        for index in 0..parts {
            delivery.on_received(&packet(parts + index, &[(0, index * 2 + 1, 1, false)]));
        }
        // The part that exceeded the limit.
        assert_eq!(counts(&delivery), (1, 0, 0, 1));
        assert_eq!(delivery.unknown(), Some(Unknown::TooManyParts));
        delivery.on_received(&packet(9999, &[(0, parts * 2, 1, true)]));
        assert_eq!(counts(&delivery), (1, 1, 0, 0));
        assert_eq!(delivery.unknown(), None);
    }

    #[test]
    fn acknowledgements_that_skip_a_lost_packet_complete_a_stream() {
        let ack = |range| Packet {
            acked: vec![range],
            ..packet(9, &[])
        };
        let last = MAX_PACKETS as u64 - 1;
        let sent = |last: u64| {
            let mut delivery = Delivery::default();
            for index in 0..=last {
                delivery.on_sent(&packet(index, &[(0, index * 10, 10, index == last)]));
            }
            delivery.on_acknowledgements(&ack(1..=last));
            delivery
        };
        let mut delivery = sent(last);
        delivery.on_sent(&packet(last + 1, &[(0, 0, 10, false)]));
        delivery.on_acknowledgements(&ack(last + 1..=last + 1));
        assert_eq!(counts(&delivery), (1, 1, 0, 0));
        // More packets than are remembered.
        let mut delivery = sent(last + 9);
        assert_eq!(delivery.unknown(), Some(Unknown::TooManyPackets));
        delivery.on_sent(&packet(last + 10, &[(0, 0, 90, false)]));
        delivery.on_acknowledgements(&ack(last + 10..=last + 10));
        assert_eq!(delivery.unknown(), None);
        assert_eq!(counts(&delivery), (1, 1, 0, 0));
    }

    #[test]
    fn forgotten_packets_whose_data_arrived_in_others_cause_no_doubt() {
        let mut delivery = Delivery::default();
        delivery.on_sent(&packet(0, &[(0, 0, 10, false)]));
        delivery.on_sent(&packet(1, &[(0, 0, 10, false)]));
        delivery.on_acknowledgements(&Packet {
            acked: vec![1..=1],
            ..packet(9, &[])
        });
        for index in 2..MAX_PACKETS as u64 + 2 {
            delivery.on_sent(&packet(index, &[(0, 10, 10, false)]));
        }
        assert_eq!(delivery.unknown(), None);
    }

    #[test]
    fn streams_are_forgotten_by_their_type() {
        let mut delivery = Delivery::default();
        for index in 0..=MAX_STREAMS as u64 {
            delivery.on_received(&packet(index, &[(index * 4, 0, 5, true)]));
        }
        // Its ID is lower than those of the forgotten streams of the other end.
        delivery.on_received(&packet(9998, &[(1, 0, 5, false)]));
        let streams = MAX_STREAMS as u64 + 1;
        assert_eq!(counts(&delivery), (streams + 1, streams, 0, 1));
    }

    #[test]
    fn streams_that_were_left_out_stay_unknown() {
        let mut delivery = Delivery::default();
        let streams = MAX_STREAMS as u64;
        for index in 0..=streams {
            delivery.on_received(&packet(index, &[(index * 4, 0, 5, false)]));
        }
        for index in 0..streams {
            delivery.on_received(&packet(streams + index, &[(index * 4, 5, 0, true)]));
        }
        delivery.on_received(&packet(9999, &[(streams * 8, 0, 5, true)]));
        assert_eq!(delivery.unknown(), Some(Unknown::TooManyStreams));
    }

    #[test]
    fn trace_that_begins_late_leaves_streams_unknown() {
        let first = |packet_type: &str, number, offset| {
            let mut delivery = Delivery::default();
            delivery.on_received(&Packet {
                packet_type: packet_type.to_owned(),
                ..packet(number, &[])
            });
            delivery.on_received(&packet(9, &[(0, offset, 5, true)]));
            delivery.unknown()
        };
        assert_eq!(first("1RTT", 8, 0), Some(Unknown::BeginsLate));
        assert_eq!(first("1RTT", 0, 5), Some(Unknown::BeginsLate));
        assert_eq!(first("1RTT", 0, 0), None);
        // The packet with the beginning was late or lost.
        assert_eq!(first("initial", 8, 5), None);
    }
}
