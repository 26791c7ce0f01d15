//! Attributes time to causes for data that the traced end sends.

use std::collections::BTreeSet;

use super::cause::Cause;
use super::credit::{Credit, Reached};
use super::delivery::Delivery;
use super::facts::{Changes, TraceFacts};
use super::ledger::{Ledger, Mark, Snapshot};
use super::spread::Spread;
use crate::qlog::{Event, EventKind, Frame, Packet};

/// Attributes the time of a sender.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) ledger: Ledger,
    pub(super) credit: Credit,
    /// The current limit according to the trace, if the trace records limits.
    limit: Option<Cause>,
    has_limits: bool,
    regime: Regime,
    /// Losses since the last reduction of the window: all, and those while packets waited in a queue.
    losses: (u64, u64),
    /// Seconds at the capacity of the path: all, and those after losses reduced the window.
    full_for: (f64, f64),
    /// The time of the last packet that this end waited for. A silence counts from it.
    last_heard: Option<Snapshot>,
    /// Probe timeouts since `last_heard`.
    silent_ptos: u64,
    moved_in_silence: bool,
    moved_at: Option<f64>,
    /// The time of the last acknowledgement of a full datagram, from which a smaller path MTU counts.
    carried: Option<Snapshot>,
    /// The value of `carried` when the datagram size was reduced, and the time of the reduction.
    fell: Option<(Snapshot, f64)>,
    /// The time of the last data sent, from which idleness counts.
    sent: Option<Snapshot>,
    /// The bytes sent at the time of `sent`.
    burst: u64,
    /// True after STREAMS_BLOCKED, until the peer allows more streams.
    is_out_of_streams: bool,
    sent_bytes: u64,
    has_lost: bool,
    /// The congestion windows at which losses without a queue caused a reduction, without the first one.
    reduced_at: Spread,
    received_bytes: u64,
    /// Packet numbers of full datagrams in flight.
    full: BTreeSet<u64>,
    pub(super) datagram_bytes: u64,
    pub(super) largest_window: u64,
}

/// The reason for the present size of the congestion window.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Regime {
    /// The window was never reduced.
    SlowStart,
    /// Slow start ended without a loss, because the round-trip time rose.
    Full,
    /// Losses while packets waited in a queue.
    Congestion,
    /// Losses although no packets waited in a queue.
    Loss,
    /// CE marks (RFC 9002 §7.1).
    Ecn,
    /// Persistent congestion (RFC 9002 §7.6), until the window reaches this size.
    Persistent(u64),
    /// A new path, until the window reaches this size.
    Moved(u64),
}

impl Sender {
    pub(super) fn new(is_server: bool) -> Self {
        Self {
            ledger: Ledger::default(),
            credit: Credit::new(is_server),
            limit: None,
            has_limits: false,
            regime: Regime::SlowStart,
            losses: (0, 0),
            full_for: (0.0, 0.0),
            last_heard: None,
            silent_ptos: 0,
            moved_in_silence: false,
            moved_at: None,
            carried: None,
            fell: None,
            sent: None,
            burst: 0,
            is_out_of_streams: false,
            sent_bytes: 0,
            has_lost: false,
            reduced_at: Spread::default(),
            received_bytes: 0,
            full: BTreeSet::new(),
            datagram_bytes: 0,
            largest_window: 0,
        }
    }

    /// Attributes the time from the previous event to this one. `facts` are as of the previous event, and
    /// `arrived` is the data that the peer has acknowledged.
    pub(super) fn on_time(&mut self, from: Mark, to: Mark, facts: &TraceFacts, arrived: &Delivery) {
        self.ledger.set_pause(facts.base_rtt());
        if facts.first.is_none() || facts.closed.is_some() {
            return;
        }
        let cause = self.cause(facts, arrived);
        if cause == Cause::Bottleneck {
            let time = to.time - from.time;
            let has_lost = matches!(self.regime, Regime::Congestion | Regime::Loss);
            self.full_for.0 += time;
            self.full_for.1 += if has_lost { time } else { 0.0 };
        }
        self.ledger.add(cause, from, to);
    }

