//! Attributes time to causes for data that the traced end receives.

use std::collections::BTreeSet;

use super::cause::Cause;
use super::credit::{Credit, Reached};
use super::delivery::Delivery;
use super::facts::TraceFacts;
use super::ledger::{Ledger, Mark, Snapshot};
use super::rates::Rates;
use crate::qlog::{Event, EventKind, Frame, Packet, Space};

/// Attributes the time of a receiver. The trace does not contain the windows of the peer, so the causes
/// are inferred from the packets that arrive.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) ledger: Ledger,
    pub(super) credit: Credit,
    /// The time of the last data received, from which a pause counts.
    data: Option<Snapshot>,
    /// The time of the last data sent, which the peer may have waited for.
    last_request: Option<Snapshot>,
    /// True until data follows.
    awaits_response: bool,
    /// True after STREAMS_BLOCKED, until the peer allows more streams.
    is_out_of_streams: bool,
    /// The number of packets missing before the last one, whatever they carried.
    jump: u64,
    /// The next packet number expected, and the numbers below that did not arrive.
    next: u64,
    missing: BTreeSet<u64>,
    /// The number of packets of the peer that had been missing and arrived late.
    pub(super) late: u64,
    /// The number of packets of the peer that did not arrive, or arrived too late.
    pub(super) lost: u64,
    received: u64,
    /// Data packets since the last pause, and their bytes.
    has_loss: bool,
    was_blocked: Option<Cause>,
    /// The bytes behind gaps.
    behind_gaps: u64,
    released: Option<f64>,
    pub(super) datagram_bytes: u64,
    moved: bool,
    shrinking: u64,
    rates: Rates,
}

impl Receiver {
    pub(super) fn new(is_server: bool) -> Self {
        Self {
            ledger: Ledger::default(),
            credit: Credit::new(!is_server),
            data: None,
            last_request: None,
            awaits_response: false,
            is_out_of_streams: false,
            jump: 0,
            next: 0,
            missing: BTreeSet::new(),
            late: 0,
            lost: 0,
            received: 0,
            has_loss: false,
            was_blocked: None,
            behind_gaps: 0,
            released: None,
            datagram_bytes: 0,
            moved: false,
            shrinking: 0,
            rates: Rates::default(),
        }
    }

    /// Attributes the time from the previous event to this one. `facts` are as of the previous event,
    /// `handshake` is the cause until the handshake completes, and `arrived` is the data that has arrived.
    pub(super) fn on_time(
        &mut self,
        from: Mark,
        to: Mark,
        facts: &TraceFacts,
        handshake: Option<Cause>,
        arrived: &Delivery,
    ) {
        self.ledger.set_pause(facts.base_rtt());
        if facts.first.is_none() || facts.closed.is_some() {
            return;
        }
        let cause = handshake.unwrap_or_else(|| self.cause(from, arrived));
        self.ledger.add(cause, from, to);
    }

    fn cause(&self, now: Mark, arrived: &Delivery) -> Cause {
        // This end has not sent the credit that the peer needs: its application reads slowly, or waits for the
        // data in a gap.
        if let Some(reached) = self.credit.reached() {
            return match self.credit.is_blocked_by_gap(reached, arrived) {
                true => Cause::HeadOfLine,
                false => Cause::SlowReader,
            };
        }
        if let Some(cause) = self.was_blocked {
            return cause;
        }
        let has_begun = self.data.is_some();
        if !has_begun || !self.credit.has_open_streams() && self.datagram_bytes == 0 {
            // No response is expected or the peer has not begun to send one.
            return match self.last_request {
                _ if self.is_out_of_streams => Cause::StreamLimit,
                Some(request) if now.time >= request.at.time => Cause::PeerApplication,
                _ => Cause::Application,
            };
        }
        if self.has_loss {
            return Cause::Loss;
        }
        Cause::Bottleneck
    }

    /// Processes an event. `facts` and `arrived` include it.
    pub(super) fn on_event(
        &mut self,
        event: &Event,
        facts: &TraceFacts,
        moved: bool,
        arrived: &Delivery,
    ) {
        let mark = facts.last;
        self.moved |= moved;
        match &event.kind {
            EventKind::PacketReceived(packet) => {
                self.on_received(packet, mark, facts);
                self.on_gaps(packet, mark, arrived);
            }
            EventKind::PacketSent(packet) => self.on_sent(packet, mark),
            EventKind::Parameters(parameters) if !parameters.is_peers => {
                self.credit.on_parameters(parameters);
            }
            _ => {}
        }
    }

