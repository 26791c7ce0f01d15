//! Explains a trace line by line.

use std::io::BufRead;

use super::cause::Cause;
use super::delivery::{Delivery, Unknown};
use super::direction::Direction;
use super::ending::{Ending, is_complete};
use super::explanation::Explanation;
use super::facts::TraceFacts;
use super::ledger::Mark;
use super::rank::rank;
use super::receiver::Receiver;
use super::sender::Sender;
use super::words::Case;
use crate::qlog::{About, Event, EventKind, ReadError, Reader};

impl Explanation {
    /// Reads a trace to its end and explains it.
    pub fn of<R: BufRead>(mut reader: Reader<R>) -> Self {
        let mut explainer = Explainer::new(reader.about());
        for line in reader.by_ref() {
            explainer.on_line(line.as_ref());
        }
        explainer.finish(reader.about())
    }
}

/// Explains a trace line by line.
#[derive(Debug)]
pub struct Explainer {
    facts: TraceFacts,
    /// The data sent and received, once it is known which end wrote the trace.
    directions: Option<(Sender, Receiver)>,
    /// The streams of both directions: sent, received.
    deliveries: [Delivery; 2],
    unreadable_lines: u64,
    unreadable: Option<String>,
}

impl Explainer {
    /// Begins an explanation. `about` is the header of the trace.
    pub fn new(about: &About) -> Self {
        let is_server = match about.vantage_point.as_deref() {
            Some("server") => Some(true),
            Some("client") => Some(false),
            _ => None,
        };
        Self {
            facts: TraceFacts::new(is_server),
            directions: None,
            deliveries: Default::default(),
            unreadable_lines: 0,
            unreadable: None,
        }
    }

    /// Processes the next line, an event or the error of reading it.
    pub fn on_line(&mut self, line: Result<&Event, &ReadError>) {
        match line {
            Ok(event) => self.on_event(event),
            Err(error) => {
                self.unreadable_lines += 1;
                self.unreadable.get_or_insert_with(|| error.to_string());
            }
        }
    }

    fn on_event(&mut self, event: &Event) {
        // A trace without a vantage point: the first Initial packet is the client's.
        if self.facts.is_server.is_none() {
            self.facts.is_server = match event.kind {
                EventKind::PacketSent(_) => Some(false),
                EventKind::PacketReceived(_) => Some(true),
                _ => None,
            };
        }
        let is_server = self.facts.is_server.unwrap_or(false);
        let (sender, receiver) = self
            .directions
            .get_or_insert_with(|| (Sender::new(is_server), Receiver::new(is_server)));
        let (from, to) = (
            self.facts.last,
            Mark {
                time: event.time.max(self.facts.last.time),
                line: event.line,
            },
        );
        let [sent, received] = &mut self.deliveries;
        sender.on_time(from, to, &self.facts, sent);
        let handshake = sender.handshake(&self.facts);
        receiver.on_time(from, to, &self.facts, handshake, received);
        let changes = self.facts.on_event(event);
        self.facts.last.time = to.time;
        match &event.kind {
            EventKind::PacketSent(packet) => sent.on_sent(packet),
            EventKind::PacketReceived(packet) => {
                sent.on_acknowledgements(packet);
                received.on_received(packet);
            }
            _ => {}
        }
        sender.on_event(event, &self.facts, &changes);
        receiver.on_event(event, &self.facts, changes.moved, received);
    }

    /// Returns the explanation, once all lines were read.
    pub fn finish(self, about: &About) -> Explanation {
        let is_server = about.vantage_point.as_deref() == Some("server");
        let (mut sender, mut receiver) = self
            .directions
            .unwrap_or_else(|| (Sender::new(is_server), Receiver::new(is_server)));
        let mut facts = self.facts;
        sender.finish(&facts);
        receiver.finish(&facts);
        facts.counts.missing = receiver.lost;
        facts.blocked.finish(facts.last);
        let bytes_sent = sender.credit.bytes.saturating_add(sender.datagram_bytes);
        let bytes_received = receiver
            .credit
            .bytes
            .saturating_add(receiver.datagram_bytes);
        let direction = match bytes_received > bytes_sent {
            true => Direction::Received,
            false => Direction::Sent,
        };
        let (ledger, bytes) = match direction {
            Direction::Sent => (&sender.ledger, bytes_sent),
            Direction::Received => (&receiver.ledger, bytes_received),
        };
        let duration = ledger.total();
        let active = duration - ledger.entry(Cause::Idle).total;
        let rate = match active > 0.0 {
            true => bytes as f64 * 8.0 / active,
            false => 0.0,
        };
        let stalls = [
            Cause::Handshake,
            Cause::Blackout,
            Cause::ProbeTimeout,
            Cause::PathMtu,
        ];
        let stalled: f64 = stalls.map(|it| ledger.entry(it).total).iter().sum();
        let [sent, received] = self.deliveries.each_ref().map(Delivery::streams);
        let has_gaps = facts.counts.records_dropped > 0 || self.unreadable_lines > 0;
        let unknown = unknown(has_gaps, &self.deliveries);
        let case = Case {
            direction,
            facts: &facts,
            sender: &sender,
            receiver: &receiver,
            rate: rate * active / (active - stalled).max(f64::MIN_POSITIVE),
        };
        Explanation {
            vantage_point: about.vantage_point.clone(),
            close: Ending::of(&facts),
            is_complete: is_complete(sent, received, unknown),
            unknown,
            streams_sent: sent,
            streams_received: received,
            direction,
            bytes_sent,
            bytes_received,
            duration,
            active,
            rate,
            min_rtt: facts.min_rtt,
            counts: facts.counts,
            findings: rank(ledger, &case),
            notes: case.notes(),
            unreadable_lines: self.unreadable_lines,
            unreadable: self.unreadable,
        }
    }
}

/// Returns the reason why the trace does not show whether each stream was transferred completely.
fn unknown(has_gaps: bool, deliveries: &[Delivery; 2]) -> Option<Unknown> {
    let gaps = has_gaps.then_some(Unknown::Gaps);
    gaps.or_else(|| deliveries.iter().filter_map(Delivery::unknown).min())
}