    /// Returns the cause that applies until the handshake completes, and `None` afterwards.
    pub(super) fn handshake(&self, facts: &TraceFacts) -> Option<Cause> {
        match facts.handshake_done {
            Some(_) => None,
            None if self.is_amplified(facts) => Some(Cause::Amplification),
            None => Some(Cause::Handshake),
        }
    }

    fn cause(&self, facts: &TraceFacts, arrived: &Delivery) -> Cause {
        if let Some(cause) = self.handshake(facts) {
            return cause;
        }
        let limit = match self.limit.filter(|_| self.has_limits) {
            // An application that writes only as much as credit allows has nothing to send without credit.
            Some(Cause::Application) => self.flow_control().unwrap_or(Cause::Application),
            Some(limit) => limit,
            None if self.has_limits => Cause::Application,
            None => self.inferred(facts),
        };
        match limit {
            Cause::Window => self.window(facts),
            Cause::Pacing => self.pacing(facts),
            Cause::StreamFlowControl => self.full(Reached::Stream, facts, arrived),
            Cause::ConnectionFlowControl => self.full(Reached::Connection, facts, arrived),
            Cause::Application if self.is_out_of_streams => Cause::StreamLimit,
            // After a migration, the limit applies to the new address of the peer.
            Cause::Amplification if facts.counts.path_changes > 0 => Cause::PathChange,
            other => other,
        }
    }

    /// Finds the reason why the receiver grants no more credit.
    fn full(&self, reached: Reached, facts: &TraceFacts, arrived: &Delivery) -> Cause {
        match reached {
            _ if self.credit.is_blocked_by_gap(reached, arrived) => Cause::HeadOfLine,
            // The receiver has all data and still grants no credit.
            _ if facts.in_flight == Some(0) => Cause::SlowReader,
            Reached::Connection => Cause::ConnectionFlowControl,
            Reached::Stream => Cause::StreamFlowControl,
        }
    }

    /// Returns true if the anti-amplification limit stops a server until the client sends (RFC 9000 §8.1).
    fn is_amplified(&self, facts: &TraceFacts) -> bool {
        let limit = self.received_bytes.saturating_mul(3);
        facts.is_server == Some(true)
            && limit > 0
            && self.sent_bytes.saturating_add(MIN_INITIAL_DATAGRAM) > limit
    }

    fn flow_control(&self) -> Option<Cause> {
        Some(match self.credit.reached()? {
            Reached::Connection => Cause::ConnectionFlowControl,
            Reached::Stream => Cause::StreamFlowControl,
        })
    }

    /// Infers the limit, for traces that do not record limits.
    fn inferred(&self, facts: &TraceFacts) -> Cause {
        if let Some(cause) = self.flow_control() {
            return cause;
        }
        if let (Some(window), Some(in_flight)) = (facts.window, facts.in_flight)
            && in_flight.saturating_add(facts.mtu) > window
        {
            return Cause::Window;
        }
        Cause::Application
    }

    /// Finds the reason for a full congestion window.
    fn window(&self, facts: &TraceFacts) -> Cause {
        match self.regime {
            Regime::Persistent(_) => Cause::PersistentCongestion,
            Regime::Moved(_) => Cause::PathChange,
            Regime::Ecn => Cause::Ecn,
            _ if facts.has_queue() => Cause::Bottleneck,
            Regime::SlowStart => Cause::SlowStart,
            Regime::Full | Regime::Congestion => Cause::Bottleneck,
            Regime::Loss => Cause::Loss,
        }
    }

    /// Finds the reason for which the pacer delays packets. If its rate follows from the window, the reason
    /// is that of the window.
    fn pacing(&self, facts: &TraceFacts) -> Cause {
        let follows_window = match (facts.pacing_rate, facts.window_rate()) {
            (Some(rate), Some(window)) => rate as f64 >= window * 0.9,
            _ => false,
        };
        let is_starting = facts.congestion_state.as_deref() == Some("startup");
        match () {
            () if follows_window => self.window(facts),
            () if facts.is_bbr() && is_starting => Cause::SlowStart,
            () if facts.is_bbr() => match self.window(facts) {
                Cause::SlowStart | Cause::Loss => Cause::Bottleneck,
                other => other,
            },
            () => Cause::Pacing,
        }
    }