    fn on_sent(&mut self, packet: &Packet, mark: Mark) {
        for frame in &packet.frames {
            self.credit.on_receivers_frame(frame);
            match frame {
                Frame::Stream { .. } | Frame::Datagram { .. } => {
                    self.last_request = Some(self.ledger.snapshot(mark));
                    self.awaits_response = true;
                }
                Frame::StreamsBlocked { .. } => self.is_out_of_streams = true,
                _ => {}
            }
        }
    }

    fn on_received(&mut self, packet: &Packet, mark: Mark, facts: &TraceFacts) {
        if packet.space() == Space::Application
            && let Some(number) = packet.number
        {
            let mut spans = packet.streams.iter();
            let has_gap = spans.any(|&span| self.credit.is_behind_gap(span));
            self.on_number(number, has_gap);
        }
        let earlier = self.credit.reached_earlier();
        let mut new = 0;
        let mut has_datagrams = false;
        for frame in &packet.frames {
            match *frame {
                Frame::Stream { span, fin } => {
                    new = u64::saturating_add(new, self.credit.on_data(span, fin));
                }
                Frame::ResetStream { stream } => self.credit.on_reset(stream),
                Frame::Datagram { len } => {
                    has_datagrams = true;
                    self.datagram_bytes = self.datagram_bytes.saturating_add(len);
                }
                Frame::MaxStreams { .. } => self.is_out_of_streams = false,
                Frame::DataBlocked { .. } => {
                    self.was_blocked = Some(Cause::ConnectionFlowControl);
                }
                Frame::StreamDataBlocked { .. } => {
                    self.was_blocked = Some(Cause::StreamFlowControl);
                }
                _ => {}
            }
        }
        if new == 0 && !has_datagrams && packet.streams.is_empty() {
            return;
        }
        self.end_pause(mark, facts, earlier);
        if std::mem::take(&mut self.awaits_response)
            && let Some(request) = self.last_request
        {
            // A request and its response take a round trip, whatever the peer does.
            let (from, to) = (Cause::PeerApplication, Cause::Application);
            self.ledger.shift(&request, from, to, facts.base_rtt());
        }
        if new > 0 {
            self.was_blocked = None;
        }
        self.rates.on_data(mark.time, packet.len, facts.base_rtt());
        self.data = Some(self.ledger.snapshot(mark));
    }

    /// Updates the bytes behind gaps, and notes when a gap before a large part of the window closes.
    fn on_gaps(&mut self, packet: &Packet, mark: Mark, arrived: &Delivery) {
        if packet.streams.is_empty() {
            return;
        }
        let before = std::mem::replace(&mut self.behind_gaps, arrived.behind_gaps());
        let released = before.saturating_sub(self.behind_gaps);
        if self.credit.is_large(released) {
            self.released = Some(mark.time);
        }
    }

    /// Processes the number of a packet, whose data may lie behind a gap. If numbers are missing but no
    /// data is, the peer skipped them to detect acknowledgements of packets that were not received
    /// (RFC 9000 §21.4).
    fn on_number(&mut self, number: u64, has_gap: bool) {
        self.received += 1;
        self.jump = number.saturating_sub(self.next);
        if number >= self.next {
            let from = self.next.max(number.saturating_sub(MAX_GAP));
            if has_gap && self.received > 1 {
                self.missing.extend(from..number);
            }
            self.next = number.saturating_add(1);
        } else if self.missing.remove(&number) {
            self.late += 1;
        }
        while let Some(&oldest) = self.missing.first() {
            if oldest.saturating_add(PATIENCE) > self.next && self.missing.len() <= MAX_MISSING {
                break;
            }
            self.missing.pop_first();
            self.lost += 1;
            self.shrinking = LOSS_LASTS;
        }
        self.shrinking = self.shrinking.saturating_sub(1);
        self.has_loss = self.shrinking > 0;
    }

