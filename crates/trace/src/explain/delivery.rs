//! Streams that came to their end, in one direction.

use std::collections::{BTreeMap, HashMap};

use courser_qlog::{Frame, Packet, Space, Span};
use serde::Serialize;

/// The streams of one direction.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Streams {
    /// Streams that carried something.
    pub begun: u64,
    /// Streams of which everything arrived, the end included.
    pub complete: u64,
    /// Streams that were reset.
    pub reset: u64,
    /// Streams that were neither complete nor reset at the end of the trace.
    pub open: u64,
}

/// Follows the parts of streams that have arrived.
///
/// Of a connection with bidirectional streams only those count: the unidirectional ones of HTTP/3 never
/// end.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    streams: HashMap<u64, Stream>,
    /// Streams that were forgotten after their end: those up to this one that are not remembered.
    forgotten_up_to: Option<u64>,
    /// Both directions, then one.
    counts: [Streams; 2],
    /// The parts in packets that are not acknowledged. Only of data that is sent.
    unacknowledged: BTreeMap<u64, Vec<(Span, bool)>>,
    is_overfull: bool,
}

#[derive(Debug, Default)]
struct Stream {
    /// All bytes up to here have arrived.
    end: u64,
    /// Parts behind a gap: their beginnings and ends.
    later: BTreeMap<u64, u64>,
    size: Option<u64>,
    is_over: bool,
}

impl Stream {
    fn add(&mut self, span: Span, fin: bool) {
        let (from, to) = (span.offset, span.offset.saturating_add(span.len));
        if fin {
            self.size = Some(to);
        }
        if from > self.end {
            // A hole that is filled out of order costs one entry at most.
            if self.later.len() < MAX_PARTS {
                let known = self.later.entry(from).or_insert(to);
                *known = to.max(*known);
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

    fn is_complete(&self) -> bool {
        self.size.is_some_and(|size| size <= self.end)
    }
}

impl Delivery {
    /// Takes over a packet that this end received, for data that it receives.
    pub(super) fn on_received(&mut self, packet: &Packet) {
        for frame in &packet.frames {
            match *frame {
                Frame::Stream { span, fin } => self.arrived(span, fin),
                Frame::ResetStream { stream } => self.reset(stream),
                _ => {}
            }
        }
    }

    /// Takes over a packet that this end sent, for data that it sends.
    pub(super) fn on_sent(&mut self, packet: &Packet) {
        let mut parts = Vec::new();
        for frame in &packet.frames {
            match *frame {
                Frame::Stream { span, fin } => {
                    self.stream(span.stream);
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
            // It was lost long ago.
            self.unacknowledged.pop_first();
        }
    }

    /// Takes over the acknowledgements of a packet that this end received.
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

    /// Returns the counts of the streams. `None` if there were too many at once to tell.
    pub(super) fn streams(&self) -> Option<Streams> {
        let [both, one] = self.counts;
        let mut streams = if both.begun > 0 { both } else { one };
        streams.open = streams.begun - streams.complete - streams.reset;
        (!self.is_overfull).then_some(streams)
    }

    fn arrived(&mut self, span: Span, fin: bool) {
        let Some(stream) = self.stream(span.stream) else {
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
        &mut self.counts[usize::from(id & 2 != 0)]
    }

    fn stream(&mut self, id: u64) -> Option<&mut Stream> {
        if !self.streams.contains_key(&id) {
            if self.forgotten_up_to.is_some_and(|last| id <= last) {
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
        let over = self.streams.iter().filter(|(_, stream)| stream.is_over);
        self.forgotten_up_to = self.forgotten_up_to.max(over.map(|(id, _)| *id).max());
        self.streams.retain(|_, stream| !stream.is_over);
        self.is_overfull = self.streams.len() >= MAX_STREAMS;
    }
}

/// The streams that are followed at once (limit K254).
const MAX_STREAMS: usize = 1024;
/// The parts of a stream behind a gap that are remembered (limit K254).
const MAX_PARTS: usize = 1024;
/// The packets with data that are not acknowledged (limit K254).
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
    fn received_streams_are_complete_without_gaps_up_to_their_end() {
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
    fn sent_streams_are_complete_once_all_of_them_is_acknowledged() {
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
        for index in 0..MAX_STREAMS as u64 + 10 {
            delivery.on_received(&packet(index, &[(index * 4, 1, 1, false)]));
        }
        assert_eq!(delivery.streams(), None);
    }
}