    /// Processes an event. `facts` include it, and `changes` are the facts that it changed.
    pub(super) fn on_event(&mut self, event: &Event, facts: &TraceFacts, changes: &Changes) {
        let mark = facts.last;
        match &event.kind {
            EventKind::PacketSent(packet) => self.on_sent(packet, mark, facts),
            EventKind::PacketReceived(packet) => self.on_received(packet, mark, facts),
            EventKind::PacketDropped { len, .. } => {
                self.received_bytes = self.received_bytes.saturating_add(len.unwrap_or(0));
            }
            EventKind::Limited { reason } => {
                self.has_limits = true;
                self.limit = reason.as_deref().and_then(limit);
            }
            EventKind::Parameters(parameters) if parameters.is_peers => {
                self.credit.on_parameters(parameters);
            }
            EventKind::PacketLost(lost) if !lost.is_mtu_probe => {
                let is_congestive = u64::from(facts.has_queue());
                self.losses.0 += 1;
                self.losses.1 += is_congestive;
            }
            _ => {}
        }
        self.largest_window = self.largest_window.max(facts.window.unwrap_or(0));
        if changes.has_ptos {
            self.silent_ptos += 1;
        }
        if changes.moved {
            self.moved_in_silence = true;
            self.moved_at = Some(mark.time);
            self.regime = Regime::Moved(u64::MAX);
        }
        if let Some(old) = changes.reduced_from {
            self.on_reduced(old, facts, changes);
        }
        self.on_growth(facts);
        if changes.mtu_fell_from.is_some() {
            self.full.clear();
            self.fell = self.carried.take().map(|carried| (carried, mark.time));
        }
    }

    fn on_reduced(&mut self, old: u64, facts: &TraceFacts, changes: &Changes) {
        let new = facts.window.unwrap_or(0);
        let (lost, congestive) = std::mem::take(&mut self.losses);
        let is_reset = new <= 2 * facts.mtu.max(1200) + 1 && old >= new.saturating_mul(5) / 2;
        self.regime = match self.regime {
            // Soon after a migration, packets to the old address are lost.
            Regime::Moved(until) if lost == 0 || self.has_just_moved(facts) => {
                Regime::Moved(until.min(old / 2))
            }
            _ if is_reset && self.silent_ptos > 0 => Regime::Persistent(old / 2),
            Regime::Persistent(until) if lost == 0 => Regime::Persistent(until),
            _ if lost == 0 && changes.ce_marks.max(facts.counts.ce_marks) > 0 => Regime::Ecn,
            // BBR and others also reduce the window without a loss.
            other if lost == 0 => other,
            _ if congestive * 2 >= lost => Regime::Congestion,
            _ => Regime::Loss,
        };
        if self.regime == Regime::Loss {
            // The first reduction ends slow start, whose window is too large in any case.
            match self.has_lost {
                true => self.reduced_at.add(old as f64),
                false => self.has_lost = true,
            }
        }
    }

    fn has_just_moved(&self, facts: &TraceFacts) -> bool {
        let round_trips = facts.base_rtt() * 5.0;
        self.moved_at
            .is_some_and(|at| facts.last.time - at <= round_trips)
    }

    fn on_growth(&mut self, facts: &TraceFacts) {
        let window = facts.window.unwrap_or(0);
        match self.regime {
            Regime::Persistent(until) | Regime::Moved(until) if window >= until => {
                self.regime = Regime::Full;
            }
            // The window was not reset on the new path.
            Regime::Moved(u64::MAX) if !self.has_just_moved(facts) => {
                self.regime = Regime::Full;
            }
            Regime::SlowStart
                if matches!(
                    facts.congestion_state.as_deref(),
                    Some("congestion_avoidance")
                ) =>
            {
                self.regime = Regime::Full;
            }
            _ => {}
        }
    }