    /// Attributes a pause that ends with the arrival of data. The position of the data shows the cause.
    fn end_pause(&mut self, until: Mark, facts: &TraceFacts, earlier: Option<Reached>) {
        let Some(data) = self.data else {
            return;
        };
        let pause = until.time - data.at.time;
        // On very short paths, pauses come from processors and schedulers.
        let rtt = facts.base_rtt().max(MIN_RTT);
        let moved = std::mem::take(&mut self.moved);
        let is_flowing = |cause| matches!(cause, Cause::Bottleneck | Cause::Loss);
        let is_any = |cause| {
            !matches!(
                cause,
                Cause::SlowReader | Cause::Application | Cause::Handshake | Cause::Amplification
            )
        };
        if moved && pause > rtt {
            return self
                .ledger
                .reassign(&data, until, Cause::PathChange, is_any);
        }
        if let Some(reached) = earlier
            && pause >= rtt * SHORT_PAUSE
        {
            let cause = match reached {
                // The credit was sent when a gap closed. The data that it allows arrives a round trip later.
                _ if self
                    .released
                    .is_some_and(|at| until.time - at < rtt * LONG_PAUSE) =>
                {
                    Cause::HeadOfLine
                }
                Reached::Connection => Cause::ConnectionFlowControl,
                Reached::Stream => Cause::StreamFlowControl,
            };
            return self.ledger.reassign(&data, until, cause, is_flowing);
        }
        let waits = self
            .last_request
            .is_some_and(|request| request.at.time >= data.at.time);
        match pause {
            pause if pause >= IDLE.max(rtt * 3.0) && !waits => {
                let is_free = |cause| {
                    is_flowing(cause)
                        || matches!(cause, Cause::PeerApplication | Cause::Application)
                };
                let cause = match self.jump >= OUTAGE || !self.missing.is_empty() {
                    true => Cause::Blackout,
                    false => Cause::Idle,
                };
                self.ledger.reassign(&data, until, cause, is_free);
            }
            pause if pause >= rtt * LONG_PAUSE => {
                let cause = match self.jump >= OUTAGE || !self.missing.is_empty() {
                    true => Cause::ProbeTimeout,
                    false => Cause::PeerApplication,
                };
                self.ledger.reassign(&data, until, cause, is_flowing);
            }
            pause if pause >= rtt * SHORT_PAUSE && !self.has_loss => {
                self.ledger
                    .reassign(&data, until, Cause::Window, |it| it == Cause::Bottleneck);
            }
            _ => {}
        }
    }

    /// Attributes the time after the last data, and corrects causes with what the whole trace shows.
    pub(super) fn finish(&mut self, facts: &TraceFacts) {
        let until = facts.closed.unwrap_or(facts.last);
        if let Some(data) = self.data
            && until.time - data.at.time >= IDLE
        {
            self.ledger.reassign(&data, until, Cause::Idle, |cause| {
                matches!(
                    cause,
                    Cause::Bottleneck | Cause::Loss | Cause::PeerApplication | Cause::Application
                )
            });
        }
        self.lost += self.missing.len() as u64;
        // The window of the peer is unknown. A steady rate is that of the path. Otherwise the window was small,
        // because of losses or because it was still growing.
        let cause = match () {
            () if self.rates.is_steady() => Cause::Bottleneck,
            () if self.lost >= MIN_LOST && self.lost * 200 >= self.received => Cause::Loss,
            () if self.rates.is_growing() && self.is_short(facts) => Cause::SlowStart,
            () => Cause::Window,
        };
        for other in [Cause::Loss, Cause::Bottleneck, Cause::Window] {
            if other != cause {
                self.ledger.give(other, cause, 1.0);
            }
        }
    }

    /// Returns true if data flowed for so few round trips that slow start may have lasted for all of them.
    fn is_short(&self, facts: &TraceFacts) -> bool {
        let causes = [Cause::Loss, Cause::Bottleneck, Cause::Window];
        let flowing: f64 = causes.map(|it| self.ledger.entry(it).total).iter().sum();
        flowing <= facts.base_rtt() * SLOW_START
    }

    /// Returns the share of the peer's packets that did not arrive, 0 to 1.
    pub(super) fn loss_share(&self) -> f64 {
        let all = self.received + self.lost;
        if all == 0 {
            return 0.0;
        }
        self.lost as f64 / all as f64
    }
}

/// The pause in round trips from which on a window of the sender is the cause.
const SHORT_PAUSE: f64 = 0.4;
/// The shortest round-trip time, in seconds, that pauses are compared with.
const MIN_RTT: f64 = 0.005;
/// The pause in round trips from which on a window of the sender does not explain it.
const LONG_PAUSE: f64 = 1.5;
/// The pause in seconds from which on the connection counts as idle.
const IDLE: f64 = 1.0;
/// The number of consecutive missing packets from which on they count as lost. A peer may skip single
/// numbers.
const OUTAGE: u64 = 2;
/// The largest number of round trips that slow start can last: 2^20 initial windows exceed any path.
const SLOW_START: f64 = 20.0;
/// The number of missing packets from which on losses are a property of the path.
const MIN_LOST: u64 = 3;
/// The number of later packets after which a missing packet counts as lost.
const PATIENCE: u64 = 64;
/// The number of packets for which a loss keeps the peer's window small.
const LOSS_LASTS: u64 = 500;
/// The largest gap in packet numbers whose packets are all remembered as missing.
const MAX_GAP: u64 = 1000;
/// The largest number of missing packets that are remembered. K207.
const MAX_MISSING: usize = 4096;
