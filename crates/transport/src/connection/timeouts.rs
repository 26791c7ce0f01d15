//! When something must happen without a packet, and what happens then.

use courser_base::Time;
use courser_recovery::{LossTimer, LossTimerInputs, SpaceTimes};
use courser_telemetry::{self as telemetry, PathState};
use courser_wire::packet::MIN_INITIAL_DATAGRAM;

use super::Connection;
use super::error::ConnectionError;
use super::event::Event;
use super::state::State;
use crate::path::MIN_DATAGRAM;
use crate::path::paths::PathsOutcome;
use crate::space::{PacketNumberSpace, SpaceId};

/// Why a connection wants to be woken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Timer {
    /// Packets pass the time threshold of loss detection (RFC 9002 §6.1.2).
    LossDetection,
    /// A probe is due (RFC 9002 §6.2).
    Probe,
    /// An acknowledgement is due (RFC 9000 §13.2.1).
    Ack,
    /// The pacer lets the next batch go (RFC 9002 §7.7).
    Pacing,
    /// The connection dies of silence (RFC 9000 §10.1).
    Idle,
    /// A keep-alive is due.
    KeepAlive,
    /// Credit has been missing for long (RFC 9000 §4.1).
    Credit,
    /// The handshake takes too long.
    Handshake,
    /// A path validation wants a new challenge, or has failed (RFC 9000 §8.2).
    PathValidation,
    /// The previous receive keys are erased (RFC 9001 §6.5).
    KeyDiscard,
    /// Something the streams wait for.
    Streams,
    /// A datagram that waits to be sent expires.
    Datagrams,
    /// Closing or draining is over (RFC 9000 §10.2).
    Close,
}