    fn on_sent(&mut self, packet: &Packet, mark: Mark, facts: &TraceFacts) {
        self.sent_bytes = self.sent_bytes.saturating_add(packet.len);
        let mut has_data = false;
        for frame in &packet.frames {
            match *frame {
                Frame::Stream { span, fin } => {
                    has_data |= span.len > 0 || fin;
                    self.credit.on_data(span, fin);
                }
                Frame::ResetStream { stream } => self.credit.on_reset(stream),
                Frame::Datagram { len } => {
                    has_data = true;
                    self.datagram_bytes = self.datagram_bytes.saturating_add(len);
                }
                Frame::StreamsBlocked { .. } => self.is_out_of_streams = true,
                _ => {}
            }
        }
        if packet.len >= facts.mtu && facts.mtu > 1200 {
            if self.full.len() >= MAX_FULL {
                self.full.pop_first();
            }
            self.full.extend(packet.number);
        }
        if has_data {
            self.end_idleness(mark);
            if !self.has_limits {
                self.on_gap(mark, facts);
            }
            if self.sent.is_none_or(|sent| sent.at.time < mark.time) {
                self.burst = 0;
            }
            self.burst = self.burst.saturating_add(packet.len);
            self.sent = Some(self.ledger.snapshot(mark));
        }
    }

    /// Attributes the time before new data to idleness if it was long.
    fn end_idleness(&mut self, until: Mark) {
        let Some(sent) = self.sent else {
            return;
        };
        if until.time - sent.at.time >= IDLE {
            let is_free = |cause| matches!(cause, Cause::Application | Cause::PeerApplication);
            self.ledger.reassign(&sent, until, Cause::Idle, is_free);
        }
    }

    /// Attributes a gap to the pacer in a trace without limits, if no packet of the peer ended it and it is
    /// about as long as the pacing rate requires.
    fn on_gap(&mut self, mark: Mark, facts: &TraceFacts) {
        let (Some(sent), Some(rate)) = (self.sent, facts.pacing_rate) else {
            return;
        };
        let paced = self.burst as f64 * 8.0 / (rate.max(1)) as f64;
        let gap = mark.time - sent.at.time;
        let is_ended_by_peer = self
            .last_heard
            .is_some_and(|last_heard| last_heard.at.time > sent.at.time);
        if gap > 0.0 && gap <= paced * 2.0 + TIMER && !is_ended_by_peer {
            let cause = self.pacing(facts);
            self.ledger
                .reassign(&sent, mark, cause, |cause| cause == Cause::Application);
        }
    }

    fn on_received(&mut self, packet: &Packet, mark: Mark, facts: &TraceFacts) {
        self.received_bytes = self.received_bytes.saturating_add(packet.len);
        // If only the datagram size was too large, smaller datagrams arrive at once. After an outage they do not.
        if let Some((carried, at)) = self.fell.take()
            && mark.time - at <= facts.base_rtt() * 2.0 + TIMER * 25.0
        {
            self.ledger
                .reassign(&carried, mark, Cause::PathMtu, |cause| cause != Cause::Idle);
        }
        // A packet without acknowledgements, such as a probe of the peer, does not end the wait.
        let is_waiting = facts.in_flight.is_some_and(|bytes| bytes > 0);
        if !(is_waiting && packet.acked.is_empty()) {
            self.end_silence(mark, facts);
            self.last_heard = Some(self.ledger.snapshot(mark));
        }
        for frame in &packet.frames {
            self.credit.on_receivers_frame(frame);
            if matches!(frame, Frame::MaxStreams { .. }) {
                self.is_out_of_streams = false;
            }
        }
        let before = self.full.len();
        for range in &packet.acked {
            // The work is that for the numbers removed, however many ranges there are.
            while let Some(&number) = self.full.range(range.clone()).next() {
                self.full.remove(&number);
            }
        }
        let is_carried = self.full.len() < before;
        if is_carried || self.carried.is_none() || self.full.is_empty() {
            self.carried = Some(self.ledger.snapshot(mark));
        }
    }

