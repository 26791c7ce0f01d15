//! Finds the next timer of a connection and runs expired ones.

use courser_base::Time;
use courser_recovery::LossTimer;

use super::Connection;
use super::close::path_too_small;
use super::error::ConnectionError;
use super::life::Ending;
use super::timer::Timer;
use super::watchdog::Situation;
use crate::space::SpaceId;

impl Connection {
    /// Returns the time at which to call [`Connection::handle_timeout`], and the timer that is due
    /// then.
    pub fn next_timeout(&self) -> Option<(Time, Timer)> {
        if !self.life.is_open() {
            return self.life.next_timeout().map(|at| (at, Timer::Close));
        }
        let path = self.parts.paths.active();
        let loss = self.packets.recovery.loss_timer(path.budget());
        let loss = loss.map(|timer| match timer {
            LossTimer::TimeThreshold { at, .. } => (at, Timer::LossDetection),
            LossTimer::Probe { at, .. } => (at, Timer::Probe),
        });
        let handshake = self
            .parts
            .handshake
            .deadline(self.watchdog.last_received(), path.is_validated());
        let watchdog = self.watchdog.next_timeout(&self.situation());
        // Compared one by one, because a list of them takes four times as long, several times per
        // request. Of timers at the same time, the first one is named.
        let mut next = loss;
        let mut consider = |at: Option<Time>, timer| {
            if let Some(at) = at
                && next.is_none_or(|(earliest, _)| at < earliest)
            {
                next = Some((at, timer));
            }
        };
        consider(self.parts.acknowledger.next_timeout(), Timer::Ack);
        consider(self.packets.recovery.paced_until(), Timer::Pacing);
        if let Some((at, timer)) = watchdog {
            consider(Some(at), timer);
        }
        consider(handshake, Timer::Handshake);
        consider(self.parts.paths.next_timeout(), Timer::PathValidation);
        consider(self.packets.protection.next_timeout(), Timer::KeyDiscard);
        consider(self.parts.streams.next_timeout(), Timer::Streams);
        consider(self.parts.datagrams.next_timeout(), Timer::Datagrams);
        consider(self.parts.pings.next_timeout(), Timer::Ping);
        consider(self.packets.recovery.search_at(), Timer::MtuSearch);
        if self.parts.multipath.is_some() {
            consider(self.next_timeout_of_paths(), Timer::PathValidation);
            consider(self.next_probe_timeout(), Timer::CandidateProbe);
        }
        if self.parts.observed.is_some() {
            consider(self.next_observation(), Timer::Observation);
        }
        next
    }

    /// Runs the timers that have expired at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        if !self.life.is_open() {
            return self.life.on_timeout(now, &mut self.parts.trace);
        }
        let pto = self.packets.recovery.pto();
        if self.watchdog.is_timed_out(now, pto) {
            return self.end(now, Ending::Silence(ConnectionError::TimedOut));
        }
        let is_validated = self.parts.paths.active().is_validated();
        let last_received = self.watchdog.last_received();
        let deadline = self.parts.handshake.deadline(last_received, is_validated);
        if deadline.is_some_and(|at| at <= now) {
            return self.end(now, Ending::Silence(ConnectionError::HandshakeTimedOut));
        }
        if self.on_path_timeout(now) {
            return self.end(now, Ending::Silence(ConnectionError::TimedOut));
        }
        self.run_timers_of_paths(now);
        self.run_observations(now);
        self.run_probe_timers(now);
        let due = self.watchdog.on_timeout(now, &self.situation());
        if due.keep_alive {
            self.packets.recovery.request_ping(SpaceId::Application);
        }
        if due.liveness_probe {
            self.packets.recovery.on_liveness_probe(now);
        }
        if due.credit_request {
            self.parts.streams.repeat_blocked();
        }
        self.parts.acknowledger.on_timeout(now);
        if self.packets.protection.on_timeout(now) {
            self.discard_early_keys(now);
        }
        self.parts.streams.on_timeout(now);
        self.parts.datagrams.on_timeout(now);
        self.parts.pings.on_timeout(now);
        if self.packets.recovery.begin_search(now) {
            self.want_interface_mtu();
        }
        let is_too_small = self.run_loss_timer(now);
        if is_too_small && self.life.is_confirmed() {
            self.end(now, path_too_small());
        }
        self.watch_paths(now);
        self.report_silence(now);
        if self.packets.recovery.has_too_many_ptos() {
            let ptos = self.packets.recovery.unanswered();
            self.end(now, Ending::Unanswered { ptos });
        }
        self.parts.trace.changes(now, &self.packets.recovery);
    }

    /// Runs the timer of loss detection and probes of the path at hand. Returns true if the path does not carry datagrams of
    /// the smallest size.
    pub(super) fn run_loss_timer(&mut self, now: Time) -> bool {
        let recovery = &mut self.packets.recovery;
        let before = recovery.unanswered_timeouts();
        let budget = self.parts.paths.active().budget();
        let is_too_small = recovery.on_timeout(now, budget, &mut self.parts);
        if self.parts.multipath.is_some() && recovery.unanswered_timeouts() > before {
            // Other paths carry what waits for an acknowledgement here (RFC 10069 §5.7).
            recovery.repeat_all(&mut self.parts);
        }
        is_too_small
    }

    /// Returns the state on which the timers of the watchdog depend.
    #[inline]
    fn situation(&self) -> Situation {
        let (recovery, streams) = (&self.packets.recovery, &self.parts.streams);
        let is_confirmed = self.life.is_confirmed();
        let may_be_blocked = is_confirmed
            && !recovery.is_waiting(SpaceId::Application)
            && streams.was_ever_blocked();
        Situation {
            pto: recovery.pto(),
            may_keep_alive: !self.life.is_handshaking()
                && !recovery.is_ping_due(SpaceId::Application),
            is_busy: streams.has_own_exchanges(),
            awaits_content: is_confirmed && streams.awaits_content(),
            blocked_at: may_be_blocked.then(|| streams.counters().data_sent),
        }
    }
}