impl Connection {
    /// When to call [`Connection::handle_timeout`], and what for.
    pub fn next_timeout(&self) -> Option<(Time, Timer)> {
        match &self.state {
            State::Closing(closing) => return Some((closing.until, Timer::Close)),
            State::Draining { until, .. } => return Some((*until, Timer::Close)),
            State::Drained => return None,
            State::Handshaking | State::Complete | State::Confirmed => {}
        }
        let loss = self.loss_timer().map(|timer| match timer {
            LossTimer::TimeThreshold { at, .. } => (at, Timer::LossDetection),
            LossTimer::Probe { at, .. } => (at, Timer::Probe),
        });
        let ack = self
            .spaces
            .application
            .acks
            .deadline()
            .map(|at| (at, Timer::Ack));
        let pacing = self.recovery.paced_until.map(|at| (at, Timer::Pacing));
        let idle = self.idle_deadline().map(|at| (at, Timer::Idle));
        let keep_alive = self.keep_alive_at().map(|at| (at, Timer::KeepAlive));
        let credit = self.credit_request_at().map(|at| (at, Timer::Credit));
        let handshake = self.handshake_deadline().map(|at| (at, Timer::Handshake));
        let path = self
            .paths
            .next_timeout()
            .map(|at| (at, Timer::PathValidation));
        let keys = self
            .key_phase
            .drop_previous_at
            .map(|at| (at, Timer::KeyDiscard));
        let streams = self.streams.next_timeout().map(|at| (at, Timer::Streams));
        let datagrams = self
            .datagrams
            .next_timeout()
            .map(|at| (at, Timer::Datagrams));
        [
            loss, ack, pacing, idle, keep_alive, credit, handshake, path, keys, streams, datagrams,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Runs what is due at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        match &self.state {
            State::Closing(closing) if closing.until <= now => self.enter(now, State::Drained),
            State::Draining { until, .. } if *until <= now => self.enter(now, State::Drained),
            _ => {}
        }
        if !self.state.is_open() {
            return;
        }
        if self.idle_deadline().is_some_and(|at| at <= now) {
            return self.end_silently(now, ConnectionError::TimedOut);
        }
        if self.handshake_deadline().is_some_and(|at| at <= now) {
            return self.end_silently(now, ConnectionError::HandshakeTimedOut);
        }
        let outcome = self.paths.on_timeout(now);
        self.retire_unused_ids();
        match outcome {
            PathsOutcome::Unchanged => {}
            PathsOutcome::Reverted => {
                let old = *self.cids.peer.current();
                self.return_to_peer_id();
                self.record_peer_id(now, old);
                self.spaces.application.ecn.restart();
                let index = self.paths.active_index();
                self.record_path(now, index, PathState::MigrationAbandoned);
                let peer = self.paths.active().tuple.peer;
                self.events.push_back(Event::PathChanged { peer });
            }
            PathsOutcome::NoneLeft => return self.end_silently(now, ConnectionError::TimedOut),
        }
        if self.keep_alive_at().is_some_and(|at| at <= now) {
            self.spaces.application.ping = true;
        }
        if self.credit_request_at().is_some_and(|at| at <= now) {
            self.request_credit();
        }
        if self.recovery.paced_until.is_some_and(|at| at <= now) {
            self.recovery.paced_until = None;
        }
        self.spaces.application.acks.on_timeout(now);
        self.drop_previous_keys(now);
        self.streams.on_timeout(now);
        self.datagrams.on_timeout(now);
        match self.loss_timer().filter(|timer| timer.at() <= now) {
            Some(LossTimer::TimeThreshold { space, .. }) => {
                self.record_expired(now, telemetry::Timer::LossDetection, SpaceId::ALL[space]);
                self.detect_lost(now, SpaceId::ALL[space]);
            }
            Some(LossTimer::Probe { space, .. }) => self.on_probe_timeout(now, SpaceId::ALL[space]),
            None => {}
        }
        self.record_changes(now);
    }

    fn idle_deadline(&self) -> Option<Time> {
        let pto = self.paths.active().pto(self.peer_max_ack_delay());
        self.idle.deadline(pto)
    }

    fn keep_alive_at(&self) -> Option<Time> {
        if self.state.is_handshaking() || self.spaces.application.ping {
            return None;
        }
        self.idle.keep_alive_at(self.streams.has_own_exchanges())
    }

    /// When to ask for credit again: nothing is in flight whose loss would be noticed, and what
    /// would let us go on may have been sent to an address that is ours no more
    /// (RFC 9000 §4.1). Seldom if that does not help, and not for ever: a peer that grants
    /// nothing is left to the idle timeout.
    fn credit_request_at(&self) -> Option<Time> {
        let requests = &self.recovery.credit_requests;
        let sent = self.streams.counters().data_sent;
        let count = if requests.data_sent == sent {
            requests.count
        } else {
            0
        };
        let is_due = self.state.is_confirmed()
            && self.spaces.application.ack_eliciting_in_flight == 0
            && self.streams.was_ever_blocked()
            && requests.made_after != Some(self.idle.heard())
            && count < MAX_CREDIT_REQUESTS;
        let pto = self.paths.active().pto(self.peer_max_ack_delay());
        is_due.then(|| self.idle.heard() + pto.saturating_mul(3 << count))
    }

    fn request_credit(&mut self) {
        let sent = self.streams.counters().data_sent;
        let requests = &mut self.recovery.credit_requests;
        if requests.data_sent != sent {
            *requests = CreditRequests {
                data_sent: sent,
                ..CreditRequests::default()
            };
        }
        requests.count += 1;
        requests.made_after = Some(self.idle.heard());
        self.streams.repeat_blocked();
    }

    /// The whole handshake has its time. A client that has not proven its address, and that a
    /// server hears nothing of, has half of it (limit K12): half-open connections are what
    /// attackers make. One that has proven it may only be on a path with many losses, where
    /// probe timeouts of four and eight seconds are what is left.
    fn handshake_deadline(&self) -> Option<Time> {
        if !matches!(self.state, State::Handshaking) {
            return None;
        }
        let timeout = self.config.handshake_timeout;
        let whole = self.handshake.started + timeout;
        let is_proven = self.paths.active().amplification.is_validated();
        Some(if self.side.is_server() && !is_proven {
            whole.min(self.idle.heard() + timeout / 2)
        } else {
            whole
        })
    }

    fn loss_timer(&self) -> Option<LossTimer> {
        let times = |id| {
            self.spaces
                .get(id)
                .map_or(SpaceTimes::default(), |space| SpaceTimes {
                    loss_time: space.loss.loss_time(),
                    last_ack_eliciting: space
                        .last_ack_eliciting_sent
                        .filter(|_| space.ack_eliciting_in_flight > 0),
                })
        };
        let path = self.paths.active();
        LossTimer::next(&LossTimerInputs {
            spaces: SpaceId::ALL.map(times),
            rtt: &path.rtt,
            pto: &self.recovery.pto,
            max_ack_delay: self.peer_max_ack_delay(),
            last_activity: self.recovery.quiet_since,
            has_handshake_keys: self.spaces.handshake.is_some(),
            is_handshake_confirmed: self.state.is_confirmed(),
            is_address_validated_by_peer: self.peer_validated_us(),
            is_at_amplification_limit: path.amplification.budget() < self.smallest_probe(),
        })
    }

    /// Bytes of the smallest datagram that a probe fits into.
    fn smallest_probe(&self) -> u64 {
        let initial = self.spaces.initial.as_ref();
        let len = match initial.is_some_and(|space| space.ack_eliciting_in_flight > 0) {
            true => MIN_INITIAL_DATAGRAM,
            false => MIN_DATAGRAM,
        };
        len as u64
    }

    /// Nothing was acknowledged for long: probes go out, nothing is lost yet (RFC 9002 §6.2.4).
    fn on_probe_timeout(&mut self, now: Time, id: SpaceId) {
        self.record_expired(now, telemetry::Timer::Probe, id);
        self.stats.ptos += 1;
        self.recovery.pto.on_timeout();
        self.recovery.quiet_since = now;
        self.on_silence();
        if let Some(space) = self.spaces.get_mut(id) {
            space.ecn.on_pto();
            space.probes = PROBES;
            space.ping = true;
        }
        // New data first, else what is oldest, else only a PING. Not new data for ever: a peer
        // without room for it may be waiting for the oldest.
        let is_first = self.recovery.pto.count() < 2;
        let has_new = self.streams.has_stream_data() || self.datagrams.wants_to_send();
        if id == SpaceId::Application && has_new && is_first {
            return;
        }
        self.repeat_oldest(id);
        if id != SpaceId::Application {
            let other = if id == SpaceId::Initial {
                SpaceId::Handshake
            } else {
                SpaceId::Initial
            };
            self.probe_along(other);
        }
        if id == SpaceId::Handshake && self.side.is_client() && self.can_seal(SpaceId::Application)
        {
            // A server that has our Finished, but whose answers got lost, has no keys for the
            // handshake any more: only a 1-RTT packet tells it that we wait, and from where
            // (RFC 9002 §6.2.4).
            self.probe_along(SpaceId::Application);
        }
    }

    /// The other space of the handshake is probed along, in the same datagram if that has room.
    /// What is known to be lost there may wait for a window that is full of packets which the
    /// peer has no keys for yet: without this both ends would wait for ever.
    fn probe_along(&mut self, id: SpaceId) {
        let Some(space) = self.spaces.get_mut(id) else {
            return;
        };
        let is_pending = space.crypto.wants_to_send();
        if is_pending || space.ack_eliciting_in_flight > 0 {
            space.probes = PROBES;
        }
        if !is_pending {
            self.repeat_oldest(id);
        }
    }

    /// A probe of the handshake that has nothing to say says again what is oldest: two datagrams
    /// with a half of the ClientHello each time it may be lost get it across sooner than one.
    pub(super) fn repeat_for_probes(&mut self) {
        for id in [SpaceId::Initial, SpaceId::Handshake] {
            let wants_more = |space: &PacketNumberSpace| {
                space.probes > 0 && !space.ping && !space.crypto.wants_to_send()
            };
            if self.spaces.get(id).is_some_and(wants_more) {
                self.repeat_oldest(id);
            }
        }
    }

    /// The second probe of a timeout says again what the first has said, when that was all: at a
    /// loss of a half a lone end of a stream took twice as many timeouts, each as long as all
    /// before it. Only with room in the window, which is not to fill up with copies.
    pub(super) fn repeat_for_second_probe(&mut self) {
        let probes = self.spaces.application.probes;
        let is_second = probes > 0 && probes < PROBES && self.recovery.pto.count() > 0;
        let path = self.paths.active();
        let has_room = path.congestion_room() >= u64::from(path.mtu);
        if is_second && has_room && !self.wants_to_send() {
            self.repeat_oldest(SpaceId::Application);
        }
    }

    /// Says again, ahead of the probe timeout, what the peer seems to miss of the handshake.
    /// Once per connection, which makes up for one lost packet: two ends that answered every
    /// such sign with another one would never stop (RFC 9002 §6.2.3).
    pub(super) fn speed_up_handshake(&mut self) {
        let initial = self.spaces.initial.as_ref();
        let is_open = initial.is_some_and(|space| space.ack_eliciting_in_flight > 0);
        if !is_open || std::mem::replace(&mut self.handshake.was_sped_up, true) {
            return;
        }
        self.repeat_oldest(SpaceId::Initial);
        self.repeat_oldest(SpaceId::Handshake);
    }

    /// Queues the frames of the oldest packets again, without giving the packets up: what two
    /// datagrams hold.
    ///
    /// Of 1-RTT packets each has its turn before one is repeated again. Otherwise small ones that
    /// the peer has, while its acknowledgements are lost, and copies of them would keep back what
    /// it waits for.
    fn repeat_oldest(&mut self, id: SpaceId) {
        let after = self
            .recovery
            .repeated
            .filter(|_| id == SpaceId::Application);
        let mut room = u32::from(self.paths.active().mtu) * u32::from(PROBES);
        let Some(space) = self.spaces.get(id) else {
            return;
        };
        let eliciting = || space.sent.iter().filter(|(_, sent)| sent.ack_eliciting);
        let is_fresh = |number: u64| after.is_none_or(|after| number > after);
        // All had their turn: it begins anew.
        let is_over = !eliciting().any(|(number, _)| is_fresh(number));
        let mut oldest = Vec::new();
        for (number, sent) in eliciting().filter(|(number, _)| is_over || is_fresh(*number)) {
            let left = room.checked_sub(u32::from(sent.size));
            let is_full = oldest.len() >= usize::from(PROBES) && left.is_none();
            if is_full || oldest.len() == MAX_REPEATED {
                break;
            }
            room = left.unwrap_or(0);
            oldest.push(sent.frames);
            if id == SpaceId::Application {
                self.recovery.repeated = Some(number);
            }
        }
        let lists = std::mem::take(&mut self.recovery.lists);
        for frames in oldest {
            frames.for_each(&lists, |frame| self.on_frame_repeated(id, frame));
        }
        self.recovery.lists = lists;
    }
}

/// Requests for credit since data was last sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CreditRequests {
    count: u32,
    /// Stream bytes that had been sent by then.
    data_sent: u64,
    /// When the peer had last been heard then; one request for each time.
    made_after: Option<Time>,
}

/// The last comes after more than 700 probe timeouts.
const MAX_CREDIT_REQUESTS: u32 = 8;

/// Packets per probe timeout: the second one makes up for a lost first (RFC 9002 §6.2.4).
const PROBES: u8 = 2;

/// Packets that the probes of one timeout repeat: as many small ones as an answer or two have.
const MAX_REPEATED: usize = 16;