    /// Attributes a silence that ends now to probe timeouts, if any expired in it.
    fn end_silence(&mut self, until: Mark, facts: &TraceFacts) {
        let ptos = std::mem::take(&mut self.silent_ptos);
        let moved = std::mem::take(&mut self.moved_in_silence);
        let Some(last_heard) = self.last_heard.take() else {
            return;
        };
        let length = until.time - last_heard.at.time;
        if ptos == 0 || facts.handshake_done.is_none() || length < facts.base_rtt() {
            return;
        }
        let cause = match ptos {
            _ if moved => Cause::PathChange,
            1 => Cause::ProbeTimeout,
            _ => Cause::Blackout,
        };
        let is_working = |cause| !matches!(cause, Cause::Idle | Cause::PathMtu);
        self.ledger.reassign(&last_heard, until, cause, is_working);
    }

    /// Attributes the last silence, and corrects causes with what the whole trace shows.
    pub(super) fn finish(&mut self, facts: &TraceFacts) {
        let until = facts.closed.unwrap_or(facts.last);
        self.end_idleness(until);
        if self.silent_ptos > 1 {
            self.end_silence(until, facts);
        }
        let counts = &facts.counts;
        let has_mattered = counts.lost >= MIN_LOSSES && counts.reductions > 0;
        if has_mattered && counts.spurious as f64 >= counts.lost as f64 * SPURIOUS {
            self.ledger.give(Cause::Loss, Cause::Reordering, 1.0);
            // The time on a path that is saturated without losses stays attributed to the path.
            let (all, after_losses) = self.full_for;
            let share = after_losses / all.max(f64::MIN_POSITIVE);
            self.ledger
                .give(Cause::Bottleneck, Cause::Reordering, share);
        }
        let (delay, rtt) = (facts.ack_delay(), facts.base_rtt());
        if delay >= rtt * LATE_ACK && delay >= MIN_LATE_ACK {
            let share = delay / (delay + rtt);
            for cause in [Cause::SlowStart, Cause::Bottleneck, Cause::Window] {
                self.ledger.give(cause, Cause::AckDelay, share);
            }
        }
        let per_reduction = counts.lost as f64 / counts.reductions.max(1) as f64;
        if per_reduction >= POLICED || per_reduction >= SEVERAL && self.reduced_at.is_narrow() {
            self.ledger.give(Cause::Loss, Cause::Policer, 1.0);
        }
    }
}

/// Returns the cause for the name of a limit (quic-events §7.7).
fn limit(name: &str) -> Option<Cause> {
    Some(match name {
        "application" | "scheduling" => Cause::Application,
        "congestion_control" => Cause::Window,
        "pacing" => Cause::Pacing,
        "connection_flow_control" => Cause::ConnectionFlowControl,
        "stream_flow_control" => Cause::StreamFlowControl,
        "stream_id" => Cause::StreamLimit,
        "amplification_protection" => Cause::Amplification,
        _ => return None,
    })
}

/// The assumed precision of timers in seconds.
const TIMER: f64 = 0.001;
/// The smallest size of datagrams with Initial packets (RFC 9000 §14.1).
const MIN_INITIAL_DATAGRAM: u64 = 1200;
/// The time in seconds without data from which on a sender counts as idle.
const IDLE: f64 = 1.0;
/// The share of spurious losses from which on all losses count as reordering.
const SPURIOUS: f64 = 0.3;
/// The number of losses from which on they are a property of the whole transfer.
const MIN_LOSSES: u64 = 5;
/// Acknowledgements are late if their delay reaches this share of a round trip and `MIN_LATE_ACK` seconds.
const LATE_ACK: f64 = 0.5;
const MIN_LATE_ACK: f64 = 0.005;
/// The losses per reduction of the window from which on a policer is the cause.
const POLICED: f64 = 12.0;
/// The losses per reduction of the window from which on a policer is likely, if the reductions come at
/// similar windows.
const SEVERAL: f64 = 1.5;
/// The largest number of full datagrams that are remembered. K207.
const MAX_FULL: usize = 4096;
